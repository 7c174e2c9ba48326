"""What several test files need: comparing, running a function by any backend, sample robots."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

import chasles
from chasles.algorithms import FUNCTIONS
from chasles.backends import BACKENDS
from chasles.checks.floats import evaluate
from chasles.errors import ChaslesError
from chasles.functions.tracing import WrenchKey
from chasles.model import Model
from chasles.robots import random_tree

EPS = float(np.finfo(float).eps)
TARGETS = tuple(name for name in BACKENDS if BACKENDS[name].device == "cpu")

CUBIC = {m.name for rows in FUNCTIONS.values() for m in rows if m.steep}
"""Methods that take the third power of the number of freedoms, or more: for arms and small trees,
on which `test_closed_form.py` has them."""


def gpus() -> int:
    """How many GPUs CuPy can use; 0 where it is not installed."""
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())
    except (ImportError, RuntimeError):  # CuPy's errors of the driver are of the latter
        return 0


def relative(actual: ArrayLike, expected: ArrayLike, scale: float = 0.0) -> float:
    """The largest difference beside the largest entry expected (or beside `scale`, if larger)."""
    a, b = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert a.shape == b.shape, f"shapes {a.shape} and {b.shape}"
    if a.size == 0 or np.array_equal(a, b):
        return 0.0
    size = max(float(np.max(np.abs(b))), scale)
    worst = float(np.max(np.abs(a - b)))
    return worst / size if size else np.inf


def close(actual: ArrayLike, expected: ArrayLike, tolerance: float, scale: float = 0.0) -> None:
    """Assert that two arrays agree to a relative tolerance, norm-wise."""
    error = relative(actual, expected, scale)
    assert error <= tolerance, f"relative error {error:.2e} exceeds {tolerance:.0e}"


def direct(
    model: Model,
    function: str,
    *arrays: ArrayLike,
    method: str = "",
    f_ext: Mapping[str, ArrayLike] | None = None,
    **options: Any,
) -> Any:
    """A function's algorithm run on plain floats: no tracing, no simplification, no compiler.

    method: the first of the function's table unless named. f_ext: six numbers a frame, along the
    frame's own axes and about its own origin. Damping and friction are the model's own.
    """
    forces = {WrenchKey(name, axes="frame"): wrench for name, wrench in (f_ext or {}).items()}
    found = evaluate(model, function, arrays, method=method, f_ext=forces, **options)
    return found[0] if len(found) == 1 else found


def turned_rotors(robot: chasles.Robot, qd: np.ndarray) -> np.ndarray:
    """a w x v: forces that turn rotors of free and planar joints with the axes of their bodies."""
    forces = np.zeros_like(qd)
    for name in robot.joints:
        data, where = robot.joint(name), robot.velocity_slice(name)
        if data.kind == "planar":
            w, x, y = np.moveaxis(qd[..., where], -1, 0)
            forces[..., where] = data.armature * np.stack([0.0 * w, -w * y, w * x], axis=-1)
        elif data.kind == "free":
            w, v = qd[..., where][..., :3], qd[..., where][..., 3:]
            turned = np.concatenate([0.0 * w, np.cross(w, v)], axis=-1)
            forces[..., where] = data.armature * turned
    return forces


def ways(robot: chasles.Robot, function: str, *, smooth: bool = False) -> list[str]:
    """The methods of a function that a robot can have, whatever its mimic joints.

    smooth: only those that have derivatives.
    """
    able = [m for m in FUNCTIONS[function] if m.needs is None or not m.needs(robot.model, {})]
    return [m.name for m in able if m.smooth or not smooth]


class Floats:
    """A robot's functions on plain floats, without damping: `Floats(robot).mass_matrix(q)`."""

    def __init__(self, robot: chasles.Robot) -> None:
        self._model = robot.model.frictionless()

    def __getattr__(self, function: str) -> Callable[..., Any]:
        return partial(direct, self._model, function)


Evaluate = Callable[..., Any]


def runner(robot: chasles.Robot, backend: str) -> Evaluate:
    """`run(function, *arrays, **options)` for one robot by one backend; f_ext by frame."""

    def run(function: str, *arrays: ArrayLike, f_ext: Any = None, **options: Any) -> Any:
        compiled = chasles.compile(robot, function, backend=backend, f_ext=f_ext, **options)
        forces = [f_ext[name] for name in sorted(f_ext or {})]
        values = [w.value if isinstance(w, chasles.Wrench) else w for w in forces]
        return compiled(*arrays, *values)

    return run


@cache
def tree(n: int, seed: int, **options: bool) -> chasles.Robot:
    """A random tree, built once for a test process."""
    return random_tree(n, seed, **options)


def state(
    robot: chasles.Robot, seed: int, size: int | tuple[int, ...] = ()
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A random position, velocity, and acceleration (or joint force)."""
    rng = np.random.default_rng(seed)
    shape = (size,) if isinstance(size, int) else size
    q = robot.random(rng, size=size)
    return q, rng.normal(size=(*shape, robot.nv)), rng.normal(size=(*shape, robot.nv))


class raises:
    """Assert that the error with a code is raised, and that its text has some names or numbers.

    expected: the code, or several with "|" between them; after a space it may have a name, too.
    kind: a class that the error is of.
    """

    def __init__(self, expected: str, *names: object, kind: type[Exception] = ChaslesError) -> None:
        assert not any(map(callable, names)), "use as: with raises(code): call()"
        self.codes, _, name = expected.partition(" ")
        self.names, self.context = (name, *names), pytest.raises(kind)

    def __enter__(self) -> pytest.ExceptionInfo[Any]:
        self.caught = self.context.__enter__()
        return self.caught

    def __exit__(self, *error: Any) -> bool:
        passed = self.context.__exit__(*error)
        found = self.caught.value
        assert found.code in self.codes.split("|"), f"{found} instead of {self.codes}"
        for name in self.names:
            assert str(name) in found.message, f"{name} is not in: {found}"
        return passed


def pairwise(*choices: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Combinations of choices in which any two values of two of them meet, far fewer than all."""
    every = [list(choice) for choice in choices]
    rows = {row: set(combinations(enumerate(row), 2)) for row in product(*map(_places, every))}
    wanted, found = set().union(*rows.values()), []
    while wanted:
        best = max(rows, key=lambda row: len(rows[row] & wanted))
        wanted -= rows.pop(best)
        found.append(tuple(values[k] for values, k in zip(every, best, strict=True)))
    return found


def _places(values: list[Any]) -> range:
    return range(len(values))
