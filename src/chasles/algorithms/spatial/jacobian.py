"""The Jacobian of a frame: its velocity for each unit joint velocity."""

from chasles.algorithms.spatial.forward_kinematics import body_transforms
from chasles.algorithms.spatial.viewpoint import At, Axes, Viewpoint
from chasles.mathematics.spatial import Motions
from chasles.model.model import Frame, Model
from chasles.model.spaces import Jacobian, Position


def jacobian(
    model: Model, q: Position, *, frame: Frame, axes: Axes = "world", at: At = "frame"
) -> Jacobian:
    """Columns S_i seen from the frame (Featherstone 2008, example 2.3)."""
    X0 = body_transforms(model, q)
    view = Viewpoint.of(frame.placement @ X0[frame.body], axes, at)
    J = {}
    for i in model.support(frame.body):
        S = view.from_body(X0[i], model.bodies[i].joint.subspace(q[i]))
        J[i] = Motions(tuple(view.turned(m) for m in S.columns))
    return J
