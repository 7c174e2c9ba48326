"""Weighted least squares on data that are compressed to one triangular factor for each torque."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from chasles.errors import InputError
from chasles.model.ranges import LARGEST

ROUNDS = 20
"""Maximum number of reweighting iterations.

Iterations stop when the relative change of every noise level is at most `CHANGE`.
"""

CHANGE = 1e-3

HUBER = 1.345
"""Residual, in standard deviations, above which the robust loss is linear (Huber 1964)."""


@dataclass(frozen=True)
class Factors:
    """Triangular factors of the equations A_j x = b_j for each measured torque j.

    R (rows, k + 1, k + 1) contains factors with R_j' R_j = [A_j, b_j]' [A_j, b_j], which determine
    the sum of squared residuals for any x. `counts` contains the number of samples of each torque.
    """

    R: np.ndarray
    counts: np.ndarray

    @classmethod
    def empty(cls, rows: int, k: int) -> "Factors":
        """Return the factors of an empty data set, to which samples can be added."""
        return cls(np.zeros((rows, k + 1, k + 1)), np.zeros(rows))

    def with_data(
        self, A: np.ndarray, b: np.ndarray, weights: np.ndarray | None = None
    ) -> "Factors":
        """Return factors updated with n new samples.

        The shapes are A (n, rows, k), b (n, rows) and weights (n, rows).
        """
        block = np.concatenate([A, b[..., None]], axis=-1)
        counts = np.full(A.shape[1], float(len(A)))
        if weights is not None:
            block, counts = block * np.sqrt(weights)[..., None], weights.sum(axis=0)
        stacked = np.concatenate([self.R, np.swapaxes(block, 0, 1)], axis=1)
        R = _triangle(stacked)
        missing = self.R.shape[-1] - R.shape[1]
        if missing > 0:
            R = np.concatenate([R, np.zeros((len(R), missing, R.shape[2]))], axis=1)
        return Factors(R, self.counts + counts)

    def residuals(self, x: np.ndarray) -> np.ndarray:
        """Return the sum of squared residuals of each row."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.sum((self.R @ np.append(x, -1.0)) ** 2, axis=-1))

    def joined(self, noise: np.ndarray) -> np.ndarray:
        """Return the triangular factor R (k + 1, k + 1) of the equations for all measured torques.

        Each equation is divided by the `noise` (standard deviation) of its torque. Raise an error
        if an entry of R is not finite, or is too large to be squared in floating point.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            weighted = self.R / noise[:, None, None]
        if not (np.all(np.abs(weighted) < LARGEST) and np.all(np.isfinite(noise))):
            problem = "states or torques are too large or too small to be squared in floating point"
            remedy = "check the units: rad, m, s, N m, N"
            raise InputError("E-IDENT-010", problem, remedy, part="identify")
        return _triangle(weighted.reshape(-1, self.R.shape[-1]))


def _triangle(rows: np.ndarray) -> np.ndarray:
    """Return the factor R of the QR decomposition of a matrix, or of each matrix in a stack."""
    return np.asarray(np.linalg.qr(rows, mode="r"))


def compressed(blocks: Iterable[tuple[np.ndarray, ...]], rows: int, k: int) -> Factors:
    """Return the triangular factors of all samples, given in blocks (A, b) or (A, b, weights)."""
    factors = Factors.empty(rows, k)
    for block in blocks:
        factors = factors.with_data(*block)
    return factors


@dataclass(frozen=True)
class Fit:
    """Least-squares estimates (b,), their covariance (b, b), and the noise of each row.

    `condition` is the condition number of the weighted columns, each scaled to unit length.
    """

    values: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    condition: float


def fitted(factors: Factors, columns: np.ndarray) -> Fit:
    """Fit by least squares, with the noise of each row estimated from its residuals.

    The fit uses iteratively reweighted least squares. The covariance assumes that the noise of a
    row is independent between samples.
    """
    few = Factors(_triangle(factors.R[:, :, [*columns, -1]]), factors.counts)
    b, rows = len(columns), len(factors.counts)
    dof = np.maximum(factors.counts - b / rows, 1.0)
    noise, x = np.ones(rows), np.zeros(b)
    R = few.joined(noise)
    largest = np.sqrt(np.max(np.sum(few.R[:, :, -1] ** 2, axis=1) / dof, initial=0.0))
    least = 1e-12 * (largest or 1.0)
    for _ in range(ROUNDS):
        x = np.linalg.lstsq(R[:b, :b], R[:b, b], rcond=None)[0]
        before, noise = noise, np.maximum(np.sqrt(few.residuals(x) / dof), least)
        R = few.joined(noise)
        if np.all(np.abs(noise - before) <= CHANGE * noise):
            break
    lengths = np.linalg.norm(R[:b, :b], axis=0)
    lengths[lengths == 0.0] = 1.0
    sizes = np.linalg.svd(R[:b, :b] / lengths, compute_uv=False)
    inverse = np.linalg.pinv(R[:b, :b] / lengths) / lengths[:, None]
    low = sizes[-1] if len(sizes) else 1.0
    condition = float(sizes[0] / low) if len(sizes) and low > 0.0 else (np.inf if b else 1.0)
    return Fit(x, inverse @ inverse.T, noise, condition)
