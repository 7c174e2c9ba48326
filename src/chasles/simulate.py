"""Motion in time: a robot moves from a state under its forces."""

from chasles.motion.closure import ClosureFunction
from chasles.motion.drivers.events import Event
from chasles.motion.drivers.interpreted import simulate
from chasles.motion.records import End, Occurrence, Trajectory
from chasles.motion.steps.integrators import INTEGRATORS

__all__ = ["INTEGRATORS", "ClosureFunction", "End", "Event", "Occurrence", "Trajectory", "simulate"]
