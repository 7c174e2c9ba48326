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
"""Maximum number of steps in a simulation. A simulation of this length takes between 15 minutes and
several months, depending on the robot.
"""

AUTOMATIC = "auto"
"""Value of `integrator` that selects the integrator automatically, depending on contacts."""

DT = 1e-3
"""Default step size (s), which is also the first step size of an adaptive integrator."""

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
    """Integrator, maximum step size dt (s), and error tolerances of an adaptive integrator.

    The integrator "auto" stands for "time-stepping" if the contacts come from the robot's file
    ("file" or `contact.file_pairs`), and for "rk4" otherwise. For `free`, see `simulate`.
    """

    integrator: str = AUTOMATIC
    dt: float | None = None
    rtol: float = 1e-6
    atol: float = 1e-9
    free: Free = "body"


@dataclass(frozen=True)
class Loads:
    """Joint torques or a controller with its parameters, external wrenches, and joint friction.

    Attributes
    ----------
    control : array_like or controller, optional
        Joint torques (N m or N) or a controller.
    ctrl : array_like, callable or trajectory, optional
        Controls for the actuators in the robot's file, instead of joint torques.
    act : array_like, shape (..., na), optional
        Initial activations of the actuators.
    parameters : array_like, shape (..., m), optional
        Parameters of the controller.
    model_parameters : mapping from str to array_like, optional
        Values of robot parameters by name: one value for the entire batch, or one per member.
    f_ext : mapping from str to Wrench or array_like, optional
        External wrenches.
    dissipation : bool, optional
        True to include damping and dry friction of joints. Default: True only in "time-stepping"
        with contacts from the robot's file ("file" or `contact.file_pairs`).
    """

    control: Forces = None
    ctrl: Any = None
    act: Array = None
    parameters: Array = None
    model_parameters: Mapping[str, Array] | None = None
    f_ext: Mapping[str, Any] | None = None
    dissipation: bool | None = None


@dataclass(frozen=True)
class Touch:
    """Contact pairs, initial states of soft contacts, and a flag that enables joint limits.

    The default of `limits` is that of `Loads.dissipation`.
    """

    contacts: Sequence[Any] | str = ()
    contact_states: Array = None
    limits: bool | None = None


@dataclass(frozen=True)
class Closing:
    """Method that keeps loops closed: a closure function, or a time constant (s) of stabilization.

    If both are None, Newton's method closes the loops in each step.
    """

    closure: ClosureFunction | None = None
    stabilization: float | None = None


@dataclass(frozen=True)
class Output:
    """Options for recording states: at `times`, or every `every` steps and at the end.

    Attributes
    ----------
    times : array_like, shape (n,), optional
        Times at which states are recorded (s).
    every : int
        Number of steps between recorded states.
    progress : bool
        True to show a progress bar.
    sensors : bool, str or sequence of str
        True to record all sensors at the recorded states, or the names of sensors to record.
    noise : int or numpy.random.Generator, optional
        Seed of the sensor noise. Default: no noise.
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
        """The given joint torques or controller, or the function that returns actuator controls."""
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
"""Type of the option `integrator`: "auto", "time-stepping", or a name in `INTEGRATORS`."""


class Options(TypedDict, total=False):
    """Keyword arguments of `simulate`: the fields of `Plan` and of the option groups."""

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
    ctrl: Any
    act: Array
    parameters: Array
    model_parameters: Mapping[str, Array] | None
    f_ext: Mapping[str, Any] | None
    dissipation: bool | None
    contact_states: Array
    limits: bool | None
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
"""Classes of option groups, by the keyword of `simulate` that takes the group."""

NAMES = {field.name: field.default for field in fields(Plan)}
"""Default values of all individual options, by name."""
