"""Coulomb's law at points of contact: cones, a polyhedron, and their convex relative.

    a = G f + c

f are the forces of the contacts and a their relative accelerations, three numbers a contact: along
two tangents, then along the normal; G is symmetric. mu (nc,) are the coefficients of friction. A
contact slides along `slip` (nc, 2), the unit vector of its tangential velocity, or has none (zeros)
and sticks or is about to slide. Coulomb's law, with f_n >= 0, a_n >= 0, a_n f_n = 0:

| the contact | its friction |
|---|---|
| slides | f_t = -mu f_n slip |
| sticks | |f_t| <= mu f_n and a_t = 0 |
| begins to slide | f_t = -mu f_n a_t/|a_t| |
"""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag

from chasles.contact.complementarity import Infeasible, Iterated, checked_problem, lemke
from chasles.contact.quadratic import optional

Array = Any

ACCURATE = 1e-10
"""How well Coulomb's law must hold, beside the largest |c|."""

ROUNDS = 100
"""Cone programs at most for Coulomb's law; one to three are usual."""

POLISH = 20
"""Steps of Newton's method at most after each of them."""

MANY = 12
"""Sliding contacts up to which all cases are looked at where a solution need not be unique."""

SOLVER = 1e-10
"""Tolerances of Clarabel; with less it may not end."""


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
    return _solved(_Law(*_checked("coulomb", G, c, mu, slip)))


def convex(G: Array, c: Array, mu: Array, slip: Array = None) -> np.ndarray:
    """Forces f (nc, 3) of the convex law: Coulomb's without De Saxce's correction.

    Of contacts that do not slide it is the `cone_program`, which always has an answer where
    contacts can be kept, the one that dissipates most (Anitescu 2006). It differs from Coulomb's
    law where a contact begins to slide: there a_n = mu |a_t| instead of 0, so that the bodies part
    as if they swelled (dilation). Contacts that slide already are dragged as by Coulomb's law.
    """
    return _solved(_Law(*_checked("convex", G, c, mu, slip), dilates=True))


class _Law(NamedTuple):
    """A problem, of one state or a batch, with Coulomb's law or the convex one."""

    G: np.ndarray
    c: np.ndarray
    mu: np.ndarray
    slip: np.ndarray
    dilates: bool = False

    @property
    def sticks(self) -> np.ndarray:
        """Which contacts have a cone: friction, and no velocity that says where it points."""
        return (self.mu > 0.0) & ~np.any(self.slip != 0.0, axis=-1)

    @property
    def weight(self) -> np.ndarray:
        """A number for each block of G, no less than its eigenvalues: (..., nc, 1)."""
        n = self.mu.shape[-1]
        blocks = self.G.reshape(*self.G.shape[:-2], n, 3, n, 3)
        own = np.stack([blocks[..., i, :, i, :] for i in range(n)], axis=-3)
        return np.linalg.norm(own, axis=(-1, -2))[..., None]

    def accelerations(self, f: np.ndarray) -> np.ndarray:
        """a = G f + c, of the shape of f."""
        flat = f.reshape(*f.shape[:-2], -1, 1)
        return ((self.G @ flat)[..., 0] + self.c).reshape(f.shape)

    def dilation(self, a: np.ndarray) -> np.ndarray:
        """The correction mu |a_t| of normal accelerations: (..., nc)."""
        return np.where(self.sticks & (not self.dilates), self.mu * _length(a[..., :2]), 0.0)

    def residual(self, f: np.ndarray) -> np.ndarray:
        """How far f is from the law: (...), in the units of a; zero where it holds.

        The largest entry of weight f - P(weight f - a - correction), with P the projection on the
        cone, or on the ray of a contact that slides.
        """
        scaled = self.weight * f
        wanted = allowed(self.target(scaled, self.accelerations(f)), self.mu, self.slip)
        return np.max(np.abs(scaled - wanted), axis=(-1, -2), initial=0.0)

    def target(self, scaled: np.ndarray, a: np.ndarray) -> np.ndarray:
        """What is projected: forces in the units of a, less accelerations and correction."""
        target = scaled - a
        target[..., 2] -= self.dilation(a)
        return target


def _solved(law: _Law) -> np.ndarray:
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


def _polished(law: _Law, f: np.ndarray, limit: float) -> np.ndarray:
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
        direction = a[:, :2] / np.where(_length(a[:, :2]) > 0.0, _length(a[:, :2]), 1.0)[:, None]
        corrected[:, 2, :2] = np.where(law.dilation(a) > 0.0, law.mu, 0.0)[:, None] * direction
        slopes = [_slope(*row) for row in zip(target, law.mu, law.slip, law.sticks, strict=True)]
        jacobian = scale - block_diag(*slopes) @ (scale - block_diag(*corrected) @ law.G)
        f = f - np.linalg.lstsq(jacobian, wrong.ravel(), rcond=1e-13)[0].reshape(n, 3)
    return f


def _slope(target: np.ndarray, mu: float, slip: np.ndarray, sticks: bool) -> np.ndarray:
    """The derivative of `allowed` by its target, of one contact: (3, 3)."""
    size = float(_length(target[:2]))
    if not sticks:
        return np.outer([*(-mu * slip), 1.0], [0.0, 0.0, float(target[2] > 0.0)])
    if size <= mu * target[2]:
        return np.eye(3)
    if target[2] + mu * size <= 0.0:
        return np.zeros((3, 3))
    u = target[:2] / size
    edge = np.array([*(mu * u), 1.0])
    slope = np.outer(edge, edge) / (1.0 + mu * mu)
    slope[:2, :2] += mu * (edge @ target) / (1.0 + mu * mu) / size * (np.eye(2) - np.outer(u, u))
    return slope


