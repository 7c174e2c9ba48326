"""Robots of one or two free bodies, for tests of contact."""

import math

import numpy as np

import chasles
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.model import Description, JointData, LinkData

GRAVITY = 9.81


def body(mass: float, moments: tuple[float, float, float], name: str = "body") -> LinkData:
    """A link with its centre of mass at its origin."""
    inertia = RigidInertia.from_center(mass, Vector.zero(), Symmetric(*moments, 0.0, 0.0, 0.0))
    return LinkData(name, inertia)


def free(*links: LinkData) -> chasles.Robot:
    """Bodies that move freely under gravity."""
    joints = tuple(JointData(f"{k.name}_joint", "free", None, k.name) for k in links)
    return chasles.Robot(Description("bodies", links, joints))


def ball(mass: float = 2.0, radius: float = 0.3) -> chasles.Robot:
    """A uniform ball."""
    moment = 0.4 * mass * radius * radius
    return free(body(mass, (moment, moment, moment)))


def block(mass: float, size: tuple[float, float, float]) -> chasles.Robot:
    """A uniform cuboid."""
    x, y, z = (mass * s * s / 12.0 for s in size)
    return free(body(mass, (y + z, x + z, x + y)))


def turned(angle: float, axis: tuple[float, float, float] = (0.0, 1.0, 0.0)) -> np.ndarray:
    """The quaternion of a rotation."""
    return np.array([math.cos(0.5 * angle), *(math.sin(0.5 * angle) * np.array(axis))])


def rotation(angle: float) -> np.ndarray:
    """The matrix of a rotation about y."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
