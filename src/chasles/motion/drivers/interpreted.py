"""Motions step by step: events, rigid contact, closed loops, steps of any length."""

from typing import Any

import numpy as np

from chasles.backends.arrays import checked_count
from chasles.errors import ArgumentError, InputError
from chasles.functions.doors import leading_shape, numbers
from chasles.functions.numeric import checked_step
from chasles.motion.contact.pairs import Rigid
from chasles.motion.contact.soft import given_pairs
from chasles.motion.contract import Array, Machine
from chasles.motion.drivers.events import checked_events
from chasles.motion.drivers.forces import accelerations, joint_forces, under
from chasles.motion.drivers.motions import moving
from chasles.motion.drivers.pace import paced
from chasles.motion.drivers.rigid import RigidContact
from chasles.motion.drivers.running import Keep, Repeats, Untouched, run
from chasles.motion.drivers.surfaces import soft_contacts
from chasles.motion.drivers.watched import Watched, check_rigid, touched
from chasles.motion.options import Plan, Touch
from chasles.motion.records import End, Occurrence, Trajectory, recalled, remembered
from chasles.motion.steps.integrators import chosen


def interpreted(robot: Machine, q: Array, qd: Array, plan: Plan) -> Trajectory:
    """The motion of a plan from q and qd."""
    span, stepping, loads, touch, closing = (
        plan.span,
        plan.stepping,
        plan.loads,
        plan.touch,
        plan.closing,
    )
    closure, stabilization = closing.closure, closing.stabilization
    if closure is not None and stabilization is not None:
        problem = "give closure or stabilization, not both"
        raise ArgumentError("E-MOTION-029", problem, part="simulate")
    q, qd = _state(robot, q, qd)
    whole = checked_step(span.duration, "simulate: duration")
    every = checked_count("simulate: every", plan.output.every)
    steps = None if span.steps is None else checked_count("simulate: steps", span.steps)
    if not isinstance(touch.limits, bool):
        problem = f"limits must be True or False, not {touch.limits!r:.60}"
        raise ArgumentError("E-MOTION-030", problem, part="simulate")
    start = _beginning(robot, span.start)
    happenings = checked_events(plan.events, q)
    contacts = given_pairs("simulate", touch.contacts)
    method, advance = chosen(robot, stepping.integrator, stepping.free)
    firm = rigid_contacts(touch)
    states, f_ext, dissipation = touch.contact_states, loads.f_ext, loads.dissipation
    soft = soft_contacts(robot, () if firm else contacts, stepping.integrator, states)
    frames = () if soft is None else soft.frames
    dynamics = accelerations(robot, f_ext, dissipation, stabilization, frames)
    force = joint_forces(robot, loads.control, qd)
    accelerate = under(dynamics, force) if soft is None else soft.under(dynamics, force)
    rigid: RigidContact | None = None
    if firm:
        check_rigid(contacts, q, stepping.integrator, advance, stabilization)
        rigid = RigidContact(robot, contacts, touch.limits, accelerate, force, f_ext, dissipation)
        accelerate = rigid.accelerate
    motion = moving(robot, accelerate, advance, closure, stabilization, soft)
    (q, qd), begin = motion.begin(start, q, qd), motion.begin
    if soft is not None:
        q, begin = soft.begin(q, qd, states), soft.beginning(begin)
        happenings = tuple(map(soft.seen_by, happenings))
    pace = paced(motion.step, method, start, whole, stepping)
    keep = Keep(start, whole, every, plan.output.times, *([rigid.kept] if rigid else []))
    watched = Watched(pace, rigid) if rigid else None
    stride, changes = watched or pace, watched or Untouched()
    repeats, t, end = Repeats(), start, start + whole
    parts = (pace, keep, repeats, *motion.parts, *([rigid] if rigid else []))
    happened: list[Occurrence] = []
    if span.resume is None:
        if watched and watched.collides(t, q, qd):
            keep.now(t, q, qd)
        happened, q, qd = changes.changed(t, q, qd)
        keep.now(t, q, qd)
    else:
        t, q, qd = recalled(span.resume, parts, q, qd, start, end)
    bar = plan.output.progress
    ran = run(stride, begin, changes, happenings, keep, repeats, (t, end), q, qd, bar, steps)
    times, q, qd = keep.states(q, qd)
    happened, touching = sorted([*happened, *ran.happened], key=lambda one: one.t), None
    if soft is not None:
        happened, touching = soft.occurred(happened), soft.touching(q, qd)
    if rigid is not None and contacts:
        touching = touched(keep.others, sum(pair.points for pair in contacts))
    return Trajectory(
        times,
        q[..., : robot.nq],
        qd,
        tuple(motion.rechosen),
        tuple(happened),
        touching,
        End(ran.t, ran.q, ran.qd, ran.over, remembered(parts)),
    )


def rigid_contacts(touch: Touch) -> bool:
    """Return True if bodies touch rigidly or joints stop at their limits."""
    pairs = given_pairs("simulate", touch.contacts)
    return touch.limits or any(isinstance(getattr(p, "law", None), Rigid) for p in pairs)


def _beginning(robot: Machine, start: Any) -> float:
    """The time at which a motion begins: as given, or the robot's own."""
    own = 0.0 if robot.mechanism.t is None else robot.mechanism.t
    time = own if start is None else start
    if np.ndim(time) or not isinstance(time, int | float | np.ndarray) or not np.isfinite(time):
        problem = f"start must be a finite time, one number, not {time!r:.60}"
        raise InputError("E-MOTION-031", problem, part="simulate")
    return float(time)


def _state(robot: Machine, q: Array, qd: Array) -> tuple[np.ndarray, np.ndarray]:
    """q and qd as floats with the same leading shape."""
    given = {"q": (q, robot.nq), "qd": (qd, robot.nv)}
    arrays = {k: numbers(f"simulate: {k}", v, n).astype(float) for k, (v, n) in given.items()}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise InputError("E-MOTION-032", f"{name} must be finite numbers", part="simulate")
    lead = leading_shape("simulate", **arrays)
    first, second = (np.array(np.broadcast_to(a, (*lead, a.shape[-1]))) for a in arrays.values())
    return first, second
