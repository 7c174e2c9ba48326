"""Trials that could crash or block the process. Run each in its own: `python code_stress.py ...`.

- `interrupts N` interrupts threaded calls N times.
- `compiling N` interrupts LLVM N times.
- `distinct N` and `equal N` create, call and drop N robots, and print the memory and the number of
  mappings before and after.
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
"""Time limit (s) for a trial without progress. The process then prints all stacks and exits."""


# Interrupts ------------------------------------------------------------------------------------


def interrupts(count: int) -> None:
    """Interrupt a threaded call at random times, and check that no thread stays behind.

    After every hundredth interrupt, the result is filled with a marker value, so that a thread that
    still writes is detected. Another thread calls the function all the time.
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
    """Interrupt LLVM while it links or frees code, and check that other threads can link."""
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
                armed.append(None)  # repeat the signal; Python ignores exceptions in finalizers
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
    signal.signal(signal.SIGALRM, signal.SIG_IGN)  # a signal may still be pending
    called(planar(1).with_gravity([0.0, 0.0, -1.0]), 0.5)
    print(f"{count} interrupts of LLVM")


# Creating and dropping robots ------------------------------------------------------------------


def holds() -> tuple[int, int]:
    """Return the memory (bytes) and the number of mappings of this process.

    Freed memory that the C library keeps for reuse is returned to the system first, and is not
    counted.
    """
    gc.collect()
    with suppress(AttributeError):  # only glibc has this function
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * mmap.PAGESIZE, Path("/proc/self/maps").read_text().count("\n")


def called(robot: chasles.Robot, expected: float) -> None:
    """Call a robot twice: first through Python, then through the fast entry."""
    q = np.zeros(1)
    for _ in range(2):
        assert robot.gravity_forces(q)[0] == expected
    assert robot.gravity_forces(np.zeros((3, 1)), threads=2).shape == (3, 1)


def distinct(count: int) -> None:
    """Create robots that differ, so that each has its own machine code."""
    rod = planar(1)

    def make(k: int) -> None:
        gravity = 1.0 + k / 1024.0
        called(rod.with_gravity([0.0, 0.0, -gravity]), 0.5 * gravity)

    _watched(make, count)


def equal(count: int) -> None:
    """Create equal robots, which share their machine code."""
    source = planar(1).with_gravity([0.0, 0.0, -1.0]).model.source
    _watched(lambda k: called(chasles.Robot(source), 0.5), count)


def _watched(make: Callable[[int], None], count: int) -> None:
    """Create robots, and compare the memory after the first third with the memory at the end.

    The first third is a warm-up, because LLVM allocates memory for itself.
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
