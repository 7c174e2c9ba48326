"""Compile and run simulations on the CPU or a GPU, with the controller as part of the step."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from chasles.backends.arrays import checked_count
from chasles.errors import ArgumentError, InputError, MissingPackageError, ModelError, said
from chasles.expr import RULES, Arena
from chasles.functions.doors import is_trajectory, library_of
from chasles.model import Model
from chasles.model.given import checked_step, some_numbers
from chasles.motion import tensors
from chasles.motion.apart import MayRemember, apart
from chasles.motion.contract import Array, Machine
from chasles.motion.controllers import (
    BUILT_IN,
    Tunable,
    checked_parameters,
    follows,
    with_samples,
)
from chasles.motion.controls import Controls, activations, host_controls, named_results
from chasles.motion.drivers import stepping
from chasles.motion.drivers.compiled import (
    DONE,
    FORCES,
    WATCH,
    Course,
    Rollout,
    checked_steps,
    prepared,
)
from chasles.motion.drivers.interpreted import host_forces, step_count
from chasles.motion.drivers.running import other_motion, resumed
from chasles.motion.drivers.stepping import TIME_STEPPING
from chasles.motion.options import DT, Plan
from chasles.motion.parameters import given_values
from chasles.motion.records import End, Trajectory
from chasles.motion.references import alike
from chasles.motion.steps.stepping import EFFORT

WHOLE = 1e-9
"""Tolerance, relative to dt, within which a duration counts as a multiple of dt."""


def attempted(
    robot: Machine,
    plan: Plan,
    q: Array,
    qd: Array,
    compiled: bool | None,
    device: str | None,
    threads: int | None,
) -> Trajectory | str:
    """Return the trajectory of a compiled simulation, or the reason why it cannot be compiled."""
    plan, (dt, total) = _tunable(robot, plan, q, device), _equal_steps(plan)
    try:
        made, why = _made(robot, plan, dt, compiled, batch=np.ndim(q) > 1)
    except MayRemember as error:
        return str(error)
    except ModelError as error:
        return error.at(part=error.part.removeprefix("rollout")).message
    except InputError as error:
        raise error.at(part="simulate") from None
    return why or _run(robot, made, q, qd, plan, dt, total, device, threads)


def stepped(
    robot: Machine,
    plan: Plan,
    q: Array,
    qd: Array,
    compiled: bool | None,
    device: str | None,
    threads: int | None,
) -> Trajectory:
    """Simulate by time stepping. If a controller cannot be traced, Python calls it in each step."""
    if compiled is False:  # also the default of chasles.simulate
        problem = f"integrator {TIME_STEPPING!r} is always compiled, but compiled=False was used"
        remedy = "call robot.simulate(...), or pass compiled=None"
        raise ModelError("E-MOTION-590", problem, remedy, part="simulate")
    for found, words in (
        (len(robot.mechanism.traits) > bool(robot.mechanism.rows), "the robot depends on time"),
        (robot.mechanism.rows and device == "cuda", "loops on a GPU"),
        (plan.free != "body", "free='mixed'"),
        (plan.f_ext, "f_ext"),
        (plan.events, "events"),
        (plan.times is not None, "times"),
        ((plan.closure, plan.stabilization) != (None, None), "closure or stabilization"),
    ):
        if found:
            problem = f"integrator {TIME_STEPPING!r} does not support {words}"
            raise ModelError("E-MOTION-135", problem, "use another integrator", part="simulate")
    plan, (dt, total) = _tunable(robot, plan, q, device), _equal_steps(plan)
    control, host, why = plan.control, None, ""
    sampled = _sampled(robot, plan)
    if sampled is not None and not (follows(control) and robot.mechanism.traits):
        made = stepping.prepared(robot, plan, dt, sampled, q)
    elif (callable(plan.asked) and not isinstance(plan.asked, BUILT_IN | Tunable)) or follows(
        control
    ):
        made, why = _traced_step(robot, plan, dt, compiled, q)
        if why and compiled:
            problem = f"this motion cannot be compiled: {why}"
            raise ModelError("E-MOTION-136", problem, part="simulate")
        if why and isinstance(control, Controls):
            host = host_controls(robot.mechanism, control, None, np.shape(q)[:-1])
        elif why:
            host = host_forces(robot.mechanism, control, qd)
    else:
        made = stepping.prepared(robot, plan, dt, control, q)
    if why and device == "cuda":
        problem = f"device='cuda' needs a controller that can be compiled: {why}"
        raise ModelError("E-MOTION-171", problem, "omit `device`", part="simulate")
    if made.unseen is not None:
        outside = "contacts with height fields are computed in Python"
        if compiled or device == "cuda":
            problem = f"this motion cannot be compiled: {outside}"
            raise ModelError("E-MOTION-181", problem, part="simulate")
        why = f"{why}; {outside}" if why else outside
    run = made if host is None else partial(made, host=host)
    return replace(_run(robot, run, q, qd, plan, dt, total, device, threads), why=why)


def _traced_step(
    robot: Machine, plan: Plan, dt: float, compiled: bool | None, q: Array
) -> tuple[stepping.Stepped, str]:
    """Return a compiled step that includes the controller, and an empty string.

    If the controller cannot be traced, return a step with torques or controls as inputs, and the
    reason why tracing failed.
    """
    control, why = plan.control, ""
    if follows(control):
        why = (
            "a controller cannot be compiled if its target is a function, "
            "or if its target is a trajectory and the robot has loops"
        )
    elif not isinstance(plan.asked, FunctionType) and not compiled:
        why = "`control` is an object that may have state"
    else:
        try:
            alone = control if compiled else _apart(control)
            made = stepping.prepared(robot, plan, dt, alone, q, again=True)
            why = "" if compiled else _changes(robot, alone, made, batch=np.ndim(q) > 1)
        except (MayRemember, ModelError) as error:
            if compiled:
                raise
            why = str(error)
    if why and plan.parameters is not None:
        problem = f"the controller has parameters, but it cannot be compiled: {why}"
        raise ModelError("E-MOTION-161", problem, part="simulate")
    if why:
        rows = Controls() if isinstance(control, Controls) else None
        made = stepping.prepared(robot, plan, dt, rows, q)
    return made, why


def _tunable(robot: Machine, plan: Plan, q: Array, device: str | None) -> Plan:
    """Return a plan in which the gains and the target of a built-in controller are parameters.

    A simulation with other gains or another target then needs no compilation. A target that is a
    trajectory is sampled as before. On GPUs, and for arrays of PyTorch and JAX, the gains remain
    constants of the compiled code, which is faster.
    """
    if not isinstance(plan.control, BUILT_IN):
        return plan
    control: Any = plan.control
    try:
        checked_parameters(plan.parameters, control)
    except ModelError as error:
        raise error.at(part="simulate") from None
    if device == "cuda" or library_of(q) is not None or not robot.model.nv:
        return plan
    if not follows(control):
        values = np.concatenate([*control._values(robot.model).values()])
        return replace(plan, control=Tunable(type(control)), parameters=values)
    if robot.mechanism.traits or not is_trajectory(control.target):
        return plan
    return replace(plan, parameters=np.concatenate([*control._joint_gains(robot.model).values()]))


def _equal_steps(plan: Plan) -> tuple[float, int]:
    """Return the step size (s) and the number of equal steps of a simulation.

    The step size is dt if the duration is a multiple of dt, and smaller otherwise.
    """
    dt = checked_step(DT if plan.dt is None else plan.dt, "simulate: dt")
    whole = checked_step(plan.duration, "simulate: duration")
    total = step_count(whole, dt)
    return dt if abs(total * dt - whole) <= WHOLE * dt else whole / total, total


def _made(
    robot: Machine, plan: Plan, dt: float, compiled: bool | None, *, batch: bool
) -> tuple[Rollout, str]:
    """Compile a rollout for a plan, and check that the rollout can be used.

    Return the rollout, and the reason why the rollout cannot be used ("" if it can). The rollout
    cannot be used if its traced controller may differ from the original (`_changes`).
    """
    control, contacts = plan.control, plan.contacts or None
    rest = plan.dissipation or False, contacts, dt, plan.parameters
    sampled = _sampled(robot, plan)
    make = partial(prepared, robot, plan.integrator, free=tuple(plan.model_parameters or ()))
    function = isinstance(plan.asked, FunctionType)
    if sampled is not None:
        return make(sampled, *rest), ""
    if compiled or not function:
        return make(control, *rest, again=function), ""
    made = make(_apart(control), *rest, again=True)
    return made, _changes(robot, _apart(control), made, batch=batch)


def _sampled(robot: Machine, plan: Plan) -> Any:
    """Return the controller that follows the plan's trajectory, or None if it has no trajectory."""
    control: Any = plan.control
    target = control.target if follows(control) else plan.ctrl
    if not is_trajectory(target):
        return None
    found = with_samples(robot.model, control, plan.ctrl, plan.integrator)[0]
    if not follows(control) or plan.parameters is None:
        return found
    law = type(control)(0.0, 0.0, 0.0)  # the gains are parameters (`_tunable`)
    return replace(found, law=law, tunable=True)


