"""`chasles.identify`: parameters of a robot from measured motions and torques."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from chasles import tasks
from chasles.errors import InputError
from chasles.functions.doors import check_robot
from chasles.identification.consistent import (
    Prior,
    Problem,
    checked_prior,
    joint_values,
    link_values,
    prior,
    solved,
)
from chasles.identification.equations import Equations
from chasles.identification.filtering import Smoothing
from chasles.identification.linear import CHUNK, Base, LinearModel, base, checked_terms, samples
from chasles.identification.logs import Reader, partitions
from chasles.identification.measured import Measured, Summing
from chasles.identification.measured import arrays as from_positions
from chasles.identification.regression import HUBER, Factors, Fit, compressed, fitted
from chasles.identification.result import Identified
from chasles.model.description import freedom_names
from chasles.model.given import a_generator, a_name, some_names
from chasles.model.spaces import size
from chasles.robot import Robot
from chasles.tasks import THREADS, Told

POOR = 100.0
"""Condition number above which a note reports insufficient excitation."""

ROBUST_ROUNDS = 10
"""Number of iterations of the robust loss."""

UNLIKELY = 20.0
"""Ratio of fitted to prior torques that suggests wrong units."""

States = tuple[np.ndarray, np.ndarray, np.ndarray]


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
    delay: float | Literal["estimate"] = 0.0,
    columns: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    include: Sequence[str] = ("inertia", "damping", "friction"),
    f_ext: Any = None,
    actuated: Sequence[str] | None = None,
    loss: Literal["squares", "huber"] = "squares",
    prior: Literal["pull-back", "entropic"] = "pull-back",
    deviation: float = 1.0,
    seed: int = 0,
    cluster: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Identified:
    """Identify a robot's inertial and joint parameters from measured motions and torques.

    Joint torques are linear in the parameters. The base parameters, which are the combinations that
    torques depend on, are found by least squares, with each torque weighted by its noise. The full
    parameters are found by the same least squares with a prior at the robot's values, among those
    that are physically consistent: every pseudo-inertia is positive definite.

    Parameters
    ----------
    robot : Robot
        The robot with its current parameters, which are the prior.
    data : path, sequence of paths, or table, optional
        Logs instead of arrays: .csv, .parquet and .arrow files, folders of these, or a table of
        pandas, xarray or pyarrow. Columns are t, and J.q, J.qd, J.qdd, J.tau for every joint J.
        Memory use is bounded if the logs contain velocities and accelerations.
    q : array_like, (n, nq)
        Joint positions (rad or m).
    qd, qdd : array_like, (n, nv), optional
        Joint velocities and accelerations. Default: computed from q and t.
    tau : array_like, (n, nv)
        Joint torques or forces (N m or N). Torques of passive joints and of a floating base are
        zero. With closed loops, each motor torque is the entry of its joint.
    t : array_like, (n,), optional
        Times (s).
    smoothing : {"low-pass", "savitzky-golay", "spline"}
        Method for computing velocities and accelerations from positions: a zero-phase low-pass
        filter of fourth order and finite differences, local polynomials, or a smoothing spline.
    cutoff : float, optional
        Cut-off frequency of the smoothing (Hz). Default: 1.5 times the highest frequency at which
        positions have more power than their noise.
    delay : float or "estimate"
        Time (s) by which logged torques lag behind positions; "estimate" finds it by correlation
        with the torques that the robot predicts.
    columns, units : dict, optional
        Names of the log's columns ({"elbow.q": "pos3"}), and units by quantity or column
        ({"q": "deg", "t": "ms"}).
    skip_bad : bool
        Skip bad rows and unreadable files of logs; `notes` counts them.
    include : sequence of str
        Terms to identify: "inertia" (always included), and "armature", "damping", "friction"
        (Coulomb) and "offset" at joints with one degree of freedom.
    f_ext : dict, optional
        Known external wrenches, as in `robot.inverse_dynamics`.
    actuated : sequence of str, optional
        For closed loops, the actuated degrees of freedom, as many as the mobility. Default: those
        whose torque is not always zero.
    loss : {"squares", "huber"}
        "huber" bounds the influence of outliers.
    prior : {"pull-back", "entropic"}
        Distance from the prior on pseudo-inertias: the constant pull-back metric, or the
        log-determinant divergence.
    deviation : float
        Standard deviation of the prior, relative to each body's inertia. Larger values give the
        data more weight.
    seed : int
        Seed of the random states that determine the base parameters.
    cluster : str, optional
        Address of a Dask scheduler, whose workers read the files of `data`; the loss must be
        "squares" and the robot a tree without `f_ext`. Default: this process.
    progress : callable, optional
        Function called with the number of samples of each block of logs that was read.

    Returns
    -------
    Identified
        `robot`, `base`, `covariance`, `report()` and more.

    Raises
    ------
    chasles.errors.InputError
        For arrays that do not fit the robot or each other, or that are not finite.

    Notes
    -----
    Base parameters: Gautier (1991). Pseudo-inertias and linear matrix inequalities: Wensing, Kim
    and Slotine (2018). Pull-back metric and entropic divergence: Lee, Wensing and Park (2020).

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
        problem = f"loss must be 'squares' or 'huber', not {loss!r:.60}"
        raise InputError("E-IDENT-006", problem, part="identify")
    rng = a_generator(seed, "identify")
    terms, notes = checked_terms(include), tuple[str, ...]()
    if data is not None:
        lag = None if delay == "estimate" else float(delay)
        reader = Reader(robot, columns or {}, units or {}, skip_bad)
        logs = Measured(reader, smoothing, cutoff, lag)
        if len(robot.independent) == robot.nv and loss == "squares" and f_ext is None:
            told = progress or (lambda count: None)
            return _streamed(robot, terms, logs, data, prior, deviation, rng, cluster, told)
        if cluster is not None:
            problem = "a cluster needs loss 'squares', and a tree without f_ext"
            raise InputError("E-IDENT-041", problem, "omit cluster", part="identify")
        parts = list(logs.samples(data))
        q, qd, qdd, tau = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        notes = logs.notes()
    elif qd is None or qdd is None:
        (q, qd, qdd, tau), chosen_cutoff = from_positions(robot, t, q, tau, smoothing, cutoff)
        notes = (f"velocities and accelerations by {smoothing}, cut-off {chosen_cutoff:.3g} Hz",)
    *given, measured = samples(robot, "identify", q, qd, qdd, tau)
    states = (given[0], given[1], given[2])
    model = LinearModel(_driven(robot, measured, actuated), terms)
    measured = measured - model.known(*states, f_ext)
    chosen = base(model, rng, states)
    factors = _compressed(model, states, measured)
    fit = fitted(factors, chosen.columns)
    if loss == "huber":
        factors, fit = _robust(model, states, measured, chosen, fit)
    notes = (*notes, *_notes(model, chosen, fit, len(measured)))
    start, z = _consistent(model, factors, fit, prior, deviation)
    return _result(model, chosen, fit, start, z, len(measured), notes)


