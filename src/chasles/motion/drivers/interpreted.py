"""Simulation in Python, with events, rigid contact, closed loops and variable step sizes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from chasles.backends.arrays import checked_count
from chasles.errors import ArgumentError, InputError, NotFiniteError
from chasles.functions.doors import leading_shape, numbers
from chasles.mechanisms import Mechanism
from chasles.mechanisms.mechanism import Accelerations
from chasles.model.given import checked_step, is_finite
from chasles.motion.contact.pairs import Rigid, given_pairs
from chasles.motion.contract import Array, read_only
from chasles.motion.controllers import BUILT_IN, controlled
from chasles.motion.controls import Activated, Controls
from chasles.motion.drivers import running
from chasles.motion.drivers.contacts import check_rigid, touched
from chasles.motion.drivers.dry import Dry
from chasles.motion.drivers.loops import ByFunction, Closed
from chasles.motion.drivers.rigid import RigidContact
from chasles.motion.drivers.surfaces import Surfaces, Watched
from chasles.motion.options import DT, MOST_STEPS, Forces, Plan
from chasles.motion.records import Occurrence, Trajectory
from chasles.motion.steps.bodies import dry_friction
from chasles.motion.steps.integrators import Integrator, chosen
from chasles.motion.steps.stiction import check_tendons
from chasles.motion.steps.system import Accelerate, Local, Place, State, Taken, Tree, path, take

LOOSE = 1e-2
"""Tolerance for closure errors of stabilized loops (rad, or relative to the loop size)."""


def interpreted(mechanism: Mechanism, q: Array, qd: Array, plan: Plan) -> Trajectory:
    """Simulate a motion from q and qd step by step in Python, with the options in `plan`."""
    if plan.closure is not None and plan.stabilization is not None:
        problem = "pass `closure` or `stabilization`, not both"
        raise ArgumentError("E-MOTION-029", problem, part="simulate")
    q, qd = _state(mechanism, q, qd)
    whole = checked_step(plan.duration, "simulate: duration")
    every = checked_count("simulate: every", plan.every)
    steps = None if plan.steps is None else checked_count("simulate: steps", plan.steps)
    if not isinstance(plan.limits, bool):
        problem = f"`limits` must be True or False, not {plan.limits!r:.60}"
        raise ArgumentError("E-MOTION-030", problem, part="simulate")
    start = _beginning(mechanism, plan.start)
    end = start + whole
    events = running.checked_events(plan.events, q)
    contacts = given_pairs("simulate", plan.contacts)
    integrator, advance = chosen(mechanism, plan.integrator, plan.free)
    if plan.dissipation:
        check_tendons(mechanism.model)
    firm = rigid_contacts(plan)
    soft: Surfaces | None = None
    if contacts and not firm:
        soft = Surfaces(mechanism, contacts, plan.integrator)
    elif plan.contact_states is not None:
        problem = "`contact_states` was given, but there are no contacts"
        raise InputError("E-MOTION-064", problem, part="simulate")
    dynamics = _dynamics(mechanism, plan, () if soft is None else soft.contacts.frames)
    driven = _driven(mechanism, plan, q, firm or soft is not None)
    acting = driven if driven is not None and driven.size else None
    force = host_forces(mechanism, plan.control, qd) if driven is None else driven.force
    dry: Dry | None = None
    rigid: RigidContact | None = None
    if firm:
        check_rigid(contacts, q, plan.integrator, advance, plan.stabilization)
        loads = (plan.f_ext, plan.dissipation or False)
        rigid = RigidContact(mechanism, contacts, plan.limits, force, *loads)
        force = rigid.force
    elif plan.dissipation and dry_friction(mechanism.model).any():
        advance = dry = Dry(mechanism, advance, qd.shape)
        force = dry.force(force)
    accelerate = _under(dynamics, force, soft, acting)
    if dry is not None:
        dry.free, accelerate = accelerate, dry.accelerate
    if rigid is not None:
        rigid.free, accelerate = accelerate, rigid.accelerate
    mover, way, nq, nv = _mover(mechanism, plan), path(mechanism.model), mechanism.nq, mechanism.nv
    begin: running.Begin = mover.begin
    at = begin(State(start, q, qd))

    def step(place: Place, at: State, goal: float) -> Taken:
        local = Local(mechanism, nv, way, place, accelerate, at.t, at.q, acting or soft)
        taken = take(advance, local, at.qd, goal)
        return taken if dry is None else dry.stilled(at.q, taken)

    if soft is not None:
        at = at._replace(q=soft.begin(at.q, at.qd, plan.contact_states))
        begin, events = soft.beginning(begin), tuple(map(soft.seen_by, events))
    if acting is not None:
        at = at._replace(q=acting.begin(at.q, plan.act))
        begin, events = _beginning_behind(begin, acting), tuple(running.seen(e, nq) for e in events)
    even = _paced(partial(mover.step, step), integrator, start, whole, plan)
    pace: running.Pace = even
    watch: Watched | None = None
    if rigid is not None:
        rigid.pace, pace = even, rigid
    if soft is not None:
        pace = watch = Watched(even, soft, q.shape[:-1])
    keep = running.Keep(start, end, every, plan.times, rigid.kept if rigid else lambda at: None)
    every_part = (even, keep, mover, rigid, watch)
    parts = [p for p in every_part if isinstance(p, running.Remembering)]
    happened: list[Occurrence] = []
    if plan.resume is None:
        if rigid is not None and rigid.collides(at):
            keep.now(at)
        happened, at = pace.changed(at)
        keep.now(at)
    else:
        last = running.resumed(plan.resume)
        alike = (last.q.shape, last.qd.shape) == (at.q.shape, at.qd.shape)
        same = set(last.memory) == set(running.remembered(parts))
        if not (alike and same and start <= last.t < end):
            raise running.other_motion("E-MOTION-052")
        for part in parts:
            part.recall(last.memory)
        at = State(last.t, last.q.copy(), last.qd.copy())
    more, stop = running.run(pace, begin, events, keep, at, end, plan.progress, steps)
    times, q, qd = keep.states(at.q, at.qd)
    happened, touching = sorted([*happened, *more], key=lambda one: one.t), None
    happened = [one._replace(q=one.q[..., :nq]) for one in happened]
    if soft is not None:
        touching = soft.touching(q, qd)
    if rigid is not None and contacts:
        touching = touched(keep.others, sum(pair.points for pair in contacts))
    rest = tuple(happened), touching, stop._replace(memory=running.remembered(parts))
    moved = Trajectory(times, q[..., :nq], qd, tuple(mover.rechosen), *rest, contacts=contacts)
    moved = moved if acting is None else replace(moved, act=q[..., nq:])
    return moved if watch is None else replace(moved, unstable=watch.unstable)


def _driven(mechanism: Mechanism, plan: Plan, q: np.ndarray, touches: bool) -> Activated | None:
    """Return the actuators of a simulation if controls are given, else None.

    Raise an error if activations are combined with contacts, limits or dry friction.
    """
    if not isinstance(plan.control, Controls):
        if plan.act is not None:
            problem = "`act` was given without `ctrl`"
            remedy = "pass actuator controls as `ctrl`, or omit `act`"
            raise ArgumentError("E-MOTION-145", problem, remedy, part="simulate")
        return None
    driven = Activated(mechanism, plan.control, plan.ctrl, q.shape[:-1])
    dry = plan.dissipation and dry_friction(mechanism.model).any()
    if driven.size and (touches or dry):
        problem = (
            "in simulations that run in Python, actuator activations cannot be combined with "
            "contacts, limits or dry friction"
        )
        remedy = "use integrator='time-stepping', or remove the options that prevent compilation"
        raise InputError("E-MOTION-146", problem, remedy, part="simulate")
    return driven


def _beginning_behind(begin: running.Begin, acting: Activated) -> running.Begin:
    """Extend the function `begin` to states in which activations are appended to q."""

    def begun(at: State) -> State:
        place, act = np.split(at.q, [at.q.shape[-1] - acting.size], axis=-1)
        here = begin(at._replace(q=place))
        return here._replace(q=np.concatenate([here.q, act], -1))

    return begun


def rigid_contacts(plan: Plan) -> bool:
    """Return True if there are rigid contacts or joint limits."""
    pairs = given_pairs("simulate", plan.contacts)
    return plan.limits or any(isinstance(getattr(p, "law", None), Rigid) for p in pairs)


def _mover(mechanism: Mechanism, plan: Plan) -> Tree:
    """Return the object that updates positions in a step, and closes the loops if necessary."""
    if plan.closure is not None:
        return ByFunction(mechanism, plan.closure)
    loops = mechanism.rows and plan.stabilization is None
    return Closed(mechanism) if loops else Tree(mechanism)


def _beginning(mechanism: Mechanism, start: Any) -> float:
    """Return the start time of a simulation: the given time, or the robot's time."""
    own = 0.0 if mechanism.t is None else mechanism.t
    time = own if start is None else start
    if not is_finite(time):
        problem = f"`start` must be a single finite time, not {time!r:.60}"
        raise InputError("E-MOTION-031", problem, part="simulate")
    return float(time)


