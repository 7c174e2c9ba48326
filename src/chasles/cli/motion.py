"""Implementation of `chasles motion`: kinematics and inverse dynamics along a motion, in chunks.

The algorithm follows Legnani et al. (1996), part II, figs. 4 and 6.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from chasles.algorithms.spatial.kinematics import At
from chasles.cli.command import TABLES
from chasles.errors import InputError
from chasles.formats import dat, inputs
from chasles.formats.motion import CHUNK, Motion, forces, numbered, read
from chasles.formats.motion import columns as motion_columns
from chasles.functions.doors import Wrench
from chasles.robot import Robot
from chasles.writing import whole

CLOSED = 1e-6
"""Tolerance (rad or m) for loop-closure residuals along a motion."""

POSE = [f"M{i}{j}" for i in (1, 2, 3) for j in (1, 2, 3, 4)]
VELOCITY = ["wx", "wy", "wz", "vx", "vy", "vz"]
ACCELERATION = ["wdx", "wdy", "wdz", "ax", "ay", "az"]
REACTION = ["mx", "my", "mz", "fx", "fy", "fz"]

_MOST_SAMPLES = 2000

ARRAYS = ("t", "q", "qd", "qdd")
"""Fields of `Motion` that are arrays with one row per sample."""

REACH = 3
"""Number of neighboring samples that finite differences need at each end of a chunk."""


@dataclass
class Task:
    """Inputs and options of `chasles motion`.

    Attributes
    ----------
    source
        Robot file or name.
    motion
        Motion file.
    frames
        Frames for which results are computed (default: the robot's tool).
    summarized
        Frame shown in the summary (default: the first of `frames`).
    forces
        File of external forces and couples. The default is the gripper load in a .dat robot file,
        if any.
    forces_on
        Frame of the forces (default: the tool). The forces act at the frame's origin and are
        expressed in its axes.
    step
        Time step (s) of a motion without times.
    differentiate
        Compute missing velocities and accelerations.
    at
        Reference point of velocities and accelerations: "frame" for the frame's origin, or "world"
        for the body-fixed point that coincides with the world origin.
    """

    robot: Robot
    source: str
    motion: Path
    frames: tuple[str, ...] = ()
    forces: Path | None = None
    forces_on: str = ""
    step: float | None = None
    differentiate: bool = False
    at: At = "frame"
    summarized: str = ""

    def __post_init__(self) -> None:
        last = self.robot.tool
        self.frames = tuple(dict.fromkeys(self.frames)) or (last,)
        self.summarized = self.summarized or self.frames[0]
        if self.forces_on and self.forces is None:
            problem = "--forces-on needs --forces"
            raise InputError("E-CLI-018", problem, "add --forces, or omit --forces-on")
        self.forces_on = self.forces_on or last
        for frame in (*self.frames, self.summarized, self.forces_on):
            self.robot.model.frame(frame)
        if self.step is not None and not 0.0 < self.step < math.inf:
            problem = f"--step must be positive, not {self.step!r}"
            raise InputError("E-CLI-019", problem, "give a positive number of seconds")

    @property
    def inputs(self) -> list[str]:
        """Paths of all input files."""
        files = [self.motion] if self.forces is None else [self.motion, self.forces]
        return [*inputs(self.robot.model.source), *map(str, files)]


@dataclass(frozen=True)
class States:
    """Results at consecutive samples of a motion.

    Poses, velocities and accelerations are lists with one array per frame. `external` is the power
    (W) of the external forces.
    """

    motion: Motion
    pose: list[np.ndarray]
    velocity: list[np.ndarray]
    acceleration: list[np.ndarray]
    tau: np.ndarray
    reactions: np.ndarray
    kinetic: np.ndarray
    potential: np.ndarray
    external: np.ndarray

    @property
    def table(self) -> np.ndarray:
        """Results as a table with one row per sample and the columns named by `columns`."""
        n = len(self.motion.q)
        time = np.arange(self.motion.first, self.motion.first + n)
        parts = [time if self.motion.t is None else self.motion.t]
        for M, V, A in zip(self.pose, self.velocity, self.acceleration, strict=True):
            parts += [M[:, :3].reshape(n, 12), V, A]
        parts += [self.tau, self.reactions.reshape(n, -1), self.kinetic, self.potential]
        parts += [x for x in (self.motion.q, self.motion.qd, self.motion.qdd) if x is not None]
        return np.column_stack(parts)


def columns(robot: Robot, frames: Iterable[str], *, timed: bool) -> list[str]:
    """Return the column names of the output table."""
    names = ["t" if timed else "sample"]
    for frame in frames:
        names += [f"{frame}.{entry}" for entry in (*POSE, *VELOCITY, *ACCELERATION)]
    for joint in robot.joints:
        where = robot.velocity_slice(joint)
        names += numbered(f"{joint}.tau", where.stop - where.start)
    names += [f"{joint}.{entry}" for joint in robot.moving_joints for entry in REACTION]
    states = itertools.chain.from_iterable(motion_columns(robot.model).values())
    return [*names, "kinetic", "potential", *states]


# Summary ---------------------------------------------------------------------------------------


@dataclass
class Summary:
    """Summary of a motion, updated chunk by chunk.

    Attributes
    ----------
    peak, rms
        Largest absolute value and root mean square of each generalized force.
    velocity
        Largest absolute value of each joint velocity.
    speed, acceleration
        Largest linear speed and linear acceleration at the frame shown in the summary.
    work
        Work (J) done by generalized and by external forces (trapezoidal rule); None without times.
    energy
        Total energy (J) at the first and the last sample.
    samples
        Time, positions, generalized forces and the frame's speed at a subset of the samples, for
        plots.
    """

    instants: int = 0
    start: float | None = None
    end: float | None = None
    peak: np.ndarray = field(default_factory=lambda: np.zeros(0))
    squares: np.ndarray = field(default_factory=lambda: np.zeros(0))
    velocity: np.ndarray = field(default_factory=lambda: np.zeros(0))
    speed: float = 0.0
    acceleration: float = 0.0
    work: np.ndarray | None = None
    energy: tuple[float, float] = (0.0, 0.0)
    samples: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    _stride: int = 1
    _power: np.ndarray = field(default_factory=lambda: np.zeros(2))

    @property
    def rms(self) -> np.ndarray:
        return np.sqrt(self.squares / max(1, self.instants))

    def add(self, states: States, frame: int = 0) -> None:
        """Add the next states to the summary.

        frame: index, in `states.velocity` and `states.acceleration`, of the frame to summarize.
        """
        t, n = states.motion.t, len(states.tau)
        total = states.kinetic + states.potential
        if self.instants == 0:
            self.peak = self.squares = self.velocity = np.zeros(states.tau.shape[1])
            self.energy = (float(total[0]), 0.0)
        self.energy = (self.energy[0], float(total[-1]))
        self.peak = np.maximum(self.peak, np.max(np.abs(states.tau), axis=0))
        if states.motion.qd is not None:
            self.velocity = np.maximum(self.velocity, np.max(np.abs(states.motion.qd), axis=0))
        self.squares = self.squares + np.sum(states.tau**2, axis=0)
        speeds = np.linalg.norm(states.velocity[frame][:, 3:], axis=1)
        self.speed = max(self.speed, float(np.max(speeds)))
        pushes = np.linalg.norm(states.acceleration[frame][:, 3:], axis=1)
        self.acceleration = max(self.acceleration, float(np.max(pushes)))
        if t is not None:
            power = [np.sum(states.tau * states.motion.qd, axis=1), states.external]
            self._add_work(t, np.column_stack(power))
        index = np.arange(self.instants, self.instants + n)
        shown = [index if t is None else t, states.motion.q, states.tau, speeds]
        chosen = np.column_stack(shown)[index % self._stride == 0]
        self.samples = np.concatenate([self.samples, chosen]) if self.samples.size else chosen
        while len(self.samples) > _MOST_SAMPLES:  # drop every other sample
            self.samples, self._stride = self.samples[::2], 2 * self._stride
        self.instants += n

    def _add_work(self, t: np.ndarray, power: np.ndarray) -> None:
        if self.end is None or self.work is None:
            self.start = self.end = float(t[0])
            self.work, self._power = np.zeros(2), power[0]
        times, powers = np.append(self.end, t), np.vstack([self._power, power])
        self.work = self.work + 0.5 * np.diff(times) @ (powers[1:] + powers[:-1])
        self.end, self._power = float(t[-1]), power[-1]


# Computation -----------------------------------------------------------------------------------


def run(
    task: Task,
    output: Path | None,
    progress: Callable[[int], None],
    *,
    chunk: int = CHUNK,
    overwrite: bool = False,
) -> Summary:
    """Compute the results and write the requested table; call `progress` with the bytes read."""
    summary, add = Summary(), None
    with ExitStack() as files:
        for some in computed(task, chunk=chunk):
            rows = some.table
            bad = ~np.all(np.isfinite(rows), axis=1)
            if np.any(bad):
                sample = some.motion.first + int(np.argmax(bad))
                problem = f"the results at sample {sample} are not finite"
                raise InputError(
                    "E-CLI-021", problem, "check the units of the motion", file=task.motion
                )
            if output is not None and not summary.instants:
                names = columns(task.robot, task.frames, timed=some.motion.t is not None)
                part = files.enter_context(whole(output, overwrite=overwrite))
                add = files.enter_context(TABLES[output.suffix.lower()](part, names))
            if add is not None:
                add(rows)
            summary.add(some, task.frames.index(task.summarized))
            progress(some.motion.end)
    return summary


def _check_closed(task: Task, motion: Motion) -> None:
    """Raise an error if the robot's loops are not closed along the motion."""
    if not task.robot.model.constraints:
        return
    size = np.abs(task.robot.loop_residual(motion.q)).max(axis=-1, initial=0.0)
    if np.any(size > CLOSED):
        sample = motion.first + int(np.argmax(size > CLOSED))
        problem = (
            f"the loops of {task.robot.name!r} are not closed at sample {sample} "
            f"(largest residual {size.max():.3g} rad or m)"
        )
        remedy = "give positions that close the loops"
        raise InputError("E-CLI-022", problem, remedy, file=task.motion)


def computed(task: Task, *, chunk: int = CHUNK) -> Iterator[States]:
    """Compute the results along the motion, and yield them in chunks."""
    robot, file = task.robot, str(task.motion)
    motion = read(task.motion, robot.model, step=task.step, chunk=chunk)
    if task.differentiate:
        motion = completed(file, robot, motion)
    loads = _Loads(task)
    for some in motion:
        q, qd, qdd = some.q, some.qd, some.qdd
        if qd is None or qdd is None:
            lacking = "velocities (columns named .qd)" if qd is None else "accelerations (.qdd)"
            problem = f"the motion has no {lacking}"
            raise InputError(
                "E-CLI-023", problem, "add the columns, or use --differentiate", file=file
            )
        _check_closed(task, some)
        f_ext = loads.take(some)
        power = np.zeros(len(q))
        for frame, wrench in (f_ext or {}).items():
            velocity = robot.frame_velocity(q, qd, frame=frame, axes="frame")
            power += np.sum(wrench.value * velocity, axis=-1)
        unloaded = np.zeros(robot.mechanism.rows)  # assume zero loop forces
        yield States(
            some,
            [robot.forward_kinematics(q, frame=name) for name in task.frames],
            [robot.frame_velocity(q, qd, frame=name, at=task.at) for name in task.frames],
            [robot.frame_acceleration(q, qd, qdd, frame=name, at=task.at) for name in task.frames],
            robot.inverse_dynamics(q, qd, qdd, f_ext=f_ext),
            robot.joint_reactions(q, qd, qdd, f_ext=f_ext, multipliers=unloaded),
            robot.kinetic_energy(q, qd),
            robot.potential_energy(q),
            power,
        )
    loads.check_end()


class _Loads:
    """External forces at the samples of a motion.

    A file with a single row defines constant forces. Otherwise, each row belongs to one sample.
    """

    def __init__(self, task: Task) -> None:
        self.file, self.frame = str(task.forces or task.source), task.forces_on
        rows: Iterator[Iterable[float]] = iter(())
        if task.forces is not None:
            rows = forces(task.forces)
        elif Path(task.source).suffix.lower() == ".dat":
            self.frame, rows = dat.GRIPPER, iter(dat.actions(task.source))
        ahead = list(itertools.islice(rows, 2))
        if task.forces is not None and not ahead:
            problem = "the file contains no forces"
            raise InputError("E-CLI-024", problem, "give six values per row", file=task.forces)
        self.count = len(ahead)
        self.rows = itertools.repeat(ahead[0]) if self.count == 1 else itertools.chain(ahead, rows)

    def take(self, motion: Motion) -> dict[str, Wrench] | None:
        """Return the external wrenches at the next samples, in the form of the argument `f_ext`."""
        if not self.count:
            return None
        taken = np.array(list(itertools.islice(self.rows, len(motion.q))))
        if len(taken) < len(motion.q):
            problem = (
                f"the file has forces for {motion.first + len(taken)} samples, but the motion has "
                "more samples"
            )
            raise self._unequal("E-CLI-025", problem)
        return {self.frame: Wrench(np.roll(taken, 3, axis=-1), axes="frame", at="frame")}

    def check_end(self) -> None:
        """Raise an error if the file has more rows of forces than the motion has samples."""
        if self.count > 1 and next(self.rows, None) is not None:
            raise self._unequal(
                "E-CLI-026", "the file has more rows of forces than the motion has samples"
            )

    def _unequal(self, code: str, problem: str) -> InputError:
        remedy = "give one row for all samples, or one row per sample"
        return InputError(code, problem, remedy, file=self.file)


# Finite differences ---------------------------------------------------------------------------


def completed(file: str, robot: Robot, motion: Iterator[Motion]) -> Iterator[Motion]:
    """Compute missing velocities and accelerations of a motion by finite differences.

    The result does not depend on the chunk size. Errors are second order in the time step, which
    may vary smoothly. Accelerations computed from positions have first-order errors at the first
    two and last two samples.
    """
    before: list[Motion] = []
    here = next(motion)
    for after in itertools.chain(motion, [None]):
        next_ones = [] if after is None else [_cut(after, 0, REACH)]
        block = _joined([*before, here, *next_ones])
        skip = here.first - block.first
        inside = slice(skip, skip + len(here.q))
        qd, qdd = block.qd, block.qdd
        if qd is None:
            qd = _rates(_times(file, block), block.q, robot.difference)
        if qdd is None:
            qdd = _rates(_times(file, block), qd, lambda x, y: y - x)
        yield replace(here, qd=qd[inside], qdd=qdd[inside])
        if after is not None:
            last = _joined([*before, here])
            n = len(last.q)
            before, here = [_cut(last, n - REACH, n)], after


def _times(file: str, block: Motion) -> np.ndarray:
    if block.t is None:
        problem = "--differentiate requires the times of the samples"
        raise InputError("E-CLI-009", problem, "add a column t, or use --step", file=file)
    if len(block.t) < 3:
        problem = f"the motion has {len(block.t)} samples, too few for --differentiate"
        raise InputError(
            "E-CLI-010", problem, "give a motion with at least three samples", file=file
        )
    return block.t


def _rates(
    t: np.ndarray, x: np.ndarray, difference: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Differentiate samples by fitting a parabola through each sample and its neighbors."""
    h = np.diff(t)[:, None]
    d = difference(x[:-1], x[1:]) / h
    share = h[:-1] / (h[:-1] + h[1:])
    middle = (1.0 - share) * d[:-1] + share * d[1:]
    start = d[:1] + share[:1] * (d[:1] - d[1:2])
    end = d[-1:] + (1.0 - share[-1:]) * (d[-1:] - d[-2:-1])
    return np.concatenate([start, middle, end])


def _joined(parts: list[Motion]) -> Motion:
    """Concatenate consecutive chunks of a motion."""
    known = [name for name in ARRAYS if getattr(parts[0], name) is not None]
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in known
    }
    return replace(parts[-1], first=parts[0].first, **arrays)


def _cut(motion: Motion, start: int, stop: int) -> Motion:
    arrays = {name: getattr(motion, name) for name in ARRAYS}
    some: dict[str, Any] = {k: x[start:stop] for k, x in arrays.items() if x is not None}
    return replace(motion, first=motion.first + start, **some)
