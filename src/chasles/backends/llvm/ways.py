"""Ways of calling kernels through the one fast entry, and the built-in functions around it.

A way is a tuple: an array of words that the machine code reads (`objects.WAY`), and whatever
these words point to. Tuples and arrays of numbers are never taken apart by the garbage collector
while somebody holds them: so no order in which it clears things, no finaliser and no resurrection
leaves an entry with a way that is gone. The list of further ways may be emptied by it, and is then
an empty list.
"""

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chasles.backends.arrays import Load, Target
from chasles.backends.llvm.source import WORTH_THREADS
from chasles.backends.objects import (
    CONTEXT,
    FILLED,
    HEAD,
    MOST_INPUTS,
    MOST_OPTIONS,
    MOST_OUTPUTS,
    MOST_RANK,
    MOST_WRENCHES,
    VARIABLE,
    WAY,
    address,
    call_slot,
    fill_context,
    for_ever,
    places,
    supported,
)
from chasles.errors import StateError

Again = Callable[["Owner", tuple[Any, ...], dict[str, Any]], Any]
"""A short way for what an entry does not take: its owner, arguments and named ones to an answer, or
NotImplemented."""

Way = tuple[Any, ...]
NEVER, ALWAYS, ANY = 0, 1, 2
"""Use of a way for arguments that are all float32."""

MOST_WAYS = 64
"""Ways that an entry remembers."""


def plain_way(kernel: Any) -> Way | None:
    """The way by arrays alone; None for a kernel with more arrays than the code has room for."""
    interface = kernel.interface
    variables = (*interface.inputs, *interface.outputs)
    if len(interface.inputs) > MOST_INPUTS or not 0 < len(interface.outputs) <= MOST_OUTPUTS:
        return None
    if any(len(v.shape) > MOST_RANK for v in variables):
        return None
    shapes = np.zeros((len(variables), VARIABLE), np.int64)
    for row, variable in zip(shapes, variables, strict=True):
        row[:2] = variable.size, len(variable.shape)
        row[2 : 2 + len(variable.shape)] = variable.shape
    zeros = np.array(interface.nonzero, np.int64).reshape(-1, 2)
    count = len(interface.inputs)
    facts = {
        "one": kernel.one_address,
        "batch": kernel.batch_address,
        "workspace": kernel.artifact.workspace,
        "most": WORTH_THREADS // max(kernel.artifact.work, 1),
        "number": kernel.dtype.num,
        "element": int(kernel.dtype == np.float32),
        "bytes": kernel.dtype.itemsize,
        "inputs": count,
        "outputs": len(interface.outputs),
        "shown": len(interface.outputs),
        "gap": 0,
        "margin": 0,
        "numbers": sum(v.size for v in interface.inputs),
        "variables": address(shapes),
        "nonzero": len(zeros),
        "quaternions": address(zeros),
        "single": ANY if kernel.dtype == np.float32 else NEVER,
    }
    return _way(facts, (kernel.code, shapes, zeros), count, [4 * k for k in range(count)])


def _way(
    facts: Mapping[str, int],
    kept: tuple[Any, ...],
    arguments: int,
    sources: Sequence[int],
    fixed: tuple[Any, ...] = (),
    options: Mapping[str, Any] | None = None,
    loads: Sequence[Load] | None = None,
) -> Way:
    """The words of a way, and what they point to."""
    named = [(name, value) for name, value in (options or {}).items()]
    held = [(w.key, w.kind, *w.places, w.axes, w.at) for w in loads or ()]
    lists = {
        "sources": np.array(sources, np.int64),
        "fixed": _addresses(fixed),
        "named": _addresses([part for pair in named for part in pair]),
        "loads": np.array(
            [
                [id(key), id(kind) if kind else 0, value, axes_at, id(axes), at_at, id(at)]
                for key, kind, value, axes_at, at_at, axes, at in held
            ],
            np.int64,
        ),
    }
    counts = {
        "arguments": arguments,
        "options": len(named),
        "wrenches": -1 if loads is None else len(held),
    }
    all_facts = {**facts, **counts, **{name: address(a) for name, a in lists.items()}}
    all_facts["bare"] = -1
    if list(sources) == [4 * k for k in range(len(sources))]:
        all_facts["sources"] = 0  # the caller's arguments as they are
        if not named and loads is None:
            all_facts["bare"] = arguments
    words = np.array([all_facts[name] for name in WAY], np.int64)
    return (words, kept, tuple(lists.values()), fixed, tuple(named), tuple(held), dict(facts))


def _addresses(things: Sequence[Any]) -> np.ndarray:
    return np.array([id(thing) for thing in things], np.int64)


