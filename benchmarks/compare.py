"""Compare libraries: all routes are timed in one run, and results are checked before and after."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import chasles
from benchmarks import mujoco_peer, pinocchio_peer
from benchmarks.casadi_count import Reference, inverse_dynamics_operations
from benchmarks.console import WrongAnswer
from benchmarks.robots import CASES, Case, chasles_robot, pinocchio_model, snapped_angle
from benchmarks.routes import NEW, REUSED, Route, chasles_routes, compiled, joined
from benchmarks.states import DERIVED, INPUTS, Array, States, method_of
from benchmarks.targets import BATCH
from benchmarks.timing import Rounds, Times, interleaved, seconds
from chasles.backends import USUAL, row
from chasles.backends.llvm import kernel as llvm
from chasles.functions.programs import Derivative, runnable

STAGED = row(USUAL).staged

TOLERANCE = 1e-9
"""Tolerance for the relative difference between libraries that use the same parameters."""

SNAP_AMPLIFICATION = 100.0
"""Tolerance for the relative change of a result, per radian by which `snap=True` changes angles.

A rotation by d changes a vector by d times its length. Cancellation between terms amplifies this
change, and so does the inverse mass matrix in forward dynamics.
"""


@dataclass(frozen=True)
class Effort:
    """Amount of work: states per batch, rounds of timing, and compilations of each function."""

    batch: int
    rounds: Rounds
    compilations: int


FULL = Effort(batch=BATCH, rounds=Rounds(least=15, most=60), compilations=3)
QUICK = Effort(batch=64, rounds=Rounds(least=2, most=2), compilations=1)


@dataclass(frozen=True)
class Timed:
    """Time (s) per state of a route, and its relative error with respect to Pinocchio."""

    library: str
    label: str
    whole: bool
    minimum: float
    median: float
    samples: int
    error: float


@dataclass(frozen=True)
class Row:
    """Measurements of all routes for one function of one robot.

    `exact_error` is the relative error of chasles with `snap=False` with respect to Pinocchio.
    `tolerance` applies to the timed robot, which is loaded with `snap=True`.
    """

    robot: str
    function: str
    routes: tuple[Timed, ...]
    exact_error: float
    tolerance: float

    def times(self, library: str, whole: Sequence[bool] = (True, False)) -> list[Timed]:
        """Return the routes of a library, fastest first: batches, single calls, or both."""
        found = (r for r in self.routes if r.library == library and r.whole in whole)
        return sorted(found, key=lambda r: r.minimum)

    @property
    def speedup(self) -> "Speedup":
        """Speeds relative to the fastest routes of the other libraries."""
        batch = self.times("chasles", [True])[0]
        new, reused = (
            next(r for r in self.times("chasles", [False]) if r.label == label)
            for label in (NEW, REUSED)
        )
        reference, call = self.times("Pinocchio")[0], self.times("Pinocchio", [False])[0]
        kept, mujoco = self.times("Pinocchio", [True]), self.times("MuJoCo")
        return Speedup(
            pinocchio=reference.minimum / batch.minimum,
            pinocchio_by_medians=reference.median / batch.median,
            pinocchio_kept=kept[0].minimum / batch.minimum if kept else None,
            mujoco=mujoco[0].minimum / batch.minimum if mujoco else None,
            single_call=call.minimum / new.minimum,
            single_call_reused=call.minimum / reused.minimum,
        )


@dataclass(frozen=True)
class Speedup:
    """Speed of chasles relative to the fastest route of other libraries (ratio of times).

    Attributes
    ----------
    pinocchio, mujoco : float
        Speed of a batch relative to the fastest route of the library.
    pinocchio_by_medians : float
        Same ratio, computed from median times.
    pinocchio_kept : float
        Speed of a batch relative to the fastest route of Pinocchio that stores all results.
    single_call, single_call_reused : float
        Speed of single calls from Python relative to single calls of Pinocchio. The result is
        returned in a new array, or written to an array that is reused.
    """

    pinocchio: float
    pinocchio_by_medians: float
    pinocchio_kept: float | None
    mujoco: float | None
    single_call: float
    single_call_reused: float


@dataclass(frozen=True)
class Compilation:
    """Minimum processor time (s) to obtain a compiled function of a new robot.

    `trace` is the time for tracing. `total` is the time for tracing and compiling with an empty
    disk cache, summed over all cores. `cached` is the time if the cache contains the function.
    """

    robot: str
    function: str
    trace: float
    total: float
    cached: float


@dataclass(frozen=True)
class Operations:
    """Multiplications and additions in the inverse dynamics of chasles and of Pinocchio."""

    robot: str
    chasles: int
    pinocchio: Reference | None


@dataclass(frozen=True)
class Comparison:
    """All measurements. `notes` lists what could not be measured."""

    effort: Effort
    rows: tuple[Row, ...]
    compilations: tuple[Compilation, ...]
    operations: tuple[Operations, ...]
    notes: tuple[str, ...]


def compare(
    robots: Iterable[str],
    functions: Sequence[str],
    effort: Effort,
    progress: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Compare all robots and functions. Raise WrongAnswer if the results of a library differ."""
    with empty_cache():
        return _compare(robots, functions, effort, progress)


