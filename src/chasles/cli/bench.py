"""The measurement of `chasles bench`: a robot's main functions, timed on this machine.

Times are the least of many, the ways of a function taking turns, so that all meet the same noise.
The clock is the processor time of this process, which leaves out waiting for other programs; for
several cores it is the one on the wall. Pinocchio is called from Python for each state, after its
answers were compared; it keeps no result, which favours it.
"""

import gc
import os
import re
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np

from chasles import conventions
from chasles.api import compile
from chasles.backends.arrays import cores
from chasles.errors import InputError, ModelError, said
from chasles.functions.compiled import Compiled
from chasles.robot import Robot


@dataclass(frozen=True)
class Function:
    """What is timed: a function or all its first derivatives, and the arrays it takes."""

    name: str
    inputs: tuple[str, ...]
    derivatives: bool = False

    @property
    def title(self) -> str:
        return f"{self.name}, derivatives" if self.derivatives else self.name


FUNCTIONS = (
    Function("inverse_dynamics", ("q", "qd", "qdd")),
    Function("inverse_dynamics", ("q", "qd", "qdd"), derivatives=True),
    Function("forward_dynamics", ("q", "qd", "tau")),
    Function("forward_dynamics", ("q", "qd", "tau"), derivatives=True),
    Function("mass_matrix", ("q",)),
)

PINOCCHIO = {
    "inverse_dynamics": "rnea",
    "mass_matrix": "crba",
    "forward_dynamics": "aba",
    "inverse_dynamics, derivatives": "computeRNEADerivatives",
    "forward_dynamics, derivatives": "computeABADerivatives",
}
"""Its name for each of them."""

STEPS = 2 * len(FUNCTIONS)
"""How often `run` says what it is doing."""

CALLS = 256
"""States in a loop of single calls."""

CHECKED = 32
"""States whose results are compared with Pinocchio's."""

SECONDS = 0.7
"""How long the ways of one function are timed."""

EXACT = 1e-8
SNAPPED = 1e3
"""Relative error allowed, and more for each radian that snapping moved an angle of the file."""


class WrongAnswer(InputError):
    """Pinocchio has another result for the same robot and state, so no time means anything."""


@dataclass(frozen=True)
class Speed:
    """Seconds of one function: to trace and compile it, for one call, for a state of a batch.

    one_core, all_cores: float64; single: float32 on one core. pinocchio: its call from Python.
    error: relative, against Pinocchio.
    """

    function: Function
    compile: float
    call: float
    one_core: float
    all_cores: float
    single: float
    pinocchio: float | None = None
    error: float | None = None


@dataclass(frozen=True)
class Bench:
    """All speeds of a robot; note: why Pinocchio is not beside them, empty if it is."""

    robot: Robot
    batch: int
    cores: int
    speeds: tuple[Speed, ...]
    note: str


@dataclass(frozen=True)
class Way:
    """Something to time: how many states a run computes, the run, and the clock for it."""

    states: int
    run: Callable[[], object]
    clock: Callable[[], float]


@dataclass(frozen=True)
class Peer:
    """The same robot in Pinocchio."""

    library: Any
    model: Any
    data: Any
    convention: conventions.Convention

    def call(self, function: Function) -> Callable[..., Any]:
        """Its function of one state."""
        return partial(getattr(self.library, PINOCCHIO[function.title]), self.model, self.data)

    def inputs(self, function: Function, states: dict[str, np.ndarray]) -> list[np.ndarray]:
        """A function's arrays in its coordinates."""
        q, qd = states["q"], states["qd"]
        there = {
            "q": self.convention.to_position(q),
            "qd": self.convention.to_velocity(q, qd),
            "qdd": self.convention.to_acceleration(q, qd, states["qdd"]),
            "tau": self.convention.to_effort(q, states["tau"]),
        }
        return [np.ascontiguousarray(there[name]) for name in function.inputs]

    def answer(self, function: Function, *arguments: np.ndarray) -> list[np.ndarray]:
        """Its results of one state, in our coordinates."""
        found = self.call(function)(*arguments)
        x = arguments[0]
        arrays = [np.array(a) for a in (found if isinstance(found, tuple) else (found,))]
        back = self.convention
        return [
            back.from_mass_matrix(x, a) if a.ndim == 2 else back.from_effort(x, a) for a in arrays
        ]


def run(
    robot: Robot,
    target: str,
    *,
    floating: bool = False,
    batch: int = 4096,
    seconds: float = SECONDS,
    step: Callable[[str], None] = lambda _: None,
) -> Bench:
    """Compile, check and time every function; `step` is told what comes next."""
    rng = np.random.default_rng(0)
    qd, qdd, tau = rng.normal(size=(3, batch, robot.nv))
    states = {"q": robot.random(rng, size=batch), "qd": qd, "qdd": qdd, "tau": tau}
    peer, note = _peer(robot, target, floating)
    speeds = []
    with _empty_cache():
        for function in FUNCTIONS:
            step(f"compiling {function.title}")
            begin = time.perf_counter()
            compiled = _compiled(robot, function)
            taken = time.perf_counter() - begin
            step(f"timing {function.title}")
            speeds.append(_speed(robot, function, compiled, taken, states, peer, seconds))
    return Bench(robot, batch, cores(), tuple(speeds), note)


def _compiled(robot: Robot, function: Function) -> Compiled:
    return compile(robot, function.name, wrt=function.inputs if function.derivatives else None)


