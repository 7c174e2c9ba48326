"""Decorators for deprecated keywords, and for showing keyword options in signatures."""

import dataclasses
import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, signature
from typing import Any, TypeVar, get_type_hints

from chasles import names as naming
from chasles.errors import ArgumentError, warn
from chasles.names import keyword

T = TypeVar("T", bound=Callable[..., Any])


def check_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise an error for keyword arguments that a function does not accept."""
    names = dict.fromkeys(known)
    for name in given:
        if name not in names:
            problem = f"{function}() got an unexpected keyword argument {name!r}"
            raise ArgumentError("E-MOTION-090", problem, keyword(name, names))


def shown(options: type, defaults: Mapping[str, Any] | None) -> Callable[[T], T]:
    """Return a decorator that replaces `**options` in a function's signature with named keywords.

    `options` is the TypedDict that declares the keywords. A keyword without a default is required.
    """
    known = defaults or {}

    def showing(function: T) -> T:
        own = signature(function)
        given = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        named = [
            Parameter(
                name, Parameter.KEYWORD_ONLY, default=known.get(name, Parameter.empty), annotation=a
            )
            for name, a in get_type_hints(options).items()
        ]
        last = [p for p in given if p.kind is p.KEYWORD_ONLY and p.default is not p.empty]
        first = [p for p in given if p not in last]
        whole = own.replace(parameters=[*first, *named, *last])
        function.__signature__ = whole  # type: ignore[attr-defined]
        return function

    return showing


def renamed(**names: str) -> Callable[[T], T]:
    """Return a decorator that makes a function or class accept deprecated keywords (old="new").

    For a class, the decorator also keeps the deprecated attributes.
    """

    def accepting(target: T) -> T:
        call: Any = vars(target)["__init__"] if isinstance(target, type) else target

        @functools.wraps(call)
        def called(*arguments: Any, **options: Any) -> Any:
            for old in names.keys() & options.keys():
                new = names[old]
                warn(f"{old}= is now {new}=", DeprecationWarning)
                if new in options and not _replacing():
                    problem = f"pass only {new}= (its old name is {old}=)"
                    raise ArgumentError("E-MOTION-092", problem, part=call.__qualname__)
                options[new] = options.pop(old)
            return call(*arguments, **options)

        if not isinstance(target, type):
            return called  # type: ignore[return-value]
        target.__init__ = called  # type: ignore[misc]
        for old, new in names.items():
            setattr(target, old, property(functools.partial(_read, old=old, new=new)))
        return target

    return accepting


def _replacing() -> bool:
    """Return True if called from `dataclasses.replace`, which passes all fields."""
    frame = sys._getframe(2)
    while frame.f_globals is vars(naming) and frame.f_back:  # `with_suggestions`
        frame = frame.f_back
    return frame.f_globals is vars(dataclasses)


def _read(owner: Any, *, old: str, new: str) -> Any:
    warn(f".{old} is now .{new}", DeprecationWarning)
    return getattr(owner, new)
