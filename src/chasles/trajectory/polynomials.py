"""Polynomials between two states: cubic, quintic, septic, minimum jerk, minimum snap."""

from collections.abc import Sequence

import numpy as np
import scipy

from chasles.robot import Robot
from chasles.trajectory.charts import chart, steps
from chasles.trajectory.given import finite, positive, two_points
from chasles.trajectory.moves import Array, Move


def cubic(
    q0: Array,
    q1: Array,
    duration: float,
    *,
    qd0: Array = None,
    qd1: Array = None,
    robot: Robot | None = None,
) -> Move:
    """Return the cubic polynomial between two states, which are at rest by default.

    Parameters
    ----------
    q0, q1 : array_like, shape (n,)
        Positions at the start and at the end (rad or m).
    duration : float
        Duration (s).
    qd0, qd1 : array_like, shape (nv,), optional
        Velocities at the start and at the end (rad/s or m/s). Default: zero.
    robot : Robot, optional
        The robot that moves. Joints with quaternions follow the shortest rotation, and closed loops
        stay closed. Without a robot, positions are plain vectors.

    Returns
    -------
    Move
        `move(t)` returns q, qd, qdd.

    Raises
    ------
    InputError
        If an array has the wrong shape or is not finite, if `duration` is not positive, or if the
        robot has rolling constraints.
    ArgumentError
        If `robot` is not a Robot, or if an argument is not numeric.
    OpenLoop
        If the robot has loops, and a given configuration does not close them.

    Examples
    --------
    >>> move = chasles.trajectory.cubic([0.0, 1.0], [1.0, 3.0], 2.0)
    >>> q, qd, qdd = move(1.0)
    >>> q, qd
    (array([0.5, 2. ]), array([0.75, 1.5 ]))
    """
    return between("cubic", q0, q1, duration, [(qd0, qd1)], robot)


def quintic(
    q0: Array,
    q1: Array,
    duration: float,
    *,
    qd0: Array = None,
    qd1: Array = None,
    qdd0: Array = None,
    qdd1: Array = None,
    robot: Robot | None = None,
) -> Move:
    """Return the quintic polynomial between two states, which are at rest by default.

    Parameters
    ----------
    q0, q1 : array_like, shape (n,)
        Positions at the start and at the end (rad or m).
    duration : float
        Duration (s).
    qd0, qd1 : array_like, shape (nv,), optional
        Velocities at the ends. Default: zero.
    qdd0, qdd1 : array_like, shape (nv,), optional
        Accelerations at the ends. Default: zero.
    robot : Robot, optional
        The robot that moves, as in `cubic`.

    Returns
    -------
    Move
        The motion.

    Raises
    ------
    InputError
        If an array has the wrong shape or is not finite, if `duration` is not positive, or if the
        robot has rolling constraints.
    ArgumentError
        If `robot` is not a Robot, or if an argument is not numeric.
    OpenLoop
        If the robot has loops, and a given configuration does not close them.

    Examples
    --------
    >>> import chasles
    >>> move = chasles.trajectory.quintic([0.0], [1.0], 2.0)
    >>> q, qd, qdd = move(1.0)
    >>> q.round(3)
    array([0.5])
    """
    return between("quintic", q0, q1, duration, [(qd0, qd1), (qdd0, qdd1)], robot)


def septic(
    q0: Array,
    q1: Array,
    duration: float,
    *,
    qd0: Array = None,
    qd1: Array = None,
    qdd0: Array = None,
    qdd1: Array = None,
    qddd0: Array = None,
    qddd1: Array = None,
    robot: Robot | None = None,
) -> Move:
    """Return the polynomial of degree 7 between two states, which are at rest by default.

    Parameters
    ----------
    q0, q1 : array_like, shape (n,)
        Positions at the start and at the end (rad or m).
    duration : float
        Duration (s).
    qd0, qd1, qdd0, qdd1, qddd0, qddd1 : array_like, shape (nv,), optional
        Velocities, accelerations and jerks at the ends. Default: zero.
    robot : Robot, optional
        The robot that moves, as in `cubic`.

    Returns
    -------
    Move
        The motion.

    Raises
    ------
    InputError
        If an array has the wrong shape or is not finite, if `duration` is not positive, or if the
        robot has rolling constraints.
    ArgumentError
        If `robot` is not a Robot, or if an argument is not numeric.
    OpenLoop
        If the robot has loops, and a given configuration does not close them.

    Examples
    --------
    >>> import chasles
    >>> move = chasles.trajectory.septic([0.0], [1.0], 2.0)
    >>> move(1.0)[0].round(3)
    array([0.5])
    """
    ends = [(qd0, qd1), (qdd0, qdd1), (qddd0, qddd1)]
    return between("septic", q0, q1, duration, ends, robot)


