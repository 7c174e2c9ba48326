"""Tasks: parts of a frame's motion, their coordinates and Jacobians."""

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np

from chasles.errors import InputError, ModelError
from chasles.functions.pose_tasks import pose_task
from chasles.names import one_of
from chasles.robot import Robot

NEAR_A_MOTION = "use robot.linearize(q, qd, tau)"

Array = Any

Task = Literal["twist", "position", "pose"]

SINGULAR = 1e13
"""Smallest condition number at which a matrix is treated as singular."""


def task_coordinates(robot: Robot, q: Array, frame: str, *, task: Task = "pose") -> np.ndarray:
    """Return the task coordinates chi of a frame.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Joint positions (rad or m).
    frame : str
        Name of a link or frame.
    task : {"pose", "position"}, optional
        Part of the frame's motion; see the table in `chasles.control`.

    Returns
    -------
    chi : ndarray, shape (..., 3) or (..., 6)
        Coordinates x, y, z (m). For a pose, roll, pitch and yaw (rad) come first.

    Raises
    ------
    InputError
        If `task` is unknown or "twist", or if `q` has the wrong shape.
    ModelError
        If the frame does not exist.
    ArgumentError
        If an argument has the wrong type.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.planar(2)
    >>> chasles.control.task_coordinates(robot, [0.0, 0.5], frame="tip", task="position").round(3)
    array([1.878, 0.   , 0.479])
    """
    if checked_task(task) == "twist":
        problem = "a twist has no coordinates"
        remedy = "use 'pose' or 'position'"
        raise InputError("E-CONTROL-001", problem, remedy, part="task_coordinates")
    if task == "position":
        return robot.forward_kinematics(q, frame=frame)[..., :3, 3]
    time: tuple[Any, ...] = ()
    if robot.model.driven:
        robot.forward_kinematics(q, frame=frame)  # requires `robot.at_time`
        time = (robot.mechanism.t,)
    return _pose(robot, frame, -1)(q, *time)


def task_jacobian(robot: Robot, q: Array, frame: str, *, task: Task = "twist") -> np.ndarray:
    """Return the task Jacobian J, where J qd is the task velocity.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Joint positions (rad or m).
    frame : str
        Name of a link or frame.
    task : {"twist", "position", "pose"}, optional
        Part of the frame's motion; see the table in `chasles.control`.

    Returns
    -------
    J : ndarray, shape (..., 3 or 6, nv)
        Task Jacobian; for "pose" it is the derivative of chi.

    Raises
    ------
    InputError
        If `task` is unknown, or if `q` has the wrong shape.
    ModelError
        If the frame does not exist, or if a joint has a prescribed motion.
    ArgumentError
        If an argument has the wrong type.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.planar(2)
    >>> chasles.control.task_jacobian(robot, [0.0, 0.5], frame="tip", task="position").shape
    (3, 2)
    """
    return task_jacobians(robot, (q,), frame, checked_task(task))[0]


def task_jacobian_rate(
    robot: Robot, q: Array, qd: Array, frame: str, *, task: Task = "twist"
) -> np.ndarray:
    """Return the time derivative of the task Jacobian.

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
    Jdot : ndarray, shape (..., 3 or 6, nv)
        Time derivative of the entries of `task_jacobian`.

    Raises
    ------
    InputError
        If `task` is unknown, or if an array has the wrong shape.
    ModelError
        If the frame does not exist, or if a joint has a prescribed motion.
    ArgumentError
        If an argument has the wrong type.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.planar(2)
    >>> chasles.control.task_jacobian_rate(
    ...     robot, [0.0, 0.5], [1.0, 0.0], frame="tip", task="position"
    ... ).shape
    (3, 2)
    """
    _refuse_driven(robot)
    if checked_task(task) == "pose":
        return _pose(robot, frame, 1)(q, qd)
    return _cut(task, robot.jacobian_rate(q, qd, frame=frame))


