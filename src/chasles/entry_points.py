"""Lazy imports of objects, such as functions of optional subpackages, by import path."""

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

    If the name is omitted, it is the last part of the module path. Only modules that load objects
    from a table may call this function; `tests/test_architecture.py` checks this.
    """
    module, _, name = place.partition(":")
    return getattr(import_module(module), name or module.rpartition(".")[2])


class Sourced:
    """Descriptor that imports its value when the attribute is read.

    The import path consists of `package`, a dot and the instance's attribute `source`.
    """

    def __init__(self, package: str) -> None:
        self.package = package

    def __get__(self, row: Any, kind: type | None = None) -> Any:
        return self if row is None else imported(f"{self.package}.{row.source}")
