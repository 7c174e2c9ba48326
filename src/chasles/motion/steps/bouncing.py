"""Restitution in a time step: impacts within the step, their times and rebound velocities."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from chasles.expr import Number
from chasles.motion.geometry.closed_forms import cross, less, maximum, minimum, select, sqrt
from chasles.motion.steps.algebra import dot
from chasles.motion.steps.impulses import IMPACT
from chasles.motion.steps.touching import Touch


class Bounces(NamedTuple):
    """Slots with restitution bounds, and the time (s) of the first impact in the step."""

    touches: list[Touch]
    early: Number


def bouncing(
    v: np.ndarray,
    ahead: np.ndarray,
    carriers: Sequence[np.ndarray],
    touches: Sequence[Touch],
    gaps: Sequence[Number],
    dt: float,
    gravity: float,
) -> Bounces:
    """Return slots with bounds that include restitution, and the time of the first impact.

    v, ahead: velocities before and after a step without contact. Stored velocities are those in the
    middle of the previous step, so that a free-fall parabola is exact.
    """
    found = []
    early: Number = dt
    any_hit: Number = 0.0
    fall = IMPACT * gravity * dt
    for touch, gap in zip(touches, gaps, strict=True):
        e = touch.law.restitution
        if not e:
            found.append(touch)
            continue
        row = _normal_row(carriers[touch.carrier], touch)
        before, after = dot(row, v), dot(row, ahead)
        u, a = 0.5 * (before + after), (after - before) / dt
        root = sqrt(maximum(u * u - 2.0 * a * gap, 0.0))
        when = 2.0 * maximum(gap, 0.0) / maximum(root - u, 1e-12)
        hit = -(u + a * when)
        strikes = less(gap + dt * after, 0.0) * less(fall, hit)
        leave = e * hit + a * (0.5 * dt - when)
        early = select(strikes, minimum(early, when), early)
        any_hit = maximum(any_hit, strikes)
        bound = select(strikes, maximum(leave, touch.bound), touch.bound)
        found.append(touch._replace(bound=bound))
    return Bounces(found, select(any_hit, early, 0.0))


def _normal_row(J: np.ndarray, touch: Touch) -> np.ndarray:
    """Return the Jacobian (nv,) of the velocity along the normal of a slot."""
    if touch.direct:
        return J[2]
    n = touch.axes[2]
    wrench = np.concatenate([cross(touch.point, n), n])
    return np.array([dot(wrench, J[:, k]) for k in range(J.shape[1])], dtype=object)
