"""Convert positions and velocities to and from ROS messages and dicts keyed by joint name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chasles.functions.doors import from_names, numbers
from chasles.robot import Array, Robot


def position_by_name(robot: Robot, q: Array) -> dict[str, np.ndarray]:
    """Return joint positions by joint name.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Joint positions.

    Returns
    -------
    values : dict
        Positions by joint name: shape (...) for joints with one coordinate, otherwise (..., n).

    Raises
    ------
    InputError
        If `q` does not have nq entries along its last axis.
    ArgumentError
        If `q` is not an array of real numbers.

    Examples
    --------
    >>> import chasles
    >>> chasles.conventions.position_by_name(chasles.robots.planar(2), [0.1, 0.2])
    {'joint1': array(0.1), 'joint2': array(0.2)}
    """
    return _by_name(numbers("q", q, robot.nq), robot.position_slice, robot.joints)


def velocity_by_name(robot: Robot, qd: Array) -> dict[str, np.ndarray]:
    """Return joint velocities, accelerations or torques by joint name.

    Parameters
    ----------
    robot : Robot
        The robot.
    qd : array_like, shape (..., nv)
        Values of qd, qdd or tau.

    Returns
    -------
    values : dict
        Values by joint name: shape (...) for joints with one degree of freedom, otherwise (..., n).

    Raises
    ------
    InputError
        If `qd` does not have nv entries along its last axis.
    ArgumentError
        If `qd` is not an array of real numbers.

    Examples
    --------
    >>> import chasles
    >>> chasles.conventions.velocity_by_name(chasles.robots.planar(2), [0.1, 0.2])
    {'joint1': array(0.1), 'joint2': array(0.2)}
    """
    return _by_name(numbers("qd", qd, robot.nv), robot.velocity_slice, robot.joints)


def position_from_names(
    robot: Robot, values: Mapping[str, Array], *, default: Array = None
) -> np.ndarray:
    """Return q from a mapping of joint names to positions, as `robot.state` does.

    Parameters
    ----------
    robot : Robot
        The robot.
    values : mapping
        Positions by joint name.
    default : array_like, shape (..., nq), optional
        Positions of joints that are not in `values`. Default: the neutral configuration.

    Returns
    -------
    q : ndarray, shape (..., nq)
        Joint positions.

    Raises
    ------
    InputError
        If an array does not have one entry per coordinate along its last axis.
    ModelError
        If a joint in `values` does not exist.
    ArgumentError
        If `values` is not a mapping.

    Examples
    --------
    >>> import chasles
    >>> chasles.conventions.position_from_names(chasles.robots.planar(2), {"joint2": 0.5})
    array([0. , 0.5])
    """
    return robot.state(values, default=default)


def velocity_from_names(
    robot: Robot, values: Mapping[str, Array], *, default: Array = None
) -> np.ndarray:
    """Return qd, qdd or tau from a mapping of joint names to values.

    Parameters
    ----------
    robot : Robot
        The robot.
    values : mapping
        Values by joint name.
    default : array_like, shape (..., nv), optional
        Values of joints that are not in `values`. Default: zero.

    Returns
    -------
    qd : ndarray, shape (..., nv)
        Velocities, accelerations or torques.

    Raises
    ------
    InputError
        If an array does not have one entry per degree of freedom along its last axis.
    ModelError
        If a joint in `values` does not exist.
    ArgumentError
        If `default` or a value is not an array of real numbers.

    Examples
    --------
    >>> import chasles
    >>> chasles.conventions.velocity_from_names(chasles.robots.planar(2), {"joint2": 0.5})
    array([0. , 0.5])
    """
    qd = numbers("default", np.zeros(robot.nv) if default is None else default, robot.nv)
    return from_names(values, robot.velocity_slice, qd)


def to_joint_state(
    robot: Robot, q: Array, qd: Array = None, tau: Array = None
) -> dict[str, list[Any]]:
    """Return the fields of sensor_msgs/JointState: name, position, velocity, effort.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Joint positions.
    qd : array_like, shape (..., nv), optional
        Joint velocities. If omitted, the field is empty.
    tau : array_like, shape (..., nv), optional
        Joint torques. If omitted, the field is empty.

    Returns
    -------
    message : dict
        Lists by field name.

    Raises
    ------
    InputError
        If the last axis of an array does not have the documented size.
    ArgumentError
        If an argument is not an array of real numbers.

    Notes
    -----
    The message supports only joints with one degree of freedom. Convert the pose of a floating base
    with `to_pose`.

    Examples
    --------
    >>> import chasles
    >>> chasles.conventions.to_joint_state(chasles.robots.planar(2), [0.1, 0.2])["name"]
    ['joint1', 'joint2']
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
    """Return (q, qd, tau) from a sensor_msgs/JointState message or an equivalent mapping.

    Parameters
    ----------
    robot : Robot
        The robot.
    message : JointState or mapping
        The message.
    default : array_like, shape (nq,), optional
        Positions of joints that the message does not name. Default: the neutral configuration.

    Returns
    -------
    q : ndarray, shape (..., nq)
        Joint positions.
    qd, tau : ndarray, shape (..., nv)
        Joint velocities and torques. Values that the message does not contain are zero.

    Raises
    ------
    InputError
        If a field of the message does not have one entry per name.
    ModelError
        If a joint in the message does not exist.
    ArgumentError
        If a field of the message is not an array of real numbers.

    Notes
    -----
    Mimic joints in the message are ignored, because other joints determine their motion.

    Examples
    --------
    >>> import chasles
    >>> message = {"name": ["joint2"], "position": [0.5]}
    >>> chasles.conventions.from_joint_state(chasles.robots.planar(2), message)[0]
    array([0. , 0.5])
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
    """Split an array by joint: shape (...) for joints with one coordinate, otherwise (..., n)."""
    parts = {name: array[..., where(name)] for name in joints}
    return {name: p[..., 0] if p.shape[-1] == 1 else p for name, p in parts.items()}