def _state(mechanism: Mechanism, q: Array, qd: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return q and qd as float arrays with the same leading shape."""
    given = {"q": (q, mechanism.nq), "qd": (qd, mechanism.nv)}
    arrays = {k: numbers(f"simulate: {k}", v, n).astype(float) for k, (v, n) in given.items()}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise InputError("E-MOTION-032", f"{name} must be finite", part="simulate")
    lead = leading_shape("simulate", **arrays)
    first, second = (np.array(np.broadcast_to(a, (*lead, a.shape[-1]))) for a in arrays.values())
    return first, second


def _paced(
    step: running.Step, integrator: Integrator, start: float, whole: float, plan: Plan
) -> running.Even | running.Controlled:
    """Return a stepper with equal steps of at most dt, or with adaptive step sizes.

    `start` is the initial time, and `whole` the duration (s).
    """
    longest = None if plan.dt is None else checked_step(plan.dt, "simulate: dt")
    steps = step_count(whole, longest or DT)
    running.check_resolution(start, whole / steps, "simulate")
    if not integrator.adaptive:
        return running.Even(step, start, whole, steps)
    rtol, atol = (checked_step(getattr(plan, n), f"simulate: {n}") for n in ("rtol", "atol"))
    end, first = start + whole, longest or DT
    return running.Controlled(step, end, longest or whole, rtol, atol, integrator.order, first)


def step_count(whole: float, longest: float) -> int:
    """Return the number of equal steps of at most `longest` seconds that add up to `whole` s."""
    count = whole / longest
    if count > MOST_STEPS:
        problem = (
            f"a duration of {whole:g} s needs {count:.3g} steps of {longest:g} s "
            f"(limit: {MOST_STEPS:,})"
        )
        remedy = "shorten the duration, or increase `dt`"
        raise InputError("E-MOTION-120", problem, remedy, part="simulate")
    return max(math.ceil(count - 1e-9), 1)


# Forces -----------------------------------------------------------------------------------------


def host_forces(mechanism: Mechanism, tau: Forces, qd: np.ndarray) -> Callable[..., np.ndarray]:
    """Return the joint torques as a function tau(t, q, qd) that checks its results."""
    if isinstance(tau, BUILT_IN):
        return controlled(mechanism, tau)
    if callable(tau):
        return lambda t, q, qd: _like(qd, tau(t, *read_only(q, qd)), t)
    given = np.zeros(qd.shape[-1:]) if tau is None else numbers("simulate: tau", tau, qd.shape[-1])
    if not np.isfinite(given).all():
        raise InputError("E-MOTION-033", "tau must be finite", part="simulate")
    try:
        constant = np.array(np.broadcast_to(given, qd.shape), dtype=float)
    except ValueError:
        lead = qd.shape[:-1]
        problem = (
            f"leading shape {given.shape[:-1]} of tau does not broadcast to "
            f"shape {lead} of q and qd"
        )
        raise InputError("E-MOTION-034", problem, part="simulate") from None
    return lambda t, q, qd: constant


def _like(qd: np.ndarray, tau: Array, t: float) -> np.ndarray:
    """Return the joint torques from a user's function as an array that broadcasts to qd."""
    try:
        forces = np.asarray(tau, dtype=float)
    except (TypeError, ValueError, OverflowError):
        problem = f"tau(t, q, qd) returned {tau!r:.60} at t = {t:.6g} s"
        remedy = f"return an array with the shape of qd, {qd.shape}"
        raise ArgumentError("E-MOTION-037", problem, remedy, part="simulate") from None
    tail = qd.shape[qd.ndim - forces.ndim :] if forces.ndim <= qd.ndim else ()
    fits = all(n in (1, m) for n, m in zip(forces.shape, tail, strict=False))
    if not forces.ndim or not tail or forces.shape[-1] != qd.shape[-1] or not fits:
        problem = f"tau(t, q, qd) returned shape {forces.shape} at t = {t:.6g} s"
        remedy = f"return an array that broadcasts to the shape of qd, {qd.shape}"
        raise InputError("E-MOTION-038", problem, remedy, part="simulate")
    return forces


def _dynamics(mechanism: Mechanism, plan: Plan, frames: Sequence[str]) -> Accelerations:
    """Return a forward-dynamics function that also takes contact wrenches on `frames`."""
    for name in frames:
        if name in (plan.f_ext or {}):
            problem = f"`f_ext` and `contacts` act on the same frame {name!r}"
            remedy = "apply `f_ext` to another frame of that body"
            raise InputError("E-MOTION-035", problem, remedy, part="simulate")
    options: dict[str, Any] = {"dissipation": plan.dissipation}
    if plan.stabilization is not None:
        mechanism.require_loops("simulate: stabilization", "omit it")
        time = checked_step(plan.stabilization, "simulate: stabilization")
        options |= {"stabilization": time, "tolerance": LOOSE}
    return mechanism.accelerations(plan.f_ext, frames, **options)


def _under(
    dynamics: Accelerations,
    force: Callable[..., np.ndarray],
    soft: Surfaces | None,
    acting: Activated | None,
) -> Accelerate:
    """Return a function accelerate(t, q, qd) for the joint torques `force(t, q, qd)`.

    The function returns the accelerations, followed by the rates of the states appended to q: soft
    contact states (`soft`) or activations (`acting`).
    """

    def accelerate(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        q, wrenches, rates = (q, [], []) if soft is None else soft.pressing(q, qd)
        tau = force(t, q, qd)
        if acting is not None:
            q, rates = q[..., : -acting.size], [acting.rates(t, q, qd)]
        qdd = dynamics(t, q, qd, tau, *wrenches)
        if not np.isfinite(qdd).all():
            problem = f"accelerations are not finite at t = {t:.6g} s"
            remedy = "reduce `dt`, check `tau`, or use integrator='time-stepping'"
            raise NotFiniteError("E-MOTION-039", problem, remedy, part="simulate")
        return np.concatenate([qdd, *rates], -1) if rates else qdd

    return accelerate
