"""Choice of contact forces that are not uniquely determined by the motion.

Contact points can press or pull against each other without any effect on the motion. An example is
two sticking points of one body, with opposite forces along the line between them. Coulomb's law
does not determine these internal forces. A point begins to slide sooner if its force is close to
the boundary of its friction cone. Therefore the forces with the largest margin inside all cones are
chosen.
"""

import numpy as np

from chasles.errors import ConvergenceError
from chasles.motion.solvers import Cone, Infeasible, cones_program

DEPENDENT = 1e-9
"""Relative tolerance for singular values: smaller ones count as zero. Forces that correspond to a
zero singular value have no effect on the motion."""

ROOM = 1e-6
"""Smallest useful margin inside the friction cones, relative to the largest force. If the largest
possible margin is smaller, the given forces are kept."""


def safest(
    T: np.ndarray, f: np.ndarray, mu: np.ndarray, slip: np.ndarray, acts: np.ndarray
) -> np.ndarray:
    """Return the contact forces (k, 3) with the largest margin inside all friction cones.

    The result has the same effect on the motion, T f, as the given forces f. The forces f are
    returned unchanged if the largest margin does not exceed `ROOM`.

    Parameters
    ----------
    T : array, shape (n, 3k)
        Contact axes in joint space, as columns.
    f : array, shape (k, 3)
        Contact forces.
    mu : array, shape (k,)
        Friction coefficients.
    slip : array, shape (k, 2)
        Directions of sliding points. Points with zero slip and positive mu stick.
    acts : array of bool, shape (k,)
        Mask of points with a force.
    """
    sticks = acts & (mu > 0.0) & ~np.any(slip, axis=-1)
    D, rows = _columns(mu, slip, acts, sticks)
    x, size = f.ravel()[rows], np.max(np.abs(f), initial=0.0)
    N = _unfelt(T @ D)
    if not N.shape[1] or size == 0.0:
        return f
    n, y = N.shape[1], x / size
    least = np.append(np.zeros(n), -1.0)
    cones = [Cone(least[None], np.ones(1), True)]  # the margin is at most the largest force
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
    """Return the matrix (3k, m) that maps the independent force components to all components.

    Also return the m indices of the independent components in the flattened array f. The friction
    of sliding points is included in the columns of their normal forces.
    """
    rows = np.flatnonzero(np.column_stack([sticks, sticks, acts]))
    D, normals = np.eye(3 * len(mu)), 2 + 3 * np.arange(len(mu))
    D[normals - 2, normals], D[normals - 1, normals] = (-mu[:, None] * slip).T
    return D[:, rows], rows


def _unfelt(B: np.ndarray) -> np.ndarray:
    """Return a basis (m, r) of the null space of B."""
    _, values, rows = np.linalg.svd(B)
    rank = int(np.sum(values > DEPENDENT * np.max(values, initial=0.0)))
    found: np.ndarray = rows[rank:].T
    return found
