"""Option `comfort` of inverse kinematics: the preferred configuration of a redundant robot."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chasles.errors import InputError
from chasles.functions.doors import numbers
from chasles.functions.reaching import MEMORY, MOST, STATUS
from chasles.mechanisms.mechanism import Mechanism
from chasles.mechanisms.postures import Bounds, Prepared
from chasles.model.spaces import freedom_units, rate_places, size

PART = "inverse_kinematics"

MIDDLE = "limits"
"""Value of the option `comfort` that selects the middle of each joint's range."""

SOFTEST = 1e-4
"""Minimum weight of a coordinate in the comfort cost, relative to the largest weight."""

LONGEST = 200.0
"""Maximum number of steps toward a preferred configuration while meeting the targets."""


@dataclass(frozen=True, eq=False)
class Comfort:
    """Preferred configuration (..., nq), and weights (nv,) for the deviation of each coordinate."""

    posture: np.ndarray
    weights: np.ndarray

    def away(self, mechanism: Mechanism, q: np.ndarray) -> np.ndarray:
        """Return the weighted sum of squared distances from `posture` to each row of q (n, nq)."""
        way = mechanism.difference(q, np.broadcast_to(self.posture, q.shape))
        return np.asarray(np.sum(self.weights * way * way, axis=-1))


def comfort_of(mechanism: Mechanism, bounds: Bounds, given: Any, weight: Any) -> Comfort | None:
    """Return the checked options `comfort` and `comfort_weight`, or None if they are not given."""
    if given is None:
        if weight is not None:
            problem = "`comfort_weight` was given without `comfort`"
            raise InputError(
                "E-CALL-375",
                problem,
                "also pass `comfort`: a preferred configuration, or 'limits'",
                part=PART,
            )
        return None
    units = np.array(freedom_units(mechanism.model, size(mechanism.model)))
    weights = 1.0 / units**2
    if isinstance(given, str):
        if given != MIDDLE:
            problem = f"`comfort` must be a configuration or {MIDDLE!r}, not {given!r}"
            raise InputError("E-CALL-376", problem, part=PART)
        posture, weights = _middle(mechanism, bounds)
    else:
        posture = numbers(f"{PART}: comfort", given, mechanism.nq).astype(float)
        if not np.isfinite(posture).all():
            raise InputError("E-CALL-379", "`comfort` must contain only finite numbers", part=PART)
    if weight is not None:
        factors = np.asarray(numbers(f"{PART}: comfort_weight", weight, mechanism.nv), float)
        if factors.ndim != 1 or not ((factors >= 0.0) & (factors < np.inf)).all():
            problem = "`comfort_weight` must have one finite number >= 0 per degree of freedom"
            raise InputError("E-CALL-377", problem, part=PART)
        weights = weights * factors
    return Comfort(posture, np.maximum(weights, SOFTEST * weights.max(initial=0.0)))


def _middle(mechanism: Mechanism, bounds: Bounds) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle of each joint range, and the weight 1 / (half range)^2 (0 if unlimited)."""
    model, posture = mechanism.model, mechanism.neutral()
    weights = np.zeros(mechanism.nv)
    for v, k in rate_places(model):
        half = 0.5 * (bounds.upper[k] - bounds.lower[k])
        if 0.0 < half < np.inf:
            posture[k], weights[v] = bounds.lower[k] + half, 1.0 / half**2
    return posture, weights


def settled(
    prepared: Prepared,
    comfort: Comfort,
    inputs: list[np.ndarray],
    found: Sequence[np.ndarray],
    threads: int | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Move solutions as close as possible to the preferred configuration while meeting the targets.

    `inputs` contains goals, weights, tolerances and a mask of movable coordinates. `found` contains
    configurations, solver states and step counts of the solutions. A solution that cannot be
    improved is returned unchanged.
    """
    q, ends, steps = found
    if not comfort.weights.any():
        return q, ends, steps
    mechanism, count = prepared.mechanism, len(q)
    compliance = (comfort.weights.min() / comfort.weights)[None]
    memories = np.zeros((2, MEMORY))
    memories[:, MOST] = LONGEST, 1.0
    posture = np.ascontiguousarray(comfort.posture.reshape(-1, mechanism.nq))
    none = np.zeros((count, 0), np.int64)
    rows = [*inputs, posture, compliance]
    moved, after, taken = prepared.settling(rows, q, none, q, 0, memories, threads)
    better = (ends[:, STATUS] == 1.0) & (after[:, STATUS] == 1.0)
    better &= comfort.away(mechanism, moved) <= comfort.away(mechanism, q)
    every = better[:, None]
    whole = steps + np.where(every, taken * [1, 0], 0)
    return np.where(every, moved, q), np.where(every, after, ends), whole
