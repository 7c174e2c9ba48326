"""Velocity, acceleration, jerk and so on of a point, from joint-motion properties."""

from chasles.algorithms.joint_motion.joint_motion_rates import joint_motion_rates
from chasles.algorithms.joint_motion.motion_matrices import motion_matrices
from chasles.algorithms.spatial.viewpoint import At, Axes, Viewpoint
from chasles.mathematics.spatial import Motion
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
    """The derivatives of a point's position, each below those of its body's angular velocity.

    Everything is in the base frame (Mitra, section 2): Omega from the properties D, then the point
    by Rdot = Omega R, Rddot = A_H R, Rdddot = J_H R.
    """
    M, _, Omega = joint_motion_rates(model, q, rates, frame.body)
    view = Viewpoint.of(frame.placement @ M.transform(), axes, at)
    return [
        view.turned(Motion(rate.w, B @ view.P))
        for rate, B in zip(Omega, motion_matrices(Omega), strict=True)
    ]
