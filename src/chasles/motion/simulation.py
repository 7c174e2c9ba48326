"""Simulation of a robot from an initial state, compiled if possible, else step by step."""

import math
from collections.abc import Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any, Unpack

import numpy as np

from chasles.backends.arrays import checked_count
from chasles.errors import ArgumentError, InputError, ModelError
from chasles.functions.doors import check_robot, is_trajectory, library_of
from chasles.model.given import a_flag, checked_step, some_numbers
from chasles.motion.compiling import attempted, stepped
from chasles.motion.contact import watch as watching
from chasles.motion.contact.from_file import file_pairs
from chasles.motion.contact.pairs import Pair, given_pairs
from chasles.motion.contract import Array, Machine
from chasles.motion.controllers import (
    BUILT_IN,
    ComputedTorque,
    GravityCompensation,
    PDControl,
    follows,
)
from chasles.motion.controls import Controls
from chasles.motion.drivers.compiled import DONE
from chasles.motion.drivers.interpreted import interpreted, rigid_contacts
from chasles.motion.drivers.stepping import TIME_STEPPING
from chasles.motion.keywords import check_keywords, shown
from chasles.motion.measuring import measured
from chasles.motion.numbers import Numbers
from chasles.motion.options import AUTOMATIC, DT, GROUPS, NAMES, Forces, Options, Plan
from chasles.motion.parameters import check_names
from chasles.motion.records import End, Trajectory
from chasles.motion.steps.bodies import along_velocities
from chasles.motion.steps.integrators import INTEGRATORS, known

DEFAULTS = NAMES | dict.fromkeys(["tau", *GROUPS])
"""Default values of the keywords of `simulate`."""

USUAL = "rk4"
"""Default integrator, except for contacts from the robot file (`"file"` or `file_pairs`)."""

SAFE = "safe damping"
"""Cache key for the arguments of the last call of `check_damping` that raised no error."""


