"""Trials that could end or stop the process, so they have their own: `python code_stress.py ...`.

`interrupts N` interrupts threaded calls N times, `compiling N` LLVM;
`distinct N` and `equal N` make, call and drop N robots, and print how much memory and how many
mappings there are before and after.
"""

import ctypes
import faulthandler
import gc
import mmap
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite.binding import ffi

import chasles
from chasles.backends.llvm.kernel import Kernel
from chasles.robots import planar, puma560

PATIENCE = 60.0
"""Seconds after which a trial that does not go on is ended, with the stacks of all threads."""


# Interrupts ------------------------------------------------------------------------------------


def interrupts(count: int) -> None:
    """Interrupt a threaded call at a random moment, many times; no thread stays behind.

    Every hundredth time the result is filled with a mark right after the interrupt, and a thread
    that still wrote would be seen. Another thread calls all the time, too.
    """
    robot, rng = puma560(), np.random.default_rng(0)
    q, (qd, qdd) = robot.random(rng, size=256), rng.normal(size=(2, 256, 6))
    function = chasles.compile(robot, "inverse_dynamics")
    expected, out = function(q, qd, qdd, threads=2), np.empty((256, 6))
    over, wrong = threading.Event(), []

    def other() -> None:
        while not over.is_set():
            if not np.array_equal(function(q, qd, qdd, threads=3), expected):
                wrong.append("another thread")
            time.sleep(0.01)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    beside = threading.Thread(target=other)
    beside.start()
    start, draw = time.perf_counter(), random.Random(0)
    for k in range(count):
        if k % 500 == 0:
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
        try:
            signal.setitimer(signal.ITIMER_REAL, draw.uniform(2e-6, 250e-6))
            while True:
                function(q, qd, qdd, out=out, threads=2)
        except KeyboardInterrupt:
            pass
        if k % 100 == 0:
            out.fill(7.0)
            time.sleep(1e-3)
            assert np.all(out == 7.0), "a thread still writes"
            assert np.array_equal(function(q, qd, qdd, out=out, threads=2), expected)
    over.set()
    beside.join()
    assert not wrong
    print(f"{count} interrupts in {time.perf_counter() - start:.1f} s")


def compiling(count: int) -> None:
    """Interrupt LLVM while it links or frees code, N times; then another thread links."""
    armed: list[None] = []

    def interrupt(*_: Any) -> None:
        if armed:
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    artifact = chasles.compile(planar(1), "gravity_forces").kernel.artifact
    Kernel(artifact)
    begun = time.perf_counter()
    Kernel(artifact)
    takes, draw = time.perf_counter() - begun, random.Random(0)
    for k in range(count):
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        try:
            try:
                armed.append(None)  # again and again: Python drops what comes in a finaliser
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, 2.0 * takes), 7.0 * takes)
                while True:
                    Kernel(artifact)
            finally:
                armed.clear()
        except KeyboardInterrupt:
            armed.clear()
        assert not ffi.lib._lock._lock._is_owned(), "LLVM's lock is left taken"
        if k % 10 == 0:
            beside = threading.Thread(target=Kernel, args=(artifact,))
            beside.start()
            beside.join()
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)  # one may still be on its way
    called(planar(1).with_gravity([0.0, 0.0, -1.0]), 0.5)
    print(f"{count} interrupts of LLVM")


# Robots that come and go -----------------------------------------------------------------------


def holds() -> tuple[int, int]:
    """Bytes of memory that this process holds, and how many mappings.

    Freed memory that the C library keeps for later is given back first: it is not held.
    """
    gc.collect()
    with suppress(AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * mmap.PAGESIZE, Path("/proc/self/maps").read_text().count("\n")


def called(robot: chasles.Robot, expected: float) -> None:
    """Call a robot twice, by Python and by the fast entry."""
    q = np.zeros(1)
    for _ in range(2):
        assert robot.gravity_forces(q)[0] == expected
    assert robot.gravity_forces(np.zeros((3, 1)), threads=2).shape == (3, 1)


def distinct(count: int) -> None:
    """Robots that differ: each has machine code of its own."""
    rod = planar(1)

    def make(k: int) -> None:
        gravity = 1.0 + k / 1024.0
        called(rod.with_gravity([0.0, 0.0, -gravity]), 0.5 * gravity)

    _watched(make, count)


def equal(count: int) -> None:
    """Robots that are equal: they share their code."""
    source = planar(1).with_gravity([0.0, 0.0, -1.0]).model.source
    _watched(lambda k: called(chasles.Robot(source), 0.5), count)


def _watched(make: Callable[[int], None], count: int) -> None:
    """Make robots; what the process holds after the first third, and after all.

    Before that LLVM, which compiles them, takes memory for itself.
    """
    warm = max(count // 3, 60)
    for k in range(warm):
        make(k)
    before, start = holds(), time.perf_counter()
    for k in range(warm, count):
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        make(k)
        if k % 200 == 0:
            gc.collect()
    seconds, after = time.perf_counter() - start, holds()
    each = seconds / (count - warm) * 1e3
    sizes = [f"{memory / 2**20:.1f} MiB in {maps} mappings" for memory, maps in (before, after)]
    print(f"{count} robots, {each:.3f} ms each: {sizes[0]}, then {sizes[1]}", flush=True)
    for was, now in zip(before, after, strict=True):
        assert now <= 1.05 * was, "it grows"


if __name__ == "__main__":
    command, number = sys.argv[1:]
    globals()[command](int(number))