class Owner(tuple[Any, ...]):
    """The `__self__` of a fast entry, called for arguments that the machine code does not take.

    A tuple: the way by arrays alone (or None), further ways that were learned, the holder with the
    name under which a pickled entry is found again, the Python path (`fallback`), the path tried
    before it (`again`), and the learned ways.
    """

    __slots__ = ()

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        _, _, _, _, fallback, again, _ = self
        answer = NotImplemented if again is None else again(self, arguments, named)
        if answer is not NotImplemented:
            return answer
        if fallback is None:
            raise StateError("E-CALL-016", "the robot of this function has been destroyed")
        return fallback(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name == self[3]:
            return getattr(self[2], name)
        raise AttributeError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _without_code, (self[2], self[3])


def _without_code(holder: Any, name: str) -> Owner:
    """An owner from another process: asked only for the entry of its name there."""
    return Owner((None, [], holder, name, None, None, set()))


def learn(
    owner: Any,
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
    make: Callable[[], Target | None],
) -> None:
    """Let the entry of an owner remember a way that a call went by Python.

    It does if the machine code can go it too. make: what the call led to, if the entry of a kernel
    could be called directly.
    """
    if not isinstance(owner, Owner) or len(owner[1]) >= MOST_WAYS:
        return
    if any(type(name) is not str for name in named):
        return
    given = {sys.intern(name): value for name, value in named.items()}  # as in code that calls
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
        if key in owner[-1]:
            return
        owner[-1].add(key)
    except (TypeError, ValueError):
        return  # an option without hash
    target = target or make()
    way = None if target is None else _reached(target, short)
    if target is not None and way is not None:
        if target.shown is not None:
            gap, margin = (int(np.float64(x).view(np.int64)) for x in (target.gap, target.margin))
            facts = way[-1] | {"shown": target.shown, "gap": gap, "margin": margin}
            way = (*way[:-1], facts)
        where = target.sources, target.fixed, options, target.loads
        owner[1].append(_way(way[-1], way[1], len(arguments), *where))


def _reached(target: Target, short: bool) -> Way | None:
    """The way by arrays alone of the kernel that a call led to; short: of the one in float32."""
    owner = getattr(target.entry, "__self__", None)
    if not isinstance(owner, Owner) or owner[0] is None or len(target.loads or ()) > MOST_WRENCHES:
        return None
    plain: Way = owner[0]
    if short and target.shown is not None:
        return None
    if short and plain[-1]["single"] == NEVER:
        plain = next((way for way in owner[1] if way[-1]["single"] == ALWAYS), plain)
        if plain is owner[0]:
            return None
    if len(target.sources) != plain[-1]["inputs"]:
        return None
    return (*plain[:-1], plain[-1] | {"single": ALWAYS}) if short else plain


def _is_short(argument: Any) -> bool:
    return type(argument) is np.ndarray and argument.dtype == np.float32


_FASTCALL_WITH_KEYWORDS = 0x0080 | 0x0002
_DEFINITIONS: dict[str, Any] = {}
"""Method definitions by name, signature and documentation; CPython reads them until the end."""


def _definition(name: str, text: str, entry: int) -> int:
    """The address of a method definition, kept forever: there is one for each function."""
    if text not in _DEFINITIONS:
        held = ctypes.c_char_p(name.encode()), ctypes.c_char_p(text.encode())
        start, end = (ctypes.cast(x, ctypes.c_void_p).value or 0 for x in held)
        words = np.array([start, entry, _FASTCALL_WITH_KEYWORDS, end], np.int64)
        _DEFINITIONS[text] = for_ever((words, held))
    return address(_DEFINITIONS[text][0])


def fast_entry(
    entry: int,
    way: Way | None,
    *,
    name: str,
    signature: str,
    doc: str,
    holder: Any,
    fallback: Callable[..., Any],
    again: Again | None = None,
) -> Callable[..., Any]:
    """Return the built-in function around the code at an address.

    way: by arrays alone, if there is one. holder: where the function can be found again by name
    when it is unpickled. fallback: takes the same arguments in every form, and is called for
    whatever the machine code does not take. again: tried before it, a short way for arrays that
    only need another memory layout.
    """
    assert supported()
    fill_context()
    definition = _definition(name, f"{name}($self, {signature})\n--\n\n{doc}", entry)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    owner = Owner((way, [], holder, name, fallback, again, set()))
    built: Callable[..., Any] = make(definition, owner, None)
    return built


def called_by_slot(kind: type, sample: Any, called: int) -> None:
    """Let objects of a class that keep a fast entry in their first slot be called like it.

    CPython calls an object by what its class has in `tp_call`, which is by default the `__call__`
    of the class: machine code at an address takes its place, and hands on what it does not take.
    The method stays what others see of the class, as the compiler of PyTorch does.
    """
    entry = object()
    sample._entry = entry
    usual = FILLED[list(CONTEXT).index("usual_call")]
    if places(sample, [entry]) == (HEAD,) and call_slot(kind).value == usual:
        call_slot(kind).value = called
    del sample._entry
