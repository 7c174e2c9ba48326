"""Cones of friction: the problem of forces at points of contact, projections and the cone program.

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

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag

from chasles.contact.complementarity import Infeasible, checked_problem
from chasles.contact.quadratic import optional

Array = Any

SOLVER = 1e-10
"""Tolerances of Clarabel; with less it may not end."""


class Law(NamedTuple):
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
        return np.where(self.sticks & (not self.dilates), self.mu * length(a[..., :2]), 0.0)

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


def allowed(target: np.ndarray, mu: np.ndarray, slip: np.ndarray) -> np.ndarray:
    """The forces that friction allows nearest to `target` (..., 3): in the cone, or dragged."""
    normal = np.maximum(target[..., 2:], 0.0)
    dragged = np.concatenate([-mu[..., None] * normal * slip, normal], axis=-1)
    sticks = (mu > 0.0) & ~np.any(slip != 0.0, axis=-1)
    return np.where(sticks[..., None], project(target, mu), dragged)


def project(f: Array, mu: Array) -> np.ndarray:
    """The point of the cone |f_t| <= mu f_n that is nearest to f (..., 3); mu broadcasts."""
    f, mu = np.asarray(f, dtype=float), np.asarray(mu, dtype=float)
    normal, size = f[..., 2], length(f[..., :2])
    s = np.maximum(normal + mu * size, 0.0) / (1.0 + mu * mu)
    ratio = mu * s / np.where(size > 0.0, size, 1.0)
    on_cone = np.concatenate([ratio[..., None] * f[..., :2], s[..., None]], axis=-1)
    return np.where((size <= mu * normal)[..., None], f, on_cone)


def slope(target: np.ndarray, mu: float, slip: np.ndarray, sticks: bool) -> np.ndarray:
    """The derivative of `allowed` by its target, of one contact: (3, 3)."""
    size = float(length(target[:2]))
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


def cone_program(G: Array, c: Array, mu: Array) -> np.ndarray:
    """Forces f (nc, 3) that minimise f'G f / 2 + f'c over the cones |f_t| <= mu f_n.

    By Clarabel, to about nine digits; see `convex`. Without a minimum it is `Infeasible`.
    """
    G, c, mu, slip = checked("cone_program", G, c, mu, None)
    n = len(mu)
    used = np.column_stack([mu > 0.0, mu > 0.0, np.ones(n, dtype=bool)]).ravel()
    unit = np.repeat(1.0 / np.sqrt(Law(G, c, mu, slip).weight[:, 0]), 3)[used]
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


def checked(
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


def length(v: np.ndarray) -> np.ndarray:
    return np.linalg.norm(v, axis=-1)
