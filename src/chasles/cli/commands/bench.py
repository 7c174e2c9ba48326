"""The command `chasles bench`: time a robot's main functions on this machine.

Each reported time is the minimum over many interleaved runs. Single-core times are CPU times, and
multi-core times are wall-clock times. Pinocchio is called from Python once per state, after its
results have been checked. The timed calls to Pinocchio discard the results, which gives Pinocchio a
small advantage.
"""

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape

from chasles import conventions
from chasles.api import compile
from chasles.backends.arrays import checked_count, cores
from chasles.cli.command import Answer, check_new_picture, steps, table, write_picture, write_saved
from chasles.cli.options import Asked, Overwrite, option
from chasles.cli.timing import CALLS, Way, interleaved, loop
from chasles.errors import InputError, ModelError, said
from chasles.functions.compiled import Compiled
from chasles.peers.pinocchio import Pinocchio
from chasles.plots.paper import finish, legend, sheet
from chasles.robot import Robot

if TYPE_CHECKING:
    from chasles.cli.roofline import Roofline, Row


class Function(NamedTuple):
    """A function to time (or its first derivatives), and the equivalent Pinocchio function."""

    name: str
    inputs: tuple[str, ...]
    pinocchio: str
    derivatives: bool = False

    @property
    def title(self) -> str:
        return f"{self.name}, derivatives" if self.derivatives else self.name


FUNCTIONS = (
    Function("inverse_dynamics", ("q", "qd", "qdd"), "rnea"),
    Function("inverse_dynamics", ("q", "qd", "qdd"), "computeRNEADerivatives", derivatives=True),
    Function("forward_dynamics", ("q", "qd", "tau"), "aba"),
    Function("forward_dynamics", ("q", "qd", "tau"), "computeABADerivatives", derivatives=True),
    Function("mass_matrix", ("q",), "crba"),
)

STEPS = 2 * len(FUNCTIONS) + 1
"""Number of steps in the progress bar."""

CHECKED = 32
"""Number of states at which results are compared with Pinocchio."""

LARGE = 2**27
"""Array size (bytes) for a batch that exceeds every CPU cache."""

MOST_STATES = 2**40
"""Maximum number of states in a batch."""

SECONDS = 0.7
"""Time budget (s) for timing one function."""

EXACT = 1e-8
SNAPPED = 1e3
"""Relative tolerance for Pinocchio's results, and its increase per radian of angle difference.

On loading, chasles replaces rounded multiples of pi/2 by exact ones, but Pinocchio uses the rounded
angles.
"""


class WrongAnswer(InputError):
    """Exception raised if a result differs from Pinocchio's result."""


@dataclass(frozen=True)
class Speed:
    """Compile time, time per call, and times per state (s) of one function.

    `one_core` and `all_cores` are times per state in a float64 batch. `single` is the time per
    state in a float32 batch on one core. `pinocchio` is the time of one call from Python. `error`
    is the relative difference from Pinocchio's result.
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
    """Benchmark results for one robot.

    `note` is the reason why Pinocchio was not timed, or "". `left_out` contains the names of the
    functions that cannot be compiled for this robot, because it has loops or couplings.
    """

    robot: Robot
    batch: int
    cores: int
    speeds: tuple[Speed, ...]
    roofline: "Roofline"
    note: str
    left_out: tuple[str, ...] = ()


class Peer(NamedTuple):
    """Pinocchio model of the robot, and the conversion between Pinocchio and chasles states."""

    robot: Pinocchio
    convention: conventions.Convention

    def call(self, function: Function) -> Callable[..., Any]:
        """Return a function that calls Pinocchio for one state."""
        there = self.robot
        return partial(getattr(there.library, function.pinocchio), there.model, there.data)

    def inputs(self, function: Function, states: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Convert the inputs of a function to Pinocchio's coordinates."""
        to, q, qd = self.convention, states["q"], states["qd"]
        there = {
            "q": to.to_position(q),
            "qd": to.to_velocity(q, qd),
            "qdd": to.to_acceleration(q, qd, states["qdd"]),
            "tau": to.to_effort(q, states["tau"]),
        }
        return [np.ascontiguousarray(there[name]) for name in function.inputs]

    def answer(self, function: Function, x: np.ndarray, *rest: np.ndarray) -> list[np.ndarray]:
        """Return Pinocchio's results for one state, converted to chasles coordinates."""
        found, back = self.call(function)(x, *rest), self.convention
        arrays = map(np.array, found if isinstance(found, tuple) else (found,))
        return [
            back.from_mass_matrix(x, a) if a.ndim == 2 else back.from_effort(x, a) for a in arrays
        ]


