"""Distances of postures, full turns apart, and tables of distinct ones."""

import numpy as np

from chasles.functions.reaching import STATUS
from chasles.mechanisms.mechanism import Mechanism
from chasles.mechanisms.postures import TURN
from chasles.model.spaces import freedom_units

DISTINCT = 1e-4
"""Postures that differ by less in every coordinate (rad or m), full turns apart, are the same."""


def sort(
    mechanism: Mechanism, found: np.ndarray, end: np.ndarray, q: np.ndarray, ends: np.ndarray
) -> None:
    """Put postures (n, k, nq) that are solutions, and not yet among those in q, there."""
    known = np.zeros(len(q), int)
    for k in range(found.shape[1]):
        solved = np.flatnonzero((end[:, k, STATUS] == 1.0) & (known < q.shape[1]))
        if not len(solved):
            continue
        far = apart(mechanism, found[solved, k][:, None], q[solved])
        new = solved[~(far < DISTINCT).all(axis=-1).any(axis=-1)]
        q[new, known[new]], ends[new, known[new]] = found[new, k], end[new, k]
        known[new] += 1


def apart(mechanism: Mechanism, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Distances of coordinates (..., nv), full turns left out; infinite where b is NaN."""
    far, missing = _way(mechanism, a, b)
    far = np.abs(far)
    turns = np.array(freedom_units(mechanism.model, -1.0)) > 0.0
    wrapped = np.minimum(np.remainder(far, TURN), TURN - np.remainder(far, TURN))
    return np.where(missing[..., None], np.inf, np.where(turns, wrapped, far))


def distance(mechanism: Mechanism, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The squared length of the way from a to b, NaN where b is."""
    way, missing = _way(mechanism, a, b)
    return np.where(missing, np.nan, np.sum(way * way, axis=-1))


def _way(mechanism: Mechanism, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The way (..., nv) from a to b, and True (...) where b is NaN."""
    lead = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    a, b = (np.broadcast_to(x, (*lead, x.shape[-1])) for x in (a, b))
    missing = np.isnan(b).any(axis=-1)
    return mechanism.difference(a, np.where(missing[..., None], a, b)), missing


def full_turns(
    mechanism: Mechanism, way: np.ndarray, q: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """Full turns (..., nq) of single joints, within the limits, that make the way from q shortest.

    way (..., nq): from q to the posture that it is to be near to.
    """
    model, turns = mechanism.model, np.zeros(q.shape)
    for i in model.movers:
        joint, place = model.bodies[i].joint, model.position_slices[i].start
        if joint.units == ("rad",):
            least = np.ceil((lower[place] - q[..., place]) / TURN)
            most = np.floor((upper[place] - q[..., place]) / TURN)
            turns[..., place] = np.clip(np.round(way[..., place] / TURN), least, most) * TURN
    return turns
