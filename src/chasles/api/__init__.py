"""Public functions: load, save, from_dh, to_dh, compile, cost."""

from chasles.api.compiling import compile, cost
from chasles.api.files import from_dh, load, save, to_dh

__all__ = ["compile", "cost", "from_dh", "load", "save", "to_dh"]
