"""Readers behind a wall, in children that are forked with the package loaded.

A new interpreter that imports MuJoCo takes 0.3 s, a fork 0.01 s. The wall is the same: a process of
its own with bounds on time and memory, whose answer comes through a pipe.
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

import mujoco  # noqa: F401 (children have it)
import xacro  # noqa: F401

from chasles.formats import walled, walled_program


def run(
    command: list[str], *, timeout: float, cwd: str, **_: Any
) -> subprocess.CompletedProcess[bytes]:
    """Do what `walled.run` does, by a fork."""
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
    """Return all that comes out of some pipes, until they are closed."""
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
    """Let tools behind walls run in forks of this process."""
    with mock.patch.object(walled, "run", run):
        yield
