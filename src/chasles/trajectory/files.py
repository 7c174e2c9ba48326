"""Trajectories from motion files, such as files written by `Move.save`."""

import os

import numpy as np
import scipy

from chasles.errors import InputError
from chasles.formats import motion
from chasles.functions.doors import check_robot
from chasles.robot import Robot
from chasles.trajectory.charts import Chart, chart, steps
from chasles.trajectory.moves import Move
from chasles.trajectory.polynomials import hermite
from chasles.trajectory.splines import spline


def load(path: str | os.PathLike[str], robot: Robot, *, step: float | None = None) -> Move:
    """Return the trajectory of a robot from a motion file.

    Parameters
    ----------
    path : str or path
        Motion file, such as a .csv file with a header or a table of q, qd and qdd (docs/motion.md).
    robot : Robot
        The robot that moves. The file must contain its joints.
    step : float, optional
        Time step (s), for files without times.

    Returns
    -------
    Move
        A trajectory through all states in the file, starting at time 0. Polynomials have degree 5
        if the file contains velocities and accelerations, and degree 3 if it contains only
        velocities. Otherwise, the trajectory is a natural spline.

    Raises
    ------
    ArgumentError
        If `robot` is not a Robot.
    ModelError
        If the file cannot be read, does not contain the joints of the robot, is empty, or contains
        times that do not increase.
    InputError
        If the file has no times and `step` is not given, or has only one sample.
    OpenLoop
        If the robot has loops, and a given configuration does not close them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import chasles
    >>> robot = chasles.robots.planar(2)
    >>> move = chasles.trajectory.minimum_jerk([0.0, 0.0], [1.0, 0.5], duration=2.0, robot=robot)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "motion.csv"
    ...     move.save(file)
    ...     again = chasles.trajectory.load(file, robot)
    >>> again.duration
    2.0
    """
    check_robot("load", robot)
    parts = list(motion.read(path, robot.model, step=step))
    if parts[0].t is None:
        problem = "the motion file contains no times"
        raise InputError("E-PATH-049", problem, "add a column t, or pass `step`", file=path)
    t = np.concatenate([part.t for part in parts if part.t is not None])
    q = np.concatenate([part.q for part in parts])
    if len(t) < 2:
        raise InputError(
            "E-PATH-050", "the motion has only one sample", "add another sample", file=path
        )
    rates = [
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("qd", "qdd")
        if getattr(parts[0], name) is not None
    ]
    t = t - t[0]
    if parts[0].qd is None:
        return spline(t, q, robot=robot)
    return _through(chart(robot, q, "load"), t, rates)


def _through(at: Chart, t: np.ndarray, rates: list[np.ndarray]) -> Move:
    """Return the trajectory through points with given velocities (and accelerations)."""
    rates = [at.rate(each) for each in rates]
    if not at.space.brackets:
        return at.move(hermite(t, [at.points - at.points[0], *rates]), at.points[:1])
    d = steps(at)
    begin = at.space.rates(np.zeros_like(d), [each[:-1] for each in rates])
    finish = at.space.rates(d, [each[1:] for each in rates])
    pieces = []
    for k, h in enumerate(np.diff(t)):
        ends = [np.array([each[k], other[k]]) for each, other in zip(begin, finish, strict=True)]
        pieces.append(hermite([0.0, h], [np.array([0.0 * d[k], d[k]]), *ends]).c)
    return at.move(scipy.interpolate.PPoly(np.concatenate(pieces, axis=1), t), at.points[:-1])
