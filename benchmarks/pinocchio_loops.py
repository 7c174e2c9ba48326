"""Convert mechanisms with closed loops to Pinocchio, and compute their forward dynamics."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

import chasles
from benchmarks.states import Array
from chasles.conventions import pinocchio
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import Description, JointData, LoopData

ACCURACY, REGULARIZATION, ITERATIONS = 1e-12, 1e-8, 50
"""Settings of Pinocchio's proximal iterations, which solve redundant equations."""

JOINTS: dict[str, Callable[[JointData], Any]] = {
    "revolute": lambda joint: pin.JointModelRevoluteUnaligned(_vector(joint.axis)),
    "continuous": lambda joint: pin.JointModelRevoluteUnboundedUnaligned(_vector(joint.axis)),
    "prismatic": lambda joint: pin.JointModelPrismaticUnaligned(_vector(joint.axis)),
    "helical": lambda joint: pin.JointModelHelicalUnaligned(_vector(joint.axis), joint.pitch),
    "universal": lambda joint: pin.JointModelUniversal(
        _vector(joint.axis), _vector(joint.second_axis)
    ),
    "planar": lambda _: pin.JointModelPlanar(),
    "spherical": lambda _: pin.JointModelSpherical(),
    "free": lambda _: pin.JointModelFreeFlyer(),
}
"""Pinocchio's joint for each joint type of chasles. A planar joint moves in x and y."""

ANCHORS = {"spherical": (0.0,), "revolute": (-0.5, 0.5)}
"""Positions (m) along the axis at which point constraints represent a loop joint."""


class Mechanism:
    """Robot with closed loops in Pinocchio.

    If `flat`, revolute loop joints are represented by one point constraint instead of two. This is
    valid if the axes are normal to one plane, and reduces the number of redundant equations.
    """

    def __init__(self, robot: chasles.Robot, *, flat: bool = False) -> None:
        source = robot.model.source
        self.model, places = _tree(source)
        self.convention = pinocchio(robot, list(self.model.names)[1:])
        self.constraints = pin.StdVec_RigidConstraintModel()
        for loop in source.loops:
            self.constraints.extend(_closed(self.model, loop, places, flat))
        self.datas = pin.StdVec_RigidConstraintData()
        self.datas.extend([constraint.createData() for constraint in self.constraints])
        self.settings = pin.ProximalSettings(ACCURACY, REGULARIZATION, ITERATIONS)
        self.plain = pin.ProximalSettings(ACCURACY, 0.0, 1)
        self.data = self.model.createData()
        pin.initConstraintDynamics(self.model, self.data, self.constraints, self.datas)

    def call(self, q: Array, qd: Array, tau: Array) -> Array:
        """Return the accelerations for one state, in Pinocchio's coordinates."""
        return pin.constraintDynamics(
            self.model, self.data, q, qd, tau, self.constraints, self.datas, self.settings
        )

    def call_once(self, q: Array, qd: Array, tau: Array) -> Array:
        """Return the accelerations without proximal iterations; equations must not be redundant."""
        return pin.constraintDynamics(
            self.model, self.data, q, qd, tau, self.constraints, self.datas, self.plain
        )

    def states(self, q: Array, qd: Array, tau: Array) -> tuple[Array, Array, Array]:
        """Convert states to Pinocchio's coordinates."""
        there = self.convention
        return there.to_position(q), there.to_velocity(q, qd), there.to_effort(q, tau)

    def forward_dynamics(self, q: Array, qd: Array, tau: Array) -> Array:
        """Return the accelerations for n states, in chasles' coordinates."""
        states = self.states(q, qd, tau)
        found = np.array([np.array(self.call(*row)) for row in zip(*states, strict=True)])
        return self.convention.from_acceleration(*states[:2], found)

    def loop_forces(self) -> Array:
        """Return the wrenches that the constraints exert on their second bodies in the last call.

        Each wrench is (moment, force) in the frame of the constraint on that body.
        """
        wrenches = []
        for data in self.datas:
            f = data.c1Mc2.actInv(data.contact_force)
            wrenches.append(-np.concatenate([f.angular, f.linear]))
        return np.array(wrenches)


def _tree(source: Description) -> tuple[Any, dict[str | None, tuple[int, Any]]]:
    """Return the model and, for each link, the index of its joint and its pose in that frame."""
    model = pin.Model()
    model.gravity.linear = _vector(source.gravity)
    inertias = {link.name: link.inertia for link in source.links}
    places: dict[str | None, tuple[int, Any]] = {None: (0, pin.SE3.Identity())}
    children = {joint.child for joint in source.joints}
    places |= {name: places[None] for name in inertias if name not in children}
    waiting = [joint for joint in source.joints if joint.parent in places]
    while waiting:  # depth first, because Pinocchio requires consecutive indices in a subtree
        joint = waiting.pop()
        number, place = places[joint.parent]
        place = place * _pose(joint.pose)
        if joint.kind != "fixed":
            number = model.addJoint(number, JOINTS[joint.kind](joint), place, joint.name)
            place = pin.SE3.Identity()
            first = model.idx_vs[number]
            model.armature[first : first + model.nvs[number]] = joint.armature
        model.appendBodyToJoint(number, _inertia(inertias[joint.child]), place)
        places[joint.child] = number, place
        waiting += [other for other in source.joints if other.parent == joint.child]
    return model, places


def _closed(
    model: Any, loop: LoopData, places: dict[str | None, tuple[int, Any]], flat: bool
) -> list[Any]:
    """Return the constraints that represent a loop joint in Pinocchio."""
    (i, P), (j, S) = places[loop.parent], places[loop.child]
    ends = P * _pose(loop.pose), S * _pose(loop.child_pose)
    if loop.kind == "fixed":
        kind, points = pin.ContactType.CONTACT_6D, (0.0,)
    else:
        kind, points = pin.ContactType.CONTACT_3D, (0.0,) if flat else ANCHORS[loop.kind]
    made = []
    for along in points:
        at = pin.SE3(np.eye(3), along * _vector(loop.axis))
        one, other = (end * at for end in ends)
        made.append(pin.RigidConstraintModel(kind, model, i, one, j, other, pin.LOCAL))
    return made


def _vector(v: Any) -> Array:
    return np.array(list(v), dtype=float)


def _pose(X: Transform) -> Any:
    return pin.SE3(np.array(X.R.rows, dtype=float), _vector(X.r))


def _inertia(I: RigidInertia) -> Any:
    about, center = np.array(I.I.matrix().rows, dtype=float), np.zeros(3)
    if I.m:
        center = _vector(I.h) / I.m
        c = pin.skew(center)
        about = about + I.m * c @ c
    return pin.Inertia(float(I.m), center, about)
