"""Lazy imports of optional subpackages: distances, plots, checks and the viewer."""

from importlib import import_module
from typing import Any

ENTRY_POINTS = {
    "collision_pairs": "chasles.distances.pairs:collision_pairs",
    "distance": "chasles.distances.distance:distance",
    "enclosing_shapes": "chasles.distances.enclosing:enclosing_shapes",
    "plot_move": "chasles.plots:move",
    "plots": "chasles.plots:Plots",
    "show": "chasles.view:show",
    "verify": "chasles.checks:verify",
    "with_clearance": "chasles.distances.avoid:with_clearance",
}
"""Map from entry point names to "module:function". Core modules import these subpackages only here.
"""


def entry_point(name: str) -> Any:
    """Import and return the object registered under a name in `ENTRY_POINTS`."""
    module, _, function = ENTRY_POINTS[name].partition(":")
    return getattr(import_module(module), function)
