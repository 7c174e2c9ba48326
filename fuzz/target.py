"""What a target is, and which errors are allowed."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chasles.errors import ChaslesError

Case = Callable[[random.Random, Path], None]
"""One case: from random numbers, in a folder of its own. It raises what must not happen."""


@dataclass(frozen=True)
class Target:
    """A row of the table of targets.

    make: prepares what all cases share. limit: seconds of one case, compilation included. checked:
    whether cases run generated code, so that a part of them runs it in the checked mode. calls: how
    many of the library a case makes. brief: how many cases the tests run.
    folder: whether a case has a folder of its own.
    """

    what: str
    make: Callable[[], Case]
    limit: float = 20.0
    checked: bool = False
    calls: int = 1
    brief: int = 20
    folder: bool = True


class Hostile(Exception):
    """An error of an object that was given, which the caller gets back."""


_SIGNATURE = re.compile(
    r"unexpected keyword argument|positional argument|keyword-only argument|multiple values"
)


def allowed(error: BaseException) -> bool:
    """Whether a call may end in an error: ours, Python's about its signature, or the caller's."""
    if isinstance(error, ChaslesError | Hostile | MemoryError) or str(error) == "no numbers here":
        return True
    return type(error) is TypeError and _SIGNATURE.search(str(error)) is not None


def place(error: BaseException) -> str:
    """The type of an error and the line that raised it: what makes two findings the same."""
    trace, where = error.__traceback__, ""
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if "chasles" in path and "/fuzz/" not in path.replace("\\", "/").rpartition("chasles")[2]:
            where = f"{path.rpartition('chasles')[2]}:{trace.tb_frame.f_code.co_name}"
        trace = trace.tb_next
    return f"{type(error).__name__} {where}"
