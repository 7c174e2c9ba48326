"""Rollouts on a GPU: steps a second of `robot.rollout` on arrays that are there.

A time is that of whole calls from Python, memory for the records included, by events on the GPU;
the least of several. Answers are those of the CPU's rollout in float64, compared before and after;
the CPU's own steps a second, all its threads at work, stand beside.
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
from benchmarks.gpu import LAYOUTS, Machine, seconds_of
from benchmarks.robots import CASES, chasles_robot
from benchmarks.routes import WrongAnswer
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
"""A motion of 0.2 s, over which what float32 rounds does not grow much."""

FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
"""Of Solo12."""

SPREAD = 0.05
"""Robots start so far from rest, in rad and m, and so fast, in rad/s and m/s."""

DISTINCT = 4096
"""Robots that differ; larger batches repeat them."""

REPEATS, LONGEST = 7, 1.0
"""Timed calls, and the time (s) after which no further call is timed."""

MOST_BYTES = 24 * 2**30
"""Forces and records of one measurement; a larger batch is left out."""

TOLERANCE = {"float64": 1e-12, "float32": 1e-4}
STEPPING, SHARE = {"float64": 1e-9, "float32": 1e-3}, 0.5
"""Of time stepping, for this share of the robots. A step ends at a residual of 1e-6, and rounding
decides at which iteration, and whether a foot sticks: on the CPU, a change by one unit of the last
place every five steps moves half of these robots by at most 3e-11 (float64) and 3e-5 (float32), and
one in twenty by more than 1e-5 and 1e-4. A GPU rounds in every operation."""


@dataclass(frozen=True)
class Case:
    """A kind of rollout.

    options: what `Robot.rollout` is given besides states, dt and steps (its controller, its
    contacts). forces: whether there is a row of forces for each robot and step. rest: the position
    near which robots start. stepping: contact is rigid, by time stepping of `Robot.simulate`, in
    steps of 2 ms.
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
        """States recorded after the first."""
        return -(-STEPS // self.every)


def _stance(robot: chasles.Robot) -> np.ndarray:
    """Solo12 on bent legs, its feet a centimetre above the ground."""
    q = robot.neutral()
    q[7:] = np.tile([0.0, 0.8, -1.6], 4)
    q[6] = 0.01 - min(robot.forward_kinematics(q, frame=foot)[2, 3] for foot in FEET)
    return q


def _held(robot: chasles.Robot, gains: tuple[float, float] = (10.0, 0.2)) -> dict[str, Any]:
    """Springs in the legs."""
    each = [[0.0] * 6 + [gain] * 12 for gain in gains]
    return {"tau": PDControl(*each, _stance(robot))}


def _on_ground(robot: chasles.Robot) -> dict[str, Any]:
    """The same, its four feet on soft ground, into which they sink by 3 mm, with friction."""
    law = SoftContact(HuntCrossley(3e4, 0.5), SoftFriction(0.8, 2e3, 20.0))
    return _held(robot) | {"contacts": [Pair(Point(foot), Plane(), law) for foot in FEET]}


def _on_rigid_ground(robot: chasles.Robot) -> dict[str, Any]:
    """Stiffer legs, so that it stands; the four feet are balls on rigid ground with friction."""
    law, control = Rigid(friction=0.7), _held(robot, (20.0, 0.5))["tau"]
    pairs = [Pair(Sphere(foot, 0.01), Plane(), law) for foot in FEET]
    return {"control": control, "contacts": pairs, "integrator": "time-stepping"}


ROLLOUTS: dict[str, Case] = {
    "panda": Case("Panda, falls", "panda"),
    "panda forces": Case("Panda, forces of every step", "panda", forces=True),
    "panda records": Case("Panda, every step recorded", "panda", every=1),
    "panda rk4": Case(
        "Panda, falls, fourth order", "panda", options=lambda _: {"integrator": "rk4"}
    ),
    "solo12": Case("Solo12, held legs, falls", "solo12", options=_held, rest=_stance),
    "solo12 ground": Case(
        "Solo12, held legs, on soft ground", "solo12", options=_on_ground, rest=_stance
    ),
    "solo12 stepping": Case(
        "Solo12, held legs, on rigid ground by time stepping",
        "solo12",
        options=_on_rigid_ground,
        rest=_stance,
        stepping=True,
    ),
    "talos": Case("Talos, falls", "talos"),
}
"""One row a kind."""


@dataclass(frozen=True)
class Row:
    """One measurement. seconds: of one call. cpu: the CPU's steps in a second, in float64."""

    title: str
    dtype: str
    layout: str
    count: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        """Steps of one robot in a second."""
        return self.count * STEPS / self.seconds


@dataclass(frozen=True)
class Job:
    """A kind of rollout with its start, forces and right answers. cpu: its steps in a second."""

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
        """The rollout of states (and forces) of NumPy or CuPy."""
        q, qd, *forces = arrays
        options = self.case.options(self.robot) | ({"tau": forces[0]} if forces else {})
        if self.case.stepping:
            return self.robot.simulate(q, qd, dt=2 * DT, steps=STEPS, every=STEPS, **options)
        return self.robot.rollout(q, qd, dt=DT, steps=STEPS, every=self.case.every, **options)

    def bytes(self, count: int) -> int:
        """Of forces and records."""
        nq, nv = self.robot.nq, self.robot.nv
        numbers = (self.case.kept + 1) * (nq + nv) + STEPS * nv * self.case.forces
        return count * numbers * np.dtype(self.dtype).itemsize

    def resident(self, count: int, layout: str) -> list[Any]:
        """Start and forces on the GPU."""
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
        """Raise WrongAnswer where the first and last robots are not where they should be."""
        tolerance, share = (STEPPING, SHARE) if self.case.stepping else (TOLERANCE, 1.0)
        for record, right in zip((motion.q, motion.qd), self.answers, strict=True):
            size = min(len(record), DISTINCT)
            for part in (record[:size], record[-size:]):
                off = np.abs(part.get() - right[:size]).max(axis=(1, 2)) / np.abs(right).max()
                error = float(np.quantile(off, share))
                if not error <= tolerance[self.dtype]:
                    raise WrongAnswer(f"{self.case.title} {self.dtype}: off {error:.1e}")


def measure(
    cases: Sequence[str],
    dtypes: Sequence[str],
    counts: Sequence[int],
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[Machine, list[Row]]:
    """All rows. Raises WrongAnswer, or what chasles says where there is no GPU."""
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
    """A table of all rows."""
    table = Table(title=f"{machine.name}: rollouts of {STEPS} steps")
    for name in ("rollout", "numbers", "arrays", "robots", "time", "steps/s", "times the CPU"):
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
