"""The time derivative of a frame's Jacobian."""

from chasles.algorithms.spatial.forward_kinematics import body_transforms
from chasles.algorithms.spatial.viewpoint import At, Axes, Viewpoint
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Motion, Motions
from chasles.model.model import WORLD, Frame, Model
from chasles.model.spaces import Jacobian, Position, Velocity


def jacobian_rate(
    model: Model,
    q: Position,
    qd: Velocity,
    *,
    frame: Frame,
    axes: Axes = "world",
    at: At = "frame",
) -> Jacobian:
    """Jdot, the derivative of the entries of J: d(J qd)/dt = J qdd + Jdot qd.

    A subspace moves with its body (v x S, Featherstone 2008, example 2.5); the point P and the
    axes may move too.
    """
    X0 = body_transforms(model, q)
    view = Viewpoint.of(frame.placement @ X0[frame.body], axes, at)
    v, S, Jdot = {WORLD: Motion.zero()}, {}, {}
    for i in reversed(model.support(frame.body)):
        joint = model.bodies[i].joint
        S[i] = view.from_body(X0[i], joint.subspace(q[i]))
        v[i] = v[model.bodies[i].parent] + S[i] @ qd[i]
        Jdot[i] = v[i].cross(S[i]) + view.from_body(X0[i], joint.subspace_rate(q[i], qd[i]))
    w, Pdot = v[frame.body].angular, v[frame.body].linear * float(view.moves)
    spin = w * float(view.turns)
    return {
        i: Motions(
            tuple(
                view.turned(_seen_moving(rate, s, spin, Pdot))
                for rate, s in zip(Jdot[i].columns, S[i].columns, strict=True)
            )
        )
        for i in Jdot
    }


def _seen_moving(rate: Motion, s: Motion, spin: Vector, Pdot: Vector) -> Motion:
    """The rate of s as written at a point with velocity Pdot along axes that turn with `spin`."""
    return Motion(
        rate.angular - spin.cross(s.angular),
        rate.linear + s.angular.cross(Pdot) - spin.cross(s.linear),
    )
