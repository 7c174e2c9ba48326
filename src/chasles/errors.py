"""Exceptions as data: a code, the place, the problem and the remedy.

Every error that chasles raises on purpose is a `ChaslesError`. Its fields, not its text, are the
interface: `code` is stable, and `docs/errors.md` lists all codes. Each class also inherits the
built-in exception that fits, so that `except ValueError` keeps working.
"""

import os
from typing import Any, Self, TypeVar


class ChaslesError(Exception):
    """Base of all errors of chasles.

    Parameters
    ----------
    code : str
        Stable identifier, for example `"E-URDF-017"`; no two places of the source share one.
        An extension may give a text alone, which is a problem without a code.
    problem : str
        What is wrong, without the place and without the remedy.
    remedy : str
        What to do about it, an action; empty if there is nothing to advise.
    part : str
        The function, joint, link or option that the problem belongs to.
    file : str or path, optional
        The file that the problem comes from; `"file:line"` gives both.
    line : int, optional
        Its line, from 1.

    Notes
    -----
    The text is `<file>:<line>: <part>: <problem>; <remedy> [<code>]`.
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
        """The file and, where it is known, the line; empty if the problem is not from a file."""
        return (self.file or "") + ("" if self.line is None else f":{self.line}")

    @property
    def fault(self) -> str:
        """The text without the remedy and the code."""
        return ": ".join(filter(None, (self.place, self.part, self.problem)))

    @property
    def message(self) -> str:
        """The text without the code."""
        return f"{self.fault}; {self.remedy}" if self.remedy else self.fault

    def fields(self) -> dict[str, Any]:
        """Return the fields as a dictionary that JSON can hold."""
        names = ("code", "file", "line", "part", "problem", "remedy")
        return {name: getattr(self, name) for name in names}

    def at(self, **fields: Any) -> Self:
        """Return the same error with some fields replaced, for a caller that knows more."""
        if "file" in fields:
            fields["file"], fields["line"] = _place(fields["file"], fields.get("line"))
        return _rebuilt(type(self), vars(self) | fields)

    def within(self, part: str) -> Self:
        """Return the same error with a part around its own: `<part>: <own part>`."""
        return self.at(part=": ".join(filter(None, (part, self.part))))

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]" if self.code else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), vars(self))


def said(error: BaseException) -> str:
    """Return the text of any error, without a code."""
    return error.message if isinstance(error, ChaslesError) else str(error)


def _place(file: str | os.PathLike[str] | None, line: int | None) -> tuple[str | None, int | None]:
    """The name of a file and a line, which the file may have at its end: "file:line"."""
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
    """A value that a function cannot take."""


class ArgumentError(ChaslesError, TypeError):
    """An argument of the wrong type, or a missing, unknown or superfluous one."""


class ModelError(InputError):
    """A robot description, or a request to a robot, that has no meaning."""


class StateError(ChaslesError, RuntimeError):
    """An operation that failed while it ran."""


class ConvergenceError(ChaslesError, ArithmeticError):
    """A computation that ended without an answer."""


class NotFiniteError(ConvergenceError, FloatingPointError):
    """A computation that left the range of finite numbers."""


class UnsupportedError(ChaslesError, NotImplementedError):
    """A request that is meaningful, but that chasles does not handle."""


class MissingPackageError(ChaslesError, ModuleNotFoundError):
    """An optional package that is not installed."""


class FileError(ChaslesError, OSError):
    """A file that cannot be written."""


class ExistingFileError(FileError, FileExistsError):
    """A file that exists already and is not overwritten."""


class NotAFolderError(FileError, NotADirectoryError):
    """A path that should be a folder and is not."""
