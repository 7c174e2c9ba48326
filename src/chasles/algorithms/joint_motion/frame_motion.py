"""Velocity, acceleration, jerk and so on of a point, from joint-motion properties."""

from chasles.algorithms.joint_motion.joint_motion_rates import joint_motion_rates
from chasles.algorithms.joint_motion.motion_matrices import motion_matrices
from chasles.algorithms.spatial.forward_kinematics import body_transforms
from chasles.algorithms.spatial.viewpoint import At, Axes, Viewpoint
from chasles.mathematics.spatial import Motion, Transform
from chasles.model.model import Frame, Model
from chasles.model.spaces import Position, Twists, Velocity


def frame_motion(
    model: Model,
    q: Position,
    *rates: Velocity,
    frame: Frame,
    axes: Axes = "world",
    at: At = "frame",
) -> Twists:
    """Derivatives of a body's angular velocity, and of the position R of a point of it.

    In the base frame, as the document has it: Omega from the properties D, then the point by
    Rdot = Omega R, Rddot = A_H R, Rdddot = J_H R (Mitra, section 2).
    """
    X0 = body_transforms(model, q)
    base = Viewpoint.of(Transform.identity(), "world", "world")
    _, Omega = joint_motion_rates(model, q, rates, frame.body, X0, base)
    view = Viewpoint.of(frame.placement @ X0[frame.body], axes, at)
    return [
        view.turned(Motion(rate.w, B @ view.P))
        for rate, B in zip(Omega, motion_matrices(Omega), strict=True)
    ]
