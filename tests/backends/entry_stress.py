"""Trials that could crash the process. Run each in its own: `python entry_stress.py fuzz 1000000`.

- `fuzz N` calls fast entries with N random argument lists.
- `guard` places arrays next to protected memory.
- `untouchable` shows that the guard works.
- `collected` makes entries part of collected garbage.
- `ended` creates entries that outlive the interpreter.
- `probe` reads arrays at wrong offsets.
"""

import ctypes
import gc
import mmap
import random
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from entries import FORMS, LAYOUTS, OUTS, SUBJECTS, Subject, both, subject
from numpy.lib.stride_tricks import as_strided
from support import state, tree

import chasles
from chasles.backends import arrays, objects
from chasles.backends.llvm import kernel as llvm
from chasles.backends.llvm.code import Machine
from chasles.robots import planar, puma560

ROWS = 300
"""Number of states in the longest batch."""


# Random argument lists -------------------------------------------------------------------------


def fuzz(count: int) -> None:
    """Call fast entries with many random argument lists; compare one in 50 with the Python path.

    All arguments are created once and reused. Their reference counts can therefore be compared,
    arguments alias each other, and no time is spent creating them.
    """
    rng, names = random.Random(1), list(SUBJECTS)
    pools = {name: _pool(subject(name)) for name in names}
    things = [x for pool in pools.values() for each in pool for x in each]
    watched = [x for x in things if isinstance(x, np.ndarray)]
    warm, level, nothing, errors = max(count // 5, 2000), 0, 0, 0
    before = list(map(sys.getrefcount, watched))
    start = time.perf_counter()
    for step in range(count):
        if step == warm:
            gc.collect()
            level, nothing = resident(), sys.getrefcount(None)
        name = names[int(rng.random() * len(names))]
        given, named = _draw(rng, pools[name])
        if step % 50 == 0:
            _compare(name, given, named)
            continue
        try:
            subject(name).entry(*given, **named)
        except Exception:
            errors += 1
    seconds = time.perf_counter() - start
    del given, named
    gc.collect()
    grown = resident() - level
    after, drift = list(map(sys.getrefcount, watched)), sys.getrefcount(None) - nothing
    print(f"{count} calls, {errors} errors, {seconds:.1f} s, memory {grown / 2**20:+.2f} MiB,")
    print(f"references to None {drift:+d}")
    changed = [k for k, pair in enumerate(zip(after, before, strict=True)) if len(set(pair)) > 1]
    assert not changed, [(watched[k].shape, watched[k].dtype) for k in changed]
    assert abs(drift) < 100 + count // 500  # NumPy's own error messages lose a few references
    assert grown < 4 * 2**20, "memory grows"
    assert 0.05 < errors / count < 0.7


def resident() -> int:
    """Return the resident memory of this process (bytes), or 0 if the system does not report it."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * mmap.PAGESIZE if status.exists() else 0


LEFT_OUT = ("generator", "array interface")
"""Forms that are not used. A generator is exhausted by its first use. With the array interface,
NumPy itself loses references to None.
"""
_LEADS = [(), (), (), (1,), (2,), (7,), (8,), (17,), (ROWS,), (2, 3), (0,)]
_GOOD = 4
"""Number of valid values for each leading shape, which come before the others."""


def _pool(subject: Subject) -> list[list[list[Any]]]:
    """Return candidate values, valid ones first, by leading shape and place (arguments, `out`)."""
    pool = []
    for lead in _LEADS:
        places = []
        for a in subject.some(*lead):
            odd = [make(a) for form, make in (LAYOUTS | FORMS).items() if form not in LEFT_OUT]
            places.append([*(a.copy() for _ in range(_GOOD)), *odd])
        outs = [subject.room(*lead) for _ in range(_GOOD)]
        outs += [subject.out(make, *lead) for make in OUTS.values()]
        pool.append([*places, outs + [a for things in places for a in things[:_GOOD]]])
    return pool


def _draw(rng: random.Random, pool: list[list[list[Any]]]) -> tuple[list[Any], dict[str, Any]]:
    """Draw an argument list: all valid with one leading shape, any of one shape, or any at all."""
    turn, lead = rng.random(), pool[int(rng.random() * len(pool))]
    if turn < 0.5:
        *given, out = (things[int(rng.random() * _GOOD)] for things in lead)
    else:
        leads = [lead if turn < 0.8 else pool[int(rng.random() * len(pool))] for _ in lead]
        things = [each[place] for place, each in enumerate(leads)]
        *given, out = (some[int(rng.random() * len(some))] for some in things)
        if rng.random() < 0.1:
            given = given[:-1] if rng.random() < 0.5 else [*given, out]
    turn = rng.random()
    if turn < 0.9:
        return given, {"out": out} if turn < 0.45 else {}
    name = ("out", "threads", "q", "x", "method", "self")[int(rng.random() * 6)]
    return given, {name: out} if turn < 0.95 else {"out": out, name: None}


def _compare(name: str, given: list[Any], named: dict[str, Any]) -> None:
    try:
        both(subject(name), given, named)
    except AssertionError as error:
        shapes = [getattr(a, "shape", a) for a in given]
        raise AssertionError(f"{name}: {shapes} {sorted(named)}: {error}") from error


# Memory outside the arrays is not accessed -----------------------------------------------------


class Guarded:
    """Memory between two protected pages. Arrays are placed next to one of them."""

    def __init__(self) -> None:
        self._kept: list[mmap.mmap] = []
        self._protect = ctypes.CDLL(None).mprotect
        self._protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

    def array(self, a: np.ndarray, *, end: bool) -> np.ndarray:
        """Return a copy of an array that ends (`end`) or begins at a protected page."""
        page = mmap.PAGESIZE
        inner = -(-max(a.nbytes, 1) // page) * page
        memory = mmap.mmap(-1, inner + 2 * page)
        self._kept.append(memory)
        offset = page + (inner - a.nbytes if end else 0)
        new = np.frombuffer(memory, a.dtype, a.size, offset).reshape(a.shape)
        new[...] = a
        start = np.frombuffer(memory, np.uint8).__array_interface__["data"][0]
        for place in (start, start + page + inner):
            assert self._protect(place, page, 0) == 0
        return new


def guard() -> None:
    """Call functions with arrays next to protected pages on either side, for many batch sizes."""
    one, three, six, free = planar(1), planar(3), puma560(), tree(2, 4, floating=True)
    for robot, function in (
        (one, "inverse_dynamics"),
        (one, "potential_energy"),
        (three, "forward_dynamics"),
        (six, "inverse_dynamics"),
        (six, "mass_matrix"),
        (free, "inverse_dynamics"),
        (free, "integrate"),
    ):
        for dtype in ("float64", "float32"):
            compiled = chasles.compile(robot, function, dtype=dtype)
            host = Machine.host()
            narrow = [replace(host, width=w) for w in (2, 4) if w < host.width]
            kernels = [llvm.compile(compiled.program, machine, dtype) for machine in narrow]
            for count in (None, *range(1, 21), 31, 32, 33):
                lead = () if count is None else (count,)
                inputs = state(robot, 2, lead)[: len(compiled.interface.inputs)]
                _guarded(compiled, kernels, [a.astype(dtype) for a in inputs])
    print("guarded")


def _guarded(compiled: Any, kernels: list[Any], inputs: list[np.ndarray]) -> None:
    """Check the entry, the Python path and narrower machines on dense and on strided rows."""
    expected, name = compiled(*inputs), compiled.recipe.function
    for end in (True, False):
        memory = Guarded()
        given = [memory.array(a, end=end) for a in inputs]
        out = memory.array(np.full_like(expected, 7.0), end=end)
        assert np.array_equal(compiled.fast(*given), expected)
        assert compiled.fast(*given, out=out) is out
        assert np.array_equal(out, expected)
        rows = [(given, out)]
        if inputs[0].ndim > 1 and expected.ndim > 1:
            wide = [memory.array(np.repeat(a, 2, axis=0), end=end) for a in (*inputs, expected)]
            *given, out = (a[int(end) :: 2] for a in wide)
            rows.append((given, out))
        for given, out in rows:
            for kernel in (compiled.kernel, *kernels):
                out[...] = 7.0
                arrays.call(kernel, name, given, out=out)
                assert np.array_equal(out, expected)


def untouchable() -> None:
    """Read one entry past the end of an array. The guard must end the process."""
    a = Guarded().array(np.zeros(6), end=True)
    print(as_strided(a, (7,))[6])


# Garbage ---------------------------------------------------------------------------------------


def collected() -> None:
    """Make entries part of collected garbage, while other objects reuse the freed memory.

    CPython reads an entry's method definition when it frees the entry. The definition must still
    exist then, although the collector clears the objects of a cycle one by one.
    """
    taken = []

    class Filler:
        def __del__(self) -> None:
            taken.extend((ctypes.c_uint64 * 4)(*[2**64 - 1] * 4) for _ in range(3000))

    class Node:
        pass

    def make() -> None:
        robot, q = planar(2), np.zeros(2)
        robot.function("mass_matrix")
        junk = [b"\xff" * 46 + bytes([k % 251]) for k in range(20000)]
        del junk
        robot.mass_matrix(q)
        node: Any = Node()
        node.filler = np.array([Filler()], dtype=object)
        node.entry, node.fast = robot.mass_matrix, robot.function("mass_matrix").fast
        node.itself = node

    gc.disable()
    for _ in range(5):
        make()
        gc.collect()
    print("collected", len(taken))


class Late:
    """Object that calls an entry when it is destroyed, possibly after everything else."""

    def __init__(self, entry: Any) -> None:
        self.entry, self.q = entry, np.zeros(2)
        self.expected = entry(self.q)

    def __del__(self) -> None:
        for given in (self.q, self.q[None]):
            assert self.entry(given).tobytes() == self.expected.tobytes()
        self.entry([0.0, 0.0])  # calls the remaining Python path; at worst, an exception is ignored


def ended() -> None:
    """Keep entries in all places that the interpreter clears when it exits, early and late."""
    robot = planar(2)
    robot.mass_matrix(np.zeros(2))
    ring: list[Any] = [robot, Late(robot.mass_matrix)]
    ring.append(ring)
    hidden = np.array([Late(robot.mass_matrix)], dtype=object)  # not traversed by the collector
    globals().update(kept_robot=robot, kept_late=Late(robot.mass_matrix), kept_ring=ring)
    sys.kept = [Late(robot.function("mass_matrix").fast), hidden]  # type: ignore[attr-defined]
    sys.modules["kept"] = Late(robot.mass_matrix)  # type: ignore[assignment]
    print("ending", flush=True)


# Layouts ---------------------------------------------------------------------------------------


def probe() -> None:
    """Check that wrong offsets for this Python are all detected, without a crash."""
    assert objects._probe()
    for name in ("DATA", "RANK", "SHAPE", "STRIDES", "DESCR", "FLAGS", "TYPE", "ORDER", "CALL"):
        right = getattr(objects, name)
        setattr(objects, name, right + 8)
        assert not objects._probe(), name
        setattr(objects, name, right)
    print("noticed")


if __name__ == "__main__":
    command, *numbers = sys.argv[1:]
    globals()[command](*map(int, numbers))
