"""Velocity, acceleration, jerk and so on of a point, in the frames of the links."""

from chasles.algorithms.joint_motion.carried import carried
from chasles.algorithms.spatial.forward_kinematics import body_transforms
from chasles.algorithms.spatial.viewpoint import At, Axes, Viewpoint
from chasles.mathematics.leibniz import leibniz
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Motion, Motions, Transform
from chasles.model.model import Frame, Model
from chasles.model.spaces import Position, Twists, Velocity


def frame_motion_in_links(
    model: Model,
    q: Position,
    *rates: Velocity,
    frame: Frame,
    axes: Axes = "world",
    at: At = "frame",
) -> Twists:
    """The same as `frame_motion`, from the point to the base: the cheapest order of the products.

    In the frame of each body in turn: x is the point and w the angular velocity of the frame, as
    they are seen there, with their derivatives. The joint's own velocity S qd turns and moves what
    the parent sees. All D are numbers here, and a joint about z leaves every z component alone.
    """
    X = body_transforms(model, q)[frame.body]
    view = Viewpoint.of(frame.placement @ X, axes, at)
    x = [_in_body(frame, X, at), *[Vector.zero() for _ in rates]]
    w = [Vector.zero() for _ in rates]
    for i in model.support(frame.body):
        joint = model.bodies[i].joint
        qd = [rate[i] for rate in rates]
        S = joint.subspace_rates(q[i], qd)
        v = [leibniz(_velocity, qd, S, k) for k in range(len(rates))]
        turn = [rate.angular for rate in v]
        speed = [
            x[k + 1] + leibniz(Vector.cross, turn, x, k) + v[k].linear for k in range(len(rates))
        ]
        X = joint.transform(q[i])
        w = [X.E.T @ y for y in carried([a + b for a, b in zip(w, turn, strict=True)], turn)]
        x = [X.locate(x[0]), *[X.E.T @ y for y in carried(speed, turn)]]
    return [view.turned(Motion(*pair)) for pair in zip(w, x[1:], strict=True)]


def _in_body(frame: Frame, X: Transform, at: At) -> Vector:
    """The point in the frame of its body."""
    if at == "world":
        return X.E @ -X.r
    return frame.placement.locate(Vector.zero() if at == "frame" else Vector(at))


def _velocity(qd: Vector, S: Motions) -> Motion:
    return S @ qd
