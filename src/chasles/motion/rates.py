"""Differential kinematics for control: joint velocities for desired frame velocities."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, get_args

import numpy as np

from chasles import backends
from chasles.backends.arrays import call, checked_count
from chasles.errors import InputError
from chasles.expr import Program
from chasles.functions.doors import numbers
from chasles.functions.programs import checked_frame
from chasles.functions.rates import Kind, Step, Task
from chasles.functions.targets import CENTER
from chasles.mechanisms import Mechanism
from chasles.model.given import a_mapping, a_number
from chasles.names import one_of

PART = "resolved_rate"

MOST_PASSES = 12
"""Upper limit on the default value of `passes`, the number of active-set iterations. The default is
nv + 4 or this limit, whichever is smaller."""


class ResolvedRate:
    """Compiled velocity step of a robot; see `chasles.control.resolved_rate`.

    The arrays `weights`, `lower`, `upper`, `velocity`, `acceleration` and `dt` may be changed in
    place between calls. `rows` lists the names of the entries in the argument `rates`.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        limits: Mapping[str, np.ndarray],
        tasks: Any,
        *,
        dt: float,
        acceleration: Any = math.inf,
        weights: Any = 1.0,
        damping: float = 0.05,
        singular: float = 0.05,
        passes: int | None = None,
        compiled: bool = True,
    ) -> None:
        mechanism.refuse_time(
            PART, "use frame_velocity at a time, because frame velocities are not J qd"
        )
        model = mechanism.model
        levels = _levels(mechanism, tasks)
        damping, singular = (
            _positive("damping", damping, zero=True),
            _positive("singular", singular),
        )
        if passes is None:
            passes = min(model.nv + 4, MOST_PASSES)
        scales = tuple(map(float, mechanism.loops.rows)) if mechanism.rows else ()
        count = checked_count(f"{PART}: passes", passes)
        self.step = Step(model, levels, damping, singular, count, scales)
        """Definition of the velocity step: model, tasks, damping and number of iterations."""
        self.rows = tuple(_names(levels))
        self.dt = np.array(_positive("dt", dt))
        self.weights = _array("weights", weights, self.step.rows)
        self.lower, self.upper = (np.array(limits[name], float) for name in ("lower", "upper"))
        self.velocity = np.array(limits["velocity"], float)
        self.acceleration = _array("acceleration", acceleration, model.nv)
        self._rest = np.zeros(model.nv)
        self._entry: Any = self._compiled(mechanism) if compiled else None

    def _compiled(self, mechanism: Mechanism) -> Any:
        """Return the compiled step, which the mechanism caches for use by other controllers."""
        key = (PART, *self.step.key[2:])
        if key not in mechanism.kept:
            own = any(joint.custom is not None for joint in self.step.model.source.joints)
            recipe = (PART, *self.step.key, self.program.hash if own else "")
            known = backends.known(recipe, lambda: self.program)
            kernel = known or backends.compile(self.program, recipe=recipe)

            def slow(*arrays: Any, out: Any = None, threads: int | None = None) -> Any:
                return call(kernel, PART, arrays, out, threads)

            names = ", ".join(v.name for v in kernel.interface.inputs)
            facts = {"name": PART, "signature": f"{names}, *, out=None, threads=None", "doc": ""}
            mechanism.kept[key] = backends.fast_entry(kernel, fallback=slow, holder=None, **facts)
        return mechanism.kept[key]

    @cached_property
    def program(self) -> Program:
        """Straight-line program for one velocity step; all limits are inputs."""
        return self.step.program()

    def __call__(
        self, q: Any, qd: Any, rates: Any, preferred: Any = None, *, out: Any = None
    ) -> np.ndarray:
        """Return the joint velocities (..., nv) to command for the next time step.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions (rad or m).
        qd : array_like, shape (..., nv)
            Last commanded velocities (rad/s or m/s), from which the accelerations are computed.
        rates : array_like, shape (..., rows)
            Desired velocities, in the order of `rows`.
        preferred : array_like, shape (..., nv), optional
            Preferred joint velocities in the null space of the tasks. Default: 0.
        out : ndarray, shape (..., nv), optional
            Array for the result. If it is given, the inputs are not checked, and NaN in the inputs
            leads to NaN in the result.

        Returns
        -------
        ndarray, shape (..., nv)
            Joint velocities (rad/s or m/s).

        Raises
        ------
        InputError
            If an input contains NaN and `out` is not given.
        """
        rest = self._rest if preferred is None else preferred
        limits = (self.lower, self.upper, self.velocity, self.acceleration, self.dt)
        if out is None:
            found: np.ndarray = self._entry(q, qd, rates, rest, self.weights, *limits)
            if _unknown(found):
                _refuse({"q": q, "qd": qd, "rates": rates, "preferred": rest})
            return found
        self._entry(q, qd, rates, rest, self.weights, *limits, out=out)
        written: np.ndarray = out
        return written


