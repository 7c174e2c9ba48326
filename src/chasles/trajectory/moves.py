"""Trajectory classes: functions of time that return positions and their derivatives."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from chasles.entry_points import entry_point
from chasles.errors import InputError
from chasles.formats import motion
from chasles.model.given import some_numbers
from chasles.robot import Robot
from chasles.trajectory.spaces import Space

Array = Any

ORDERS = 3
"""Order of the highest derivative that trajectories provide (jerk)."""


class Move:
    """Motion from time 0 to `duration` (s).

    `move(t)` returns positions, velocities and accelerations at times t of any shape: q (..., n),
    qd and qdd (..., nv). `move(t, order=3)` also returns the jerk; `move(t, order=0)` returns a
    tuple with positions only. Before its start and after its end, a trajectory is at rest, unless
    it is periodic. If `robot` is set, velocities follow the robot's conventions: for joints with
    quaternions, they are expressed in body axes.
    """

    duration: float
    robot: Robot | None = None
    periodic: bool = False

    def __call__(self, t: Array, order: int = 2) -> tuple[np.ndarray, ...]:
        """Return positions and their derivatives up to `order` (0 to 3), at times t (s)."""
        times = some_numbers("t", t, "trajectory")
        if order not in range(ORDERS + 1):
            raise InputError("E-PATH-001", f"`order` must be 0, 1, 2 or 3, not {order!r}")
        if not np.all(np.isfinite(times)):
            raise InputError(
                "E-PATH-002", "t is not finite", "pass finite times", part="trajectory"
            )
        times = times.astype(float, copy=False)
        if self.periodic:
            return self.inside(times % self.duration, order)
        found = self.inside(np.clip(times, 0.0, self.duration), order)
        still = (times < 0.0) | (times > self.duration)
        if np.any(still):
            found = (found[0], *(np.where(still[..., None], 0.0, rate) for rate in found[1:]))
        return found

    def inside(self, t: np.ndarray, order: int) -> tuple[np.ndarray, ...]:
        """Return positions and their derivatives at times from 0 to the duration.

        Parameters
        ----------
        t : ndarray, shape (...)
            Times (s) from 0 to the duration.
        order : int
            Order of the highest derivative.

        Returns
        -------
        tuple of ndarray, shape (..., n) and (..., nv)
            Positions (rad or m) and their derivatives up to `order`.

        Examples
        --------
        >>> import chasles, numpy as np
        >>> chasles.trajectory.minimum_jerk([0.0], [1.0], 1.0).inside(np.array(0.5), 0)
        (array([0.5]),)
        """
        raise NotImplementedError

    @property
    def breaks(self) -> np.ndarray:
        """Times (k,) between which the motion is smooth, including the start and the end."""
        return np.array([0.0, self.duration])

    @cached_property
    def start(self) -> np.ndarray:
        """Position at the start of the motion."""
        return self(0.0, 0)[0]

    @cached_property
    def end(self) -> np.ndarray:
        """Position at the end of the motion."""
        return self(self.duration, 0)[0]

    def times(self, step: float) -> np.ndarray:
        """Return equally spaced times from 0 to the duration.

        Parameters
        ----------
        step : float
            Largest time step (s).

        Returns
        -------
        t : ndarray, shape (n,)
            Times (s), including both ends.

        Raises
        ------
        InputError
            If `step` is not a positive finite number.

        Examples
        --------
        >>> import chasles
        >>> chasles.trajectory.minimum_jerk([0.0], [1.0], 1.0).times(0.25)
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
        """
        if not (math.isfinite(step) and step > 0.0):
            problem = f"the time step must be a positive number of seconds, not {step!r}"
            raise InputError("E-PATH-003", problem, part="trajectory")
        count = max(math.ceil(self.duration / step - 1e-9), 1)
        return np.linspace(0.0, self.duration, count + 1)

    def plot(self, axes: Sequence[Any] | None = None) -> Any:
        """Plot positions, velocities, accelerations and jerks over time.

        Parameters
        ----------
        axes : sequence of matplotlib axes, optional
            One to four axes, for position, velocity, acceleration and jerk, in this order. Default:
            a new figure with four axes.

        Returns
        -------
        sequence of matplotlib axes
            The axes.

        Examples
        --------
        >>> from chasles.trajectory import minimum_jerk
        >>> len(minimum_jerk([0.0], [1.0], 2.0).plot())
        4
        """
        return entry_point("plot_move")(self, axes)

    def save(
        self,
        path: str | os.PathLike[str],
        robot: Robot | None = None,
        *,
        step: float = 0.01,
        overwrite: bool = False,
    ) -> None:
        """Write a motion file for `chasles motion`, `chasles view` and `load`.

        Parameters
        ----------
        path : str or path
            File to write, ending in .csv, .npz or .parquet.
        robot : Robot, optional
            The robot that moves. Default: the trajectory's robot.
        step : float, optional
            Largest time step (s).
        overwrite : bool, optional
            Replace an existing file.

        Raises
        ------
        InputError
            If no robot is given and the trajectory has none, if the robot has another number of
            coordinates, or if `step` is not a positive finite number.
        ModelError
            If the ending of the path is not that of a motion file, or if pyarrow is not installed
            for a .parquet file.
        ExistingFileError
            If the file exists and `overwrite` is False.
        FileError
            If the file cannot be written.

        Examples
        --------
        >>> import chasles, tempfile, pathlib
        >>> move = chasles.trajectory.minimum_jerk([0.0, 0.0], [1.0, 0.5], 2.0)
        >>> move.save(pathlib.Path(tempfile.mkdtemp()) / "move.csv", chasles.robots.planar(2))
        """
        moved = self.robot if robot is None else robot
        if moved is None:
            problem = "a motion file contains joint names, but the trajectory has no robot"
            remedy = (
                "create the trajectory for a robot, for example with minimum_jerk(q0, q1, T, "
                "robot=robot), or pass the robot: move.save(path, robot)"
            )
            raise InputError("E-PATH-051", problem, remedy, part="save")
        if self.start.shape != (moved.nq,):
            problem = (
                f"positions have shape {self.start.shape}, but the robot has {moved.nq} coordinates"
            )
            raise InputError("E-PATH-053", problem, "pass the trajectory's robot", part="save")
        t = self.times(step)
        motion.write(path, moved.model, t, self(t), overwrite=overwrite)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(duration={self.duration:.6g} s)"


@dataclass(frozen=True, eq=False, repr=False)
class Polynomial(Move):
    """Piecewise polynomial trajectory: `curve` (a SciPy PPoly) gives displacements from anchors.

    `anchors` are the points of the space from which the polynomials measure displacements: one for
    all pieces, or one per piece.
    """

    curve: "scipy.interpolate.PPoly"
    space: Space
    anchors: np.ndarray
    robot: Robot | None = None
    periodic: bool = False
    duration: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "duration", float(self.curve.x[-1]))

    @cached_property
    def pieces(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (terms, pieces, size) and breakpoints of the curve.

        Both arrays are cached, because each access to SciPy's attributes takes microseconds.
        """
        return np.asarray(self.curve.c), np.asarray(self.curve.x)

    @property
    def breaks(self) -> np.ndarray:
        return self.pieces[1]

    def inside(self, t: np.ndarray, order: int) -> tuple[np.ndarray, ...]:
        jet = [self.curve(t, nu) for nu in range(order + 1)]
        if len(self.anchors) == 1:
            anchor = self.anchors[0]
        else:
            last = len(self.anchors) - 1
            anchor = self.anchors[np.clip(np.searchsorted(self.curve.x, t, "right") - 1, 0, last)]
        place = self.space.integrate(anchor, jet[0])
        rates = self.space.velocities(jet[0], jet[1:]) if self.space.brackets else jet[1:]
        return (place, *rates)


