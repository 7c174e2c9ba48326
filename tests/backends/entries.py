"""Fast entries, all forms of arguments, and comparisons of fast entries with the Python path."""

import array
import inspect
import mmap
import pickle
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from support import state, tree

import chasles
from chasles.robots import planar, puma560

# Subjects --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """A fast entry, the equivalent Python path, and valid arguments with one row per state."""

    entry: Callable[..., Any]
    python: Callable[..., Any]
    inputs: list[np.ndarray]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first result."""
        return self.shapes[0]

    @property
    def dtype(self) -> np.dtype:
        return self.inputs[0].dtype

    def some(self, *lead: int) -> list[np.ndarray]:
        """Return new arguments with the given leading shape."""
        count = int(np.prod(lead))
        rows = [np.resize(a, (count, *a.shape[1:])) if lead else a[0] for a in self.inputs]
        shapes = [(*lead, *a.shape[1:]) for a in self.inputs]
        return [np.array(r).reshape(shape) for r, shape in zip(rows, shapes, strict=True)]

    def room(self, *lead: int) -> Any:
        """Return an array for the result, or a tuple for several results, filled with sevens."""
        return self.out(lambda a: a, *lead)

    def out(self, make: Callable[[np.ndarray], Any], *lead: int) -> Any:
        """Return `room(*lead)` with `make` applied to each array."""
        good = [np.full((*lead, *shape), 7.0, self.dtype) for shape in self.shapes]
        return make(good[0]) if len(good) == 1 else tuple(map(make, good))


def states(robot: chasles.Robot, function: str) -> list[np.ndarray]:
    """Return random arguments of a function, with eight rows."""
    names = inspect.signature(getattr(chasles.Robot, function)).parameters
    return list(state(robot, 1, 8))[: sum(n in ("q", "qd", "qdd", "tau") for n in names)]


def _of_robot(robot: chasles.Robot, function: str) -> Subject:
    """Return a robot's method, with the Python path of an equal robot without fast entries."""
    inputs = states(robot, function)
    found = getattr(robot, function)(*(a[0] for a in inputs))
    shapes = tuple(map(np.shape, found if isinstance(found, tuple) else (found,)))
    other = chasles.Robot(robot.model.source, mimic=robot.mimic)
    _python(other.function(function))
    python = partial(getattr(type(robot), function), other)
    return Subject(getattr(robot, function), python, inputs, shapes)


def _python(compiled: Any) -> Any:
    """Disable the fast entries of a compiled function and return its Python path."""
    for each in (compiled, compiled.single):
        vars(each)["fast"] = each.call
    return compiled.call


def _of_compiled(robot: chasles.Robot, function: str, **options: Any) -> Subject:
    """Return a result of `chasles.compile`, with robot parameters as the last arguments."""
    compiled = chasles.compile(robot, function, **options)
    inputs = states(robot, function)
    inputs += [np.stack([robot.parameter(name)] * 8) for name in options.get("parameters", ())]
    typed = [a.astype(options.get("dtype", float)) for a in inputs]
    shapes = tuple(v.shape for v in compiled.interface.outputs)
    return Subject(compiled.fast, _python(pickle.loads(pickle.dumps(compiled))), typed, shapes)


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "forces": lambda: _of_robot(puma560(), "inverse_dynamics"),
    "one freedom": lambda: _of_robot(planar(1), "forward_dynamics"),
    "matrix": lambda: _of_robot(puma560(), "mass_matrix"),
    "number": lambda: _of_robot(puma560(), "potential_energy"),
    "quaternions": lambda: _of_robot(tree(2, 4, floating=True), "inverse_dynamics"),
    "no freedom": lambda: _of_robot(planar(1).lock({"joint1": 0.3}), "inverse_dynamics"),
    "compiled": lambda: _of_compiled(planar(2), "bias_forces"),
    "two results": lambda: _of_robot(planar(2), "ltdl_factors"),
    "derivatives": lambda: _of_compiled(planar(2), "inverse_dynamics", wrt=("q", "qd", "qdd")),
    "number among results": lambda: _of_compiled(
        planar(2), "potential_energy", parameters=("link2.mass",), wrt=("q", "link2.mass")
    ),
    "single precision": lambda: _of_compiled(planar(3), "inverse_dynamics", dtype="float32"),
    "parameters": lambda: _of_compiled(
        planar(2), "gravity_forces", parameters=("link2.mass", "gravity")
    ),
}
"""One fast entry for each kind of argument and result."""

