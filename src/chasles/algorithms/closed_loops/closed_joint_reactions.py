"""The whole force that each joint of the tree transmits while loops are closed."""

from chasles.algorithms.closed_loops.loop_forces import loop_forces
from chasles.algorithms.homogeneous.loop_residual import across, around
from chasles.algorithms.spatial.joint_reactions import joint_reactions
from chasles.mathematics.spatial import Force
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, LoopNumbers, Position, Reactions, Velocity, Wrenches


def closed_joint_reactions(
    model: Model,
    q: Position,
    qd: Velocity,
    qdd: Velocity,
    multipliers: LoopNumbers,
    f_ext: Wrenches = ABSENT,
) -> Reactions:
    """The loop joints push their two bodies apart, by equal and opposite forces (section 8.2)."""
    loads = {WORLD: Force.zero()} | {i: f_ext[i] for i in range(len(model.bodies))}
    for loop, f in zip(model.loops, loop_forces(model, q, multipliers), strict=True):
        P, S = loop.predecessor, loop.successor
        X = across(loop, around(model, loop, q)).transform()  # from P to S
        loads[S.body] += S.placement.T @ f
        loads[P.body] -= P.placement.T @ (X.T @ f)
    return joint_reactions(model, q, qd, qdd, loads)
