"""Compare methods, compiled programs and backends with each other."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from chasles.algorithms import FUNCTIONS, HISTORICAL, KINEMATICS, Method, solid_bodies
from chasles.checks.comparing import INVERTING, NOTHING, Comparison, Loss
from chasles.checks.trial import Trial, arguments, raising
from chasles.functions.programs import Derivative
from chasles.functions.tracing import signature

ILL = {"mass_matrix_inverse", "operational_inertia_inverse", "linearize"}
"""Names of the functions that lose accuracy if the mass matrix is ill-conditioned."""


def loss_of(trial: Trial, function: str, method: str = "") -> Loss:
    """Return the accuracy loss caused by inverting the mass matrix or link inertias."""
    if function not in ILL | {*INVERTING}:
        return NOTHING
    needs = {m.name: m.needs for m in HISTORICAL.get(function, ())}
    return trial.assembling if needs.get(method) is solid_bodies else trial.inverting


FORCES = {"inverse_dynamics", "bias_forces", "gravity_forces", *INVERTING}
"""Names of the functions whose results are compared as generalized forces.

Differences are relative to the largest force, or to the typical force `Trial.force` if that is
larger, because all forces may be zero.
"""

RATES = {"frame_velocity": 1, "frame_acceleration": 2, "frame_motion": 3, "jacobian_rate": 1}
"""Exponent n for each kinematic function whose results scale with speed^n (default: 0)."""


def size_of(trial: Trial, function: str) -> float:
    """Return the minimum magnitude by which errors of a function's results are divided."""
    if function in FORCES:
        return trial.force
    return trial.speed ** RATES.get(function, 0) if function in KINEMATICS else 0.0


def options_of(trial: Trial, function: str) -> list[dict[str, Any]]:
    """Return the keyword arguments for each test of a function."""
    known = signature(FUNCTIONS[function][0].algorithm).options
    if "frame" in known:
        return trial.places if "axes" in known else [{"frame": frame} for frame in trial.frames]
    if "known" in known:
        names = [trial.model.bodies[i].data.name for i in trial.model.movers]
        base = [names[1:]] if trial.model.floating else []
        return [{"known": tuple(some)} for some in (names[::2], *base)]
    return [{}]


def methods_agree(trial: Trial) -> Iterator[Comparison]:
    """Compare the results of all methods of a function with those of its first method.

    The robot has damping, and an external wrench acts on it.
    """
    for function, rows in FUNCTIONS.items():
        if len(rows) == 1:
            continue
        for options in options_of(trial, function):
            order = 3 if signature(rows[0].algorithm).any_order else 1
            for k in range(1, order + 1):
                yield from _of_one(trial, function, options, k)


def _of_one(
    trial: Trial, function: str, options: dict[str, Any], order: int
) -> Iterator[Comparison]:
    ways = trial.ways(function, **options)
    ways = [m for m in ways if order == 1 or signature(m.algorithm).any_order]
    if len(ways) < 2:
        return
    loaded = "f_ext" in signature(ways[0].algorithm).inputs
    extra: dict[str, Any] = {"f_ext": trial.load} if loaded else {}
    model, (q, qd, qdd) = trial.whole, (trial.q, trial.qd, trial.qdd)
    given: dict[str, Any] = {"q": q, "qd": qd, "qdd": qdd, "qddd": qdd[::-1].copy()}
    if function in INVERTING:
        tau = trial.ask(model, "inverse_dynamics", q, qd, qdd, **extra)
        given |= {"tau": tau, "given": mixed(trial, options.get("known", ()), qdd, tau)}

    def results(way: Method) -> Any:
        arrays = arguments(function, way, given, order)
        return trial.ask(model, function, *arrays, method=way.name, **extra, **options)

    expected, size, case = results(ways[0]), 0.0, Case(trial, function, options, [])
    if isinstance(expected, tuple):
        size = float(np.max(np.abs(expected[0] * trial.units.of(function)), initial=0.0))
    for way in ways[1:]:
        yield from case.compare(way.name, results(way), expected, size)


