"""Description of a fuzz target, and the errors that its cases may raise."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chasles.errors import ChaslesError

Case = Callable[[random.Random, Path], None]
"""Function that runs one case, from random numbers, in a folder; it raises findings as errors."""


@dataclass(frozen=True)
class Target:
    """A row of the table of targets.

    Attributes
    ----------
    what
        Description for the list of targets.
    make
        Function that prepares the data shared by all cases and returns the function of a case.
    limit
        Time limit of a case in seconds, including compilation.
    checked
        True if cases run generated code; some children then run in checked mode.
    calls
        Number of calls to the library per case.
    brief
        Number of cases that the tests run.
    folder
        True if each case has its own folder.
    """

    what: str
    make: Callable[[], Case]
    limit: float = 20.0
    checked: bool = False
    calls: int = 1
    brief: int = 20
    folder: bool = True


class Hostile(Exception):
    """Error raised by an object that the case passes to the library; the library may pass it on."""


_SIGNATURE = re.compile(
    r"unexpected keyword argument|positional argument|keyword-only argument|multiple values"
)


def allowed(error: BaseException) -> bool:
    """Return True if a call may raise this error.

    Errors of chasles, of the arguments themselves and of Python about a wrong signature are
    allowed.
    """
    if isinstance(error, ChaslesError | Hostile | MemoryError) or str(error) == "no numbers here":
        return True
    return type(error) is TypeError and _SIGNATURE.search(str(error)) is not None


def place(error: BaseException) -> str:
    """Return the type of an error and the function in chasles that raised it.

    Findings with equal results are of the same kind.
    """
    trace, where = error.__traceback__, ""
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if "chasles" in path and "/fuzz/" not in path.replace("\\", "/").rpartition("chasles")[2]:
            where = f"{path.rpartition('chasles')[2]}:{trace.tb_frame.f_code.co_name}"
        trace = trace.tb_next
    return f"{type(error).__name__} {where}"
