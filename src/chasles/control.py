"""Models for control: task-space dynamics of a frame and its sensitivities, and computed torque.

Long because its docstrings have all sections.

from chasles import control
Lambda, bias = control.operational_dynamics(robot, q, qd, frame="hand")

A task selects a part of a frame's motion, along the world axes, at the frame's origin:

| task | rows | coordinates chi |
|---|---|---|
| "twist" | angular velocity, then linear velocity: 6 | none: their integral depends on the path |
| "position" | linear velocity: 3 | x, y, z (m) |
| "pose" | rates of chi: 6 | roll, pitch, yaw (rad; R = Rz Ry Rx), then x, y, z |

"pose" has no rates where the pitch is a right angle. Functions take leading shapes that broadcast.
Jacobians are those of the tree, with all nv rates; dynamics keep loops closed, or refuse them.
Balafoutis and Patel (1991), section 7.4; Khatib (1987).
"""

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from chasles.errors import InputError, ModelError
from chasles.functions.pose_tasks import pose_task
from chasles.mechanisms import TOLERANCE
from chasles.motion.controllers import computed_torque
from chasles.motion.perturbations import torque_perturbations
from chasles.motion.rates import ResolvedRate
from chasles.robot import Robot

__all__ = [
    "computed_torque",
    "joint_perturbations",
    "operational_dynamics",
    "operational_sensitivities",
    "operational_torques",
    "resolved_rate",
    "task_coordinates",
    "task_jacobian",
    "task_jacobian_rate",
    "task_perturbations",
    "torque_perturbations",
]

Array = Any
Task = Literal["twist", "position", "pose"]

_NEAR_A_MOTION = "use robot.linearize(q, qd, tau)"

SINGULAR = 1e13
"""Condition number above which the inverse of a matrix has no significant digits."""


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
        Part of the frame's motion; see the table of this module.

    Returns
    -------
    chi : ndarray, shape (..., 3) or (..., 6)
        x, y, z (m), after roll, pitch, yaw (rad) for a pose.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.planar(2)
    >>> chasles.control.task_coordinates(robot, [0.0, 0.5], frame="tip", task="position").round(3)
    array([1.878, 0.   , 0.479])
    """
    if _checked(task) == "twist":
        problem = "a twist has no coordinates"
        remedy = "use 'pose' or 'position'"
        raise InputError("E-CONTROL-001", problem, remedy, part="task_coordinates")
    if task == "position":
        return robot.forward_kinematics(q, frame=frame)[..., :3, 3]
    time: tuple[Any, ...] = ()
    if robot.model.driven:
        robot.forward_kinematics(q, frame=frame)  # which says so if there is no time
        time = (robot.mechanism.t,)
    return _pose(robot, frame, -1)(q, *time)


def task_jacobian(robot: Robot, q: Array, frame: str, *, task: Task = "twist") -> np.ndarray:
    """Return the task Jacobian J, with task velocity J qd.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Joint positions (rad or m).
    frame : str
        Name of a link or frame.
    task : {"twist", "position", "pose"}, optional
        Part of the frame's motion; see the table of this module.

    Returns
    -------
    J : ndarray, shape (..., 3 or 6, nv)
        Task Jacobian; for "pose" it is the derivative of chi.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.planar(2)
    >>> chasles.control.task_jacobian(robot, [0.0, 0.5], frame="tip", task="position").shape
    (3, 2)
    """
    return _jacobians(robot, (q,), frame, _checked(task))[0]


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
        Part of the frame's motion; see the table of this module.

    Returns
    -------
    Jdot : ndarray, shape (..., 3 or 6, nv)
        Time derivative of the entries of `task_jacobian`.

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
    if _checked(task) == "pose":
        return _pose(robot, frame, 1)(q, qd)
    return _cut(task, robot.jacobian_rate(q, qd, frame=frame))


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

    They satisfy f = Lambda xdd + bias with joint torques tau = J' f, where xdd is the derivative of
    the task velocity.

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
        Part of the frame's motion; see the table of this module.
    damping : float, optional
        Adds its square to the diagonal of J M^-1 J' (1/kg, 1/(kg m2)).

    Returns
    -------
    Lambda : ndarray, shape (..., k, k)
        Operational-space inertia.
    bias : ndarray, shape (..., k)
        Bias force, including gravity.

    Notes
    -----
    With a square J, Lambda = J^-T M J^-1 and bias = J^-T h - Lambda Jdot qd (Eq 7.4.1 to 7.4.4). A
    redundant robot has Lambda = (J M^-1 J')^-1 (Khatib 1987). A task with more rows than degrees of
    freedom, or a singular configuration, is an error unless `damping` is given. For a robot with
    loops and qd = G yd at a closed q, J G and G' M G replace J and M; all joint torques with the
    same G' tau as J' f have the same effect.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.planar(2).with_gravity((0, 0, 0))
    >>> Lambda, bias = chasles.control.operational_dynamics(
    ...     chasles.robots.puma560(), [0.3, 0.5, -1.0, 0.2, 0.9, -0.4], [0.0] * 6, frame="tool"
    ... )
    >>> Lambda.shape, bias.shape
    ((6, 6), (6,))
    """
    J, Jd = _jacobians(robot, (q, qd), frame, _checked(task))
    if damping is not None and not (np.isfinite(damping) and damping > 0.0):
        problem = f"damping must be a positive number, not {damping}"
        raise InputError("E-CONTROL-002", problem, part="operational_dynamics")
    J, M, h, Jd_qd = _freedoms(robot, q, qd, J, Jd)
    k, n = J.shape[-2:]
    if damping is None and k > n:
        problem = f"task {task!r} has {k} rows, but robot {robot.name!r} has {n} degrees of freedom"
        remedy = "choose a smaller task, or give `damping`"
        raise InputError("E-CONTROL-003", problem, remedy, part="operational_dynamics")
    solved = np.linalg.solve(M, _transposed(J))
    mobility = J @ solved
    if damping is None:
        _regular("operational_dynamics", mobility, "give damping=")
    else:
        mobility = mobility + damping**2 * np.eye(k)
    Lambda = np.linalg.inv(mobility)
    Lambda = 0.5 * (Lambda + _transposed(Lambda))
    drift = _apply(_transposed(solved), h) - Jd_qd
    return Lambda, _apply(Lambda, drift)


