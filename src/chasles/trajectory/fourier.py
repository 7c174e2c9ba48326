"""Fourier series: periodic motions that excite a robot's dynamics."""

from dataclasses import dataclass

import numpy as np

from chasles.errors import InputError
from chasles.functions.doors import check_robot
from chasles.model.given import some_numbers
from chasles.robot import Robot
from chasles.trajectory.given import all_finite, finite, positive
from chasles.trajectory.moves import Array, Move


@dataclass(frozen=True, eq=False, repr=False)
class Fourier(Move):
    """Fourier series: center + sum of sines[k-1] sin(k w t) + cosines[k-1] cos(k w t).

    The sum is over k = 1, 2, ..., and w = 2 pi / duration. `center` has shape (n,), and `sines` and
    `cosines` have shape (harmonics, n).
    """

    center: np.ndarray
    sines: np.ndarray
    cosines: np.ndarray
    duration: float
    robot: Robot | None = None
    periodic: bool = False

    def inside(self, t: np.ndarray, order: int) -> tuple[np.ndarray, ...]:
        w = 2.0 * np.pi / self.duration * np.arange(1, len(self.sines) + 1)
        angle = t[..., None] * w
        s, c, found = np.sin(angle), np.cos(angle), []
        for _ in range(order + 1):
            found.append(s @ self.sines + c @ self.cosines)
            s, c = w * c, -w * s
        found[0] = found[0] + self.center
        return tuple(found)


def fourier(
    center: Array,
    sines: Array,
    cosines: Array,
    *,
    duration: float,
    robot: Robot | None = None,
    periodic: bool = False,
) -> Move:
    """Return a Fourier series: center + sum of sines_k sin(k w t) + cosines_k cos(k w t).

    Parameters
    ----------
    center : array_like, shape (n,)
        Constant term (rad or m).
    sines, cosines : array_like, shape (harmonics, n)
        Coefficients (rad or m) for k = 1, 2, ..., where w = 2 pi / duration.
    duration : float
        Period (s).
    robot : Robot, optional
        The robot that moves, with one coordinate per joint and no loops.
    periodic : bool, optional
        If True, the motion repeats after its end.

    Returns
    -------
    Move
        `move(t)` returns positions, velocities and accelerations.

    Raises
    ------
    InputError
        If an array has the wrong shape or is not finite, if the numbers of sines and cosines
        differ, if `duration` is not positive, or if the robot has loops or joints with several
        coordinates.
    ArgumentError
        If `robot` is not a Robot, or if an argument is not numeric.

    Notes
    -----
    The motion is at rest at its ends if the sum of k sines_k is zero. Accelerations are zero at the
    ends if the sum of k² cosines_k is zero. `chasles.excite` chooses the coefficients (Swevers et
    al. 1997).

    Examples
    --------
    >>> move = chasles.trajectory.fourier([0.0], [[2.0], [-1.0]], [[0.0], [0.0]], duration=1.0)
    >>> move(0.0)[1]
    array([0.])
    """
    part = "fourier"
    if robot is not None:
        check_robot(part, robot)
        if robot.nq != robot.nv or len(robot.independent) < robot.nv:
            problem = "a Fourier series needs joints with one coordinate each, and no loops"
            raise InputError("E-PATH-058", problem, "use trajectory.spline", part=part)
    middle = finite("center", center, None if robot is None else robot.nq, part)
    rows = []
    for what, given in (("sines", sines), ("cosines", cosines)):
        found = all_finite(what, some_numbers(what, given, part).astype(float), part)
        if found.ndim != 2 or found.shape[1] != len(middle):
            problem = f"{what} must have shape (harmonics, {len(middle)}), not {found.shape}"
            raise InputError("E-PATH-056", problem, part=part)
        rows.append(found)
    if len(rows[0]) != len(rows[1]):
        problem = f"{len(rows[0])} sines and {len(rows[1])} cosines were given"
        raise InputError("E-PATH-057", problem, "pass as many sines as cosines", part=part)
    period = positive("duration", duration, part)
    return Fourier(middle, rows[0], rows[1], period, robot, periodic)
