"""Isolated file readers, run in forked processes that have the packages already loaded.

Starting an interpreter and importing MuJoCo takes 0.3 s; a fork takes 0.01 s. The isolation is the
same: a separate process with limits on time and memory, which returns its result through a pipe.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any
from unittest import mock

import mujoco  # noqa: F401 (inherited by the children)
import xacro  # noqa: F401

from chasles.formats import walled, walled_program


def run(
    command: list[str], *, timeout: float, cwd: str, **_: Any
) -> subprocess.CompletedProcess[bytes]:
    """Replace `walled.run`: run the command in a forked process."""
    pipes = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.chdir(cwd)
            for (_, end), number in zip(pipes, (1, 2), strict=True):
                os.dup2(end, number)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            file, seconds, memory, *rest = command[3:]
            walled_program.main(file, int(seconds), int(memory), rest)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(1)
    for _, end in pipes:
        os.close(end)
    ends = [end for end, _ in pipes]
    try:
        said = _drained(ends, time.monotonic() + timeout)
    finally:
        for end in ends:
            os.close(end)
        if sys.exc_info()[0] is not None:
            os.kill(pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return subprocess.CompletedProcess(command, code, *said)


def _drained(ends: list[int], until: float) -> list[bytes]:
    """Return the data read from pipes until they are closed; `until` is the time limit."""
    said = dict.fromkeys(ends, b"")
    opened = list(ends)
    while opened:
        ready, _, _ = select.select(opened, [], [], max(until - time.monotonic(), 0.0))
        if not ready:
            raise subprocess.TimeoutExpired("a fork", 0.0)
        for end in ready:
            data = os.read(end, 1 << 16)
            said[end] += data
            if not data:
                opened.remove(end)
    return [said[end] for end in ends]


@contextlib.contextmanager
def forked() -> Iterator[None]:
    """Run isolated file readers in forks of this process."""
    with mock.patch.object(walled, "run", run):
        yield
