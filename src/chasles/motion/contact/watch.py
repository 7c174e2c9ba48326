"""Detection of step sizes that are too large for soft contact.

If the step size is too large for the stiffness or damping of the ground, the contact force reverses
the velocity of a contact point in every step. The motion is then a numerical artifact. To
detect this artifact, the simulation counts the velocity reversals of each contact point, and stores
the counts in the additional state "watch". A motion is unstable once a count reaches the limit
`MANY`. The counts stay below the limit for contacts that last three steps or more, and for
oscillations with six steps or more per period. The counts also stay below the limit for motion
caused by actuators, because actuators cannot reverse the velocity of a contact point in every other
step.

All computations use operations that floats, arrays of floats and symbols support.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.errors import warn
from chasles.motion.geometry.closed_forms import Value, less, less_equal, maximum, select

Values = Sequence[Value] | np.ndarray

REVERSED = 0.4
"""Threshold for velocity reversals: the ratio of -v0 . v1 to the mean of v0^2 and v1^2, where v0
and v1 are the velocities of a point at the ends of a step. The ratio is 1 for a full reversal, and
less than 0.4 if one speed is more than 4.8 times the other."""

SLOW, FAST = 98.1, 981.0
"""Accelerations (m/s^2) that define the speed thresholds SLOW dt and FAST dt, for a step size dt.

Reversals at speeds below SLOW dt are ignored, because the velocities of points at rest also change
sign. A single reversal suffices for the reversal count to reach its limit `MANY` if the new speed
v1 satisfies v1^2 > 16 (v0^2 + (FAST dt)^2), where v0 is the previous speed.
"""

FADING, MANY = 0.9, 4.0
"""Decay factor of the reversal count per step in contact, and threshold of the count.

A motion is unstable once the count reaches `MANY`. Because of the decay, about the last ten steps
matter: a motion is unstable if the velocity reverses in more than 40 % of these steps.
"""

LATCHED = 1000.0
"""Value to which a reversal count is set when the count reaches MANY. From then on, the count
increases by one per step, so count - LATCHED is the number of steps since the motion became
unstable."""


def size(points: int) -> int:
    """Return the size of the state "watch": a velocity and a reversal count per contact point."""
    return 2 * points


def watched(
    watch: Values, velocities: Sequence[Values], normal: Sequence[Value], h: Value
) -> list[Value]:
    """Return the state "watch" after a step: one velocity and reversal count per contact point.

    Parameters
    ----------
    watch : Values
        The state before the step.
    velocities : Sequence[Values]
        Velocities of the points (m/s), three components each. The sum of the components, which
        changes sign if the velocity reverses, is stored.
    normal : Sequence[Value]
        Normal forces (N).
    h : Value
        Size of the next step (s).
    """
    slow, fast = (SLOW * h) ** 2, (FAST * h) ** 2
    seen: list[Value] = []
    for k, ((x, y, z), force) in enumerate(zip(velocities, normal, strict=True)):
        before, count = watch[2 * k], watch[2 * k + 1]
        now = x + y + z
        both, old, new = before * now, before * before, now * now
        mean = 0.5 * (old + new)
        reversal = less(both, -REVERSED * mean) * less(slow, mean)
        thrown = less(both, 0.0) * less(16.0 * (old + fast), new)
        fresh = count * select(less(0.0, old), FADING, 1.0) + reversal + MANY * thrown
        count = select(less_equal(MANY, fresh), maximum(count, LATCHED) + 1.0, fresh)
        seen += [select(less(0.0, force), now, 0.0), count]
    return seen


def first_unstable(watch: Any, steps: int) -> Any:
    """Return the first unstable step of each batch member, or -1 if there is none.

    `steps` is the number of steps that were taken.
    """
    most = watch[..., 1::2].max(-1, keepdims=True)
    if isinstance(most, np.ndarray) and not (most > LATCHED).any():
        return np.full(watch.shape[:-1], -1)
    age = (most - LATCHED).clip(0.0).astype(int)
    return ((steps - age) * (age > 0) - (age == 0)).reshape(watch.shape[:-1])


def told(function: str, run: Any) -> Any:
    """Issue a warning if a trajectory in NumPy arrays is unstable, and return the trajectory."""
    unstable = run.unstable
    if isinstance(unstable, np.ndarray) and unstable.max(initial=-1) >= 0:
        found = unstable[unstable >= 0]
        who = f" in {found.size} of {unstable.size} members" if unstable.ndim else ""
        warn(
            f"{function}: soft contact{who} becomes unstable at step {found.min()} "
            "(see Trajectory.unstable); reduce `dt` or the stiffness of the ground, or "
            "use an implicit integrator or rigid contact",
            RuntimeWarning,
        )
    return run
