"""The options of a motion in groups: values that can be named, kept and given again.

Every option may be given by itself, `simulate(..., every=10)`, or in its group,
`simulate(..., output=Output(every=10))`; an option by itself counts more than its group.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict

import numpy as np

from chasles.backends.arrays import checked_count
from chasles.errors import ArgumentError, InputError
from chasles.functions.numeric import checked_step
from chasles.motion.contract import Array
from chasles.motion.drivers.loops import ClosureFunction
from chasles.motion.records import End, Event
from chasles.motion.steps.integrators import Free

MOST_STEPS = 10**10
"""Steps of a motion, at most: 15 minutes of the fastest compiled ones, months of the others."""

AUTOMATIC = "auto"
"""The integrator that is chosen by the contacts."""

DT = 1e-3
"""The length of steps where none is given (s), and of the first where the error decides."""

Forces = Array | Callable[[float, np.ndarray, np.ndarray], Array] | None
"""Joint torques: none, constant, a row for each step, or a controller tau(t, q, qd)."""


@dataclass(frozen=True)
class Span:
    """When the motion begins and ends, in s; steps: when to stop before; resume: where to go on."""

    duration: float | None = None
    start: float | None = None
    steps: int | None = None
    resume: End | None = None


@dataclass(frozen=True)
class Stepping:
    """The integrator, its longest step dt in s, and the error that an adaptive one allows.

    integrator: "auto" is "rk4", and "time-stepping" where contacts are those of the file.
    """

    integrator: str = AUTOMATIC
    dt: float | None = None
    rtol: float = 1e-6
    atol: float = 1e-9
    free: Free = "body"


@dataclass(frozen=True)
class Loads:
    """Joint torques or a controller with its parameters, external wrenches, joint friction."""

    control: Forces = None
    parameters: Array = None
    f_ext: Mapping[str, Any] | None = None
    dissipation: bool = False


@dataclass(frozen=True)
class Touch:
    """Pairs of shapes that may touch, states of soft ones at the start, joint limits that stop."""

    contacts: Sequence[Any] | str = ()
    contact_states: Array = None
    limits: bool = False


@dataclass(frozen=True)
class Closing:
    """Closure of loops: by a function, or by stabilization within a time in s; by default Newton's
    method.
    """

    closure: ClosureFunction | None = None
    stabilization: float | None = None


@dataclass(frozen=True)
class Output:
    """The states that are kept: at times (n,) in s, or one of so many and the last; a bar.

    sensors: their values at these states, of all or of those named; noise: a seed of their errors.
    """

    times: Array = None
    every: int = 1
    progress: bool = False
    sensors: bool | str | Sequence[str] = False
    noise: "np.random.Generator | int | None" = None


@dataclass(frozen=True)
class Plan(Output, Closing, Touch, Loads, Stepping, Span):
    """A motion to be computed, from q and qd: the options of all groups, and events."""

    events: Event | Sequence[Event] = ()


class Options(TypedDict, total=False):
    """Options of `simulate`: those of `Plan` by themselves, or their groups; tau is control."""

    duration: float | None
    dt: float | None
    integrator: str
    control: Forces
    contacts: Sequence[Any] | str
    start: float | None
    steps: int | None
    resume: End | None
    rtol: float
    atol: float
    free: Free
    tau: Forces
    parameters: Array
    f_ext: Mapping[str, Any] | None
    dissipation: bool
    contact_states: Array
    limits: bool
    closure: ClosureFunction | None
    stabilization: float | None
    times: Array
    every: int
    progress: bool
    sensors: bool | str | Sequence[str]
    noise: np.random.Generator | int | None
    events: Event | Sequence[Event]
    span: Span | None
    stepping: Stepping | None
    loads: Loads | None
    touch: Touch | None
    closing: Closing | None
    output: Output | None


GROUPS: dict[str, type] = {
    kind.__name__.lower(): kind for kind in (Span, Stepping, Loads, Touch, Closing, Output)
}
"""The groups of options by name."""

NAMES = {field.name: field.default for field in fields(Plan)}
"""Every option by itself, and its default."""


def check_resolution(start: float, dt: float, function: str) -> None:
    """Refuse steps that are too short for time to go on, so far from its zero."""
    if start + dt == start:
        problem = f"a step of {dt:g} s is too small to change the time {start:g} s"
        remedy = "start closer to 0 (start=), or increase dt"
        raise InputError("E-MOTION-122", problem, remedy, part=function)


def planned(options: Mapping[str, Any]) -> Plan:
    """One plan of options in groups and by themselves; without a duration, that of its steps."""
    values: dict[str, Any] = {}
    for name, kind in GROUPS.items():
        group = options.get(name)
        if group is not None and not isinstance(group, kind):
            problem = f"{name} must be {kind.__name__}(...), not {group!r:.60}"
            raise ArgumentError("E-MOTION-091", problem, part="simulate")
        values |= vars(group) if group is not None else {}
    for name, value in options.items():
        if name in NAMES:
            values[name] = value
        elif name not in GROUPS and name != "tau":
            problem = f"simulate() got an unexpected keyword argument {name!r}"
            raise ArgumentError("E-MOTION-090", problem)
    if options.get("tau") is not None:
        if options.get("control") is not None:
            raise ArgumentError(
                "E-MOTION-089", "give `control` or `tau`, not both", part="simulate"
            )
        values["control"] = options["tau"]
    if values.get("duration") is None:
        if values.get("steps") is None:
            problem = "give `duration` in s, or `steps` and `dt`"
            raise ArgumentError("E-MOTION-094", problem, part="simulate")
        steps = checked_count("simulate: steps", values["steps"])
        values["duration"] = steps * checked_step(values.get("dt") or DT, "simulate: dt")
    return Plan(**values)