def _streamed(
    robot: Robot,
    terms: tuple[str, ...],
    logs: Measured,
    data: Any,
    kind: Any,
    deviation: float,
    rng: np.random.Generator,
    cluster: str | None,
    told: Told,
) -> Identified:
    """Identify from logs of any length; only their Gram matrices are kept in memory."""
    model = LinearModel(robot, terms)
    none = np.zeros((0, robot.nq)), np.zeros((0, robot.nv)), np.zeros((0, robot.nv))
    chosen = base(model, rng, none)
    equations = Equations(model, chosen)
    grams, parts = equations.none(), partitions(data)
    here = THREADS if cluster is None and len(parts) == 1 else 1
    summing = Summing(equations, logs, here)
    for some, remarks in tasks.run(summing, parts, cluster=cluster, told=told):
        grams = grams + some
        logs.add(remarks)
    if not grams.count:
        problem = "there are no samples in the logs"
        raise InputError("E-IDENT-020", problem, "give logs with rows", part="identify")
    factors = grams.factors(chosen, model.nominal)
    fit = fitted(factors, chosen.columns)
    notes = (*logs.notes(), *_notes(model, chosen, fit, grams.count))
    start, z = _consistent(model, factors, fit, kind, deviation)
    return _result(model, chosen, fit, start, z, grams.count, notes)


