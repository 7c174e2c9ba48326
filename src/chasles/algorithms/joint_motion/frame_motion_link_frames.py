"""Velocity, acceleration, jerk and so on of a point, in the frames of the links."""

from collections.abc import Sequence

from chasles.algorithms.spatial.forward_kinematics import body_transforms
from chasles.algorithms.spatial.viewpoint import At, Axes, Viewpoint, point_in_body
from chasles.mathematics.leibniz import leibniz
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Motion, Motions
from chasles.model.model import Frame, Model
from chasles.model.spaces import Position, Twists, Velocity


def frame_motion_link_frames(
    model: Model,
    q: Position,
    *rates: Velocity,
    frame: Frame,
    axes: Axes = "world",
    at: At = "frame",
) -> Twists:
    """The same as `frame_motion`, from the point to the base, where it takes fewest operations.

    r is the point and w the angular velocity of its body, with their derivatives, as one body after
    the other sees them: the joint's velocity moves and turns what the parent sees. In the frame of
    its own body D is constant, and a joint about z leaves every z component alone.
    """
    orders = range(len(rates))
    X = body_transforms(model, q)[frame.body]
    view = Viewpoint.of(frame.placement @ X, axes, at)
    r = [point_in_body(frame, X, at), *(Vector.zero() for _ in orders)]
    w = [Vector.zero() for _ in orders]
    for i in model.support(frame.body):
        joint, qd = model.bodies[i].joint, [rate[i] for rate in rates]
        X, S = joint.transform(q[i]), joint.subspace_rates(q[i], qd)
        v = [leibniz(_velocity, qd, S, k) for k in orders]
        wJ = [rate.angular for rate in v]
        rd = [r[k + 1] + leibniz(Vector.cross, wJ, r, k) + v[k].linear for k in orders]
        r = [X.locate(r[0]), *(X.E.T @ x for x in _turning(rd, wJ))]
        w = [X.E.T @ x for x in _turning([w[k] + wJ[k] for k in orders], wJ)]
    return [view.turned(Motion(w[k], r[k + 1])) for k in orders]


def _velocity(qd: Vector, S: Motions) -> Motion:
    return S @ qd


def _turning(x: Sequence[Vector], w: Sequence[Vector]) -> list[Vector]:
    """R' times the derivatives of R x, where Rdot = R w~; those of the components are given."""
    found = []
    while x:
        found.append(x[0])
        x = [x[k + 1] + leibniz(Vector.cross, w, x, k) for k in range(len(x) - 1)]
    return found