def allowed(target: np.ndarray, mu: np.ndarray, slip: np.ndarray) -> np.ndarray:
    """The forces that friction allows nearest to `target` (..., 3): in the cone, or dragged."""
    normal = np.maximum(target[..., 2:], 0.0)
    dragged = np.concatenate([-mu[..., None] * normal * slip, normal], axis=-1)
    sticks = (mu > 0.0) & ~np.any(slip != 0.0, axis=-1)
    return np.where(sticks[..., None], project(target, mu), dragged)


def project(f: Array, mu: Array) -> np.ndarray:
    """The point of the cone |f_t| <= mu f_n that is nearest to f (..., 3); mu broadcasts."""
    f, mu = np.asarray(f, dtype=float), np.asarray(mu, dtype=float)
    normal, size = f[..., 2], _length(f[..., :2])
    s = np.maximum(normal + mu * size, 0.0) / (1.0 + mu * mu)
    ratio = mu * s / np.where(size > 0.0, size, 1.0)
    on_cone = np.concatenate([ratio[..., None] * f[..., :2], s[..., None]], axis=-1)
    return np.where((size <= mu * normal)[..., None], f, on_cone)


def _sliding(law: _Law) -> np.ndarray:
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


def cone_program(G: Array, c: Array, mu: Array) -> np.ndarray:
    """Forces f (nc, 3) that minimise f'G f / 2 + f'c over the cones |f_t| <= mu f_n.

    By Clarabel, to about nine digits; see `convex`. Without a minimum it is `Infeasible`.
    """
    G, c, mu, slip = _checked("cone_program", G, c, mu, None)
    n = len(mu)
    used = np.column_stack([mu > 0.0, mu > 0.0, np.ones(n, dtype=bool)]).ravel()
    unit = np.repeat(1.0 / np.sqrt(_Law(G, c, mu, slip).weight[:, 0]), 3)[used]
    size = np.max(np.abs(unit * c[used])) or 1.0
    P = unit[:, None] * G[np.ix_(used, used)] * unit
    rows = [np.array([[0, 0, m], [1, 0, 0], [0, 1, 0]]) if m > 0.0 else np.eye(1) for m in mu]
    f = np.zeros(3 * n)
    f[used] = size * unit * _least(P, unit * c[used] / size, rows)
    return f.reshape(n, 3)


def _least(P: np.ndarray, c: np.ndarray, rows: list[np.ndarray]) -> np.ndarray:
    """The x that minimises x'P x / 2 + x'c, each block of rows times its part of x in a cone.

    Blocks of 3 give Clarabel's second-order cone, first entry >= length of the others; of 1 a ray.
    """
    clarabel = optional("clarabel")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = SOLVER
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(P)),
        c,
        sparse.csc_matrix(-block_diag(*rows)),
        np.zeros(len(c)),
        [
            clarabel.SecondOrderConeT(3) if len(k) == 3 else clarabel.NonnegativeConeT(1)
            for k in rows
        ],
        settings,
    ).solve()
    status = str(solution.status)
    if status in ("DualInfeasible", "AlmostDualInfeasible"):
        raise Infeasible(
            "cone_program: the program is unbounded: no forces keep the contacts from penetrating; "
            "tolerate a little penetration, or look at the contact geometry"
        )
    if status not in ("Solved", "AlmostSolved"):
        raise ArithmeticError(f"cone_program: Clarabel found no solution ({status})")
    return np.array(solution.x)


def polyhedral(G: Array, c: Array, mu: Array, slip: Array = None, *, facets: int = 8) -> np.ndarray:
    """Forces f (nc, 3) with pyramids of `facets` sides in the place of cones.

    A linear complementarity problem by Lemke's method, which always has an answer where contacts
    can be kept (Stewart and Trinkle 1996; Anitescu and Potra 1997). The pyramids stand within the
    cones: friction may be less than Coulomb's by 1 - cos(pi/facets), and its direction off by
    pi/facets.
    """
    G, c, mu, slip = _checked("polyhedral", G, c, mu, slip)
    if not isinstance(facets, int) or facets < 3:
        raise ValueError(f"polyhedral: facets must be an integer from 3 on, not {facets!r}")
    law = _Law(G, c, mu, slip)
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


def _batch(G: Array, c: Array, mu: Array, slip: Array, dilates: bool) -> _Law:
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
    return _Law(G, c, np.broadcast_to(mu, (*lead, n)), slip, dilates)


def _length(v: np.ndarray) -> np.ndarray:
    return np.linalg.norm(v, axis=-1)


def _checked(
    name: str, G: Array, c: Array, mu: Array, slip: Array
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Arrays of one problem, or an error that names the function."""
    mu = np.atleast_1d(np.asarray(mu, dtype=float))
    n = len(mu)
    G, c = checked_problem(name, G, c)
    slip = np.zeros((n, 2)) if slip is None else np.asarray(slip, dtype=float)
    if mu.shape != (n,) or len(c) != 3 * n or slip.shape != (n, 2):
        raise ValueError(
            f"{name}: {n} coefficients mu need c of {3 * n} numbers and slip ({n}, 2), not "
            f"{c.shape} and {slip.shape}"
        )
    if not (np.all(mu >= 0.0) and np.all(np.isfinite(mu)) and np.all(np.isfinite(slip))):
        raise ValueError(f"{name}: mu must be finite and not negative, slip finite")
    return G, c, mu, slip
