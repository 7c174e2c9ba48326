"""The command `chasles demo`: compute and check the joint torques of a moving arm."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.console import Console

from chasles.cli.command import FOUND, Answer, check_new_picture, table, write_picture, write_saved
from chasles.cli.options import Overwrite, option
from chasles.cli.timing import CALLS, Way, interleaved, loop
from chasles.functions.compiled import Compiled
from chasles.plots.paper import energies, finish, forces, legend, sheet
from chasles.robot import Robot
from chasles.robots import puma560

START = np.radians([-90.0, 110.0, -160.0, 0.0, 0.0, 0.0])
END = np.radians([60.0, 20.0, -20.0, 90.0, 60.0, 120.0])
DURATION = 2.0
STEPS = 500
BATCH = 4096
SECONDS = 0.05
TIMED = ("inverse_dynamics", "forward_dynamics", "mass_matrix")


def demo(
    output: Annotated[
        Path | None,
        option("Plot to write (.png, .svg, .pdf). Default: demo.png.", "--output", "-o"),
    ] = None,
    overwrite: Overwrite = False,
) -> Answer:
    """Compute the torques of a moving arm, check them, and save a plot.

    The built-in PUMA 560 follows a smooth motion. Inverse dynamics computes its
    joint torques.

    Checks that forward dynamics reproduces the motion, and that the work done
    equals the change in energy.

    Examples:
        chasles demo
        chasles demo --output puma.svg
    """
    output = output or _unused()
    check_new_picture(output, overwrite=overwrite)
    result = run()
    _plot(result, output, overwrite=overwrite)
    passed = all(check.passed for check in result.checks)
    data = _data(result) | {"files": {"plot": output}}
    return Answer(data, partial(_show, result, output), 0 if passed else FOUND)


def _unused() -> Path:
    """Return the first unused name among demo.png, demo-2.png, demo-3.png, ..."""
    names = (Path(f"demo-{k}.png" if k > 1 else "demo.png") for k in itertools.count(1))
    return next(path for path in names if not path.exists())


# Computation -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """A computed value that should be zero, with the tolerance for rounding errors."""

    what: str
    value: float
    unit: str
    bound: float

    @property
    def passed(self) -> bool:
        return self.value < self.bound


@dataclass(frozen=True)
class Speed:
    """Operation count, compile time (s), time per call (s) and time per state (s) of a function."""

    function: str
    operations: int
    compile: float
    call: float
    state: float


@dataclass(frozen=True)
class Demo:
    """Motion, torques, energies, checks and timings of the demo."""

    robot: Robot
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    kinetic: np.ndarray
    potential: np.ndarray
    work: np.ndarray
    recovered: np.ndarray
    checks: tuple[Check, ...]
    speeds: tuple[Speed, ...]


def run(*, steps: int = STEPS, batch: int = BATCH) -> Demo:
    """Compute a motion of the PUMA 560, and check its torques by simulation and energy balance.

    Samples are half an integration step apart, because the Runge-Kutta method and Simpson's rule
    need midpoints.
    """
    robot, h = puma560(), DURATION / steps
    compiled = {name: _timed(partial(robot.function, name)) for name in TIMED}
    t = np.linspace(0.0, DURATION, 2 * steps + 1)
    q, qd, qdd = minimum_jerk(START, END, t)
    tau = robot.inverse_dynamics(q, qd, qdd)
    residual = robot.forward_dynamics(q, qd, tau) - qdd
    recovered = robot.simulate(
        *(q[0], qd[0]),
        duration=DURATION,
        dt=h,
        control=lambda t, q, qd: tau[round(2.0 * t / h)],
        compiled=False,
    ).q
    kinetic, potential = robot.kinetic_energy(q, qd), robot.potential_energy(q)
    power = np.sum(tau * qd, axis=-1)
    simpson = h / 6.0 * (power[:-2:2] + 4.0 * power[1:-1:2] + power[2::2])
    work = np.concatenate([[0.0], np.cumsum(simpson)])
    gained = (kinetic + potential - kinetic[0] - potential[0])[::2]
    ends = [robot.forward_kinematics(x[-1], frame="tool")[:3, 3] for x in (q, recovered)]
    checks = (
        Check("acceleration, forward vs. inverse", _largest(residual), "rad/s²", 1e-9),
        Check("angles, integrated from torques", _largest(recovered - q[::2]), "rad", 1e-6),
        Check("tool position, integrated", _largest(ends[1] - ends[0]), "m", 1e-6),
        Check("work minus change in energy", _largest(work - gained), "J", 1e-6),
    )
    speeds = tuple(_speed(name, batch, *compiled[name]) for name in TIMED)
    return Demo(robot, t, q, qd, qdd, tau, kinetic, potential, work, recovered, checks, speeds)


def minimum_jerk(
    start: np.ndarray, end: np.ndarray, t: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions, velocities and accelerations of a minimum-jerk motion at times t.

    See Flash and Hogan (1985).
    """
    duration = t[-1] - t[0]
    u, way = ((t - t[0]) / duration)[:, None], end - start
    s = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    ds = 30.0 * u**2 * (1.0 - u) ** 2
    dds = 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u)
    return start + way * s, way * ds / duration, way * dds / duration**2


