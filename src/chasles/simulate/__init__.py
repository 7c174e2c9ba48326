"""Motion in time: a robot moves from a state under its forces."""

from chasles.simulate.closure_function import ClosureFunction
from chasles.simulate.driver import Trajectory, simulate
from chasles.simulate.events import Event, Occurrence
from chasles.simulate.integrators import INTEGRATORS

__all__ = ["INTEGRATORS", "ClosureFunction", "Event", "Occurrence", "Trajectory", "simulate"]
