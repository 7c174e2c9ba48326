"""Inverse kinematics for PyTorch or JAX targets, with derivatives of the configurations.

PyTorch or JAX computes the target parameters (`Target.numbers`), for example the entries of a pose.
The search uses NumPy arrays, and `functions.libraries` records it as a single operation on these
parameters. `functions.sensitivity` computes the derivative of this operation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from chasles.errors import ArgumentError
from chasles.functions.clearance import Clearance
from chasles.functions.doors import Library, library_of, module
from chasles.functions.reaching import Task
from chasles.functions.sensitivity import solution_rates
from chasles.functions.targets import (
    Axis,
    CenterOfMass,
    LookAt,
    Orientation,
    Pose,
    Position,
    Relative,
    Target,
)
from chasles.mechanisms.given_targets import PART, task_of
from chasles.mechanisms.inverse_kinematics import Solution, inverse_kinematics
from chasles.mechanisms.mechanism import Mechanism
from chasles.mechanisms.postures import Bounds

ORTHOGONAL = 1e-5
"""Tolerance for the entries of R R' - 1, where R is a rotation matrix."""


def array_library(targets: Any) -> Library | None:
    """Return the array library of the targets, or None for NumPy."""
    if not isinstance(targets, Mapping):
        return None
    for value in targets.values():
        for each in _several(value):
            for array in _arrays(each):
                found = library_of(array)
                if found is not None:
                    return found
    return None


def _arrays(value: Any) -> list[Any]:
    """Return the numeric arrays that define a target, without its weights and tolerances."""
    if not isinstance(value, Target):
        return list(value) if isinstance(value, tuple) else [value]
    found: list[Any] = []
    for field in fields(value):
        if field.name not in ("to", "weight", "tolerance"):
            found += _arrays(getattr(value, field.name))
    return found


def differentiable(
    mechanism: Mechanism,
    bounds: Bounds,
    targets: Mapping[str, Any],
    library: Library,
    **options: Any,
) -> Solution:
    """Return a solution with PyTorch or JAX arrays; q is differentiable w.r.t. the targets."""
    if library.package not in ("torch", "jax"):
        problem = f"inverse kinematics does not support {library.name} arrays"
        raise ArgumentError("E-CALL-386", problem, "use NumPy, PyTorch or JAX arrays", part=PART)
    pairs = [(frame, each) for frame, value in targets.items() for each in _targets(value)]
    every = [array for _, target in pairs for array in _arrays(target)]
    arrays = module(f"solving_{library.package}").Arrays(
        [a for a in every if library_of(a) is not None]
    )
    if without := undifferentiable(pairs, options):
        if any(arrays.recorded(a) for a in every if library_of(a) is not None):
            problem = f"`{'` and `'.join(without)}` cannot be used while derivatives are recorded"
            remedy = "omit these options, or use targets without derivatives, such as NumPy arrays"
            raise ArgumentError("E-CALL-385", problem, remedy, part=PART)
        return _copied(mechanism, bounds, pairs, arrays, options)
    for name in ("comfort", "comfort_weight", "wraps"):
        options.pop(name, None)
    stated = [(frame, _with(target, arrays.values)) for frame, target in pairs]
    task, _, (_, weights, _) = task_of(mechanism, bounds, _grouped(stated))
    goals = _joined(arrays, *(_numbers(arrays, target) for _, target in pairs))
    postures = [options.pop(name, None) for name in ("guess", "near")]
    movable = np.ones(mechanism.nv)
    names = options.get("fixed", ())
    for name in [names] if isinstance(names, str) else names:
        movable[mechanism.velocity_slice(name)] = 0.0

    def solve(numbers: np.ndarray, *given: np.ndarray) -> list[np.ndarray]:
        """Return the fields of the solution and the derivatives of q for the target parameters."""
        lead = numbers.shape[:-1]
        flat, *rows = (np.asarray(a, float).reshape(-1, a.shape[-1]) for a in (numbers, *given))
        flat, good = _usable(task, flat)
        stated, (guess, near) = _from_numbers(pairs, flat), _spread(postures, rows)
        found = inverse_kinematics(mechanism, bounds, stated, guess=guess, near=near, **options)
        solved = found.solved & (good if found.solved.ndim == 1 else good[:, None])
        rates = _rates(task, found, solved, flat, weights, movable)
        whole = np.broadcast_to(found.complete, flat.shape[:1])
        results = (found.q, rates, solved, found.residual, found.iterations, found.limits, whole)
        return [np.reshape(a, (*lead, *a.shape[1:])) for a in results]

    count = options.get("count", 16) if options.get("solutions") == "all" else None
    several = () if count is None or postures[1] is not None else (int(count),)
    nq, numbers = mechanism.nq, task.numbers
    shapes = [(*several, *each) for each in ((nq,), (nq, numbers), (), (2,), (nq,))]
    shapes.insert(4, ())  # shape of `Solution.iterations`
    shapes.append(())  # shape of `Solution.complete`
    given = [p for p in postures if p is not None]
    return Solution(*arrays.solved(solve, goals, given, shapes))