def mixed(trial: Trial, known: Any, qdd: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Return an array (nv,) with accelerations of `known` joints and torques of all others."""
    return np.where(_of(trial, known), qdd, tau)


def effort(trial: Trial, found: np.ndarray, known: Any) -> np.ndarray:
    """Convert accelerations to generalized forces M qdd.

    Entries of `found` for the joints in `known` are already generalized forces and remain
    unchanged.
    """
    part = _of(trial, known)
    return np.where(part, found, trial.M @ np.where(part, 0.0, found))


def _of(trial: Trial, joints: Any) -> np.ndarray:
    """Return a boolean mask (nv,) that is True for the degrees of freedom of `joints`."""
    part = np.zeros(trial.model.nv, dtype=bool)
    for name in joints:
        part[trial.model.velocity_slices[trial.model.mover(name)]] = True
    return part


# Programs -------------------------------------------------------------------------------------

MAIN = (
    *("forward_kinematics", "frame_velocity", "frame_acceleration", "jacobian", "jacobian_rate"),
    *("gravity_forces", "bias_forces", "inverse_dynamics", "mass_matrix", "forward_dynamics"),
    *("kinetic_energy", "potential_energy", "momentum", "center_of_mass"),
    *("centroidal_momentum_matrix", "integrate", "difference", "loop_residual", "loop_matrix"),
)
"""Names of the functions that are compiled and checked by default, without `full=True`."""

CENTRAL = {"center_of_mass", "momentum", "centroidal_momentum_matrix"}
"""Names of the functions that are defined only if the moving bodies have a positive total mass."""

BATCH = 11
"""Batch size of the checks: a prime number larger than every SIMD width for float64."""


class Case(NamedTuple):
    """A function to test, with its options and input arrays."""

    trial: Trial
    function: str
    options: dict[str, Any]
    arrays: list[Any]

    def compiled(self, backend: str, **more: Any) -> Any:
        """Return the function compiled for a backend, with the time set to `trial.t`."""
        with raising(self.function, backend):
            options = self.options | more | {"backend": backend}
            return self.trial.robot.function(self.function, **options).at(self.trial.t)

    def compare(
        self, method: str, found: Any, expected: Any, size: float = 0.0
    ) -> Iterator[Comparison]:
        """Yield comparisons of results with expected values.

        Accelerations are converted to generalized forces first.
        """
        at, function, known = self.trial, self.function, self.options.get("known", ())
        size, loss = max(size, size_of(at, function)), loss_of(at, function, method)
        for k, (a, b) in enumerate(zip(_parts(found), _parts(expected), strict=True)):
            name = f"{method}, result {k + 1}" if isinstance(expected, tuple) else method
            if function in INVERTING:
                a, b = (effort(at, np.asarray(x, float), known) for x in (a, b))
            yield Comparison(function, name, a, b, size, loss, at.units.of(function, k))


def cases(trial: Trial) -> Iterator[Case]:
    """Yield a test case for each function in `MAIN`, or for every function if `full` is True."""
    model, q, qdd, massless = trial.model, trial.q, trial.qdd, trial.model.source.massless
    absent = {
        "linearize": trial.nonholonomic,
        "driving_forces": not model.driven,
        "loop_joint_matrix": not model.loops,
        **dict.fromkeys(CENTRAL, not sum(body.inertia.m for body in model.bodies)),
    }
    for function in FUNCTIONS if trial.full else MAIN:
        if trial.robot.mechanism.opens(function) or absent.get(function) or not trial.has(function):
            continue
        options = options_of(trial, function)[0]
        if not trial.ways(function, **options):
            continue
        given = {
            "q": q,
            "qd": trial.qd,
            "qdd": qdd,
            "tau": None if massless else trial.tau,
            "given": None if massless else mixed(trial, options.get("known", ()), qdd, trial.tau),
            "multipliers": np.ones(len(trial.units.closing)),
            "v": trial.direction,
            "q0": q,
            "q1": trial.run("integrate", q, trial.direction),
        }
        yield Case(trial, function, options, arguments(function, FUNCTIONS[function][0], given))


def programs(trial: Trial) -> Iterator[Comparison]:
    """Compare interpreted programs with the same algorithms run on Python floats."""
    for case in cases(trial):
        way = trial.ways(case.function, **case.options)[0].name
        expected = trial.run(case.function, *case.arrays, method=way, **case.options)
        yield from case.compare("fastest", case.compiled("interpret")(*case.arrays), expected)


def by(backend: str) -> Callable[[Trial], Iterator[Comparison]]:
    """Return a check that compares the results of a backend with those of "interpret".

    The backend evaluates a batch, and the last state of the batch is compared.
    """

    def agrees(trial: Trial) -> Iterator[Comparison]:
        for case in cases(trial):
            expected = case.compiled("interpret")(*case.arrays)
            found = case.compiled(backend)(*map(_batch, case.arrays))
            yield from case.compare(backend, tuple(part[-1] for part in _parts(found)), expected)

    return agrees


def alone_as_in_a_batch(trial: Trial) -> Iterator[Comparison]:
    """Check that single and batched evaluations return bitwise identical results."""
    for case in cases(trial):
        compiled = case.compiled("llvm")
        alone, batch = compiled(*case.arrays), compiled(*map(_batch, case.arrays))
        for k, (a, b) in enumerate(zip(_parts(alone), _parts(batch), strict=True)):
            yield Comparison(case.function, f"result {k + 1}", b, _batch(a))


def in_float32(trial: Trial) -> Iterator[Comparison]:
    """Compare float32 results with float64 results."""
    for case in cases(trial):
        if case.function not in ILL | {"integrate", "difference"}:
            compiled = case.compiled("llvm")
            found = compiled(*(np.asarray(a, dtype=np.float32) for a in case.arrays))
            yield from case.compare("float32", found, compiled(*case.arrays))


def derived_programs(trial: Trial) -> Iterator[Comparison]:
    """Compare derivative programs (d/dq) with finite differences."""
    for case in cases(trial):
        function, (first, *rest) = case.function, case.arrays
        sign = signature(trial.ways(function, **case.options)[0].algorithm)
        if len(sign.outputs) > 1 or "q" not in sign.inputs:
            continue
        if function in ILL | {*INVERTING, "integrate"}:
            continue
        by_q = case.compiled("interpret", derivative=Derivative("jacobian", ("q",)))
        program = case.compiled("interpret")
        slope = trial.slope(partial(_first, program, rest))
        size = size_of(trial, function) * trial.speed or trial.speed
        found, units = by_q(first, *rest) @ trial.direction, trial.units.of(function)
        yield Comparison(function, "d/dq", found, slope, size, units=units)


def _first(function: Any, rest: list[Any], q: np.ndarray) -> Any:
    return function(q, *rest)


def _parts(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _batch(array: Any) -> np.ndarray:
    return np.broadcast_to(array, (BATCH, *np.shape(array))).copy()
