"""Positions, velocities and accelerations of frames (Featherstone 2008, chapters 2 to 4)."""

from dataclasses import dataclass
from typing import Literal

from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Motion, Motions, Transform
from chasles.model.model import WORLD, Frame, Model
from chasles.model.spaces import Jacobian, Pose, Position, Twist, Velocity

Axes = Literal["world", "frame"]
At = Literal["frame", "world"] | tuple[float, float, float]
Kind = Literal["classical", "spatial", "proper"]


@dataclass(frozen=True)
class Viewpoint:
    """Point at which motions are evaluated, and axes in which they are expressed.

    P is the point in world coordinates, and E is the rotation from world axes to the selected axes.
    `moves` is True if the point follows the frame, and `turns` if the axes rotate with the frame.
    """

    P: Vector
    E: Rotation
    moves: bool
    turns: bool

    @staticmethod
    def of(X: Transform, axes: Axes, at: At) -> "Viewpoint":
        """Return the viewpoint for a frame, where X is the transform from the world to the frame.

        `at` is "frame" for the frame origin, "world" for the body point that coincides with the
        world origin, or the coordinates (x, y, z) of a point in the frame.
        """
        E = X.E if axes == "frame" else Rotation()
        if at == "world":
            return Viewpoint(Vector.zero(), E, False, axes == "frame")
        return Viewpoint(X.locate(_in_frame(at)), E, True, axes == "frame")

    def from_body(self, X: Transform, S: Motions) -> Motions:
        """Convert a body's motion vectors from body coordinates to world axes at the point P.

        X is the transform from the world to the body.
        """
        return Transform(X.E, X.r - self.P).inverse() @ S

    def turned(self, m: Motion) -> Motion:
        """Rotate a motion at the point P from world axes to the selected axes."""
        return Motion(self.E @ m.angular, self.E @ m.linear)


def point_in_body(frame: Frame, X: Transform, at: At) -> Vector:
    """Return the point `at` in body coordinates, where X is the transform from world to body."""
    return X.E @ -X.r if at == "world" else frame.placement.locate(_in_frame(at))


def _in_frame(at: At) -> Vector:
    assert at != "world", "the world's origin is not a fixed point of the frame"
    return Vector.zero() if at == "frame" else Vector(at)


def body_transforms(model: Model, q: Position) -> dict[int, Transform]:
    """Return the transform from the world to every body (Featherstone 2008, example 4.3)."""
    X0 = {WORLD: Transform.identity()}
    for i, p, joint, _ in model.outward():
        X0[i] = joint.transform(q[i]) @ X0[p]  # (2.3.6)
    return X0


def forward_kinematics(model: Model, q: Position, *, frame: Frame) -> Pose:
    """Return the pose of a frame in the world."""
    return frame.placement @ body_transforms(model, q)[frame.body]


def frame_velocity(
    model: Model, q: Position, qd: Velocity, *, frame: Frame, axes: Axes = "world", at: At = "frame"
) -> Twist:
    """Return the frame's angular velocity and the linear velocity of the body point `at`.

    See Featherstone 2008, Eq 4.4.
    """
    v, X0 = {WORLD: Motion.zero()}, {WORLD: Transform.identity()}
    for i in reversed(model.support(frame.body)):
        p, joint = model.bodies[i].parent, model.bodies[i].joint
        X = joint.transform(q[i])
        X0[i] = X @ X0[p]
        v[i] = X @ v[p] + joint.subspace(q[i]) @ qd[i]
    X = X0[frame.body]
    view = Viewpoint.of(frame.placement @ X, axes, at)
    return view.turned(Transform(X.E, X.r - view.P).inverse() @ v[frame.body])


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
    """Return the acceleration of the body point `at` (Featherstone 2008, section 2.11).

    The angular acceleration comes first. A classical acceleration is the acceleration of the body
    point. A spatial acceleration is the derivative of the spatial velocity, i.e. the classical
    acceleration minus w x v. A proper acceleration, as measured by an accelerometer, is the
    classical acceleration minus gravity.
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


def jacobian(
    model: Model, q: Position, *, frame: Frame, axes: Axes = "world", at: At = "frame"
) -> Jacobian:
    """Return a frame's Jacobian: all motion subspaces S_i (Featherstone 2008, example 2.3)."""
    X0 = body_transforms(model, q)
    view = Viewpoint.of(frame.placement @ X0[frame.body], axes, at)
    J = {}
    for i in model.support(frame.body):
        S = view.from_body(X0[i], model.bodies[i].joint.subspace(q[i]))
        J[i] = Motions(tuple(view.turned(m) for m in S.columns))
    return J


def jacobian_rate(
    model: Model, q: Position, qd: Velocity, *, frame: Frame, axes: Axes = "world", at: At = "frame"
) -> Jacobian:
    """Return Jdot, the derivative of the entries of J: d(J qd)/dt = J qdd + Jdot qd.

    The motion subspace S of a joint moves with its body, so its rate is v x S (Featherstone 2008,
    example 2.5). The reference point and the axes may move too.
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

    def _seen(rate: Motion, s: Motion) -> Motion:
        """Convert `rate`, the derivative of s in fixed axes, to the point and axes of `view`."""
        linear = rate.linear + s.angular.cross(Pdot) - spin.cross(s.linear)
        return view.turned(Motion(rate.angular - spin.cross(s.angular), linear))

    return {i: Motions(tuple(map(_seen, Jdot[i].columns, S[i].columns))) for i in Jdot}


def integrate(model: Model, q: Position, v: Velocity) -> Position:
    """Return the configuration reached from q at constant joint velocities v in unit time."""
    return {i: joint.integrate(q[i], v[i]) for i, _, joint, _ in model.outward()}


def difference(model: Model, q0: Position, q1: Position) -> Velocity:
    """Return the constant joint velocities that move q0 to q1 in unit time."""
    return {i: joint.difference(q0[i], q1[i]) for i, _, joint, _ in model.outward()}