def _unknown(found: Any) -> bool:
    """Return True if the computed velocities contain NaN, which indicates NaN in an input."""
    if type(found) is not np.ndarray:
        return False
    return bool(np.isnan(found).any()) if found.ndim > 1 else math.isnan(found.dot(found))


def _refuse(given: Mapping[str, Any]) -> None:
    """Raise an error that names the first input with a value that is not finite, if any."""
    for name, value in given.items():
        wrong = np.argwhere(~np.isfinite(np.asarray(value, float)))
        if len(wrong):
            place = ", ".join(map(str, wrong[0]))
            problem = f"{name}[{place}] is {np.asarray(value, float)[tuple(wrong[0])]}"
            raise InputError("E-CONTROL-407", problem, "pass finite values", part=PART)


def _levels(mechanism: Mechanism, tasks: Any) -> tuple[tuple[Task, ...], ...]:
    """Return the checked tasks of all priority levels, highest priority first."""
    given = [tasks] if isinstance(tasks, Mapping | str) else tasks
    if not isinstance(given, Sequence) or not given:
        problem = (
            "`tasks` must be {frame: kind}, or a list of such mappings in order of priority, "
            f"not {tasks!r:.60}"
        )
        raise InputError("E-CONTROL-401", problem, part=PART)
    levels = []
    for level in given:
        pairs = {level: "twist"} if isinstance(level, str) else a_mapping("tasks", level, PART)
        if not pairs:
            problem = "a priority level has no task"
            raise InputError("E-CONTROL-402", problem, "omit the empty mapping", part=PART)
        levels.append(tuple(_task(mechanism, frame, kind) for frame, kind in pairs.items()))
    return tuple(levels)


def _task(mechanism: Mechanism, frame: Any, kind: Any) -> Task:
    if kind not in get_args(Kind):
        problem = f"unknown task {kind!r:.60} of {frame!r:.60}"
        raise InputError("E-CONTROL-403", problem, one_of(kind, get_args(Kind)), part=PART)
    if frame == CENTER:
        if kind != "position":
            problem = f"{CENTER!r} supports only a position task"
            raise InputError("E-CONTROL-404", problem, "set its task to 'position'", part=PART)
        return Task(CENTER, kind)
    return Task(checked_frame(mechanism.model, PART, frame, several=False), kind)


def _names(levels: Sequence[Sequence[Task]]) -> list[str]:
    return [
        f"{task.frame}: {'angular' if k < task.angles else 'linear'} {'xyz'[k % 3]}"
        for level in levels
        for task in level
        for k in range(task.rows)
    ]


def _positive(name: str, value: Any, *, zero: bool = False) -> float:
    number = a_number(name, value, PART)
    if not math.isfinite(number) or number < 0.0 or (number == 0.0 and not zero):
        wanted = "finite and non-negative" if zero else "positive and finite"
        raise InputError("E-CONTROL-405", f"{name} must be {wanted}, not {value!r:.60}", part=PART)
    return number


def _array(name: str, value: Any, size: int) -> np.ndarray:
    """Check a scalar or `size` values, and return them as an array (size,).

    If `name` is "acceleration", the values must be positive and may be infinite; otherwise, they
    must be finite and may be zero.
    """
    array = np.atleast_1d(np.asarray(value, float))
    whole = np.full(size, array[0]) if array.shape == (1,) else numbers(name, array, size).copy()
    wrong = ~(whole > 0.0) if name == "acceleration" else ~((whole >= 0.0) & (whole < np.inf))
    if whole.shape != (size,) or wrong.any():
        wanted = "positive" if name == "acceleration" else "finite and non-negative"
        problem = f"{name} must be a scalar or {size} values, {wanted}"
        raise InputError("E-CONTROL-406", problem, part=PART)
    return whole
