"""Motion in time: a robot moves from a state under its forces."""

from chasles.rollouts import End, Occurrence, Trajectory
from chasles.simulate.closure_function import ClosureFunction
from chasles.simulate.driver import simulate
from chasles.simulate.events import Event
from chasles.simulate.integrators import INTEGRATORS

__all__ = ["INTEGRATORS", "ClosureFunction", "End", "Event", "Occurrence", "Trajectory", "simulate"]