@shown(Options, DEFAULTS)
def simulate(
    robot: Machine,
    q: Numbers,
    qd: Numbers,
    tau: Forces = None,
    *,
    compiled: bool | None = None,
    device: str | None = None,
    threads: int | None = None,
    **options: Unpack[Options],
) -> Trajectory:
    """Simulate the motion of a robot from a state.

    The simulation is compiled if everything can be traced. Unless the integrator is
    "time-stepping", this requires a robot without loops that does not depend on time, an explicit
    integrator with fixed steps, and no rigid contacts. Joint torques must be constant, given per
    step, or computed by a controller from t, q and qd only. Otherwise, the simulation runs step by
    step in Python. `Trajectory.compiled` is True if the motion was compiled; otherwise,
    `Trajectory.why` states the reason.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Initial joint positions (rad or m).
    qd : array_like, shape (..., nv)
        Initial joint velocities (rad/s or m/s).
    tau : array_like, shape (..., nv), callable or controller, optional
        Constant joint torques (N m or N), or a function or controller as in `control`. A compiled
        motion also accepts one row per step, (..., steps, nv).
    duration : float
        Simulated time (s).
    dt : float, optional
        Maximum step size (s). Default: 0.001; for "dopri5", unlimited.
    integrator : str, optional
        Name in `chasles.INTEGRATORS`. Default: the classical Runge-Kutta method of fourth order,
        "rk4". All integrators work on the configuration space, so rotations remain rotations.
        "time-stepping" solves contact, joint limits and dry friction as one convex problem per
        step, for dt of 1 to 5 ms (docs/time-stepping.md). The impacts of a step are also solved
        together, so an impact does not propagate through touching bodies as in Newton's cradle;
        `contact.Rigid(..., sequence=True)` makes it propagate.
    rtol, atol : float, optional
        Relative and absolute error tolerances per step of "dopri5" (rad, m, and their rates).
    free : {"body", "mixed"}, optional
        "mixed" integrates the linear velocity of free joints along the axes of the parent, as
        MuJoCo does (semi-implicit Euler only).
    control : callable or controller, optional
        Function tau(t, q, qd) that returns joint torques (..., nv), or `PDControl`,
        `GravityCompensation` or `ComputedTorque` of `chasles.rollouts`. A function is traced if it
        uses only arithmetic, NumPy sums and products, and functions of `chasles.expr`, and if
        repeated calls return the same result. Other functions, and callable objects, are called
        with the arrays of the entire batch. A function must not write to q and qd. Use
        compiled=False for a function with internal state.
    parameters : array_like, shape (..., m), optional
        Parameters p of a traced function tau(t, q, qd, p).
    model_parameters : mapping from str to array_like, optional
        Values of the robot's parameters in this motion, such as {"link3.mass": masses}: either one
        value for all members of a batch, or one for each. Names are those of
        `chasles.compile(parameters=)`; "time-stepping" also accepts "contacts.friction" and
        "contacts.stiffness" with one value for each pair. All values share one compiled program,
        in which controllers keep the robot's own parameters. This option needs a compiled motion,
        without sensors.
    ctrl : array_like, callable or trajectory, optional
        Controls for the file's actuators (`robot.actuators`) instead of joint torques: constant
        (..., nu), one row per step (..., steps, nu), a function ctrl(t, q, qd), a function of time,
        or a trajectory whose positions are the controls. Controls are clamped to their ranges.
    act : array_like, shape (..., na), optional
        Initial activations. Default: zero. Activations are states of the motion, clamped to their
        ranges after each step; `Trajectory.act` holds them.
    f_ext : mapping from str to Wrench or array_like, optional
        External wrenches, as in `forward_dynamics`.
    dissipation : bool, optional
        Include damping and dry friction of joints. Friction holds a joint exactly at rest until the
        load exceeds the friction. With rigid contacts or limits, this option requires an explicit
        integrator or "time-stepping". Default: True only in "time-stepping" with contacts from the
        robot's file.
    start : float, optional
        Initial time (s). Default: the time of `robot.at_time(t)`, or 0.
    events : sequence of Event, optional
        Events to detect (single states only); see `chasles.Event`. If an event changes the state,
        the states before and after the event are both recorded.
    times : array_like, shape (n,), optional
        Increasing times (s) at which states are recorded by interpolation, instead of after each
        step.
    every : int, optional
        Number of steps between recorded states; the last state is always recorded.
    progress : bool, optional
        Show a progress bar.
    sensors : bool or sequence of str, optional
        Record all sensors, or the named sensors, in `Trajectory.sensors`.
    noise : int or numpy.random.Generator, optional
        Seed of the sensor noise. Default: no noise.
    contacts : sequence of Pair or "file", optional
        Contact pairs, `contact.Pair(body, surface, law)`, all with soft laws or all with rigid
        laws; see Notes. "file" uses the shapes, planes and friction of the robot's file. For
        "file" and for pairs from `contact.file_pairs`, the default integrator is "time-stepping",
        with joint limits, damping and dry friction.
    contact_states : array_like, shape (..., states), optional
        Initial internal states of soft surfaces and friction. Default: zero.
    limits : bool, optional
        Stop joints at their limits. Default: True only in "time-stepping" with contacts from the
        robot's file.
    steps : int, optional
        Stop after this number of steps; resume from `Trajectory.end`.
    resume : End, optional
        End of an earlier part from which the motion continues, with all other arguments unchanged.
        Together, the parts are bitwise identical to the uninterrupted motion.
    closure : ClosureFunction, optional
        Function that closes the loops instead of Newton's method.
    stabilization : float, optional
        Time constant (s) of Baumgarte stabilization, with which loop errors decay. All coordinates
        of the tree are then integrated (see `constrained_dynamics`).
    compiled : bool, optional
        True raises an error if the motion cannot be compiled; False runs step by step.
    device : {"cpu", "cuda"}, optional
        "cuda" runs a compiled batch on the GPU and copies the result back. By default, a motion
        runs where its arrays are; CuPy arrays stay on their GPU, in float32 if all are float32,
        without checks for finite values.
    threads : int, optional
        Number of CPU threads for a compiled batch.
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
        If the rigid contacts allow no motion, or more than one.
    ArgumentError
        If `robot` is not a Robot, if a keyword argument is unknown, if options cannot be combined,
        or if an option has the wrong type.
    InputError
        If an array has the wrong shape or is not finite, if an option is unknown or out of range,
        or if a controller or an event returns an invalid value.
    OpenLoop
        If `q` or `qd` violates the loop constraints.
    NotFiniteError
        If the accelerations are not finite.
    ModelError
        If the motion must be compiled (`compiled`, `device`, time-stepping) but cannot be, or if an
        option does not support the robot.
    MissingPackageError
        If a package that an option needs is not installed.

    Notes
    -----
    With soft contacts, `SoftContact(...)`, the states of surfaces and friction are integrated with
    the motion; `Trajectory.touching` holds them, with forces and gaps. Use an implicit integrator
    for stiff ground. If the step size is too large for the contact stiffness, a warning is issued,
    and `Trajectory.unstable` holds the first unstable step. Rigid contacts, `Rigid(...)`, need a
    single state and an explicit integrator. Bodies may touch, separate, stick, slide and collide.
    Each such change is located within its step, like an event, and named in `Trajectory.events`:
    "impact", "gain", "loss", "slip" or "stick", followed by the name of the point. Contacts are
    detected only at the start and end of each step, so choose dt small enough that no body passes
    through a small or thin body within one step.

    For a robot with loops, q and qd must keep the loops closed (`assemble`, `complete`). The
    independent coordinates are integrated, and the dependent coordinates are computed from them to
    1e-13, so that loops do not drift apart. If a pivot of these equations falls below a third of
    its initial value, other independent coordinates are chosen.

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
    plan = with_file(robot, planned({**options, "tau": tau}))
    if plan.model_parameters is not None:
        check_names(robot.model.source, plan)
    if plan.model_parameters and plan.sensors is not False:
        problem = "`sensors` cannot be combined with `model_parameters`"
        remedy = "simulate robot.with_parameters(...) instead"
        raise InputError("E-MOTION-203", problem, remedy, part="simulate")
    run = _motion(robot, plan, q, qd, compiled, device, threads)
    if plan.sensors is not False:
        run = measured(robot.mechanism, run, plan)
    return run if run.unstable is None else watching.told("simulate", run)


def planned(options: Mapping[str, Any]) -> Plan:
    """Combine the options of `simulate` and its option groups (`options.GROUPS`) into a plan.

    If no duration is given, the duration is `steps` times `dt`.
    """
    check_keywords("simulate", options, DEFAULTS)
    values: dict[str, Any] = {}
    for name, kind in GROUPS.items():
        group = options.get(name)
        if group is not None and not isinstance(group, kind):
            problem = f"`{name}` must be an instance of {kind.__name__}, not {group!r:.60}"
            raise ArgumentError("E-MOTION-091", problem, part="simulate")
        values |= vars(group) if group is not None else {}
    for name, value in options.items():
        if name in NAMES:
            values[name] = value
    if options.get("tau") is not None:
        if options.get("control") is not None:
            raise ArgumentError(
                "E-MOTION-089", "pass `control` or `tau`, not both", part="simulate"
            )
        values["control"] = options["tau"]
    if values.get("ctrl") is not None:
        if values.get("control") is not None:
            problem = "pass either `ctrl` or joint torques (`control` or `tau`), not both"
            raise ArgumentError("E-MOTION-143", problem, part="simulate")
        values["control"] = Controls.of(values["ctrl"])
    control = values.get("control")
    if isinstance(control, str) or is_trajectory(control):
        problem = f"`control` must be a controller or a function, not {control!r:.60}"
        remedy = "use PDControl, GravityCompensation or ComputedTorque from chasles.rollouts"
        raise ArgumentError("E-MOTION-190", problem, remedy, part="simulate")
    if values.get("duration") is None:
        if values.get("steps") is None:
            problem = "pass `duration` in s, or `steps` and `dt`"
            raise ArgumentError("E-MOTION-094", problem, part="simulate")
        steps = checked_count("simulate: steps", values["steps"])
        values["duration"] = steps * checked_step(values.get("dt") or DT, "simulate: dt")
    return Plan(**values)


def _motion(
    robot: Machine,
    plan: Plan,
    q: Array,
    qd: Array,
    compiled: bool | None,
    device: str | None,
    threads: int | None,
) -> Trajectory:
    """Run a plan by time stepping, with a compiled integrator, or step by step in Python."""
    if plan.integrator == TIME_STEPPING:
        return stepped(robot, plan, q, qd, compiled, device, threads)
    dt = DT if plan.dt is None else checked_step(plan.dt, "simulate: dt")
    known(plan.integrator)  # raises an error for unknown names
    way = (q, dt, plan.integrator, plan.control)
    check_damping("simulate", robot, *way, dissipation=plan.dissipation or False)
    why = "compiled=False was given" if compiled is False else obstacle(robot, plan, compiled)
    if not why:
        found = attempted(robot, plan, q, qd, compiled, device, threads)
        if isinstance(found, Trajectory):
            return found
        why = found
    if compiled or device == "cuda":
        raise ModelError("E-MOTION-093", f"this motion cannot be compiled: {why}", part="simulate")
    _check_interpreted(plan, why, threads, q, qd)
    return replace(interpreted(robot.mechanism, q, qd, plan), why=why)


def with_file(robot: Machine, plan: Plan) -> Plan:
    """Return the plan with actual values in place of integrator "auto", contacts "file" and None.

    "auto" is replaced by the name of an integrator, and "file" by the contact pairs of the robot's
    file. By default, contacts from the file ("file" or `file_pairs`) also enable joint limits,
    damping and dry friction if the integrator is "time-stepping".
    """
    if isinstance(plan.contacts, str):
        if plan.contacts != "file":
            problem = f"`contacts` must be pairs or 'file', not {plan.contacts!r:.60}"
            floor = "contacts=chasles.contact.file_pairs(robot, ground=True)"
            remedy = f"for a floor at z = 0, use {floor} and integrator='time-stepping'"
            raise ArgumentError("E-MOTION-134", problem, remedy, part="simulate")
        kept = robot.mechanism.kept
        if "contacts of the file" not in kept:
            kept["contacts of the file"] = tuple(file_pairs(robot))
        found, own = kept["contacts of the file"], True
    else:
        found = given_pairs("simulate", plan.contacts)
        own = any(isinstance(pair, Pair) and pair.from_file for pair in found)
    integrator = plan.integrator
    if integrator == AUTOMATIC:
        integrator = TIME_STEPPING if own else USUAL
    usual = own and integrator == TIME_STEPPING
    if plan.dissipation is not None:
        a_flag("dissipation", plan.dissipation, "simulate")
    limits, dissipation = (usual if x is None else x for x in (plan.limits, plan.dissipation))
    chosen = {"contacts": found, "limits": limits, "dissipation": dissipation}
    return Plan(**vars(plan) | chosen | {"integrator": integrator})


def obstacle(robot: Machine, plan: Plan, compiled: bool | None = None) -> str:
    """Return the reason why a plan cannot be compiled, or an empty string.

    Functions that compute torques or controls are not checked here.
    """
    control, resume = plan.asked, plan.resume
    remembers = callable(control) and not isinstance(control, FunctionType | BUILT_IN)
    remembers = remembers and not is_trajectory(plan.ctrl)
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
        (follows(control) and not is_trajectory(control.target), "control follows a function"),
        (
            plan.model_parameters and isinstance(control, GravityCompensation | ComputedTorque),
            "control computes with the robot's own parameters",
        ),
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


def _check_interpreted(plan: Plan, why: str, threads: int | None, q: Array, qd: Array) -> None:
    """Raise an error for options that only compiled simulations support."""
    control: Any = plan.control
    for name, value in (
        ("threads", threads),
        ("parameters", plan.parameters),
        ("model_parameters", plan.model_parameters),
    ):
        if value is not None:
            problem = f"`{name}` needs a compiled motion, but this motion is not compiled: {why}"
            raise InputError("E-MOTION-098", problem, part="simulate")
    name = "tau"
    if isinstance(control, Controls):
        name, control = "ctrl", plan.ctrl
    if control is None or callable(control):
        return
    shape = some_numbers(name, control, "simulate").shape
    if len(shape) > max(np.ndim(q), np.ndim(qd), 1):
        problem = f"leading shape {shape[:-1]} of {name} does not broadcast to that of q and qd"
        remedy = (
            f"pass a constant `{name}`; one row per step requires a compiled simulation ({why})"
        )
        raise InputError("E-MOTION-099", problem, remedy, part="simulate")


# Stability -------------------------------------------------------------------------------------


def check_damping(
    function: str,
    robot: Machine,
    q: Any,
    dt: float,
    integrator: str,
    control: Any,
    *,
    dissipation: bool,
) -> None:
    """Raise an error if damping makes steps of dt seconds from q (..., nq) unstable.

    With damping d, the velocity of an inertia m decays at the rate d / m. If dt d / m exceeds a
    limit that depends on the integrator, an explicit step of size dt amplifies the velocity. For
    Euler's method, the limit is 2, so dt must be less than 2 m / d.

    Joint damping is included if `dissipation` is True; the damping of built-in controllers is
    always included. Robots with loops are not checked, because their inertia differs from that of
    the tree.
    """
    limit, model, kept = INTEGRATORS[integrator].damped, robot.model, robot.mechanism.kept
    if not np.isfinite(limit) or robot.mechanism.traits or library_of(q):
        return
    fits = np.shape(q)[-1:] == (model.nq,) and np.size(q)
    first = np.asarray(q, float).reshape(-1, model.nq)[0] if fits else np.zeros(0)
    known = (integrator, dissipation, dt, first.tobytes())
    last = kept.get(SAFE)
    if last is not None and last[0] is control and last[1] == known:
        return
    d = along_velocities(model, "damping") if dissipation else np.zeros(model.nv)
    rate = 0.0
    if isinstance(control, PDControl | GravityCompensation):
        d = d + control._joint_gains(model)["damping"]
    elif isinstance(control, ComputedTorque):
        rate = max(control._gains("damping", model.nv), default=0.0)
    name = type(control).__name__ if rate else ""
    if fits and d.any():
        own, joint = _fastest(robot, first, d, limit / dt)
        rate, name = max((rate, name), (own, f"joint {joint!r}"))
    if dt * rate > limit:
        problem = f"dt = {dt:.3g} s is too large for the damping of {name} (rate {rate:.3g} 1/s)"
        remedy = f"use dt < {limit / rate:.3g} s, or integrator='time-stepping'"
        raise InputError("E-MOTION-186", problem, remedy, part=function)
    kept[SAFE] = control, known


def _fastest(robot: Machine, q: np.ndarray, d: np.ndarray, limit: float) -> tuple[float, str]:
    """Return the largest decay rate (1/s) of velocities due to damping, and the affected joint.

    The rate is the largest eigenvalue of M^-1 diag(d), with the mass matrix M at q. The joint is
    the one with the largest entry of the eigenvector of diag(d)^0.5 M^-1 diag(d)^0.5. The square
    root of the sum of all squared eigenvalues is an upper bound on the largest one. If this bound
    is at most `limit`, the bound and an empty name are returned.
    """
    try:
        inverse = np.linalg.inv(robot.mechanism.mass_matrix(q))
    except (InputError, np.linalg.LinAlgError):
        return 0.0, ""  # q is invalid or a joint has no inertia; later checks report this
    whole = math.sqrt(d @ (inverse * inverse) @ d)
    if not math.isfinite(whole):
        return 0.0, ""
    if whole <= limit:
        return whole, ""
    root = np.sqrt(d)
    rates, modes = np.linalg.eigh(root[:, None] * inverse * root)
    place = int(np.argmax(np.abs(modes[:, -1])))
    spans = robot.model.velocity_slices.items()
    body = next(i for i, span in spans if span.start <= place < span.stop)
    return float(rates[-1]), robot.model.bodies[body].data.name
