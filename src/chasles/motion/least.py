"""Linear inequalities and complementarity problems, solved by non-negative least squares."""

import numpy as np
import scipy

CERTAIN = 1e-6
"""Tolerance for the equations A u = 0, b.u = -1. A vector u >= 0 that satisfies them proves that a
problem has no solution."""


def least_motion(A: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """Solve the linear complementarity problem w = A z + b for a symmetric positive semidefinite A.

    With A = L L', the vector z consists of the Lagrange multipliers of the problem: minimize |y|
    subject to L y + b >= 0 (Lawson and Hanson 1974, chapter 23, problem LDP). The condition number
    of L is the square root of that of A. The method is therefore more accurate than Lemke's for
    nearly dependent contacts, where Lemke's bases are singular to within rounding error. The result
    is None if A is not symmetric, or if there is no solution.
    """
    if not np.allclose(A, A.T, rtol=0.0, atol=1e-12):
        return None
    values, vectors = np.linalg.eigh(A)
    kept = values > len(b) * np.finfo(float).eps * values[-1]
    E = np.vstack([(vectors[:, kept] * np.sqrt(values[kept])).T, -b])
    u, miss = scipy.optimize.nnls(E, np.append(np.zeros(len(E) - 1), 1.0))
    return None if miss < CERTAIN else u / (1.0 + b @ u)


def farkas(A: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """Return u >= 0 with A u = 0 and b.u < 0, or None if A'x + b >= 0 is feasible.

    By Farkas' lemma, either such a vector u or such a vector x exists, but not both.
    """
    u, miss = scipy.optimize.nnls(np.vstack([A, b]), np.append(np.zeros(len(A)), -1.0))
    return u if miss < CERTAIN else None
