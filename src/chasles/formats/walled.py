"""Run file readers in a separate process with limits on time and memory."""

import contextlib
import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chasles.errors import ModelError

_PROGRAM = Path(__file__).with_name("walled_program.py")

_OUT_OF_TIME = tuple(-getattr(signal, name, 1000) for name in ("SIGXCPU", "SIGKILL"))
"""Exit codes of a process that exceeded its limit on processor time."""


PATIENCE, TURNS = 10.0, 100
"""Ratio of the elapsed-time limit to the processor-time limit, and number of waiting periods.

On a busy machine, the elapsed time is much longer than the processor time; `PATIENCE` allows for
this. `run` divides its timeout into `TURNS` waiting periods.
"""


class NotInstalled(ModelError):
    """Exception raised if the reader for a file is not installed; the file itself may be valid."""


@dataclass(frozen=True)
class Tool:
    """A file reader that runs in a separate process.

    Attributes
    ----------
    package
        Required Python package.
    extra
        Extra of chasles that installs the package: pip install 'chasles[EXTRA]'.
    program
        Name of a Python file in this folder; its function `answer` runs the reader.
    seconds
        Limit on processor time; elapsed time is limited to `PATIENCE * seconds`, not counting time
        in which the machine sleeps or this process is stopped.
    memory
        Limit on the address space in bytes.
    """

    name: str
    package: str
    extra: str
    program: str
    seconds: float
    memory: int

    def ask(self, file: str, *arguments: str) -> dict[str, Any]:
        """Run the reader on a file and return its result."""
        if importlib.util.find_spec(self.package) is None:
            problem = f"reading this file requires {self.name}, which is not installed"
            remedy = f"run pip install 'chasles[{self.extra}]'"
            raise NotInstalled("E-FILE-036", problem, remedy, file=file)
        program = _PROGRAM.parent / self.program
        # -P: exclude the program's folder from imports; its files could shadow other modules.
        limits = str(math.ceil(self.seconds)), str(self.memory)
        command = [sys.executable, "-P", str(_PROGRAM), str(program), *limits]
        command += [os.path.abspath(file), *arguments]
        # Use one OpenBLAS thread, because each thread reserves memory; disable MuJoCo's graphics.
        lean = os.environ | {"OPENBLAS_NUM_THREADS": "1", "MUJOCO_GL": "disable"}
        with tempfile.TemporaryDirectory() as folder:  # MuJoCo writes log files here
            try:
                done = run(command, timeout=PATIENCE * self.seconds, cwd=folder, env=lean)
            except subprocess.TimeoutExpired:
                problem = f"{self.name} did not finish within {PATIENCE * self.seconds:g} s"
                remedy = "remove references to pipes and other special files, or simplify the file"
                raise ModelError("E-FILE-403", problem, remedy, file=file) from None
        if done.returncode in _OUT_OF_TIME:
            problem = f"{self.name} used more than {self.seconds:g} s of processor time"
            raise ModelError("E-FILE-038", problem, "simplify the file", file=file)
        try:
            found: dict[str, Any] = json.loads(done.stdout)
        except ValueError as error:
            said = [line[:200] for line in done.stderr.decode("utf-8", "replace").split("\n")]
            last = next(filter(str.strip, reversed(said)), f"code {done.returncode}")
            problem = f"{self.name} ended without a result ({last})"
            remedy = f"simplify the file; the memory limit is {self.memory / 2**30:g} GB"
            raise ModelError("E-FILE-037", problem, remedy, file=file) from error
        return found


def run(
    command: list[str], *, timeout: float, cwd: str, env: Mapping[str, str]
) -> subprocess.CompletedProcess[bytes]:
    """Run a command; raise TimeoutExpired after `timeout` seconds.

    Time during which the machine sleeps or this process is stopped is not counted, except for a
    small fraction (1 / `TURNS`) of the timeout.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, cwd=cwd, env=env) as process:
        try:
            for _ in range(TURNS):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    said = process.communicate(timeout=timeout / TURNS)
                    return subprocess.CompletedProcess(command, process.returncode, *said)
            raise subprocess.TimeoutExpired(command, timeout)
        except BaseException:
            process.kill()
            raise
