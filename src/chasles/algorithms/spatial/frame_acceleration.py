"""The acceleration of a frame, in the three senses of the word."""

from chasles.algorithms.spatial.viewpoint import At, Axes, Kind, Viewpoint
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Motion, Transform
from chasles.model.model import WORLD, Frame, Model
from chasles.model.spaces import Position, Twist, Velocity


def frame_acceleration(
    model: Model,
    q: Position,
    qd: Velocity,
    qdd: Velocity,
    *,
    frame: Frame,
    axes: Axes = "world",
    at: At = "frame",
    kind: Kind = "classical",
) -> Twist:
    """Angular acceleration, then linear acceleration at `at` (Featherstone 2008, section 2.11).

    classical: of the point of the body; spatial: the derivative of the spatial velocity, which is
    less by w x v; proper: classical minus gravity, what an accelerometer at the point measures.
    """
    v, a, X0 = {WORLD: Motion.zero()}, {WORLD: Motion.zero()}, {WORLD: Transform.identity()}
    for i in reversed(model.support(frame.body)):
        p, joint = model.bodies[i].parent, model.bodies[i].joint
        X, S = joint.transform(q[i]), joint.subspace(q[i])
        X0[i], vJ = X @ X0[p], S @ qd[i]
        v[i] = X @ v[p] + vJ
        a[i] = X @ a[p] + S @ qdd[i] + joint.bias(q[i], qd[i]) + v[i].cross(vJ)
    X = X0[frame.body]
    view = Viewpoint.of(frame.placement @ X, axes, at)
    back = Transform(X.E, X.r - view.P).inverse()
    v_P, a_P = back @ v[frame.body], back @ a[frame.body]
    extra = {
        "spatial": Vector.zero(),
        "classical": v_P.angular.cross(v_P.linear),
        "proper": v_P.angular.cross(v_P.linear) - model.gravity_vector,
    }[kind]
    return view.turned(a_P + Motion(Vector.zero(), extra))
