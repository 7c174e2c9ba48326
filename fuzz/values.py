"""Hostile values: numbers, counts, strings, objects, and arrays of every shape and layout."""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from entries import FORMS, LAYOUTS, OUTS
from numpy.lib.stride_tricks import as_strided

from fuzz.guarded import guarded
from fuzz.target import Hostile


class Bomb:
    """Object whose special methods all raise an error."""

    def _fail(self, *_: Any, **__: Any) -> Any:
        raise Hostile("asked")

    __array__ = __float__ = __index__ = __len__ = __iter__ = __getitem__ = __bool__ = _fail
    __eq__ = __hash__ = __lt__ = __int__ = __str__ = __repr__ = __format__ = _fail  # type: ignore


class Liar:
    """Sequence whose length and items do not agree."""

    def __init__(self, length: int, item: Any) -> None:
        self.length, self.item = length, item

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, int) and 0 <= k < max(self.length, 3):
            return self.item
        raise IndexError(k)


class Shifty:
    """Object whose conversion to an array gives a different shape each time."""

    def __init__(self, a: np.ndarray) -> None:
        self.a, self.asked = a, 0

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        self.asked += 1
        return self.a if self.asked % 2 else self.a[..., :0]


class Number(float):
    """A float that is converted to another value."""

    def __float__(self) -> float:
        return math.nan


class Sized(list):  # type: ignore[type-arg]
    """A list that reports a wrong length."""

    def __len__(self) -> int:
        return 10**6


COUNTS: tuple[Any, ...] = (
    *(0, 1, 2, 3, 7, 64, 65, -1, -(2**63), 2**31, 2**53, 2**53 + 1, 2**63, 2**64 + 1, 10**40),
    *(
        True,
        False,
        1.0,
        2.5,
        math.nan,
        math.inf,
        "2",
        b"2",
        None,
        (),
        [3],
        np.int64(3),
        np.int8(-1),
    ),
    *(np.uint64(2**64 - 1), np.float64(2.0), np.array(2), np.array([2]), 1j, Bomb, object()),
)
"""Values to pass as a count."""

NUMBERS: tuple[Any, ...] = (
    *(0.0, -0.0, 1e-3, 1.0, -1.0, 1e-300, 5e-324, 1e300, 1.7e308, math.nan, math.inf, -math.inf),
    *(True, "1", None, 1j, 10**400, np.float32(0.5), np.longdouble(1), np.array(0.1), [0.1], {}),
)
"""Values to pass as a number."""

TEXTS: tuple[Any, ...] = (
    *("", " ", "world", "frame", "tool", "link1", "joint1", "fastest", "x" * 100_000, "\x00", "é"),
    *("\ud800", "\x1b[31m", "../..", "a\nb", "__class__", "{}", "%s", "[red]"),
    *(None, 0, 1.5, b"tool", (), ["tool"], {"tool": 1}, object, np.str_("tool"), math.nan),
)
"""Values to pass as a name or an option."""

KEYWORDS = ("out", "threads", "x", "self", "q", "dtype", "axis", "method", "frame", "f_ext", "at")


def thing(rng: random.Random) -> Any:
    """Return a random value of any type."""
    return rng.choice((*rng.choice((COUNTS, NUMBERS, TEXTS)), Bomb(), Liar(2, 1.0), lambda: 1))


def passive(value: Any) -> Any:
    """Return the value, or None for a callable, whose errors the library would pass on."""
    return None if callable(value) else value


SAME: dict[str, Callable[[np.ndarray], Any]] = {
    "itself": lambda a: a,
    "copy": np.copy,
    "list": lambda a: a.tolist(),
    "tuple": lambda a: tuple(a.tolist()) if a.ndim else a.item(),
    "spaced": LAYOUTS["spaced"],
    "reversed twice": LAYOUTS["reversed twice"],
    "Fortran": LAYOUTS["Fortran"],
    "unaligned": LAYOUTS["unaligned"],
    "other byte order": LAYOUTS["other byte order"],
    "read-only": LAYOUTS["read-only"],
    "subclass": LAYOUTS["subclass"],
    "memmap": LAYOUTS["memmap"],
    "own dtype object": LAYOUTS["own dtype object"],
    "row of a larger one": LAYOUTS["row of a larger one"],
    "memoryview": lambda a: memoryview(np.ascontiguousarray(a)),
    "against its end": lambda a: guarded(a, end=True),
    "against its start": lambda a: guarded(a, end=False),
    "objects": lambda a: a.tolist() if a.ndim else a.item(),
}
"""Conversions of an array that every function accepts and that preserve its values."""

EMPTY = ("itself", "copy", "Fortran", "read-only", "subclass", "own dtype object")
"""Conversions that preserve the shape of an empty array."""


def hostile(rng: random.Random, a: np.ndarray) -> Any:
    """Return a hostile value to pass in place of a valid array."""
    turn = rng.random()
    if turn < 0.45:
        name = rng.choice(list(FORMS))
        return FORMS[name](a)
    if turn < 0.6:
        return rng.choice(list(LAYOUTS.values()))(a)
    if turn < 0.75:
        return reshaped(rng, a)
    if turn < 0.85:
        b = np.array(a)
        if b.size:
            b.flat[rng.randrange(b.size)] = rng.choice((math.nan, math.inf, 1e300, -1e300, 0.0))
        return guarded(b, end=rng.random() < 0.5)
    choices: list[Any] = [Bomb(), Liar(len(a) if a.ndim else 1, 1.0), Shifty(a), Sized(a.ravel())]
    choices += [
        [Number(1.0)] * max(a.size, 1),
        [1e400, *a.ravel().tolist()],
        {1: 2},
        set(),
        range(3),
    ]
    choices += [a.astype(object), [[Bomb()]], np.ma.masked_all_like(a), iter([1.0])]
    return rng.choice(choices)


def reshaped(rng: random.Random, a: np.ndarray) -> np.ndarray:
    """Return an array with random shape and strides that accesses only valid memory."""
    b = np.resize(a, max(a.size, 1) * 4) if a.size else np.ones(8)
    rank = rng.randrange(4)
    shape = tuple(rng.choice((0, 1, 2, 3, *a.shape)) for _ in range(rank))
    most = b.size
    strides = []
    for n in shape:
        step = rng.choice((0, 8, 16))
        if n and (n - 1) * step // 8 >= most:
            step = 0
        most -= (n - 1) * step // 8 if n else 0
        strides.append(step)
    return as_strided(b, shape, tuple(strides))


def out_of(rng: random.Random, shape: tuple[int, ...], given: list[Any]) -> Any:
    """Return a value for `out`: a valid array, one of another form, or one of the arguments."""
    good = np.full(shape, 7.0)
    turn = rng.random()
    if turn < 0.3:
        return guarded(good, end=rng.random() < 0.5)
    if turn < 0.8:
        return rng.choice(list(OUTS.values()))(good)
    if turn < 0.95 and given:
        base = rng.choice(given)
        if isinstance(base, np.ndarray) and base.ndim and base.size > 1 and rng.random() < 0.5:
            return base[1:]
        return base
    return thing(rng)
