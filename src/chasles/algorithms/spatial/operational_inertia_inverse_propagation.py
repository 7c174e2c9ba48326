"""A frame's acceleration for each unit wrench on it, joint by joint from the frame to the root."""

from chasles.algorithms.spatial.forward_kinematics import body_transforms
from chasles.algorithms.spatial.operational_inertia_inverse import symmetric_products
from chasles.algorithms.spatial.viewpoint import At, Axes, Viewpoint
from chasles.mathematics.linear import Matrix, invert_symmetric
from chasles.mathematics.spatial import ArticulatedInertia, Force, Motion, Motions
from chasles.model.joints import diagonal
from chasles.model.model import WORLD, Frame, Model
from chasles.model.spaces import Position, SpatialMatrix


def operational_inertia_inverse_propagation(
    model: Model, q: Position, *, frame: Frame, axes: Axes = "world", at: At = "frame"
) -> SpatialMatrix:
    """The sum of u' D^-1 u over the joints that support the frame.

    u = S' f is what a joint feels of the wrench f; it gives way and passes f - U D^-1 u on, with
    the U and D of articulated bodies (Featherstone 2008, section 7.2.2; Kreutz-Delgado, Jain,
    Rodriguez 1992).
    """
    X, S, U, W = {}, {}, {}, {}
    IA = {WORLD: ArticulatedInertia.zero()}
    for i, _, joint, I in model.outward():
        X[i], S[i], IA[i] = joint.transform(q[i]), joint.subspace(q[i]), ArticulatedInertia.of(I)
    for i, p, joint, _ in model.inward():
        U[i] = IA[i] @ S[i]
        W[i] = invert_symmetric(S[i].T @ U[i] + diagonal(joint.armature))
        IA[p] += X[i].T @ IA[i].without(U[i], U[i] @ W[i])
    f, Phi = _unit_wrenches(model, q, frame, axes, at), Matrix.zero(6, 6)
    for i in model.support(frame.body):
        u = [S[i].T @ wrench for wrench in f]
        y = [W[i] @ feel for feel in u]
        Phi += symmetric_products(u, y)
        f = [X[i].T @ (wrench - U[i] @ give) for wrench, give in zip(f, y, strict=True)]
    return Phi


def _unit_wrenches(model: Model, q: Position, frame: Frame, axes: Axes, at: At) -> list[Force]:
    """The wrenches of unit components at the frame, in coordinates of its body.

    Power is the same in both: a component does the work of the body's motion as it is seen there.
    """
    X = body_transforms(model, q)[frame.body]
    view = Viewpoint.of(frame.placement @ X, axes, at)
    units = Motions(tuple(Motion.of(*(float(j == k) for j in range(6))) for k in range(6)))
    seen = [tuple(view.turned(m)) for m in view.from_body(X, units).columns]
    return [Force.of(*(m[k] for m in seen)) for k in range(6)]
