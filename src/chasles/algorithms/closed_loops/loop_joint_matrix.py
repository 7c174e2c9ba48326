"""How fast the joints that close loops move."""

from chasles.algorithms.homogeneous.loop_matrix import loop_screws
from chasles.mathematics.linear import Matrix
from chasles.model.model import Model
from chasles.model.spaces import LoopJointMatrix, Position


def loop_joint_matrix(model: Model, q: Position) -> LoopJointMatrix:
    """B = T_a' J_L, with B qd the velocities of the loop joints (Featherstone 2008, section 8.4).

    T_a' S = 1 of the loop joint, J_L the velocity across it for each unit joint velocity. By the
    principle of work B' f is what forces f at the loop joints do at those of the tree (Eq 8.31).
    """
    B: list[dict[int, Matrix]] = []
    for loop in model.loops:
        qJ, J = loop_screws(model, loop, q)
        Ta = loop.joint.active(qJ)
        B.append({i: Ta.T @ J[i] * sign for i, sign in loop.path})
    return B