def _driven(robot: Robot, tau: np.ndarray, actuated: Sequence[str] | None) -> Robot:
    """Return the robot with its motors as independent coordinates, if it has closed loops.

    Each row is then the torque of one motor, with the noise of that torque alone.
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


def _blocks(
    model: LinearModel, states: States, tau: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the equations A x = b of one block of samples after the other."""
    for first in range(0, len(tau), CHUNK):
        part = slice(first, first + CHUNK)
        q, qd, qdd = (x[part] for x in states)
        yield model.rows(q, model.matrix(q, qd, qdd)), model.rows(q, tau[part])


def _compressed(model: LinearModel, states: States, tau: np.ndarray) -> Factors:
    return compressed(_blocks(model, states, tau), model.free, len(model.names))


def _robust(
    model: LinearModel, states: States, tau: np.ndarray, chosen: Base, fit: Fit
) -> tuple[Factors, Fit]:
    """Repeat the fit with Huber's weights of the residuals."""
    factors = None
    for _ in range(ROBUST_ROUNDS):
        noise = _spread(model, states, tau, chosen, fit)

        def weighted(fit: Fit = fit, noise: np.ndarray = noise) -> Iterator[tuple[np.ndarray, ...]]:
            for A, b in _blocks(model, states, tau):
                residual = np.abs(b - A[..., chosen.columns] @ fit.values) / noise
                yield A, b, 1.0 / np.maximum(1.0, residual / HUBER)

        factors, before = compressed(weighted(), model.free, len(model.names)), fit
        fit = fitted(factors, chosen.columns)
        if np.allclose(fit.values, before.values, rtol=1e-6, atol=1e-12):
            break
    assert factors is not None
    return factors, fit


def _spread(
    model: LinearModel, states: States, tau: np.ndarray, chosen: Base, fit: Fit
) -> np.ndarray:
    """Return a robust standard deviation of the residuals of each row, from their median."""
    found = [
        np.abs(b - A[..., chosen.columns] @ fit.values) for A, b in _blocks(model, states, tau)
    ]
    return np.maximum(np.median(np.concatenate(found), axis=0) / 0.6745, 1e-300)


def _consistent(
    model: LinearModel, factors: Factors, fit: Fit, kind: Any, deviation: float
) -> tuple[Prior, np.ndarray]:
    """Return the prior and the consistent solution in its coordinates."""
    robot, bodies = model.robot, len(model.links)
    length = size(robot.model)
    masses = model.nominal[: 10 * bodies : 10]
    typical = float(np.max(np.abs(masses), initial=0.0)) or 1.0
    start = prior(model.nominal, bodies, typical, length)
    R = factors.joined(fit.noise)
    A, b = R[:-1, :-1] @ start.map, R[:-1, -1] - R[:-1, :-1] @ start.nominal
    n = len(model.joints)
    free = model.terms.index("offset") * n if "offset" in model.terms else len(model.terms) * n
    signs = 10 * bodies + np.arange(free)
    return start, solved(Problem(A, b, bodies, deviation, signs), kind)


def _notes(model: LinearModel, chosen: Base, fit: Fit, samples: int) -> tuple[str, ...]:
    """Return remarks on the data."""
    found = []
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
        warnings.warn(f"identify: {note}", UserWarning, stacklevel=3)
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
    robot, bodies = model.robot, len(model.links)
    x = start.values(z)
    carried: dict[str, list[str]] = {link: [] for link in model.links}
    for data in robot.model.source.links:
        body = robot.model.frames[data.name].body
        owner = robot.model.bodies[body].name if body in robot.model.in_file_order else None
        if owner is not None and owner != data.name and data.inertia.m:
            carried[owner].append(data.name)
    written = link_values(carried, x) | joint_values(model.terms, model.joints, x[10 * bodies :])
    offsets = {}
    if "offset" in model.terms:
        offsets = dict(zip(model.joints, map(float, x[-len(model.joints) :]), strict=True))
    raised = [model.links[k] for k in start.raised]
    if raised:
        shown = ", ".join(raised[:5]) + (" ..." if len(raised) > 5 else "")
        notes = (
            *notes,
            f"the robot's own inertias of {shown} are physically impossible; the prior is raised",
        )
    return Identified(
        robot=robot.with_parameters(written),
        base=fit.values,
        names=tuple(model.names[k] for k in chosen.columns),
        covariance=fit.covariance,
        noise=fit.noise,
        condition=fit.condition,
        parameters=written,
        offset=offsets,
        vector=x,
        combination=chosen.combination,
        columns=chosen.columns,
        samples=samples,
        notes=notes,
        model=model,
    )
