"""Motions of a robot: `simulate`, compiled if possible; `rollout` and its gradient.

Long because `simulate` documents every option of a motion.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import FunctionType
from typing import Any, Required, TypedDict, Unpack

import numpy as np

from chasles.backends.arrays import checked_count
from chasles.errors import ArgumentError, InputError, MissingPackageError, ModelError, said
from chasles.expr import RULES, Arena
from chasles.functions.doors import check_robot, library_of
from chasles.functions.numeric import checked_step
from chasles.model import Model
from chasles.model.given import some_numbers
from chasles.motion.apart import MayRemember, apart
from chasles.motion.contact import watch as watching
from chasles.motion.contact.from_file import file_pairs
from chasles.motion.contact.pairs import Pair
from chasles.motion.contract import Array, Machine
from chasles.motion.controllers import BUILT_IN, follows
from chasles.motion.controls import Controls, activations, host_controls, named_results
from chasles.motion.drivers import stepping
from chasles.motion.drivers.compiled import DONE, WATCH, Course, Rollout, checked_steps, prepared
from chasles.motion.drivers.interpreted import (
    host_forces,
    interpreted,
    rigid_contacts,
    step_count,
)
from chasles.motion.drivers.running import other_motion, resumed
from chasles.motion.drivers.stepping import TIME_STEPPING
from chasles.motion.keywords import renamed, shown
from chasles.motion.measuring import measured
from chasles.motion.options import AUTOMATIC, DT, GROUPS, NAMES, Options, Plan, planned
from chasles.motion.records import End, Trajectory
from chasles.motion.steps.integrators import known
from chasles.motion.steps.traced import RolloutGradient

DEFAULTS = NAMES | dict.fromkeys(["tau", *GROUPS])
"""Default options of `simulate`."""

USUAL = "rk4"
"""Default integrator, unless the contacts come from the file."""

WHOLE = 1e-9
"""Tolerance, relative to a step, within which a duration is a multiple of dt."""


@shown(Options, DEFAULTS)
def simulate(
    robot: Machine,
    q: Array,
    qd: Array,
    *,
    compiled: bool | None = None,
    device: str | None = None,
    threads: int | None = None,
    **options: Unpack[Options],
) -> Trajectory:
    """Simulate the motion of a robot from a state.

    The simulation is compiled if everything can be traced: a robot without loops that does not
    depend on time, an explicit integrator with fixed steps, soft contacts, and joint torques that
    are constant, given per step, or computed by a controller from t, q and qd only. Otherwise it
    runs step by step in Python. `Trajectory.compiled` and `Trajectory.why` report which and why.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Initial joint positions (rad or m).
    qd : array_like, shape (..., nv)
        Initial joint velocities (rad/s or m/s).
    duration : float
        Simulated time (s).
    dt : float, optional
        Largest step size (s). Default: 0.001; "dopri5" chooses any step size unless dt is given.
    integrator : str, optional
        Name in `chasles.INTEGRATORS`. Default: the classical Runge-Kutta method of fourth order,
        "rk4". All integrators work on the configuration space, so rotations remain rotations.
        "time-stepping" solves contact, joint limits and dry friction as one convex problem per
        step, for dt of 1 to 5 ms (docs/time-stepping.md).
    rtol, atol : float, optional
        Relative and absolute error per step of "dopri5" (rad, m, and their rates).
    free : {"body", "mixed"}, optional
        "mixed" integrates the linear velocity of free joints along the axes of the parent, as
        MuJoCo does (semi-implicit Euler only).
    control : callable or controller, optional
        Function tau(t, q, qd) of joint torques (..., nv), or `PDControl`, `GravityCompensation` or
        `ComputedTorque` of `chasles.rollouts`. A function is traced if it uses arithmetic, sums and
        products of NumPy and functions of `chasles.expr`, and if it returns the same again;
        otherwise it is called with the arrays of the whole batch, as objects are. It must not write
        to q and qd. Use compiled=False for a function with state.
    parameters : array_like, shape (..., m), optional
        Parameters p of a traced function tau(t, q, qd, p).
    tau : array_like, shape (..., nv), optional
        Constant joint torques (N m or N) instead of `control`. A compiled motion also takes one row
        per step, (..., steps, nv).
    ctrl : array_like, callable or trajectory, optional
        Controls of the file's actuators (`robot.actuators`) instead of joint torques: constant
        (..., nu), one row per step (..., steps, nu), a function ctrl(t, q, qd), a function of time,
        or a trajectory, whose positions are the controls. They are clamped to their ranges.
    act : array_like, shape (..., na), optional
        Initial activations. Default: zero. Activations are states of the motion, clamped to their
        ranges after each step; `Trajectory.act` holds them.
    f_ext : mapping from str to Wrench or array_like, optional
        External wrenches, as in `forward_dynamics`.
    dissipation : bool, optional
        Include damping and dry friction of joints. Friction holds a joint exactly at rest until the
        load exceeds it (except with rigid contacts and limits).
    start : float, optional
        Initial time (s). Default: that of `at_time`, or 0.
    events : sequence of Event, optional
        Events of a single state; see `chasles.Event`. If an event changes the state, the states
        before and after are both recorded.
    times : array_like, shape (n,), optional
        Increasing times (s) at which states are recorded by interpolation, instead of after each
        step.
    every : int, optional
        Record one state out of this many steps, and the last.
    progress : bool, optional
        Show a progress bar.
    sensors : bool or sequence of str, optional
        Record all sensors, or those named, in `Trajectory.sensors`.
    noise : int or numpy.random.Generator, optional
        Seed of the sensor noise. Default: no noise.
    contacts : sequence of Pair or "file", optional
        Contact pairs, `contact.Pair(body, surface, law)`, all with soft laws or all with rigid
        laws; see Notes. "file" uses the shapes, planes and friction of the robot's file with
        "time-stepping" (unless another integrator is given), joint limits, damping and dry
        friction.
    contact_states : array_like, shape (..., states), optional
        Initial states of soft surfaces and friction. Default: at rest.
    limits : bool, optional
        Stop joints at their limits.
    steps : int, optional
        Stop after this number of steps, at `Trajectory.end`.
    resume : End, optional
        End of an earlier part from which the motion continues, with all other arguments unchanged.
        The parts together equal the uninterrupted motion bit for bit.
    closure : ClosureFunction, optional
        Function that closes the loops instead of Newton's method.
    stabilization : float, optional
        Integrate all coordinates of the tree, and let loop errors decay within this time (s)
        (Baumgarte; see `constrained_dynamics`).
    compiled : bool, optional
        True raises an error if the motion cannot be compiled; False runs step by step.
    device : {"cpu", "cuda"}, optional
        "cuda" runs a compiled batch on the GPU and copies the result back. By default a motion runs
        where its arrays are; CuPy arrays stay on their GPU, in float32 if all are float32, without
        checks for finite values.
    threads : int, optional
        Number of threads of a compiled batch on the CPU.
    span, stepping, loads, touch, closing, output : optional
        Groups of options that can be stored and reused (see `chasles.motion.options`).

    Returns
    -------
    Trajectory
        Times `t`, positions `q`, velocities `qd`, and records of contacts, events and sensors.

    Raises
    ------
    SingularPosition
        If a robot with loops reaches a configuration in which no choice of independent coordinates
        is valid.
    Infeasible, Inconsistent, Indeterminate
        If rigid contacts have no motion, or more than one.

    Notes
    -----
    Soft contacts, `SoftContact(...)`, integrate the states of surfaces and friction with the
    motion; `Trajectory.touching` holds them with forces and gaps. Use an implicit integrator for
    stiff ground; if steps are too long for it, a warning is issued and `Trajectory.unstable` holds
    the first such step. Rigid contacts, `Rigid(...)`, need a single state and an explicit
    integrator: bodies touch, separate, stick, slide and collide. Each change is located within its
    step, like an event, and named in `Trajectory.events`: "impact", "gain", "loss", "slip" or
    "stick" and the point. Contacts are detected at the ends of each step, so dt must be short
    enough that no body passes through a small or thin one.

    For a robot with loops, q and qd must keep them closed (`assemble`, `complete`). The independent
    coordinates are integrated and the others follow to 1e-13, so that nothing drifts. If a pivot of
    these equations falls below a third of its initial value, other coordinates become independent.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.planar(2)
    >>> run = robot.simulate([0.0, 0.5], [0.0, 0.0], duration=0.01)
    >>> run.q.shape
    (11, 2)
    """
    check_robot("simulate", robot)
    q, qd = (
        a if library_of(a) else some_numbers(name, a, "simulate")
        for name, a in (("q", q), ("qd", qd))
    )
    plan = _chosen(robot, planned(options))
    if plan.integrator == TIME_STEPPING:
        return _stepped(robot, plan, q, qd, compiled, device, threads)
    why = "compiled=False was given" if compiled is False else obstacle(robot, plan, compiled)
    if not why:
        dt, total = _steps(plan)
        try:
            made, why = _made(robot, plan, dt, compiled, batch=np.ndim(q) > 1)
        except MayRemember as error:
            why = str(error)
        except ModelError as error:
            why = error.at(part=error.part.removeprefix("rollout")).message
        except InputError as error:
            raise error.at(part="simulate") from None
    if not why:
        run = _run(robot, made, q, qd, plan, dt, total, device, threads)
        return watching.told("simulate", measured(robot.mechanism, run, plan))
    if compiled or device == "cuda":
        raise ModelError("E-MOTION-093", f"this motion cannot be compiled: {why}", part="simulate")
    _check_interpreted(plan, why, threads, q, qd)
    run = replace(interpreted(robot.mechanism, q, qd, plan), why=why)
    return watching.told("simulate", measured(robot.mechanism, run, plan))


def _chosen(robot: Machine, plan: Plan) -> Plan:
    """Return the plan with an integrator, and with the file's contacts if requested."""
    if isinstance(plan.contacts, str):
        if plan.contacts != "file":
            problem = f"contacts must be pairs or 'file', not {plan.contacts!r:.60}"
            raise ArgumentError("E-MOTION-134", problem, part="simulate")
        kept = robot.mechanism.kept
        if "contacts of the file" not in kept:
            kept["contacts of the file"] = tuple(file_pairs(robot))
        found = kept["contacts of the file"]
        integrator = TIME_STEPPING if plan.integrator == AUTOMATIC else plan.integrator
        own = integrator == TIME_STEPPING
        limits, dissipation = plan.limits or own, plan.dissipation or own
        chosen = {"contacts": found, "limits": limits, "dissipation": dissipation}
        return Plan(**vars(plan) | chosen | {"integrator": integrator})
    return plan if plan.integrator != AUTOMATIC else replace(plan, integrator=USUAL)


