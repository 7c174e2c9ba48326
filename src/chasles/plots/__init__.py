"""Pictures of robots and trajectories, by matplotlib, which loads when one is drawn."""

from chasles.plots.accessor import Plots
from chasles.plots.moves import move

__all__ = ["Plots", "move"]
