"""Physically consistent parameters: every body's pseudo-inertia is positive definite.

The pseudo-inertia of a body is P = [[S, h], [h', m]] with the mass m, the first moment h, and the
second moments S = (tr(I)/2) 1 - I of the mass distribution. A rigid body can have these parameters
if P is positive definite (Wensing, Kim and Slotine 2018). With P = L (1 + Z) L', where L is the
Cholesky factor of the prior's P, the constant pull-back metric becomes the norm of Z (Lee, Wensing
and Park 2020).
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from chasles.errors import InputError
from chasles.identification.unknowns import parameters, pseudo_inertia
from chasles.model.given import a_name, a_number
from chasles.model.ranges import LARGEST
from chasles.names import one_of

Kind = Literal["pull-back", "entropic", "log-cholesky"]
"""Measures of distance between inertial parameters and their prior."""

LEAST = 1e-6
"""Lower bound for the eigenvalues of 1 + Z, a body's pseudo-inertia relative to its prior."""

STEPS, DONE = 100, 1e-10
"""Limits of Newton's method.

`STEPS` is the maximum number of steps per barrier weight. `_entropic` stops when the Newton
decrement is below `DONE`.
"""

GAP = 1e-12
"""Convergence tolerance for the objective, relative to the larger of its minimum and 1."""

DEVIATIONS = (1e-9, 1e9)
"""Range of the prior's standard deviation.

Below this range, the data have no effect; above it, the prior has no effect.
"""

PLACES = [(i, j) for j in range(4) for i in range(j + 1)]
"""Indices of the upper triangle of a 4x4 matrix, column by column."""


@dataclass(frozen=True)
class Prior:
    """Prior of the parameters p = nominal + map z of all bodies and joints, with coordinates z.

    The pseudo-inertia of a body is L (1 + Z) L', where L is the Cholesky factor of its prior. The
    coordinates z contain svec(Z) of each body (10 entries), followed by the joint terms.

    Attributes
    ----------
    nominal, map
        Prior values of p, and the matrix that maps z to the change in p.
    bodies
        Number of bodies.
    raised
        Indices of bodies whose pseudo-inertia was not positive definite and was increased.
    """

    nominal: np.ndarray
    map: np.ndarray
    bodies: int
    raised: tuple[int, ...]

    def values(self, z: np.ndarray) -> np.ndarray:
        """Return the parameters p for coordinates z."""
        return self.nominal + self.map @ z


def prior(nominal: np.ndarray, bodies: int, mass: float, length: float) -> Prior:
    """Return the prior: the nominal inertial parameters of bodies, and zero for joint parameters.

    `mass` and `length` are a typical mass and length, used for bodies without inertia.
    """
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
    """Return an orthonormal basis of the symmetric 4x4 matrices, in the order of `PLACES`."""
    found = []
    for i, j in PLACES:
        e = np.zeros((4, 4))
        e[i, j] = e[j, i] = 1.0 if i == j else np.sqrt(0.5)
        found.append(e)
    return found


UNITS = np.array(_units())


def matrices(z: np.ndarray, bodies: int) -> np.ndarray:
    """Return the matrix 1 + Z of each body (bodies, 4, 4) for coordinates z (see `Prior`)."""
    return np.eye(4) + np.tensordot(z[: 10 * bodies].reshape(bodies, 10), UNITS, 1)


