"""Check the targets, configurations and option `fixed` of inverse kinematics."""

from collections.abc import Callable
from typing import Any

import numpy as np

from chasles.errors import ArgumentError, ChaslesError, InputError
from chasles.functions.doors import leading_shape, numbers
from chasles.functions.programs import checked_frame
from chasles.functions.reaching import Task
from chasles.functions.targets import CENTER, CenterOfMass, Relative, Target, stated
from chasles.mechanisms.mechanism import Mechanism
from chasles.mechanisms.postures import Bounds
from chasles.model.given import a_mapping, some_names

PART = "inverse_kinematics"

OPTIONS = ("weight", "tolerance")
"""Fields of an inverse-kinematics target that may have one value per error component."""


def task_of(
    mechanism: Mechanism, bounds: Bounds, targets: Any
) -> tuple[Task, tuple[int, ...], list[np.ndarray]]:
    """Return the task, the batch shape of the targets, and [goals, weights, tolerances]."""
    pairs: list[tuple[str, Target]] = []
    for frame, value in a_mapping("targets", targets, PART).items():
        for target in stated(value):
            if isinstance(target, CenterOfMass) != (frame == CENTER):
                problem = f"CenterOfMass and the key {CENTER!r} must be used together"
                raise ArgumentError("E-CALL-370", problem, part=PART)
            if frame != CENTER:
                checked_frame(mechanism.model, PART, frame, several=False)
            if isinstance(target, Relative):
                checked_frame(mechanism.model, PART, target.to, several=False)
            pairs.append((frame, target))
    if not pairs:
        problem = "no targets were given"
        raise InputError("E-CALL-372", problem, "pass {frame: pose}", part=PART)
    closing = mechanism.loops.rows * mechanism.model.holonomic_rows if mechanism.rows else ()
    scales = tuple(map(float, closing))
    task = Task(mechanism.model, tuple(pairs), bounds.lower, bounds.upper, scales)
    goals = [goal_of(frame, target) for frame, target in pairs]
    frames = (frame for frame, _ in pairs)
    named = {f"target {k} of {frame!r}": goals[k - 1] for k, frame in enumerate(frames, 1)}
    lead = leading_shape(PART, **named)
    whole = np.concatenate([np.broadcast_to(a, (*lead, a.shape[-1])) for a in goals], axis=-1)
    rows = [[_named(*pair, pair[1].each, name) for pair in pairs] for name in OPTIONS]
    weights, tolerances = (np.concatenate(each)[None] for each in rows)
    if not weights.any():
        problem = "all weights of the targets are 0, so there is nothing to reach"
        raise InputError("E-CALL-388", problem, "pass a target with a positive weight", part=PART)
    weights = weights / weights.max()  # only the ratios of weights matter
    return task, lead, [whole, weights, tolerances]


def goal_of(frame: str, target: Target) -> np.ndarray:
    """Return the parameters of a target. Error messages include the name of the frame."""
    return _named(frame, target, target.numbers)


def _named(frame: str, target: Target, function: Callable[..., np.ndarray], *given: str) -> Any:
    try:
        return function(*given)
    except ChaslesError as error:
        kind = type(target).__name__
        raise error.at(part=f"{PART}: {kind} target of frame {frame!r}") from None


def checked_posture(mechanism: Mechanism, name: str, given: Any) -> np.ndarray | None:
    if given is None:
        return None
    posture = numbers(f"{PART}: {name}", given, mechanism.nq).astype(float)
    if not np.isfinite(posture).all():
        raise InputError("E-CALL-374", f"{name} must be finite", part=PART)
    return posture


def fixed_joints(mechanism: Mechanism, fixed: Any) -> list[str]:
    names = some_names("fixed", [fixed] if isinstance(fixed, str) else fixed, PART)
    for name in names:
        mechanism.position_slice(name)  # raises an error for an unknown joint
    return names


def check_together(ease: Any, near: Any, solutions: str, wraps: bool) -> None:
    """Raise an error for options that cannot be combined."""
    one = solutions == "first"
    if (ease is not None and not (near is None and one)) or (near is not None and not one):
        problem = "`comfort` and `near` require solutions='first' and cannot be combined"
        remedy = "pass only one of them, without `solutions`"
    elif wraps and one:
        problem, remedy = "`wraps` requires solutions='all'", "omit `wraps`, or use solutions='all'"
    else:
        return
    raise InputError("E-CALL-378", problem, remedy, part=PART)
