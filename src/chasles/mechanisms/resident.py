"""Inverse kinematics on a GPU, for targets in GPU memory (`backends.cuda.search`).

Calls do not wait for the GPU, so targets are not checked on entry. For a target that is not finite,
or not a rotation, the configuration is NaN, and `solved` is False.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from chasles.backends.arrays import checked_count
from chasles.errors import ArgumentError, InputError
from chasles.functions.clearance import Clearance
from chasles.functions.doors import Library, library_of, module
from chasles.functions.reaching import ANGLE, LENGTH, ROUGH, Task
from chasles.functions.targets import Target
from chasles.mechanisms.differentiable import (
    _arrays,
    _grouped,
    _joined,
    _numbers,
    _targets,
    _with,
)
from chasles.mechanisms.given_targets import PART, checked_posture, fixed_joints, task_of
from chasles.mechanisms.inverse_kinematics import MOST_TRIES
from chasles.mechanisms.mechanism import Mechanism
from chasles.mechanisms.postures import PATIENT, RANKED, Bounds, prepared
from chasles.mechanisms.solutions import Solution
from chasles.model.spaces import size

HOST = ("near", "comfort", "wraps", "solutions", "threads")
"""Options of inverse kinematics that are supported only on the CPU."""


def on_gpu(targets: Mapping[str, Any], library: Library, options: Mapping[str, Any]) -> bool:
    """Return True if the problem can be solved on the GPU.

    The result is False if derivatives are recorded, or if an option is supported only on the CPU
    (`HOST`). PyTorch and JAX arrays are then copied to the host, and solutions are copied back.
    """
    pairs = [target for value in targets.values() for target in _targets(value)]
    arrays = [a for target in pairs for a in _arrays(target) if library_of(a) is not None]
    plain = (None, False, "first")
    special = [name for name in HOST if not any(options[name] is each for each in plain)]
    special += ["avoid"] * any(isinstance(target, Clearance) for target in pairs)
    if library.package == "cupy" and special:
        problem = f"`{'`, `'.join(special)}` cannot be used with CuPy arrays"
        raise ArgumentError(
            "E-GPU-033", problem, "omit these options, or use NumPy arrays", part=PART
        )
    if library.package != "cupy" and (special or not _has_cupy()):
        return False
    return bool(module("solving_cupy").resident(arrays))


def _has_cupy() -> bool:
    try:
        import cupy
    except ImportError:
        return False
    return bool(cupy.cuda.is_available())


def resident(
    mechanism: Mechanism,
    bounds: Bounds,
    targets: Mapping[str, Any],
    *,
    guess: Any,
    fixed: Any,
    seed: int,
    tries: int,
    **_host: Any,
) -> Solution:
    """Return a solution with arrays of the same library (such as CuPy) as the target arrays."""
    mechanism.refuse_time(PART, "evaluate it at a time: robot.at_time(t)")
    tries = checked_count(f"{PART}: tries", tries, most=MOST_TRIES)
    seed = checked_count(f"{PART}: seed", seed, least=0)
    pairs = [(frame, each) for frame, value in targets.items() for each in _targets(value)]
    every = [array for _, target in pairs for array in _arrays(target)]
    arrays = module("solving_cupy").Arrays([a for a in every if library_of(a) is not None])
    stated = [(frame, _with(_one(target), arrays.values)) for frame, target in pairs]
    task, _, (_, weights, tolerances) = task_of(mechanism, bounds, _grouped(stated))
    names = fixed_joints(mechanism, fixed)
    with arrays.working():
        goals = _joined(arrays, *(_numbers(arrays, target) for _, target in pairs))
        posture = None if guess is None else arrays.array(guess)
        lead, rows, begin = _broadcast(arrays.names, mechanism.nq, goals, posture, bounds)
        movable, held = _fixed(mechanism, bounds, names, guess)
        search = prepared(mechanism, task)
        starts = search.starts(bounds, seed, tries, held)
        stages = _stages(task, [weights, tolerances, movable], tries)
        found = search.resident(
            rows,
            begin,
            stages,
            starts.postures,
            RANKED,
            starts.table,
            starts.patience,
            (bounds.lower, bounds.upper),
            _narrowed(bounds, held),
            _rotations(task),
        )
        return _solution(arrays, lead, *found)


def _one(target: Target) -> Target:
    """Return the target of the first problem, with the batch axes of its arrays removed."""

    def last(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(last, value))
        if library_of(value) is None:
            return value
        shape = tuple(value.shape)
        kept = 2 if shape[-2:] in ((4, 4), (3, 3)) else 1
        return value[(0,) * (len(shape) - kept)] if 0 not in shape else np.eye(*shape[-kept:])

    names = [f.name for f in fields(target) if f.name not in ("to", "weight", "tolerance")]
    return replace(target, **{name: last(getattr(target, name)) for name in names})


def _broadcast(
    cupy: Any, nq: int, goals: Any, posture: Any, bounds: Bounds
) -> tuple[tuple[int, ...], Any, Any]:
    """Return the batch shape, the goals as rows, and the guesses clipped to the joint limits."""
    shapes = [goals.shape[:-1]]
    if posture is not None:
        if posture.shape[-1:] != (nq,):
            problem = f"`guess` must have shape (..., {nq}), not {posture.shape}"
            raise InputError("E-GPU-034", problem, part=PART)
        shapes.append(posture.shape[:-1])
    try:
        lead = np.broadcast_shapes(*shapes)
    except ValueError:
        problem = f"shapes of `targets` and `guess` do not broadcast: {shapes[0]}, {shapes[1]}"
        raise InputError("E-GPU-035", problem, part=PART) from None
    count, numbers = math.prod(lead), goals.shape[-1]
    rows = cupy.array(cupy.broadcast_to(goals, (*lead, numbers)), order="C")
    if posture is None:
        return lead, rows.reshape(count, numbers), None
    inside = cupy.clip(posture, *(cupy.asarray(a) for a in (bounds.lower, bounds.upper)))
    if inside.ndim > 1:
        inside = cupy.broadcast_to(inside, (*lead, nq)).reshape(count, nq)
    return lead, rows.reshape(count, numbers), cupy.ascontiguousarray(inside.reshape(-1, nq))


def _fixed(
    mechanism: Mechanism, bounds: Bounds, names: list[str], guess: Any
) -> tuple[np.ndarray, tuple[tuple[int, float], ...]]:
    """Return a mask (1, nv) of movable coordinates, and the positions of the fixed ones."""
    movable = np.ones((1, mechanism.nv))
    if not names:
        return movable, ()
    here = mechanism.neutral() if guess is None else guess
    here = checked_posture(
        mechanism, "guess", here.get() if hasattr(here, "get") else np.asarray(here)
    )
    assert here is not None
    if here.ndim > 1:
        problem = "on a GPU, `fixed` needs one guess that applies to all targets"
        raise InputError("E-GPU-036", problem, "pass one `guess` of shape (nq,)", part=PART)
    here, held = np.clip(here, bounds.lower, bounds.upper), []
    for name in names:
        movable[0, mechanism.velocity_slice(name)] = 0.0
        place = mechanism.position_slice(name)
        held += [(k, float(here[k])) for k in range(place.start, place.stop)]
    return movable, tuple(held)


def _narrowed(bounds: Bounds, held: tuple[tuple[int, float], ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return limits that keep fixed coordinates at their exact values, without float32 rounding."""
    lower, upper = bounds.lower.copy(), bounds.upper.copy()
    for place, value in held:
        lower[place] = upper[place] = value
    return lower, upper