def bench(
    asked: Asked,
    batch: Annotated[int, option("Number of states in a batch.", min=1)] = 4096,
    output: Annotated[Path, option("Plot to write (.png, .svg, .pdf).", "--output", "-o")] = Path(
        "bench.png"
    ),
    gpu: Annotated[
        bool, option("Also time GPU kernels if a GPU is available.", "--gpu/--no-gpu")
    ] = True,
    overwrite: Overwrite = False,
) -> Answer:
    """Time a robot's main functions and their derivatives on this machine.

    Times single calls from Python, and batches on one core, on all cores and in
    float32. Compares the times with the machine's arithmetic and memory limits.

    If Pinocchio is installed, it is also timed on .urdf files, after its results
    have been checked.

    Examples:
        chasles bench panda
        chasles bench robot.urdf --floating --output bench.png
    """
    check_new_picture(output, overwrite=overwrite)
    robot, target = asked.robot(), str(asked.file or asked.target)
    if robot.moving_joints != robot.joints and _has_peer(target):
        robot = replace(asked, how=replace(asked.how, mimic=False)).robot()
    floating = asked.how.floating
    with steps(STEPS) as step:
        result = run(robot, target, floating=floating, batch=batch, gpu=gpu, step=step)
    _plot(result, output, overwrite=overwrite)
    return Answer(_data(result) | {"files": {"plot": output}}, partial(show, result, output))


def run(
    robot: Robot,
    target: str,
    *,
    floating: bool = False,
    batch: int = 4096,
    seconds: float = SECONDS,
    large: int = LARGE,
    gpu: bool = True,
    step: Callable[[str], None] = lambda _: None,
) -> Bench:
    """Compile, check and time every function.

    `large` is the array size (bytes) of the largest batch. If `gpu` is True and there is a GPU, GPU
    kernels are also timed. `step` is called with the name of each step.
    """
    states = _states(robot, checked_count("bench: --batch", batch, most=MOST_STATES))
    left_out = [f.name for f in FUNCTIONS if robot.mechanism.opens(f.name)]
    peer, note = _peer(robot, target, floating)
    step("measuring the machine")
    from chasles.cli.roofline import Roofline  # slow import that loads LLVM

    roofline = Roofline.measured(gpu=gpu)
    speeds: list[Speed] = []
    rows: list[Row] = []
    with _empty_cache():
        for function in (f for f in FUNCTIONS if f.name not in left_out):
            step(f"compiling {function.title}")
            wrt = function.inputs if function.derivatives else None
            begin = time.perf_counter()
            compiled = compile(robot, function.name, wrt=wrt)
            taken = time.perf_counter() - begin
            step(f"timing {function.title}")
            speed = _speed(robot, function, compiled, taken, states, peer, seconds)
            arrays = {name: states[name] for name in function.inputs}
            rows += roofline.known(function.title, compiled, batch, _taken(speed))
            rows += roofline.large(function.title, compiled, arrays, large)
            rows += roofline.on_gpu(function.title, compiled, arrays)
            speeds.append(speed)
    roofline = replace(roofline, rows=tuple(rows))
    unique = tuple(dict.fromkeys(left_out))
    return Bench(robot, batch, cores(), tuple(speeds), roofline, note, unique)


def _states(robot: Robot, batch: int) -> dict[str, np.ndarray]:
    """Return random states, or raise an error if they do not fit in memory."""
    rng = np.random.default_rng(0)
    try:
        qd, qdd, tau = rng.normal(size=(3, batch, robot.nv))
        return {"q": robot.random(rng, size=batch), "qd": qd, "qdd": qdd, "tau": tau}
    except MemoryError:
        size = 8e-9 * batch * (robot.nq + 3 * robot.nv)
        problem = f"{batch} states need {size:.3g} GB, more than the available memory"
        raise InputError("E-CLI-390", problem, "reduce `--batch`", part="bench") from None