def minimum_jerk(q0: Array, q1: Array, duration: float, *, robot: Robot | None = None) -> Move:
    """Return the motion from rest to rest with the least integral of squared jerk.

    Parameters
    ----------
    q0, q1 : array_like, shape (n,)
        Positions at the start and at the end (rad or m).
    duration : float
        Duration (s).
    robot : Robot, optional
        The robot that moves, as in `cubic`.

    Returns
    -------
    Move
        The motion from q0 to q1. The fraction covered at time t is 10 s^3 - 15 s^4 + 6 s^5, where s
        = t / duration.

    Raises
    ------
    InputError
        If an array has the wrong shape or is not finite, if `duration` is not positive, or if the
        robot has rolling constraints.
    ArgumentError
        If `robot` is not a Robot, or if an argument is not numeric.
    OpenLoop
        If the robot has loops, and a given configuration does not close them.

    Notes
    -----
    See Flash and Hogan, Journal of Neuroscience 5, 1985. For a motion through several points, use
    `spline(..., degree=5, ends="clamped")`.

    Examples
    --------
    >>> import chasles
    >>> move = chasles.trajectory.minimum_jerk([0.0, 0.0], [1.0, 0.5], 2.0)
    >>> q, qd, qdd = move(1.0)
    >>> q, qd.round(4)
    (array([0.5 , 0.25]), array([0.9375, 0.4688]))
    """
    return between("minimum_jerk", q0, q1, duration, [(None, None)] * 2, robot)


def minimum_snap(q0: Array, q1: Array, duration: float, *, robot: Robot | None = None) -> Move:
    """Return the motion from rest to rest with the least integral of squared snap.

    Parameters
    ----------
    q0, q1 : array_like, shape (n,)
        Positions at the start and at the end (rad or m).
    duration : float
        Duration (s).
    robot : Robot, optional
        The robot that moves, as in `cubic`.

    Returns
    -------
    Move
        The motion from q0 to q1. The fraction covered at time t is 35 s^4 - 84 s^5 + 70 s^6 - 20
        s^7, where s = t / duration.

    Raises
    ------
    InputError
        If an array has the wrong shape or is not finite, if `duration` is not positive, or if the
        robot has rolling constraints.
    ArgumentError
        If `robot` is not a Robot, or if an argument is not numeric.
    OpenLoop
        If the robot has loops, and a given configuration does not close them.

    Notes
    -----
    See Mellinger and Kumar, ICRA 2011. For a motion through several points, use `spline(...,
    degree=7, ends="clamped")`.

    Examples
    --------
    >>> import chasles
    >>> chasles.trajectory.minimum_snap([0.0], [1.0], 2.0)(1.0)[0].round(3)
    array([0.5])
    """
    return between("minimum_snap", q0, q1, duration, [(None, None)] * 3, robot)


def between(
    name: str,
    q0: Array,
    q1: Array,
    duration: float,
    ends: Sequence[tuple[Array, Array]],
    robot: Robot | None,
) -> Move:
    """Return the polynomial with given derivatives at both ends; None stands for zero."""
    length = positive("duration", duration, name)
    at = chart(robot, two_points(q0, q1, robot, name), name)
    rates = [
        at.rate(np.zeros(at.sizes) if v is None else finite(f"{label}{k}", v, at.sizes, name))
        for label, pair in zip(("qd", "qdd", "qddd"), ends, strict=False)
        for k, v in enumerate(pair)
    ]
    (step,) = steps(at)
    begin = at.space.rates(np.zeros_like(step), rates[::2])
    finish = at.space.rates(step, rates[1::2])
    values = [(np.zeros_like(step), step), *zip(begin, finish, strict=True)]
    return at.move(hermite([0.0, length], [np.array(pair) for pair in values]), at.points[:1])


def hermite(
    times: Sequence[float] | np.ndarray, jets: Sequence[np.ndarray]
) -> "scipy.interpolate.PPoly":
    """Return piecewise polynomials with given values and derivatives (points, n) at given times."""
    return scipy.interpolate.PPoly.from_bernstein_basis(
        scipy.interpolate.BPoly.from_derivatives(times, np.stack(jets, axis=1))
    )
