"""The comparison: answers checked, routes timed in one run, answers checked again."""

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
from benchmarks.robots import CASES, Case, chasles_robot, pinocchio_model, snapped_angle
from benchmarks.routes import NEW, REUSED, Route, WrongAnswer, chasles_routes, compiled, joined
from benchmarks.states import DERIVED, INPUTS, Array, States, method_of
from benchmarks.targets import BATCH
from benchmarks.timing import Rounds, Times, interleaved, seconds
from chasles.backends import USUAL, row
from chasles.backends.llvm import kernel as llvm
from chasles.functions.programs import Derivative, runnable

STAGED = row(USUAL).staged

TOLERANCE = 1e-9
"""Relative error allowed between libraries that read the same numbers."""

SNAP_AMPLIFICATION = 100.0
"""Relative change of a result allowed for each radian that `snap=True` moves an angle of the file.
A turn by d moves a vector by d of its size; cancellation among terms, and M's inverse in forward
dynamics, amplify that."""


@dataclass(frozen=True)
class Effort:
    """How much to do: states in a batch, rounds of timing, compilations of each function."""

    batch: int
    rounds: Rounds
    compilations: int


FULL = Effort(batch=BATCH, rounds=Rounds(least=15, most=60), compilations=3)
QUICK = Effort(batch=64, rounds=Rounds(least=2, most=2), compilations=1)


@dataclass(frozen=True)
class Timed:
    """One route's time for one state, in seconds, and its relative error against Pinocchio."""

    library: str
    label: str
    whole: bool
    minimum: float
    median: float
    samples: int
    error: float


@dataclass(frozen=True)
class Row:
    """All routes of one function on one robot.

    exact_error: chasles with `snap=False` against Pinocchio. tolerance: what the timed robot,
    with `snap=True`, may differ by.
    """

    robot: str
    function: str
    routes: tuple[Timed, ...]
    exact_error: float
    tolerance: float

    def times(self, library: str, whole: Sequence[bool] = (True, False)) -> list[Timed]:
        """A library's routes, fastest first: those over whole batches, single calls or both."""
        found = (r for r in self.routes if r.library == library and r.whole in whole)
        return sorted(found, key=lambda r: r.minimum)

    @property
    def speedup(self) -> "Speedup":
        """Ratios against the fastest routes."""
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
    """How many times faster a batch of chasles is than the fastest route of another library.

    pinocchio_kept: than Pinocchio's fastest route that, like chasles, leaves all results in an
    array. single_call: one call of chasles from Python against one of Pinocchio, into a new array;
    single_call_reused: into the same one.
    """

    pinocchio: float
    pinocchio_by_medians: float
    pinocchio_kept: float | None
    mujoco: float | None
    single_call: float
    single_call_reused: float


@dataclass(frozen=True)
class Compilation:
    """Seconds to make one function of a new robot, the least of several.

    trace: to trace alone. total: to trace and compile, with nothing in the cache on disk, on all
    cores together. cached: with the function there.
    """

    robot: str
    function: str
    trace: float
    total: float
    cached: float


@dataclass(frozen=True)
class Operations:
    """Multiplications and additions of chasles' inverse dynamics and of Pinocchio's."""

    robot: str
    chasles: int
    pinocchio: Reference | None


@dataclass(frozen=True)
class Comparison:
    """Everything that was measured. notes: what could not be."""

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
    """Compare on all robots and functions. Raises WrongAnswer where a library disagrees."""
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
    """One robot in every library, and the states it is compared on."""

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
            self.notes.append(f"{self.case.title}: MuJoCo does not load it: {error}")
        else:
            self.mujoco = mujoco_peer.coordinates(self.robot, self.mujoco_model, self.states)

    def routes(self, function: str) -> list[Route]:
        """Every route that computes a function."""
        made = chasles_routes(self.robot, function, self.states, _frame(self.case, function))
        theirs, _ = method_of(function)
        made += pinocchio_peer.routes(
            self.model, theirs, self.states, self.pinocchio, self.case.tip
        )
        if self.mujoco_model is not None:
            made += mujoco_peer.routes(self.mujoco_model, theirs, self.states, self.mujoco)
        return made

    def row(self, function: str) -> Row:
        """Check, time, check."""
        routes = self.routes(function)
        truth = next(r for r in routes if r.library == "Pinocchio").answers()
        method = compiled(self.exact, function, **_frame(self.case, function))
        result = joined(method(*self.states.inputs(function)), 1)
        exact = relative_error(result, truth)
        _require(self.case.title, f"chasles, snap=False, {function}", exact, TOLERANCE)
        timed = checked(self.case.title, function, routes, truth, self.tolerance, self.effort)
        return Row(self.name, function, timed, exact, self.tolerance)

    def compile(self, function: str) -> Compilation:
        """Trace, compile, and load what was compiled, each for a robot that knows nothing yet.

        Derivatives, which may take a minute, once: the timed robot then finds them in the cache.
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
    """The times of all routes, whose answers were right before and after."""
    for route in routes:
        route.run()
    _errors(title, function, routes, truth, tolerance)
    times = interleaved([r.run for r in routes], effort.rounds)
    errors = _errors(title, function, routes, truth, tolerance)
    return tuple(map(_timed, routes, times, errors))


def _errors(
    title: str, function: str, routes: Sequence[Route], truth: Array, tolerance: float
) -> list[float]:
    """The error of every route, each within its tolerance."""
    errors = []
    for route in routes:
        errors.append(relative_error(route.answers(), truth[: route.count]))
        allowed = tolerance if route.library == "chasles" else TOLERANCE
        _require(title, f"{route.library}, {route.label}, {function}", errors[-1], allowed)
    return errors


def _require(title: str, what: str, error: float, allowed: float) -> None:
    if not error <= allowed:
        raise WrongAnswer(
            f"{title}: {what}: relative error {error:.1e} against Pinocchio, allowed {allowed:.1e}"
        )


@contextmanager
def empty_cache() -> Iterator[None]:
    """Compiled functions are kept in a folder of their own, which is empty at first."""
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
    """The largest difference of a state's results, relative to the largest of them; worst state."""
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
    """How long something takes in a process that has loaded no code yet.

    The time of the processes that compile for it is included.
    """
    llvm.forget()
    return seconds(run, lambda: int(sum(os.times()[:4]) * 1e9))


def _trace(robot: chasles.Robot, function: str, **options: Any) -> object:
    """The program of a benchmark's function."""
    name = DERIVED.get(function)
    if name is None:
        name, method = method_of(function)
        return runnable(robot.model, name, method=method, staged=STAGED, **options)
    derivative = Derivative("jacobian", INPUTS[function])
    return runnable(robot.model, name, derivative=derivative, staged=STAGED)