@dataclass(frozen=True)
class Problem:
    """Least-squares problem for physically consistent parameters, in the coordinates of `Prior`.

    The objective is 1/2 |A z - b|^2 + 1/(2 deviation^2) |Z|^2. The equations A z = b describe the
    measurements, and Z contains the relative changes of all pseudo-inertias.

    `G` and `g` define the linear inequalities G z + g >= 0, which keep joint terms such as damping
    nonnegative and, if requested, keep the mass distribution of each body inside a box or ellipsoid
    around its shapes. `inside` is a vector z that satisfies all inequalities strictly.
    """

    A: np.ndarray
    b: np.ndarray
    bodies: int
    deviation: float
    G: np.ndarray
    g: np.ndarray
    inside: np.ndarray

    def weights(self) -> np.ndarray:
        """Return weights of z^2 in the objective: 1/deviation^2, or almost 0 for joint terms."""
        n, own = self.A.shape[1], 10 * self.bodies
        size = np.sum(self.A**2) + own * self.deviation**-2
        return np.append(np.full(own, self.deviation**-2), np.full(n - own, 1e-13 * size / n))

    def unbounded(self) -> np.ndarray:
        """Return the coordinates z that minimize the objective without constraints.

        QR factorization is used, since noise-free data may outweigh the prior by a factor of 1e26.
        """
        whole = np.vstack([self.A, np.diag(np.sqrt(self.weights()))])
        Q, R = np.linalg.qr(whole)
        return np.linalg.solve(R, Q[: len(self.b)].T @ self.b)

    def feasible(self, z: np.ndarray) -> bool:
        """Return True if all pseudo-inertias are positive definite and all inequalities hold."""
        least = np.linalg.eigvalsh(matrices(z, self.bodies)).min(initial=np.inf)
        return bool(least >= LEAST and np.all(self.slack(z) >= 0.0))

    def slack(self, z: np.ndarray) -> np.ndarray:
        """Return the slack G z + g of the linear inequalities; negative entries are violations."""
        return np.asarray(self.G @ z + self.g)


def solved(problem: Problem, kind: Literal["pull-back", "entropic"]) -> np.ndarray:
    """Return the coordinates z of the consistent parameters that minimize the objective."""
    if kind == "entropic":
        return _entropic(problem)
    z = problem.unbounded()
    return z if problem.feasible(z) else _bounded(problem, z)


def _bounded(problem: Problem, wanted: np.ndarray) -> np.ndarray:
    """Minimize the objective subject to linear matrix inequalities, by a barrier method.

    `wanted` is the unconstrained minimizer. The primal method follows the central path and is
    affine invariant, so joints whose noise differs by many orders of magnitude need no scaling.
    Newton steps are least-squares problems, solved by QR factorization as in `Problem.unbounded`.
    With barrier weight mu, the objective exceeds its minimum by at most mu times the order of the
    barrier (Nesterov and Nemirovskii 1994).
    """
    bodies = problem.bodies
    rows = np.vstack([problem.A, np.diag(np.sqrt(problem.weights()))])
    right = np.append(problem.b, np.zeros(rows.shape[1]))
    inside, share = problem.inside, 1.0
    while _barrier(problem, inside + share * (wanted - inside)) == np.inf:
        share *= 0.5
    z = inside + 0.5 * share * (wanted - inside)
    order = 4 * bodies + len(problem.g)
    mu = float(np.sum((rows @ z - right) ** 2)) / order

    def objective(z: np.ndarray) -> float:
        return float(0.5 * np.sum((rows @ z - right) ** 2)) + mu * _barrier(problem, z)

    while True:
        for _ in range(STEPS):
            factor, slope = _barrier_rows(problem, z)
            J = np.vstack([rows, np.sqrt(mu) * factor])
            residual = np.concatenate([rows @ z - right, np.sqrt(mu) * slope])
            Q, R = np.linalg.qr(J)
            step = -np.linalg.solve(R, Q.T @ residual)
            decrement = float(np.sum((Q.T @ residual) ** 2))
            share, before = 1.0, objective(z)
            while share > 1e-14 and not objective(z + share * step) <= before - 1e-9 * decrement:
                share *= 0.5
            z = z + (share if share > 1e-14 else 0.0) * step
            if decrement < 0.1 * mu or share <= 1e-14:
                break
        cost = 0.5 * float(np.sum((rows @ z - right) ** 2))
        if mu * order <= GAP * max(cost, 1.0):
            return z
        mu *= 0.05


