"""Lazy imports of objects by import path, such as functions of optional subpackages."""

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
"""Import paths "module:name" of functions in optional subpackages, by entry point name.

Core modules import the subpackages distances, plots, view and checks only through this table.
"""


def entry_point(name: str) -> Any:
    """Import and return the object registered under a name in `ENTRY_POINTS`."""
    return imported(ENTRY_POINTS[name])


def imported(place: str) -> Any:
    """Import and return an object, given its import path "module:name".

    Without a name, the object has the same name as the module. Only the tables that list import
    paths may use this function (`tests/test_architecture.py`).
    """
    module, _, name = place.partition(":")
    return getattr(import_module(module), name or module.rpartition(".")[2])


class Sourced:
    """Descriptor that imports the object at `row.source` when the attribute is read.

    The import path `row.source` is relative to `package`.
    """

    def __init__(self, package: str) -> None:
        self.package = package

    def __get__(self, row: Any, kind: type | None = None) -> Any:
        return self if row is None else imported(f"{self.package}.{row.source}")
