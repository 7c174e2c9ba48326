"""Pictures of a robot, by matplotlib, which loads when one is drawn: `robot.plot`."""

from chasles.plots.accessor import Plots

__all__ = ["Plots"]
