"""Exception classes with the fields code, file, line, part, problem and remedy.

Every error that chasles raises deliberately is a `ChaslesError`. Programs should use its fields
instead of parsing the message. The `code` is stable; `docs/errors.md` lists all codes. Each class
also inherits from the matching built-in exception, so that `except ValueError` works as usual.
"""

import os
import re
import sys
import warnings
from dataclasses import MISSING, fields
from functools import cache
from types import FrameType
from typing import Any, Self, TypeVar

LONGEST = 80
"""Length in characters above which a word or quoted string is shortened."""

LONGEST_PATH = 1000
"""Length in characters above which a path is shortened."""

LONGEST_LINE = 2000
"""Length in characters above which a line of a message is shortened."""

_PIECES = re.compile(r"""(?<!\w)(['"])[^'"\n]{81,}\1(?!\w)|[^\s]{81,}""")
_LINES = re.compile(r"[^\n]+")
_CONTROLS, _CONTROLS_BUT_LINES = re.compile(r"[^ -~]"), re.compile(r"[^ -~\n\t]")


def shown(text: str, line: int = LONGEST_LINE, *, lines: bool = False) -> str:
    """Escape control characters and shorten long names, so that a message is safe to print.

    Parameters
    ----------
    text : str
        Message, possibly with names from files.
    line : int, optional
        Maximum line length in characters.
    lines : bool, optional
        Keep newlines and tabs.

    Returns
    -------
    str
        The message. Nonprintable characters are escaped as in Python (`\\x1b`). Overlong words,
        quoted strings, paths and lines are shortened with an ellipsis in the middle.
    """
    text = escaped(text, lines=lines)
    for first, last in reversed(cuts(text, line)):
        text = f"{text[:first]}\N{HORIZONTAL ELLIPSIS}{text[last:]}"
    return text


def escaped(text: str, *, lines: bool = False) -> str:
    """Escape nonprintable characters as Python does."""
    if text.isprintable():
        return text
    return (_CONTROLS_BUT_LINES if lines else _CONTROLS).sub(_escape, text)


def cuts(text: str, line: int = LONGEST_LINE) -> list[tuple[int, int]]:
    """Return the ranges [start, end) of characters to remove from a message that is too long."""
    if len(text) <= LONGEST:
        return []
    found: list[tuple[int, int]] = []
    for each in _LINES.finditer(text):
        pieces = [
            _middle(*piece.span(), LONGEST)
            for piece in _PIECES.finditer(text, *each.span())
            if len(piece[0]) > (LONGEST_PATH if os.sep in piece[0] else LONGEST)
        ]
        left = len(each[0]) - sum(last - first - 1 for first, last in pieces)
        found += pieces if left <= line else [_middle(*each.span(), line)]
    return found


def _middle(start: int, end: int, most: int) -> tuple[int, int]:
    """Return the part of the range [start, end) to replace with an ellipsis.

    The shortened range has `most` characters, including the ellipsis.
    """
    return start + most // 2, end - (most - 1) // 2


def _escape(found: re.Match[str]) -> str:
    letter = found[0]
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")


def brief(data: Any) -> str:
    """Return the repr of a dataclass instance, omitting hidden fields and default values."""
    usual = _usual(data.__class__)
    texts = {name: repr(getattr(data, name)) for name in usual}
    kept = (f"{name}={text}" for name, text in texts.items() if usual[name] != text)
    return f"{type(data).__name__}({', '.join(kept)})"


@cache
def _usual(kind: Any) -> dict[str, str | None]:
    """Return the default values, as text, of the fields shown in the repr of a dataclass.

    The value is None for a field without a default.
    """
    found: dict[str, str | None] = {}
    for x in (x for x in fields(kind) if x.repr):
        usual = x.default if x.default_factory is MISSING else x.default_factory()
        found[x.name] = None if usual is MISSING else repr(usual)
    return found


