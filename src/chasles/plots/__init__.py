"""Plots of robots and trajectories with Matplotlib, which is imported on use."""

from chasles.plots.accessor import Plots
from chasles.plots.moves import move

__all__ = ["Plots", "move"]