def _stages(
    task: Task, constants: list[np.ndarray], tries: int
) -> tuple[tuple[list[np.ndarray], int], ...]:
    """Return two pairs (inputs, tries): for the coarse float32 search and the float64 search."""
    weights, tolerances, movable = constants
    rough = np.maximum(tolerances, np.where(task.lengths, ROUGH * size(task.model), ROUGH))
    return ([weights, rough, movable], min(tries, PATIENT)), (constants, tries)


def _rotations(task: Task) -> tuple[int, ...]:
    """Return the index, in the target parameters, of the first entry of each rotation matrix."""
    ends = np.cumsum([target.size for _, target in task.targets])
    pairs = zip(ends, task.targets, strict=True)
    return tuple(int(end) - t.size for end, (_, t) in pairs if t.size >= 9)


def _solution(
    arrays: Any, lead: tuple[int, ...], q: Any, ends: Any, steps: Any, solved: Any, sides: Any
) -> Solution:
    made = arrays.results()
    shaped = (
        q.reshape(*lead, q.shape[1]),
        solved.reshape(lead),
        ends[:, ANGLE : LENGTH + 1].copy().reshape(*lead, 2),
        steps.reshape(lead),
        sides.reshape(*lead, q.shape[1]),
        arrays.names.zeros(lead, bool),
    )
    return Solution(*map(made, shaped))
