"""The matrix of the velocity equations of loops and couplings."""

from chasles.algorithms.homogeneous.chain import screws
from chasles.algorithms.homogeneous.loop_residual import around, ends, loop_coordinates
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import Motions
from chasles.model import spaces
from chasles.model.model import Loop, Model


def loop_matrix(model: Model, q: spaces.Position) -> spaces.LoopMatrix:
    """A with A qd = 0: its columns are (u, b) of the joints' screws L_i around a loop (Eq II.7).

    Written in the successor frame of the loop joint, and of the six rows those that it forbids.
    Couplings follow, each with the slopes of its phi(q).
    """
    A: list[dict[int, Matrix]] = []
    for loop in model.loops:
        qJ, J = loop_screws(model, loop, q)
        T = loop.joint.constraint(qJ)
        A.append({i: T.T @ J[i] * sign for i, sign in loop.path})
    return A + [coupling.matrix(q) for coupling in model.couplings]


def loop_screws(model: Model, loop: Loop, q: spaces.Position) -> tuple[Vector, dict[int, Motions]]:
    """q of the loop joint, and the screws of the joints around it in its successor frame."""
    M = around(model, loop, q)
    _, M_S = ends(loop, M)
    J = {}
    for i, _ in loop.path:
        L = (M_S.to_second(M[i].to_first(l)) for l in screws(model.bodies[i].joint, q[i]))
        J[i] = Motions(tuple(l.motion() for l in L))
    return loop_coordinates(loop, M), J