def _compare(
    robots: Iterable[str],
    functions: Sequence[str],
    effort: Effort,
    progress: Callable[[str], None],
) -> Comparison:
    rows: list[Row] = []
    compilations: list[Compilation] = []
    operations: list[Operations] = []
    notes: list[str] = []
    for name in robots:
        bench = Bench(name, effort)
        notes.extend(bench.notes)
        reference = inverse_dynamics_operations(name, bench.model)
        count = chasles.cost(bench.robot, "inverse_dynamics").flops
        operations.append(Operations(name, count, reference))
        for function in functions:
            progress(f"{CASES[name].title}: {function}")
            compilations.append(bench.compile(function))
            rows.append(bench.row(function))
    return Comparison(effort, tuple(rows), tuple(compilations), tuple(operations), tuple(notes))


class Bench:
    """Robot loaded into all libraries, with the states used for the comparison."""

    def __init__(self, name: str, effort: Effort) -> None:
        self.name, self.effort, self.case = name, effort, CASES[name]
        self.robot = chasles_robot(self.case)
        self.exact = chasles_robot(self.case, snap=False)
        self.tolerance = TOLERANCE + SNAP_AMPLIFICATION * snapped_angle(self.case)
        self.states = States.draw(self.robot, effort.batch)
        self.model = pinocchio_model(self.case)
        self.pinocchio = pinocchio_peer.coordinates(self.robot, self.model, self.states)
        self.notes: list[str] = []
        try:
            self.mujoco_model = mujoco_peer.model(self.case, self.robot)
        except ValueError as error:
            self.mujoco_model = None
            self.notes.append(f"{self.case.title}: MuJoCo cannot load this robot: {error}")
        else:
            self.mujoco = mujoco_peer.coordinates(self.robot, self.mujoco_model, self.states)

    def routes(self, function: str) -> list[Route]:
        """Return all routes that compute a function."""
        made = chasles_routes(self.robot, function, self.states, _frame(self.case, function))
        theirs, _ = method_of(function)
        made += pinocchio_peer.routes(
            self.model, theirs, self.states, self.pinocchio, self.case.tip
        )
        if self.mujoco_model is not None:
            made += mujoco_peer.routes(self.mujoco_model, theirs, self.states, self.mujoco)
        return made

    def row(self, function: str) -> Row:
        """Time all routes of a function, and check the results before and after."""
        routes = self.routes(function)
        truth = next(r for r in routes if r.library == "Pinocchio").answers()
        method = compiled(self.exact, function, **_frame(self.case, function))
        result = joined(method(*self.states.inputs(function)), 1)
        exact = relative_error(result, truth)
        _require(self.case.title, f"chasles, snap=False, {function}", exact, TOLERANCE)
        timed = checked(self.case.title, function, routes, truth, self.tolerance, self.effort)
        return Row(self.name, function, timed, exact, self.tolerance)

    def compile(self, function: str) -> Compilation:
        """Time tracing, compiling, and loading from the cache, each for a newly loaded robot.

        Derivatives, which may take a minute, are compiled only once. Their code stays in the cache
        for the robot that is timed afterwards.
        """
        frame = _frame(self.case, function)
        derived = function in DERIVED or function == "linearize"
        makers: list[Callable[..., object]] = [_trace, compiled, compiled]
        taken = []
        for _ in range(1 if derived else self.effort.compilations):
            with nullcontext() if derived else empty_cache():
                fresh = [chasles_robot(self.case) for _ in makers]
                runs = map(partial, makers, fresh)
                taken.append([_alone(partial(run, function, **frame)) for run in runs])
        return Compilation(self.name, function, *np.min(taken, axis=0).tolist())


