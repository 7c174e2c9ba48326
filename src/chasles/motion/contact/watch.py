"""Detection of step sizes that are too large for soft contact.

If steps are too long for the stiffness or the damping of the ground, the force of one step throws a
touching point back at full speed, and the force of the next step throws it back again: the motion
is an artifact of the steps. Therefore a watch counts, for each point, how often its velocity
reverses between the ends of a step in which it touches. A contact that lasts three steps or more,
and an oscillation with six steps or more per period, stay below the limit. Motors do not matter:
they cannot reverse the velocity of a foot in every other step.

All computations use operations that floats, arrays of floats and symbols support.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.motion.geometry.closed_forms import Value, less, less_equal, maximum, select

Values = Sequence[Value] | np.ndarray

REVERSED = 0.4
"""Threshold of reversal: the velocities v0 and v1 at the ends of a step count as reversed if
-v0 . v1 exceeds this fraction of the mean of their squares. The fraction is 1 for a full reversal,
and less than 0.4 if one speed is more than 4.8 times the other.
"""

SLOW, FAST = 98.1, 981.0
"""Accelerations (m/s^2). Reversals of a point slower than SLOW dt are rattling at rest and do
not count. A point thrown back four times as fast as it came, and faster than FAST dt, counts as
MANY reversals.
"""

FADING, MANY = 0.9, 4.0
"""Decay of the reversal count per step, and its limit. A reversal counts for about ten steps in
which its point touches, so MANY reversals are more than 40 % of these steps.
"""

LEVEL = 3
"""Number of stack levels from here to the caller of `robot.simulate` or `robot.rollout`."""


LATCHED = 1000.0
"""Offset of latched counts: count - LATCHED is the number of steps since it reached MANY."""


def size(points: int) -> int:
    """Return the number of values that a watch stores: velocity and reversal count per point."""
    return 2 * points


def watched(
    watch: Values, velocities: Sequence[Values], normal: Sequence[Value], h: Value
) -> list[Value]:
    """Return the watch, updated at a state.

    velocities: velocities of the points (m/s), three components each. The watch stores the sum of
    the three, which reverses with the velocity. normal: normal forces (N). h: size of the next step
    (s).
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
    """Return a motion unchanged; warn if it is unstable, unless its arrays are on a GPU."""
    unstable = run.unstable
    if isinstance(unstable, np.ndarray) and unstable.max(initial=-1) >= 0:
        found = unstable[unstable >= 0]
        who = f" in {found.size} of {unstable.size} members" if unstable.ndim else ""
        warnings.warn(
            f"{function}: soft contact{who} is unstable from step {found.min()} on "
            "(see Trajectory.unstable); reduce dt or the stiffness of the ground, or "
            "use an implicit integrator or rigid contact",
            RuntimeWarning,
            stacklevel=LEVEL,
        )
    return run