@dataclass(frozen=True, eq=False, repr=False)
class Timed(Move):
    """A path with a new timing: path(s(t)), where s is a piecewise polynomial."""

    path: Move
    profile: "scipy.interpolate.PPoly"
    duration: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "duration", float(self.profile.x[-1]))
        object.__setattr__(self, "robot", self.path.robot)

    @property
    def breaks(self) -> np.ndarray:
        return np.asarray(self.profile.x)

    def inside(self, t: np.ndarray, order: int) -> tuple[np.ndarray, ...]:
        s = np.clip(self.profile(t), 0.0, self.path.duration)
        q, *by = self.path.inside(s, order)
        rates = [self.profile(t, nu)[..., None] for nu in range(1, order + 1)]
        s1, s2, s3 = (*rates, 0.0, 0.0, 0.0)[:3]
        found = [q]
        if order > 0:
            found.append(by[0] * s1)
        if order > 1:
            found.append(by[1] * s1**2 + by[0] * s2)
        if order > 2:
            found.append(by[2] * s1**3 + 3.0 * by[1] * s1 * s2 + by[0] * s3)
        return tuple(found)


@dataclass(frozen=True, eq=False, repr=False)
class Joined(Move):
    """Trajectory that consists of several trajectories, one after another."""

    moves: tuple[Move, ...]
    duration: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "duration", float(self._starts[-1]))
        object.__setattr__(self, "robot", self.moves[0].robot)

    @cached_property
    def _starts(self) -> np.ndarray:
        return np.cumsum([0.0, *(move.duration for move in self.moves)])

    @property
    def breaks(self) -> np.ndarray:
        parts = zip(self.moves, self._starts, strict=False)
        return np.unique(np.concatenate([move.breaks + start for move, start in parts]))

    def inside(self, t: np.ndarray, order: int) -> tuple[np.ndarray, ...]:
        flat = t.ravel()
        which = np.clip(np.searchsorted(self._starts, flat, "right") - 1, 0, len(self.moves) - 1)
        found: list[np.ndarray] | None = None
        for k in np.unique(which):
            move, here = self.moves[k], which == k
            part = move.inside(np.clip(flat[here] - self._starts[k], 0.0, move.duration), order)
            if found is None:
                found = [np.empty((len(flat), *each.shape[1:])) for each in part]
            for whole, each in zip(found, part, strict=True):
                whole[here] = each
        if found is None:
            found = list(self.moves[0].inside(flat, order))
        return tuple(each.reshape(*t.shape, *each.shape[1:]) for each in found)


