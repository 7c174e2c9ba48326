"""Consistent parameters in unconstrained coordinates: log-Cholesky factors of pseudo-inertias.

The pseudo-inertia of a body is L (1 + Z) L', where L is the Cholesky factor of its prior. Here
1 + Z = U U', with an upper triangular U whose diagonal entries are exponentials of coordinates.
Therefore every vector of coordinates describes a physically possible body (Rucker and Wensing
2022). The coordinates are zero at the prior.
"""

import numpy as np
import scipy

from chasles.identification.consistent import LEAST, PLACES, UNITS, Problem, matrices

STEPS, CHANGE = 200, 1e-13
"""Limits of the Newton iteration.

`STEPS` is the maximum number of steps. The iteration stops when the relative decrease of the
objective is at most `CHANGE`.
"""

DAMPING, FALL, RISE, MOST = 1e-4, 0.2, 5.0, 1e16
"""Levenberg-Marquardt damping, relative to squared column norms.

The damping starts at `DAMPING`, and is multiplied by `FALL` after a successful step and by `RISE`
after a failed step. The iteration stops if the damping reaches `MOST`.
"""

FLAT = 1e-4
"""Lower bound for the squared norms of the Jacobian's columns, as a fraction of the largest.

The norms scale the damping, and are very small for masses and joint parameters near zero.
"""


def log_cholesky(problem: Problem, start: np.ndarray) -> np.ndarray:
    """Return consistent parameters z that fit the equations A z = b, by Newton steps.

    z minimizes 1/2 |A z - b|^2 + 1/(2 deviation^2) |theta|^2, where `theta` contains the
    log-Cholesky coordinates of all bodies. Joint terms that must not be negative are squares of
    their coordinates. `start` is the initial value of z, which must be consistent. No step
    increases the objective. The Hessian is exact, with Levenberg-Marquardt damping.
    """
    n, own, weights = problem.A.shape[1], 10 * problem.bodies, problem.weights()
    signed = np.zeros(n, bool)
    signed[own:] = np.any(problem.G[:, own:] != 0.0, axis=0)

    def evaluated(x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        z, slope = _mapped(x, problem.bodies, signed)
        r = problem.A @ z - problem.b
        return float(r @ r + weights @ x**2), z, slope, problem.A.T @ r

    x, damping = _coordinates(start, problem.bodies, signed), DAMPING
    cost, z, slope, pulled = evaluated(x)
    for _ in range(STEPS):
        J, gradient = problem.A @ slope, slope.T @ pulled + weights * x
        H = J.T @ J + _bend(x, pulled, problem.bodies, signed) + np.diag(weights)
        scale = np.sum(J**2, axis=0) + weights
        scale = np.maximum(scale, FLAT * scale.max(initial=0.0))
        before = cost
        while damping < MOST:
            step = _step(H + damping * np.diag(scale), gradient)
            tried = None if step is None else evaluated(x + step)
            if step is not None and tried is not None and tried[0] <= before:
                x, (cost, z, slope, pulled) = x + step, tried
                damping = max(FALL * damping, 1e-14)
                break
            damping *= RISE
        if damping >= MOST or before - cost <= CHANGE * max(cost, 1.0):
            break
    return z


def _step(H: np.ndarray, gradient: np.ndarray) -> np.ndarray | None:
    """Return the Newton step, or None if the Hessian is not positive definite."""
    try:
        return np.asarray(scipy.linalg.cho_solve(scipy.linalg.cho_factor(H), -gradient))
    except (np.linalg.LinAlgError, ValueError):
        return None


def _bend(x: np.ndarray, pulled: np.ndarray, bodies: int, signed: np.ndarray) -> np.ndarray:
    """Return the Hessian of p' z w.r.t. the log-Cholesky coordinates x, where p = `pulled`."""
    found = np.zeros((len(x), len(x)))
    rows, columns = np.array(PLACES).T
    diagonal = rows == columns
    for k in range(bodies):
        at = slice(10 * k, 10 * k + 10)
        G = 2.0 * (1.0 - LEAST) * np.tensordot(pulled[at], UNITS, 1)
        entries, U = _factor(x[at])
        growth = np.where(diagonal, entries, 1.0)
        same = columns[:, None] == columns
        block = np.where(same, G[rows[:, None], rows], 0.0) * np.outer(growth, growth)
        found[at, at] = block + np.diag(np.where(diagonal, (G @ U)[rows, columns] * entries, 0.0))
    found[signed, signed] = 2.0 * pulled[signed]
    return found


def _factor(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries of the triangular factor U in the order of `PLACES`, and U itself."""
    rows, columns = np.array(PLACES).T
    entries = np.where(rows == columns, np.exp(np.clip(theta, -50.0, 50.0)), theta)
    U = np.zeros((4, 4))
    U[rows, columns] = entries
    return entries, U


def _coordinates(z: np.ndarray, bodies: int, signed: np.ndarray) -> np.ndarray:
    """Return the log-Cholesky coordinates of consistent parameters z."""
    x = z.copy()
    inner = (matrices(z, bodies) - LEAST * np.eye(4)) / (1.0 - LEAST)
    for k, W in enumerate(inner):
        values, axes = np.linalg.eigh(W)
        W = axes @ np.diag(np.maximum(values, LEAST)) @ axes.T
        U = np.linalg.cholesky(W[::-1, ::-1])[::-1, ::-1]  # upper triangular, U U' = W
        x[10 * k : 10 * k + 10] = [np.log(U[i, j]) if i == j else U[i, j] for i, j in PLACES]
    x[signed] = np.sqrt(np.maximum(z[signed], 1e-12))
    return x


def _mapped(x: np.ndarray, bodies: int, signed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Convert log-Cholesky coordinates x to z (see `Prior`), and return z and dz/dx (n, n)."""
    z, slope = x.copy(), np.eye(len(x))
    rows, columns = np.array(PLACES).T
    for k in range(bodies):
        at = slice(10 * k, 10 * k + 10)
        entries, U = _factor(x[at])
        Z = LEAST * np.eye(4) + (1.0 - LEAST) * U @ U.T - np.eye(4)
        z[at] = np.tensordot(UNITS, Z, 2)
        turned = 2.0 * (1.0 - LEAST) * np.tensordot(UNITS, U, 1)  # derivative w.r.t. U
        slope[at, at] = turned[:, rows, columns] * np.where(rows == columns, entries, 1.0)
    z[signed], slope[signed, signed] = x[signed] ** 2, 2.0 * x[signed]
    return z, slope
