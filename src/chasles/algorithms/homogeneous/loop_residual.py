"""How far the loops of a mechanism are from closing, and its couplings from holding."""

from chasles.mathematics.homogeneous import Position
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import vector_from_matrix
from chasles.mathematics.spatial import Motion
from chasles.model import spaces
from chasles.model.model import Loop, Model


def loop_residual(model: Model, q: spaces.Position) -> spaces.LoopVector:
    """What is left of M around each loop (Eq II.4: it is 1), where the loop joint forbids it.

    The loop joint takes the displacement that it can; of the rest, the rotation vector and the
    translation, along the axes of its successor frame, are projected on T. The derivative at a
    closed position is A of `loop_matrix`. Couplings follow, each with its own phi(q).
    """
    r = []
    for loop in model.loops:
        M = around(model, loop, q)
        (M_P, M_S), qJ = ends(loop, M), loop_coordinates(loop, M)
        M_J = M_P @ Position.of(loop.joint.motion(qJ))
        turned = vector_from_matrix((M_J.inverse() @ M_S).R.matrix())
        d = Motion(turned, M_S.R.T @ (M_S.t - M_J.t))
        r.append(loop.joint.constraint(qJ).T @ d)
    return r + [coupling.residual(q) for coupling in model.couplings]


def around(model: Model, loop: Loop, q: spaces.Position) -> dict[int, Position]:
    """M_0i of the bodies of a loop, where body 0 is the one at which its branches part."""
    M = {loop.root: Position.identity()}
    for i, _ in loop.path:
        body = model.bodies[i]
        M[i] = M[body.parent] @ Position.of(body.joint.transform(q[i]))
    return M


def ends(loop: Loop, M: dict[int, Position]) -> tuple[Position, Position]:
    """M_0P and M_0S: the predecessor and the successor frame of the loop joint."""
    P, S = loop.predecessor, loop.successor
    return M[P.body] @ Position.of(P.placement), M[S.body] @ Position.of(S.placement)


def across(loop: Loop, M: dict[int, Position]) -> Position:
    """M_PS: the displacement that the loop joint has to make."""
    M_P, M_S = ends(loop, M)
    return M_P.inverse() @ M_S


def loop_coordinates(loop: Loop, M: dict[int, Position]) -> Vector:
    """The coordinates that the loop joint has, or comes nearest with."""
    return loop.joint.fit(across(loop, M).transform())
