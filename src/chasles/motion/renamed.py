"""Keywords that have a new name: the old one still works, with a warning that says the new one."""

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from chasles.errors import ArgumentError

T = TypeVar("T", bound=Callable[..., Any])


def renamed(**names: str) -> Callable[[T], T]:
    """Accept old keywords (old="new") of a function, or of a class and its attributes."""

    def accepting(target: T) -> T:
        call: Any = vars(target)["__init__"] if isinstance(target, type) else target

        @functools.wraps(call)
        def called(*arguments: Any, **options: Any) -> Any:
            for old in names.keys() & options.keys():
                _warn(f"{old}= is now {names[old]}=")
                if names[old] in options:
                    problem = f"give {names[old]}=, without {old}="
                    raise ArgumentError("E-MOTION-092", problem, part=call.__qualname__)
                options[names[old]] = options.pop(old)
            return call(*arguments, **options)

        if not isinstance(target, type):
            return called  # type: ignore[return-value]
        target.__init__ = called  # type: ignore[misc]
        for old, new in names.items():
            setattr(target, old, property(functools.partial(_read, old=old, new=new)))
        return target

    return accepting


def _read(owner: Any, *, old: str, new: str) -> Any:
    _warn(f".{old} is now .{new}")
    return getattr(owner, new)


def _warn(words: str) -> None:
    warnings.warn(words, DeprecationWarning, stacklevel=3)