def undifferentiable(pairs: Sequence[tuple[str, Target]], options: Mapping[str, Any]) -> list[str]:
    """Return the names of the given options that do not support derivatives."""
    found = [name for name in ("comfort", "wraps") if options.get(name) not in (None, False)]
    return found + ["avoid"] * any(isinstance(target, Clearance) for _, target in pairs)


def _copied(
    mechanism: Mechanism,
    bounds: Bounds,
    pairs: Sequence[tuple[str, Target]],
    arrays: Any,
    options: Mapping[str, Any],
) -> Solution:
    """Solve with NumPy copies of the targets; convert the solution back, without derivatives."""
    stated = _grouped([(frame, _with(target, arrays.values)) for frame, target in pairs])
    plain = {k: v if library_of(v) is None else arrays.values(v) for k, v in options.items()}
    found = inverse_kinematics(mechanism, bounds, stated, **plain)
    return Solution(*(arrays.result(np.asarray(a)) for a in vars(found).values()))


def _targets(value: Any) -> list[Target]:
    return [each if isinstance(each, Target) else Pose(each) for each in _several(value)]


def _several(value: Any) -> list[Any]:
    """Return the targets of a frame as a list."""
    several = isinstance(value, list) and value and all(isinstance(x, Target) for x in value)
    return value if several else [value]


def _grouped(pairs: list[tuple[str, Target]]) -> dict[str, list[Target]]:
    found: dict[str, list[Target]] = {}
    for frame, target in pairs:
        found.setdefault(frame, []).append(target)
    return found


def _spread(postures: list[Any], given: list[np.ndarray]) -> list[np.ndarray | None]:
    """Return `postures` with all entries other than None replaced by the arrays `given`."""
    rest = iter(given)
    return [None if p is None else next(rest) for p in postures]


def _rates(
    task: Task,
    found: Solution,
    solved: np.ndarray,
    numbers: np.ndarray,
    weights: np.ndarray,
    movable: np.ndarray,
) -> np.ndarray:
    """Return derivatives of configurations with respect to the target parameters.

    Derivatives are NaN for unsolved problems, but 0 if the configuration itself is NaN.
    Coordinates at limits are held fixed.
    """
    goals = numbers if found.q.ndim == 2 else numbers[:, None]
    goals = np.broadcast_to(goals, (*found.q.shape[:-1], numbers.shape[-1]))
    rates = np.full((*found.q.shape, goals.shape[-1]), np.nan)
    rates[np.isnan(found.q).any(axis=-1)] = 0.0  # where no configuration was found
    given = (found.q[solved], goals[solved], weights, movable, found.limits[solved])
    rates[solved] = solution_rates(task, *given)
    return rates


# Target parameters ------------------------------------------------------------------------------


