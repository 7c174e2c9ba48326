"""Search for the first time within a step at which a margin becomes negative."""

from collections.abc import Callable

import numpy as np
import scipy

from chasles.motion.steps.system import State, Taken

Margins = Callable[[State], np.ndarray]
"""Function that returns the margins of a state: the distances to all bounds, negative for violated
bounds."""

JUST = 1e-9
"""Time before a change of the nearest contact features (such as corners and edges) at which margins
are checked, as a fraction of a step."""

FINE = 1e-12
"""Tolerance for the time of an event (at which a margin becomes negative), as a fraction of a step.
"""

QUARTERS = 0.25, 0.5, 0.75
"""Fractions of a step at which events are looked for, in addition to the end of the step."""

SLIGHT = 1e-7
"""Relative tolerance for a margin that is zero at the start of a step and negative at its end.

Such a margin counts as negative once it is below `SLIGHT` times its value at the end of the step.
"""


def first_moment(margins: Margins, step: Taken, passed: np.ndarray) -> float:
    """Return the fraction of a step at which the first margin becomes negative.

    `passed` is a mask of the margins that are negative at the end of the step.
    """
    part, found = 1.0, np.zeros_like(passed)
    for early in QUARTERS:  # a margin may become negative and recover within the step
        if (before := margins(step.at(early)) < 0.0).any():
            part, passed = early, before
            break
    while passed.any():
        part, gone = _earliest(margins, step, np.flatnonzero(passed), part)
        found[gone] = True
        passed = (margins(step.at(part)) < 0.0) & ~found
        if not passed.any() and part > JUST:  # another pair of features may have become nearest
            passed = (margins(step.at(part - JUST)) < 0.0) & ~found
            part -= JUST * passed.any()
    return part


def _earliest(
    margins: Margins, step: Taken, which: np.ndarray, end: float
) -> tuple[float, np.ndarray]:
    """Return the fraction of a step at which margins first become negative, and their indices.

    The fraction lies just beyond the zero crossing. If the nearest features change at the crossing,
    the new features are already the nearest at this fraction. A margin that is zero at the start of
    the step counts as negative once it is below `SLIGHT` times its value at the end.
    """

    def left(part: float) -> np.ndarray:
        return np.minimum(margins(step.at(part))[which], 1.0)

    def beyond(part: float) -> float:
        return float(np.min(left(part) + slack))

    first, slack, part, ahead = left(0.0), np.zeros(len(which)), 0.0, FINE
    if np.any(first <= 0.0):
        slack = np.where(first > 0.0, 0.0, -SLIGHT * np.minimum(left(end), left(1.0)))
    if np.min(first + slack) > 0.0:
        late = beyond(end) >= 0.0
        part = end if late else scipy.optimize.brentq(beyond, 0.0, end, xtol=FINE, rtol=FINE)
    while 0.0 < part < end and beyond(part) >= 0.0:  # a discontinuity: move past it
        part, ahead = min(part + ahead, end), 2.0 * ahead
    rest = left(part) + slack
    return part, which[rest <= max(np.min(rest), 0.0)]