def checked(
    title: str,
    function: str,
    routes: Sequence[Route],
    truth: Array,
    tolerance: float,
    effort: Effort,
) -> tuple[Timed, ...]:
    """Return the times of all routes, after checking the results before and after timing."""
    for route in routes:
        route.run()
    _errors(title, function, routes, truth, tolerance)
    times = interleaved([r.run for r in routes], effort.rounds)
    errors = _errors(title, function, routes, truth, tolerance)
    return tuple(map(_timed, routes, times, errors))


def _errors(
    title: str, function: str, routes: Sequence[Route], truth: Array, tolerance: float
) -> list[float]:
    """Return the errors of all routes. Raise WrongAnswer if one exceeds its tolerance."""
    errors = []
    for route in routes:
        errors.append(relative_error(route.answers(), truth[: route.count]))
        allowed = tolerance if route.library == "chasles" else TOLERANCE
        _require(title, f"{route.library}, {route.label}, {function}", errors[-1], allowed)
    return errors


def _require(title: str, what: str, error: float, allowed: float) -> None:
    if not error <= allowed:
        raise WrongAnswer(
            f"{title}: {what}: relative error {error:.1e}, tolerance {allowed:.1e} (vs. Pinocchio)"
        )


@contextmanager
def empty_cache() -> Iterator[None]:
    """Use a temporary, initially empty folder as the cache of compiled functions."""
    before = os.environ.get("CHASLES_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CHASLES_CACHE"] = folder
        try:
            yield
        finally:
            del os.environ["CHASLES_CACHE"]
            if before is not None:
                os.environ["CHASLES_CACHE"] = before


def relative_error(answers: Array, truth: Array) -> float:
    """Return the largest error of any state, relative to the largest entry of its result."""
    entries = tuple(range(1, truth.ndim))
    difference = np.abs(answers - truth).max(axis=entries)
    return float((difference / np.abs(truth).max(axis=entries)).max())


def _timed(route: Route, times: Times, error: float) -> Timed:
    return Timed(
        route.library,
        route.label,
        route.whole,
        times.minimum / route.count,
        times.median / route.count,
        times.samples,
        error,
    )


def _frame(case: Case, function: str) -> dict[str, Any]:
    return {"frame": case.tip} if function in ("forward_kinematics", "jacobian") else {}


def _alone(run: Callable[[], object]) -> float:
    """Return the processor time (s) of a run, after unloading all machine code.

    The times of child processes that compile code are included.
    """
    llvm.forget()
    return seconds(run, lambda: int(sum(os.times()[:4]) * 1e9))


def _trace(robot: chasles.Robot, function: str, **options: Any) -> object:
    """Trace the program for a function name of the benchmarks."""
    name = DERIVED.get(function)
    if name is None:
        name, method = method_of(function)
        return runnable(robot.model, name, method=method, staged=STAGED, **options)
    derivative = Derivative("jacobian", INPUTS[function])
    return runnable(robot.model, name, derivative=derivative, staged=STAGED)
