"""Families of excitation motions: sums of basis functions of time, at rest at both ends.

A family has P functions of time, the last of which is constant (1). A motion of n joints has an
array of coefficients with shape (P, n).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy

from chasles.robot import Robot
from chasles.trajectory.fourier import Fourier
from chasles.trajectory.moves import Move
from chasles.trajectory.splines import spline

Shape = Literal["fourier", "spline"]

Rates = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Values (N, P) of the basis functions at N times, with first and second derivatives."""


@dataclass(frozen=True)
class FourierSeries:
    """Fourier series with zero velocity and acceleration at both ends."""

    harmonics: int
    duration: float

    @cached_property
    def modes(self) -> np.ndarray:
        """Basis (2 * harmonics, P - 1) for coefficients of motions that start with qd = qdd = 0.

        Each column contains the sine coefficients, then the cosine coefficients. Both coefficients
        of harmonic k are scaled by 1/k, so that all harmonics contribute similar velocities.
        """
        k = np.arange(1, self.harmonics + 1)
        fall, none = 1.0 / k, np.zeros(self.harmonics)
        free = scipy.linalg.null_space([np.append(k * fall, none), np.append(none, k**2 * fall)])
        return np.asarray(np.append(fall, fall)[:, None] * free)

    def at(self, t: np.ndarray) -> Rates:
        """Return the values and derivatives of the basis functions at times t."""
        w = 2.0 * np.pi / self.duration * np.arange(1, self.harmonics + 1)
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        parts = [np.hstack([s, c]), np.hstack([w * c, -w * s]), -np.hstack([w**2 * s, w**2 * c])]
        return _with_constant([part @ self.modes for part in parts])

    def move(self, theta: np.ndarray, robot: Robot) -> Move:
        """Return the motion with coefficients (P, n)."""
        rows = self.modes @ theta[:-1]
        sines, cosines = rows[: self.harmonics], rows[self.harmonics :]
        return Fourier(theta[-1], sines, cosines, self.duration, robot)


@dataclass(frozen=True)
class Spline:
    """Quintic splines through equidistant points, with zero qd and qdd at both ends.

    The number of points is 2 * harmonics, like the number of sine and cosine coefficients of a
    Fourier series. Unlike a series, a spline may end at a position other than its initial position.
    """

    harmonics: int
    duration: float

    @property
    def times(self) -> np.ndarray:
        """Times (s) of the spline points, equally spaced from 0 to the duration."""
        return np.linspace(0.0, self.duration, 2 * self.harmonics)

    @cached_property
    def curve(self) -> Any:
        """Basis splines: spline k is 1 at point k + 1 and 0 at all other points."""
        through = np.eye(2 * self.harmonics)[:, 1:]
        still = [(order, np.zeros(through.shape[1])) for order in (1, 2)]
        return scipy.interpolate.make_interp_spline(self.times, through, 5, bc_type=(still, still))

    def at(self, t: np.ndarray) -> Rates:
        """Return the values and derivatives of the basis functions at times t."""
        return _with_constant([self.curve(t, order) for order in range(3)])

    def move(self, theta: np.ndarray, robot: Robot) -> Move:
        """Return the motion with coefficients (P, n)."""
        points = theta[-1] + np.vstack([np.zeros(theta.shape[1]), theta[:-1]])
        return spline(self.times, points, ends="clamped", degree=5, robot=robot)


CURVES: dict[Shape, type[FourierSeries] | type[Spline]] = {
    "fourier": FourierSeries,
    "spline": Spline,
}
"""Families of excitation motions, by name."""


def _with_constant(parts: list[np.ndarray]) -> Rates:
    one, rate, second = (
        np.hstack([part, np.full((len(part), 1), float(k == 0))]) for k, part in enumerate(parts)
    )
    return one, rate, second
