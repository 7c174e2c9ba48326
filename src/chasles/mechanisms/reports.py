"""Errors and reports about closed configurations: loop residuals and mobility."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from chasles.errors import ArgumentError, InputError
from chasles.functions.doors import refuse
from chasles.model import Coupling, Loop, Model
from chasles.model.description import traits
from chasles.model.spaces import loop_size

_REMEDY = {"qd": ("1/s", "yd"), "qdd": ("1/s2", "yd, ydd")}


class LoopError(InputError):
    """Base class of errors about closed loops. Messages name the loops and joints."""


class ImpossiblePosition(LoopError):
    """Error for a failed search for a configuration that closes the loops."""


class SingularPosition(LoopError):
    """Error for independent coordinates that do not determine the others in a configuration."""


class OpenLoop(LoopError):
    """Error for a configuration in which the loops are not closed."""


class UnderActuated(LoopError):
    """Error for actuators that cannot move a mechanism in all its degrees of freedom."""


class OverDetermined(LoopError):
    """Error for known accelerations that violate the loop equations."""


class LockedMechanism(LoopError):
    """Error for loops that prevent all motion, or lock a chosen independent coordinate."""


@dataclass(frozen=True, eq=False)
class Mobility(int):
    """Number of degrees of freedom at a closed configuration: an integer that prints as a report.

    The mobility is the number of degrees of freedom of the tree minus the rank of the loop matrix.

    Attributes
    ----------
    mobility, freedoms
        Degrees of freedom of the mechanism and of the tree.
    rank, rows
        Rank and number of rows of the loop matrix.
    redundant
        Number of redundant rows (implied by earlier rows) of each loop and coupling.
    couplings
        Names of the couplings in `redundant`.
    tolerance
        Singular values below `tolerance` times the largest one count as zero.
    kept, dropped
        Smallest nonzero singular value, and largest singular value that counts as zero, both
        relative to the largest.
    weaker
        Joint types that allow the same motion with fewer rows, for loops with redundant rows.
    immobile
        Degrees of freedom that the loops lock at this configuration (all if the mobility is 0).
    misfits
        Loops and couplings with dropped equations that do not hold exactly, and the residual of
        these equations if all other equations hold (angles in rad, lengths relative to the loop
        size).
    positions
        Mobility at position level, which is larger with nonholonomic constraints.
    """

    mobility: int
    freedoms: int
    rank: int
    rows: int
    redundant: tuple[tuple[str, int], ...]
    tolerance: float
    kept: float
    dropped: float
    couplings: tuple[str, ...] = ()
    weaker: tuple[tuple[str, str], ...] = ()
    immobile: tuple[str, ...] = ()
    misfits: tuple[tuple[str, float], ...] = ()
    positions: int = -1

    def __new__(cls, mobility: int, *found: Any, **named: Any) -> Self:
        return super().__new__(cls, mobility)

    def __str__(self) -> str:
        extra = ", ".join(
            f"{count} of {'coupling' if name in self.couplings else 'loop'} {name!r}"
            for name, count in self.redundant
            if count
        )
        if not self.rows:
            return f"mobility {self.mobility}: {self.freedoms} degrees of freedom, no loops"
        parts = f"singular values of {self.kept:.2g} and above kept"
        if self.rank < min(self.rows, self.freedoms):
            parts += f", those of {max(self.dropped, 1e-12):.0e} and below dropped"
        more = f" ({self.positions} at position level)" if self.positions > self.mobility else ""
        return (
            f"mobility {self.mobility}{more}: {self.freedoms} degrees of freedom, "
            f"rank {self.rank} of {self.rows} equations "
            f"({f'redundant: {extra}' if extra else 'none redundant'}; {parts}, rank tolerance "
            f"{self.tolerance:.0e}){self._held()}{self._offer()}{self._off()}"
        )

    def _held(self) -> str:
        """Describe the degrees of freedom that the loops lock, unless the mobility is 0."""
        names = ", ".join(map(repr, self.immobile)) if self.mobility else ""
        return f"; {names} cannot move" if names else ""

    def _off(self) -> str:
        """List loops whose redundant equations hold only within the precision of the file."""
        words = [f"{name!r} up to {misfit:.2g}" for name, misfit in self.misfits]
        return f"; redundant within the precision of the file: {', '.join(words)}" if words else ""

    def _offer(self) -> str:
        """List loop joints that another joint type can replace without changing the motion."""
        words = [
            f"{name!r} {'left out' if traits(kind).floating else f'as {kind}'}"
            for name, kind in self.weaker
        ]
        return f"; equivalent with fewer equations: {', '.join(words)}" if words else ""


# Closure errors of positions and rates ---------------------------------------------------------


def finite(function: str, name: str, value: Any, size: int, what: str = "") -> np.ndarray:
    """Return an array (..., size) of finite values; `what` describes its entries in messages."""
    refuse(function, value)
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        problem = f"{name} is not a numeric array: {error}"
        raise ArgumentError("E-LOOP-006", problem, part=function) from None
    if array.ndim == 0 or array.shape[-1] != size:
        problem = f"{name} must have shape (..., {size}){what}, not {array.shape}"
        raise InputError("E-LOOP-007", problem, part=function)
    if not np.all(np.isfinite(array)):
        raise InputError("E-LOOP-008", f"{name} must be finite", part=function)
    return array


def check_position(
    function: str,
    model: Model,
    q: np.ndarray,
    residual: np.ndarray,
    far: np.ndarray,
    tolerance: float,
) -> None:
    """Raise an error if the loops are not closed at q (..., nq).

    `far` has shape (...) and contains the closure error of each state. `residual` has shape
    (..., rows) and contains the dimensionless residuals of the loop equations.
    """
    lead = residual.shape[:-1]
    residual = residual.reshape(math.prod(lead), residual.shape[-1])
    far = far.reshape(len(residual))
    lost = np.flatnonzero(~np.isfinite(far))
    if len(lost) and not np.all(np.isfinite(q)):
        raise InputError("E-LOOP-019", "q must be finite", part=function)
    if len(lost):
        worst_one, where = farthest(model, residual[lost[0]])[0], at_index(lost[0], lead)
        problem = f"{named(worst_one)}: the residual is not finite at this q{where}"
        remedy = "choose a configuration where the residual is finite"
        raise ImpossiblePosition("E-LOOP-020", problem, remedy, part=function)
    if np.any(far > tolerance):
        worst = int(np.argmax(far))
        problem = (
            f"the loops are open at this q{at_index(worst, lead)}: "
            f"{how_open(model, residual[worst])} (tolerance {tolerance:g})"
        )
        raise OpenLoop("E-LOOP-021", problem, "close the loops with robot.assemble", part=function)


def check_rates(
    function: str, name: str, model: Model, error: np.ndarray, scale: np.ndarray, tolerance: float
) -> None:
    """Raise an error if velocities or accelerations violate the loop equations.

    `error` (..., rows) contains the dimensionless residuals of these equations. The residual norm
    must not exceed the tolerance times `scale`.
    """
    share = np.linalg.norm(error, axis=-1) / scale
    if not np.all(np.isfinite(share)):
        raise InputError("E-LOOP-022", f"{name} must be finite", part=function)
    if np.any(share > tolerance):
        worst = int(np.argmax(share))
        constraint, far = farthest(model, error.reshape(-1, error.shape[-1])[worst])
        unit, given = _REMEDY[name]
        problem = (
            f"{name} does not keep the loops closed{at_index(worst, share.shape)}: "
            f"{named(constraint)} opens at {far:.3g} {unit} (angles in rad, lengths "
            "relative to the loop size)"
        )
        remedy = f"compute {name} with robot.complete(q, {given})"
        raise OpenLoop("E-LOOP-023", problem, remedy, part=function)


def how_open(model: Model, residual: np.ndarray) -> str:
    """Return a sentence about the loop or coupling with the largest residual."""
    worst, far = farthest(model, residual)
    if not math.isfinite(far):
        return f"{named(worst)} is undefined"
    if isinstance(worst, Coupling):
        return f"{named(worst)} has an error of {far:.3g} (rad or m of a coordinate)"
    return (
        f"{named(worst)} remains open by {far:.3g} (rad, and relative to its size "
        f"of {loop_size(model, worst):.3g} m)"
    )


def misfit_note(model: Model, name: str, misfit: float) -> str:
    """Return a note that redundant equations of a loop or coupling were dropped."""
    constraint = next(each for each in model.constraints if each.name == name)
    return (
        f"{named(constraint)}: dropped redundant equations, which the others "
        f"imply within {misfit:.2g} (rad, and relative to its size); "
        "loop_tolerance= sets the limit"
    )


def named(constraint: Loop | Coupling) -> str:
    """Return the name of a loop or coupling for a message."""
    what = "coupling" if isinstance(constraint, Coupling) else "loop"
    return f"{what} {constraint.name!r}"


def at_index(flat: int | np.integer, lead: tuple[int, ...]) -> str:
    """Return the index of a state in a batch as text, for a message."""
    return f" at index {tuple(map(int, np.unravel_index(flat, lead)))}" if lead else ""


def farthest(model: Model, residual: np.ndarray) -> tuple[Loop | Coupling, float]:
    """Return the loop or coupling with the largest residual, and this residual.

    NaN counts as the largest value.
    """
    counts = [constraint.rows for constraint in model.constraints]
    parts = np.split(residual, np.cumsum(counts)[:-1])
    sizes = [float(np.linalg.norm(part)) for part in parts]
    k = int(np.argmax(sizes))
    return model.constraints[k], sizes[k]