def _stepped(
    robot: Machine,
    plan: Plan,
    q: Array,
    qd: Array,
    compiled: bool | None,
    device: str | None,
    threads: int | None,
) -> Trajectory:
    """Simulate by time stepping; a controller that cannot be traced is called at each step."""
    for found, words in (
        *((True, f"the robot {trait.removeprefix('it ')}") for trait in robot.mechanism.traits),
        (compiled is False, "compiled=False"),
        (device == "cuda", "device='cuda'"),
        (plan.free != "body", "free='mixed'"),
        (plan.f_ext, "f_ext"),
        (plan.events, "events"),
        (plan.times is not None, "times"),
        ((plan.closure, plan.stabilization) != (None, None), "closure or stabilization"),
    ):
        if found:
            problem = f"integrator {TIME_STEPPING!r} does not support: {words}"
            raise ModelError("E-MOTION-135", problem, "use another integrator", part="simulate")
    dt, total = _steps(plan)
    control, host, why = plan.control, None, ""
    asked = _asked(control)
    if (callable(asked) and not isinstance(asked, BUILT_IN)) or follows(control):
        made, why = _traced_step(robot, plan, dt, compiled, batch=np.ndim(q) > 1)
        if why and compiled:
            problem = f"this motion cannot be compiled: {why}"
            raise ModelError("E-MOTION-136", problem, part="simulate")
        if why and isinstance(control, Controls):
            host = host_controls(robot.mechanism, control, None, np.shape(q)[:-1])
        elif why:
            host = host_forces(robot.mechanism, control, qd)
    else:
        made = stepping.prepared(robot, plan, dt, control)
    run = partial(made, host=host)
    return replace(_run(robot, run, q, qd, plan, dt, total, device, threads), why=why)


