"""The size of a robot, and units in which its velocities compare."""

import math

from chasles.model.model import WORLD, Model


def size(model: Model) -> float:
    """The longest distance from one joint to the next, in m; 1 where there are none."""
    offsets = [b.joint.placement.r for b in model.bodies if b.parent != WORLD]
    return max((math.sqrt(r.dot(r)) for r in offsets), default=0.0) or 1.0


def freedom_units(model: Model, length: float) -> list[float]:
    """Of each velocity coordinate: 1 where it turns, a length where it only slides."""
    units = []
    for i in model.movers:
        joint = model.bodies[i].joint
        S = joint.subspace(joint.neutral())
        units += [1.0 if any(s.angular) else length for s in S.columns]
    return units
