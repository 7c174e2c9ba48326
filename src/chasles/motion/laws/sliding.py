"""Normal forces if every contact slides: a complementarity problem that may have no solution.

    w = M z + d,   low <= z <= high
    w >= 0 where z = low,   w <= 0 where z = high,   w = 0 where z is between them

Friction of sliding contacts is proportional to their normal forces, so M is not symmetric (Painleve
1895). A contact has low = 0 and no upper bound; a joint at rest has its dry friction as both
bounds.
"""

import math
from itertools import product
from typing import Any

import numpy as np

from chasles.errors import InputError
from chasles.motion.solvers import boxed

REACH = 1e-13
"""Values below this fraction of the largest entry of M count as rounding errors."""

SINGULAR = 1e-9
"""Determinants of scaled matrices below this size count as rounding errors."""

ACCURATE, EXACT = 1e-9, 1e-12
"""Errors of w, relative to the largest |d|, up to which a solution is accepted, or is exact."""

STABLE = 1e-6
"""Tolerance for negative eigenvalues, relative to the largest entry of M. Double zero eigenvalues
are accurate only to the square root of the rounding error."""

MANY = 4096
"""Maximum number of cases to enumerate if a solution may not be unique: 12 contacts."""


class NoUniqueMotion(InputError):
    """Coulomb's law for rigid bodies has no unique solution in this state (Painleve 1895)."""


class Inconsistent(NoUniqueMotion):
    """No finite force satisfies Coulomb's law: an impact without collision must occur."""


class Indeterminate(NoUniqueMotion):
    """Several motions satisfy Coulomb's law; `solutions` are their normal forces."""

    def __init__(self, *text: str, solutions: np.ndarray, **place: Any) -> None:
        super().__init__(*text, **place)
        self.solutions = solutions


def normal_forces(
    M: np.ndarray,
    d: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    effect: np.ndarray,
    rubs: bool,
) -> np.ndarray:
    """Return the normal forces z (n,); effect (m, n) maps z to accelerations of all points.

    rubs: False if no contact has friction, so that M is symmetric.
    """
    cases = math.prod(2 + int(np.isfinite(x)) for x in high)
    certain = np.linalg.eigvalsh(M + M.T)[0] > 1e-9 * np.max(np.abs(M))
    if not rubs or cases > MANY or certain:
        return boxed(M, d, low, high)
    return _only(M, d, low, high, effect)


def _only(
    M: np.ndarray, d: np.ndarray, low: np.ndarray, high: np.ndarray, effect: np.ndarray
) -> np.ndarray:
    """Return the normal forces, by enumerating all cases.

    The smallest solution is returned if all solutions are `_alike`, or if no normal forces drive
    their own points together; in the latter case, slight compliance would select one of them.
    Otherwise, exact solutions are preferred. If these are different motions, the one that maintains
    all contacts is chosen if it is stable: a body that lies flat stays flat.
    """
    scale = np.max(np.abs(d), initial=0.0) or 1.0
    forces, left, exact = _answers(M, d, low, high, scale)
    if not len(forces):
        problem = "no finite forces satisfy Coulomb's law here (Painleve's paradox, inconsistent)"
        remedy = "apply an impact: friction drives a contact into the ground"
        raise Inconsistent("E-CONTACT-020", problem, remedy, part="coulomb")
    if _alike(forces, left, effect, scale) or not _contradicts(M):
        return _smallest(forces)
    if exact.any() and _alike(forces[exact], left[exact], effect, scale):
        return _smallest(forces[exact])
    stays = exact & np.all(np.abs(left) <= ACCURATE * scale, axis=-1)
    if stays.any() and _stable(M):
        return _smallest(forces[stays])
    what = "Painleve's paradox, indeterminate"
    problem = f"{len(forces)} sets of forces satisfy Coulomb's law here ({what})"
    remedy = "rigid-body theory does not determine which one occurs"
    raise Indeterminate("E-CONTACT-021", problem, remedy, solutions=forces, part="coulomb")


def _answers(
    M: np.ndarray, d: np.ndarray, low: np.ndarray, high: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all solutions z (k, n), their w (k, n), and a mask of the exact ones."""
    found, apart, exact = [], [], []
    for case in product(*((-1, 0, 1) if np.isfinite(x) else (-1, 0) for x in high)):
        side = np.array(case)
        z, on = np.where(side < 0, low, np.where(side > 0, high, 0.0)), side == 0
        right = -(d + M @ z)[on]
        z[on] = np.linalg.lstsq(M[np.ix_(on, on)], right, rcond=1e-11)[0]
        w = M @ z + d
        room = np.min(np.where(on, -np.abs(w), -side * w), initial=0.0)
        if np.all((low <= z) & (z <= high)) and room >= -ACCURATE * scale:
            found.append(z)
            apart.append(w)
            exact.append(room >= -EXACT * scale)
    n = len(d)
    return np.reshape(found, (-1, n)), np.reshape(apart, (-1, n)), np.array(exact, dtype=bool)


def _alike(forces: np.ndarray, left: np.ndarray, effect: np.ndarray, scale: float) -> bool:
    """Return True if all solutions have the same accelerations, or share one load.

    In the latter case, each solution is complementary to the accelerations of the others.
    """
    motions = forces @ effect.T
    work = forces @ left.T - np.sum(forces * left, axis=-1)
    same = np.max(np.abs(motions - motions[0])) <= 1e-6 * scale
    return bool(same or np.all(work <= 1e-6 * scale * np.max(np.abs(forces))))


def _smallest(forces: np.ndarray) -> np.ndarray:
    found: np.ndarray = forces[np.argmin(np.linalg.norm(forces, axis=-1))]
    return found


def _stable(M: np.ndarray) -> bool:
    """Return True if contacts persist on slightly compliant surfaces with forces -k x.

    Penetrations follow x'' = -k M x, so they grow if an eigenvalue of M is negative.
    """
    return bool(np.min(np.linalg.eigvals(M).real) >= -STABLE * np.max(np.abs(M)))


def _contradicts(M: np.ndarray) -> bool:
    """Return True if some normal forces drive their own points together.

    This is the case if a principal minor of M is negative beyond rounding errors (Cottle, Pang and
    Stone 1992, section 3.4: P0 matrices).
    """
    unit = np.sqrt(np.maximum(np.abs(np.diagonal(M)), REACH * np.max(np.abs(M))))
    scaled = M / np.outer(unit, unit)
    some = (np.flatnonzero(case) for case in product((False, True), repeat=len(M)))
    return any(np.linalg.det(scaled[np.ix_(on, on)]) < -SINGULAR for on in some)
