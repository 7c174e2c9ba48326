"""Estimation of motor constants, the ratios of joint torques to measured currents."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from chasles.errors import InputError
from chasles.identification.regression import Factors
from chasles.model.given import a_mapping, a_number
from chasles.names import one_of

ROUNDS, CHANGE = 100, 1e-10
"""Limits of the Gauss-Newton iteration.

`ROUNDS` is the maximum number of steps. The iteration stops when the relative change of every gain
is below `CHANGE`.
"""

UNSURE = 1e-8
"""Ratio of the smallest to the largest singular value below which gains are not identifiable."""


@dataclass(frozen=True)
class Gains:
    """Motor constants of all joints, with the indices and covariance of the unknown constants.
    `sensitivity` is the derivative of the base parameters with respect to the unknown constants.
    """

    values: np.ndarray
    unknown: np.ndarray
    covariance: np.ndarray
    sensitivity: np.ndarray

    def more_uncertain(self, covariance: np.ndarray) -> np.ndarray:
        """Add the effect of uncertain gains to a covariance of the base parameters."""
        return np.asarray(covariance + self.sensitivity @ self.covariance @ self.sensitivity.T)


def checked_gains(names: tuple[str, ...], gain: Mapping[str, float | None]) -> np.ndarray:
    """Return the gain of each motor: 1 for a measured torque, NaN for an unknown gain."""
    given = a_mapping("gain", gain, "identify")
    found = np.ones(len(names))
    for name, value in given.items():
        if name not in names:
            problem = f"{name!r} is not a motor of the robot"
            raise InputError("E-IDENT-028", problem, one_of(name, names), part="gain")
        found[names.index(name)] = np.nan if value is None else a_number("gain", value, "identify")
    return found


def motor_gains(factors: Factors, columns: np.ndarray, gains: np.ndarray) -> Gains:
    """Return the maximum-likelihood gains from triangular factors of [A, known, currents].

    Row j is k_j i_j = A_j x + known_j, where the current i_j is noisy. The residual of the row is
    therefore divided by k_j. Ordinary least squares with i_j as a column would be biased by the
    noise. The Gauss-Newton steps in x and log k need only the triangular factors. `columns` are the
    indices of the base parameters.
    """
    R = factors.R[:, :, [*columns, -2, -1]]
    unknown, b = np.flatnonzero(np.isnan(gains)), len(columns)
    dof = np.maximum(factors.counts - (b + len(unknown)) / len(gains), 1.0)
    x, k = _start(R, gains)
    noise = np.ones(len(gains))
    for _ in range(ROUNDS):
        scaled = R[:, :, :-1] @ np.append(x, 1.0)
        r = scaled / k[:, None] - R[:, :, -1]
        noise = np.maximum(np.sqrt(np.sum(r**2, axis=1) / dof), 1e-12 * np.abs(R).max())
        J = np.zeros((*r.shape, b + len(unknown)))
        J[:, :, :b] = R[:, :, :b] / k[:, None, None]
        J[unknown, :, b + np.arange(len(unknown))] = -(scaled / k[:, None])[unknown]
        flat = (J / noise[:, None, None]).reshape(-1, J.shape[-1])
        length = np.maximum(np.linalg.norm(flat, axis=0), 1e-300)
        U, s, Vt = np.linalg.svd(flat / length, full_matrices=False)
        if s[-1] < UNSURE * s[0]:
            problem = "the data do not determine the common scale of motor gains and inertias"
            remedy = "pass the known gain of one motor, or measured external wrenches as `f_ext`"
            raise InputError("E-IDENT-029", problem, remedy, part="gain")
        step = -(Vt.T / s) @ (U.T @ (r / noise[:, None]).ravel()) / length
        x = x + step[:b]
        k[unknown] *= np.exp(np.clip(step[b:], -1.0, 1.0))
        if np.all(np.abs(step[b:]) < CHANGE):
            break
    whole = (Vt.T / s) / length[:, None]
    covariance = whole @ whole.T
    own = covariance[b:, b:]
    return Gains(
        k,
        unknown,
        np.diag(k[unknown]) @ own @ np.diag(k[unknown]),
        covariance[:b, b:] @ np.linalg.inv(own) / k[unknown],
    )


def _start(R: np.ndarray, gains: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return initial values of the base parameters and unknown gains, by linear least squares."""
    unknown = np.flatnonzero(np.isnan(gains))
    b = R.shape[2] - 2
    A = np.zeros((*R.shape[:2], b + len(unknown)))
    A[:, :, :b] = R[:, :, :b]
    A[unknown, :, b + np.arange(len(unknown))] = -R[unknown, :, -1]
    right = np.nan_to_num(gains)[:, None] * R[:, :, -1] - R[:, :, -2]
    found = np.linalg.lstsq(A.reshape(-1, A.shape[-1]), right.ravel(), rcond=None)[0]
    k = gains.copy()
    k[unknown] = np.where(found[b:] > 0.0, found[b:], 1.0)
    return found[:b], k