class ChaslesError(Exception):
    """Base class of all chasles exceptions.

    Parameters
    ----------
    code : str
        Stable identifier, for example `"E-URDF-002"`, used in only one place in the source. If
        `problem` is omitted, this argument is the problem, and the code is empty.
    problem : str
        Description of the problem, without its location and remedy.
    remedy : str
        What the user can do, or an empty string.
    part : str
        The function, joint, link or option that caused the problem.
    file : str or path, optional
        The file that caused the problem. `"file:line"` also specifies the line.
    line : int, optional
        Line in the file, counted from 1.

    Notes
    -----
    The printed message is `<file>:<line>: <part>: <problem>; <remedy> [<code>]`. In the message,
    `shown` escapes control characters and shortens long names. The fields keep the original values.
    """

    def __init__(
        self,
        code: str,
        problem: str = "",
        remedy: str = "",
        *,
        part: str = "",
        file: str | os.PathLike[str] | None = None,
        line: int | None = None,
    ) -> None:
        code, problem = (code, problem) if problem else ("", code)
        self.code, self.problem, self.remedy, self.part = code, problem, remedy, part
        self.file, self.line = _place(file, line)
        Exception.__init__(self, str(self))

    @property
    def place(self) -> str:
        """Location as "file:line" or "file", or an empty string if there is no file."""
        return (self.file or "") + ("" if self.line is None else f":{self.line}")

    @property
    def fault(self) -> str:
        """Message without the remedy and the code."""
        where = map(shown, filter(None, (self.place, self.part)))
        return ": ".join((*where, shown(self.problem, lines=True)))

    @property
    def message(self) -> str:
        """Message without the code."""
        return f"{self.fault}; {shown(self.remedy, lines=True)}" if self.remedy else self.fault

    def fields(self) -> dict[str, Any]:
        """Return the fields as a JSON-compatible dictionary.

        Returns
        -------
        dict
            The fields code, file, line, part, problem and remedy.

        Examples
        --------
        >>> from chasles.errors import InputError
        >>> InputError("E-X-001", "wrong").fields()["problem"]
        'wrong'
        """
        names = ("code", "file", "line", "part", "problem", "remedy")
        return {name: getattr(self, name) for name in names}

    def at(self, **fields: Any) -> Self:
        """Return a copy of the error with some fields replaced, for example to add the file.

        Parameters
        ----------
        **fields
            New field values.

        Returns
        -------
        ChaslesError
            Copy of the error.

        Examples
        --------
        >>> from chasles.errors import InputError
        >>> InputError("E-X-001", "wrong").at(part="q").part
        'q'
        """
        if "file" in fields:
            fields["file"], fields["line"] = _place(fields["file"], fields.get("line"))
        return _rebuilt(type(self), vars(self) | fields)

    def within(self, part: str) -> Self:
        """Return a copy of the error with its part prefixed by an outer part: `<outer>: <part>`.

        Parameters
        ----------
        part : str
            The outer part.

        Returns
        -------
        ChaslesError
            Copy of the error.

        Examples
        --------
        >>> from chasles.errors import InputError
        >>> InputError("E-X-001", "wrong", part="q").within("robot 'arm'").part
        "robot 'arm': q"
        """
        return self.at(part=": ".join(filter(None, (part, self.part))))

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]" if self.code else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), vars(self))


def said(error: BaseException) -> str:
    """Return the message of any exception, formatted by `shown` and without a code."""
    return error.message if isinstance(error, ChaslesError) else shown(str(error), lines=True)


def _place(file: str | os.PathLike[str] | None, line: int | None) -> tuple[str | None, int | None]:
    """Return the file name and line, which may be combined in `file` as "file:line"."""
    name, colon, digits = os.fspath(file or "").rpartition(":")
    if line is None and colon and digits.isdecimal():
        return name, int(digits)
    return os.fspath(file) if file else None, line


PASSED = ("chasles", "contextlib", "dataclasses", "functools", "numpy", "scipy")
"""Packages that a warning never refers to: chasles, and packages that call chasles back."""


def warn(text: str, kind: type[Warning] = UserWarning) -> None:
    """Issue a warning that refers to the line outside chasles that led to it.

    Parameters
    ----------
    text : str
        Message.
    kind : type, optional
        Class of the warning.

    Notes
    -----
    The line does not depend on the number of calls within chasles. In a thread that only chasles
    runs, the warning refers to the first call of the thread.
    """
    frame: FrameType = sys._getframe(1)
    while (name := frame.f_globals.get("__name__") or "").partition(".")[0] in PASSED:
        if frame.f_back is None:
            break
        frame = frame.f_back
    seen = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, kind, frame.f_code.co_filename, frame.f_lineno, name, seen)


T = TypeVar("T", bound=ChaslesError)


def _rebuilt(kind: type[T], values: dict[str, Any]) -> T:
    made = kind.__new__(kind)
    vars(made).update(values)
    made.args = (str(made),)
    return made


class InputError(ChaslesError, ValueError):
    """Exception raised if the value of an argument is invalid."""


class ArgumentError(ChaslesError, TypeError):
    """Exception raised if an argument is missing, unknown or superfluous, or has the wrong type."""


class ModelError(InputError):
    """Exception raised if a robot description is invalid or an operation is not supported."""


class StateError(ChaslesError, RuntimeError):
    """Exception raised if an operation fails at run time."""


class ConvergenceError(ChaslesError, ArithmeticError):
    """Exception raised if a computation does not converge or has no result."""


class NotFiniteError(ConvergenceError, FloatingPointError):
    """Exception raised if a result is NaN or infinite."""


class UnsupportedError(ChaslesError, NotImplementedError):
    """Exception raised if a valid operation is not supported by chasles."""


class MissingPackageError(ChaslesError, ModuleNotFoundError):
    """Exception raised if an optional package is not installed."""


class FileError(ChaslesError, OSError):
    """Exception raised if a file cannot be written."""


class LeftOutWarning(UserWarning):
    """Warning that some force elements in the model file are ignored."""


class ExistingFileError(FileError, FileExistsError):
    """Exception raised if a file already exists and may not be overwritten."""


class NotAFolderError(FileError, NotADirectoryError):
    """Exception raised if a path is not a folder."""
