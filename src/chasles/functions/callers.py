"""Wrappers that add external loads, a fixed time, or checks to compiled functions.

`target` returns the kernel that a wrapped function runs, so that a robot's fast entry (a C
callable) can call it directly.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import Any, NamedTuple

from chasles.backends.arrays import Target
from chasles.functions.compiled import AtTime, Compiled
from chasles.functions.doors import loads_of
from chasles.functions.tracing import WrenchKey

Caller = Callable[..., Any]
"""Callable that evaluates a function on arrays, with the options `out=` and `threads=`."""


@dataclass(frozen=True)
class Loaded:
    """Function with external wrenches, which are appended to the array arguments of each call."""

    here: Caller
    keys: tuple[WrenchKey, ...]
    forces: Sequence[Any]

    def __call__(self, *arrays: Any, **where: Any) -> Any:
        return self.here(*arrays, *self.forces, **where)


class Guarded(NamedTuple):
    """Function with an additional last result that indicates if the other results are valid.

    For each state, the last result contains the squared closure error of the loops, and a margin
    that is small if the compiled loop equations are nearly singular. Results are valid if no
    squared closure error exceeds `gap` and every margin exceeds `margin`. `shown` is the number of
    results that a call returns, not counting the last result. The callable that wraps the function
    provides this object as its attribute `guarded`.
    """

    function: Compiled | AtTime
    keys: tuple[WrenchKey, ...]
    shown: int
    gap: float
    margin: float


def learnable(ready: Any) -> bool:
    """Return True if a fast entry (a C callable) may cache the kernel that a callable runs."""
    kinds = (BuiltinFunctionType, AtTime, Loaded)
    return isinstance(ready, kinds) or getattr(ready, "guarded", None) is not None


def target(ready: Any, arrays: Sequence[Any], f_ext: Any) -> Target | None:
    """Return the C entry point of a callable and the sources of its inputs, or None if unavailable.

    `f_ext` contains the external loads of the call. The source of an input is an array of the call,
    an external load, or the fixed time.
    """
    guard: Guarded | None = getattr(ready, "guarded", None)
    facts: dict[str, Any] = {}
    sources = [4 * k for k in range(len(arrays))]
    keys: tuple[WrenchKey, ...] = ()
    if guard is not None:
        ready, keys, *rest = guard
        facts = dict(zip(("shown", "gap", "margin"), rest, strict=True))
    elif isinstance(ready, Loaded):
        ready, keys = ready.here, ready.keys
    if f_ext is not None:
        held = loads_of(f_ext, keys)
        if held is None:
            return None
        sources += [4 * k + 1 for k in held[1]]
        facts["loads"] = held[0]
    if isinstance(ready, AtTime):
        sources.insert(ready.place, 2)
        ready, facts["fixed"] = ready.compiled, (ready.t,)
    if isinstance(ready, Compiled):
        ready = ready.fast
    return Target(ready, sources, **facts) if isinstance(ready, BuiltinFunctionType) else None
