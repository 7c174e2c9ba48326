"""Restitution in a time step: impacts within the step, their times and rebound velocities.

The impacts in a step are simultaneous, unless the law of a contact sets `sequence`. Impacts of
contacts with `sequence` occur one after another, so that an impulse passes through bodies in
contact, as in Newton's cradle. The normal velocities after the last impact are lower bounds for the
normal velocities at the end of the step. The step then computes the impulses that cause these
velocities, together with friction.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.expr import Number
from chasles.motion.geometry.closed_forms import cross, less, maximum, minimum, select, sqrt
from chasles.motion.steps.algebra import dot, solved, zeros
from chasles.motion.steps.impulses import IMPACT, SLOW
from chasles.motion.steps.touching import Touch

ROUNDS = 16
"""Number of passes over all contacts when their impacts are computed one after another."""


class Bounces(NamedTuple):
    """Contact slots (potential contact points) with restitution.

    Attributes
    ----------
    touches : list[Touch]
        Contact slots. Their lower bounds on the normal velocity include the rebound velocity.
    early : Number
        Time (s) from the start of the step to the first impact, or 0 if there is no impact.
    """

    touches: list[Touch]
    early: Number


class Free(NamedTuple):
    """Motion of the robot in a step without contact forces.

    Attributes
    ----------
    v, ahead : np.ndarray
        Velocities before and after the step.
    H : np.ndarray
        Matrix that maps changes of velocity to impulses in the step.
    order : Sequence[int]
        Order in which coordinates are eliminated in linear systems with H.
    dt : float
        Step size (s).
    """

    v: np.ndarray
    ahead: np.ndarray
    H: np.ndarray
    order: Sequence[int]
    dt: float


class Strike(NamedTuple):
    """Contact slot with a possible impact, and its normal motion in a step without contact forces.

    Attributes
    ----------
    e : float
        Coefficient of restitution.
    row : np.ndarray
        Jacobian of the normal velocity.
    after : Number
        Normal velocity at the end of the step.
    a : Number
        Normal acceleration.
    when : Number
        Time (s) from the start of the step to the impact.
    hit : Number
        Approach speed at the impact (m/s).
    """

    e: float
    row: np.ndarray
    gap: Number
    after: Number
    a: Number
    when: Number
    hit: Number


def bouncing(
    free: Free,
    carriers: Sequence[np.ndarray],
    touches: Sequence[Touch],
    gaps: Sequence[Number],
    gravity: Number,
) -> Bounces:
    """Return the contacts, with restitution in their velocity bounds, and the first impact time.

    The velocities `free.v` and `free.ahead` are treated as velocities at the middle of the previous
    and of the current step. With this convention, positions in free fall are exact.
    """
    dt, fall = free.dt, IMPACT * gravity * free.dt
    early: Number = dt
    any_hit: Number = 0.0
    strikes: dict[int, Strike] = {}
    for k, (touch, gap) in enumerate(zip(touches, gaps, strict=True)):
        if touch.law.restitution:
            strikes[k] = slot = _strike(free, carriers, touch, gap)
            struck = _struck(slot, 0.0, dt, fall)
            early = select(struck, minimum(early, slot.when), early)
            any_hit = maximum(any_hit, struck)
    in_turn = {k for k in strikes if touches[k].law.sequence}
    changes = _in_sequence(free, {k: strikes[k] for k in in_turn}, fall)
    found = list(touches)
    for k, slot in strikes.items():
        struck, leave = _struck(slot, 0.0, dt, fall), slot.e * slot.hit
        if k in in_turn:
            struck, change = changes[k]
            leave = change - slot.hit
        leave = leave + slot.a * (0.5 * dt - slot.when)
        bound = select(struck, maximum(leave, touches[k].bound), touches[k].bound)
        found[k] = touches[k]._replace(bound=bound)
    return Bounces(found, select(any_hit, early, 0.0))


def _strike(free: Free, carriers: Sequence[np.ndarray], touch: Touch, gap: Number) -> Strike:
    """Return the normal motion of a contact slot in a step without contact forces."""
    row = _normal_row(carriers[touch.carrier], touch)
    before, after = dot(row, free.v), dot(row, free.ahead)
    u, a = 0.5 * (before + after), (after - before) / free.dt
    root = sqrt(maximum(u * u - 2.0 * a * gap, 0.0))
    when = 2.0 * maximum(gap, 0.0) / maximum(root - u, 1e-12)
    return Strike(touch.law.restitution, row, gap, after, a, when, -(u + a * when))


def _struck(slot: Strike, change: Number, dt: float, fall: Number) -> Number:
    """Return 1 if a contact has an impact when its normal velocity changes by `change`, else 0."""
    return less(slot.gap + dt * (slot.after + change), 0.0) * less(fall, slot.hit - change)


def _in_sequence(
    free: Free, strikes: dict[int, Strike], fall: Number
) -> dict[int, tuple[Number, Number]]:
    """Return an impact flag (1 or 0) and the change in normal velocity for each contact.

    Each impact reverses the normal velocity of one contact and scales it by the coefficient of
    restitution, as if no other contact existed. Each round visits the contacts in the reverse order
    of the round before.
    """
    turns: dict[int, np.ndarray] = {
        k: solved(free.H, slot.row, free.order, None) for k, slot in strikes.items()
    }
    v: Any = zeros(len(free.v))
    struck: dict[int, Number] = dict.fromkeys(strikes, 0.0)
    order = list(strikes)
    for _ in range(ROUNDS if len(order) > 1 else 1):
        for k in order:
            slot, change = strikes[k], dot(strikes[k].row, v)
            now = _struck(slot, change, free.dt, fall)
            size = (1.0 + slot.e) * (slot.hit - change) / maximum(dot(slot.row, turns[k]), SLOW)
            v = v + now * size * turns[k]
            struck[k] = maximum(struck[k], now)
        order.reverse()
    return {k: (struck[k], dot(slot.row, v)) for k, slot in strikes.items()}


def _normal_row(J: np.ndarray, touch: Touch) -> np.ndarray:
    """Return the Jacobian (nv,) of the normal velocity at a potential contact point."""
    if touch.direct:
        return J[2]
    n = touch.axes[2]
    wrench = np.concatenate([cross(touch.point, n), n])
    return np.array([dot(wrench, J[:, k]) for k in range(J.shape[1])], dtype=object)