def _traced_step(
    robot: Machine, plan: Plan, dt: float, compiled: bool | None, *, batch: bool
) -> tuple[stepping.Stepped, str]:
    """Return the step with its controller traced, or one with torques as inputs and the reason."""
    control, asked = plan.control, _asked(plan.control)
    why = ""
    if follows(control):
        why = "control follows a trajectory"
    elif not isinstance(asked, FunctionType) and not compiled:
        why = "control is an object, which may hold state"
    else:
        try:
            alone = control if compiled else _apart(control)
            made = stepping.prepared(robot, plan, dt, alone, again=True)
            why = "" if compiled else _changes(robot, alone, made, batch=batch)
        except (MayRemember, ModelError) as error:
            if compiled:
                raise
            why = str(error)
    if why and plan.parameters is not None:
        problem = f"a controller with parameters must be compiled, and cannot: {why}"
        raise ModelError("E-MOTION-161", problem, part="simulate")
    if why:
        rows = Controls() if isinstance(control, Controls) else None
        made = stepping.prepared(robot, plan, dt, rows)
    return made, why


def _asked(control: Any) -> Any:
    """Return the controller or controls that were given: a function or numbers."""
    return control.function if isinstance(control, Controls) else control


def _apart(control: Any) -> Any:
    """Return a copy of a function, or of controls with one, without shared mutable objects."""
    alone: Any = apart(_asked(control))
    return Controls(alone) if isinstance(control, Controls) else alone


