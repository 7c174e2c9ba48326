"""Plots of robots and trajectories by matplotlib, which is loaded on use."""

from chasles.plots.accessor import Plots
from chasles.plots.moves import move

__all__ = ["Plots", "move"]
