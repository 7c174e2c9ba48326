"""Normal forces where every contact slides: a complementarity problem that may have no answer.

    w = M z + d,   low <= z <= high
    w >= 0 where z = low,   w <= 0 where z = high,   w = 0 where z is between them

Friction of sliding contacts follows their normal forces, so M is not symmetric (Painleve 1895). A
contact has low = 0 and no high; a joint at rest has its dry friction as both bounds.
"""

import math
from itertools import product
from typing import Any

import numpy as np

from chasles.errors import InputError
from chasles.motion.solvers import boxed

REACH = 1e-13
"""The part of the largest entry of M that is nothing but rounding."""

SINGULAR = 1e-9
"""Determinants of unit size that are nothing but rounding."""

STABLE = 1e-6
"""The part of the largest entry of M by which an eigenvalue may be negative: double zeros are
accurate to the root of rounding."""

MANY = 4096
"""Cases up to which all are looked at where a solution need not be unique: 12 contacts."""


class NoUniqueMotion(InputError):
    """Coulomb's law and rigid bodies have no unique answer here (Painleve 1895)."""


class Inconsistent(NoUniqueMotion):
    """No finite force satisfies Coulomb's law: an impact without collision is due."""


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
    """The normal forces z (n,); effect (m, n): accelerations of all points by them.

    rubs: False where nothing has friction, so that M is symmetric.
    """
    cases = math.prod(2 + int(np.isfinite(x)) for x in high)
    certain = np.linalg.eigvalsh(M + M.T)[0] > 1e-9 * np.max(np.abs(M))
    if not rubs or cases > MANY or certain:
        return boxed(M, d, low, high)
    return _only(M, d, low, high, effect)


def _only(
    M: np.ndarray, d: np.ndarray, low: np.ndarray, high: np.ndarray, effect: np.ndarray
) -> np.ndarray:
    """The normal forces, by looking at all cases.

    Answers that are complementary to each other's accelerations share one load: the smallest is
    taken. Others are different motions, unless they accelerate all points alike, or no force drives
    its own points together: then a little compliance would leave one of them. Of different motions
    that in which all points stay is taken, if it is stable: a body that lies flat remains so.
    """
    scale = np.max(np.abs(d), initial=0.0) or 1.0
    found, apart = [], []
    for case in product(*((-1, 0, 1) if np.isfinite(x) else (-1, 0) for x in high)):
        side = np.array(case)
        z, on = np.where(side < 0, low, np.where(side > 0, high, 0.0)), side == 0
        right = -(d + M @ z)[on]
        z[on] = np.linalg.lstsq(M[np.ix_(on, on)], right, rcond=1e-11)[0]
        w, within = M @ z + d, np.all((low <= z) & (z <= high))
        if within and np.all(np.where(on, -np.abs(w), -side * w) >= -1e-9 * scale):
            found.append(z)
            apart.append(w)
    if not found:
        problem = "no finite forces satisfy Coulomb's law here (Painleve's paradox, inconsistent)"
        remedy = "friction drives a contact into the ground: an impact is due"
        raise Inconsistent("E-CONTACT-020", problem, remedy, part="coulomb")
    forces, left = np.array(found), np.array(apart)
    motions = forces @ effect.T
    alike = np.max(np.abs(motions - motions[0])) <= 1e-6 * scale
    work = forces @ left.T - np.sum(forces * left, axis=-1)
    shared = np.all(work <= 1e-6 * scale * np.max(np.abs(forces)))
    if not (alike or shared) and _contradicts(M):
        stays = np.all(np.abs(left) <= 1e-9 * scale, axis=-1)
        if stays.any() and _stable(M):
            return _smallest(forces[stays])
        what = "Painleve's paradox, indeterminate"
        problem = f"{len(found)} sets of forces satisfy Coulomb's law here ({what})"
        remedy = "rigid bodies do not say which"
        raise Indeterminate("E-CONTACT-021", problem, remedy, solutions=forces, part="coulomb")
    return _smallest(forces)


def _smallest(forces: np.ndarray) -> np.ndarray:
    found: np.ndarray = forces[np.argmin(np.linalg.norm(forces, axis=-1))]
    return found


def _stable(M: np.ndarray) -> bool:
    """Return True if points that touch stay so on surfaces that yield a little, with forces -k x:
    penetrations follow x'' = -k M x, which grow where an eigenvalue of M is negative."""
    return bool(np.min(np.linalg.eigvals(M).real) >= -STABLE * np.max(np.abs(M)))


def _contradicts(M: np.ndarray) -> bool:
    """Return True if some normal forces drive their own points together: a principal minor of M is
    negative, and more than rounding (Cottle, Pang and Stone 1992, section 3.4: P0 matrices)."""
    unit = np.sqrt(np.maximum(np.abs(np.diagonal(M)), REACH * np.max(np.abs(M))))
    scaled = M / np.outer(unit, unit)
    some = (np.flatnonzero(case) for case in product((False, True), repeat=len(M)))
    return any(np.linalg.det(scaled[np.ix_(on, on)]) < -SINGULAR for on in some)
