"""Exceptions as data: a code, the place, the problem and the remedy.

Every error that chasles raises on purpose is a `ChaslesError`. Its fields, not its text, are the
interface: `code` is stable, and `docs/errors.md` lists all codes. Each class also inherits from the
matching built-in exception, so that `except ValueError` works as usual.
"""

import os
import re
from typing import Any, Self, TypeVar

LONGEST = 80
"""Largest length of a word or quoted text, in characters. Longer texts are shortened."""

LONGEST_PATH = 1000
"""Largest length of a path, in characters. Longer paths are shortened."""

LONGEST_LINE = 2000
"""Largest length of a line of a message, in characters. Longer lines are shortened."""

_PIECES = re.compile(r"""(?<!\w)(['"])[^'"\n]{81,}\1(?!\w)|[^\s]{81,}""")
_LINES = re.compile(r"[^\n]+")
_CONTROLS, _CONTROLS_BUT_LINES = re.compile(r"[^ -~]"), re.compile(r"[^ -~\n\t]")


def shown(text: str, line: int = LONGEST_LINE, *, lines: bool = False) -> str:
    """Return a text that is safe for a terminal: control characters escaped, long names shortened.

    Parameters
    ----------
    text : str
        Text with names that come from files.
    line : int, optional
        Largest number of characters of a line.
    lines : bool, optional
        Keep line ends and tabs, for a text of several lines.

    Returns
    -------
    str
        The text with characters that are not printable escaped as in Python (`\\x1b`), and with an
        ellipsis in the middle of words, texts in quotes, paths and lines that are too long. Other
        texts are returned unchanged.
    """
    text = escaped(text, lines=lines)
    for first, last in reversed(cuts(text, line)):
        text = f"{text[:first]}\N{HORIZONTAL ELLIPSIS}{text[last:]}"
    return text


def escaped(text: str, *, lines: bool = False) -> str:
    """Return a text with characters that are not printable escaped as in Python."""
    if text.isprintable():
        return text
    return (_CONTROLS_BUT_LINES if lines else _CONTROLS).sub(_escape, text)


def cuts(text: str, line: int = LONGEST_LINE) -> list[tuple[int, int]]:
    """Return the parts of a text to cut, as half-open ranges of character indices."""
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
    """Return the part of a text that an ellipsis replaces to shorten it."""
    return start + most // 2, end - (most - 1) // 2


def _escape(found: re.Match[str]) -> str:
    letter = found[0]
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")


class ChaslesError(Exception):
    """Base of all errors of chasles.

    Parameters
    ----------
    code : str
        Stable identifier, for example `"E-URDF-017"`, unique to one place in the source. If
        `problem` is omitted, this argument is used as the problem, and the code is empty.
    problem : str
        Description of the problem, without the place and the remedy.
    remedy : str
        Action that solves the problem; empty if there is none.
    part : str
        The function, joint, link or option that the problem belongs to.
    file : str or path, optional
        The file that the problem comes from; `"file:line"` gives both.
    line : int, optional
        Line in the file, counted from 1.

    Notes
    -----
    The text is `<file>:<line>: <part>: <problem>; <remedy> [<code>]`. Each part is formatted by
    `shown`: control characters are escaped and long names shortened. The fields hold the original
    values.
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
        """The file and, if known, the line; empty if the problem does not come from a file."""
        return (self.file or "") + ("" if self.line is None else f":{self.line}")

    @property
    def fault(self) -> str:
        """The text without the remedy and the code."""
        where = map(shown, filter(None, (self.place, self.part)))
        return ": ".join((*where, shown(self.problem, lines=True)))

    @property
    def message(self) -> str:
        """The text without the code."""
        return f"{self.fault}; {shown(self.remedy, lines=True)}" if self.remedy else self.fault

    def fields(self) -> dict[str, Any]:
        """Return the fields as a dictionary that can be written as JSON.

        Returns
        -------
        dict
            code, file, line, part, problem and remedy.

        Examples
        --------
        >>> from chasles.errors import InputError
        >>> InputError("E-X-001", "wrong").fields()["problem"]
        'wrong'
        """
        names = ("code", "file", "line", "part", "problem", "remedy")
        return {name: getattr(self, name) for name in names}

    def at(self, **fields: Any) -> Self:
        """Return the same error with some fields replaced, for example to add the file.

        Parameters
        ----------
        **fields
            New values of fields.

        Returns
        -------
        ChaslesError
            The error.

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
        """Return the same error with an outer part before its part: `<outer>: <part>`.

        Parameters
        ----------
        part : str
            The outer part.

        Returns
        -------
        ChaslesError
            The error.

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
    """Return the text of any error, formatted by `shown` and without a code."""
    return error.message if isinstance(error, ChaslesError) else shown(str(error), lines=True)


def _place(file: str | os.PathLike[str] | None, line: int | None) -> tuple[str | None, int | None]:
    """Return the name of a file and a line. The line may be part of the name: "file:line"."""
    name, colon, digits = os.fspath(file or "").rpartition(":")
    if line is None and colon and digits.isdecimal():
        return name, int(digits)
    return os.fspath(file) if file else None, line


T = TypeVar("T", bound=ChaslesError)


def _rebuilt(kind: type[T], values: dict[str, Any]) -> T:
    made = kind.__new__(kind)
    vars(made).update(values)
    made.args = (str(made),)
    return made


class InputError(ChaslesError, ValueError):
    """A value that a function does not accept."""


class ArgumentError(ChaslesError, TypeError):
    """An argument of the wrong type, or a missing, unknown or superfluous argument."""


class ModelError(InputError):
    """An invalid robot description, or an invalid request to a robot."""


class StateError(ChaslesError, RuntimeError):
    """An operation that failed while it ran."""


class ConvergenceError(ChaslesError, ArithmeticError):
    """A computation that ended without a result."""


class NotFiniteError(ConvergenceError, FloatingPointError):
    """A computation whose results are not finite."""


class UnsupportedError(ChaslesError, NotImplementedError):
    """A valid request that chasles does not support."""


class MissingPackageError(ChaslesError, ModuleNotFoundError):
    """An optional package that is not installed."""


class FileError(ChaslesError, OSError):
    """A file that cannot be written."""


class LeftOutWarning(UserWarning):
    """Part of a robot file that exerts forces but was left out of the robot."""


class ExistingFileError(FileError, FileExistsError):
    """A file that already exists and is not overwritten."""


class NotAFolderError(FileError, NotADirectoryError):
    """A path that should be a folder but is not."""
