"""The door of `chasles.simulate`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from chasles.backends.arrays import checked_count
from chasles.motion.closure import ClosureFunction
from chasles.motion.contact.pairs import Pair, Rigid
from chasles.motion.contact.soft import given_pairs
from chasles.motion.contract import Array, Machine, own_time
from chasles.motion.drivers.events import Event, checked_events
from chasles.motion.drivers.forces import Forces, accelerations, joint_forces, under
from chasles.motion.drivers.memory import recalled, remembered
from chasles.motion.drivers.motions import moving
from chasles.motion.drivers.pace import paced
from chasles.motion.drivers.rigid import RigidContact
from chasles.motion.drivers.running import Keep, Repeats, Untouched, run
from chasles.motion.drivers.surfaces import soft_contacts
from chasles.motion.drivers.watched import Watched, check_rigid, touched
from chasles.motion.records import End, Occurrence, Trajectory
from chasles.motion.steps.integrators import Free, chosen
from chasles.names import check_robot, leading_shape, numbers
from chasles.numeric.linear_systems import checked_step


def simulate(
    robot: Machine,
    q: Array,
    qd: Array,
    *,
    duration: float,
    start: float | None = None,
    dt: float | None = None,
    integrator: str = "rk4",
    rtol: float = 1e-6,
    atol: float = 1e-9,
    free: Free = "body",
    tau: Forces = None,
    f_ext: Mapping[str, Any] | None = None,
    dissipation: bool = False,
    stabilization: float | None = None,
    closure: ClosureFunction | None = None,
    events: Event | Sequence[Event] = (),
    contacts: Sequence[Pair] = (),
    contact_states: Array = None,
    limits: bool = False,
    times: Array = None,
    every: int = 1,
    steps: int | None = None,
    resume: End | None = None,
    progress: bool = False,
) -> Trajectory:
    """The motion from q (..., nq) and qd (..., nv) for `duration` seconds, in steps of at most dt.

    integrator: a name of `chasles.INTEGRATORS`, by default the classical Runge-Kutta method of
    fourth order; each works on the configuration space (rotations stay rotations). dt: 1 ms by
    default; "dopri5" chooses its steps so that the error of each is within atol + rtol times the
    step (rad, m, and their rates), of any length unless dt is given. free="mixed": semi-implicit
    Euler steps the linear velocity of free joints along their parent's axes, as MuJoCo does.

    tau: joint forces (..., nv), constant, or a function tau(t, q, qd) of them, called with all
    members of a batch, or a controller of `rollout`; none by default. f_ext and dissipation as in
    `forward_dynamics`. start: the time in s at which it begins, for tau(t, q, qd) and for a robot
    that depends on time; by default that of `at_time`, or 0.

    events: of one state, not of a batch; see `chasles.Event`. Where one does something, the state
    before and the state after are both kept. times: keep the states at these times (n,), which
    increase, by interpolation within the steps, instead of those after each step. every: keep one
    state of so many, and the last. progress: show a bar.

    contacts: pairs of shapes, `contact.Pair(body, surface, law)`, all with soft laws or all with
    rigid ones. Soft, `SoftContact(...)`: contact_states (..., states) are those of surfaces and of
    friction at the start, by default at rest. They are integrated with the motion;
    `Trajectory.touching` has them, with forces and gaps. Stiff ground is for the implicit
    integrators. Rigid, `Rigid(...)`, of one state and for explicit integrators: bodies touch,
    leave, stick, slide and collide, and so do joints at their limits with limits=True. Each change
    is found within its step, as events are, and named in `Trajectory.events`: "impact", "gain",
    "loss", "slip" or "stick" and the point. Contacts are looked for at the ends of each step, so dt
    must be short enough that no body passes through a small or thin one within a step. Raises
    `contact.Infeasible`, `Inconsistent` or `Indeterminate` where rigid bodies have no motion, or
    more than one.

    steps: stop after so many steps, at the trajectory's `end`. resume: such an end, from which the
    motion goes on; all else as it was given at first, q and qd too. The states of all parts, one
    after the other, are those of the motion in one piece, bit for bit.

    Of a robot with loops, q and qd must keep them closed (`assemble`, `complete`). The independent
    coordinates are integrated and the others follow them, to 1e-13, so that nothing drifts; where a
    pivot of these equations falls below a third of its start, others are taken as independent.
    Raises `chasles.SingularPosition` where the motion comes to a position in which none will do.
    stabilization: integrate all coordinates of the tree instead, and let loops that open close
    again in about so many seconds (Baumgarte; see `constrained_dynamics`). closure: a function that
    closes them instead of Newton's method.
    """
    if closure is not None and stabilization is not None:
        raise TypeError("simulate: give closure or stabilization, not both")
    check_robot("simulate", robot)
    q, qd = _state(robot, q, qd)
    whole = checked_step(duration, "simulate: duration")
    every = checked_count("simulate: every", every)
    steps = None if steps is None else checked_count("simulate: steps", steps)
    if not isinstance(limits, bool):
        raise TypeError(f"simulate: limits must be True or False, not {limits!r:.60}")
    start = _beginning(robot, start)
    happenings, contacts = checked_events(events, q), given_pairs("simulate", contacts)
    method, advance = chosen(robot, integrator, free)
    firm = limits or any(isinstance(getattr(pair, "law", None), Rigid) for pair in contacts)
    soft = soft_contacts(robot, () if firm else contacts, integrator, contact_states)
    frames = () if soft is None else soft.frames
    dynamics = accelerations(robot, f_ext, dissipation, stabilization, frames)
    force = joint_forces(robot, tau, qd)
    accelerate = under(dynamics, force) if soft is None else soft.under(dynamics, force)
    rigid: RigidContact | None = None
    if firm:
        check_rigid(contacts, q, integrator, advance, stabilization)
        rigid = RigidContact(robot, contacts, limits, accelerate, force, f_ext, dissipation)
        accelerate = rigid.accelerate
    motion = moving(robot, accelerate, advance, closure, stabilization, soft)
    (q, qd), begin = motion.begin(start, q, qd), motion.begin
    if soft is not None:
        q, begin = soft.begin(q, qd, contact_states), soft.beginning(begin)
        happenings = tuple(map(soft.seen_by, happenings))
    pace = paced(motion.step, method, start, whole, dt, rtol, atol)
    keep = Keep(start, whole, every, times, *([rigid.kept] if rigid else []))
    watched = Watched(pace, rigid) if rigid else None
    stepping, changes = watched or pace, watched or Untouched()
    repeats, t, end = Repeats(), start, start + whole
    parts = (pace, keep, repeats, *motion.parts, *([rigid] if rigid else []))
    happened: list[Occurrence] = []
    if resume is None:
        if watched and watched.collides(t, q, qd):
            keep.now(t, q, qd)
        happened, q, qd = changes.changed(t, q, qd)
        keep.now(t, q, qd)
    else:
        t, q, qd = recalled(resume, parts, q, qd, start, end)
    span = (t, end)
    ran = run(stepping, begin, changes, happenings, keep, repeats, span, q, qd, progress, steps)
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


def _beginning(robot: Machine, start: Any) -> float:
    """The time at which a motion begins: as given, or the robot's own."""
    own = own_time(robot)
    time = own if start is None else start
    if np.ndim(time) or not isinstance(time, int | float | np.ndarray) or not np.isfinite(time):
        raise ValueError(f"simulate: start must be a finite time, one number, not {time!r:.60}")
    return float(time)


def _state(robot: Machine, q: Array, qd: Array) -> tuple[np.ndarray, np.ndarray]:
    """q and qd as floats with the same leading shape."""
    given = {"q": (q, robot.nq), "qd": (qd, robot.nv)}
    arrays = {k: numbers(f"simulate: {k}", v, n).astype(float) for k, (v, n) in given.items()}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ValueError(f"simulate: {name} must be finite numbers")
    lead = leading_shape("simulate", **arrays)
    first, second = (np.array(np.broadcast_to(a, (*lead, a.shape[-1]))) for a in arrays.values())
    return first, second