def _largest(x: np.ndarray) -> float:
    return float(np.max(np.abs(x)))


def _timed(make: Callable[[], Compiled]) -> tuple[Compiled, float]:
    begin = time.perf_counter()
    return make(), time.perf_counter() - begin


def _speed(name: str, batch: int, compiled: Compiled, compile_time: float) -> Speed:
    """Return the shortest times of single calls and of batches, on one thread."""
    rng = np.random.default_rng(1)
    inputs = [rng.uniform(-1.0, 1.0, (batch, *v.shape)) for v in compiled.program.inputs]
    out = np.empty((batch, *compiled.program.outputs[0].shape))
    single = partial(compiled.fast, out=out[0])  # the entry point that robot methods use
    states = [tuple(x[0] for x in inputs)] * CALLS
    ways = [
        Way(CALLS, partial(loop, single, states), time.perf_counter),
        Way(batch, partial(compiled, *inputs, out=out), time.perf_counter),
    ]
    call, state = interleaved(ways, SECONDS)
    return Speed(name, compiled.program.count.flops, compile_time, call, state)


# Report ----------------------------------------------------------------------------------------


def _data(demo: Demo) -> dict[str, Any]:
    """Return machine-readable results in rad, rad/s, N m and s."""
    return {
        "robot": demo.robot.name,
        "duration": demo.t[-1],
        "joints": [
            {
                "name": name,
                "from": demo.q[0, k],
                "to": demo.q[-1, k],
                "peak_speed": np.max(np.abs(demo.qd[:, k])),
                "peak_torque": np.max(np.abs(demo.tau[:, k])),
                "rms_torque": np.sqrt(np.mean(demo.tau[:, k] ** 2)),
            }
            for k, name in enumerate(demo.robot.joints)
        ],
        "checks": [vars(check) | {"passed": check.passed} for check in demo.checks],
        "speeds": [vars(speed) for speed in demo.speeds],
    }


def _show(demo: Demo, output: Path, console: Console) -> None:
    """Print joint motions, checks and timings. `output` is the path of the plot."""
    robot = demo.robot
    duration = f"{demo.t[-1]:g} s"
    console.print(f"[bold]{robot.name}[/] moves {robot.nv} joints from rest to rest in {duration}.")
    console.print(f"Joint torques for {len(demo.t)} states from inverse dynamics, in one call:")
    rows = table(
        ["joint"], ["from °", "to °", "peak °/s", "peak N m", "rms N m", "of torque limit"]
    )
    for joint in _data(demo)["joints"]:
        share = joint["peak_torque"] / robot.joint(joint["name"]).limits.effort
        angles = (f"{np.degrees(joint[key]):.0f}" for key in ("from", "to", "peak_speed"))
        torques = (f"{joint[key]:.2f}" for key in ("peak_torque", "rms_torque"))
        rows.add_row(f"[cyan]{joint['name']}[/]", *angles, *torques, f"{share:.0%}")
    console.print(rows)
    console.print("Checks: simulation reproduces the motion, and work equals the change in energy:")
    rows = table(["", "expected: zero"], ["largest", "allowed"])
    for x in demo.checks:
        mark = "[green]ok[/]" if x.passed else "[bold red]NO[/]"
        rows.add_row(mark, x.what, f"{x.value:.1e} {x.unit}", f"{x.bound:.0e} {x.unit}")
    console.print(rows)
    console.print(
        f"Compiled functions for this robot on one core; single call and batch of {BATCH} states:"
    )
    rows = table(
        ["function"], ["mul, add", "compile ms", "call µs", "ns/state", "million states/s"]
    )
    for speed in demo.speeds:
        times = f"{1e3 * speed.compile:.0f}", f"{1e6 * speed.call:.2f}", f"{1e9 * speed.state:.1f}"
        rate = f"[bold]{1e-6 / speed.state:.0f}[/]"
        rows.add_row(f"[cyan]{speed.function}[/]", f"{speed.operations}", *times, rate)
    console.print(rows)
    write_saved(console, {"plot": output})


def _plot(demo: Demo, path: Path, *, overwrite: bool) -> None:
    """Save a plot of joint angles, torques and energies over time."""
    figure, (angles, torques, energy) = sheet(3)
    steps = demo.t[::2]
    some = slice(None, None, max(1, len(steps) // 12))
    for k in range(demo.robot.nv):
        angles.plot(demo.t, np.degrees(demo.q[:, k]), f"C{k}")
        angles.plot(steps[some], np.degrees(demo.recovered[some, k]), f"C{k}o", markersize=3)
    finish(angles, "joint angles (°); dots: simulated", "time (s)")
    forces(demo.robot, demo.tau, demo.t, torques)
    energies(demo.kinetic, demo.potential, demo.t, energy)
    some = slice(None, None, max(1, len(steps) // 25))
    energy.plot(steps[some], demo.work[some], "k.", label="work done by the torques")
    legend(energy)
    write_picture(figure, path, overwrite=overwrite)
