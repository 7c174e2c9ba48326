"""Models for control: a frame's own dynamics and its sensitivities, and computed torque.

from chasles import control
Lambda, bias = control.operational_dynamics(robot, q, qd, frame="hand")

A task says what of a frame's motion counts, along the world's axes, at the frame's origin:

| task | rows | coordinates chi |
|---|---|---|
| "twist" | angular velocity, then linear velocity: 6 | none: their integral depends on the way |
| "position" | linear velocity: 3 | x, y, z (m) |
| "pose" | rates of chi: 6 | roll, pitch, yaw (rad; R = Rz Ry Rx), then x, y, z |

"pose" has no rates where the pitch is a right angle. Functions take leading shapes that broadcast.
Jacobians are those of the tree, with all nv rates; dynamics keep loops closed, or refuse them.
Balafoutis and Patel (1991), section 7.4; Khatib (1987).
"""

from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from chasles.errors import InputError, ModelError
from chasles.mechanisms import TOLERANCE
from chasles.motion.controllers import computed_torque
from chasles.robot import Robot

__all__ = [
    "computed_torque",
    "operational_dynamics",
    "operational_sensitivities",
    "task_coordinates",
    "task_jacobian",
    "task_jacobian_rate",
]

Array = Any
Task = Literal["twist", "position", "pose"]

SINGULAR = 1e13
"""Condition number from which on a matrix cannot be inverted to any digit that means something."""


def task_coordinates(robot: Robot, q: Array, *, frame: str, task: Task = "pose") -> np.ndarray:
    """chi of a frame: (..., 3) or (..., 6)."""
    if _checked(task) == "twist":
        problem = "a twist has no coordinates"
        remedy = "use 'pose' or 'position'"
        raise InputError("E-CONTROL-001", problem, remedy, part="task_coordinates")
    pose = robot.forward_kinematics(q, frame=frame)
    place = pose[..., :3, 3]
    return place if task == "position" else np.concatenate([_angles(pose), place], axis=-1)


def task_jacobian(robot: Robot, q: Array, *, frame: str, task: Task = "twist") -> np.ndarray:
    """J with rates of the task J qd: (..., 3 or 6, nv); of "pose" it is the derivative of chi."""
    still = np.zeros(robot.nv)
    return _jacobians(robot, q, still, None, frame, _checked(task)).J


def task_jacobian_rate(
    robot: Robot, q: Array, qd: Array, *, frame: str, task: Task = "twist"
) -> np.ndarray:
    """The time derivative of the entries of `task_jacobian`: (..., 3 or 6, nv)."""
    return _jacobians(robot, q, qd, None, frame, _checked(task)).Jd