SEVERAL = ("two results", "derivatives", "number among results")
"""Subjects with more than one result."""


@cache
def subject(name: str) -> Subject:
    found = SUBJECTS[name]()
    assert isinstance(found.entry, types.BuiltinFunctionType)
    return found


# Comparing two calls ---------------------------------------------------------------------------

_ABSENT = object()


def outcome(function: Callable[..., Any], given: Sequence[Any], named: dict[str, Any]) -> Any:
    """Return the outcome of a call as a comparable value: type, dtype, shape, bytes, or error."""
    try:
        found = function(*given, **named)
    except Exception as error:
        return type(error), str(error)
    out = named.get("out", _ABSENT)
    if found is out or (_several(out) and [*map(id, found)] == [*map(id, out)]):
        return "out itself"
    return tuple(map(_described, found)) if _several(found) else _described(found)


def _several(found: Any) -> bool:
    return isinstance(found, tuple) and len(found) > 1


def _described(found: Any) -> Any:
    bits = found.tobytes() if isinstance(found, np.ndarray | np.generic) else found
    return type(found), getattr(found, "dtype", None), np.shape(found), bits


def both(subject: Subject, given: Sequence[Any], named: dict[str, Any]) -> Any:
    """Return the outcome of a call by the fast entry, checked against the Python path.

    Only `out` may change, and only if there is no error.
    """
    out = named.get("out")
    outs = [a for a in (out if isinstance(out, tuple) else (out,)) if isinstance(a, np.ndarray)]
    kept = [a.copy() for a in outs]
    fast = outcome(subject.entry, given, named)
    filled = [a.tobytes() for a in outs]
    for a, before in zip(outs, kept, strict=True):
        if a.flags.writeable:
            a[...] = before
    slow = outcome(subject.python, given, named)
    assert fast == slow
    assert filled == [a.tobytes() for a in outs]
    if fails(fast):
        assert filled == [a.tobytes() for a in kept], "out was touched"
    return fast


def fails(found: Any, *kinds: type[Exception]) -> bool:
    """Return True if an outcome is an error (of one of the given types, if any)."""
    return isinstance(found[0], type) and issubclass(found[0], kinds or Exception)


# Every form of argument ------------------------------------------------------------------------


class Child(np.ndarray):
    """Array of a subclass."""


class Impostor:
    """Object with the attributes of an array that raises an error when it is converted."""

    ndim, shape, dtype = 1, (6,), np.dtype(float)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise RuntimeError("no numbers here")


class Lender:
    """Object that is not an array but provides the interface of one."""

    def __init__(self, a: np.ndarray) -> None:
        self.__array_interface__ = np.asarray(a).__array_interface__
        self.kept = a


def unaligned(a: np.ndarray) -> np.ndarray:
    """Return a copy of an array at an odd address."""
    buffer = bytearray(a.nbytes + 1)
    buffer[1:] = a.tobytes()
    return np.frombuffer(buffer, dtype=a.dtype, offset=1).reshape(a.shape)


def spaced(a: np.ndarray) -> np.ndarray:
    """Return a copy of an array with other values between its entries."""
    wide = np.full((*a.shape, 2), 7.0, a.dtype)
    wide[..., 0] = a
    return wide[..., 0]


def swapped(a: np.ndarray) -> np.ndarray:
    """Return a copy of an array in the other byte order."""
    return a.astype(a.dtype.newbyteorder())


def frozen(a: np.ndarray) -> np.ndarray:
    """Return a read-only copy of an array."""
    b = a.copy()
    b.flags.writeable = False
    return b


def mapped(a: np.ndarray) -> np.ndarray:
    """Return a copy of an array in mapped memory."""
    memory = mmap.mmap(-1, max(a.nbytes, 1))
    b = np.frombuffer(memory, dtype=a.dtype, count=a.size).reshape(a.shape)
    b[...] = a
    return b.view(np.memmap)