def obstacle(robot: Machine, plan: Plan, compiled: bool | None = None) -> str:
    """Return the part of a plan that cannot be compiled, except a control function; "" if none."""
    control, resume = _asked(plan.control), plan.resume
    remembers = callable(control) and not isinstance(control, FunctionType | BUILT_IN)
    for found, words in (
        *((True, f"the robot {trait.removeprefix('it ')}") for trait in robot.mechanism.traits),
        (
            not known(plan.integrator).traced,
            "the integrator is implicit or adaptive",
        ),
        (plan.free != "body", "free='mixed'"),
        (plan.f_ext, "f_ext"),
        (plan.events, "events"),
        (remembers and not compiled, "control is an object, which may hold state"),
        (follows(control), "control follows a trajectory"),
        (plan.times is not None, "times"),
        (rigid_contacts(plan), "rigid contacts or joint limits"),
        ((plan.closure, plan.stabilization) != (None, None), "closure or stabilization"),
        (
            isinstance(resume, End) and DONE not in resume.memory,
            "resume: the interrupted motion was not compiled",
        ),
    ):
        if found:
            return words
    return ""


def _steps(plan: Plan) -> tuple[float, int]:
    """Return the size of equal steps, which is dt if it divides the duration, and their number."""
    dt = checked_step(DT if plan.dt is None else plan.dt, "simulate: dt")
    whole = checked_step(plan.duration, "simulate: duration")
    total = step_count(whole, dt)
    return dt if abs(total * dt - whole) <= WHOLE * dt else whole / total, total


def _made(
    robot: Machine, plan: Plan, dt: float, compiled: bool | None, *, batch: bool
) -> tuple[Rollout, str]:
    """Return the compiled step of a plan, and why it may differ from the controller, or ""."""
    control, rest = plan.control, (plan.dissipation, plan.contacts or None, dt, plan.parameters)
    function = isinstance(_asked(control), FunctionType)
    if compiled or not function:
        return prepared(robot, plan.integrator, control, *rest, again=function), ""
    made = prepared(robot, plan.integrator, _apart(control), *rest, again=True)
    return made, _changes(robot, _apart(control), made, batch=batch)


