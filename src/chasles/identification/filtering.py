"""Velocities and accelerations from measured positions, and torque delays.

Positions are smoothed without a time shift, by filters that are flat up to the highest frequency of
the motion. Torques are not filtered: friction torques jump when a velocity changes sign, and
filtering only the torques would reduce the jumps and bias the estimated friction. Least squares
averages the torque noise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy

from chasles.errors import InputError
from chasles.names import one_of

Smoothing = Literal["low-pass", "savitzky-golay", "spline"]

ORDER, DEGREE = 8, 4
"""Parameters of the smoothing filters.

`ORDER` is the order of the low-pass filter, which is applied forwards and backwards. `DEGREE` is
the degree of the Savitzky-Golay polynomials.
"""

BANDS = 20
"""Number of frequency bands per decade over which spectra are averaged."""

LEAST = 20
"""Minimum number of samples of a motion that can be smoothed."""


@dataclass(frozen=True)
class Smoothed:
    """Smoothed motion: times t (n,), q, qd, qdd and tau (n, nv), and cut-off frequency (Hz)."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    cutoff: float


def smoothed(
    t: np.ndarray,
    q: np.ndarray,
    tau: np.ndarray,
    smoothing: Smoothing = "low-pass",
    cutoff: float | None = None,
) -> Smoothed:
    """Return smoothed positions, their derivatives, and the torques.

    Unevenly spaced samples are first resampled at a constant time step.
    """
    if smoothing not in get_args(Smoothing):
        problem, remedy = f"unknown smoothing {smoothing!r}", one_of(smoothing, get_args(Smoothing))
        raise InputError("E-IDENT-015", problem, remedy, part="identify")
    if len(t) < LEAST:
        problem = f"{len(t)} samples are too few to compute velocities and accelerations"
        remedy = f"use at least {LEAST} samples in each motion, or pass `qd` and `qdd`"
        raise InputError("E-IDENT-016", problem, remedy, part="identify")
    step = (t[-1] - t[0]) / (len(t) - 1)
    if np.abs(np.diff(t) - step).max() > 0.2 * step:
        even = np.linspace(t[0], t[-1], len(t))
        q, tau, t = _resampled(t, q, even), _resampled(t, tau, even), even
    nyquist = 0.5 / step
    chosen = chosen_cutoff(q, step) if cutoff is None else float(cutoff)
    if not 0.0 < chosen < nyquist:
        problem = f"the cut-off must lie between 0 and {nyquist:.4g} Hz, not {chosen:.4g}"
        remedy = "pass `cutoff` in this range (Hz)"
        raise InputError("E-IDENT-017", problem, remedy, part="identify")
    place, velocity, acceleration = _METHODS[smoothing](q, step, chosen)
    ends = min(int(np.ceil(0.5 / (chosen * step))) + 2, len(t) // 8)
    kept = slice(ends, len(t) - ends)
    return Smoothed(t[kept], place[kept], velocity[kept], acceleration[kept], tau[kept], chosen)


def _resampled(t: np.ndarray, x: np.ndarray, even: np.ndarray) -> np.ndarray:
    return np.column_stack([np.interp(even, t, column) for column in x.T])


def chosen_cutoff(q: np.ndarray, step: float) -> float:
    """Return the cut-off frequency (Hz) above which accelerations are mainly noise.

    The power spectrum of accelerations, f^4 times that of positions, falls above the frequencies of
    the motion and rises where position noise begins. A joint's cut-off is the frequency of the
    minimum in between, and the result is the highest cut-off of all joints. Gaps in the spectrum
    of a motion are filled with the largest power within the next two octaves.
    """
    n = len(q)
    window = np.hanning(n)[:, None]
    line = np.linspace(0.0, 1.0, n)[:, None]
    level = q - (q[0] + (q[-1] - q[0]) * line)  # remove the trend, so that both ends are zero
    power = np.abs(np.fft.rfft(level * window, axis=0))[1:] ** 2
    frequency = np.fft.rfftfreq(n, step)[1:]
    band = np.floor(BANDS * np.log10(frequency / frequency[0])).astype(int)
    band = np.unique(band, return_inverse=True)[1]
    counts = np.bincount(band)
    center = np.bincount(band, frequency) / counts
    cutoff = 4.0 / (n * step)
    for column in power.T:
        mean = np.bincount(band, column) / counts
        filled = [mean[(center >= f) & (center <= 4.0 * f)].max() for f in center]
        peak = int(np.argmax(center**2 * mean))
        cutoff = max(cutoff, center[peak + int(np.argmin((center**4 * filled)[peak:]))])
    return float(min(cutoff, 0.8 * frequency[-1]))


def _low_pass(x: np.ndarray, step: float, cutoff: float) -> np.ndarray:
    """Apply a Butterworth low-pass filter, forwards and backwards."""
    sections = scipy.signal.butter(ORDER, cutoff, fs=1.0 / step, output="sos")
    pad = min(len(x) - 1, int(3.0 / (cutoff * step)) + 10)
    return np.asarray(scipy.signal.sosfiltfilt(sections, x, axis=0, padlen=pad))


Rates = tuple[np.ndarray, np.ndarray, np.ndarray]


def _by_low_pass(q: np.ndarray, step: float, cutoff: float) -> Rates:
    """Apply a low-pass filter, then fourth-order central differences."""
    place = _low_pass(q, step, cutoff)
    velocity = _difference(place, step)
    return place, velocity, _difference(velocity, step)


def _difference(x: np.ndarray, step: float) -> np.ndarray:
    """Return finite differences: fourth order in the interior, second order at the ends."""
    rate = np.gradient(x, step, axis=0, edge_order=2)
    rate[2:-2] = (8.0 * (x[3:-1] - x[1:-3]) - (x[4:] - x[:-4])) / (12.0 * step)
    return rate


def _by_polynomials(q: np.ndarray, step: float, cutoff: float) -> Rates:
    """Apply a Savitzky-Golay filter with the given 3 dB cut-off (Schafer 2011)."""
    half = int(np.ceil(((DEGREE + 1) / (2.0 * cutoff * step) + 4.6) / 3.2))
    window = min(max(2 * half + 1, DEGREE + 3), len(q) - 1 + len(q) % 2)
    made = [
        scipy.signal.savgol_filter(q, window, DEGREE, deriv=k, delta=step, axis=0) for k in range(3)
    ]
    return made[0], made[1], made[2]


def _by_spline(q: np.ndarray, step: float, cutoff: float) -> Rates:
    """Apply a cubic smoothing spline with a gain of one half at the cut-off frequency."""
    t = step * np.arange(len(q))
    curve = scipy.interpolate.make_smoothing_spline(
        t, q, lam=1.0 / (step * (2.0 * np.pi * cutoff) ** 4)
    )
    return curve(t), curve(t, 1), curve(t, 2)


_METHODS: dict[str, Callable[[np.ndarray, float, float], Rates]] = {
    "low-pass": _by_low_pass,
    "savitzky-golay": _by_polynomials,
    "spline": _by_spline,
}


def delay(t: np.ndarray, tau: np.ndarray, predicted: np.ndarray, longest: float = 0.1) -> float:
    """Return the lag (s) of measured torques behind the torques predicted by inverse dynamics.

    The lag maximizes the correlation, summed over joints and interpolated by a parabola.
    """
    step = (t[-1] - t[0]) / (len(t) - 1)
    most = max(min(int(longest / step), len(t) // 4), 1)
    lags = np.arange(-most, most + 1)
    inside = slice(most, len(t) - most)
    a = predicted[inside] - predicted[inside].mean(axis=0)
    size, found = np.maximum(np.linalg.norm(a, axis=0), 1e-300), []
    for lag in lags:
        moved = tau[most + lag : len(t) - most + lag]
        moved = moved - moved.mean(axis=0)
        length = np.maximum(np.linalg.norm(moved, axis=0), 1e-300)
        found.append(float(np.sum(np.sum(a * moved, axis=0) / (size * length))))
    best = int(np.argmax(found))
    if not 0 < best < len(found) - 1:
        return float(lags[best] * step)
    low, here, high = found[best - 1 : best + 2]
    bend = low - 2.0 * here + high
    return float((lags[best] + (0.5 * (low - high) / bend if bend else 0.0)) * step)