def renamed(a: np.ndarray) -> np.ndarray:
    """Return a view of an array with an equal dtype that is a different object."""
    return a.view(np.dtype(a.dtype, metadata={"made": "here"}))


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "itself": lambda a: a,
    "spaced": spaced,
    "reversed twice": lambda a: np.flip(np.flip(a).copy()),
    "Fortran": np.asfortranarray,
    "unaligned": unaligned,
    "other byte order": swapped,
    "read-only": frozen,
    "subclass": lambda a: a.view(Child),
    "masked": lambda a: np.ma.masked_array(a, mask=np.zeros(a.shape, bool)),
    "memmap": mapped,
    "plain view of memmap": lambda a: np.asarray(mapped(a)),
    "own dtype object": renamed,
    "one more axis": lambda a: a[None],
    "transposed": lambda a: a.T,
    "row of a larger one": lambda a: np.stack([a, a])[1],
    "broadcast": lambda a: np.broadcast_to(a, (3, *a.shape)),
}
"""Memory layouts that leave the values of an array unchanged."""

FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": lambda a: a.tolist(),
    "tuple": lambda a: tuple(a.tolist()) if a.ndim else a.item(),
    "array.array": lambda a: array.array("d", a.ravel().tolist()),
    "memoryview": lambda a: memoryview(a),
    "array interface": Lender,
    "single": lambda a: a.astype(np.float32),
    "double": lambda a: a.astype(np.float64),
    "half": lambda a: a.astype(np.float16),
    "long double": lambda a: a.astype(np.longdouble),
    "integers": lambda a: np.ones_like(a, dtype=np.int64),
    "small integers": lambda a: np.ones_like(a, dtype=np.uint8),
    "complex": lambda a: a.astype(complex),
    "booleans": lambda a: np.ones_like(a, dtype=bool),
    "objects": lambda a: a.astype(object),
    "text": lambda a: a.astype(str),
    "dates": lambda a: np.zeros(a.shape, "M8[s]"),
    "records": lambda a: np.zeros(a.shape, [("x", float)]),
    "empty": lambda a: a[..., :0] if a.ndim else np.zeros(0),
    "too long": lambda a: np.append(a, 1.0),
    "without axes": lambda a: np.array(1.0),
    "float": lambda a: 1.0,
    "None": lambda a: None,
    "word": lambda a: "abc",
    "class": lambda a: np.ndarray,
    "ragged": lambda a: [[1.0], [1.0, 2.0]],
    "impostor": lambda a: Impostor(),
    "generator": lambda a: iter(()),
    "infinite": lambda a: np.full_like(a, np.inf),
    "NaN": lambda a: np.full_like(a, np.nan),
    "large": lambda a: np.full_like(a, 1e38),
    "zero": np.zeros_like,
}
"""Other objects in place of an array."""

OUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "itself": lambda a: a,
    "spaced": spaced,
    "unaligned": unaligned,
    "Fortran": np.asfortranarray,
    "read-only": frozen,
    "other byte order": swapped,
    "subclass": lambda a: a.view(Child),
    "masked": np.ma.masked_array,
    "memmap": mapped,
    "own dtype object": renamed,
    "single": lambda a: a.astype(np.float32),
    "double": lambda a: a.astype(np.float64),
    "integers": lambda a: a.astype(int),
    "complex": lambda a: a.astype(complex),
    "objects": lambda a: a.astype(object),
    "one more axis": lambda a: a[None],
    "one row more": lambda a: np.concatenate([a, a[:1]]) if a.ndim else a[None],
    "one axis less": lambda a: a.ravel(),
    "flat": lambda a: np.append(a, a),
    "list": lambda a: a.tolist(),
    "tuple of one": lambda a: (a,),
    "tuple of two": lambda a: (a, a),
    "None": lambda a: None,
    "word": lambda a: "abc",
    "all rows in one place": lambda a: as_strided(a, a.shape, (0,) * a.ndim),
}
"""Valid and invalid values for `out`, made from a valid array."""