def _changes(robot: Machine, control: Any, made: Any, *, batch: bool) -> str:
    """Return why a traced function may differ from the original (state, randomness), or "".

    The function is called with two states, one after the other or, for a batch, together.
    """
    assert made.control is not None
    model, rng, expected = robot.model, np.random.default_rng(0), []
    batch = batch and not made.parameters
    mechanism = robot.mechanism
    places = mechanism.integrate(mechanism.neutral(), rng.normal(size=(2, model.nv)))
    sizes = [n for n in (model.nv, made.parameters) if n]
    states = [[place, *(rng.normal(size=n) for n in sizes)] for place in places]
    name, control = ("ctrl" if isinstance(control, Controls) else "tau"), _asked(control)
    rest = [0.0] * activations(model)
    for t, state in zip((0.0, 0.0 if batch else 0.7), states, strict=True):
        names = ("q", "qd", "parameters")
        given = dict(zip(names, map(np.ndarray.tolist, state), strict=False)) | {"t": [t]}
        expected.append(named_results(made.control, Arena(RULES), given | {"act": rest})[name])
    try:
        if batch:
            found = np.asarray(control(0.0, *map(np.array, zip(*states, strict=True))))
            found = np.broadcast_to(found, np.shape(expected))
        else:
            found = np.array([control(0.0, *states[0]), control(0.7, *states[1])])
        same = found.dtype != object and np.allclose(found, expected, 1e-9, 1e-12, True)
    except Exception as error:
        return f"control failed on numbers: {type(error).__name__}: {said(error)}"
    what = "treat all members of a batch alike" if batch else "depend only on t, q and qd"
    return "" if same else f"control does not {what}"


def _run(
    robot: Machine,
    made: Callable[..., Trajectory],
    q: Array,
    qd: Array,
    plan: Plan,
    dt: float,
    total: int,
    device: str | None,
    threads: int | None,
) -> Trajectory:
    """Run the steps of a plan in machine code."""
    driven = isinstance(plan.control, Controls)
    forces = None if driven or callable(plan.control) else _rows("tau", plan.control, q, qd)
    ctrl = None if not driven or callable(plan.ctrl) else _rows("ctrl", plan.ctrl, q, qd)
    states, act, watch, done = plan.contact_states, plan.act, None, 0
    if plan.resume is not None:
        own = activations(robot.model) if driven else 0
        q, qd, states, act, done = _resumed(robot.model, plan.resume, q, qd, total, own)
        watch = plan.resume.memory.get(WATCH)
    most = total if plan.steps is None else checked_count("simulate: steps", plan.steps)
    steps = min(most, total - done)
    tau, ctrl = (
        a[..., done : done + steps, :]
        if a is not None and a.ndim > 1 and a.shape[-2] == total
        else a
        for a in (forces, ctrl)
    )
    start = 0.0 if plan.start is None else plan.start
    numbers = checked_steps(dt, steps, plan.every, start, threads, "simulate")
    dt, steps, every, start, threads = numbers
    send, bring = _transfers(device, q, qd)
    given = (q, qd, tau, states, plan.parameters, watch, ctrl, act)
    q, qd, tau, states, parameters, *last = map(send, given)
    counts = (dt, steps, every, start, threads, done, total)
    return bring(made(Course(q, qd, tau, states, parameters, *counts, "simulate", *last)))


def _rows(name: str, given: Any, q: Array, qd: Array) -> Any:
    """Return joint torques or controls, with an axis for steps if they differ within the batch."""
    if given is None:
        return None
    array = given if library_of(given) else some_numbers(name, given, "simulate")
    return array[..., None, :] if 2 <= array.ndim <= max(np.ndim(q), np.ndim(qd)) else array


def _resumed(
    model: Model, resume: End, q: Array, qd: Array, total: int, activations: int
) -> tuple[Any, Any, Any, Any, int]:
    """Return the state from which a compiled motion resumes, and the number of steps before."""
    end = resumed(resume)
    done, lead = int(end.memory[DONE]), np.broadcast_shapes(np.shape(q)[:-1], np.shape(qd)[:-1])
    if not 0 < done < total or end.q.shape[:-1] != lead or end.qd.shape[-1] != model.nv:
        raise other_motion("E-MOTION-101")
    first = end.q.shape[-1] - activations
    behind = end.q[..., model.nq : first], end.q[..., first:]
    surfaces, act = (a if a.shape[-1] else None for a in behind)
    return end.q[..., : model.nq], end.qd, surfaces, act, done


