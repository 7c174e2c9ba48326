"""Perturbations and sensitivities: small changes in joint motion and task motion."""

import numpy as np

from chasles.control.tasks import (
    NEAR_A_MOTION,
    Array,
    Task,
    apply,
    checked_task,
    square_jacobians,
    task_jacobians,
)
from chasles.errors import InputError
from chasles.robot import Robot


def task_perturbations(
    robot: Robot,
    q: Array,
    qd: Array,
    qdd: Array,
    dq: Array,
    dqd: Array,
    dqdd: Array,
    *,
    frame: str,
    task: Task = "position",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the changes in a task's motion due to small changes in the joint motion.

    Parameters
    ----------
    robot : Robot
        The robot.
    q, qd, qdd : array_like
        Motion (..., nq), (..., nv), (..., nv) about which to linearize.
    dq, dqd, dqdd : array_like, shape (..., nv)
        Small changes in the joint motion.
    frame : str
        Name of a link or frame.
    task : {"pose", "position"}, optional
        Part of the frame's motion; see the table in `chasles.control`.

    Returns
    -------
    dchi, dchid, dchidd : ndarray, shape (..., k)
        Changes in the task coordinates and their time derivatives.

    Raises
    ------
    InputError
        If `task` is unknown or "twist", if an array has the wrong shape, or if the robot has free
        or spherical joints.
    ModelError
        If the frame does not exist, or if the robot has loops or joints with prescribed motions.
    ArgumentError
        If an argument has the wrong type.

    Notes
    -----
    See Balafoutis and Patel (1991), Eq 7.4.8 to 7.4.10.

    Examples
    --------
    >>> import chasles
    >>> robot, d = chasles.robots.planar(2), [0.01, 0.0]
    >>> q, zero = [0.0, 0.5], [0.0, 0.0]
    >>> dchi, dchid, dchidd = chasles.control.task_perturbations(
    ...     robot, q, zero, zero, d, zero, zero, frame="tip", task="position"
    ... )
    >>> dchi.round(4)
    array([-0.0048,  0.    ,  0.0188])
    """
    _varied("task_perturbations", robot, task)
    J, Jd, Jdd = task_jacobians(robot, (q, qd, qdd), frame, task)
    d, dd, ddd = (np.asarray(x, dtype=float) for x in (dq, dqd, dqdd))
    first = apply(J, d)
    second = apply(Jd, d) + apply(J, dd)
    return first, second, apply(Jdd, d) + 2.0 * apply(Jd, dd) + apply(J, ddd)


def joint_perturbations(
    robot: Robot,
    q: Array,
    qd: Array,
    qdd: Array,
    dchi: Array,
    dchid: Array,
    dchidd: Array,
    *,
    frame: str,
    task: Task = "position",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the changes in the joint motion that produce small changes in a task's motion.

    This is the inverse of `task_perturbations`. The task Jacobian must be square and
    nonsingular.

    Parameters
    ----------
    robot : Robot
        The robot.
    q, qd, qdd : array_like
        Motion (..., nq), (..., nv), (..., nv) about which to linearize.
    dchi, dchid, dchidd : array_like, shape (..., k)
        Small changes in the task coordinates and their time derivatives.
    frame : str
        Name of a link or frame.
    task : {"pose", "position"}, optional
        Part of the frame's motion; see the table in `chasles.control`.

    Returns
    -------
    dq, dqd, dqdd : ndarray, shape (..., nv)
        Changes in the joint motion.

    Raises
    ------
    InputError
        If `task` is unknown or "twist", if an array has the wrong shape, if the task Jacobian is
        not square or is singular, or if the robot has free or spherical joints.
    ModelError
        If the frame does not exist, or if the robot has loops or joints with prescribed motions.
    ArgumentError
        If an argument has the wrong type.

    Notes
    -----
    See Balafoutis and Patel (1991), Eq 7.4.11 to 7.4.13.

    Examples
    --------
    >>> import chasles
    >>> robot, q, zero = chasles.robots.puma560(), [0.3, 0.5, -1.0, 0.2, 0.9, -0.4], [0.0] * 6
    >>> dq, dqd, dqdd = chasles.control.joint_perturbations(
    ...     robot, q, zero, zero, [0.01, 0, 0, 0, 0, 0], zero, zero, frame="tool", task="pose"
    ... )
    >>> dq.shape
    (6,)
    """
    _varied("joint_perturbations", robot, task)
    J, Jd, Jdd = square_jacobians("joint_perturbations", robot, (q, qd, qdd), frame, task)
    back = np.linalg.inv(J)
    d, dd, ddd = (np.asarray(x, dtype=float) for x in (dchi, dchid, dchidd))
    dq = apply(back, d)
    dqd = apply(back, dd - apply(Jd, dq))
    return dq, dqd, apply(back, ddd - 2.0 * apply(Jd, dqd) - apply(Jdd, dq))


def operational_sensitivities(
    robot: Robot, q: Array, qd: Array, qdd: Array, frame: str, *, task: Task = "position"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sensitivities of joint torques to the motion of a frame.

    Parameters
    ----------
    robot : Robot
        The robot, which must have as many degrees of freedom as the task has coordinates.
    q : array_like, shape (..., nq)
        Joint positions (rad or m).
    qd, qdd : array_like, shape (..., nv)
        Joint velocities and accelerations.
    frame : str
        Name of a link or frame.
    task : {"position", "pose"}, optional
        Task coordinates chi; see the table in `chasles.control`.

    Returns
    -------
    D, V, P : ndarray, shape (..., nv, nv)
        Matrices in d tau = D d chidd + V d chid + P d chi, about the motion q, qd, qdd.

    Raises
    ------
    InputError
        If `task` is unknown or "twist", if an array has the wrong shape, if the task Jacobian is
        not square or is singular, or if the robot has free or spherical joints. Use
        `Robot.linearize` for these robots.
    ModelError
        If the frame does not exist, or if the robot has loops or joints with prescribed motions.
    ArgumentError
        If an argument has the wrong type.

    Notes
    -----
    Twists are not supported, because they are not time derivatives of coordinates. See Balafoutis
    and Patel (1991), Eq 7.4.14 to 7.4.18.

    Examples
    --------
    >>> import numpy as np
    >>> import chasles
    >>> robot = chasles.robots.general_chain(3)
    >>> q, qd, qdd = np.full((3, 3), 0.3)
    >>> D, V, P = chasles.control.operational_sensitivities(robot, q, qd, qdd, robot.frames[-1])
    >>> D.shape
    (3, 3)
    """
    name = "operational_sensitivities"
    _varied(name, robot, task)
    J, Jd, Jdd = square_jacobians(name, robot, (q, qd, qdd), frame, task)
    D0, V0, P0 = robot.inverse_dynamics_sensitivities(q, qd, qdd)
    back = np.linalg.inv(J)
    D = D0 @ back
    V = (V0 - 2.0 * D @ Jd) @ back
    return D, V, (P0 - V @ Jd - D @ Jdd) @ back


def _varied(name: str, robot: Robot, task: Task) -> None:
    """Raise an error if velocities of the task or a joint are not derivatives of coordinates."""
    robot.mechanism.refuse_loops(name, NEAR_A_MOTION)
    if checked_task(task) == "twist":
        problem = "a twist is not the time derivative of any coordinates"
        remedy = "use 'pose' or 'position'"
        raise InputError("E-CONTROL-005", problem, remedy, part=name)
    for body in robot.model.bodies:
        if not body.joint.additive:
            problem = (
                f"velocities of joint {body.data.name!r} are not the time derivatives of "
                "its coordinates"
            )
            raise InputError("E-CONTROL-300", problem, NEAR_A_MOTION, part=name)
