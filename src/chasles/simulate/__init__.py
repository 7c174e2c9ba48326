"""Motion in time: a robot moves from a state under its forces."""

from chasles.rollouts import Trajectory
from chasles.simulate.closure_function import ClosureFunction
from chasles.simulate.driver import simulate

__all__ = ["ClosureFunction", "Trajectory", "simulate"]
