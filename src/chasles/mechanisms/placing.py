"""Placement of rolling spheres anywhere on their planes, for inverse kinematics.

A rolling sphere has three velocity and five position degrees of freedom. By rolling along some
path, the sphere reaches every orientation at every point of its plane. The search for a
configuration therefore uses all five position degrees of freedom.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import Transform
from chasles.mechanisms import Mechanism, of
from chasles.model.build import build
from chasles.model.joints import Joint
from chasles.model.joints.several_freedoms import Rolling

MORE = 2
"""Number of additional velocity coordinates if a sphere may slip (the rates of x and y)."""


@dataclass(frozen=True)
class Placed(Joint):
    """Joint of a sphere that may slip on a plane normal to z.

    The coordinates q are the same as for a sphere that rolls without slipping. qd contains the
    angular velocity in the sphere's frame, followed by the rates of x and y.
    """

    additive = False
    nq, nv = Rolling.nq, Rolling.nv + MORE
    units = Rolling.units

    def motion(self, q: Vector) -> Transform:
        return Rolling().motion(q)

    def integrate(self, q: Vector, v: Vector) -> Vector:
        turned = Rolling().integrate(q, Vector(v.entries[:3]))  # radius 0, so x and y are constant
        return Vector((*turned.entries[:4], q[4] + v[3], q[5] + v[4]))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        turn = Rolling().difference(q0, q1)
        return Vector((*turn, q1[4] - q0[4], q1[5] - q0[5]))

    def drift(self, qd: Vector) -> Matrix:
        rows = Rolling().drift(Vector(qd.entries[:3])).rows
        zero = (0.0,) * MORE
        return Matrix((*((*row, *zero) for row in rows), *[(0.0,) * self.nv] * MORE))


def placeable(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism in which rolling joints may slip, with the same coordinates q."""
    source = mechanism.model.source
    if not any(joint.kind == Rolling.kind for joint in source.joints):
        return mechanism
    if "placeable" not in mechanism.kept:
        joints = tuple(
            replace(joint, kind="custom", custom=Placed(), radius=0.0)
            if joint.kind == Rolling.kind
            else joint
            for joint in source.joints
        )
        other = replace(source, joints=joints, sensors=(), actuators=(), closure=None)
        made = of(build(other, mimic=mechanism.model.mimics))
        mechanism.kept["placeable"] = made if mechanism.t is None else made.at(mechanism.t)
    found: Mechanism = mechanism.kept["placeable"]
    return found


def placed_weights(mechanism: Mechanism, weights: Any) -> Any:
    """Insert ones into velocity weights (nv,) for the additional velocities of rolling bodies."""
    if np.shape(weights) != (mechanism.nv,) or placeable(mechanism) is mechanism:
        return weights
    model = mechanism.model
    ends = [
        model.velocity_slices[i].stop
        for i in model.movers
        if model.bodies[i].data.kind == Rolling.kind
    ]
    return np.insert(np.asarray(weights, float), np.repeat(ends, MORE), 1.0)
