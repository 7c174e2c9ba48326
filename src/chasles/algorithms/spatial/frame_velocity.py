"""The velocity of a frame."""

from chasles.algorithms.spatial.viewpoint import At, Axes, Viewpoint
from chasles.mathematics.spatial import Motion, Transform
from chasles.model.model import WORLD, Frame, Model
from chasles.model.spaces import Position, Twist, Velocity


def frame_velocity(
    model: Model,
    q: Position,
    qd: Velocity,
    *,
    frame: Frame,
    axes: Axes = "world",
    at: At = "frame",
) -> Twist:
    """Angular velocity, then the velocity of the body's point at `at` (Eq 4.4)."""
    v, X0 = {WORLD: Motion.zero()}, {WORLD: Transform.identity()}
    for i in reversed(model.support(frame.body)):
        p, joint = model.bodies[i].parent, model.bodies[i].joint
        X = joint.transform(q[i])
        X0[i] = X @ X0[p]
        v[i] = X @ v[p] + joint.subspace(q[i]) @ qd[i]
    X = X0[frame.body]
    view = Viewpoint.of(frame.placement @ X, axes, at)
    return view.turned(Transform(X.E, X.r - view.P).inverse() @ v[frame.body])
