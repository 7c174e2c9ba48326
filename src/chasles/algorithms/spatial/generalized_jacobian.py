"""The Jacobian of a frame on a base that floats and recoils."""

from chasles.algorithms.spatial.jacobian import jacobian
from chasles.algorithms.spatial.viewpoint import At, Axes
from chasles.mathematics.linear import Vector, invert_symmetric
from chasles.mathematics.spatial import Motions, Transform
from chasles.model.model import Frame, Model
from chasles.model.spaces import Jacobian, Position


def generalized_jacobian(
    model: Model, q: Position, *, frame: Frame, axes: Axes = "world", at: At = "frame"
) -> Jacobian:
    """J_i - J_0 I_0^-1 F_i (Featherstone 2008, example 9.4): no momentum, I_0 v_0 + F qd = 0.

    I_0 and F are momentum for unit velocities of base and joints, in base coordinates. A base that
    is held does not recoil: then it is J.
    """
    J = jacobian(model, q, frame=frame, axes=axes, at=at)
    if not model.floating or not J:
        return J
    (b, _, root, I), *outward = model.outward()
    Ic, X, Xb = {b: I}, {}, {b: Transform.identity()}
    for i, p, joint, I in outward:
        X[i], Ic[i] = joint.transform(q[i]), I
        Xb[i] = X[i] @ Xb[p]
    for i, p, *_ in reversed(outward):
        Ic[p] += X[i].T @ Ic[i]
    S0 = root.subspace(q[b])
    recoil = -invert_symmetric(S0.T @ (Ic[b] @ S0))
    result = {}
    for i, _, joint, _ in outward:
        F = Xb[i].T @ (Ic[i] @ joint.subspace(q[i]))
        columns = (recoil @ (S0.T @ F)).T.rows
        moved = Motions(tuple(J[b] @ Vector(column) for column in columns))
        result[i] = J[i] + moved if i in J else moved
    return result
