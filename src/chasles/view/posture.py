"""Configurations, ellipsoids and force vectors for drawing a robot."""

import math
from typing import NamedTuple

import numpy as np

from chasles.algorithms.spatial.kinematics import body_transforms
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.model import Model
from chasles.model.description import freedom_names
from chasles.robot import Robot

HOME = "home"
"""Name of the keyframe in which a robot is first shown."""


class Freedom(NamedTuple):
    """A degree of freedom with its range and unit. `endless` is True for an unlimited angle."""

    name: str
    lower: float
    upper: float
    unit: str
    endless: bool = False

    def shown(self, value: float) -> float:
        """Return the slider position for a coordinate value."""
        if self.endless:
            value = math.remainder(value, 2.0 * math.pi)
        return self.within(value)

    def within(self, value: float) -> float:
        """Clip a value to the range."""
        return min(max(value, self.lower), self.upper)


def freedoms(robot: Robot) -> list[Freedom]:
    """Return the degrees of freedom of a robot, for the sliders of the viewer.

    The ranges are the joint limits or, without limits, half a turn or 1 m in each direction.
    """
    found = []
    for joint in robot.joints:
        i = robot.model.mover(joint)
        body, limits = robot.model.bodies[i], robot.model.limits[i]
        nv = body.joint.nv
        bounded = nv == 1 and math.isfinite(limits.upper - limits.lower)
        S = body.joint.subspace(body.joint.neutral())
        for k, name in enumerate(freedom_names(joint, nv)):
            angle = any((S @ Vector(tuple(float(n == k) for n in range(nv)))).angular)
            span = math.pi if angle else 1.0
            lower, upper = (limits.lower, limits.upper) if bounded else (-span, span)
            unit, upper = "rad" if angle else "m", max(upper, lower + 1e-6)
            found.append(Freedom(name, lower, upper, unit, angle and not bounded))
    return found


def start(robot: Robot) -> np.ndarray:
    """Return the configuration in which a robot is first shown.

    This is the keyframe "home" if the robot has one, and otherwise the neutral configuration,
    adjusted to satisfy joint limits and close loops.
    """
    q = robot.keyframes[HOME].q if HOME in robot.keyframes else robot.neutral()
    return robot.mechanism.near(robot.clip(q))


def quaternions(R: np.ndarray) -> np.ndarray:
    """Convert rotation matrices (..., 3, 3) to quaternions (w, x, y, z)."""
    from viser.transforms import SO3

    return np.asarray(SO3.from_matrix(R).wxyz)


def displacement(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return the displacement (nv,) of q from the neutral configuration."""
    return robot.difference(robot.neutral(), q)


def moved(robot: Robot, q: np.ndarray, k: int, value: float) -> np.ndarray:
    """Return the configuration after coordinate k has been moved to `value`.

    For a robot with loops, k is an independent coordinate. Dependent coordinates are updated in
    small steps, so that the mechanism stays on its assembly branch. Raises `chasles.LoopError` if
    the value cannot be reached.
    """
    v = displacement(robot, q)
    v[k] = value
    return robot.mechanism.towards(q, robot.integrate(robot.neutral(), v), k)


def poses(model: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the world poses of all bodies as rotations (n, 3, 3) and positions (n, 3)."""
    found = body_transforms(model, model.positions(q.tolist()))
    R = [found[i].R.rows for i in range(len(model.bodies))]
    p = [tuple(found[i].r) for i in range(len(model.bodies))]
    return np.array(R, dtype=float).reshape(-1, 3, 3), np.array(p, dtype=float).reshape(-1, 3)


# Ellipsoids -----------------------------------------------------------------------------------


class Ellipsoid(NamedTuple):
    """An ellipsoid: axis directions (columns of R), center (m) and semi-axis lengths (m)."""

    R: np.ndarray
    center: np.ndarray
    half: np.ndarray


def of_inertia(inertia: RigidInertia) -> Ellipsoid | None:
    """Return the uniform solid ellipsoid with a link's mass and inertia, in the link's frame.

    The moment about the semi-axis a is m/5 (b^2 + c^2). If one moment exceeds the sum of the other
    two, the inertia is physically impossible, and a flat ellipsoid is returned. Returns None for a
    massless link.
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
    """Return the side lengths (m) of a uniform box with an ellipsoid's mass and inertia."""
    return ellipsoid.half * 2.0 * np.sqrt(0.6)


def of_manipulability(robot: Robot, q: np.ndarray, frame: str) -> Ellipsoid:
    """Return the velocity ellipsoid of a frame's origin for unit joint velocities.

    The semi-axes are the singular values of the linear Jacobian in world axes (Yoshikawa 1985). For
    a robot with loops, only independent joint velocities are considered.
    """
    J = robot.jacobian(q, frame=frame, axes="world", at="frame")[3:]
    J = J @ robot.mechanism.closing.directions(q)
    U, values, _ = np.linalg.svd(J @ J.T)
    if np.linalg.det(U) < 0.0:
        U[:, 0] = -U[:, 0]
    center = robot.forward_kinematics(q, frame=frame)[:3, 3]
    return Ellipsoid(U, center, np.sqrt(values))


# Static forces under gravity ------------------------------------------------------------------


def holding_forces(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return the joint torques (nv,) that balance gravity.

    With loops, only the independent coordinates are actuated.
    """
    rest = np.zeros(robot.nv)
    return robot.inverse_dynamics(q, rest, rest, actuated=robot.independent)


def joint_vectors(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return joint origins, and joint torques and forces that balance gravity, in world axes."""
    model, tau = robot.model, holding_forces(robot, q)
    own = model.positions(q.tolist())
    R, p = poses(model, q)
    torques, forces = [], []
    for i in model.movers:
        effort = Vector(tuple(tau[model.velocity_slices[i]].tolist()))
        motion = model.bodies[i].joint.subspace(own[i]) @ effort
        torques.append(R[i] @ list(motion.angular))
        forces.append(R[i] @ list(motion.linear))
    where = p[list(model.movers)]
    return where, np.reshape(torques, (-1, 3)), np.reshape(forces, (-1, 3))


def reaction_vectors(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the origins and reaction forces (n, 3) of all joints, in the world frame."""
    model, rest = robot.model, np.zeros(robot.nv)
    multipliers = robot.mechanism.multipliers(q, rest, holding_forces(robot, q))
    reactions = robot.joint_reactions(q, rest, rest, multipliers=multipliers)[:, 3:]
    R, p = poses(model, q)
    forces = []
    for i, force in zip(model.in_file_order, reactions, strict=True):
        link = np.array(model.frames[model.bodies[i].name].placement.R.rows, dtype=float)
        forces.append(R[i] @ link @ force)
    return p[list(model.in_file_order)], np.reshape(forces, (-1, 3))


def arrows(where: np.ndarray, vectors: np.ndarray, longest: float) -> np.ndarray:
    """Return start and end points (k, 2, 3) of arrows; the longest has length `longest` (m)."""
    sizes = np.linalg.norm(vectors, axis=1)
    largest = np.max(sizes, initial=0.0)
    if not largest > 1e-9:
        return np.zeros((0, 2, 3))
    shown = sizes > 0.01 * largest
    ends = where[shown] + vectors[shown] * (longest / largest)
    return np.stack([where[shown], ends], axis=1)
