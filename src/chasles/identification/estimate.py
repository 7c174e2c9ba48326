"""`chasles.identify`: parameters of a robot from measured motions and torques."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from chasles.errors import ArgumentError, InputError, warn
from chasles.functions.doors import check_robot, wrench_arguments
from chasles.functions.tracing import WrenchKey
from chasles.identification.consistent import Kind, Prior, checked_prior
from chasles.identification.constrained import (
    Constraints,
    checked_constraints,
    consistent,
    unknown_bodies,
)
from chasles.identification.equations import Equations, Grams, Sample
from chasles.identification.filtering import Smoothing
from chasles.identification.fitting import States, best_slip, factors_of, gains_of, robust
from chasles.identification.gains import Gains
from chasles.identification.linear import (
    SLIP,
    Base,
    LinearModel,
    base,
    checked_terms,
    rest_velocities,
    samples,
)
from chasles.identification.logs import Reader
from chasles.identification.measured import Lag, Measured, summed
from chasles.identification.measured import arrays as from_arrays
from chasles.identification.regression import Fit, fitted
from chasles.identification.result import Identified
from chasles.identification.samples import Measuring, checked_wrenches, external
from chasles.identification.shapes import Enclosing
from chasles.identification.written import written
from chasles.model.description import freedom_names
from chasles.model.given import a_generator, a_name, a_number, some_names
from chasles.robot import Robot

POOR = 100.0
"""Condition number above which a note reports insufficient excitation."""

UNLIKELY = 20.0
"""Ratio of the norms of fitted and prior base parameters above which units are probably wrong.

A note suggests wrong units if the ratio is above this value or below its reciprocal.
"""

SEVERAL = 0.5
"""Minimum fraction of samples in which a joint should move.