def _with(target: Target, values: Any) -> Target:
    """Return a target with NumPy arrays; traced arrays are replaced by valid example arrays."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple) and any(library_of(x) is not None for x in value):
            return tuple(map(plain, value))
        if library_of(value) is None:
            return value
        found = values(value)
        return _example(tuple(value.shape)) if found is None else found

    if isinstance(target, Clearance):
        return target
    names = [f.name for f in fields(target) if f.name not in ("to", "weight", "tolerance")]
    return replace(target, **{name: plain(getattr(target, name)) for name in names})


def _example(shape: tuple[int, ...]) -> np.ndarray:
    """Return a valid pose, rotation, quaternion or direction as an array of the given shape."""
    found = np.zeros(shape)
    if shape[-2:] in ((4, 4), (3, 3)):
        found[...] = np.eye(shape[-1])
    elif shape:
        found[..., 0] = 1.0
    return found


def _numbers(arrays: Any, target: Target) -> Any:
    """Return the parameters (..., size) that define a target, as a PyTorch or JAX array.

    The parameters are those in `Target.numbers`. `arrays` is an `Arrays` object of a module in
    `functions.libraries`.
    """
    match target:
        case Position() | CenterOfMass():
            return arrays.array(target.point)
        case Orientation():
            return _turn(arrays, target.rotation)
        case Pose() | Relative():
            value = target.pose
            if isinstance(value, tuple):
                return _joined(arrays, _turn(arrays, value[1]), arrays.array(value[0]))
            T = arrays.array(value)
            return _joined(arrays, _turn(arrays, T[..., :3, :3]), T[..., :3, 3])
        case Axis():
            return _joined(arrays, _unit(arrays, target.direction), _unit(arrays, target.axis))
        case LookAt():
            return _joined(arrays, arrays.array(target.point), _unit(arrays, target.axis))
    problem = f"targets of type {type(target).__name__} are supported for NumPy arrays only"
    raise ArgumentError("E-CALL-387", problem, "use NumPy arrays", part=PART)


def _joined(arrays: Any, *parts: Any) -> Any:
    """Concatenate arrays (..., n) along the last axis, with leading axes broadcast."""
    lead = np.broadcast_shapes(*(tuple(p.shape[:-1]) for p in parts))
    wide = [arrays.names.broadcast_to(p, (*lead, p.shape[-1])) for p in parts]
    return arrays.names.concatenate(wide, axis=-1)


def _unit(arrays: Any, value: Any) -> Any:
    a = arrays.array(value)
    return a / (a * a).sum(axis=-1)[..., None] ** 0.5


def _turn(arrays: Any, value: Any) -> Any:
    """Return the entries (..., 9) of a rotation given as a matrix or a quaternion."""
    a = arrays.array(value)
    if a.shape[-1] == 3:
        return a.reshape(*a.shape[:-2], 9)
    w, x, y, z = (_unit(arrays, a)[..., k] for k in range(4))
    entries = [
        *(1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        *(2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
        *(2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
    ]
    return arrays.names.stack(entries, axis=-1)


# Conversion of parameters to targets ------------------------------------------------------------


def _usable(task: Task, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return parameters with invalid targets replaced, and the mask of valid targets.

    Invalid values cannot raise an error inside `jax.jit` and similar transformations.
    """
    good, made = np.isfinite(numbers).all(axis=-1), numbers.copy()
    ends = np.cumsum([target.size for _, target in task.targets])
    parts = [slice(end - t.size, end) for end, (_, t) in zip(ends, task.targets, strict=True)]
    for part in (p for p in parts if p.stop - p.start >= 9):
        R = numbers[..., part][..., :9].reshape(*numbers.shape[:-1], 3, 3)
        with np.errstate(invalid="ignore", over="ignore"):
            off = np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max(axis=(-1, -2))
            good &= (off <= ORTHOGONAL) & (np.linalg.det(R) > 0.0)
    for part in parts:
        made[..., part][~good] = _plain(part.stop - part.start)
    return made, good


def _plain(size: int) -> np.ndarray:
    """Return the parameters of a valid target, which replace those of an invalid target."""
    return np.concatenate([np.eye(3).ravel(), np.zeros(3)])[:size] if size >= 9 else np.ones(size)


def _from_numbers(pairs: list[tuple[str, Target]], numbers: np.ndarray) -> dict[str, list[Target]]:
    """Build all targets, by frame, from an array of their parameters (..., size)."""
    made = []
    for frame, target in pairs:
        part, numbers = numbers[..., : target.size], numbers[..., target.size :]
        made.append((frame, _from_part(target, part)))
    return _grouped(made)


def _from_part(target: Target, part: np.ndarray) -> Target:
    match target:
        case Position() | CenterOfMass():
            return replace(target, point=part)
        case Orientation():
            return replace(target, rotation=part.reshape(*part.shape[:-1], 3, 3))
        case Axis():
            return replace(target, direction=part[..., :3], axis=part[..., 3:])
        case LookAt():
            return replace(target, point=part[..., :3], axis=part[..., 3:])
        case Clearance():
            return replace(target, given=part[..., 1:])
    T = np.zeros((*part.shape[:-1], 4, 4))
    T[..., :3, :3] = part[..., :9].reshape(*part.shape[:-1], 3, 3)
    T[..., :3, 3], T[..., 3, 3] = part[..., 9:], 1.0
    return replace(target, pose=T)  # type: ignore[call-arg]
