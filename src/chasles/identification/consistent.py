"""Physically consistent parameters: every body's pseudo-inertia is positive definite.

The pseudo-inertia of a body is P = [[S, h], [h', m]] with the second moments S of its mass
distribution, S = tr(I)/2 1 - I, first moment h and mass m. A rigid body can have these parameters
if P is positive definite (Wensing, Kim and Slotine 2018). With P = L (1 + Z) L', where L is the
factor of the prior's P, the constant pull-back metric becomes the norm of Z (Lee, Wensing and Park
2020).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from chasles.errors import InputError, ModelError
from chasles.identification.linear import JOINT_TERMS
from chasles.model.given import a_name, a_number
from chasles.model.ranges import LARGEST

LEAST = 1e-6
"""Smallest eigenvalue of 1 + Z; it limits how far a body can shrink relative to its prior."""

STEPS, DONE = 100, 1e-10
"""Largest number of Newton steps of the entropic prior, and its final decrement."""

DEVIATIONS = (1e-9, 1e9)
"""Smallest and largest deviation of the prior; beyond these, data or prior have no effect."""

PLACES = [(i, j) for j in range(4) for i in range(j + 1)]
"""Indices of the upper triangle of a 4x4 matrix, column by column."""


def pseudo_inertia(p: np.ndarray) -> np.ndarray:
    """Return P (4, 4) of a body's ten parameters."""
    m, h, (xx, yy, zz, xy, xz, yz) = p[0], p[1:4], p[4:]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    P = np.zeros((4, 4))
    P[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    P[:3, 3] = P[3, :3] = h
    P[3, 3] = m
    return P


def parameters(P: np.ndarray) -> np.ndarray:
    """Return the ten parameters of a pseudo-inertia."""
    inertia = np.trace(P[:3, :3]) * np.eye(3) - P[:3, :3]
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia
    return np.array([P[3, 3], *P[:3, 3], xx, yy, zz, xy, xz, yz])


@dataclass(frozen=True)
class Prior:
    """Prior inertias of a mechanism, and coordinates z relative to them: p = nominal + map z.

    z (10 n + joint terms): svec(Z) of each body, followed by the joint terms themselves. raised:
    bodies whose pseudo-inertia was not positive definite and was increased.
    """

    nominal: np.ndarray
    map: np.ndarray
    bodies: int
    raised: tuple[int, ...]

    def values(self, z: np.ndarray) -> np.ndarray:
        """Return the parameters."""
        return self.nominal + self.map @ z


def prior(nominal: np.ndarray, bodies: int, mass: float, length: float) -> Prior:
    """Return the prior of parameters; mass and length: scales for bodies without inertia."""
    start, blocks, raised = nominal.copy(), np.eye(len(nominal)), []
    for k in range(bodies):
        at = slice(10 * k, 10 * k + 10)
        P = pseudo_inertia(nominal[at])
        scale = np.diag([length, length, length, 1.0]) * np.sqrt(mass)
        unit = np.linalg.solve(scale, np.linalg.solve(scale, P).T)
        values, axes = np.linalg.eigh(0.5 * (unit + unit.T))
        floor = max(1e-4 * values[-1], 1e-6)
        if values[0] < 1e-9 * max(values[-1], 1e-3):
            raised.append(k)
            unit = axes @ np.diag(np.maximum(values, floor)) @ axes.T
            P = scale @ unit @ scale.T
            start[at] = parameters(P)
        L = np.linalg.cholesky(P)
        blocks[at, at] = np.column_stack([parameters(L @ e @ L.T) for e in _units()])
    start[10 * bodies :] = 0.0
    return Prior(start, blocks, bodies, tuple(raised))


def _units() -> list[np.ndarray]:
    """Return symmetric matrices of unit norm, in the order of `PLACES`."""
    found = []
    for i, j in PLACES:
        e = np.zeros((4, 4))
        e[i, j] = e[j, i] = 1.0 if i == j else np.sqrt(0.5)
        found.append(e)
    return found


UNITS = np.array(_units())


def matrices(z: np.ndarray, bodies: int) -> np.ndarray:
    """Return 1 + Z (bodies, 4, 4)."""
    return np.eye(4) + np.tensordot(z[: 10 * bodies].reshape(bodies, 10), UNITS, 1)


@dataclass(frozen=True)
class Problem:
    """Least squares 1/2 |A z - b|^2 + 1/(2 deviation^2) |Z|^2 over consistent parameters.

    signs: indices of entries of z, from 10 * bodies, that must be non-negative.
    """

    A: np.ndarray
    b: np.ndarray
    bodies: int
    deviation: float
    signs: np.ndarray

    def weights(self) -> np.ndarray:
        """Return the weights of the squares of z: those of the prior, and tiny ones elsewhere."""
        n, own = self.A.shape[1], 10 * self.bodies
        size = np.sum(self.A**2) + own * self.deviation**-2
        return np.append(np.full(own, self.deviation**-2), np.full(n - own, 1e-13 * size / n))

    def hessian(self) -> np.ndarray:
        """Return the second derivative of the objective, without an entropic prior."""
        return np.asarray(self.A.T @ self.A + np.diag(self.weights()))

    def unbounded(self) -> np.ndarray:
        """Return z with the smallest objective, consistent or not.

        Uses orthogonal factors, since data without noise may outweigh the prior by 1e26.
        """
        whole = np.vstack([self.A, np.diag(np.sqrt(self.weights()))])
        Q, R = np.linalg.qr(whole)
        return np.linalg.solve(R, Q[: len(self.b)].T @ self.b)

    def feasible(self, z: np.ndarray) -> bool:
        """Return True if every body and every term is physically possible."""
        signed = z[self.signs]
        least = np.linalg.eigvalsh(matrices(z, self.bodies)).min(initial=np.inf)
        return bool(least >= LEAST and np.all(signed >= 0.0))


def solved(problem: Problem, kind: Literal["pull-back", "entropic"]) -> np.ndarray:
    """Return z with the smallest objective among consistent parameters."""
    if kind == "entropic":
        return _entropic(problem)
    z = problem.unbounded()
    return z if problem.feasible(z) else _conic(problem, problem.hessian())


def _conic(problem: Problem, H: np.ndarray) -> np.ndarray:
    """Solve the problem with linear matrix inequalities by Clarabel's interior-point method."""
    try:
        import clarabel
    except ImportError:
        remedy = "run pip install 'chasles[contact]', or use prior='entropic'"
        raise ModelError(
            "E-IDENT-002", "physically consistent parameters need clarabel", remedy
        ) from None
    from scipy.sparse import csc_matrix, vstack

    n, bodies = len(H), problem.bodies
    unit = np.eye(4) - LEAST * np.eye(4)
    offset = np.array([unit[i, j] * (1.0 if i == j else np.sqrt(2.0)) for i, j in PLACES])
    rows = [csc_matrix((-np.eye(n))[: 10 * bodies])]  # -z + s = unit: s in the cone
    cones: list[Any] = [clarabel.PSDTriangleConeT(4) for _ in range(bodies)]
    right = np.tile(offset, bodies)
    if len(problem.signs):
        rows.append(csc_matrix((-np.eye(n))[problem.signs]))
        cones.append(clarabel.NonnegativeConeT(len(problem.signs)))
        right = np.append(right, np.zeros(len(problem.signs)))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    scale = 1.0 / max(np.abs(np.diagonal(H)).max(initial=0.0), 1e-300)
    solver = clarabel.DefaultSolver(
        csc_matrix(np.triu(scale * H)),
        -scale * (problem.A.T @ problem.b),
        vstack(rows, format="csc"),
        right,
        cones,
        settings,
    )
    found = np.array(solver.solve().x)
    return _inside(problem, found)


def _inside(problem: Problem, z: np.ndarray) -> np.ndarray:
    """Move a solution that is outside the cone by rounding back towards the prior."""
    z = z.copy()
    z[problem.signs] = np.maximum(z[problem.signs], 0.0)
    for k in range(problem.bodies):
        at = slice(10 * k, 10 * k + 10)
        least = np.linalg.eigvalsh(np.eye(4) + np.tensordot(z[at], UNITS, 1))[0]
        if least < LEAST:
            z[at] *= (1.0 - LEAST) / (1.0 - least)
    return z


def _entropic(problem: Problem) -> np.ndarray:
    """Minimize with the prior (tr Z - log det(1 + Z)) / deviation^2, by damped Newton steps.

    The prior is the log-determinant (entropic) divergence of pseudo-inertias. It grows without
    bound at the edge of consistency, so that every step stays inside. Joint terms that must be
    non-negative have a barrier of the same kind.
    """
    n, bodies, weight = problem.A.shape[1], problem.bodies, problem.deviation**-2
    z = np.zeros(n)
    z[problem.signs] = 1.0
    data, pulled = problem.A.T @ problem.A, problem.A.T @ problem.b
    data = data + 1e-13 * np.trace(data) / max(n, 1) * np.eye(n)

    def objective(z: np.ndarray) -> float:
        if not np.all(np.abs(z) < LARGEST):
            return np.inf
        W, signed = matrices(z, bodies), z[problem.signs]
        if np.linalg.eigvalsh(W).min(initial=1.0) <= 0.0 or signed.min(initial=1.0) <= 0.0:
            return np.inf
        divergence = np.trace(W, axis1=1, axis2=2).sum() - np.linalg.slogdet(W)[1].sum()
        barrier = -1e-6 * np.log(signed).sum()
        return float(0.5 * z @ data @ z - pulled @ z + weight * divergence + barrier)

    for _ in range(STEPS):
        inverse = np.linalg.inv(matrices(z, bodies))
        gradient, H = data @ z - pulled, data.copy()
        for k in range(bodies):
            at = slice(10 * k, 10 * k + 10)
            turned = inverse[k] @ UNITS
            gradient[at] += weight * np.trace(UNITS - turned, axis1=1, axis2=2)
            H[at, at] += weight * np.einsum("aij,bji->ab", turned, turned)
        signed = z[problem.signs]
        gradient[problem.signs] -= 1e-6 / signed
        H[problem.signs, problem.signs] += 1e-6 / signed**2
        step = -np.linalg.solve(H, gradient)
        decrement = -gradient @ step
        if decrement < DONE:
            break
        share, before = 1.0, objective(z)
        while share > 1e-14 and not objective(z + share * step) <= before - 0.1 * share * decrement:
            share *= 0.5
        if share <= 1e-14:
            break
        z = z + share * step
    return z


def checked_prior(prior: str, deviation: Any) -> float:
    """Return the deviation; raise an error for an unknown prior."""
    if a_name("prior", prior, "identify") not in ("pull-back", "entropic"):
        problem = f"prior must be 'pull-back' or 'entropic', not {prior!r:.60}"
        raise InputError("E-IDENT-003", problem, part="identify")
    low, high = DEVIATIONS
    found = a_number("deviation", deviation, "identify")
    if not low <= found <= high:
        problem = f"deviation must be a number from {low:g} to {high:g}, not {deviation!r:.60}"
        raise InputError("E-IDENT-004", problem, part="identify")
    return found


def link_values(names: Mapping[str, list[str]], p: np.ndarray) -> dict[str, Any]:
    """Return mass, center and inertia by link name; the other links of a body become massless.

    names: maps each link to the links that move with it.
    """
    found: dict[str, Any] = {}
    for k, (link, others) in enumerate(names.items()):
        P = pseudo_inertia(p[10 * k : 10 * k + 10])
        m, c = P[3, 3], P[:3, 3] / P[3, 3]
        second = P[:3, :3] - m * np.outer(c, c)
        found |= {f"{link}.mass": m, f"{link}.center": c}
        found[f"{link}.inertia"] = np.trace(second) * np.eye(3) - second
        for other in others:
            found |= {f"{other}.mass": 0.0, f"{other}.inertia": np.zeros((3, 3))}
    return found


def joint_values(terms: tuple[str, ...], joints: tuple[str, ...], x: np.ndarray) -> dict[str, Any]:
    """Return armature, damping and friction of joints by name."""
    written = [term for term in JOINT_TERMS if term in terms and term != "offset"]
    flat = x.reshape(len(terms), len(joints)) if terms else x
    return {
        f"{joint}.{term}": float(flat[terms.index(term), k])
        for term in written
        for k, joint in enumerate(joints)
    }
