"""Time rollouts on a GPU: steps per second of `robot.rollout` with arrays in GPU memory.

Complete calls from Python are timed by GPU events, including the allocation of the recorded states.
The shortest of several times counts. Before and after timing, results are compared with a rollout
on the CPU in float64. The rate of the CPU, with all its threads, is measured too.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import chasles
from benchmarks.console import WrongAnswer
from benchmarks.gpu import LAYOUTS, Machine, seconds_of
from benchmarks.robots import CASES, chasles_robot
from benchmarks.states import States
from chasles.contact import (
    HuntCrossley,
    Pair,
    Plane,
    Point,
    Rigid,
    SoftContact,
    SoftFriction,
    Sphere,
)
from chasles.rollouts import PDControl

COUNTS = (1024, 16384, 2**17, 2**20)
DT, STEPS = 1e-3, 200
"""Step size (s) and number of steps. In 0.2 s, rounding errors of float32 grow only a little."""

FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
"""Feet of Solo12."""

SPREAD = 0.05
"""Standard deviation of initial positions (rad, m) and velocities (rad/s, m/s)."""

DISTINCT = 4096
"""Number of different initial states. Larger batches repeat them."""

REPEATS, LONGEST = 7, 1.0
"""Maximum number of timed calls, and total time (s) after which timing ends."""

MOST_BYTES = 24 * 2**30
"""Maximum size of the forces and records of a measurement. Larger batches are omitted."""

TOLERANCE = {"float64": 1e-12, "float32": 1e-4}
STEPPING, SHARE = {"float64": 1e-9, "float32": 1e-3}, 0.5
"""Tolerances for time stepping, and fraction of the robots for which they must be met.

