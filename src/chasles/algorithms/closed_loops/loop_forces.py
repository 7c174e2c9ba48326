"""What the joints that close loops transmit."""

from chasles.algorithms.homogeneous.loop_residual import around, loop_coordinates
from chasles.mathematics.linear import Vector
from chasles.model.model import Model
from chasles.model.spaces import LoopForces, LoopNumbers, Position


def loop_forces(model: Model, q: Position, multipliers: LoopNumbers) -> LoopForces:
    """f = T lam, from predecessor to successor, in the successor frame (Featherstone, Eq 8.28)."""
    found, first = [], 0
    for loop in model.loops:
        T = loop.joint.constraint(loop_coordinates(loop, around(model, loop, q)))
        found.append(T @ Vector(multipliers.entries[first : first + loop.rows]))
        first += loop.rows
    return found