def square_jacobians(
    name: str, robot: Robot, motion: tuple[Array, ...], frame: str, task: Task
) -> tuple[np.ndarray, ...]:
    """Return the task Jacobian J and its time derivatives, like `task_jacobians`.

    An error is raised if J is not square, if J is singular, or if the robot has closed loops.
    """
    robot.mechanism.refuse_loops(name, NEAR_A_MOTION)
    found = task_jacobians(robot, motion, frame, checked_task(task))
    if found[0].shape[-2] != robot.nv:
        problem = (
            f"task {task!r} has {found[0].shape[-2]} coordinates, but robot "
            f"{robot.name!r} has {robot.nv} degrees of freedom"
        )
        remedy = "lock joints or choose another task"
        raise InputError("E-CONTROL-006", problem, remedy, part=name)
    check_regular(name, found[0], "move away from the singularity")
    return found


def task_jacobians(
    robot: Robot, motion: tuple[Array, ...], frame: str, task: Task
) -> tuple[np.ndarray, ...]:
    """Return the task Jacobian J, with dJ/dt if qd is given and d2J/dt2 if qdd is given."""
    _refuse_driven(robot)
    if task == "pose":
        orders = range(len(motion))
        return tuple(_pose(robot, frame, k)(*motion[: k + 1]) for k in orders)
    J = [robot.jacobian(motion[0], frame=frame)]
    if len(motion) > 1:
        J.append(robot.jacobian_rate(*motion[:2], frame=frame))
    if len(motion) > 2:
        J.append(robot.jacobian_rate(*motion, frame=frame, order=2))
    return tuple(_cut(task, each) for each in J)


def _cut(task: Task, jacobian: np.ndarray) -> np.ndarray:
    return jacobian[..., 3:, :] if task == "position" else jacobian


def _refuse_driven(robot: Robot) -> None:
    if robot.model.driven:
        problem = (
            f"joint {robot.driven_joints[0]!r} has a prescribed motion, so task "
            "velocities are not J qd"
        )
        remedy = "use frame_velocity and frame_acceleration"
        raise ModelError("E-CONTROL-008", problem, remedy, part=f"robot {robot.name!r}")


def _pose(robot: Robot, frame: str, order: int) -> Callable[..., np.ndarray]:
    """Return the compiled function for a frame's pose coordinates or for their Jacobian.

    `order` is -1 for the coordinates, 0 for the Jacobian, and k for its k-th time derivative.
    """
    kept, key = robot.mechanism.kept, ("pose_task", frame, order)
    if key not in kept:
        robot.model.frame(frame)

        def check(q: Array, *rates: Array) -> None:
            robot.forward_kinematics(q, frame=frame)
            if order > 0:
                robot.frame_motion(q, *rates, frame=frame)

        kept[key] = pose_task(robot.model, frame, order, check)
    found: Callable[..., np.ndarray] = kept[key]
    return found


def checked_task(task: Task) -> Task:
    if task not in get_args(Task):
        raise InputError("E-CONTROL-009", f"unknown task {task!r}", one_of(task, get_args(Task)))
    return task


def check_regular(name: str, matrix: np.ndarray, remedy: str) -> None:
    """Raise an error if a matrix is singular; matrices with non-finite entries are not checked."""
    known = np.all(np.isfinite(matrix), axis=(-1, -2), keepdims=True)
    bad = np.linalg.cond(np.where(known, matrix, np.eye(matrix.shape[-1]))) >= SINGULAR
    if np.any(bad):
        at = f" at index {tuple(map(int, np.argwhere(bad)[0]))}" if bad.ndim else ""
        problem = f"the configuration is singular for this task{at}"
        raise InputError("E-CONTROL-010", problem, remedy, part=name)


def apply(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    product: np.ndarray = (matrix @ vector[..., None])[..., 0]
    return product


def transposed(matrix: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrix, -1, -2)