def _has_peer(target: str) -> bool:
    """Return True if Pinocchio is installed and can read the robot's file."""
    return Path(target).suffix.lower() == ".urdf" and find_spec("pinocchio") is not None


def _peer(robot: Robot, target: str, floating: bool) -> tuple[Peer | None, str]:
    """Load a .urdf file in Pinocchio. On failure, return None and the reason."""
    if Path(target).suffix.lower() != ".urdf":
        return None, "Pinocchio reads only .urdf files, so its times are not shown."
    try:
        there = Pinocchio(Path(target), floating=floating)
        return Peer(there, conventions.pinocchio(robot, there.joints)), ""
    except ImportError:
        return None, "Install Pinocchio to compare with it: pip install pin"
    except (ValueError, ModelError) as error:
        hint = " Try again with --no-mimic." if robot.moving_joints != robot.joints else ""
        return None, f"Pinocchio times are not shown: {said(error)}.{hint}"


def _speed(
    robot: Robot,
    function: Function,
    compiled: Compiled,
    compile_time: float,
    states: dict[str, np.ndarray],
    peer: Peer | None,
    seconds: float,
) -> Speed:
    """Check and time a function.

    The single-core time is the shorter of the times for `compiled` and `compiled.fast`.
    """
    arrays = [states[name] for name in function.inputs]
    short = [x.astype(np.float32) for x in arrays]
    out, short_out = compiled(*arrays, threads=1), compiled(*short, threads=1)
    rows = list(zip(*(x[:CALLS] for x in arrays), strict=True))
    count, calls = len(arrays[0]), len(rows)
    processor, wall = time.process_time, time.perf_counter
    if function.derivatives:
        call: Callable[..., Any] = compiled.fast
    else:  # time the public method, after a first call that compiles it
        getattr(robot, function.name)(*rows[0])
        call = getattr(robot, function.name)
    ways = [
        Way(calls, partial(loop, call, rows), processor),
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
        ways.append(Way(calls, partial(loop, peer.call(function), theirs), processor))
    one, several, plain, fast, plain_single, fast_single, *their_time = interleaved(ways, seconds)
    batches = (min(plain, fast), several, min(plain_single, fast_single))
    pinocchio = their_time[0] if their_time else None
    return Speed(function, compile_time, one, *batches, pinocchio, error)


def _checked(
    robot: Robot, function: Function, peer: Peer, rows: Sequence[tuple[np.ndarray, ...]], out: Any
) -> float:
    """Return the largest relative difference from Pinocchio; raise an error if it is too large."""
    notes = (re.search(r"angle (\S+) taken as", note) for note in robot.notes)
    angles = np.array([float(match[1]) for match in notes if match])
    snapped = np.sum(np.abs(np.remainder(angles + np.pi / 4, np.pi / 2) - np.pi / 4))
    allowed, worst = EXACT + SNAPPED * float(snapped), 0.0
    mine = out if isinstance(out, tuple) else (out,)
    for k, row in enumerate(rows):
        for a, b in zip(mine, peer.answer(function, *row), strict=True):
            worst = max(worst, float(np.max(np.abs(a[k] - b)) / np.max(np.abs(b))))
            if not np.all(np.isfinite(a[k])) or not worst <= allowed:
                problem = (
                    f"{function.title} differs from Pinocchio's result: relative error "
                    f"{worst:.1e}, tolerance {allowed:.1e}"
                )
                remedy = "run `chasles compare` to list all differences"
                raise WrongAnswer("E-CLI-001", problem, remedy, part=robot.name)
    return worst


@contextmanager
def _empty_cache() -> Iterator[None]:
    """Use a temporary, empty cache, so that every function is compiled."""
    before = os.environ.get("CHASLES_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CHASLES_CACHE"] = folder
        try:
            yield
        finally:
            del os.environ["CHASLES_CACHE"]
            if before is not None:
                os.environ["CHASLES_CACHE"] = before


def _data(bench: Bench) -> dict[str, Any]:
    """Return machine-readable results: times in s, errors relative to Pinocchio's results."""
    return {
        "robot": bench.robot.name,
        "nv": bench.robot.nv,
        "batch": bench.batch,
        "cores": bench.cores,
        "speeds": [vars(speed) | {"function": speed.function.title} for speed in bench.speeds],
        "note": bench.note or None,
        "left_out": bench.left_out,
        "machine": bench.roofline.data(),
        "roofline": [row.data() for row in bench.roofline.rows],
    }


def show(bench: Bench, output: Path, console: Console) -> None:
    """Print the times and the speedups over Pinocchio. `output` is the path of the plot."""
    console.print(
        f"[bold]{escape(bench.robot.name)}[/] (nv {bench.robot.nv}): time per "
        f"call from Python, and per state in a batch of {bench.batch}:"
    )
    columns = ["compile s", "call µs", "1 core ns", f"{bench.cores} cores ns", "float32 ns"]
    rows = table(["function"], columns)
    for speed in bench.speeds:
        batches = (speed.one_core, speed.all_cores, speed.single)
        times = (f"{1e9 * t:.0f}" if t >= 1e-7 else f"{1e9 * t:.1f}" for t in batches)
        rows.add_row(_label(speed), f"{speed.compile:.2f}", f"{1e6 * speed.call:.2f}", *times)
    console.print(rows)
    if bench.left_out:
        names = ", ".join(bench.left_out)
        console.print(f"Not timed for a robot with loops or couplings: {names}.", markup=False)
    if bench.note:
        console.print(bench.note, markup=False)
    else:
        console.print("Speedup over Pinocchio called from Python once per state:")
        their = ["Pinocchio µs", "call", "1 core", f"{bench.cores} cores", "float32", "differ"]
        rows = table(["function"], their)
        for speed in bench.speeds:
            if speed.pinocchio is not None and speed.error is not None:
                ratios = (f"[bold]{speed.pinocchio / taken:.1f}[/]" for taken in _taken(speed))
                call = f"{1e6 * speed.pinocchio:.2f}"
                rows.add_row(_label(speed), call, *ratios, f"{speed.error:.0e}")
        console.print(rows)
        if bench.robot.moving_joints == bench.robot.joints and _mimics(bench.robot):
            console.print("Mimic joints have their own coordinates, as in Pinocchio.")
    bench.roofline.show(console)
    write_saved(console, {"plot": output})


def _mimics(robot: Robot) -> bool:
    return any(joint.mimic is not None for joint in robot.model.source.joints)


def _label(speed: Speed) -> str:
    """Return the row label for a function. Labels of derivatives are indented."""
    return "  derivatives" if speed.function.derivatives else f"[cyan]{speed.function.name}[/]"


def _taken(speed: Speed) -> tuple[float, ...]:
    return speed.call, speed.one_core, speed.all_cores, speed.single


def _plot(bench: Bench, path: Path, *, overwrite: bool) -> None:
    """Save a bar chart of the times per state, grouped by function."""
    labels = ["one call", "batch, 1 core", f"batch, {bench.cores} cores", "batch, 1 core, float32"]
    bars = [[1e6 * x for x in _taken(speed)] for speed in bench.speeds]
    if not bench.note:
        labels.insert(0, "Pinocchio, single call")
        bars = [[1e6 * (s.pinocchio or 0.0), *b] for s, b in zip(bench.speeds, bars, strict=True)]
    colors = (["0.6"] if not bench.note else []) + ["C0", "C1", "C2", "C3"]
    figure, (axes,) = sheet(1, (8.0, 4.2))
    width = 0.8 / len(labels)
    for k, (label, color) in enumerate(zip(labels, colors, strict=True)):
        places = [row + (k + 0.5) * width - 0.4 for row in range(len(bars))]
        axes.barh(places, [row[k] for row in bars], width, label=label, color=color)
    axes.set_yticks(range(len(bars)), [s.function.title.replace(", ", ",\n") for s in bench.speeds])
    axes.invert_yaxis()
    axes.set_xscale("log")
    legend(axes)
    title = f"{bench.robot.name}, batches of {bench.batch}"
    finish(axes, title, "time per state (µs), lower is better")
    axes.grid(visible=False, axis="y")
    write_picture(figure, path, overwrite=overwrite)
