"""Actuator models: generalized forces from controls and activations, and activation rates.

The force of an actuator acts through its transmission, which has a moment arm for each degree of
freedom (mujoco.readthedocs.io, "Computation", actuation model).
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from chasles.algorithms.spatial.passive import compensation
from chasles.algorithms.spatial.sensors import cut
from chasles.algorithms.spatial.tendons import Arms, Moving, at_point, in_world, tendon_course
from chasles.expr import Number, less, less_equal, maximum, minimum, select, sqrt
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import quaternion_from_matrix, vector_from_quaternion
from chasles.model.machine import Interval
from chasles.model.model import WORLD, Frame, Model
from chasles.model.sensors import SensorData
from chasles.model.spaces import (
    Activations,
    Controls,
    Effort,
    Position,
    SensorNumbers,
    Velocity,
)
from chasles.model.transmissions import Actuator, actuators


class Driven(NamedTuple):
    """State of an actuator: transmission length and velocity, moment arms, and force."""

    length: Number
    velocity: Number
    arms: Arms
    force: Number


def actuate(model: Model, q: Position, qd: Velocity, ctrl: Controls, act: Activations) -> Effort:
    """Return the generalized forces of all actuators, limited to the model's force ranges."""
    return _exerted(model, q, _driven(model, q, qd, ctrl, act))


def actuator_values(
    model: Model,
    q: Position,
    qd: Velocity,
    ctrl: Controls,
    act: Activations,
    *,
    sensors: tuple[SensorData, ...],
) -> SensorNumbers:
    """Return the concatenated values of all sensors that measure actuator states or forces."""
    driven, pulls = _driven(model, q, qd, ctrl, act), defaultdict[str, Number](float)
    joints = {body.data.name: i for i, body in enumerate(model.bodies)}
    named = dict(zip((data.name for data in model.source.actuators), driven, strict=True))
    for data, each in zip(model.source.actuators, driven, strict=True):
        pulls[data.target] += each.force if data.kind == "tendon" else 0.0
    tau, found = _exerted(model, q, driven), list[Number]()
    for sensor in sensors:
        if sensor.kind == "joint_actuator_force":
            value = tau[joints[sensor.joint]][0]
        elif sensor.kind == "tendon_actuator_force":
            value = pulls[sensor.joint]
        else:
            value = getattr(named[sensor.joint], _FIELDS[sensor.kind])
        found += cut(sensor, (value,))
    return found


_FIELDS = {
    "actuator_position": "length",
    "actuator_velocity": "velocity",
    "actuator_force": "force",
}
"""Actuator quantity (a field of `Driven`) that each kind of actuator sensor measures."""


def _driven(
    model: Model, q: Position, qd: Velocity, ctrl: Controls, act: Activations
) -> list[Driven]:
    """Return the state of all actuators, with forces limited to actuator and tendon ranges."""
    every, found = actuators(model), list[Driven]()
    moving, pulls = _world(model, q, every), defaultdict[str, Number](float)
    for u, each in enumerate(every):
        length, arms = _transmission(model, q, each, moving)
        velocity = sum((qd[i][k] * arm for (i, k), arm in arms.items()), 0.0)
        at = (1.0, length, velocity)
        gain, bias = (
            sum((c * x for c, x in zip(c3, at, strict=True)), 0.0)
            for c3 in (each.data.gain, each.data.bias)
        )
        given = act[each.activation] if each.data.active else within(ctrl[u], each.data.controls)
        found.append(Driven(length, velocity, arms, gain * given + bias))
        if each.tendon is not None:
            pulls[each.tendon.data.name] += found[u].force
    for u, each in enumerate(every):
        force = found[u].force
        if each.tendon is not None:
            force = force * _scale(pulls[each.tendon.data.name], each.tendon.data.forces)
        found[u] = found[u]._replace(force=within(force, each.data.forces))
    return found


def _exerted(model: Model, q: Position, driven: Iterable[Driven]) -> Effort:
    """Return the generalized forces of the actuators, limited to the range of each joint."""
    tau = {i: [*Vector.zero(body.joint.nv)] for i, body in enumerate(model.bodies)}
    for each in driven:
        for (i, k), arm in each.arms.items():
            tau[i][k] = tau[i][k] + arm * each.force
    return _ranged(model, q, tau)


def activation_rate(
    model: Model, q: Position, qd: Velocity, ctrl: Controls, act: Activations
) -> Activations:
    """Return the time derivative of each activation.

    The derivative is ctrl for an integrator and (ctrl - act) / time constant for a filter.
    """
    rates = []
    for u, each in enumerate(actuators(model)):
        if each.data.active:
            given = within(ctrl[u], each.data.controls)
            filtered = each.data.dynamics == "filter"
            rate = (given - act[each.activation]) * (1.0 / max(each.data.constant, SHORTEST))
            rates.append(rate if filtered else given)
    return Vector(tuple(rates))


SHORTEST = 1e-15
"""Shortest time constant of an activation filter (s), equal to MuJoCo's mjMINVAL."""


def within(x: Number, interval: Interval) -> Number:
    """Clamp a value to a range."""
    lower, upper = interval
    x = x if lower == -math.inf else maximum(x, lower)
    return x if upper == math.inf else minimum(x, upper)


