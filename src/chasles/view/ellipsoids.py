"""Ellipsoids and boxes that stand for inertias and for velocities that a frame can have."""

from typing import NamedTuple

import numpy as np

from chasles.mathematics.spatial import RigidInertia
from chasles.robot import Robot


class Ellipsoid(NamedTuple):
    """Its axes as columns of a rotation R, its center, and half its lengths along them, in m."""

    R: np.ndarray
    center: np.ndarray
    half: np.ndarray


def of_inertia(inertia: RigidInertia) -> Ellipsoid | None:
    """The solid ellipsoid of even density with a link's mass and inertia, in the link's frame.

    m/5 (b2 + c2) is its moment about the axis of a. An impossible inertia, in which one moment is
    above the sum of the others, has a flat one. None of a link without mass.
    """
    m, c, I = inertia.about_center() if inertia.m else (0.0, None, None)
    if c is None or I is None or not float(m) > 0.0:
        return None
    moments, R = np.linalg.eigh(np.array(I.matrix().rows, dtype=float))
    if np.linalg.det(R) < 0.0:
        R[:, 0] = -R[:, 0]
    squares = 2.5 * (np.sum(moments) - 2.0 * moments) / float(m)
    return Ellipsoid(R, np.array(list(c), dtype=float), np.sqrt(np.maximum(squares, 0.0)))


def box_lengths(ellipsoid: Ellipsoid) -> np.ndarray:
    """Of the box with the same mass and inertia: a2 / 12 in place of (a / 2)2 / 5, in m."""
    return ellipsoid.half * 2.0 * np.sqrt(0.6)


def of_manipulability(robot: Robot, q: np.ndarray, frame: str) -> Ellipsoid:
    """Velocities of a frame's origin, in the world, of all joint rates of length 1: (m/s)/(rad/s).

    The semi-axes are singular values of the Jacobian's linear rows (Yoshikawa 1985). Of a robot
    with loops the rates are those of its independent freedoms, which the others follow.
    """
    J = robot.jacobian(q, frame=frame, axes="world", at="frame")[3:]
    J = J @ robot.mechanism.closing.directions(q)
    U, values, _ = np.linalg.svd(J @ J.T)
    if np.linalg.det(U) < 0.0:
        U[:, 0] = -U[:, 0]
    center = robot.forward_kinematics(q, frame=frame)[:3, 3]
    return Ellipsoid(U, center, np.sqrt(values))
