"""A robot as motion sees it: its model and functions, or those of its mechanism alone."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from chasles.functions.doors import derivative_names
from chasles.functions.programs import Derivative
from chasles.mechanisms import Mechanism
from chasles.model import Model

Array = Any
"""An array of NumPy, or anything that NumPy can make one of; of CuPy where that is said."""


class Machine(Protocol):
    """A model, and functions of arrays as `chasles.Robot` has them."""

    model: Model
    mechanism: Mechanism
    mimic: bool

    def at(self, t: Array) -> "Machine": ...

    @property
    def name(self) -> str: ...

    @property
    def nq(self) -> int: ...

    @property
    def nv(self) -> int: ...

    @property
    def driven_joints(self) -> tuple[str, ...]: ...

    def integrate(self, q: Array, v: Array) -> np.ndarray: ...

    def difference(self, q0: Array, q1: Array) -> np.ndarray: ...

    def forward_kinematics(self, q: Array, *, frame: str) -> np.ndarray: ...

    def jacobian(self, *arguments: Any, **options: Any) -> np.ndarray: ...

    def jacobian_rate(self, *arguments: Any, **options: Any) -> np.ndarray: ...

    def frame_velocity(self, *arguments: Any, **options: Any) -> np.ndarray: ...

    def frame_acceleration(self, *arguments: Any, **options: Any) -> np.ndarray: ...

    def mass_matrix(self, q: Array) -> np.ndarray: ...

    def bias_forces(self, q: Array, qd: Array) -> np.ndarray: ...

    def gravity_forces(self, q: Array) -> np.ndarray: ...

    def inverse_dynamics(self, *arguments: Any, **options: Any) -> np.ndarray: ...

    def inverse_dynamics_sensitivities(self, *arguments: Any, **options: Any) -> Any: ...

    def loop_matrix(self, q: Array) -> np.ndarray: ...

    def derivatives(self, *arguments: Any, **options: Any) -> Any: ...


PLAIN = ("integrate", "difference", "mass_matrix", "gravity_forces")
"""Functions that motion calls with arrays alone."""


class Plant:
    """A mechanism as a `Machine`: each function is looked up on first use, at one time."""

    def __init__(self, mechanism: Mechanism) -> None:
        model = mechanism.model
        self.model, self.mechanism, self.mimic = model, mechanism, model.mimics
        self.name, self.nq, self.nv = model.name, model.nq, model.nv
        self._ready: dict[Any, Callable[..., Any]] = {}

    def at(self, t: Array) -> "Plant":
        """The plant at a time (...), in s; itself if it does not depend on time."""
        mechanism = self.mechanism.at(t)
        return self if mechanism is self.mechanism else Plant(mechanism)

    def derivatives(self, function: str, *arrays: Array, wrt: str, **options: Any) -> np.ndarray:
        """As `Robot.derivatives`, by one argument."""
        key = ("derivatives", function, wrt, *options.items())
        if key not in self._ready:
            along = Derivative("jacobian", derivative_names(function, wrt, model=self.model))
            compiled = self.mechanism.function(function, derivative=along, **options)
            self._ready[key] = self.mechanism.bound(compiled).fast
        return self._ready[key](*arrays)

    def __getattr__(self, function: str) -> Callable[..., Any]:
        if function.startswith("_"):
            raise AttributeError(function)
        found = partial(self._call, function)
        if function in PLAIN:
            caller: Any = self.mechanism.caller(function)
            found = caller.fast
        self.__dict__[function] = found
        return found

    def _call(self, function: str, *arrays: Array, f_ext: Any = None, **options: Any) -> Any:
        key = (function, *options.items())
        ready = None if f_ext else self._ready.get(key)
        if ready is None:
            caller: Any = self.mechanism.caller(function, f_ext, **options)
            ready = getattr(caller, "fast", caller)
            if not f_ext:
                self._ready[key] = ready
        return ready(*arrays)


def plant(robot: Machine) -> Machine:
    """A robot's plant: below the door of a motion, nothing is asked of the robot."""
    made: Any = Plant(robot.mechanism)
    return made