A note reports each joint that moves in a smaller fraction of the samples.
"""

Delay = float | Literal["estimate"]
"""Delay (s) of a torque relative to the positions, or "estimate"."""


def identify(
    robot: Robot,
    data: Any = None,
    *,
    q: Any = None,
    qd: Any = None,
    qdd: Any = None,
    tau: Any = None,
    t: Any = None,
    smoothing: Smoothing = "low-pass",
    cutoff: float | None = None,
    delay: Delay | Mapping[str, Delay] = 0.0,
    columns: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    wrenches: Mapping[str, Measuring] | None = None,
    include: Sequence[str] = ("inertia", "damping", "friction"),
    f_ext: Any = None,
    actuated: Sequence[str] | None = None,
    gain: Mapping[str, float | None] | None = None,
    stribeck_velocity: float | Literal["estimate"] = SLIP,
    rest_velocity: float | Mapping[str, float] | None = None,
    payload: str | None = None,
    symmetry: Mapping[str, str] | None = None,
    total_mass: float | None = None,
    enclosed: Enclosing | None = None,
    loss: Literal["squares", "huber"] = "squares",
    prior: Kind = "pull-back",
    deviation: float = 1.0,
    seed: int = 0,
    cluster: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Identified:
    """Identify a robot's inertial and joint parameters from measured motions and torques.

    Joint torques are linear in the parameters. The base parameters, the combinations of parameters
    that determine the torques, are found by least squares, with each torque weighted by its noise.
    The full parameters minimize the same sum of squares plus a penalty on the distance from the
    robot's values, the prior. Full parameters are physically consistent: every pseudo-inertia is
    positive definite.

    Parameters
    ----------
    robot : Robot
        The robot with its current parameters, which are the prior.
    data : path, sequence of paths, or table, optional
        Logs instead of arrays: .csv, .parquet and .arrow files, ROS 2 bags (.mcap, .db3), folders
        of such files, or a pandas, xarray or pyarrow table. Columns are t, and J.q, J.qd, J.qdd,
        J.tau for every joint J. Memory use is bounded if the logs contain velocities and
        accelerations.
    q : array_like, (n, nq)
        Joint positions (rad or m).
    qd, qdd : array_like, (n, nv), optional
        Joint velocities and accelerations. Default: computed from q and t.
    tau : array_like, (n, nv)
        Joint torques or forces (N m or N). Torques of passive joints and of a floating base are
        zero. With closed loops, the torque of each motor is in the column of its joint.
    t : array_like, (n,), optional
        Times (s).
    smoothing : {"low-pass", "savitzky-golay", "spline"}
        Method for computing velocities and accelerations from positions: a zero-phase low-pass
        filter of eighth order and finite differences, local polynomials, or a smoothing spline.
    cutoff : float, optional
        Cut-off frequency of the smoothing (Hz). Default: the frequency above which accelerations
        are mainly noise.
    delay : float, "estimate" or dict
        Delay (s) of torques relative to positions. "estimate" finds it by correlation with the
        torques predicted by the robot. A dict gives delays by joint, or by frame for wrenches:
        {"elbow": 0.002, "wrist": "estimate"}.
    columns, units : dict, optional
        Names of the log's columns ({"elbow.q": "pos3"}), and units by quantity or column
        ({"q": "deg", "t": "ms"}). The unit of a quantity applies only to columns of its kind: "deg"
        to revolute joints, "mm" to prismatic joints.
    skip_bad : bool
        Skip bad rows of logs, and log files that cannot be read; `notes` reports how many rows and
        files were skipped.
    wrenches : dict, optional
        Frames with external wrenches in the logs, such as foot contact forces, and how they were
        measured. "sensor": in the axes and about the origin of the frame. "plate": in world axes,
        about the world's origin. The columns of frame F are F.mx, F.my, F.mz, F.fx, F.fy, F.fz (N m
        and N, exerted on the robot).
    include : sequence of str
        Terms to identify: "inertia" (always included), and terms of joints with one degree of
        freedom: "armature", "damping", "friction" (Coulomb), "asymmetric" (Coulomb friction that
        differs by direction), "stribeck", "stiffness" and "offset" (of a torque or current
        sensor). "elbow.friction" names one joint.
    f_ext : dict, optional
        Known external wrenches, as in `robot.inverse_dynamics`; arrays (n, 6) vary with time.
    actuated : sequence of str, optional
        Actuated degrees of freedom of a robot with closed loops, as many as its mobility. Default:
        the degrees of freedom whose torque is not always zero.
    gain : dict, optional
        Motor constants (N m/A, at the joint) of joints whose `tau` are currents (A); None for an
        unknown constant. At least one constant, torque or external wrench must be known.
    stribeck_velocity : float or "estimate"
        Velocity (rad/s or m/s) at which Stribeck friction has decreased to one half. "estimate"
        finds one velocity for all joints, which minimizes the residuals.
    rest_velocity : float or dict, optional
        Velocity (rad/s or m/s) up to which a joint with dry friction is considered at rest, for
        all joints or by name. The torque of such a joint is not used, because friction at rest may
        have any value up to its limit. Default: 1 % of the joint's velocity limit, and at most
        0.05 rad/s or 0.005 m/s.
    payload : str, optional
        Frame that carries an unknown payload. Only the payload and the joint terms in `include` are
        unknown; the inertias of the robot are not changed.
    symmetry : dict, optional
        {left: right}: moving links with equal or mirrored parameters.
    total_mass : float, optional
        Total mass (kg) of the moving bodies, known to 0.1 %.
    enclosed : {"box", "ellipsoid"}, optional
        Require that each body's mass lies within a box or an ellipsoid around its collision shapes.
    loss : {"squares", "huber"}
        "huber" bounds the influence of outliers.
    prior : {"pull-back", "entropic", "log-cholesky"}
        Distance from the prior on pseudo-inertias: the constant pull-back metric, the
        log-determinant divergence, or the distance in log-Cholesky coordinates.
    deviation : float
        Standard deviation of the prior, relative to each body's inertia. Larger values give the
        data more weight.
    seed : int
        Seed of the random states that determine the base parameters.
    cluster : str, optional
        Address of a Dask scheduler, whose workers read the files of `data`, or "local:4" for four
        worker processes on this computer. The loss must be "squares", the robot must be a tree, the
        Stribeck velocity must be a number, and `f_ext` and `gain` must not be given. Default: read
        the files in this process.
    progress : callable, optional
        Function that is called after each block of logs, with the number of samples read.

    Returns
    -------
    Identified
        Robot with the identified parameters, base parameters and their covariance, and a report.

    Raises
    ------
    InputError
        If the shapes of the arrays do not match the robot or each other, if an array is not finite,
        if the logs contain no samples, or if an option is unknown, out of range or not supported in
        combination with another one.
    ArgumentError
        If `robot` is not a Robot, or if an option has the wrong type.
    ModelError
        If a frame in `payload`, `f_ext` or `wrenches` does not exist.

    Notes
    -----
    Base parameters: Gautier (1991). Pseudo-inertias and linear matrix inequalities: Wensing, Kim
    and Slotine (2018). Pull-back metric and entropic divergence: Lee, Wensing and Park (2020).
    Log-Cholesky coordinates: Rucker and Wensing (2022).

    Examples
    --------
    >>> import chasles, numpy as np
    >>> robot, rng = chasles.robots.planar(2), np.random.default_rng(0)
    >>> q, qd, qdd = rng.normal(size=(3, 200, 2))
    >>> tau = robot.inverse_dynamics(q, qd, qdd) + 0.01 * rng.normal(size=(200, 2))
    >>> found = chasles.identify(robot, q=q, qd=qd, qdd=qdd, tau=tau, include=["inertia"])
    >>> bool(found.validate(q, qd, qdd, tau).max() < 0.012)
    True
    """
    check_robot("identify", robot)
    deviation = checked_prior(prior, deviation)
    if a_name("loss", loss, "identify") not in ("squares", "huber"):
        problem = f"`loss` must be 'squares' or 'huber', not {loss!r:.60}"
        raise InputError("E-IDENT-006", problem, part="identify")
    rng, terms = a_generator(seed, "identify"), checked_terms(robot, include)
    how = Estimate(prior, deviation, checked_constraints(total_mass, enclosed), loss)
    robot, bodies = unknown_bodies(robot, payload, symmetry)
    slip = _velocity(stribeck_velocity)
    loads = checked_wrenches(robot, wrenches)
    slowest = rest_velocities(robot, rest_velocity, "identify")
    lag = _lag(robot, delay, loads or wrench_arguments(robot.model, f_ext).keys)
    reader = Reader(robot, columns or {}, units or {}, skip_bad, wrenches=loads)
    logs = Measured(reader, smoothing, cutoff, lag)
    if loads and data is None:
        problem = "`wrenches` refers to log columns, but no logs were given"
        raise InputError(
            "E-IDENT-043", problem, "pass the wrenches as arrays in `f_ext`", part="identify"
        )
    if cluster is not None and data is None:
        problem = "`cluster` requires logs, but no logs were given"
        remedy = "pass the logs as `data`, or omit `cluster`"
        raise InputError("E-IDENT-050", problem, remedy, part="identify")
    plain = loss == "squares" and f_ext is None and gain is None and slip is not None
    if data is not None and plain and len(robot.independent) == robot.nv:
        model = LinearModel(robot, terms, bodies, slip or SLIP, loads, slowest)
        total = partial(summed, logs=logs, data=data, cluster=cluster, told=progress)
        return _streamed(model, logs, total, how, rng)
    if data is not None:
        if cluster is not None:
            problem = (
                "on a cluster, robots with loops, losses other than 'squares', `f_ext`, `gain` and "
                "estimates of the Stribeck velocity are not supported"
            )
            raise InputError("E-IDENT-041", problem, "omit `cluster`", part="identify")
        q, qd, qdd, tau, measured = _whole(logs.samples(data))
        f_ext = {**(f_ext or {}), **(external(loads, measured) or {})} or None
    elif q is None or tau is None:
        problem = f"`{'q' if q is None else 'tau'}` is missing"
        remedy = "pass the arrays `q` and `tau`, or logs as `data`"
        raise ArgumentError("E-IDENT-051", problem, remedy, part="identify")
    elif qd is None or qdd is None or lag != 0.0:
        q, qd, qdd, tau, f_ext = from_arrays(logs, t, q, qd, qdd, tau, f_ext)
    *given, measured = samples(robot, "identify", q, qd, qdd, tau)
    states = (given[0], given[1], given[2])
    driven = _driven(robot, measured, actuated)
    model = LinearModel(driven, terms, bodies, slip or SLIP, loads, slowest)
    chosen = base(model, rng, states)
    if slip is None:
        model = replace(model, slip=best_slip(model, states, measured, f_ext, chosen))
    found = gains_of(model, states, measured, f_ext, chosen, gain)
    if found is not None:
        measured = measured @ model.motors(found.values)
    measured = measured - model.known(*states, f_ext)
    result = _identified(model, states, measured, chosen, how, found, logs.notes())
    return replace(result, delay=logs.delays())


@dataclass(frozen=True)
class Estimate:
    """Estimation options: prior, its standard deviation, constraints, and loss."""

    prior: Any
    deviation: float
    constraints: Constraints
    loss: str


def _identified(
    model: LinearModel,
    states: States,
    measured: np.ndarray,
    chosen: Base,
    how: Estimate,
    gains: Gains | None,
    notes: tuple[str, ...],
) -> Identified:
    """Identify parameters from arrays; known torques are already subtracted from `measured`."""
    factors = factors_of(model, states, measured)
    moving = factors.counts
    fit = fitted(factors, chosen.columns)
    if how.loss == "huber":
        factors, fit = robust(model, states, measured, chosen, fit)
    if gains is not None:
        fit = replace(fit, covariance=gains.more_uncertain(fit.covariance))
    notes = (*notes, *_notes(model, chosen, fit, len(measured), moving))
    solution = consistent(model, factors, fit, how.prior, how.deviation, how.constraints)
    found = _result(model, chosen, fit, *solution, len(measured), notes)
    return found if gains is None else replace(found, gain=model.by_motor(gains.values))


def _streamed(
    model: LinearModel,
    logs: Measured,
    grams_of: Callable[[Equations], Grams],
    how: Estimate,
    rng: np.random.Generator,
) -> Identified:
    """Identify parameters from logs of any length. Only Gram matrices are kept in memory."""
    nq, nv = model.robot.nq, model.robot.nv
    chosen = base(model, rng, (np.zeros((0, nq)), np.zeros((0, nv)), np.zeros((0, nv))))
    grams = grams_of(Equations(model, chosen))
    if not grams.count:
        raise _empty()
    factors = grams.factors(chosen, model.nominal)
    fit = fitted(factors, chosen.columns)
    notes = (*logs.notes(), *_notes(model, chosen, fit, grams.count, grams.used))
    solution = consistent(model, factors, fit, how.prior, how.deviation, how.constraints)
    found = _result(model, chosen, fit, *solution, grams.count, notes)
    return replace(found, delay=logs.delays())


def _whole(parts: Iterable[Sample]) -> Sample:
    """Read all logs, and return their samples in one array per quantity."""
    arrays = list(zip(*parts, strict=True))
    if not arrays:
        raise _empty()
    q, qd, qdd, tau, loads = map(np.concatenate, arrays)
    return q, qd, qdd, tau, loads


def _empty() -> InputError:
    problem = "there are no samples in the logs"
    return InputError("E-IDENT-020", problem, "pass logs that contain data rows", part="identify")


def _at_rest(model: LinearModel, samples: int, moving: np.ndarray) -> list[str]:
    """Return a note for each joint that is at rest in most samples."""
    found = []
    for name, count in zip(model.robot.independent, moving, strict=True):
        if count < SEVERAL * samples:
            share = 1.0 - count / samples
            found.append(f"{name} is at rest in {share:.0%} of the samples (see rest_velocity)")
    return found


def _lag(robot: Robot, delay: Delay | Mapping[str, Delay], wrenches: Sequence[WrenchKey]) -> Lag:
    """Return one delay for all torques, or a mapping from joints and frames to delays.

    A delay is None if it is to be estimated.
    """
    if not isinstance(delay, Mapping):
        return None if delay == "estimate" else a_number("delay", delay, "identify")
    frames, found = [key.frame for key in wrenches], dict[str, float | None]()
    for name, each in delay.items():
        if name not in robot.joints and (name not in frames or each == "estimate"):
            problem = f"the delay of {name!r} cannot be determined"
            remedy = "name a joint, or name a wrench frame and give its delay in seconds"
            raise InputError("E-IDENT-044", problem, remedy, part="delay")
        found[name] = None if each == "estimate" else a_number("delay", each, "identify")
    return found or 0.0


def _velocity(given: float | Literal["estimate"]) -> float | None:
    """Return the Stribeck velocity, or None if it is unknown."""
    if given == "estimate":
        return None
    found = a_number("stribeck_velocity", given, "identify")
    if not found > 0.0:
        problem = f"`stribeck_velocity` must be positive, not {found:g}"
        raise InputError(
            "E-IDENT-030", problem, "pass the velocity in rad/s or m/s", part="identify"
        )
    return found


def _driven(robot: Robot, tau: np.ndarray, actuated: Sequence[str] | None) -> Robot:
    """Choose the motor coordinates as independent coordinates of a robot with closed loops.

    Each row of the linear model is then the torque of one motor, and contains only the noise of
    that torque. A robot without closed loops is returned unchanged.
    """
    if len(robot.independent) == robot.nv:
        return robot
    if actuated is not None:
        actuated = some_names("actuated", actuated, "identify")
    else:
        counts = {joint: _count(robot, joint) for joint in robot.joints}
        names = [name for joint, n in counts.items() for name in freedom_names(joint, n)]
        actuated = [name for name, used in zip(names, np.any(tau, axis=0), strict=True) if used]
    if len(actuated) != len(robot.independent):
        return robot
    return robot.with_independent(*actuated)


def _count(robot: Robot, joint: str) -> int:
    where = robot.velocity_slice(joint)
    return where.stop - where.start


def _notes(
    model: LinearModel, chosen: Base, fit: Fit, samples: int, moving: np.ndarray
) -> tuple[str, ...]:
    """Return notes about joints at rest, excitation and units, and issue them as warnings.

    `moving` contains, for each torque, the number of samples in which the joint is not at rest.
    """
    found = _at_rest(model, samples, moving)
    if samples * model.free < len(chosen):
        found.append(f"{samples} samples are too few for {len(chosen)} base parameters")
    if fit.condition > POOR:
        relative = np.sqrt(np.diagonal(fit.covariance)) / np.maximum(np.abs(fit.values), 1e-12)
        weak = np.argsort(-relative)
        names = ", ".join(model.names[chosen.columns[k]] for k in weak[:3])
        found.append(
            f"the condition number is {fit.condition:.3g}: the motion excites some "
            f"parameters poorly ({names} the least); the prior determines them"
        )
    before = chosen.combination @ model.nominal
    size = np.linalg.norm(before)
    if size > 0.0:
        ratio = np.linalg.norm(fit.values) / size
        if not 1.0 / UNLIKELY < ratio < UNLIKELY and fit.condition < 1e6:
            found.append(
                f"parameters are {ratio:.3g} times those of the robot; check the units of "
                "tau (N m), q (rad) and time (s)"
            )
    for note in found:
        warn(f"identify: {note}")
    return tuple(found)


def _result(
    model: LinearModel,
    chosen: Base,
    fit: Fit,
    start: Prior,
    z: np.ndarray,
    samples: int,
    notes: tuple[str, ...],
) -> Identified:
    x, count = start.values(z), 10 * len(model.bodies)
    robot, values = written(model, x)
    joints = {
        name: float(value) for name, value in zip(model.names[count:], x[count:], strict=True)
    }
    offsets = {
        joint: joints[f"{joint}.{kind}"] for kind, joint in model.unknowns if kind == "offset"
    }
    raised = [model.links[k] for k in start.raised]
    if raised:
        shown = ", ".join(raised[:5]) + (" ..." if len(raised) > 5 else "")
        notes = (
            *notes,
            f"the given inertias of {shown} are physically impossible; their prior was increased",
        )
    return Identified(
        robot=robot,
        base=fit.values,
        names=tuple(model.names[k] for k in chosen.columns),
        covariance=fit.covariance,
        noise=fit.noise,
        condition=fit.condition,
        parameters=values,
        joint_terms=joints,
        offset=offsets,
        vector=x,
        combination=chosen.combination,
        columns=chosen.columns,
        samples=samples,
        notes=notes,
        model=model,
    )
