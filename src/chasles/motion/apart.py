"""Copy user functions such that the copies share no mutable objects with the originals."""

import builtins
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from chasles.motion.controllers import BUILT_IN

PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.ufunc, type)
"""Immutable types, whose instances need not be copied."""


class MayRemember(Exception):
    """Error raised if a function uses an object whose state may change during a call."""


def apart(function: FunctionType, made: dict[int, Any] | None = None) -> FunctionType:
    """Return a copy of a function that shares no mutable objects with the original.

    Lists, dictionaries, arrays and functions that the function uses are copied. `made` maps the
    `id()` of each object that is already copied to its copy. Raises `MayRemember` for any other
    object that may be mutable, such as an instance of a user-defined class.
    """
    made, code = {} if made is None else made, function.__code__
    names = {"__builtins__": builtins}
    copied = FunctionType(
        code, names, function.__name__, None, tuple(CellType() for _ in code.co_freevars)
    )
    made[id(function)] = copied
    for cell, new, name in zip(
        function.__closure__ or (), copied.__closure__ or (), code.co_freevars, strict=True
    ):
        try:
            value = cell.cell_contents
        except ValueError:
            continue  # the captured variable has no value yet
        new.cell_contents = _copied(name, value, made)
    for name in sorted(_names(code) & function.__globals__.keys()):
        names[name] = _copied(name, function.__globals__[name], made)
    copied.__defaults__ = _copied("a default", function.__defaults__, made)
    copied.__kwdefaults__ = _copied("a default", function.__kwdefaults__, made)
    return copied


def _names(code: CodeType) -> set[str]:
    """Return the names of globals that a function and its nested functions may use."""
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _copied(name: str, value: Any, made: dict[int, Any]) -> Any:
    if isinstance(value, (*PLAIN, ModuleType, BuiltinFunctionType, BUILT_IN)):
        return value
    if id(value) in made:
        return made[id(value)]
    if isinstance(value, FunctionType):
        return apart(value, made)
    if type(value) is np.ndarray and value.dtype != object:
        return made.setdefault(id(value), value.copy())
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(_copied(name, item, made) for item in value)
    if type(value) is dict:
        return {key: _copied(name, item, made) for key, item in value.items()}
    raise MayRemember(f"control uses {name!r} ({type(value).__name__}), which may hold state")
