"""Registration of calls, so that machine code can handle later calls with the same options."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from chasles.backends.arrays import Target
from chasles.backends.llvm.kernel import ALWAYS, NEVER, Owner, Way, way_of
from chasles.backends.objects import MOST_OPTIONS, MOST_WRENCHES

MOST_WAYS = 64
"""Maximum number of call descriptors (`objects.WAY`) that are registered for one function."""


def learn(
    owner: Any,
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
    make: Callable[[], Target | None],
) -> None:
    """Register a call, so that machine code can handle later calls with the same options.

    Calls that only Python code can handle are not registered.

    - owner: the `__self__` of the fast entry.
    - make: function that returns the resolved call, or None if no kernel's entry can be called
      directly.
    """
    if not isinstance(owner, Owner) or len(owner[1]) >= MOST_WAYS:
        return
    if any(type(name) is not str for name in named):
        return
    # Python interns the keywords of calls, so that names can be compared by address.
    given = {sys.intern(name): value for name, value in named.items()}
    options = {name: value for name, value in given.items() if name not in ("out", "threads")}
    bare = options.get("f_ext") is None
    if not bare:
        del options["f_ext"]
    short = bool(arguments) and all(map(_is_short, arguments))
    if (owner[0] is not None and bare and not options and not short) or len(options) > MOST_OPTIONS:
        return
    target = None if bare else make()
    if target is None and not bare:
        return
    try:
        values = tuple((name, type(value), value) for name, value in options.items())
        key = (values, None if target is None else tuple(target.loads or ()), short, len(arguments))
        if key in owner[6]:
            return
        owner[6].add(key)
    except (TypeError, ValueError):
        return  # the call cannot be cached, because the value of an option is not hashable
    target = target or make()
    way = None if target is None else _reached(target, short)
    if target is not None and way is not None:
        if target.shown is not None:
            gap, margin = (int(np.float64(x).view(np.int64)) for x in (target.gap, target.margin))
            facts = way[-1] | {"shown": target.shown, "gap": gap, "margin": margin}
            way = (*way[:-1], facts)
        where = target.sources, target.fixed, options, target.loads
        owner[1].append(way_of(way[-1], way[1], len(arguments), *where))


def _reached(target: Target, short: bool) -> Way | None:
    """Return the descriptor for fast calls of the target's kernel, or None if there is none.

    short: True if all arguments are float32 arrays.
    """
    owner = getattr(target.entry, "__self__", None)
    if not isinstance(owner, Owner) or owner[0] is None or len(target.loads or ()) > MOST_WRENCHES:
        return None
    plain: Way = owner[-1]
    if short and target.shown is not None:
        return None
    if short and plain[-1]["single"] == NEVER:
        plain = next((way for way in owner[1] if way[-1]["single"] == ALWAYS), plain)
        if plain is owner[-1]:
            return None
    if len(target.sources) != plain[-1]["inputs"]:
        return None
    return (*plain[:-1], plain[-1] | {"single": ALWAYS}) if short else plain


def _is_short(argument: Any) -> bool:
    return type(argument) is np.ndarray and argument.dtype == np.float32
