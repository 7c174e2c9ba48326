"""Simulation options, in groups that can be named, stored and reused.

Every option may be passed individually, `simulate(..., every=10)`, or in its group, `simulate(...,
output=Output(every=10))`. An individual option overrides its group.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

import numpy as np

from chasles.motion.contract import Array
from chasles.motion.controls import Controls
from chasles.motion.drivers.loops import ClosureFunction
from chasles.motion.records import End, Event
from chasles.motion.steps.integrators import Free

MOST_STEPS = 10**10
"""Maximum number of steps in a simulation. That many steps take 15 minutes with the fastest
compiled robots, and months with the slowest.
"""

AUTOMATIC = "auto"
"""Integrator name for automatic selection, which depends on the contacts."""

DT = 1e-3
"""Default step size (s), and the first step size of an adaptive integrator."""

Forces = Array | Callable[[float, np.ndarray, np.ndarray], Array] | None
"""Joint torques: none, constant, one row per step, or a controller tau(t, q, qd)."""


@dataclass(frozen=True)
class Span:
    """Duration and start time (s), maximum number of steps, and the `End` to resume from."""

    duration: float | None = None
    start: float | None = None
    steps: int | None = None
    resume: End | None = None


@dataclass(frozen=True)
class Stepping:
    """Integrator, largest step size dt (s), and error tolerances of an adaptive integrator.

    integrator: "auto" selects "rk4", or "time-stepping" if the contacts come from the file.
    """

    integrator: str = AUTOMATIC
    dt: float | None = None
    rtol: float = 1e-6
    atol: float = 1e-9
    free: Free = "body"


@dataclass(frozen=True)
class Loads:
    """Joint torques or a controller with its parameters, external wrenches, and joint friction.

    ctrl: controls of the file's actuators, instead of joint torques. act: initial activations.
    model_parameters: values of the robot's parameters by name, either shared or one per state.
    """

    control: Forces = None
    ctrl: Any = None
    act: Array = None
    parameters: Array = None
    model_parameters: Mapping[str, Array] | None = None
    f_ext: Mapping[str, Any] | None = None
    dissipation: bool = False


@dataclass(frozen=True)
class Touch:
    """Contact pairs, initial states of soft contacts, and a flag that enables joint limits."""

    contacts: Sequence[Any] | str = ()
    contact_states: Array = None
    limits: bool = False


@dataclass(frozen=True)
class Closing:
    """Loop closure: a function, or a stabilization time (s). Default: Newton's method."""

    closure: ClosureFunction | None = None
    stabilization: float | None = None


@dataclass(frozen=True)
class Output:
    """Recorded states: at times (n,) in s, or every `every` steps and at the end.

    progress: show a progress bar. sensors: record all sensors, or the named sensors, at these
    states. noise: seed of the sensor errors.
    """

    times: Array = None
    every: int = 1
    progress: bool = False
    sensors: bool | str | Sequence[str] = False
    noise: "np.random.Generator | int | None" = None


@dataclass(frozen=True)
class Plan(Output, Closing, Touch, Loads, Stepping, Span):
    """All options of one simulation, including its events."""

    events: Event | Sequence[Event] = ()

    @property
    def asked(self) -> Any:
        """Controller for joint torques or actuators, as given by the user."""
        return self.control.function if isinstance(self.control, Controls) else self.control


Integrators = Literal[
    "auto",
    "euler",
    "heun2",
    "heun3",
    "rk4",
    "dopri5",
    "semi-implicit",
    "implicit-euler",
    "sdirk2",
    "variational",
    "time-stepping",
]
"""Names of integrators, for type checkers: "auto", "time-stepping", and names in `INTEGRATORS`."""


class Options(TypedDict, total=False):
    """Options of `simulate`: the fields of `Plan` and their groups. tau: an alias of control."""

    duration: float | None
    dt: float | None
    integrator: Integrators
    control: Forces
    contacts: Sequence[Any] | str
    start: float | None
    steps: int | None
    resume: End | None
    rtol: float
    atol: float
    free: Free
    tau: Forces
    ctrl: Any
    act: Array
    parameters: Array
    model_parameters: Mapping[str, Array] | None
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
"""Groups of options by name."""

NAMES = {field.name: field.default for field in fields(Plan)}
"""Default values of all individual options, by name."""
