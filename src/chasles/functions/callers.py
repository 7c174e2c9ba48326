"""Functions under loads as they are called, and where the fast entry of a robot can take them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import Any

from chasles.backends.arrays import Target
from chasles.functions.doors import loads_of
from chasles.functions.tracing import WrenchKey

Caller = Callable[..., Any]
"""Computes a function: called with its arrays, `out=` and `threads=`."""


@dataclass(frozen=True)
class Loaded:
    """A function under loads, ready to be called: their values follow its arrays."""

    here: Caller
    keys: tuple[WrenchKey, ...]
    forces: Sequence[Any]

    def __call__(self, *arrays: Any, **where: Any) -> Any:
        return self.here(*arrays, *self.forces, **where)


def target(ready: Any, arrays: Sequence[Any], f_ext: Any) -> Target | None:
    """Where a call leads that the fast entry of a kernel can take; f_ext: its loads, if any."""
    sources = [4 * k for k in range(len(arrays))]
    if not isinstance(ready, Loaded):
        return Target(ready, sources) if isinstance(ready, BuiltinFunctionType) else None
    held = loads_of(f_ext, ready.keys)
    if held is None or not isinstance(ready.here, BuiltinFunctionType):
        return None
    return Target(ready.here, sources + [4 * k + 1 for k in held[1]], loads=held[0])