class _Freedoms(NamedTuple):
    """J, M, h and Jdot qd of a task in the independent coordinates."""

    J: np.ndarray
    M: np.ndarray
    h: np.ndarray
    Jd_qd: np.ndarray


def _freedoms(robot: Robot, q: Array, qd: Array, J: np.ndarray, Jd: np.ndarray) -> _Freedoms:
    """Return the task dynamics in independent coordinates, qd = G yd and qdd = G ydd + g.

    G' M G ydd + G' (h + M g) = G' tau and xdd = J qdd + Jd qd. Without loops G is 1 and g is 0
    (Featherstone 2008, Eq 8.44).
    """
    M, h, v = robot.mass_matrix(q), robot.bias_forces(q, qd), np.asarray(qd, dtype=float)
    drift = _apply(Jd, v)
    G, M_closed = robot.mechanism.reduced("operational_dynamics", q)
    loops = robot.mechanism.closing
    loops.check_rates("operational_dynamics", q, v, tolerance=TOLERANCE)
    g = loops.accelerated(q, v, np.zeros(G.shape[-1]), TOLERANCE)
    bias = _apply(_transposed(G), h + _apply(M, g))
    return _Freedoms(J @ G, M_closed, bias, drift + _apply(J, g))


def operational_torques(
    robot: Robot, q: Array, qd: Array, *, frame: str, task: Task = "twist"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return D, C and G of the joint torques tau = D xdd + C + G for task accelerations xdd.

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
        Part of the frame's motion; see the table of this module.

    Returns
    -------
    D : ndarray, shape (..., nv, nv)
        M J^-1; J must be square and regular.
    C : ndarray, shape (..., nv)
        C(q, qd) - D Jdot qd.
    G : ndarray, shape (..., nv)
        Gravity and spring forces.

    Notes
    -----
    See Balafoutis and Patel (1991), Eq 7.4.5. Unlike `operational_dynamics`, there are no forces on
    the frame.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.puma560()
    >>> q, qd = [0.3, 0.5, -1.0, 0.2, 0.9, -0.4], [0.0] * 6
    >>> D, C, G = chasles.control.operational_torques(robot, q, qd, frame="tool")
    >>> D.shape, C.shape, G.shape
    ((6, 6), (6,), (6,))
    """
    J, Jd = _square("operational_torques", robot, (q, qd), frame, task)
    D, G = robot.mass_matrix(q) @ np.linalg.inv(J), robot.bias_forces(q, np.zeros(robot.nv))
    v = np.asarray(qd, dtype=float)
    return D, robot.bias_forces(q, v) - G - _apply(D, _apply(Jd, v)), G


def resolved_rate(
    robot: Robot,
    tasks: Any,
    *,
    dt: float,
    acceleration: Array = math.inf,
    weights: Array = 1.0,
    damping: float = 0.05,
    singular: float = 0.05,
    passes: int | None = None,
) -> ResolvedRate:
    """Return a compiled step from wanted velocities of frames to joint velocities, within limits.

    Parameters
    ----------
    tasks
        {frame: "twist", "position" or "orientation"}, or a list of these, the first of which has
        the highest priority. The key "center of mass" accepts "position". Velocities are along the
        world's axes, at the frame's origin; angular velocities come first.
    dt
        Time step (s), during which positions must not pass their limits.
    acceleration
        Largest joint acceleration (rad/s2 or m/s2): one number, or one for each (nv,).
    weights
        Weights of the squared errors: one number, or one for each row of the tasks. 0 ignores a
        row.
    damping, singular
        Damping near singularities, for rows in rad and relative to the robot's size. The damping is
        damping^2 (1 - (s / singular)^2)^2 where s < singular, and 1e-10 elsewhere, with
        s^2 = 1 / trace((J J')^-1), which vanishes with the least singular value of J.
    passes
        Number of active-set iterations for each priority: by default nv + 4, at most 12. Fewer
        iterations give a velocity within all limits that may not be optimal.

    Returns
    -------
    ResolvedRate
        `step(q, qd, rates, preferred=None, out=None)`. Limits of position and velocity are those
        of the robot; `step.velocity[:] = 0.5` changes them.

    Notes
    -----
    Each priority is a least-squares problem with bounds, solved by a primal active set within the
    null space of the higher ones. Acceleration bounds take precedence over velocity bounds, and
    these over position bounds. The equations of closed loops have the highest priority.

    Examples
    --------
    >>> robot = chasles.robots.puma560()
    >>> step = chasles.control.resolved_rate(robot, {"tool": "twist"}, dt=0.001)
    >>> qd = step(robot.neutral(), np.zeros(6), [0.0, 0.0, 0.1, 0.0, 0.0, 0.0])
    """
    limits = {name: getattr(robot.limits, name) for name in ("lower", "upper", "velocity")}
    options: dict[str, Any] = {"acceleration": acceleration, "weights": weights, "passes": passes}
    options |= {"damping": damping, "singular": singular}
    return ResolvedRate(robot.mechanism, limits, tasks, dt=dt, **options)


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
    """Return small changes of a task's motion for small changes of a joint motion.

    Parameters
    ----------
    robot : Robot
        The robot.
    q, qd, qdd : array_like
        Motion (..., nq), (..., nv), (..., nv) about which to linearize.
    dq, dqd, dqdd : array_like, shape (..., nv)
        Small changes of the joint motion.
    frame : str
        Name of a link or frame.
    task : {"pose", "position"}, optional
        Part of the frame's motion; see the table of this module.

    Returns
    -------
    dchi, dchid, dchidd : ndarray, shape (..., k)
        Changes of the task coordinates and their time derivatives.

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
    J, Jd, Jdd = _jacobians(robot, (q, qd, qdd), frame, task)
    d, dd, ddd = (np.asarray(x, dtype=float) for x in (dq, dqd, dqdd))
    first = _apply(J, d)
    second = _apply(Jd, d) + _apply(J, dd)
    return first, second, _apply(Jdd, d) + 2.0 * _apply(Jd, dd) + _apply(J, ddd)


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
    """Return small changes of a joint motion for small changes of a task's motion.

    This is the inverse of `task_perturbations`. J must be square and regular.

    Parameters
    ----------
    robot : Robot
        The robot.
    q, qd, qdd : array_like
        Motion (..., nq), (..., nv), (..., nv) about which to linearize.
    dchi, dchid, dchidd : array_like, shape (..., k)
        Small changes of the task coordinates and their time derivatives.
    frame : str
        Name of a link or frame.
    task : {"pose", "position"}, optional
        Part of the frame's motion; see the table of this module.

    Returns
    -------
    dq, dqd, dqdd : ndarray, shape (..., nv)
        Changes of the joint motion.

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
    J, Jd, Jdd = _square("joint_perturbations", robot, (q, qd, qdd), frame, task)
    back = np.linalg.inv(J)
    d, dd, ddd = (np.asarray(x, dtype=float) for x in (dchi, dchid, dchidd))
    dq = _apply(back, d)
    dqd = _apply(back, dd - _apply(Jd, dq))
    return dq, dqd, _apply(back, ddd - 2.0 * _apply(Jd, dqd) - _apply(Jdd, dq))


def operational_sensitivities(
    robot: Robot, q: Array, qd: Array, qdd: Array, frame: str, *, task: Task = "position"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sensitivities D, V, P of joint torques to motions of a frame (7.4.14 to 7.4.18).

    Parameters
    ----------
    robot : Robot
        The robot, with as many degrees of freedom as the task has coordinates.
    q : array_like, shape (..., nq)
        Joint positions (rad or m).
    qd, qdd : array_like, shape (..., nv)
        Joint velocities and accelerations.
    frame : str
        The frame.
    task : {"position", "pose"}, optional
        Coordinates chi of the frame.

    Returns
    -------
    D, V, P : ndarray, shape (..., nv, nv)
        Matrices of d tau = D d chidd + V d chid + P d chi, about the motion q, qd, qdd.

    Raises
    ------
    InputError
        If J is not square or singular, the task is a twist, or the robot has free or spherical
        joints or loops; use `Robot.linearize` for these.

    Notes
    -----
    A twist is not supported, because its variation is not the rate of a variation. Source:
    Balafoutis and Patel (1991), section 7.4.

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
    J, Jd, Jdd = _square(name, robot, (q, qd, qdd), frame, task)
    D0, V0, P0 = robot.inverse_dynamics_sensitivities(q, qd, qdd)
    back = np.linalg.inv(J)
    D = D0 @ back
    V = (V0 - 2.0 * D @ Jd) @ back
    return D, V, (P0 - V @ Jd - D @ Jdd) @ back


def _varied(name: str, robot: Robot, task: Task) -> None:
    """Refuse a task or a robot whose variations do not commute with rates."""
    robot.mechanism.refuse_loops(name, _NEAR_A_MOTION)
    if _checked(task) == "twist":
        problem = "a twist has no coordinates to vary"
        remedy = "use 'pose' or 'position'"
        raise InputError("E-CONTROL-005", problem, remedy, part=name)
    for body in robot.model.bodies:
        if not body.joint.additive:
            problem = (
                f"velocities of joint {body.data.name!r} are not the time derivatives of "
                "its coordinates"
            )
            raise InputError("E-CONTROL-300", problem, _NEAR_A_MOTION, part=name)


def _square(
    name: str, robot: Robot, motion: tuple[Array, ...], frame: str, task: Task
) -> tuple[np.ndarray, ...]:
    """Return `_jacobians` of a robot without loops; raise unless J is square and regular."""
    robot.mechanism.refuse_loops(name, _NEAR_A_MOTION)
    found = _jacobians(robot, motion, frame, _checked(task))
    if found[0].shape[-2] != robot.nv:
        problem = (
            f"task {task!r} has {found[0].shape[-2]} coordinates, but robot "
            f"{robot.name!r} has {robot.nv} degrees of freedom"
        )
        remedy = "lock joints or choose another task"
        raise InputError("E-CONTROL-006", problem, remedy, part=name)
    _regular(name, found[0], "move away from the singularity")
    return found


def _jacobians(
    robot: Robot, motion: tuple[Array, ...], frame: str, task: Task
) -> tuple[np.ndarray, ...]:
    """Return J of a task, with qd also its rate, and with qdd also its second rate."""
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
    """Return `pose_task` of a robot, made once."""
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


def _checked(task: Task) -> Task:
    if task not in get_args(Task):
        known = ", ".join(map(repr, get_args(Task)))
        raise InputError("E-CONTROL-009", f"task must be one of {known}, not {task!r}")
    return task


def _regular(name: str, matrix: np.ndarray, remedy: str) -> None:
    """Raise if a matrix cannot be inverted; matrices that are not finite pass."""
    known = np.all(np.isfinite(matrix), axis=(-1, -2), keepdims=True)
    bad = np.linalg.cond(np.where(known, matrix, np.eye(matrix.shape[-1]))) >= SINGULAR
    if np.any(bad):
        at = f" at index {tuple(map(int, np.argwhere(bad)[0]))}" if bad.ndim else ""
        problem = f"the configuration is singular for this task{at}"
        raise InputError("E-CONTROL-010", problem, remedy, part=name)


def _apply(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    product: np.ndarray = (matrix @ vector[..., None])[..., 0]
    return product


def _transposed(matrix: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrix, -1, -2)
