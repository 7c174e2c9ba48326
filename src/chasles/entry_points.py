"""Lazy imports of optional subpackages (distances, plots, checks, viewer) and of table entries."""

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
    return imported(ENTRY_POINTS[name])


def imported(place: str) -> Any:
    """Import and return an object, given its import path "module:name".

    Without a name, the object has the same name as the module. Only the tables that list import
    paths may use this function (`tests/test_architecture.py`).
    """
    module, _, name = place.partition(":")
    return getattr(import_module(module), name or module.rpartition(".")[2])


class Sourced:
    """Attribute of a table row: the object at the import path `source`, imported on use.

    package: the package to which `source` is relative.
    """

    def __init__(self, package: str) -> None:
        self.package = package

    def __get__(self, row: Any, kind: type | None = None) -> Any:
        return self if row is None else imported(f"{self.package}.{row.source}")
