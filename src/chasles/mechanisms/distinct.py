"""Distances between configurations modulo full turns, and tables of distinct configurations."""

from collections.abc import Callable, Sequence

import numpy as np

from chasles.functions.reaching import MEMORY, STATUS
from chasles.mechanisms.mechanism import Mechanism
from chasles.mechanisms.postures import TURN, angles
from chasles.model.spaces import freedom_units

AT_ONCE = 256
"""Number of problems in one batch of a search for all solutions."""

DISTINCT = 1e-4
"""Distance (rad or m, modulo full turns) below which two configurations count as the same."""

CLOSE = 0.05
"""Distance (rad or m) below which solutions count as the same if their midpoint is a solution.

Near a singular configuration, neighboring configurations also meet the targets within their
tolerances.
"""

STAYED = 1e-12
"""Coordinate change below which a search is considered to have returned its starting point."""


Rows = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Results of a search: configurations, solver states and step counts."""

Search = Callable[[np.ndarray, np.ndarray], Rows]
"""Function that maps goals and starting configurations to search results (`Rows`)."""


def listed(
    mechanism: Mechanism,
    goals: np.ndarray,
    rows: np.ndarray | None,
    starts: np.ndarray,
    count: int,
    search: Search,
    held: Sequence[int] = (),
) -> Rows:
    """Return distinct solutions (n, count, nq) of n problems, their solver states and step counts.

    Each search begins at a guess (`rows`) or at one of the configurations `starts` (m, nq). `held`
    contains the indices in q of coordinates that keep the values of the guess in all searches. The
    coordinates belong to joints in `fixed` or to joints that do not move the targets.
    """
    n, nq = len(goals), mechanism.nq
    q, ends = np.full((n, count, nq), np.nan), np.full((n, count, MEMORY), np.inf)
    steps = np.zeros((n, 1), int)
    for first in range(0, n, AT_ONCE):
        some = slice(first, first + AT_ONCE)
        begins = np.broadcast_to(starts, (len(goals[some]), *starts.shape))
        if rows is not None:
            own = np.broadcast_to(rows, (n, nq))[some, None]
            begins = np.concatenate([own, begins], axis=1)
            begins[..., held] = own[..., held]
        each = np.repeat(goals[some], begins.shape[1], axis=0)
        tried = search(each, np.ascontiguousarray(begins.reshape(len(each), nq)))
        found, end, taken = (a.reshape(*begins.shape[:2], -1) for a in tried)
        steps[some] = taken[..., :1].sum(axis=1)
        sort(mechanism, goals[some], found, end, q[some], ends[some], search)
    return q, ends, steps


def sort(
    mechanism: Mechanism,
    goals: np.ndarray,
    found: np.ndarray,
    end: np.ndarray,
    q: np.ndarray,
    ends: np.ndarray,
    search: Search,
) -> None:
    """Add to `q` the configurations `found` (n, k, nq) that `q` does not yet contain."""
    known = np.zeros(len(q), int)
    for k in range(found.shape[1]):
        solved = np.flatnonzero((end[:, k, STATUS] == 1.0) & (known < q.shape[1]))
        if not len(solved):
            continue
        far = apart(mechanism, found[solved, k][:, None], q[solved]).max(axis=-1, initial=0.0)
        same = far < DISTINCT
        row, other = np.nonzero((far < CLOSE) & ~same.any(axis=-1, keepdims=True))
        if len(row):
            pairs = found[solved[row], k], q[solved[row], other]
            same[row, other] = _connected(mechanism, goals[solved[row]], *pairs, search)
        new = solved[~same.any(axis=-1)]
        q[new, known[new]], ends[new, known[new]] = found[new, k], end[new, k]
        known[new] += 1


def _connected(
    mechanism: Mechanism, goals: np.ndarray, a: np.ndarray, b: np.ndarray, search: Search
) -> np.ndarray:
    """Return a mask of the pairs of solutions a, b whose midpoint is also a solution."""
    way = _way(mechanism, a, b)[0]
    way = np.where(_turning(mechanism), way - TURN * np.round(way / TURN), way)
    middle = np.ascontiguousarray(mechanism.integrate(a, 0.5 * way))
    found, end, _ = search(np.ascontiguousarray(goals), middle)
    stayed = np.abs(found - middle).max(axis=-1, initial=0.0) < STAYED
    return np.asarray(stayed & (end[:, STATUS] == 1.0))


def apart(mechanism: Mechanism, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return coordinate distances (..., nv) modulo full turns, or inf where b is NaN."""
    far, missing = _way(mechanism, a, b)
    far = np.abs(far)
    wrapped = np.minimum(np.remainder(far, TURN), TURN - np.remainder(far, TURN))
    return np.where(missing[..., None], np.inf, np.where(_turning(mechanism), wrapped, far))


def _turning(mechanism: Mechanism) -> np.ndarray:
    """Return a mask (nv,) of coordinates with period 2 pi."""
    model, own = mechanism.model, set(angles(mechanism))
    turns = np.array(freedom_units(model, -1.0)) > 0.0
    for i in model.movers:
        if model.bodies[i].joint.nq == 1:
            turns[model.velocity_slices[i]] = model.position_slices[i].start in own
    return turns


def distance(mechanism: Mechanism, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the squared distance from configuration a to b, or NaN where b is NaN."""
    way, missing = _way(mechanism, a, b)
    return np.where(missing, np.nan, np.sum(way * way, axis=-1))


def _way(mechanism: Mechanism, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the difference (..., nv) from configuration a to b, and a mask (...).

    The mask is True where b contains NaN.
    """
    lead = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    a, b = (np.broadcast_to(x, (*lead, x.shape[-1])) for x in (a, b))
    missing = np.isnan(b).any(axis=-1)
    return mechanism.difference(a, np.where(missing[..., None], a, b)), missing


# Full turns -------------------------------------------------------------------------------------


def _turns(x: np.ndarray, lower: float, upper: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimum and maximum number of full turns that, added to x, satisfy its limits."""
    return np.ceil((lower - x) / TURN), np.floor((upper - x) / TURN)


def full_turns(
    mechanism: Mechanism, way: np.ndarray, q: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """Return the multiples of 2 pi (..., nq) that, added to q, bring it closest to a reference.

    Only revolute joints are turned, and q stays within the limits. `way` (..., nq) is the
    difference from q to the reference.
    """
    turns = np.zeros(q.shape)
    for k in angles(mechanism):
        limits = _turns(q[..., k], lower[k], upper[k])
        turns[..., k] = np.clip(np.round(way[..., k] / TURN), *limits) * TURN
    return turns
