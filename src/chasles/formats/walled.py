"""Isolated programs: run in a separate process, with bounds on time and memory."""

import contextlib
import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chasles.errors import ModelError

_PROGRAM = Path(__file__).with_name("walled_program.py")

_OUT_OF_TIME = tuple(-getattr(signal, name, 1000) for name in ("SIGXCPU", "SIGKILL"))
"""Signals that end a process that has used up its time: the first, or the second if that is
ignored.
"""


_PIPE = subprocess.PIPE

PATIENCE, TURNS = 10.0, 100
"""Factor by which elapsed time may exceed processor time, on a busy machine; and the number of
turns in which it is waited for.
"""


class NotInstalled(ModelError):
    """A file whose reader is not installed; the file itself may be valid."""


@dataclass(frozen=True)
class Tool:
    """Reader of a format. package: required package; extra: extra that installs it.

    program: Python file of this package whose `answer` runs it. seconds: processor time. A process
    that waits for something else is stopped after `PATIENCE` times as long, not counting the time
    in which the machine sleeps or this process is stopped. memory: address space in bytes.
    """

    name: str
    package: str
    extra: str
    program: str
    seconds: float
    memory: int

    def ask(self, file: str, *arguments: str) -> dict[str, Any]:
        """Return the tool's answer about a file."""
        if importlib.util.find_spec(self.package) is None:
            problem = f"reading this file needs {self.name}, which is not installed"
            remedy = f"run pip install 'chasles[{self.extra}]'"
            raise NotInstalled("E-FILE-036", problem, remedy, file=file)
        program = _PROGRAM.parent / self.program
        # -P: the folder of a program is not searched for imports; a name there would hide others.
        limits = str(math.ceil(self.seconds)), str(self.memory)
        command = [sys.executable, "-P", str(_PROGRAM), str(program), *limits]
        command += [os.path.abspath(file), *arguments]
        one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # each takes addresses of its own
        with (
            tempfile.TemporaryDirectory() as folder,  # some log into the one they are run in
            subprocess.Popen(
                command, stdout=_PIPE, stderr=_PIPE, cwd=folder, env=one_thread
            ) as process,
        ):
            answered, errors = self._waited(process, file)
        if process.returncode in _OUT_OF_TIME:
            problem = f"{self.name} used more than {self.seconds:g} s of processor time"
            raise ModelError("E-FILE-038", problem, "simplify the file", file=file)
        try:
            found: dict[str, Any] = json.loads(answered)
        except ValueError as error:
            said = [line[:200] for line in errors.decode("utf-8", "replace").split("\n")]
            last = next(filter(str.strip, reversed(said)), f"code {process.returncode}")
            problem = f"{self.name} ended without a result ({last})"
            remedy = f"simplify the file; the limit is {self.memory / 2**30:g} GB of memory"
            raise ModelError("E-FILE-037", problem, remedy, file=file) from error
        return found

    def _waited(self, process: subprocess.Popen[bytes], file: str) -> tuple[bytes, bytes]:
        """Return what a process writes; each turn counts once, however long it is interrupted."""
        turn = PATIENCE * self.seconds / TURNS
        try:
            for _ in range(TURNS):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.communicate(timeout=turn)
        except BaseException:  # an interrupt, for example
            process.kill()
            raise
        process.kill()
        problem = f"{self.name} did not finish within {PATIENCE * self.seconds:g} s"
        remedy = "remove pipes and other special files that it refers to, or simplify the file"
        raise ModelError("E-FILE-403", problem, remedy, file=file)