@dataclass(frozen=True, eq=False, repr=False)
class Closed(Move):
    """Motion of a robot with loops: piecewise polynomials in its independent coordinates.

    `near` contains configurations (k, nq) at times `near_times` (k,), which are initial guesses for
    closing the loops.
    """

    curve: "scipy.interpolate.PPoly"
    near: np.ndarray
    near_times: np.ndarray
    robot: Robot | None = None
    periodic: bool = False
    duration: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "duration", float(self.curve.x[-1]))

    @property
    def breaks(self) -> np.ndarray:
        return np.asarray(self.curve.x)

    def inside(self, t: np.ndarray, order: int) -> tuple[np.ndarray, ...]:
        assert self.robot is not None
        y = self.curve(t)
        nearest = np.argmin(np.abs(np.asarray(t)[..., None] - self.near_times), axis=-1)
        q = self.robot.assemble(y, guess=self.near[nearest])
        if order == 0:
            return (q,)
        found = (q, *self.robot.complete(q, self.curve(t, 1), self.curve(t, 2)))
        return (*found, self._jerk(t)) if order > 2 else found[: order + 1]

    def _jerk(self, t: np.ndarray) -> np.ndarray:
        """Return the jerk from central differences of accelerations (relative error about 1e-7)."""
        h = 1e-4 * self.duration
        low, high = np.clip(t - h, 0.0, self.duration), np.clip(t + h, 0.0, self.duration)
        change = self.inside(high, 2)[2] - self.inside(low, 2)[2]
        return np.asarray(change / (high - low)[..., None])
