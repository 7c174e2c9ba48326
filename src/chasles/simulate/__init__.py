"""Motion in time: a robot moves from a state under its forces."""

from chasles.simulate.closure_function import ClosureFunction
from chasles.simulate.driver import Trajectory, simulate

__all__ = ["ClosureFunction", "Trajectory", "simulate"]