def _transfers(
    device: str | None, *states: Any
) -> tuple[Callable[[Any], Any], Callable[[Trajectory], Trajectory]]:
    """Return functions that move arrays to a device, and a motion back to that of the states."""
    if device not in (None, "cpu", "cuda"):
        problem = f"device must be 'cpu' or 'cuda', not {device!r}"
        raise InputError("E-MOTION-097", problem, part="simulate")
    there = any(library_of(a) is not None for a in states)
    if device is None or there == (device == "cuda"):
        return lambda array: array, lambda run: run
    try:
        import cupy
    except ImportError as error:
        problem, remedy = f"device='cuda' needs CuPy ({error})", "run pip install 'chasles[cuda]'"
        raise MissingPackageError("E-MOTION-102", problem, remedy, part="simulate") from None

    here, send = (cupy.asnumpy, cupy.asarray) if device == "cuda" else (cupy.asarray, cupy.asnumpy)

    def bring(run: Trajectory) -> Trajectory:
        assert run.end is not None
        memory = dict(run.end.memory)
        if WATCH in memory:
            memory[WATCH] = here(memory[WATCH])
        end = run.end._replace(q=here(run.end.q), qd=here(run.end.qd), memory=memory)
        touching = None if run.touching is None else type(run.touching)(*map(here, run.touching))
        states = {"q": here(run.q), "qd": here(run.qd)}
        for name in ("unstable", "act"):
            states[name] = None if getattr(run, name) is None else here(getattr(run, name))
        return replace(run, touching=touching, end=end, **states)

    return lambda array: None if array is None else send(array), bring


def _check_interpreted(plan: Plan, why: str, threads: int | None, q: Array, qd: Array) -> None:
    """Raise an error for options that only compiled motions support."""
    control: Any = plan.control
    for name, value in (("threads", threads), ("parameters", plan.parameters)):
        if value is not None:
            problem = f"{name} needs a compiled motion, but this one is not compiled: {why}"
            raise InputError("E-MOTION-098", problem, part="simulate")
    name = "tau"
    if isinstance(control, Controls):
        name, control = "ctrl", plan.ctrl
    if control is None or callable(control):
        return
    shape = some_numbers(name, control, "simulate").shape
    if len(shape) > max(np.ndim(q), np.ndim(qd), 1):
        problem = f"leading shape {shape[:-1]} of {name} does not broadcast to q and qd"
        remedy = f"a {name} with one row per step needs a compiled motion: {why}"
        raise InputError("E-MOTION-099", problem, remedy, part="simulate")


# Rollouts ----------------------------------------------------------------------------------------


class Steps(TypedDict, total=False):
    """Options of `rollout` and `rollout_pullback`."""

    dt: Required[float]
    steps: Required[int]
    every: int
    control: Any
    parameters: Array
    ctrl: Any
    act: Array
    integrator: str
    start: float
    dissipation: bool
    contacts: Sequence[Pair] | None
    contact_states: Array
    threads: int | None


def _course(
    robot: Machine,
    q: Array,
    qd: Array,
    tau: Any,
    *,
    dt: float,
    steps: int,
    every: int = 1,
    control: Any = None,
    parameters: Array = None,
    ctrl: Any = None,
    act: Array = None,
    integrator: str = "semi-implicit",
    start: float = 0.0,
    dissipation: bool = False,
    contacts: Sequence[Pair] | None = None,
    contact_states: Array = None,
    threads: int | None = None,
) -> tuple[Rollout, Course]:
    """Return the compiled step for the options, and the inputs of the motion."""
    if tau is not None and control is not None:
        raise ArgumentError("E-MOTION-103", "give `tau` or `control`, not both", part="rollout")
    tau = tau if control is None else control
    if ctrl is not None:
        if tau is not None:
            raise ArgumentError("E-MOTION-144", "give ctrl or tau, not both", part="rollout")
        tau = Controls.of(ctrl)
    numbers = checked_steps(dt, steps, every, start, threads)
    made = prepared(robot, integrator, tau, dissipation, contacts, numbers[0], parameters)
    driven = isinstance(tau, Controls)
    forces = None if driven or callable(tau) else tau
    given = (q, qd, forces, contact_states, parameters)
    own = ctrl if driven and not callable(ctrl) else None
    return made, Course(*given, *numbers, ctrl=own, act=act)