def _scale(total: Number, interval: Interval) -> Number:
    """Return the factor that brings the total actuator force into the tendon's force range."""
    lower, upper = interval
    if (lower, upper) == (-math.inf, math.inf):
        return 1.0
    outside = select(less(total, lower), 1.0, less(upper, total))
    safe = select(outside, total, 1.0)
    return select(outside, within(total, interval) / safe, 1.0)


def _ranged(model: Model, q: Position, tau: dict[int, list[Number]]) -> Effort:
    """Add gravity compensation applied by actuators, and limit forces to each joint's range."""
    lift = compensation(model, q) if any(body.data.lifted for body in model.bodies) else {}
    found = {}
    for i, body in enumerate(model.bodies):
        entries = list(tau[i])
        if body.data.lifted:
            entries = [x + y for x, y in zip(entries, lift[i], strict=True)]
        if body.joint.nv == 1:
            entries = [within(entries[0], body.data.forces)]
        found[i] = Vector(tuple(entries))
    return found


# Transmissions ----------------------------------------------------------------------------------


def _world(model: Model, q: Position, every: tuple[Actuator, ...]) -> Moving | None:
    """Return the poses of all bodies, or None if no actuator's transmission needs them."""
    spatial = any(x.frame is not None or (x.tendon is not None and x.tendon.path) for x in every)
    return in_world(model.bare(), q, None) if spatial else None


def _transmission(
    model: Model, q: Position, each: Actuator, moving: Moving | None
) -> tuple[Number, Arms]:
    """Return the length and moment arms of an actuator's transmission."""
    gear = each.data.gear
    if each.tendon is not None:
        length, arms, _ = tendon_course(model, q, each.tendon, moving)
        return length * gear[0], {place: arm * gear[0] for place, arm in arms.items()}
    if each.frame is not None:
        assert moving is not None
        way = _crank if each.data.kind == "crank" else _frame
        return way(model, each, moving)
    i = each.body
    if i == WORLD:
        return 0.0, {}
    length, found = model.bodies[i].joint.transmission(q[i], Vector(gear), each.data.in_parent)
    return length, {(i, k): arm for k, arm in enumerate(found)}


def _at(moving: Moving, frame: Frame) -> tuple[Vector, Matrix]:
    """Return the origin and axes (as columns) of a frame in the world."""
    X = moving.X0[frame.body]
    return X.locate(frame.placement.r), X.R @ frame.placement.R


def _frame(model: Model, each: Actuator, moving: Moving) -> tuple[Number, Arms]:
    """Return the transmission of an actuator that exerts a wrench on a frame.

    The wrench is expressed in the reference frame, or in the frame itself if there is no reference
    frame.
    """
    assert each.frame is not None
    gear, arms = Vector(each.data.gear), defaultdict[tuple[int, int], Number](float)
    (p, R), bodies = _at(moving, each.frame), [(each.frame, 1.0)]
    length: Number = 0.0
    axes, linear, angular = R, Vector(gear.entries[:3]), Vector(gear.entries[3:])
    if each.reference is not None:
        (p0, axes), bodies = _at(moving, each.reference), [*bodies, (each.reference, -1.0)]
        turn = (
            vector_from_quaternion(quaternion_from_matrix(axes.T @ R))
            if any(angular)
            else Vector.zero()
        )
        length = (axes.T @ (p - p0)).dot(linear) + turn.dot(angular)
    force, moment = axes @ linear, axes @ angular
    supports = [set(model.support(frame.body)) for frame, _ in bodies]
    shared = set.intersection(*supports) if len(supports) == 2 else set()
    for (frame, sign), support in zip(bodies, supports, strict=True):
        point = _at(moving, frame)[0]
        for i in support - shared:
            for k, freedom in enumerate(moving.S[i].columns):
                arm = force.dot(at_point(freedom, point)) + moment.dot(freedom.angular)
                arms[i, k] += arm * sign
    return length, dict(arms)


def _crank(model: Model, each: Actuator, moving: Moving) -> tuple[Number, Arms]:
    """Return the length and moment arms of a slider-crank transmission.

    A rod connects `frame`, on the crank, to a slider that moves along the z axis of `reference`.
    """
    assert each.frame is not None
    assert each.reference is not None
    p, _ = _at(moving, each.frame)
    p0, R = _at(moving, each.reference)
    axis, v, arms = (
        Vector(tuple(row[2] for row in R.rows)),
        p - p0,
        defaultdict[tuple[int, int], Number](float),
    )
    along = v.dot(axis)
    det = along * along + each.data.rod**2 - v.dot(v)
    out = less_equal(det, 0.0)
    root = sqrt(select(out, 1.0, det))
    length = along - select(out, 0.0, root)
    by_axis = v * select(out, 1.0, 1.0 - along / root)
    by_v = axis * select(out, 1.0, 1.0 - along / root) + v * select(out, 0.0, 1.0 / root)
    for frame, sign in ((each.frame, 1.0), (each.reference, -1.0)):
        point = p if frame is each.frame else p0
        for i in model.support(frame.body):
            for k, freedom in enumerate(moving.S[i].columns):
                arms[i, k] += by_v.dot(at_point(freedom, point)) * sign
                if frame is each.reference:
                    arms[i, k] += by_axis.dot(freedom.angular.cross(axis))
    gear = each.data.gear[0]
    return length * gear, {place: arm * gear for place, arm in arms.items()}
