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

With torsional friction there are four numbers: the third tangent is the turn about the normal, in
such units of length that the moment's bound is mu f_n too. Forces and moment then share one cone,
whose sections are ellipsoids (Howe and Cutkosky 1996).
"""

from typing import Any, NamedTuple

import numpy as np
import scipy

from chasles.errors import ConvergenceError, InputError
from chasles.motion.solvers.complementarity import Infeasible, checked_problem
from chasles.motion.solvers.quadratic import optional

Array = Any

REACH = 1e-13
"""The part of the largest entry of G, or of c, that is nothing but rounding."""

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
    def width(self) -> int:
        """Numbers a contact: 3, or 4 with torsion."""
        return self.slip.shape[-1] + 1

    @property
    def weight(self) -> np.ndarray:
        """A positive number for each block of G, no less than its eigenvalues: (..., nc, 1)."""
        n, wide = self.mu.shape[-1], self.width
        blocks = self.G.reshape(*self.G.shape[:-2], n, wide, n, wide)
        own = np.stack([blocks[..., i, :, i, :] for i in range(n)], axis=-3)
        size = np.linalg.norm(own, axis=(-1, -2))[..., None]
        return np.where(size > 0.0, size, 1.0)

    def accelerations(self, f: np.ndarray) -> np.ndarray:
        """a = G f + c, of the shape of f."""
        flat = f.reshape(*f.shape[:-2], -1, 1)
        return ((self.G @ flat)[..., 0] + self.c).reshape(f.shape)

    def dilation(self, a: np.ndarray) -> np.ndarray:
        """The correction mu |a_t| of normal accelerations: (..., nc)."""
        return np.where(self.sticks & (not self.dilates), self.mu * length(a[..., :-1]), 0.0)

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
        target[..., -1] -= self.dilation(a)
        return target


def allowed(target: np.ndarray, mu: np.ndarray, slip: np.ndarray) -> np.ndarray:
    """What friction allows, nearest to a target (..., 3 or 4): in the cone, or dragged."""
    normal = np.maximum(target[..., -1:], 0.0)
    dragged = np.concatenate([-mu[..., None] * normal * slip, normal], axis=-1)
    sticks = (mu > 0.0) & ~np.any(slip != 0.0, axis=-1)
    return np.where(sticks[..., None], project(target, mu), dragged)


def project(f: Array, mu: Array) -> np.ndarray:
    """The point of the cone |f_t| <= mu f_n that is nearest to f (..., 3 or 4); mu broadcasts."""
    f, mu = np.asarray(f, dtype=float), np.asarray(mu, dtype=float)
    normal, size = f[..., -1], length(f[..., :-1])
    s = np.maximum(normal + mu * size, 0.0) / (1.0 + mu * mu)
    ratio = mu * s / np.where(size > 0.0, size, 1.0)
    on_cone = np.concatenate([ratio[..., None] * f[..., :-1], s[..., None]], axis=-1)
    return np.where((size <= mu * normal)[..., None], f, on_cone)


def slope(target: np.ndarray, mu: float, slip: np.ndarray, sticks: bool) -> np.ndarray:
    """The derivative of `allowed` by its target, of one contact: (3, 3) or (4, 4)."""
    wide, size = len(target), float(length(target[:-1]))
    if not sticks:
        return np.outer([*(-mu * slip), 1.0], float(target[-1] > 0.0) * np.eye(wide)[-1])
    if size <= mu * target[-1]:
        return np.eye(wide)
    if target[-1] + mu * size <= 0.0:
        return np.zeros((wide, wide))
    u = target[:-1] / size
    edge = np.array([*(mu * u), 1.0])
    slope = np.outer(edge, edge) / (1.0 + mu * mu)
    across = np.eye(wide - 1) - np.outer(u, u)
    slope[:-1, :-1] += mu * (edge @ target) / (1.0 + mu * mu) / size * across
    return slope


def cone_program(G: Array, c: Array, mu: Array) -> np.ndarray:
    """Forces f (nc, 3 or 4) that minimise f'G f / 2 + f'c over the cones |f_t| <= mu f_n.

    By Clarabel, to about nine digits; see `convex`. Without a minimum it is `Infeasible`.
    """
    G, c, mu, slip = checked("cone_program", G, c, mu, None)
    law = Law(G, c, mu, slip)
    rubs = (mu > 0.0)[:, None] & (np.diagonal(G).reshape(-1, law.width)[:, :-1] > 0.0)
    used = np.column_stack([rubs, np.ones(len(mu), dtype=bool)]).ravel()
    unit = np.repeat(1.0 / np.sqrt(law.weight[:, 0]), law.width)[used]
    size = np.max(np.abs(unit * c[used])) or 1.0
    P = unit[:, None] * G[np.ix_(used, used)] * unit
    rows = [_cone(m, int(k)) for m, k in zip(mu, np.sum(rubs, axis=1), strict=True)]
    f = np.zeros_like(c)
    f[used] = size * unit * _least(P, unit * c[used] / size, rows)
    return f.reshape(-1, law.width)


def _cone(mu: float, tangents: int) -> np.ndarray:
    """What turns k tangents and a normal into mu times the normal, then the tangents."""
    rows = np.roll(np.eye(tangents + 1), 1, axis=0)
    return rows * np.append(np.ones(tangents), mu) if tangents else rows


def _least(P: np.ndarray, c: np.ndarray, rows: list[np.ndarray]) -> np.ndarray:
    """The x that minimises x'P x / 2 + x'c, each block of rows times its part of x in a cone.

    Clarabel's second-order cone is first entry >= length of the others; a block of 1 is a ray.
    """
    clarabel = optional("clarabel")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = SOLVER
    solution = clarabel.DefaultSolver(
        scipy.sparse.csc_matrix(np.triu(P)),
        c,
        scipy.sparse.csc_matrix(-scipy.linalg.block_diag(*rows)),
        np.zeros(len(c)),
        [
            clarabel.SecondOrderConeT(len(k)) if len(k) > 1 else clarabel.NonnegativeConeT(1)
            for k in rows
        ],
        settings,
    ).solve()
    status = str(solution.status)
    if status in ("DualInfeasible", "AlmostDualInfeasible"):
        problem = "the program is unbounded: no forces keep the contacts from penetrating"
        remedy = "tolerate a little penetration, or look at the contact geometry"
        raise Infeasible("E-CONTACT-008", problem, remedy, part="cone_program")
    if status not in ("Solved", "AlmostSolved"):
        problem = f"Clarabel found no solution ({status})"
        raise ConvergenceError("E-CONTACT-009", problem, part="cone_program")
    return np.array(solution.x)


def checked(
    name: str, G: Array, c: Array, mu: Array, slip: Array
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Arrays of one problem, or an error that names the function."""
    mu = np.atleast_1d(np.asarray(mu, dtype=float))
    n = len(mu)
    G, c = checked_problem(name, G, c)
    wide = 4 if n and len(c) == 4 * n else 3
    slip = np.zeros((n, wide - 1)) if slip is None else np.asarray(slip, dtype=float)
    if mu.shape != (n,) or len(c) != wide * n or slip.shape != (n, wide - 1):
        problem = (
            f"{n} coefficients mu need c of {3 * n} numbers and slip ({n}, 2), or {4 * n} and "
            f"({n}, 3) with torsion, not {c.shape} and {slip.shape}"
        )
        raise InputError("E-CONTACT-010", problem, part=name)
    if not (np.all(mu >= 0.0) and np.all(np.isfinite(mu)) and np.all(np.isfinite(slip))):
        problem = "mu must be finite and not negative, slip finite"
        raise InputError("E-CONTACT-011", problem, part=name)
    for k in out_of_reach(G, c, wide):
        problem = f"contact {k} closes, and no contact force can move it along its normal"
        remedy = "look at its bodies and at their joints"
        raise Infeasible("E-CONTACT-012", problem, remedy, ray=np.eye(n)[k], part=name)
    return G, c, mu, slip


def out_of_reach(G: np.ndarray, c: np.ndarray, wide: int) -> np.ndarray:
    """Numbers of the contacts that close, and whose normal no force moves: a row of zeros."""
    still = np.diagonal(G)[wide - 1 :: wide] <= REACH * np.max(np.diagonal(G), initial=0.0)
    closes = c[wide - 1 :: wide] < -REACH * np.max(np.abs(c), initial=0.0)
    return np.flatnonzero(still & closes)


def length(v: np.ndarray) -> np.ndarray:
    return np.linalg.norm(v, axis=-1)
