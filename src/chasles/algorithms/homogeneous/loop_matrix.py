"""The matrix of the velocity equations of loops."""

from chasles.algorithms.homogeneous.loop_residual import around, ends, loop_coordinates
from chasles.mathematics.homogeneous import Screw
from chasles.mathematics.spatial import Motions
from chasles.model.model import Model
from chasles.model.spaces import LoopMatrix, Position


def loop_matrix(model: Model, q: Position) -> LoopMatrix:
    """A with A qd = 0: its columns are (u, b) of the joints' screws L_i around a loop (Eq II.7).

    Written in the successor frame of the loop joint, and of the six rows those that it forbids.
    """
    A = []
    for loop in model.loops:
        M = around(model, loop, q)
        _, M_S = ends(loop, M)
        T, rows = loop.joint.constraint(loop_coordinates(loop, M)), {}
        for i, sign in loop.path:
            S = model.bodies[i].joint.subspace(q[i])
            L = [M_S.to_second(M[i].to_first(Screw.of(column))) for column in S.columns]
            rows[i] = T.T @ Motions(tuple(screw.motion() for screw in L)) * sign
        A.append(rows)
    return A
