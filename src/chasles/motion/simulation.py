"""The verb: `Robot.simulate`, which runs in machine code where it can."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any, Unpack

import numpy as np

from chasles.backends.arrays import checked_count
from chasles.errors import ArgumentError, InputError, MissingPackageError, said
from chasles.expr import RULES, Arena
from chasles.functions.doors import check_robot, library_of
from chasles.functions.numeric import checked_step
from chasles.model import ModelError
from chasles.motion.contract import Array, Machine
from chasles.motion.controllers import BUILT_IN, MayRemember, apart
from chasles.motion.drivers.compiled import DONE, Rollout, checked_steps, prepared
from chasles.motion.drivers.interpreted import interpreted, rigid_contacts
from chasles.motion.drivers.pace import DT, step_count
from chasles.motion.options import Forces, Options, Plan, Span, planned
from chasles.motion.records import End, Trajectory, other_motion
from chasles.motion.steps.integrators import known

DEFAULTS = {"duration": None, "dt": None, "control": None, "integrator": "rk4", "contacts": ()}
"""Options that `simulate` names, as they are when they are not given."""

WHOLE = 1e-9
"""A duration is a whole number of steps dt if it is so to this part of a step."""


def simulate(
    robot: Machine,
    q: Array,
    qd: Array,
    *,
    duration: float | None = None,
    dt: float | None = None,
    integrator: str = "rk4",
    control: Forces = None,
    contacts: Sequence[Any] = (),
    compiled: bool | None = None,
    device: str | None = None,
    threads: int | None = None,
    **options: Unpack[Options],
) -> Trajectory:
    """Return the motion from q (..., nq) and qd (..., nv) for `duration` seconds, in steps of dt.

    It runs in machine code where everything in it can be traced: a robot without loops that does
    not depend on time, an explicit integrator with fixed steps, soft contacts, and joint torques
    that are constant, given for each step, or computed by a controller from t, q and qd alone.
    Otherwise it runs step by step. The result says which: `Trajectory.compiled`, and `why` not.
    compiled: True raises where it cannot be compiled, False runs step by step.

    integrator: a name of `chasles.INTEGRATORS`, by default the classical Runge-Kutta method of
    fourth order; each works on the configuration space (rotations stay rotations). dt: the longest
    step, 1 ms by default; "dopri5" chooses its steps so that the error of each is within atol +
    rtol times the step (rad, m, and their rates), of any length unless dt is given. free="mixed":
    semi-implicit Euler steps the linear velocity of free joints along their parent's axes, as
    MuJoCo does.

    control: a function tau(t, q, qd) of joint torques (..., nv), or a controller of
    `chasles.rollouts`: `PDControl`, `GravityCompensation`, `ComputedTorque`. A function is traced
    if it can be (arithmetic, NumPy's sums and products, functions of `chasles.expr`) and if it
    gives the same again; otherwise it is called with the arrays of all members of a batch, as
    objects are, which may remember. Give compiled=False with a function that does. parameters:
    (m,) or (..., m) of a traced function tau(t, q, qd, p). tau: joint torques instead, constant,
    (nv,) or (..., nv), or of a compiled motion one row for each step, (steps, nv) of one state,
    (..., steps, nv) of a batch.
    f_ext and dissipation as in `forward_dynamics`. start: the time in s at which it begins; by
    default that of `at_time`, or 0.

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

    steps: stop after so many steps, at the trajectory's `end`; without a duration, the motion is
    over then. resume: such an end, from which the motion goes on; all else as it was given at
    first, q and qd too. The states of all parts, one after the other, are those of the motion in
    one piece, bit for bit.

    device: "cuda" sends a compiled batch to the GPU and brings its motion back; by default it runs
    where its arrays are, CuPy's on their GPU in one launch, in float32 if all are, with nothing
    checked to be finite. threads: of processors, for a compiled batch.

    Of a robot with loops, q and qd must keep them closed (`assemble`, `complete`). The independent
    coordinates are integrated and the others follow them, to 1e-13, so that nothing drifts; where a
    pivot of these equations falls below a third of its start, others are taken as independent.
    Raises `chasles.SingularPosition` where the motion comes to a position in which none will do.
    stabilization: integrate all coordinates of the tree instead, and let loops that open close
    again in about so many seconds (Baumgarte; see `constrained_dynamics`). closure: a function that
    closes them instead of Newton's method.

    Options may also be given in groups that can be kept and given again: span, stepping, loads,
    touch, closing, output (see `chasles.motion.options`).
    """
    check_robot("simulate", robot)
    given = {"duration": duration, "dt": dt, "control": control}
    given |= {"integrator": integrator, "contacts": contacts}
    plan = _timed(planned(**{k: v for k, v in given.items() if v is not DEFAULTS[k]}, **options))
    why = "compiled=False was given" if compiled is False else obstacle(robot, plan, compiled)
    made: Rollout | None = None
    if not why:
        h, total = _steps(plan)
        loads, pairs = plan.loads, plan.touch.contacts or None
        try:
            own = loads.control if isinstance(loads.control, FunctionType) else None
            law = apart(own) if own and not compiled else loads.control
            rest = (loads.dissipation, pairs, h, loads.parameters)
            made = prepared(robot, plan.stepping.integrator, law, *rest, again=own is not None)
            if own and not compiled:
                why = _changes(robot, apart(own), made, batch=np.ndim(q) > 1)
        except (ModelError, MayRemember) as error:
            why = said(error)
    if made is not None and not why:
        return _run(robot, made, q, qd, plan, h, total, device, threads)
    if compiled or device == "cuda":
        raise ModelError("E-MOTION-093", f"this motion cannot be compiled: {why}", part="simulate")
    _check_interpreted(plan, why, threads, q, qd)
    return replace(interpreted(robot, q, qd, plan), why=why)


def obstacle(robot: Machine, plan: Plan, compiled: bool | None = None) -> str:
    """What of a plan has no compiled form, a function for control apart; "" if nothing."""
    stepping, resume = plan.stepping, plan.span.resume
    integrator = known(stepping.integrator)
    for found, words in (
        *((True, f"the robot {trait.removeprefix('it ')}") for trait in robot.mechanism.traits),
        (not integrator.traced, "the integrator is implicit or chooses its steps"),
        (stepping.free != "body", "free='mixed'"),
        (plan.loads.f_ext, "f_ext"),
        (plan.events, "events"),
        (
            not compiled and _remembers(plan.loads.control),
            "control is an object, which may remember",
        ),
        (plan.output.times is not None, "times"),
        (rigid_contacts(plan.touch), "rigid contacts or joint limits"),
        (plan.closing.closure or plan.closing.stabilization, "closure or stabilization"),
        (isinstance(resume, End) and DONE not in resume.memory, "resume: it was not compiled"),
    ):
        if found:
            return words
    return ""


def _remembers(control: Any) -> bool:
    """Return True for a callable object that is not a value, whose calls may change it."""
    return callable(control) and not isinstance(control, FunctionType | BUILT_IN)


def _timed(plan: Plan) -> Plan:
    """A plan with a duration: that of its steps, where none is given."""
    span = plan.span
    if span.duration is not None:
        return plan
    if span.steps is None:
        problem = "give duration=, in s, or steps= of dt= seconds"
        raise ArgumentError("E-MOTION-094", problem, part="simulate")
    steps = checked_count("simulate: steps", span.steps)
    dt = checked_step(plan.stepping.dt or DT, "simulate: dt")
    return replace(plan, span=replace(span, duration=steps * dt))


def _steps(plan: Plan) -> tuple[float, int]:
    """The length of equal steps, which is dt where that is possible, and how many there are."""
    dt = checked_step(DT if plan.stepping.dt is None else plan.stepping.dt, "simulate: dt")
    whole = checked_step(plan.span.duration, "simulate: duration")
    total = step_count(whole, dt)
    return dt if abs(total * dt - whole) <= WHOLE * dt else whole / total, total


def _changes(robot: Machine, control: FunctionType, made: Rollout, *, batch: bool) -> str:
    """Why a traced function is not the given one, "" if it is: it may remember, or draw.

    It is called with two states, one after the other or, for a batch, together.
    """
    assert made.control is not None
    rng, sizes, expected = np.random.default_rng(0), [robot.nv, made.parameters], []
    batch = batch and not made.parameters
    places = robot.integrate(robot.neutral(), rng.normal(size=(2, robot.nv)))
    states = [[place, *(rng.normal(size=n) for n in sizes if n)] for place in places]
    for t, state in zip((0.0, 0.0 if batch else 0.7), states, strict=True):
        names = ("q", "qd", "parameters")
        given = dict(zip(names, map(np.ndarray.tolist, state), strict=False)) | {"t": [t]}
        values = made.control.replay(given, Arena(RULES))
        expected.append([values[r] for r in made.control.results[0]])
    try:
        if batch:
            found = np.asarray(control(0.0, *map(np.array, zip(*states, strict=True))))
            found = np.broadcast_to(found, (2, robot.nv))
        else:
            found = np.array([control(0.0, *states[0]), control(0.7, *states[1])])
        same = found.dtype != object and np.allclose(found, expected, 1e-9, 1e-12, True)
    except Exception as error:
        return f"control failed on numbers, {type(error).__name__}: {said(error)}"
    what = "treat all members of a batch alike" if batch else "depend on t, q and qd alone"
    return "" if same else f"control does not {what}"


def _run(
    robot: Machine,
    made: Rollout,
    q: Array,
    qd: Array,
    plan: Plan,
    dt: float,
    total: int,
    device: str | None,
    threads: int | None,
) -> Trajectory:
    """The steps of a plan in machine code."""
    span, control, states = plan.span, plan.loads.control, plan.touch.contact_states
    tau = None if callable(control) else _rows(control, q, qd)
    done, parameters = 0, plan.loads.parameters
    if span.resume is not None:
        q, qd, states, done = _resumed(robot, span, q, qd, total)
    steps = total - done if span.steps is None else min(span.steps, total - done)
    if tau is not None and np.ndim(tau) > 1 and np.shape(tau)[-2] == total:
        tau = tau[..., done : done + steps, :]
    start = 0.0 if span.start is None else span.start
    dt, steps, every, threads = checked_steps(
        dt, steps, plan.output.every, start, threads, "simulate"
    )
    send, bring = _transfers(device, q, qd)
    q, qd, tau, states, parameters = map(send, (q, qd, tau, states, parameters))
    return bring(
        made(
            q,
            qd,
            tau,
            dt=dt,
            steps=steps,
            every=every,
            start=start,
            threads=threads,
            contact_states=states,
            parameters=parameters,
            done=done,
            total=total,
            function="simulate",
        )
    )


def _rows(tau: Any, q: Array, qd: Array) -> Any:
    """Joint torques with an axis for steps, where members of a batch have their own."""
    if tau is None or np.ndim(tau) < 2 or np.ndim(tau) > max(np.ndim(q), np.ndim(qd)):
        return tau if tau is None or library_of(tau) else np.asarray(tau)
    return (tau if library_of(tau) else np.asarray(tau))[..., None, :]


def _resumed(
    robot: Machine, span: Span, q: Array, qd: Array, total: int
) -> tuple[Any, Any, Any, int]:
    """The state from which a compiled motion goes on, and how many steps are behind it."""
    end = span.resume
    if not isinstance(end, End):
        problem = f"resume must be the end of a Trajectory, not {end!r:.60}"
        raise ArgumentError("E-MOTION-095", problem, part="simulate")
    if end.over:
        problem = f"the motion is over at t = {end.t:.6g} s"
        raise InputError("E-MOTION-096", problem, part="simulate: resume")
    done = int(end.memory[DONE])
    lead = np.broadcast_shapes(np.shape(q)[:-1], np.shape(qd)[:-1])
    if not 0 < done < total or end.q.shape[:-1] != lead or end.qd.shape[-1] != robot.nv:
        raise other_motion("E-MOTION-101")
    surfaces = end.q[..., robot.nq :]
    return end.q[..., : robot.nq], end.qd, surfaces if surfaces.shape[-1] else None, done


def _transfers(
    device: str | None, *states: Any
) -> tuple[Callable[[Any], Any], Callable[[Trajectory], Trajectory]]:
    """Functions that send arrays to a device, and a motion back to where the states are."""
    if device not in (None, "cpu", "cuda"):
        problem = f"device must be 'cpu' or 'cuda', not {device!r}"
        raise InputError("E-MOTION-097", problem, part="simulate")
    there = any(library_of(a) is not None for a in states)
    if device is None or there == (device == "cuda"):
        return lambda array: array, lambda run: run
    try:
        import cupy
    except ImportError as error:
        problem, remedy = f"device='cuda' needs CuPy ({error})", "pip install 'chasles[cuda]'"
        raise MissingPackageError("E-MOTION-102", problem, remedy, part="simulate") from None

    here, send = (cupy.asnumpy, cupy.asarray) if device == "cuda" else (cupy.asarray, cupy.asnumpy)

    def bring(run: Trajectory) -> Trajectory:
        assert run.end is not None
        end = run.end._replace(q=here(run.end.q), qd=here(run.end.qd))
        touching = None if run.touching is None else type(run.touching)(*map(here, run.touching))
        return replace(run, q=here(run.q), qd=here(run.qd), touching=touching, end=end)

    return lambda array: None if array is None else send(array), bring


def _check_interpreted(plan: Plan, why: str, threads: int | None, q: Array, qd: Array) -> None:
    """Refuse what only compiled motions take."""
    control: Any = plan.loads.control
    given = {"threads": threads, "parameters": plan.loads.parameters}
    for name, value in given.items():
        if value is not None:
            problem = f"{name} is for compiled motions, and this is not one: {why}"
            raise InputError("E-MOTION-098", problem, part="simulate")
    if not callable(control) and np.ndim(control) > max(np.ndim(q), np.ndim(qd), 1):
        problem = (
            f"tau has leading shape {np.shape(control)[:-1]}, which does not broadcast to that of "
            "the states"
        )
        remedy = f"a row for each step needs a compiled motion: {why}"
        raise InputError("E-MOTION-099", problem, remedy, part="simulate")
