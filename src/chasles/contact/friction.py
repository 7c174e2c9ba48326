"""Laws of friction at points of contact: Coulomb's, its convex relative, pyramids, and batches.

They take the problem of `chasles.contact.cones`: G, c, mu and slip.
"""

from itertools import product
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from chasles.contact.complementarity import Iterated, lemke
from chasles.contact.cones import Law, allowed, checked, cone_program, length, slope

Array = Any

ACCURATE = 1e-10
"""How well Coulomb's law must hold, beside the largest |c|."""

ROUNDS = 100
"""Cone programs at most for Coulomb's law; one to three are usual."""

POLISH = 20
"""Steps of Newton's method at most after each of them."""

MANY = 12
"""Sliding contacts up to which all cases are looked at where a solution need not be unique."""


class NoUniqueMotion(ValueError):
    """Coulomb's law and rigid bodies have no unique answer here (Painleve 1895)."""


class Inconsistent(NoUniqueMotion):
    """No finite force satisfies Coulomb's law: an impact without collision is due."""


class Indeterminate(NoUniqueMotion):
    """Several motions satisfy Coulomb's law; `solutions` are their normal forces."""

    def __init__(self, message: str, solutions: np.ndarray) -> None:
        super().__init__(message)
        self.solutions = solutions


# Laws ------------------------------------------------------------------------------------------


def coulomb(G: Array, c: Array, mu: Array, slip: Array = None) -> np.ndarray:
    """Forces f (nc, 3) of Coulomb's law.

    Where every contact slides it is a linear complementarity problem in normal forces, its matrix
    not symmetric; without a unique motion it raises `Inconsistent` or `Indeterminate` (of more than
    12 contacts it takes what Lemke's method finds). Otherwise the cone program is solved again and
    again with De Saxce's correction mu |a_t| of the normal acceleration (De Saxce and Feng 1998;
    Acary et al. 2011), each time followed by Newton's method (Alart and Curnier 1991), until f and
    a satisfy the law to 1e-10 of the largest |c|.
    """
    return _solved(Law(*checked("coulomb", G, c, mu, slip)))


def convex(G: Array, c: Array, mu: Array, slip: Array = None) -> np.ndarray:
    """Forces f (nc, 3) of the convex law: Coulomb's without De Saxce's correction.

    Of contacts that do not slide it is the `cone_program`, which always has an answer where
    contacts can be kept, the one that dissipates most (Anitescu 2006). It differs from Coulomb's
    law where a contact begins to slide: there a_n = mu |a_t| instead of 0, so that the bodies part
    as if they swelled (dilation). Contacts that slide already are dragged as by Coulomb's law.
    """
    return _solved(Law(*checked("convex", G, c, mu, slip), dilates=True))


def _solved(law: Law) -> np.ndarray:
    """Forces that satisfy a law, by cone programs and Newton's method."""
    mu, sticks = law.mu, law.sticks
    if not np.any(sticks):
        return _sliding(law)
    f = np.zeros((len(mu), 3))
    limit = ACCURATE * np.max(np.abs(law.c))
    for _ in range(ROUNDS):
        dragged = np.zeros_like(f)
        dragged[:, :2] = -mu[:, None] * f[:, 2:] * law.slip
        moved = law.c + law.G @ dragged.ravel()
        moved[2::3] += law.dilation(law.accelerations(f))
        f = cone_program(law.G, moved, np.where(sticks, mu, 0.0)) + dragged
        exact = _polished(law, f, 1e-3 * limit)
        if law.residual(exact) <= limit:
            return exact
    raise ArithmeticError(
        f"friction: after {ROUNDS} cone programs the law does not hold to {ACCURATE}, and perhaps "
        "no forces satisfy it; make friction smaller, or take friction='polyhedral'"
    )


def _polished(law: Law, f: np.ndarray, limit: float) -> np.ndarray:
    """The f near a given one at which the residual vanishes, if Newton's method finds it."""
    n, weight = len(law.mu), law.weight
    scale = np.diag(np.repeat(weight[:, 0], 3))
    for _ in range(POLISH):
        if law.residual(f) <= limit:
            break
        a = law.accelerations(f)
        target = law.target(weight * f, a)
        wrong = weight * f - allowed(target, law.mu, law.slip)
        corrected = np.zeros((n, 3, 3)) + np.eye(3)
        direction = a[:, :2] / np.where(length(a[:, :2]) > 0.0, length(a[:, :2]), 1.0)[:, None]
        corrected[:, 2, :2] = np.where(law.dilation(a) > 0.0, law.mu, 0.0)[:, None] * direction
        slopes = [slope(*row) for row in zip(target, law.mu, law.slip, law.sticks, strict=True)]
        jacobian = scale - block_diag(*slopes) @ (scale - block_diag(*corrected) @ law.G)
        f = f - np.linalg.lstsq(jacobian, wrong.ravel(), rcond=1e-13)[0].reshape(n, 3)
    return f


def _sliding(law: Law) -> np.ndarray:
    """Forces where every contact slides, or has no friction."""
    n = len(law.mu)
    drag = block_diag(*np.column_stack([-law.mu[:, None] * law.slip, np.ones(n)])[:, :, None])
    M, d = (law.G @ drag)[2::3], law.c[2::3]
    plain = not np.any(law.mu[:, None] * law.slip)
    if plain or n > MANY or np.linalg.eigvalsh(M + M.T)[0] > 1e-9 * np.max(np.abs(M)):
        return (drag @ lemke(M, d)).reshape(n, 3)
    return (drag @ _only(M, d, law.G @ drag)).reshape(n, 3)


