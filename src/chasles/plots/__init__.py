"""Plots of robots and trajectories with Matplotlib, which is imported when needed."""

from chasles.plots.accessor import Plots
from chasles.plots.moves import move

__all__ = ["Plots", "move"]
