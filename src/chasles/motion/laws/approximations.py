"""Approximate friction: pyramids instead of cones, and Gauss-Seidel sweeps over batches.

The friction problem and its data G, c, mu and slip are described in `chasles.motion.laws.friction`.
"""

from typing import Any

import numpy as np
import scipy

from chasles.errors import InputError
from chasles.motion.laws.friction import ACCURATE, Law
from chasles.motion.solvers import Iterated, lemke

Array = Any


def polyhedral(G: Array, c: Array, mu: Array, slip: Array = None, *, facets: int = 8) -> np.ndarray:
    """Return contact forces for friction pyramids with `facets` sides instead of cones.

    Parameters
    ----------
    G : array_like, shape (3 nc, 3 nc)
        Delassus matrix, in contact axes (tangents, then normal).
    c : array_like, shape (3 nc,)
        Accelerations of the contact points without contact forces (m/s2).
    mu : array_like, shape (nc,)
        Friction coefficients.
    slip : array_like, shape (nc, 2), optional
        Unit slip directions, as in `coulomb`.
    facets : int, optional
        Number of sides, at least 3.

    Returns
    -------
    f : ndarray, shape (nc, 3) or (nc, 4)
        Contact forces: tangential components, then normal. With torsion, the third of the four
        columns is the moment about the normal divided by a length, the ratio of the torsional
        friction coefficient (m) to `mu`.

    Raises
    ------
    InputError
        If an array does not have the documented shape, if `mu` is negative, or if `mu` or `slip` is
        not finite, or if `facets` is not an integer of at least 3.
    Infeasible
        If no forces prevent penetration.
    ConvergenceError
        If Lemke's method does not end.

    Notes
    -----
    This is a linear complementarity problem, solved by Lemke's method. The problem has a solution
    whenever contacts can be maintained (Stewart and Trinkle 1996; Anitescu and Potra 1997). The
    pyramids are inscribed in the cones: friction may be less than Coulomb friction by a fraction
    1 - cos(pi/facets), and its direction may differ by pi/facets. Torsion adds a positive and a
    negative direction of the moment about the normal.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import contact
    >>> contact.polyhedral(np.eye(3), [1.0, 0.0, -9.81], [0.5]).round(6)
    array([[-1.  ,  0.  ,  9.81]])
    """
    law = Law.checked("polyhedral", G, c, mu, slip)
    if not isinstance(facets, int) or facets < 3:
        problem = f"`facets` must be an integer of at least 3, not {facets!r}"
        raise InputError("E-CONTACT-022", problem, part="polyhedral")
    weight = np.max(law.weight, initial=0.0) or 1.0
    angles = 2.0 * np.pi / facets * np.arange(facets)
    spokes = np.zeros((law.width, facets))
    spokes[:2] = np.cos(angles), np.sin(angles)
    if law.width == 4:
        spokes = np.column_stack([spokes, np.eye(4)[2], -np.eye(4)[2]])
    along, seen, links = [], [], []
    for m, sliding, sticks in zip(law.mu, law.slip, law.sticks, strict=True):
        wide = spokes.shape[1] + 2 if sticks else 1
        pull, row, link = (np.zeros((k, wide)) for k in (law.width, law.width, wide))
        pull[:, 0], row[-1, 0] = (*(-m * sliding), 1.0), 1.0
        if sticks:
            pull[:, 1:-1] = row[:, 1:-1] = spokes
            link[1:-1, -1], link[-1, 0], link[-1, 1:-1] = 1.0, m, -1.0
        along.append(pull)
        seen.append(row)
        links.append(link)
    P, R, E = (scipy.linalg.block_diag(*blocks) for blocks in (along, seen, links))
    x = lemke(R.T @ law.G @ P / weight + E, R.T @ law.c)
    return (P @ x).reshape(-1, law.width) / weight


def cone_gauss_seidel(
    G: Array,
    c: Array,
    mu: Array,
    slip: Array = None,
    *,
    start: Array = None,
    dilates: bool = False,
    sweeps: int = 2000,
    tolerance: float = ACCURATE,
) -> Iterated:
    """Return contact forces for a batch, by repeated projection onto the friction cones.

    Parameters
    ----------
    G : array_like, shape (..., 3 nc, 3 nc)
        Delassus matrices; leading dimensions broadcast.
    c : array_like, shape (..., 3 nc)
        Accelerations without contact forces (m/s2).
    mu : array_like, shape (..., nc)
        Friction coefficients.
    slip : array_like, shape (..., nc, 2), optional
        Unit slip directions, as in `coulomb`.
    start : array_like, shape (..., nc, 3), optional
        Initial guess, such as the forces from the previous step.
    dilates : bool, optional
        Use the convex law instead of Coulomb's law.
    sweeps : int, optional
        Maximum number of sweeps.
    tolerance : float, optional
        Tolerance for the residual, relative to the largest |c| of a problem.

    Returns
    -------
    result : Iterated
        Forces (..., nc, 3), residuals and the number of sweeps. Problems without a solution do not
        raise an error; their residual stays large.

    Raises
    ------
    InputError
        If an array does not have the documented shape.

    Notes
    -----
    All problems of a batch are iterated together (Jourdan, Alart and Jean 1998). With torsion,
    replace 3 by 4 and 2 by 3 in the shapes.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import contact
    >>> contact.cone_gauss_seidel(np.eye(3), [1.0, 0.0, -9.81], [0.5]).forces.round(6)
    array([[-1.  ,  0.  ,  9.81]])
    """
    law = _batch(G, c, mu, slip, dilates)
    lead, n, wide = law.mu.shape[:-1], law.mu.shape[-1], law.width
    weight = np.broadcast_to(law.weight, (*lead, n, 1))
    f = np.zeros((*lead, n, wide))
    f[...] = 0.0 if start is None else start
    limit = tolerance * np.max(np.abs(law.c), axis=-1, initial=0.0)
    done = 0
    while np.any((far := law.residual(f)) > limit) and done < sweeps:
        for i in range(n):
            rows, one = slice(wide * i, wide * i + wide), slice(i, i + 1)
            a = (law.G[..., rows, :] @ f.reshape(*lead, wide * n, 1))[..., 0] + law.c[..., rows]
            part = law._replace(mu=law.mu[..., one], slip=law.slip[..., one, :])
            target = part.target(weight[..., one, :] * f[..., one, :], a[..., None, :])
            f[..., one, :] = part.allowed(target) / weight[..., one, :]
        done += 1
    return Iterated(f, far, done)


def _batch(G: Array, c: Array, mu: Array, slip: Array, dilates: bool) -> Law:
    """Check a batch of friction problems, and return it with mu and slip broadcast."""
    G, c, mu = (np.asarray(a, dtype=float) for a in (G, c, mu))
    n = mu.shape[-1] if mu.ndim else -1
    wide = 4 if c.shape[-1:] == (4 * n,) else 3
    if c.shape[-1:] != (wide * n,) or G.shape[-2:] != (wide * n, wide * n):
        shapes = "(..., 3 nc, 3 nc), (..., 3 nc) and (..., nc)"
        found = f"{G.shape}, {c.shape} and {mu.shape}"
        problem = f"G, c and mu must have the shapes {shapes}, not {found}"
        raise InputError("E-CONTACT-023", problem, part="cone_gauss_seidel")
    lead = np.broadcast_shapes(G.shape[:-2], c.shape[:-1], mu.shape[:-1])
    slip = np.broadcast_to(
        0.0 if slip is None else np.asarray(slip, dtype=float), (*lead, n, wide - 1)
    )
    return Law(G, c, np.broadcast_to(mu, (*lead, n)), slip, dilates)