def _peer(robot: Robot, target: str, floating: bool) -> tuple[Peer | None, str]:
    """Pinocchio's model of a .urdf file, or why there is none."""
    if Path(target).suffix.lower() != ".urdf":
        return None, "Pinocchio reads .urdf files only, so it is not beside these times."
    try:
        pinocchio = import_module("pinocchio")
    except ImportError:
        return None, "To have Pinocchio beside these times: pip install pin"
    root = [pinocchio.JointModelFreeFlyer()] if floating else []
    try:
        model = pinocchio.buildModelFromUrdf(target, *root)
        there = conventions.pinocchio(robot, list(model.names)[1:])
    except (ValueError, ModelError) as error:
        hint = " Try --no-mimic." if robot.moving_joints != robot.joints else ""
        return None, f"Pinocchio is not beside these times: {said(error)}.{hint}"
    return Peer(pinocchio, model, model.createData(), there), ""


def _speed(
    robot: Robot,
    function: Function,
    compiled: Compiled,
    compile_time: float,
    states: dict[str, np.ndarray],
    peer: Peer | None,
    seconds: float,
) -> Speed:
    """Check and time a function; on one core by the faster of both ways to call it.

    The fast entry may share a batch among threads, but the processor time of all of them counts.
    """
    arrays = [states[name] for name in function.inputs]
    short = [x.astype(np.float32) for x in arrays]
    out, short_out = compiled(*arrays, threads=1), compiled(*short, threads=1)
    rows = list(zip(*(x[:CALLS] for x in arrays), strict=True))
    count, calls = len(arrays[0]), len(rows)
    processor, wall = time.process_time, time.perf_counter
    call = _single_call(robot, function, compiled, rows[0])
    ways = [
        Way(calls, partial(_loop, call, rows), processor),
        Way(count, partial(compiled, *arrays, out=out, threads=cores()), wall),
        Way(count, partial(compiled, *arrays, out=out, threads=1), processor),
        Way(count, partial(compiled.fast, *arrays, out=out), processor),
        Way(count, partial(compiled, *short, out=short_out, threads=1), processor),
        Way(count, partial(compiled.single.fast, *short, out=short_out), processor),
    ]
    error = None
    if peer is not None:
        theirs = list(zip(*(x[:CALLS] for x in peer.inputs(function, states)), strict=True))
        error = _checked(robot, function, peer, theirs[:CHECKED], out)
        ways.append(Way(calls, partial(_loop, peer.call(function), theirs), processor))
    one, several, plain, fast, plain_single, fast_single, *their_time = interleaved(ways, seconds)
    return Speed(
        function,
        compile_time,
        call=one,
        one_core=min(plain, fast),
        all_cores=several,
        single=min(plain_single, fast_single),
        pinocchio=their_time[0] if their_time else None,
        error=error,
    )


def _single_call(
    robot: Robot, function: Function, compiled: Compiled, row: Sequence[np.ndarray]
) -> Callable[..., Any]:
    """What a user calls for one state: the method after its first call, or the fast entry."""
    if function.derivatives:
        return compiled.fast
    getattr(robot, function.name)(*row)
    method: Callable[..., Any] = getattr(robot, function.name)
    return method


def _checked(
    robot: Robot, function: Function, peer: Peer, rows: Sequence[tuple[np.ndarray, ...]], out: Any
) -> float:
    """The largest relative difference from Pinocchio's results; an error if it is too large."""
    allowed = EXACT + SNAPPED * _snapped_angle(robot)
    mine = out if isinstance(out, tuple) else (out,)
    worst = 0.0
    for k, row in enumerate(rows):
        for a, b in zip(mine, peer.answer(function, *row), strict=True):
            worst = max(worst, float(np.max(np.abs(a[k] - b)) / np.max(np.abs(b))))
            if not np.all(np.isfinite(a[k])) or not worst <= allowed:
                problem = (
                    f"{function.title} differs from Pinocchio's by {worst:.1e} of its size, more "
                    f"than {allowed:.1e}"
                )
                raise WrongAnswer("E-CLI-001", problem, "nothing was timed", part=robot.name)
    return worst


def _snapped_angle(robot: Robot) -> float:
    """The sum of all changes of angles in the file by snapping, in radians."""
    found = (re.search(r"angle (\S+) taken as", note) for note in robot.notes)
    angles = (float(match[1]) for match in found if match)
    return float(sum(abs(np.remainder(a + np.pi / 4, np.pi / 2) - np.pi / 4) for a in angles))


def _loop(call: Callable[..., Any], rows: Sequence[tuple[Any, ...]]) -> None:
    """Call for every row and keep nothing: the loop itself runs in C."""
    deque(starmap(call, rows), maxlen=0)


def interleaved(ways: Sequence[Way], seconds: float) -> list[float]:
    """The least seconds of each way for a state: in turns for about so long, at least three."""
    least = [float("inf")] * len(ways)
    collecting = gc.isenabled()
    gc.disable()
    try:
        end, turns = time.perf_counter() + seconds, 0
        while turns < 3 or time.perf_counter() < end:
            for k, way in enumerate(ways):
                way.run()  # so that none pays for what another left in the caches
                begin = way.clock()
                way.run()
                least[k] = min(least[k], (way.clock() - begin) / way.states)
            turns += 1
    finally:
        if collecting:
            gc.enable()
    return least


@contextmanager
def _empty_cache() -> Iterator[None]:
    """Nothing is on disk at first, so that compiling takes what it takes."""
    before = os.environ.get("CHASLES_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CHASLES_CACHE"] = folder
        try:
            yield
        finally:
            del os.environ["CHASLES_CACHE"]
            if before is not None:
                os.environ["CHASLES_CACHE"] = before
