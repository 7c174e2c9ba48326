"""Exceptions as data: a code, the place, the problem and the remedy.

Every error that chasles raises on purpose is a `ChaslesError`. Its fields, not its text, are the
interface: `code` is stable, and `docs/errors.md` lists all codes. Each class also inherits the
built-in exception that fits, so that `except ValueError` keeps working.
"""

from typing import Any


class ChaslesError(Exception):
    """Base of all errors of chasles.

    Parameters
    ----------
    code : str
        Stable identifier, for example ``"E-URDF-017"``; each raise statement has its own.
    problem : str
        What is wrong, without the place and without the remedy.
    remedy : str
        What to do about it, an action; empty if there is nothing to advise.
    part : str
        The function, joint, link or option that the problem belongs to.
    file, line : str and int, optional
        Where the problem is, if it comes from a file.

    Notes
    -----
    The text is ``<file>:<line>: <part>: <problem>; <remedy> [<code>]``.
    """

    def __init__(
        self,
        code: str,
        problem: str,
        remedy: str = "",
        *,
        part: str = "",
        file: str | None = None,
        line: int | None = None,
    ) -> None:
        super().__init__(code, problem, remedy)
        self.code, self.problem, self.remedy = code, problem, remedy
        self.part, self.file, self.line = part, file, line

    @property
    def where(self) -> str:
        """The file and line, then the part; empty parts are left out."""
        place = "" if self.file is None else self.file
        place += "" if self.line is None else f":{self.line}"
        return ": ".join(filter(None, (place, self.part)))

    @property
    def message(self) -> str:
        """The text without the code."""
        text = f"{self.where}: {self.problem}" if self.where else self.problem
        return f"{text}; {self.remedy}" if self.remedy else text

    def fields(self) -> dict[str, Any]:
        """Return the fields as a dictionary that JSON can hold."""
        return {
            "code": self.code,
            "file": self.file,
            "line": self.line,
            "part": self.part,
            "problem": self.problem,
            "remedy": self.remedy,
        }

    def at(self, **fields: Any) -> "ChaslesError":
        """Return the same error with some fields replaced, for a caller that knows more."""
        return _rebuilt(type(self), self.fields() | fields)

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.fields())


def _rebuilt(kind: type[ChaslesError], fields: dict[str, Any]) -> ChaslesError:
    made = kind.__new__(kind)
    ChaslesError.__init__(made, **fields)
    return made


class InputError(ChaslesError, ValueError):
    """A value that a function cannot take."""


class ArgumentError(ChaslesError, TypeError):
    """An argument of the wrong type, or a missing, unknown or superfluous one."""


class ModelError(InputError):
    """A robot description, or a request to a robot, that has no meaning."""


class StateError(ChaslesError, RuntimeError):
    """An operation that failed while it ran."""


class NotFiniteError(ChaslesError, FloatingPointError):
    """A computation that left the range of finite numbers."""


class UnsupportedError(ChaslesError, NotImplementedError):
    """A request that is meaningful, but that chasles does not handle."""


class MissingPackageError(ChaslesError, ImportError):
    """An optional package that is not installed."""
