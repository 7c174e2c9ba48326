"""How far positions, rates and accelerations are from keeping loops closed: refused by name."""

import math

import numpy as np

from chasles.errors import InputError
from chasles.mechanisms.reports import ImpossiblePosition, OpenLoop
from chasles.mechanisms.scales import size
from chasles.model import Coupling, Loop, Model

_REMEDY = {"qd": ("1/s", "yd"), "qdd": ("1/s2", "yd, ydd")}


def check_position(
    function: str, model: Model, q: np.ndarray, residual: np.ndarray, tolerance: float
) -> None:
    """Refuse q (..., nq) whose residual (..., rows), dimensionless, is above the tolerance."""
    lead = residual.shape[:-1]
    residual = residual.reshape(math.prod(lead), residual.shape[-1])
    far = np.linalg.norm(residual, axis=-1)
    lost = np.flatnonzero(~np.isfinite(far))
    if len(lost) and not np.all(np.isfinite(q)):
        raise InputError("E-LOOP-019", "q must be finite numbers", part=function)
    if len(lost):
        problem = (
            f"{named(farthest(model, residual[lost[0]])[0])} has no value at this "
            f"q{at_index(lost[0], lead)}"
        )
        raise ImpossiblePosition("E-LOOP-020", problem, "stay where it is defined", part=function)
    if np.any(far > tolerance):
        worst = int(np.argmax(far))
        problem = (
            f"the loops are open at this q{at_index(worst, lead)}: "
            f"{how_open(model, residual[worst])} (tolerance {tolerance:g})"
        )
        raise OpenLoop("E-LOOP-021", problem, "close them with assemble", part=function)


def check_rates(
    function: str, name: str, model: Model, error: np.ndarray, scale: np.ndarray, tolerance: float
) -> None:
    """Refuse rates whose error (..., rows), dimensionless, is above the tolerance times a scale."""
    share = np.linalg.norm(error, axis=-1) / scale
    if not np.all(np.isfinite(share)):
        raise InputError("E-LOOP-022", f"{name} must be finite numbers", part=function)
    if np.any(share > tolerance):
        worst = int(np.argmax(share))
        constraint, far = farthest(model, error.reshape(-1, error.shape[-1])[worst])
        unit, given = _REMEDY[name]
        problem = (
            f"{name} opens the loops{at_index(worst, share.shape)}: {named(constraint)} by "
            f"{far:.3g} {unit} (rad, and parts of a loop's size)"
        )
        remedy = f"give what robot.complete(q, {given}) gives"
        raise OpenLoop("E-LOOP-023", problem, remedy, part=function)


def how_open(model: Model, residual: np.ndarray) -> str:
    """The loop or coupling that is farthest from closed, and how far."""
    worst, far = farthest(model, residual)
    if not math.isfinite(far):
        return f"{named(worst)} has no value"
    if isinstance(worst, Coupling):
        return f"{named(worst)} is off by {far:.3g} (rad or m of a coordinate)"
    return (
        f"{named(worst)} stays open by {far:.3g} "
        f"(rad, and parts of its size {size(model, worst):.3g} m)"
    )


def named(constraint: Loop | Coupling) -> str:
    """A loop or a coupling in a message."""
    what = "coupling" if isinstance(constraint, Coupling) else "loop"
    return f"{what} {constraint.name!r}"


def at_index(flat: int | np.integer, lead: tuple[int, ...]) -> str:
    """Which state of a batch."""
    return f" at index {tuple(map(int, np.unravel_index(flat, lead)))}" if lead else ""


def farthest(model: Model, residual: np.ndarray) -> tuple[Loop | Coupling, float]:
    """The loop or coupling with the largest part of a residual, and that; NaN is largest."""
    counts = [constraint.rows for constraint in model.constraints]
    parts = np.split(residual, np.cumsum(counts)[:-1])
    sizes = [float(np.linalg.norm(part)) for part in parts]
    k = int(np.argmax(sizes))
    return model.constraints[k], sizes[k]