def _barrier(problem: Problem, z: np.ndarray) -> float:
    """Return the logarithmic barrier for parameters z, or infinity if z is inconsistent.

    Each body is tested by a Cholesky factorization, because the same factorization must also
    succeed in `_barrier_rows`.
    """
    slack = problem.slack(z)
    if not slack.min(initial=1.0) > 0.0:
        return np.inf
    try:
        roots = np.linalg.cholesky(matrices(z, problem.bodies) - LEAST * np.eye(4))
    except np.linalg.LinAlgError:
        return np.inf
    diagonals = np.diagonal(roots, axis1=1, axis2=2)
    return float(-2.0 * np.log(diagonals).sum() - np.log(slack).sum())


def _barrier_rows(problem: Problem, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return B and s such that the barrier has the Hessian B.T @ B and the gradient B.T @ s.

    The barrier of each body is -log det W for a positive definite matrix W. With W = L L', the
    derivative of -log det W along U equals the derivative at the identity along L^-1 U L^-T.
    """
    bodies, slack = problem.bodies, problem.slack(z)
    B = np.zeros((10 * bodies + len(slack), len(z)))
    roots = np.linalg.cholesky(matrices(z, bodies) - LEAST * np.eye(4))
    for k, L in enumerate(roots):
        half = np.linalg.solve(L, UNITS)
        turned = np.linalg.solve(L, np.swapaxes(half, 1, 2))
        at = slice(10 * k, 10 * k + 10)
        B[at, at] = np.tensordot(UNITS, turned, axes=([1, 2], [1, 2]))
    B[10 * bodies :] = problem.G / slack[:, None]
    slope = [-float(i == j) for i, j in PLACES] * bodies
    return B, np.append(slope, -np.ones(len(slack)))


def _entropic(problem: Problem) -> np.ndarray:
    """Minimize the objective with the entropic prior, by damped Newton steps.

    The prior is (tr Z - log det(1 + Z)) / deviation^2, the log-determinant (entropic) divergence of
    pseudo-inertias. The divergence grows without bound at the boundary of consistent parameters, so
    every step remains consistent. Linear inequalities are enforced by a small logarithmic barrier.
    """
    n, bodies, weight = problem.A.shape[1], problem.bodies, problem.deviation**-2
    z, G = problem.inside, problem.G
    data, pulled = problem.A.T @ problem.A, problem.A.T @ problem.b
    data = data + 1e-13 * np.trace(data) / max(n, 1) * np.eye(n)

    def objective(z: np.ndarray) -> float:
        if not np.all(np.abs(z) < LARGEST):
            return np.inf
        W, slack = matrices(z, bodies), problem.slack(z)
        if np.linalg.eigvalsh(W).min(initial=1.0) <= 0.0 or slack.min(initial=1.0) <= 0.0:
            return np.inf
        divergence = np.trace(W, axis1=1, axis2=2).sum() - np.linalg.slogdet(W)[1].sum()
        barrier = -1e-6 * np.log(slack).sum()
        return float(0.5 * z @ data @ z - pulled @ z + weight * divergence + barrier)

    for _ in range(STEPS):
        inverse = np.linalg.inv(matrices(z, bodies))
        gradient, H = data @ z - pulled, data.copy()
        for k in range(bodies):
            at = slice(10 * k, 10 * k + 10)
            turned = inverse[k] @ UNITS
            gradient[at] += weight * np.trace(UNITS - turned, axis1=1, axis2=2)
            H[at, at] += weight * np.einsum("aij,bji->ab", turned, turned)
        near = G / problem.slack(z)[:, None]
        gradient -= 1e-6 * near.sum(axis=0)
        H += 1e-6 * near.T @ near
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
    """Check the prior's name and standard deviation; return the standard deviation."""
    if a_name("prior", prior, "identify") not in get_args(Kind):
        problem = f"unknown prior {prior!r:.60}"
        raise InputError("E-IDENT-003", problem, one_of(prior, get_args(Kind)), part="identify")
    low, high = DEVIATIONS
    found = a_number("deviation", deviation, "identify")
    if not low <= found <= high:
        problem = f"`deviation` must be a number from {low:g} to {high:g}, not {deviation!r:.60}"
        raise InputError("E-IDENT-004", problem, part="identify")
    return found
