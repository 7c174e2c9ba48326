"""The first moment of a step at which one of several margins becomes negative."""

from collections.abc import Callable

import numpy as np
import scipy

from chasles.motion.steps.system import State, Taken

Margins = Callable[[State], np.ndarray]
"""The room left to all bounds in a state, negative beyond."""

JUST = 1e-9
"""The part of a step that is just before a moment in it."""

FINE = 1e-12
"""The part of a step to which a moment is found."""

QUARTERS = 0.25, 0.5, 0.75
"""Parts of a step with a change in it at which earlier ones are looked for."""

SLIGHT = 1e-7
"""The part of a margin at the end of a step that is next to nothing."""


def first_moment(margins: Margins, step: Taken, passed: np.ndarray) -> float:
    """The part of a step at which the first margin becomes negative; passed: those at its end."""
    part, found = 1.0, np.zeros_like(passed)
    for early in QUARTERS:  # where a margin may be negative for a while
        if (before := margins(step.at(early)) < 0.0).any():
            part, passed = early, before
            break
    while passed.any():
        part, gone = _earliest(margins, step, np.flatnonzero(passed), part)
        found[gone] = True
        passed = (margins(step.at(part)) < 0.0) & ~found
        if not passed.any() and part > JUST:  # features that others have replaced by then
            passed = (margins(step.at(part - JUST)) < 0.0) & ~found
            part -= JUST * passed.any()
    return part


def _earliest(
    margins: Margins, step: Taken, which: np.ndarray, end: float
) -> tuple[float, np.ndarray]:
    """The part of a step at which the first of some margins becomes negative, and which do.

    Just beyond, so that features replaced there by a jump are not taken for the nearest. One that
    starts at zero counts as negative beyond a small part of its value at the end.
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
    while 0.0 < part < end and beyond(part) >= 0.0:  # before a jump
        part, ahead = min(part + ahead, end), 2.0 * ahead
    rest = left(part) + slack
    return part, which[rest <= max(np.min(rest), 0.0)]