def _apart(control: Any) -> Any:
    """Return a copy of a controller that shares no mutable objects with the original."""
    if isinstance(control, Controls):
        return Controls(_apart(control.function))
    return apart(control)


def _changes(robot: Machine, control: Any, made: Any, *, batch: bool) -> str:
    """Return the reason why a traced function may differ from the original function, or "".

    For example, a function with internal state or randomness differs. To detect such functions,
    the results of the original and the traced function are compared at two random states. The
    original function is called for each state, or once for both states as a batch.
    """
    assert made.control is not None
    model, rng, expected = robot.model, np.random.default_rng(0), []
    batch = batch and not made.parameters
    mechanism = robot.mechanism
    places = mechanism.integrate(mechanism.neutral(), rng.normal(size=(2, model.nv)))
    sizes = [n for n in (model.nv, made.parameters) if n]
    states = [[place, *(rng.normal(size=n) for n in sizes)] for place in places]
    driven = isinstance(control, Controls)
    name, control = ("ctrl", control.function) if driven else ("tau", control)
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
        return f"control failed when called with numbers: {type(error).__name__}: {said(error)}"
    if same:
        return ""
    alone, pure = "compute each batch member separately", "depend only on t, q and qd"
    return f"control does not {alone if batch else pure}"


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
    """Run the compiled simulation `made` with the options of a plan, and return the trajectory."""
    driven = isinstance(plan.control, Controls)
    forces = None if driven or callable(plan.control) else _rows("tau", plan.control, q, qd)
    ctrl = None if not driven or callable(plan.ctrl) else _rows("ctrl", plan.ctrl, q, qd)
    start = 0.0 if plan.start is None else plan.start
    if getattr(made, "control", None) is not None and _sampled(robot, plan) is not None:
        _, rows = with_samples(robot.model, plan.control, plan.ctrl, plan.integrator)
        assert rows is not None
        ctrl = alike(rows(start, dt, total), q)
    states, act, known, done = plan.contact_states, plan.act, None, 0
    if plan.resume is not None:
        own = activations(robot.model) if driven else 0
        q, qd, states, act, done = _resumed(robot.model, plan.resume, q, qd, total, own)
        kept = plan.resume.memory
        known = kept.get(WATCH, kept.get(FORCES))
    most = total if plan.steps is None else checked_count("simulate: steps", plan.steps)
    steps = min(most, total - done)
    tau, ctrl = (
        a[..., done : done + steps, :]
        if a is not None and a.ndim > 1 and a.shape[-2] == total
        else a
        for a in (forces, ctrl)
    )
    numbers = checked_steps(dt, steps, plan.every, start, threads, "simulate")
    dt, steps, every, start, threads = numbers
    counts = (dt, steps, every, start, threads, done, total)

    def motion(q: Any, qd: Any, tau: Any, states: Any, parameters: Any, *last: Any) -> Trajectory:
        course = Course(q, qd, tau, states, parameters, *counts, "simulate", *last)
        library = tensors.array_library(course)
        if library is None:
            return made(course)
        if not isinstance(made, Rollout | stepping.Stepped) or device == "cuda":
            problem = f"{library.name} arrays require the CPU and a controller that can be traced"
            remedy = "use NumPy arrays, without derivatives"
            raise ArgumentError("E-MOTION-198", problem, remedy, part="simulate")
        return tensors.moved(robot, made, replace(course, total=None), library)

    values = given_values(robot.model.source, plan.contacts, plan.model_parameters, "simulate")
    given = (q, qd, tau, states, plan.parameters, known, ctrl, act, values)
    moved = _transfers(device, q, qd)
    if moved is None:
        return motion(*given)
    send, bring = moved
    return bring(motion(*map(send, given)))


