"""What motion in time needs of a robot, and the one place that asks for a robot's inner parts."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from chasles.loops import Loops
from chasles.loops.charts import Charts
from chasles.model import Model

Array = Any
"""An array of NumPy, or anything that NumPy can make one of; of CuPy where that is said."""


class Machine(Protocol):
    """A robot as motion sees it: its model, and functions of arrays as `chasles.Robot` has them."""

    model: Model

    @property
    def name(self) -> str: ...

    @property
    def nq(self) -> int: ...

    @property
    def nv(self) -> int: ...

    @property
    def joints(self) -> Sequence[str]: ...

    @property
    def independent(self) -> Sequence[str]: ...

    @property
    def driven_joints(self) -> Sequence[str]: ...

    def velocity_slice(self, joint: str) -> slice: ...

    def neutral(self) -> np.ndarray: ...

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

    def constrained_dynamics(self, *arguments: Any, **options: Any) -> Any: ...

    def loop_matrix(self, q: Array) -> np.ndarray: ...

    def complete(
        self, q: Array, yd: Array, ydd: Array = None, *, tolerance: float = 1e-9
    ) -> Any: ...

    def derivatives(self, *arguments: Any, **options: Any) -> Any: ...

    def function(self, *arguments: Any, **options: Any) -> Any: ...


# Inner parts -----------------------------------------------------------------------------------


def has_loops(robot: Machine | Model) -> bool:
    """Return True if loops or couplings restrict the motion of the tree."""
    return bool(_model(robot).loop_rows)


def depends_on_time(robot: Machine | Model) -> bool:
    """Return True if the robot depends on time."""
    return bool(_model(robot).timed)


def own_time(robot: Machine) -> float:
    """The time in s that the robot is asked at, 0 if none was given."""
    time = _inner(robot)._time
    return 0.0 if time is None else time


def at_time(robot: Machine, t: float) -> Machine:
    """The robot at a time, which only a robot that depends on time feels."""
    there: Machine = _inner(robot)._at(t)
    return there


def choice(robot: Machine) -> Loops:
    """The loops and their independent coordinates, chosen once."""
    found: Loops = _inner(robot)._choice
    return found


def closing(robot: Machine) -> Loops:
    """The loops at the robot's time."""
    found: Loops = _inner(robot)._closing
    return found


def charts(robot: Machine) -> Charts:
    """Closed positions written in other independent coordinates."""
    found: Charts = _inner(robot)._charts
    return found


def reduced(robot: Machine, function: str, q: Array) -> tuple[np.ndarray, np.ndarray]:
    """G with qd = G yd at a closed q, and G' M G."""
    G, M = _inner(robot)._closed.reduced(function, q, threads=None)
    return G, M


def keeps_mimic(robot: Machine) -> bool:
    """Return True if mimic joints follow their leaders."""
    return bool(_inner(robot)._mimic)


def ready(robot: Machine) -> dict[Any, Any]:
    """Compiled steps of the robot, by all that decides them."""
    made: dict[Any, Any] = _inner(robot)._ready
    return made


def _model(robot: Machine | Model) -> Model:
    return robot if isinstance(robot, Model) else robot.model


def _inner(robot: Machine) -> Any:
    return robot
