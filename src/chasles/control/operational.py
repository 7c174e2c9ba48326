"""Task dynamics: operational-space inertia and bias of a frame, and joint torques."""

from typing import NamedTuple

import numpy as np

from chasles.control.tasks import (
    Array,
    Task,
    apply,
    check_regular,
    checked_task,
    square_jacobians,
    task_jacobians,
    transposed,
)
from chasles.errors import InputError
from chasles.mechanisms import TOLERANCE
from chasles.mechanisms.mechanism import accelerated
from chasles.robot import Robot


def operational_dynamics(
    robot: Robot,
    q: Array,
    qd: Array,
    frame: str,
    *,
    task: Task = "twist",
    damping: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the operational-space inertia and bias of a task.

    The inertia Lambda and the bias satisfy f = Lambda xdd + bias with joint torques tau = J' f,
    where J is the task Jacobian and xdd is the derivative of the task velocity.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Joint positions (rad or m).
    qd : array_like, shape (..., nv)
        Joint velocities (rad/s or m/s).
    frame : str
        Name of a link or frame.
    task : {"twist", "position", "pose"}, optional
        Part of the frame's motion; see the table in `chasles.control`.
    damping : float, optional
        Damping that bounds Lambda near singular configurations. The square of `damping`, in 1/kg or
        1/(kg m2), is added to the diagonal of J M^-1 J'.

    Returns
    -------
    Lambda : ndarray, shape (..., k, k)
        Operational-space inertia.
    bias : ndarray, shape (..., k)
        Bias force, including gravity.

    Raises
    ------
    InputError
        If `task` is unknown, if `damping` is not positive, if an array has the wrong shape, or if
        the configuration is singular for the task and `damping` is None.
    ModelError
        If the frame does not exist, or if a joint has a prescribed motion.
    OpenLoop
        If the robot has loops, and `q` does not close them.
    ArgumentError
        If an argument has the wrong type.

    Notes
    -----
    For a square J, Lambda = J^-T M J^-1 and bias = J^-T h - Lambda Jdot qd (Balafoutis and Patel
    1991, Eq 7.4.1 to 7.4.4). For a redundant robot, Lambda = (J M^-1 J')^-1 (Khatib 1987). Without
    `damping`, an error is raised if the configuration is singular, or if the task has more rows
    than the robot has degrees of freedom. For a robot with loops, q and qd must satisfy the loop
    equations, so that qd = G yd with independent velocities yd. J G and G' M G then replace J and
    M. All joint torques tau with G' tau = G' J' f have the same effect.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.puma560()
    >>> q, qd = [0.3, 0.5, -1.0, 0.2, 0.9, -0.4], [0.0] * 6
    >>> Lambda, bias = chasles.control.operational_dynamics(robot, q, qd, frame="tool")
    >>> Lambda.shape, bias.shape
    ((6, 6), (6,))
    """
    J, Jd = task_jacobians(robot, (q, qd), frame, checked_task(task))
    if damping is not None and not (np.isfinite(damping) and damping > 0.0):
        problem = f"`damping` must be a positive number, not {damping}"
        raise InputError("E-CONTROL-002", problem, part="operational_dynamics")
    robot.mechanism.check_inertia("operational_dynamics")
    J, M, h, Jd_qd = _freedoms(robot, q, qd, J, Jd)
    k, n = J.shape[-2:]
    if damping is None and k > n:
        problem = f"task {task!r} has {k} rows, but robot {robot.name!r} has {n} degrees of freedom"
        remedy = "choose a task with fewer rows, or pass `damping`"
        raise InputError("E-CONTROL-003", problem, remedy, part="operational_dynamics")
    solved = accelerated(M, transposed(J), "operational_dynamics")
    mobility = J @ solved
    if damping is None:
        check_regular("operational_dynamics", mobility, "pass damping=")
    else:
        mobility = mobility + damping**2 * np.eye(k)
    Lambda = np.linalg.inv(mobility)
    Lambda = 0.5 * (Lambda + transposed(Lambda))
    drift = apply(transposed(solved), h) - Jd_qd
    return Lambda, apply(Lambda, drift)


class _Freedoms(NamedTuple):
    """Task Jacobian J, mass matrix M, bias forces h and Jdot qd, in independent coordinates."""

    J: np.ndarray
    M: np.ndarray
    h: np.ndarray
    Jd_qd: np.ndarray


def _freedoms(robot: Robot, q: Array, qd: Array, J: np.ndarray, Jd: np.ndarray) -> _Freedoms:
    """Return the task dynamics in independent coordinates y, with qd = G yd and qdd = G ydd + g.

    The equations are G' M G ydd + G' (h + M g) = G' tau and xdd = J qdd + Jd qd. Without loops, G
    is the identity and g is zero (Featherstone 2008, Eq 8.44).
    """
    M, h, v = robot.mass_matrix(q), robot.bias_forces(q, qd), np.asarray(qd, dtype=float)
    drift = apply(Jd, v)
    G, M_closed = robot.mechanism.reduced("operational_dynamics", q)
    loops = robot.mechanism.closing
    loops.check_rates("operational_dynamics", q, v, tolerance=TOLERANCE)
    g = loops.accelerated(q, v, np.zeros(G.shape[-1]), TOLERANCE)
    bias = apply(transposed(G), h + apply(M, g))
    return _Freedoms(J @ G, M_closed, bias, drift + apply(J, g))


def operational_torques(
    robot: Robot, q: Array, qd: Array, *, frame: str, task: Task = "twist"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the terms of the joint torques tau = D xdd + C + G for a task acceleration xdd.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Joint positions (rad or m).
    qd : array_like, shape (..., nv)
        Joint velocities (rad/s or m/s).
    frame : str
        Name of a link or frame.
    task : {"twist", "position", "pose"}, optional
        Part of the frame's motion; see the table in `chasles.control`.

    Returns
    -------
    D : ndarray, shape (..., nv, nv)
        M J^-1, where M is the mass matrix. The task Jacobian J must be square and nonsingular.
    C : ndarray, shape (..., nv)
        Coriolis and centrifugal forces minus D Jdot qd.
    G : ndarray, shape (..., nv)
        Gravity and spring forces.

    Raises
    ------
    InputError
        If `task` is unknown, if an array has the wrong shape, or if the task Jacobian is not square
        or is singular.
    ModelError
        If the frame does not exist, or if the robot has loops or joints with prescribed motions.
    ArgumentError
        If an argument has the wrong type.

    Notes
    -----
    See Balafoutis and Patel (1991), Eq 7.4.5. The result is in terms of joint torques, whereas
    `operational_dynamics` uses forces on the frame.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.puma560()
    >>> q, qd = [0.3, 0.5, -1.0, 0.2, 0.9, -0.4], [0.0] * 6
    >>> D, C, G = chasles.control.operational_torques(robot, q, qd, frame="tool")
    >>> D.shape, C.shape, G.shape
    ((6, 6), (6,), (6,))
    """
    J, Jd = square_jacobians("operational_torques", robot, (q, qd), frame, task)
    D, G = robot.mass_matrix(q) @ np.linalg.inv(J), robot.bias_forces(q, np.zeros(robot.nv))
    v = np.asarray(qd, dtype=float)
    return D, robot.bias_forces(q, v) - G - apply(D, apply(Jd, v)), G
