"""Robots with one or two free bodies, for tests of contact."""

import math
from typing import NamedTuple

import numpy as np

import chasles
from chasles.contact import Contact
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.mechanisms import Mechanism
from chasles.model import Description, JointData, LinkData

GRAVITY = 9.81


def body(mass: float, moments: tuple[float, float, float], name: str = "body") -> LinkData:
    """Return a link whose center of mass is at its origin."""
    inertia = RigidInertia.from_center(mass, Vector.zero(), Symmetric(*moments, 0.0, 0.0, 0.0))
    return LinkData(name, inertia)


def free(*links: LinkData) -> chasles.Robot:
    """Return a robot whose links move freely under gravity."""
    joints = tuple(JointData(f"{k.name}_joint", "free", None, k.name) for k in links)
    return chasles.Robot(Description("bodies", links, joints))


def ball(mass: float = 2.0, radius: float = 0.3) -> chasles.Robot:
    """Return a uniform ball."""
    moment = 0.4 * mass * radius * radius
    return free(body(mass, (moment, moment, moment)))


def block(mass: float, size: tuple[float, float, float]) -> chasles.Robot:
    """Return a uniform cuboid."""
    x, y, z = (mass * s * s / 12.0 for s in size)
    return free(body(mass, (y + z, x + z, x + y)))


def turned(angle: float, axis: tuple[float, float, float] = (0.0, 1.0, 0.0)) -> np.ndarray:
    """Return the quaternion of a rotation."""
    return np.array([math.cos(0.5 * angle), *(math.sin(0.5 * angle) * np.array(axis))])


def rotation(angle: float) -> np.ndarray:
    """Return the matrix of a rotation about y."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


class Touch(NamedTuple):
    """Velocity of a contact's successor relative to its predecessor, along the world's axes.

    velocity = J qd (..., 3) is the relative velocity of the two body points that coincide with the
    contact point C. Its rate is J qdd + bias.
    """

    J: np.ndarray
    velocity: np.ndarray
    bias: np.ndarray


def touch(mechanism: Mechanism, q: np.ndarray, qd: np.ndarray, contact: Contact) -> Touch:
    """Return the relative motion at a contact from frame functions, as an oracle for `Moves`."""
    over, under = (_passing(mechanism, q, qd, frame, contact) for frame in contact[:2])
    return Touch(*(a - b for a, b in zip(over, under, strict=True)))


def _passing(
    mechanism: Mechanism, q: np.ndarray, qd: np.ndarray, frame: str | None, contact: Contact
) -> Touch:
    """Return the velocity of the body point that coincides with C, while C itself moves."""
    if frame is None:
        return Touch(np.zeros((3, mechanism.nv)), np.zeros(3), np.zeros(3))
    w, v = np.split(mechanism.frame_velocity(q, qd, frame=frame), 2)
    still = np.zeros(mechanism.nv)
    alpha, a = np.split(mechanism.frame_acceleration(q, qd, still, frame=frame), 2)
    r = contact.point - mechanism.forward_kinematics(q, frame=frame)[:3, 3]
    J = mechanism.jacobian(q, frame=frame)
    columns = J[3:] + np.cross(J[:3], r[..., :, None], axis=-2)
    bias = a + np.cross(alpha, r) + np.cross(w, contact.point_rate - v)
    return Touch(columns, v + np.cross(w, r), bias)
