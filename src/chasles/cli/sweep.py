"""Implementation of `chasles sweep`: simulate a scenario with varied values and write tables.

Each task simulates a range of runs and writes one table. Tables are written atomically, so that an
interrupted sweep can continue with the missing tables.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from chasles.api import compile as compile_function
from chasles.cli.axes import Axes
from chasles.cli.scenario import Scenario, with_flags
from chasles.cli.scenario_fields import TABLES, TOP
from chasles.cli.scene import digest, made
from chasles.cli.tables import Table, resumed
from chasles.errors import ChaslesError, ConvergenceError, InputError, ModelError
from chasles.formats import motion
from chasles.robot import Robot
from chasles.rollouts import Trajectory
from chasles.tasks import Told
from chasles.version import VERSION
from chasles.writing import whole

RUNS = 64
"""Maximum number of runs per table."""

WHOLE = ("every", "random", "seed")
"""Scenario keys with integer values."""

REFUSALS = ("E-MOTION-098", "E-MOTION-135")
"""Codes of the errors raised if a motion cannot be compiled with model parameters as inputs."""

CONTACT = ("contact.deepest", "contact.force")
RESULTS = ("kinetic", "potential", "energy.change", *CONTACT, "failed")


@dataclass(frozen=True)
class Swept:
    """Number of runs in a table of results, and number of failed runs."""

    runs: int
    failed: int
    resumed: bool = False


@dataclass(frozen=True)
class Sweep:
    """Sweep that writes one table for each range of runs; it can be pickled for other processes.

    `robot` is the scenario's robot. If `motions` is True, every state of a run is written, not only
    the last state.
    """

    scenario: Scenario
    robot: Robot
    axes: Axes
    motions: bool = False
    overwrite: bool = False

    @cached_property
    def names(self) -> list[str]:
        """Column names: run index, varied quantities, time, state and results."""
        columns = motion.columns(self.robot.model)
        state = ["t", *columns["q"], *columns["qd"]]
        return ["run", *self.axes.names, *state, *(RESULTS[:2] if self.motions else RESULTS)]

    @cached_property
    def recipe(self) -> str:
        """Digest of all inputs that determine the dataset."""
        parts = (VERSION, digest(self.robot), self.scenario.digest(), self.axes, self.names)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def simulated(self, run: int, before: Robot | None = None) -> tuple[Robot, Trajectory]:
        """Simulate a run; return its robot and motion.

        `before` is the robot of the previous run. If both runs have the same robot parameters, this
        robot is reused with its compiled code.
        """
        given, changed = self._given(run)
        scenario = with_flags(self.scenario, given)
        if self._shared(changed):
            self.robot.with_parameters(changed)  # raises an error if a value is invalid
            moved = made(scenario, robot=self.robot).simulate(model_parameters=changed)
            return self.robot, moved
        same = before is not None and run > 0 and self._given(run - 1)[1] == changed
        robot = before if same else self.robot.with_parameters(changed) if changed else self.robot
        assert robot is not None
        return robot, made(scenario, robot=robot).simulate()

    def _shared(self, changed: Mapping[str, float]) -> bool:
        """Return True if one compiled program can be used for these parameter values.

        A different program may be needed if a parameter, such as a mass, is zero.
        """
        return bool(changed) and min(changed.values()) > 0.0 and self._compiled

    @cached_property
    def _compiled(self) -> bool:
        """Return True if the motion can be compiled with model parameters as inputs."""
        given, changed = self._given(0)
        if any(name.rpartition(".")[2] not in ("mass", "stiffness") for name in changed):
            return False
        scene = made(with_flags(self.scenario, given), robot=self.robot)
        try:
            scene.simulate(steps=1, model_parameters=dict.fromkeys(changed, 1.0))
        except ConvergenceError:
            return True
        except (InputError, ModelError) as error:
            if error.code not in REFUSALS:
                raise
            return False
        return True

    def _energies(self, robot: Robot, run: int, found: Trajectory) -> tuple[np.ndarray, np.ndarray]:
        """Return the kinetic and potential energies (n,) at the n states of a run."""
        _, changed = self._given(run)
        if not self._shared(changed):
            return robot.kinetic_energy(found.q, found.qd), robot.potential_energy(found.q)
        kinetic, potential = self._energy
        own = list(changed.values())
        return kinetic(found.q, found.qd, *own), potential(found.q, *own)

    @cached_property
    def _energy(self) -> tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]:
        """Compiled kinetic and potential energy, as functions of state and varied parameters."""
        free = tuple(self._given(0)[1])
        kinetic = compile_function(self.robot, "kinetic_energy", parameters=free)
        return kinetic, compile_function(self.robot, "potential_energy", parameters=free)

    def _given(self, run: int) -> tuple[dict[str, Any], dict[str, float]]:
        """Return the scenario values and the robot parameters of a run, as two dictionaries."""
        given: dict[str, Any] = {}
        changed: dict[str, float] = {}
        for name, value in self.axes.values(run).items():
            first, _, rest = name.partition(".")
            if name in TOP:
                given[name] = _whole(name, value)
            elif first in TABLES and rest:
                key, _, part = rest.partition(".")
                table = given.setdefault(first, {})
                if part:
                    known = table.get(key, self.scenario.tables[first].get(key, {}))
                    if not isinstance(known, Mapping):
                        problem = f"entries of {first}.{key} cannot be varied separately"
                        remedy = (
                            f"vary {first}.{key} as a whole; only coordinates and controls have "
                            "named entries"
                        )
                        raise InputError("E-SWEEP-006", problem, remedy, part=name)
                    table[key] = {**known, part: value}
                else:
                    table[key] = _whole(key, value)
            else:
                changed[name] = value
        return given, changed

    def rows(self, run: int, before: Robot | None) -> tuple[np.ndarray, Robot | None]:
        """Return the rows and the robot of a run; the robot is None if the run did not converge."""
        values = self.axes.values(run)
        head = [float(run), *values.values()]
        try:
            robot, found = self.simulated(run, before)
        except ConvergenceError:
            row = [*head, *[np.nan] * (len(self.names) - len(head))]
            if not self.motions:
                row[-1] = 1.0
            return np.array([row]), None
        except ChaslesError as error:
            said = ", ".join(f"{name} = {x:g}" for name, x in values.items())
            raise error.at(part=f"run {run} ({said})") from None
        kinetic, potential = self._energies(robot, run, found)
        table = np.column_stack([found.t, found.q, found.qd, kinetic, potential])
        heads = np.broadcast_to(head, (len(table), len(head)))
        if self.motions:
            return np.concatenate([heads, table], axis=1), robot
        energy, met = kinetic + potential, found.touching
        change = float(np.max(np.abs(energy - energy[0])))
        contact = [0.0, 0.0]
        if met is not None and met.gaps.size:
            force = np.linalg.norm(met.forces, axis=-1).max()
            contact = [max(0.0, -float(met.gaps.min())), float(force)]
        return np.array([[*head, *table[-1], change, *contact, 0.0]]), robot

    def __call__(self, part: "Part", told: Told) -> Swept:
        """Simulate the runs of one table, unless the table exists; call `told` after each run."""
        runs, target = part
        origin = {"sweep": self.recipe, "first": runs.start, "last": runs.stop}
        mark = json.dumps(origin).encode()
        if target.exists() and not self.overwrite:
            there = resumed(target, mark, "scenario")
            told(len(runs))
            return Swept(there["runs"], there["failed"], resumed=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole(target, overwrite=self.overwrite) as path, Table(path, mark, self.names) as out:
            failed, robot = 0, None
            for run in runs:
                rows, robot = self.rows(run, robot)
                out.add(list(np.ascontiguousarray(rows.T)))
                failed += robot is None
                told(1)
            done = Swept(len(runs), failed)
            out.finish(vars(done))
        return done


Part = tuple[range, Path]
"""A range of run numbers, and the path of the table with their results."""


def parts(sweep: Sweep, folder: Path) -> Iterator[Part]:
    """Divide the runs of a sweep into ranges; yield each range and the path of its result table."""
    count = sweep.axes.count
    for k, first in enumerate(range(0, count, RUNS)):
        yield range(first, min(first + RUNS, count)), folder.absolute() / f"part-{k:06d}.parquet"


def _whole(key: str, value: float) -> float | int:
    return int(value) if key in WHOLE and value == int(value) else value
