"""Tendon lengths and moment arms.

A tendon with straight segments and armature has the kinetic energy armature/2 (dL/dt)^2, where
dL/dt = J qd. The second derivative of L is J qdd + (dJ/dt) qd. The tendon adds armature J'J to the
mass matrix and armature J' (dJ/dt) qd to the bias forces (mujoco.readthedocs.io, XML reference,
tendon/spatial/armature).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from chasles.algorithms.spatial.kinematics import body_transforms
from chasles.expr import Number, less, select, sqrt
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force, Motion, Motions, Transform
from chasles.model.loads import Load
from chasles.model.model import WORLD, Body, Model, Share, Stretch
from chasles.model.spaces import Position, Velocity
from chasles.model.transmissions import Tendon, tendons


def stretched(model: Model, q: Position, qd: Velocity | None = None) -> Model:
    """Return the model with the moment arms and bias accelerations of its tendons at q and qd.

    A tendon with inertia is modeled as a rotor, whose gear ratios are the tendon's moment arms.
    """
    moving = in_world(model.bare(), q, qd)
    return replace(model, rotors=tuple(_stretched(model, body, moving) for body in model.rotors))


class Moving(NamedTuple):
    """Motion of every body in world coordinates.

    S, v and a are the motion subspaces, the velocities, and the accelerations for qdd = 0.
    """

    X0: dict[int, Transform]
    S: dict[int, Motions]
    v: dict[int, Motion]
    a: dict[int, Motion]

    def velocity(self, i: int, point: Vector) -> Vector:
        return at_point(self.v[i], point)

    def acceleration(self, i: int, point: Vector) -> Vector:
        return at_point(self.a[i], point) + self.v[i].angular.cross(at_point(self.v[i], point))


def in_world(model: Model, q: Position, qd: Velocity | None) -> Moving:
    """Compute the poses and motions of all bodies, for a model without rotors."""
    X0, S = body_transforms(model, q), {}
    v, a, speeds = {WORLD: Motion.zero()}, {WORLD: Motion.zero()}, qd or model.at_rest()
    for i, p, joint, _ in model.outward():
        back = X0[i].inverse()
        S[i] = back @ joint.subspace(q[i])
        vJ = S[i] @ speeds[i]
        v[i] = v[p] + vJ
        a[i] = a[p] + back @ joint.bias(q[i], speeds[i]) + v[i].cross(vJ)
    return Moving(X0, S, v, a)


Arms = dict[tuple[int, int], Number]
"""Moment arms by (i, k): tendon velocity per unit velocity of joint i's k-th degree of freedom."""


class Course(NamedTuple):
    """Length, moment arms and bias acceleration of a tendon path.

    The bias acceleration `drift` is the second time derivative of the length for qdd = 0.
    """

    length: Number
    arms: Arms
    drift: Number


def course(model: Model, path: Sequence[Stretch], moving: Moving) -> Course:
    """Compute the length, moment arms and bias acceleration of a tendon path.

    For a segment from point a to point b with d = b - a and length L, dL/dt = (d / L) . dd/dt.
    """
    length, J, drift = 0.0, defaultdict[tuple[int, int], Number](float), 0.0
    for a, r, b, s, factor in path:
        ends = (a, moving.X0[a].locate(r), -factor), (b, moving.X0[b].locate(s), factor)
        d = ends[1][1] - ends[0][1]
        L = sqrt(d.dot(d))
        u, rate, change = d * (1.0 / L), Vector.zero(), Vector.zero()
        for end, point, sign in ends:
            rate += moving.velocity(end, point) * sign
            change += moving.acceleration(end, point) * sign
            for i in model.support(end):
                for k, freedom in enumerate(moving.S[i].columns):
                    J[i, k] += u.dot(at_point(freedom, point)) * sign
        across = rate.dot(rate) - u.dot(rate) * u.dot(rate)
        drift = drift + u.dot(change) + across * (1.0 / (factor * L))
        length = length + L * factor
    return Course(length, dict(J), drift)


def tendon_course(model: Model, q: Position, tendon: Tendon, moving: Moving | None) -> Course:
    """Compute the length, moment arms and bias acceleration of a tendon.

    `moving` contains the body motions, which only a tendon with a spatial path requires.
    """
    if tendon.path:
        assert moving is not None
        found = course(model, tendon.path, moving)
        return found._replace(length=found.length + tendon.offset)
    length, arms = tendon.offset, defaultdict[tuple[int, int], Number](float)
    for i, k, ratio in tendon.geared:
        length = length + q[i][k] * ratio
        arms[i, k] += ratio
    return Course(length, dict(arms), 0.0)


def pulls(model: Model, q: Position, qd: Velocity) -> list[Load]:
    """Return the spring and damper forces that spatial tendons exert on the links they connect."""
    acting = [t for t in tendons(model) if t.path and (t.data.stiffness or t.data.damping)]
    if not acting:
        return []
    moving, found = in_world(model.bare(), q, qd), list[Load]()
    for tendon in acting:
        length, arms, _ = tendon_course(model, q, tendon, moving)
        speed = sum((qd[i][k] * arm for (i, k), arm in arms.items()), 0.0)
        tension = tendon.data.stiffness * stretch(tendon, length) + tendon.data.damping * speed
        for start, r, end, s, factor in tendon.data.path:
            ends = [(name, model.frames[name], point) for name, point in ((start, r), (end, s))]
            if start == end:
                continue
            points = [frame.placement.locate(point) for _, frame, point in ends]
            places = [
                moving.X0[frame.body].locate(point)
                for (_, frame, _), point in zip(ends, points, strict=True)
            ]
            d = places[1] - places[0]
            pull = d * (tension * factor / sqrt(d.dot(d)))
            for (name, frame, _), point, sign in zip(ends, points, (1.0, -1.0), strict=True):
                force = moving.X0[frame.body].E @ (pull * sign)
                f = Force(point.cross(force), force)
                found.append(Load(frame.body, f, point, moves=True, turns=False, frame=name))
    return found


def stretch(tendon: Tendon, length: Number) -> Number:
    """Return the signed elongation of a tendon spring, which is zero in its slack range."""
    lower, upper = tendon.data.rest
    if lower == upper:
        return length - lower
    short = select(less(length, lower), length - lower, 0.0)
    return select(less(upper, length), length - upper, short)


def _stretched(model: Model, body: Body, moving: Moving) -> Body:
    """Return a rotor with the gear ratios and bias acceleration of its tendon path.

    A rotor without a tendon path is returned unchanged.
    """
    if not body.path:
        return body
    found = course(model, body.path, moving)
    geared = tuple(Share(i, k, ratio) for (i, k), ratio in found.arms.items())
    return replace(body, geared=geared, drift=found.drift)


def at_point(motion: Motion, point: Vector) -> Vector:
    """Return the velocity of a body point."""
    return motion.linear + motion.angular.cross(point)
