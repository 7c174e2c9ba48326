"""Least-squares fits of a linear model to measured states and torques, in blocks of samples."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from chasles.identification.gains import Gains, checked_gains, motor_gains
from chasles.identification.linear import CHUNK, Base, LinearModel
from chasles.identification.regression import HUBER, Factors, Fit, compressed, fitted

ROBUST_ROUNDS = 10
"""Maximum number of reweighting iterations for the robust loss."""

COARSE = 16
"""Number of Stribeck velocities on the coarse search grid."""

States = tuple[np.ndarray, np.ndarray, np.ndarray]


def _parts(count: int) -> Iterator[slice]:
    """Yield slices of up to `CHUNK` samples."""
    for first in range(0, count, CHUNK):
        yield slice(first, first + CHUNK)


def _blocks(
    model: LinearModel, states: States, tau: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield blocks of equations A x = b with weights: 1 for moving joints, 0 for joints at rest."""
    for part in _parts(len(tau)):
        q, qd, qdd = (x[part] for x in states)
        A, b = model.rows(q, model.matrix(q, qd, qdd)), model.rows(q, tau[part])
        yield A, b, model.moving(q, qd).astype(float)


def factors_of(model: LinearModel, states: States, tau: np.ndarray) -> Factors:
    """Return the triangular factors of the equations for all samples."""
    return compressed(_blocks(model, states, tau), model.free, len(model.names))


def robust(
    model: LinearModel, states: States, tau: np.ndarray, chosen: Base, fit: Fit
) -> tuple[Factors, Fit]:
    """Repeat the fit with Huber weights computed from the residuals."""
    factors = None
    for _ in range(ROBUST_ROUNDS):
        noise = _spread(model, states, tau, chosen, fit)

        def weighted(fit: Fit = fit, noise: np.ndarray = noise) -> Iterator[tuple[np.ndarray, ...]]:
            for A, b, moving in _blocks(model, states, tau):
                residual = np.abs(b - A[..., chosen.columns] @ fit.values) / noise
                yield A, b, moving / np.maximum(1.0, residual / HUBER)

        factors, before = compressed(weighted(), model.free, len(model.names)), fit
        fit = fitted(factors, chosen.columns)
        if np.allclose(fit.values, before.values, rtol=1e-6, atol=1e-12):
            break
    assert factors is not None
    return factors, fit


def _spread(
    model: LinearModel, states: States, tau: np.ndarray, chosen: Base, fit: Fit
) -> np.ndarray:
    """Return a robust standard deviation of each row's residuals: median magnitude / 0.6745."""
    found = [
        np.where(moving, np.abs(b - A[..., chosen.columns] @ fit.values), np.nan)
        for A, b, moving in _blocks(model, states, tau)
    ]
    return np.maximum(np.nanmedian(np.concatenate(found), axis=0) / 0.6745, 1e-300)


def best_slip(
    model: LinearModel, states: States, tau: np.ndarray, f_ext: Any, chosen: Base
) -> float:
    """Return the maximum-likelihood Stribeck velocity, by a search over its logarithm."""
    measured = tau - model.known(*states, f_ext)

    def misfit(log_slip: float) -> float:
        tried = replace(model, slip=float(np.exp(log_slip)))
        fit = fitted(factors_of(tried, states, measured), chosen.columns)
        return float(np.sum(np.log(fit.noise)))

    fastest = float(np.abs(states[1]).max()) or 1.0
    grid = np.log(fastest * np.logspace(-3.0, 0.0, COARSE))
    best = int(np.argmin([misfit(each) for each in grid]))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, COARSE - 1)]
    return float(np.exp(scipy.optimize.minimize_scalar(misfit, bounds=ends, method="bounded").x))


def gains_of(
    model: LinearModel,
    states: States,
    currents: np.ndarray,
    f_ext: Any,
    chosen: Base,
    gain: Mapping[str, float | None] | None,
) -> Gains | None:
    """Return the motor constants if currents were measured instead of torques, else None."""
    if gain is None:
        return None
    given = checked_gains(model.robot.independent, gain)
    known = model.known(*states, f_ext)
    blocks = (
        (np.concatenate([A, model.rows(states[0][part], known[part])[..., None]], axis=-1), *rest)
        for part, (A, *rest) in zip(
            _parts(len(known)), _blocks(model, states, currents), strict=True
        )
    )
    factors = compressed(blocks, model.free, len(model.names) + 1)
    return motor_gains(factors, chosen.columns, given)