A step ends when its residual is below a tolerance. Rounding errors can therefore change the number
of iterations, or whether a foot sticks. On the CPU, a change of one unit in the last place every
five steps moved half of these robots by at most 3e-11 (float64) or 3e-5 (float32), and one in
twenty by more than 1e-5 or 1e-4. On a GPU, rounding errors differ in every operation.
"""


@dataclass(frozen=True)
class Case:
    """Kind of rollout.

    Attributes
    ----------
    every : int
        Number of steps between recorded states.
    forces : bool
        True if joint torques are given for each robot and step.
    options : callable
        Returns further arguments of `Robot.rollout`, such as the controller and the contacts.
    rest : callable
        Returns the configuration near which robots start.
    stepping : bool
        True for rigid contact by time stepping with `Robot.simulate`, in steps of 2 ms.
    """

    title: str
    robot: str
    every: int = STEPS
    forces: bool = False
    options: Callable[[chasles.Robot], dict[str, Any]] = field(default=lambda _: {})
    rest: Callable[[chasles.Robot], np.ndarray] = chasles.Robot.neutral
    stepping: bool = False

    @property
    def kept(self) -> int:
        """Number of recorded states after the initial one."""
        return -(-STEPS // self.every)


def _stance(robot: chasles.Robot) -> np.ndarray:
    """Return a configuration of Solo12 with bent legs, and the feet 1 cm above the ground."""
    q = robot.neutral()
    q[7:] = np.tile([0.0, 0.8, -1.6], 4)
    q[6] = 0.01 - min(robot.forward_kinematics(q, frame=foot)[2, 3] for foot in FEET)
    return q


def _held(robot: chasles.Robot, gains: tuple[float, float] = (10.0, 0.2)) -> dict[str, Any]:
    """Return options for a PD controller that holds the legs."""
    each = [[0.0] * 6 + [gain] * 12 for gain in gains]
    return {"tau": PDControl(*each, _stance(robot))}


def _on_ground(robot: chasles.Robot) -> dict[str, Any]:
    """Return options for held legs and soft ground with friction; the feet sink by 3 mm."""
    law = SoftContact(HuntCrossley(3e4, 0.5), SoftFriction(0.8, 2e3, 20.0))
    return _held(robot) | {"contacts": [Pair(Point(foot), Plane(), law) for foot in FEET]}


def _on_rigid_ground(robot: chasles.Robot) -> dict[str, Any]:
    """Return options for stiffer legs, so that the robot stands, and rigid ground with friction."""
    law, control = Rigid(friction=0.7), _held(robot, (20.0, 0.5))["tau"]
    pairs = [Pair(Sphere(foot, 0.01), Plane(), law) for foot in FEET]
    return {"control": control, "contacts": pairs, "integrator": "time-stepping"}


ROLLOUTS: dict[str, Case] = {
    "panda": Case("Panda, free fall", "panda"),
    "panda forces": Case("Panda, torques given for every step", "panda", forces=True),
    "panda records": Case("Panda, every step recorded", "panda", every=1),
    "panda rk4": Case(
        "Panda, free fall, fourth order", "panda", options=lambda _: {"integrator": "rk4"}
    ),
    "solo12": Case("Solo12, legs held, free fall", "solo12", options=_held, rest=_stance),
    "solo12 ground": Case(
        "Solo12, legs held, soft ground", "solo12", options=_on_ground, rest=_stance
    ),
    "solo12 stepping": Case(
        "Solo12, legs held, rigid ground, time stepping",
        "solo12",
        options=_on_rigid_ground,
        rest=_stance,
        stepping=True,
    ),
    "talos": Case("Talos, free fall", "talos"),
}
"""Kinds of rollouts."""


@dataclass(frozen=True)
class Row:
    """Measurement: time (s) of a call on the GPU, and steps per second of the CPU in float64."""

    title: str
    dtype: str
    layout: str
    count: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        """Steps per second, summed over all robots."""
        return self.count * STEPS / self.seconds


@dataclass(frozen=True)
class Job:
    """Rollout with initial states, torques, expected results and steps per second of the CPU."""

    case: Case
    dtype: str
    robot: chasles.Robot
    start: tuple[np.ndarray, ...]
    answers: tuple[np.ndarray, ...] = ()
    cpu: float = 0.0

    @staticmethod
    def of(case: Case, dtype: str) -> "Job":
        robot = chasles_robot(CASES[case.robot])
        states = States.draw(robot, DISTINCT)
        start = [robot.integrate(case.rest(robot), SPREAD * states.qdd), SPREAD * states.qd]
        if case.forces:
            start.append(np.repeat(states.tau[:, None], STEPS, axis=1))
        rounded = [a.astype(dtype).astype(float) for a in start]
        made = Job(case, dtype, robot, tuple(a.astype(dtype) for a in start))
        right = made.run(rounded)
        taken = []
        for _ in range(3):
            started = time.perf_counter()
            made.run(rounded)
            taken.append(time.perf_counter() - started)
        return replace(made, answers=(right.q, right.qd), cpu=DISTINCT * STEPS / min(taken))

    def run(self, arrays: Sequence[Any]) -> Any:
        """Run the rollout for NumPy or CuPy arrays of initial states and, if required, torques."""
        q, qd, *forces = arrays
        options = self.case.options(self.robot) | ({"tau": forces[0]} if forces else {})
        if self.case.stepping:
            return self.robot.simulate(q, qd, dt=2 * DT, steps=STEPS, every=STEPS, **options)
        return self.robot.rollout(q, qd, dt=DT, steps=STEPS, every=self.case.every, **options)

    def bytes(self, count: int) -> int:
        """Return the size (bytes) of the forces and records of a batch."""
        nq, nv = self.robot.nq, self.robot.nv
        numbers = (self.case.kept + 1) * (nq + nv) + STEPS * nv * self.case.forces
        return count * numbers * np.dtype(self.dtype).itemsize

    def resident(self, count: int, layout: str) -> list[Any]:
        """Return the initial states and the torques in GPU memory."""
        import cupy

        found = []
        for a in self.start:
            repeated = cupy.asarray(a[: min(count, DISTINCT)])
            whole = cupy.tile(repeated, (max(count // DISTINCT, 1), *[1] * (a.ndim - 1)))
            if layout == "columns":
                whole = cupy.moveaxis(cupy.ascontiguousarray(cupy.moveaxis(whole, 0, -1)), -1, 0)
            found.append(whole)
        return found

    def check(self, motion: Any) -> None:
        """Raise WrongAnswer if the first or last robots differ from those of the CPU."""
        tolerance, share = (STEPPING, SHARE) if self.case.stepping else (TOLERANCE, 1.0)
        for record, right in zip((motion.q, motion.qd), self.answers, strict=True):
            size = min(len(record), DISTINCT)
            for part in (record[:size], record[-size:]):
                off = np.abs(part.get() - right[:size]).max(axis=(1, 2)) / np.abs(right).max()
                error = float(np.quantile(off, share))
                if not error <= tolerance[self.dtype]:
                    raise WrongAnswer(f"{self.case.title} {self.dtype}: relative error {error:.1e}")


def measure(
    cases: Sequence[str],
    dtypes: Sequence[str],
    counts: Sequence[int],
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[Machine, list[Row]]:
    """Measure all cases. Raise WrongAnswer if results differ, or an error if there is no GPU."""
    machine = Machine.measured()
    rows = []
    for case in cases:
        for dtype in dtypes:
            job = Job.of(ROLLOUTS[case], dtype)
            found = list(_rows(job, counts))
            rows += found
            best = max((row.rate for row in found), default=0.0)
            progress(
                f"{job.case.title}, {dtype}: {best / 1e9:.3f} G steps/s, CPU {job.cpu / 1e6:.1f} M"
            )
    return machine, rows


def _rows(job: Job, counts: Sequence[int]) -> Iterator[Row]:
    import cupy

    stream = cupy.cuda.get_current_stream()
    for count in (n for n in counts if job.bytes(n) <= MOST_BYTES):
        for layout in LAYOUTS:
            arrays, found, taken = job.resident(count, layout), list[Any](), list[float]()
            job.check(job.run(arrays))
            while len(taken) < REPEATS and sum(taken) < LONGEST:
                found.clear()
                call = partial(_kept, found, partial(job.run, arrays))
                taken.append(seconds_of(cupy, stream, call))
            job.check(*found)
            yield Row(job.case.title, job.dtype, layout, count, min(taken), job.cpu)
            del arrays, found, call
            cupy.get_default_memory_pool().free_all_blocks()


def _kept(found: list[Any], run: Callable[[], Any]) -> None:
    found.append(run())


def show(machine: Machine, rows: Sequence[Row], console: Console) -> None:
    """Print all measurements as a table."""
    table = Table(title=f"{machine.name}: rollouts of {STEPS} steps")
    for name in ("rollout", "dtype", "arrays", "robots", "time", "steps/s", "ratio to CPU"):
        table.add_column(name, justify="left" if name == "rollout" else "right")
    for row in rows:
        table.add_row(
            row.title,
            row.dtype,
            row.layout,
            f"{row.count:,}",
            f"{row.seconds * 1e3:.3f} ms",
            f"{row.rate / 1e9:.3f} G",
            f"{row.rate / row.cpu:.0f}",
        )
    console.print(table)
