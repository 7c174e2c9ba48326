"""Tendon lengths and ball-joint angles on which limits and passive tendon forces depend.

The angle of a ball joint is its total rotation angle, from 0 to pi, as in MuJoCo
(mujoco.readthedocs.io, XML reference, body/joint/range).
"""

import math
from typing import NamedTuple

from chasles.algorithms.spatial.tendons import Course, in_world, tendon_course
from chasles.expr import Number, absolute, atan2, less, maximum, select, sqrt
from chasles.mathematics.linear import Vector
from chasles.model.machine import UNBOUNDED, Interval
from chasles.model.model import Model
from chasles.model.spaces import Position, SensorNumbers, Velocity
from chasles.model.transmissions import Tendon, tendons

_TURNED = 1e-30
"""Squared norm of a quaternion's vector part below which the rotation angle counts as zero."""


class Line(NamedTuple):
    """Tendon length or ball-joint angle, with its limits."""

    name: str
    limits: Interval
    tendon: Tendon | None = None
    body: int = -1


def lines(model: Model) -> tuple[Line, ...]:
    """Return all tendons with springs, dampers, friction or limits, and ball joints with limits."""
    found = [
        Line(tendon.data.name, tendon.data.limits, tendon)
        for tendon in tendons(model)
        if tendon.data.limits != UNBOUNDED
        or any((tendon.data.friction, tendon.data.stiffness, tendon.data.damping))
    ]
    for i, body in enumerate(model.bodies):
        ball = (body.joint.nq, body.joint.nv) == (4, 3)
        if ball and 0.0 < body.data.limits.upper < math.pi:
            limits = (-math.inf, body.data.limits.upper)
            found.append(Line(body.data.name, limits, body=i))
    return tuple(found)


def line_motion(model: Model, q: Position, qd: Velocity) -> SensorNumbers:
    """Return the Jacobian J, value and (dJ/dt) qd of each tendon length and ball-joint angle."""
    every = lines(model)
    spatial = any(each.tendon is not None and each.tendon.path for each in every)
    moving = in_world(model.bare(), q, qd) if spatial else None
    found: list[Number] = []
    for each in every:
        if each.tendon is not None:
            course = tendon_course(model, q, each.tendon, moving)
        else:
            course = _angle(each.body, Vector(tuple(q[each.body])), Vector(tuple(qd[each.body])))
        row: list[Number] = [0.0] * model.nv
        for (i, k), arm in course.arms.items():
            for owner, first, ratio in model.shares(i):
                place = model.velocity_slices[owner].start + first + k
                row[place] = row[place] + arm * ratio
        found += [*row, course.length, course.drift]
    return found


def _angle(i: int, q: Vector, w: Vector) -> Course:
    """Return the rotation angle of a ball joint, its moment arms, and its bias acceleration.

    The rate of the angle is the component of w along the rotation axis. Without angular
    acceleration, the second derivative of the angle is |w_n|^2 cot(angle/2) / 2, where w_n is the
    component of w normal to the axis.
    """
    c, v = q[0], Vector(q.entries[1:])
    square = v.dot(v)
    turned = less(_TURNED, square)
    sine = sqrt(select(turned, square, 1.0))
    sign = select(less(c, 0.0), -1.0, 1.0)
    axis = v * select(turned, sign / sine, 0.0)
    along = axis.dot(w)
    across = maximum(w.dot(w) - along * along, 0.0)
    angle = select(turned, 2.0 * atan2(sine, absolute(c)), 0.0)
    drift = select(turned, 0.5 * across * absolute(c) / sine, 0.0)
    return Course(angle, {(i, k): x for k, x in enumerate(axis)}, drift)
