"""Motion in time: a robot moves from a state under its forces."""

from typing import Any

from chasles.motion import simulation
from chasles.motion.closure import ClosureFunction
from chasles.motion.contract import Array, Machine
from chasles.motion.drivers.events import Event
from chasles.motion.records import End, Occurrence, Trajectory
from chasles.motion.steps.integrators import INTEGRATORS

__all__ = ["INTEGRATORS", "ClosureFunction", "End", "Event", "Occurrence", "Trajectory", "simulate"]


def simulate(
    robot: Machine, q: Array, qd: Array, *, compiled: bool | None = False, **options: Any
) -> Trajectory:
    """Return `robot.simulate(q, qd, ...)`, step by step unless compiled is True or None.

    It takes all options of `Robot.simulate`, which explains them.
    """
    return simulation.simulate(robot, q, qd, compiled=compiled, **options)
