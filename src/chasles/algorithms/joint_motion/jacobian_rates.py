"""The n-th time derivative of a Jacobian."""

from chasles.algorithms.joint_motion.joint_motion_rates import joint_motion_rates
from chasles.algorithms.spatial.forward_kinematics import body_transforms
from chasles.algorithms.spatial.viewpoint import At, Axes, Viewpoint
from chasles.mathematics.spatial import Motions
from chasles.model.model import Frame, Model
from chasles.model.spaces import Jacobian, Position, Velocity


def jacobian_rates(
    model: Model,
    q: Position,
    *rates: Velocity,
    frame: Frame,
    axes: Axes = "world",
    at: At = "frame",
) -> Jacobian:
    """Jdot for one rate (qd), Jddot for two (qd, qdd), and so on: derivatives of the entries of J.

    The columns are the properties D as the point and its axes see them (Mitra, 2.9).
    """
    X0 = body_transforms(model, q)
    view = Viewpoint.of(frame.placement @ X0[frame.body], axes, at)
    D, _ = joint_motion_rates(model, q, rates, frame.body, X0, view)
    return {i: Motions(tuple(d.motion() for d in D[i][-1].columns)) for i in D}