def operational_dynamics(
    robot: Robot,
    q: Array,
    qd: Array,
    *,
    frame: str,
    task: Task = "twist",
    damping: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Lambda (..., k, k) and bias (..., k) of f = Lambda xdd + bias, tau = J' f.

    xdd: the derivative of the task's rates. With a square J, Lambda = J^-T M J^-1 and bias = J^-T h
    - Lambda Jdot qd, gravity included (Eq 7.4.1 to 7.4.4); a robot with more freedoms than the task
    has rows has Lambda = (J M^-1 J')^-1 (Khatib 1987). A task with more rows than the robot has
    freedoms, or a singular configuration, has neither: it is an error unless `damping` is given,
    which adds its square to the diagonal of J M^-1 J' (in 1/kg, 1/(kg m2)).

    Of a robot with loops, whose motion is qd = G yd at a closed q, J G and G' M G take the places
    of J and M: Lambda is what the frame feels of closed motions, and all joint forces with the same
    G' tau as J' f do the same.
    """
    J, Jd, _ = _jacobians(robot, q, qd, None, frame, _checked(task))
    if damping is not None and not (np.isfinite(damping) and damping > 0.0):
        problem = f"damping must be a positive number, not {damping}"
        raise InputError("E-CONTROL-002", problem, part="operational_dynamics")
    J, M, h, Jd_qd = _freedoms(robot, q, qd, J, Jd)
    k, n = J.shape[-2:]
    if damping is None and k > n:
        problem = f"task {task!r} has {k} rows, but robot {robot.name!r} has {n} freedoms"
        remedy = "choose a smaller task, or give damping="
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
    """J, M and h of a task, and Jdot qd, in the freedoms that loops leave."""

    J: np.ndarray
    M: np.ndarray
    h: np.ndarray
    Jd_qd: np.ndarray


def _freedoms(robot: Robot, q: Array, qd: Array, J: np.ndarray, Jd: np.ndarray) -> _Freedoms:
    """With qd = G yd and qdd = G ydd + g: G' M G ydd + G' (h + M g) = G' tau, xdd = J qdd + Jd qd.

    Without loops G is 1 and g is 0 (Featherstone 2008, Eq 8.44).
    """
    M, h, v = robot.mass_matrix(q), robot.bias_forces(q, qd), np.asarray(qd, dtype=float)
    drift = _apply(Jd, v)
    G, M_closed = robot.mechanism.reduced("operational_dynamics", q)
    loops = robot.mechanism.closing
    loops.check_rates("operational_dynamics", q, v, tolerance=TOLERANCE)
    g = loops.accelerated(q, v, np.zeros(G.shape[-1]), TOLERANCE)
    bias = _apply(_transposed(G), h + _apply(M, g))
    return _Freedoms(J @ G, M_closed, bias, drift + _apply(J, g))


def operational_sensitivities(
    robot: Robot, q: Array, qd: Array, qdd: Array, *, frame: str, task: Task = "position"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """D, V, P (..., nv, nv) of d tau = D d chidd + V d chid + P d chi (Eq 7.4.14 to 7.4.18).

    About the motion through q, qd, qdd. J must be square and regular: as many freedoms as
    coordinates. A twist is refused, since its variation is not the rate of a variation; so are
    robots with loops, of which `Robot.linearize` has what is near a motion.
    """
    robot.mechanism.refuse_loops("operational_sensitivities", "use robot.linearize(q, qd, tau)")
    if _checked(task) == "twist":
        problem = "a twist has no coordinates to vary"
        remedy = "use 'pose' or 'position'"
        raise InputError("E-CONTROL-005", problem, remedy, part="operational_sensitivities")
    J, Jd, Jdd = _jacobians(robot, q, qd, qdd, frame, task)
    assert Jdd is not None
    if J.shape[-2] != robot.nv:
        problem = (
            f"task {task!r} has {J.shape[-2]} coordinates, but robot {robot.name!r} has {robot.nv} "
            "freedoms"
        )
        remedy = "lock joints or choose another task"
        raise InputError("E-CONTROL-006", problem, remedy, part="operational_sensitivities")
    _regular("operational_sensitivities", J, "move away from it")
    D0, V0, P0 = robot.inverse_dynamics_sensitivities(q, qd, qdd)
    back = np.linalg.inv(J)
    D = D0 @ back
    V = (V0 - 2.0 * D @ Jd) @ back
    return D, V, (P0 - V @ Jd - D @ Jdd) @ back


class _Jacobians(NamedTuple):
    """J of a task, its rate, and the rate of that along a motion (None where no qdd is given)."""

    J: np.ndarray
    Jd: np.ndarray
    Jdd: np.ndarray | None


def _jacobians(robot: Robot, q: Array, qd: Array, qdd: Array, frame: str, task: Task) -> _Jacobians:
    """Jacobians of a twist, cut down to a position or turned into rates of a pose."""
    if robot.driven_joints:
        problem = (
            f"joint {robot.driven_joints[0]!r} is driven in time, so that rates of a task are not "
            "J qd"
        )
        remedy = "use frame_velocity and frame_acceleration"
        raise ModelError("E-CONTROL-008", problem, remedy, part=f"robot {robot.name!r}")
    J, Jd = robot.jacobian(q, frame=frame), robot.jacobian_rate(q, qd, frame=frame)
    Jdd = None
    if qdd is not None:
        by_q, by_qd = robot.derivatives("jacobian_rate", q, qd, frame=frame)
        v, a = (np.asarray(x, dtype=float)[..., None, :, None] for x in (qd, qdd))
        Jdd = (by_q @ v + by_qd @ a)[..., 0]
    if task == "position":
        return _Jacobians(J[..., 3:, :], Jd[..., 3:, :], None if Jdd is None else Jdd[..., 3:, :])
    twist = _Jacobians(J, Jd, Jdd)
    return twist if task == "twist" else _pose_jacobians(robot, q, qd, qdd, frame, twist)


def _pose_jacobians(
    robot: Robot, q: Array, qd: Array, qdd: Array, frame: str, twist: _Jacobians
) -> _Jacobians:
    """w = T(angles) rates, where T has the turned axes of roll, pitch and yaw as columns.

    The axis of pitch turns with yaw (at wy), that of roll with yaw and pitch (at wx).
    """
    x, y, z = _axes(_angles(robot.forward_kinematics(q, frame=frame)))
    back = np.linalg.inv(np.stack([x, y, z], axis=-1))
    J, Jd, Jdd = twist
    v = np.asarray(qd, dtype=float)
    first = back @ J[..., :3, :]
    rates = _apply(first, v)
    wy = z * rates[..., 2:]
    wx = wy + y * rates[..., 1:2]
    xd, yd = np.cross(wx, x), np.cross(wy, y)
    Td = np.stack([xd, yd, np.zeros_like(yd)], axis=-1)
    second = back @ (Jd[..., :3, :] - Td @ first)
    Ja = np.concatenate([first, J[..., 3:, :]], axis=-2)
    Jad = np.concatenate([second, Jd[..., 3:, :]], axis=-2)
    if Jdd is None:
        return _Jacobians(Ja, Jad, None)
    accelerations = _apply(first, np.asarray(qdd, dtype=float)) + _apply(second, v)
    ay = z * accelerations[..., 2:]
    ax = ay + y * accelerations[..., 1:2] + yd * rates[..., 1:2]
    xdd, ydd = np.cross(ax, x) + np.cross(wx, xd), np.cross(ay, y) + np.cross(wy, yd)
    Tdd = np.stack([xdd, ydd, np.zeros_like(ydd)], axis=-1)
    third = back @ (Jdd[..., :3, :] - Tdd @ first - 2.0 * Td @ second)
    return _Jacobians(Ja, Jad, np.concatenate([third, Jdd[..., 3:, :]], axis=-2))


def _angles(pose: np.ndarray) -> np.ndarray:
    """Roll, pitch, yaw of R = Rz Ry Rx: (..., 3)."""
    R = pose[..., :3, :3]
    roll = np.arctan2(R[..., 2, 1], R[..., 2, 2])
    pitch = np.arctan2(-R[..., 2, 0], np.hypot(R[..., 0, 0], R[..., 1, 0]))
    return np.stack([roll, pitch, np.arctan2(R[..., 1, 0], R[..., 0, 0])], axis=-1)


def _axes(angles: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The axes in the world that roll, pitch and yaw turn about."""
    (sp, sy), (cp, cy) = (np.moveaxis(f(angles[..., 1:]), -1, 0) for f in (np.sin, np.cos))
    zero, one = np.zeros_like(sp), np.ones_like(sp)
    return (
        np.stack([cy * cp, sy * cp, -sp], axis=-1),
        np.stack([-sy, cy, zero], axis=-1),
        np.stack([zero, zero, one], axis=-1),
    )


def _checked(task: Task) -> Task:
    if task not in get_args(Task):
        known = ", ".join(map(repr, get_args(Task)))
        raise InputError("E-CONTROL-009", f"task must be one of {known}, not {task!r}")
    return task


def _regular(name: str, matrix: np.ndarray, remedy: str) -> None:
    """Refuse what cannot be inverted; what is not finite stays so."""
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