@renamed(method="integrator")
@shown(Steps, _course.__kwdefaults__)
def rollout(
    robot: Machine, q: Array, qd: Array, tau: Any = None, **options: Unpack[Steps]
) -> Trajectory:
    """Simulate a robot in compiled steps of fixed size.

    Parameters
    ----------
    robot : Robot
        A robot without loops that does not depend on time; otherwise use `simulate`.
    q : array_like, shape (..., nq)
        Initial joint positions (rad or m).
    qd : array_like, shape (..., nv)
        Initial joint velocities (rad/s or m/s).
    tau, control : array_like or controller, optional
        Joint torques (N m or N), by one of these names: constant (nv,), one row per step (...,
        steps, nv), or a controller that is traced into the step: a function tau(t, q, qd) of
        numbers that returns nv of them (with the functions of `chasles.expr` beyond arithmetic), or
        `PDControl`, `GravityCompensation` or `ComputedTorque` of `chasles.rollouts`.
    ctrl : array_like or function, optional
        Controls of actuators instead of torques: constant (nu,), one row per step (..., steps, nu),
        or a function, as in `simulate`.
    act : array_like, shape (..., na), optional
        Activations at the start. Default: zero.
    dt : float
        Step size (s).
    steps : int
        Number of steps.
    every : int, optional
        Record one state out of this many, and the last.
    parameters : array_like, shape (..., m), optional
        Parameters p of a controller tau(t, q, qd, p), which is traced once for all values.
    integrator : {"semi-implicit", "euler", "rk4"}, optional
        Integrator on the configuration space: first order, or fourth order for "rk4".
    start : float, optional
        Time of the first step (s).
    dissipation : bool, optional
        As in `simulate`.
    contacts : sequence of Pair, optional
        Pairs of shapes with a soft law, `contact.Pair(body, surface, SoftContact(...))`.
    contact_states : array_like, shape (..., states), optional
        Initial states of surfaces and friction. Default: at rest.
    threads : int, optional
        Number of threads. Default: all for large batches.

    Returns
    -------
    Trajectory
        Recorded states. `Trajectory.touching` holds forces, gaps and states of contacts;
        `Trajectory.unstable` the first step that is too long for the ground, with a warning (not on
        a GPU).

    Notes
    -----
    CuPy arrays are computed on their GPU in one launch, in float32 if all are float32, without
    checks for finite values.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.planar(2)
    >>> robot.rollout([0.0, 0.5], [0.0, 0.0], dt=0.001, steps=10).q.shape
    (11, 2)
    """
    made, course = _course(robot, q, qd, tau, **options)
    return watching.told("rollout", made(course))


@renamed(method="integrator")
@shown(Steps, _course.__kwdefaults__)
def rollout_pullback(
    robot: Machine,
    q: Array,
    qd: Array,
    tau: Any = None,
    *,
    covectors: Sequence[Array],
    **options: Unpack[Steps],
) -> RolloutGradient:
    """Return the gradient of a function of a motion with respect to its inputs (compiled).

    Covectors of the states are pulled back to the initial state, the torques and the controller's
    parameters.

    Parameters
    ----------
    robot, q, qd, tau, **options
        As in `rollout`; NumPy arrays only.
    covectors : tuple of array_like, shape (..., n, nv)
        Derivatives of the function with respect to the recorded q and qd, or None for zero.
        Derivatives with respect to q are along `integrate`.

    Returns
    -------
    tuple of ndarray
        Gradients for each member of a batch, also with respect to shared inputs.

    Notes
    -----
    Memory grows with the square root of `steps`, in addition to the arguments and results (the
    adjoint method with checkpoints: Griewank and Walther 2008, chapter 12).

    Examples
    --------
    >>> found = robot.rollout_pullback(q, qd, covectors=(dq, None), dt=dt, steps=9) # doctest: +SKIP
    """
    made, course = _course(robot, q, qd, tau, **options)
    return made.pullback(course, covectors)
