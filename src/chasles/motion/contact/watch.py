"""Watch over soft contact, which tells whether steps are short enough for the ground.

Where steps are too long for the stiffness or the damping of the ground, the force of one step
throws a touching point back at full speed, and that of the next throws it back again: the motion is
that of the steps, not of the ground. So a watch counts, for each point, how often its velocity
reverses between the ends of a step in which it touches. A contact that lasts for three steps or
more, and an oscillation with six steps or more a period, stay below the limit. What motors do does
not matter: they cannot reverse the velocity of a foot in every other step.

Everything is written in operations that floats, arrays of floats and symbols share.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.motion.geometry.closed_forms import Value, less, less_equal, maximum, select

Values = Sequence[Value] | np.ndarray

REVERSED = 0.4
"""v0 and v1, at both ends of a step, are reversed if -v0 . v1 is more than this part of the mean of
their squares: 1 for a full reversal, less than 0.4 where one is more than 4.8 times the other."""

SLOW, FAST = 98.1, 981.0
"""Accelerations (m/s^2). A point slower than SLOW dt rattles at rest. One that is thrown back four
times as fast as it came, and as FAST dt, counts as MANY reversals."""

FADING, MANY = 0.9, 4.0
"""A reversal counts for about ten steps in which its point touches; so many of them are too many:
more than 40 % of these steps."""

LEVEL = 3
"""From here to whoever calls `robot.simulate` or `robot.rollout`."""


LATCHED = 1000.0
"""From there on a count is of the steps since there were too many reversals."""


def size(points: int) -> int:
    """Return the number of values that a watch stores: for each point its velocity, its contact
    flag and its reversals.
    """
    return 2 * points


def watched(
    watch: Values, velocities: Sequence[Values], normal: Sequence[Value], h: Value
) -> list[Value]:
    """Return the updated watch after a state, h seconds before the next.

    velocities: of the points (m/s), three numbers each, of which one remembers the sum: whatever
    reverses them reverses it. normal: forces (N).
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
    """The first suspicious step of each member after so many steps, -1 where there is none."""
    age = (watch[..., 1::2].max(-1, keepdims=True) - LATCHED).clip(0.0).astype(int)
    return ((steps - age) * (age > 0) - (age == 0)).reshape(watch.shape[:-1])


def told(function: str, run: Any) -> Any:
    """A motion, with a warning where it is unstable and its numbers are here, not on a GPU."""
    unstable = run.unstable
    if isinstance(unstable, np.ndarray) and (unstable >= 0).any():
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
