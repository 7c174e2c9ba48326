"""The experiment of `chasles demo`: an arm moves, and three independent routes must agree on it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from chasles.functions.compiled import Compiled
from chasles.robot import Robot
from chasles.robots import puma560

START = np.radians([-90.0, 110.0, -160.0, 0.0, 0.0, 0.0])
END = np.radians([60.0, 20.0, -20.0, 90.0, 60.0, 120.0])
DURATION = 2.0
STEPS = 500
BATCH = 4096
TIMED = ("inverse_dynamics", "forward_dynamics", "mass_matrix")


@dataclass(frozen=True)
class Check:
    """A number that would be zero in exact arithmetic, and the bound it must stay under."""

    what: str
    value: float
    unit: str
    bound: float

    @property
    def passed(self) -> bool:
        return self.value < self.bound


@dataclass(frozen=True)
class Speed:
    """What one function takes: operations, and seconds to compile, for a call, for a state."""

    function: str
    operations: int
    compile: float
    call: float
    state: float


@dataclass(frozen=True)
class Demo:
    """The motion (one row a sample), the forces and energies found for it, checks and speeds."""

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
    """Move the PUMA 560, and check its torques by forward dynamics and by energy.

    There are two samples a step, so that Runge-Kutta and Simpson find the middle of each.
    """
    robot = puma560()
    compiled = {name: _timed(partial(robot.function, name)) for name in TIMED}
    t = np.linspace(0.0, DURATION, 2 * steps + 1)
    q, qd, qdd = minimum_jerk(START, END, t)
    tau = robot.inverse_dynamics(q, qd, qdd)
    residual = robot.forward_dynamics(q, qd, tau) - qdd
    recovered = simulate(robot, q[0], qd[0], tau, DURATION / steps)
    kinetic, potential = robot.kinetic_energy(q, qd), robot.potential_energy(q)
    work = cumulative_simpson(np.sum(tau * qd, axis=-1), DURATION / steps)
    gained = (kinetic + potential - kinetic[0] - potential[0])[::2]
    ends = [robot.forward_kinematics(x[-1], frame="tool")[:3, 3] for x in (q, recovered)]
    checks = (
        Check("acceleration, forward of inverse", _largest(residual), "rad/s²", 1e-9),
        Check("angles, integrating the torques", _largest(recovered - q[::2]), "rad", 1e-6),
        Check("tool's end, integrating the torques", _largest(ends[1] - ends[0]), "m", 1e-6),
        Check("work of the torques less energy", _largest(work - gained), "J", 1e-6),
    )
    speeds = tuple(_speed(robot, name, batch, *compiled[name]) for name in TIMED)
    return Demo(robot, t, q, qd, qdd, tau, kinetic, potential, work, recovered, checks, speeds)


def minimum_jerk(
    start: np.ndarray, end: np.ndarray, t: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities and accelerations at times t, from rest to rest (Flash, Hogan 1985)."""
    duration = t[-1] - t[0]
    u, way = ((t - t[0]) / duration)[:, None], end - start
    s = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    ds = 30.0 * u**2 * (1.0 - u) ** 2
    dds = 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u)
    return start + way * s, way * ds / duration, way * dds / duration**2


def simulate(robot: Robot, q: np.ndarray, qd: np.ndarray, tau: np.ndarray, h: float) -> np.ndarray:
    """Positions after each step of h seconds; tau holds start, middle and end of every step.

    Runge-Kutta of order four, for robots whose coordinates are angles and lengths.
    """
    positions = [q]
    for first, middle, last in zip(tau[:-2:2], tau[1:-1:2], tau[2::2], strict=True):
        a1 = robot.forward_dynamics(q, qd, first)
        v2 = qd + h / 2.0 * a1
        a2 = robot.forward_dynamics(robot.integrate(q, h / 2.0 * qd), v2, middle)
        v3 = qd + h / 2.0 * a2
        a3 = robot.forward_dynamics(robot.integrate(q, h / 2.0 * v2), v3, middle)
        v4 = qd + h * a3
        a4 = robot.forward_dynamics(robot.integrate(q, h * v3), v4, last)
        q = robot.integrate(q, h / 6.0 * (qd + 2.0 * v2 + 2.0 * v3 + v4))
        qd = qd + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
        positions.append(q)
    return np.array(positions)


def cumulative_simpson(f: np.ndarray, h: float) -> np.ndarray:
    """The integral of f up to the end of each step; f holds start, middle and end of every step."""
    steps = h / 6.0 * (f[:-2:2] + 4.0 * f[1:-1:2] + f[2::2])
    return np.concatenate([[0.0], np.cumsum(steps)])


def _largest(x: np.ndarray) -> float:
    return float(np.max(np.abs(x)))


def _timed(make: Callable[[], Compiled]) -> tuple[Compiled, float]:
    begin = time.perf_counter()
    return make(), time.perf_counter() - begin


def _speed(robot: Robot, name: str, batch: int, compiled: Compiled, compile_time: float) -> Speed:
    """The best of several runs, on one thread, into an array that is reused."""
    rng = np.random.default_rng(1)
    inputs = [rng.uniform(-1.0, 1.0, (batch, *v.shape)) for v in compiled.program.inputs]
    out = np.empty((batch, *compiled.program.outputs[0].shape))
    one, result = [x[0] for x in inputs], out[0]
    state = _best(lambda: compiled(*inputs, out=out), 1) / batch
    call = _best(lambda: compiled.fast(*one, out=result), 200)  # what a method of Robot is
    return Speed(name, compiled.program.count.flops, compile_time, call, state)


def _best(run: Callable[[], object], repeat: int) -> float:
    """Seconds for one run: the least mean of `repeat` runs among nine tries."""
    tries = []
    for _ in range(9):
        begin = time.perf_counter()
        for _ in range(repeat):
            run()
        tries.append((time.perf_counter() - begin) / repeat)
    return min(tries)
