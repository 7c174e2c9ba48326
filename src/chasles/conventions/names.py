"""Positions and velocities by joint name, and as messages of ROS."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chasles.functions.doors import from_names, numbers
from chasles.robot import Array, Robot


def position_by_name(robot: Robot, q: Array) -> dict[str, np.ndarray]:
    """Return {joint: its part of q}: (...) for joints with one coordinate, else (..., n)."""
    return _by_name(numbers("q", q, robot.nq), robot.position_slice, robot.joints)


def velocity_by_name(robot: Robot, qd: Array) -> dict[str, np.ndarray]:
    """{joint: its part of qd, qdd or tau}: (...) for joints with one degree of freedom, else (...,
    n).
    """
    return _by_name(numbers("qd", qd, robot.nv), robot.velocity_slice, robot.joints)


def position_from_names(
    robot: Robot, values: Mapping[str, Array], *, default: Array = None
) -> np.ndarray:
    """Return q (..., nq) from {joint: position}; other joints as in `default` (`robot.state`)."""
    return robot.state(values, default=default)


def velocity_from_names(
    robot: Robot, values: Mapping[str, Array], *, default: Array = None
) -> np.ndarray:
    """Return qd, qdd or tau (..., nv) from {joint: value}; others as in `default` (zero)."""
    qd = numbers("default", np.zeros(robot.nv) if default is None else default, robot.nv)
    return from_names(values, robot.velocity_slice, qd)


def to_joint_state(
    robot: Robot, q: Array, qd: Array = None, tau: Array = None
) -> dict[str, list[Any]]:
    """Return the fields of sensor_msgs/JointState: name, position, velocity, effort (or empty).

    The message only supports joints with one degree of freedom; convert a floating base with
    `to_pose`.
    """
    bodies = [robot.model.bodies[i] for i in robot.model.movers]
    names = [body.data.name for body in bodies if body.joint.nq == 1]
    p = [robot.position_slice(name).start for name in names]
    v = [robot.velocity_slice(name).start for name in names]
    return {
        "name": names,
        "position": numbers("q", q, robot.nq)[..., p].tolist(),
        "velocity": [] if qd is None else numbers("qd", qd, robot.nv)[..., v].tolist(),
        "effort": [] if tau is None else numbers("tau", tau, robot.nv)[..., v].tolist(),
    }


def from_joint_state(
    robot: Robot, message: Any, *, default: Array = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (q, qd, tau) of a sensor_msgs/JointState, or of a mapping with its fields.

    Joints that it does not name, and all joints if a field is empty, are as in `default` (a q;
    neutral if omitted), at rest and without force. Mimic followers in it are ignored, because they
    move with their leaders.
    """
    names: list[str] = list(_field(message, "name"))
    followers = set(robot.moving_joints) - set(robot.joints)

    def values_of(key: str) -> dict[str, np.ndarray]:
        given = _field(message, key)
        if len(given) == 0:
            return {}
        values = numbers(f"JointState.{key}", given, len(names))
        return {name: values[..., k] for k, name in enumerate(names) if name not in followers}

    return (
        position_from_names(robot, values_of("position"), default=default),
        velocity_from_names(robot, values_of("velocity")),
        velocity_from_names(robot, values_of("effort")),
    )


def _field(message: Any, key: str) -> Any:
    return message.get(key, ()) if isinstance(message, Mapping) else getattr(message, key)


def _by_name(
    array: np.ndarray, where: Callable[[str], slice], joints: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return {joint: its part}: (...) for joints with one number, (..., n) for others."""
    parts = {name: array[..., where(name)] for name in joints}
    return {name: p[..., 0] if p.shape[-1] == 1 else p for name, p in parts.items()}
