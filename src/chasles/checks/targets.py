"""Compiled programs against the algorithms on floats, and backends against `interpret`."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from chasles import backends
from chasles.algorithms import FUNCTIONS
from chasles.checks.agreement import ILL, INVERTING, effort, loss_of, mixed, options_of, size_of
from chasles.checks.comparing import Comparison
from chasles.checks.trial import Trial, arguments, raising
from chasles.functions.programs import Derivative
from chasles.functions.tracing import signature

MAIN = (
    "forward_kinematics",
    "frame_velocity",
    "frame_acceleration",
    "jacobian",
    "jacobian_rate",
    "gravity_forces",
    "bias_forces",
    "inverse_dynamics",
    "mass_matrix",
    "forward_dynamics",
    "kinetic_energy",
    "potential_energy",
    "momentum",
    "center_of_mass",
    "centroidal_momentum_matrix",
    "integrate",
    "difference",
    "loop_residual",
    "loop_matrix",
)
"""What is compiled by default; everything where all is wanted."""

CENTRAL = {"center_of_mass", "momentum", "centroidal_momentum_matrix"}
"""Functions that ask for the mass centre of what moves, which must have a mass."""

BATCH = 11
"""States of a batch: more than the lanes of any processor, and a tail that is not full."""

Asked = tuple[str, dict[str, Any], list[Any]]


def asked(trial: Trial) -> Iterator[Asked]:
    """Functions, their options and arrays."""
    model = trial.model
    for function in FUNCTIONS if trial.full else MAIN:
        if trial.robot.mechanism.opens(function) or not trial.has(function):
            continue
        if function == "linearize" and trial.nonholonomic:
            continue
        if function == "driving_forces" and not model.driven:
            continue
        if function in CENTRAL and not sum(body.inertia.m for body in model.bodies):
            continue
        rows = FUNCTIONS[function]
        options = options_of(trial, function)[0]
        if not trial.ways(function, **options):
            continue
        known = options.get("known", ())
        given = {
            "q": trial.q,
            "qd": trial.qd,
            "qdd": trial.qdd,
            "tau": trial.tau if not model.source.massless else None,
            "given": mixed(trial, known, trial.qdd, trial.tau)
            if not model.source.massless
            else None,
            "multipliers": np.ones(trial.robot.mechanism.rows),
            "v": trial.direction,
            "q0": trial.q,
            "q1": trial.run("integrate", trial.q, trial.direction),
        }
        if not model.loops and function.startswith("loop_joint"):
            continue
        yield function, options, arguments(function, rows[0], given)


def programs(trial: Trial) -> Iterator[Comparison]:
    """The program that is chosen as fastest, interpreted, against the algorithm on floats."""
    for function, options, arrays in asked(trial):
        way = trial.ways(function, **options)[0].name
        expected = trial.run(function, *arrays, method=way, **options)
        found = _compiled(trial, function, "interpret", options)(*arrays)
        yield from _compare(trial, function, "fastest", found, expected, options)


def by_numpy(trial: Trial) -> Iterator[Comparison]:
    """The same program by NumPy's vectorised operations, the last state of a batch."""
    for function, options, arrays in asked(trial):
        program = trial.robot.function(function, backend="interpret", **options).program
        expected = _compiled(trial, function, "interpret", options)(*arrays)
        kernel = backends.compile(program, "numpy")
        given = {
            variable.name: array for variable, array in zip(program.inputs, arrays, strict=False)
        }
        rows = [
            _batch(np.reshape(given.get(v.name, trial.t), -1)).astype(float) for v in program.inputs
        ]
        results = [np.empty((BATCH, v.size)) for v in program.outputs]
        kernel(rows, results)
        found = tuple(r[-1].reshape(v.shape) for r, v in zip(results, program.outputs, strict=True))
        yield from _compare(trial, function, "numpy", found, expected, options)


def by_llvm(trial: Trial) -> Iterator[Comparison]:
    """Machine code as users call it, the last state of a batch."""
    for function, options, arrays in asked(trial):
        expected = _compiled(trial, function, "interpret", options)(*arrays)
        found = _compiled(trial, function, "llvm", options)(*map(_batch, arrays))
        last = tuple(part[-1] for part in _parts(found))
        yield from _compare(trial, function, "llvm", last, expected, options)


def alone_as_in_a_batch(trial: Trial) -> Iterator[Comparison]:
    """A state has the same bits alone and in any place of a batch."""
    for function, options, arrays in asked(trial):
        compiled = _compiled(trial, function, "llvm", options)
        alone, batch = compiled(*arrays), compiled(*map(_batch, arrays))
        for k, (a, b) in enumerate(zip(_parts(alone), _parts(batch), strict=True)):
            expected = np.broadcast_to(a, (BATCH, *np.shape(a)))
            yield Comparison(function, f"result {k + 1}", b, expected)


def in_single_precision(trial: Trial) -> Iterator[Comparison]:
    """Arrays of float32 give what arrays of float64 give, to single precision."""
    for function, options, arrays in asked(trial):
        if function in ILL | {"integrate", "difference"}:
            continue
        compiled = _compiled(trial, function, "llvm", options)
        expected = compiled(*arrays)
        found = compiled(*(np.asarray(a, dtype=np.float32) for a in arrays))
        yield from _compare(trial, function, "float32", found, expected, options)


def derived_programs(trial: Trial) -> Iterator[Comparison]:
    """Derivatives of programs by q, against differences of the program itself."""
    for function, options, arrays in asked(trial):
        ways = trial.ways(function, **options)
        sign = signature(ways[0].algorithm)
        if len(sign.outputs) > 1 or "q" not in sign.inputs:
            continue
        if function in INVERTING | ILL | {"integrate"}:
            continue
        first, *rest = arrays
        with raising(function, "d/dq"):
            by_q = Derivative("jacobian", ("q",))
            compiled = trial.robot.function(
                function, backend="interpret", derivative=by_q, **options
            ).at(trial.t)
        program = _compiled(trial, function, "interpret", options)
        slope = trial.slope(partial(_at, program, rest))
        found = compiled(first, *rest) @ trial.direction
        size = size_of(trial, function) * trial.speed or trial.speed
        units = trial.units.of(function)
        yield Comparison(function, "d/dq", found, slope, size, units=units)


def _at(function: Any, rest: list[Any], q: np.ndarray) -> Any:
    return function(q, *rest)


def _compiled(trial: Trial, function: str, backend: str, options: dict[str, Any]) -> Any:
    with raising(function, backend):
        return trial.robot.function(function, backend=backend, **options).at(trial.t)


def _compare(
    trial: Trial, function: str, method: str, found: Any, expected: Any, options: dict[str, Any]
) -> Iterator[Comparison]:
    pairs = zip(_parts(found), _parts(expected), strict=True)
    for k, (a, b) in enumerate(pairs):
        name = method if isinstance(expected, np.ndarray | float) else f"{method}, result {k + 1}"
        if function in INVERTING:
            a, b = (effort(trial, np.asarray(x, float), options.get("known", ())) for x in (a, b))
        size = size_of(trial, function)
        units = trial.units.of(function, k)
        yield Comparison(function, name, a, b, size, loss_of(trial, function), units)


def _parts(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _batch(array: Any) -> np.ndarray:
    return np.broadcast_to(array, (BATCH, *np.shape(array))).copy()