def _rows(name: str, given: Any, q: Array, qd: Array) -> Any:
    """Return joint torques or controls as an array.

    If there is one row for each batch member, an axis for time steps is inserted.
    """
    if given is None:
        return None
    array = given if library_of(given) else some_numbers(name, given, "simulate")
    return array[..., None, :] if 2 <= array.ndim <= max(np.ndim(q), np.ndim(qd)) else array


def _resumed(
    model: Model, resume: End, q: Array, qd: Array, total: int, activations: int
) -> tuple[Any, Any, Any, Any, int]:
    """Return the state from which a compiled simulation resumes, and the number of steps so far."""
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
) -> tuple[Callable[[Any], Any], Callable[[Trajectory], Trajectory]] | None:
    """Return functions that copy arrays to a device and copy a trajectory back.

    Return None if the states are already on the device.
    """
    if device not in (None, "cpu", "cuda"):
        problem = f"`device` must be 'cpu' or 'cuda', not {device!r}"
        raise InputError("E-MOTION-097", problem, part="simulate")
    found = {row.package for row in map(library_of, states) if row is not None}
    there = "cupy" in found
    if device is None or there == (device == "cuda") or found & set(tensors.DIFFERENTIABLE):
        return None
    try:
        import cupy
    except ImportError as error:
        problem, remedy = f"device='cuda' needs CuPy ({error})", "run pip install 'chasles[cuda]'"
        raise MissingPackageError("E-MOTION-102", problem, remedy, part="simulate") from None

    here, send = (cupy.asnumpy, cupy.asarray) if device == "cuda" else (cupy.asarray, cupy.asnumpy)

    def bring(run: Trajectory) -> Trajectory:
        assert run.end is not None
        memory = dict(run.end.memory)
        for name in memory.keys() & {WATCH, FORCES}:
            memory[name] = here(memory[name])
        end = run.end._replace(q=here(run.end.q), qd=here(run.end.qd), memory=memory)
        touching = None if run.touching is None else type(run.touching)(*map(here, run.touching))
        states = {"q": here(run.q), "qd": here(run.qd)}
        for name in ("unstable", "act", *EFFORT):
            states[name] = None if getattr(run, name) is None else here(getattr(run, name))
        return replace(run, touching=touching, end=end, **states)

    return lambda array: None if array is None else send(array), bring