def _only(M: np.ndarray, d: np.ndarray, effect: np.ndarray) -> np.ndarray:
    """The normal forces of w = M z + d whose accelerations are unique, by looking at all cases."""
    scale = np.max(np.abs(d), initial=0.0) or 1.0
    found: list[np.ndarray] = []
    for case in product((False, True), repeat=len(d)):
        on = np.array(case)
        z = np.zeros_like(d)
        z[on] = np.linalg.lstsq(M[np.ix_(on, on)], -d[on], rcond=1e-11)[0]
        w = M @ z + d
        if np.all(z >= 0.0) and np.all(w >= -1e-9 * scale) and abs(z @ w) <= 1e-9 * scale * sum(z):
            found.append(z)
    if not found:
        raise Inconsistent(
            "coulomb: no finite forces satisfy Coulomb's law here (Painleve's paradox, "
            "inconsistent); friction drives a contact into the ground: an impact is due"
        )
    motions = np.array([effect @ z for z in found])
    if np.max(np.abs(motions - motions[0])) > 1e-6 * scale:
        raise Indeterminate(
            f"coulomb: {len(found)} sets of forces satisfy Coulomb's law here (Painleve's paradox, "
            "indeterminate); rigid bodies do not say which",
            np.array(found),
        )
    return found[0]


def polyhedral(G: Array, c: Array, mu: Array, slip: Array = None, *, facets: int = 8) -> np.ndarray:
    """Forces f (nc, 3) with pyramids of `facets` sides in the place of cones.

    A linear complementarity problem by Lemke's method, which always has an answer where contacts
    can be kept (Stewart and Trinkle 1996; Anitescu and Potra 1997). The pyramids stand within the
    cones: friction may be less than Coulomb's by 1 - cos(pi/facets), and its direction off by
    pi/facets.
    """
    G, c, mu, slip = checked("polyhedral", G, c, mu, slip)
    if not isinstance(facets, int) or facets < 3:
        raise ValueError(f"polyhedral: facets must be an integer from 3 on, not {facets!r}")
    law = Law(G, c, mu, slip)
    weight = np.max(law.weight, initial=0.0) or 1.0
    angles = 2.0 * np.pi / facets * np.arange(facets)
    spokes = np.array([np.cos(angles), np.sin(angles), np.zeros(facets)])
    along, seen, links = [], [], []
    for m, sliding, sticks in zip(mu, slip, law.sticks, strict=True):
        wide = facets + 2 if sticks else 1
        pull, row, link = np.zeros((3, wide)), np.zeros((3, wide)), np.zeros((wide, wide))
        pull[:, 0], row[2, 0] = (*(-m * sliding), 1.0), 1.0
        if sticks:
            pull[:, 1:-1] = row[:, 1:-1] = spokes
            link[1:-1, -1], link[-1, 0], link[-1, 1:-1] = 1.0, m, -1.0
        along.append(pull)
        seen.append(row)
        links.append(link)
    P, R, E = block_diag(*along), block_diag(*seen), block_diag(*links)
    x = lemke(R.T @ G @ P / weight + E, R.T @ c)
    return (P @ x).reshape(-1, 3) / weight


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
    """Forces (..., nc, 3) of many problems at once, each contact projected on its cone in turn.

    G (..., 3 nc, 3 nc), c (..., 3 nc), mu (..., nc), slip (..., nc, 2); leading shapes broadcast.
    start (..., nc, 3): forces to begin with, such as those of the last step. Coulomb's law
    (Jourdan, Alart and Jean 1998), or the convex one with dilates=True. It stops where every
    residual is below `tolerance` times the largest |c| of its problem, or after `sweeps`, and never
    raises for problems without a solution, whose residual stays large.
    """
    law = _batch(G, c, mu, slip, dilates)
    lead, n = law.mu.shape[:-1], law.mu.shape[-1]
    weight = np.broadcast_to(law.weight, (*lead, n, 1))
    f = np.zeros((*lead, n, 3))
    f[...] = 0.0 if start is None else start
    limit = tolerance * np.max(np.abs(law.c), axis=-1, initial=0.0)
    done = 0
    while np.any((far := law.residual(f)) > limit) and done < sweeps:
        for i in range(n):
            rows, one = slice(3 * i, 3 * i + 3), slice(i, i + 1)
            a = (law.G[..., rows, :] @ f.reshape(*lead, 3 * n, 1))[..., 0] + law.c[..., rows]
            part = law._replace(mu=law.mu[..., one], slip=law.slip[..., one, :])
            target = part.target(weight[..., one, :] * f[..., one, :], a[..., None, :])
            f[..., one, :] = allowed(target, part.mu, part.slip) / weight[..., one, :]
        done += 1
    return Iterated(f, far, done)


def _batch(G: Array, c: Array, mu: Array, slip: Array, dilates: bool) -> Law:
    """The arrays of many problems, mu and slip with all leading shapes."""
    G, c, mu = (np.asarray(a, dtype=float) for a in (G, c, mu))
    n = mu.shape[-1] if mu.ndim else -1
    if c.shape[-1:] != (3 * n,) or G.shape[-2:] != (3 * n, 3 * n):
        raise ValueError(
            f"cone_gauss_seidel: G {G.shape}, c {c.shape} and mu {mu.shape} must be "
            "(..., 3 nc, 3 nc), (..., 3 nc) and (..., nc)"
        )
    lead = np.broadcast_shapes(G.shape[:-2], c.shape[:-1], mu.shape[:-1])
    slip = np.broadcast_to(0.0 if slip is None else np.asarray(slip, dtype=float), (*lead, n, 2))
    return Law(G, c, np.broadcast_to(mu, (*lead, n)), slip, dilates)
