"""Motion on the configuration space itself."""

from chasles.model.model import Model
from chasles.model.spaces import Position, Velocity


def integrate(model: Model, q: Position, v: Velocity) -> Position:
    """The configuration after moving with constant joint velocities v for unit time."""
    return {i: joint.integrate(q[i], v[i]) for i, _, joint, _ in model.outward()}


def difference(model: Model, q0: Position, q1: Position) -> Velocity:
    """The joint velocities that take q0 to q1 in unit time."""
    return {i: joint.difference(q0[i], q1[i]) for i, _, joint, _ in model.outward()}
