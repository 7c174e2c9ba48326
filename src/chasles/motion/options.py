"""The options of a motion in groups: values that can be named, kept and given again.

Every option may be given by itself, `simulate(..., every=10)`, or in its group,
`simulate(..., output=Output(every=10))`; an option by itself counts more than its group.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict

import numpy as np

from chasles.errors import ArgumentError
from chasles.motion.closure import ClosureFunction
from chasles.motion.contract import Array
from chasles.motion.drivers.events import Event
from chasles.motion.records import End

Free = Literal["body", "mixed"]
"""Along which axes the linear velocity of a free joint is stepped: its body's, or its parent's."""

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
    """The integrator, its longest step dt in s, and the error that an adaptive one allows."""

    integrator: str = "rk4"
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

    contacts: Sequence[Any] = ()
    contact_states: Array = None
    limits: bool = False


@dataclass(frozen=True)
class Closing:
    """How loops stay closed: by a function, or by stabilization within so many s; else Newton's."""

    closure: ClosureFunction | None = None
    stabilization: float | None = None


@dataclass(frozen=True)
class Output:
    """The states that are kept: at times (n,) in s, or one of so many and the last; a bar."""

    times: Array = None
    every: int = 1
    progress: bool = False


@dataclass(frozen=True)
class Plan:
    """A motion to be computed, from q and qd."""

    span: Span = Span()
    stepping: Stepping = Stepping()
    loads: Loads = Loads()
    touch: Touch = Touch()
    closing: Closing = Closing()
    output: Output = Output()
    events: Event | Sequence[Event] = ()


class Options(TypedDict, total=False):
    """Options of `simulate` besides those that its signature names: see `Plan` and its groups."""

    start: float | None
    steps: int | None
    resume: End | None
    rtol: float
    atol: float
    free: Free
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
    events: Event | Sequence[Event]
    tau: Forces
    span: Span
    stepping: Stepping
    loads: Loads
    touch: Touch
    closing: Closing
    output: Output


GROUPS: dict[str, Any] = {
    f.name: f.default for f in fields(Plan) if dataclasses.is_dataclass(f.default)
}
"""The groups of options by name, with nothing given."""

PLACES = {option.name: name for name, group in GROUPS.items() for option in fields(group)}
"""The group that an option belongs to."""


def planned(**options: Any) -> Plan:
    """One plan of options in groups and by themselves; tau is another name of control."""
    if (tau := options.pop("tau", None)) is not None:
        if options.get("control") is not None:
            raise ArgumentError("E-MOTION-089", "give control or tau, not both", part="simulate")
        options["control"] = tau
    groups, alone = dict(GROUPS), dict[str, dict[str, Any]]()
    for name, value in options.items():
        if name in PLACES:
            alone.setdefault(PLACES[name], {})[name] = value
        elif name not in GROUPS and name != "events":
            problem = f"simulate() got an unexpected keyword argument {name!r}"
            raise ArgumentError("E-MOTION-090", problem)
        elif name in GROUPS and not isinstance(value, type(GROUPS[name])):
            kind = type(GROUPS[name]).__name__
            problem = f"{name} must be {kind}(...), not {value!r:.60}"
            raise ArgumentError("E-MOTION-091", problem, part="simulate")
        else:
            groups[name] = value
    return Plan(**groups | {name: replace(groups[name], **given) for name, given in alone.items()})
