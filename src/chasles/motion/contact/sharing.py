"""Forces of one motion that several points of contact can share, and the safest of them.

Points that hold each other's place press and pull against each other as they like: two points of
one body that stick may be clamped along the line between them. Coulomb's law does not say how much.
The nearer to its cone's edge one of them is taken, the sooner it slides; so a motion goes on with
the forces that are farthest within all cones.
"""

import numpy as np

from chasles.errors import ConvergenceError
from chasles.motion.solvers import Cone, Infeasible, cones_program

DEPENDENT = 1e-9
"""Singular values up to this part of the largest are of forces that move nothing."""

ROOM = 1e-6
"""The part of the largest force that is room within a cone."""


def safest(
    T: np.ndarray, f: np.ndarray, mu: np.ndarray, slip: np.ndarray, acts: np.ndarray
) -> np.ndarray:
    """Forces (k, 3) with the effect T f of given ones, farthest within their bounds.

    T (n, 3k). slip (k, 2): the direction of points that slide, zero of those that stick where mu is
    positive. acts (k,): which points have a force. The given ones where others have no more room.
    """
    sticks = acts & (mu > 0.0) & ~np.any(slip, axis=-1)
    D, rows = _columns(mu, slip, acts, sticks)
    x, size = f.ravel()[rows], np.max(np.abs(f), initial=0.0)
    N = _unfelt(T @ D)
    if not N.shape[1] or size == 0.0:
        return f
    n, y = N.shape[1], x / size
    least = np.append(np.zeros(n), -1.0)
    cones = [Cone(least[None], np.ones(1), True)]  # room is at most the largest force
    for i in np.flatnonzero(acts):
        own = np.flatnonzero(rows // 3 == i)
        part, given = np.column_stack([N[own], np.zeros(len(own))]), y[own]
        if sticks[i]:
            part, given = np.roll(part, 1, axis=0), np.roll(given, 1)
            part[0], given[0] = mu[i] * part[0], mu[i] * given[0]
        part[0] += least
        cones.append(Cone(part, given, not sticks[i]))
    try:
        z = cones_program(1e-9 * np.eye(n + 1), least, cones)
    except (ConvergenceError, Infeasible):
        return f
    if z[-1] <= ROOM:
        return f
    return (D @ (size * (y + N @ z[:-1]))).reshape(-1, 3)


def _columns(
    mu: np.ndarray, slip: np.ndarray, acts: np.ndarray, sticks: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The forces (3k, m) of independent numbers, friction of sliding points with their normals; and
    the rows (m,) of f where these stand."""
    rows = np.flatnonzero(np.column_stack([sticks, sticks, acts]))
    D, normals = np.eye(3 * len(mu)), 2 + 3 * np.arange(len(mu))
    D[normals - 2, normals], D[normals - 1, normals] = (-mu[:, None] * slip).T
    return D[:, rows], rows


def _unfelt(B: np.ndarray) -> np.ndarray:
    """A basis (m, r) of the x with B x = 0."""
    _, values, rows = np.linalg.svd(B)
    rank = int(np.sum(values > DEPENDENT * np.max(values, initial=0.0)))
    found: np.ndarray = rows[rank:].T
    return found
