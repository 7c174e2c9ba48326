"""Helpers for several test files: comparisons, calls on any backend, sample robots."""

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
"""Methods whose work grows with the third or a higher power of the number of degrees of freedom.

Use them for arms and small trees, as in `test_closed_form.py`.
"""


def gpus() -> int:
    """Return the number of GPUs that CuPy can use, or 0 if CuPy is not installed."""
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())
    except (ImportError, RuntimeError):  # CuPy raises RuntimeError for errors of the driver
        return 0


def relative(actual: ArrayLike, expected: ArrayLike, scale: float = 0.0) -> float:
    """Return the largest difference relative to max |expected|, or to `scale` if larger."""
    a, b = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert a.shape == b.shape, f"shapes {a.shape} and {b.shape}"
    if a.size == 0 or np.array_equal(a, b):
        return 0.0
    size = max(float(np.max(np.abs(b))), scale)
    worst = float(np.max(np.abs(a - b)))
    return worst / size if size else np.inf


def close(actual: ArrayLike, expected: ArrayLike, tolerance: float, scale: float = 0.0) -> None:
    """Assert that two arrays agree within a tolerance relative to the largest expected entry."""
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
    """Run the algorithm of a function on plain floats, without tracing, simplifying or compiling.

    The default method is the first in the function's table. f_ext contains a wrench of six values
    per frame, along the frame's axes and about its origin. Damping and friction are those of the
    model.
    """
    forces = {WrenchKey(name, axes="frame"): wrench for name, wrench in (f_ext or {}).items()}
    found = evaluate(model, function, arrays, method=method, f_ext=forces, **options)
    return found[0] if len(found) == 1 else found


def turned_rotors(robot: chasles.Robot, qd: np.ndarray) -> np.ndarray:
    """Return a w x v: forces on rotors of free and planar joints that turn with their bodies."""
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
    """Return the methods of a function that support a robot; smooth: with derivatives only."""
    able = [m for m in FUNCTIONS[function] if m.needs is None or not m.needs(robot.model, {})]
    return [m.name for m in able if m.smooth or not smooth]


class Floats:
    """Functions of a robot on plain floats without damping: `Floats(robot).mass_matrix(q)`."""

    def __init__(self, robot: chasles.Robot) -> None:
        self._model = robot.model.frictionless()

    def __getattr__(self, function: str) -> Callable[..., Any]:
        return partial(direct, self._model, function)


Evaluate = Callable[..., Any]


def runner(robot: chasles.Robot, backend: str) -> Evaluate:
    """Return `run(function, *arrays, **options)`, which calls a robot's functions on a backend.

    Its option f_ext maps names of frames to wrenches.
    """

    def run(function: str, *arrays: ArrayLike, f_ext: Any = None, **options: Any) -> Any:
        compiled = chasles.compile(robot, function, backend=backend, f_ext=f_ext, **options)
        forces = [f_ext[name] for name in sorted(f_ext or {})]
        values = [w.value if isinstance(w, chasles.Wrench) else w for w in forces]
        return compiled(*arrays, *values)

    return run


@cache
def tree(n: int, seed: int, **options: bool) -> chasles.Robot:
    """Return a random tree, built once per process."""
    return random_tree(n, seed, **options)


def state(
    robot: chasles.Robot, seed: int, size: int | tuple[int, ...] = ()
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a random position, velocity, and acceleration (or joint torque)."""
    rng = np.random.default_rng(seed)
    shape = (size,) if isinstance(size, int) else size
    q = robot.random(rng, size=size)
    return q, rng.normal(size=(*shape, robot.nv)), rng.normal(size=(*shape, robot.nv))


class raises:
    """Assert that an error with a given code is raised and that its message contains some texts.

    `expected` is a code, or several codes separated by "|"; after a space, it may contain a text
    for the message. `names` are further texts, and `kind` is the expected class of the error.
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
    """Return combinations of choices in which every pair of values of two choices occurs."""
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
