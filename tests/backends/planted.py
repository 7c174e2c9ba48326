"""Plant errors in generated code, which the checked mode must detect.

    CHASLES_CHECKED=1 python tests/backends/planted.py

Each error consists of one replacement in the text of a module and a call that runs the changed
code. Detected errors end the process, so each runs in its own process.
"""

import os
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import chasles
from chasles.backends.llvm import checked

ROBOT = chasles.robots.planar(2)
STATES = np.linspace(0.1, 0.9, 300 * 2).reshape(300, 2)


def _rollout(count: int) -> Callable[[], Any]:
    def run() -> Any:
        q = STATES[:count] if count > 1 else STATES[0]
        return ROBOT.rollout(q, q, dt=1e-3, steps=7, every=2, threads=1)

    return run


def _batch() -> Any:
    return ROBOT.mass_matrix(STATES, threads=2)


def _often(q: Any) -> Any:
    for _ in range(3):
        ROBOT.mass_matrix(q)


def _one() -> Any:
    return ROBOT.function("bias_forces").call(STATES[0], STATES[1])


def _back() -> Any:
    q = STATES[:3]
    return ROBOT.rollout_pullback(q, q, covectors=(np.ones((3, 8, 2)),) * 2, dt=1e-3, steps=7)


PLANTED: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "a step too many": (
        r"%more = icmp ule i64 %next, %steps",
        r"%far = add i64 %steps, 1\n  %more = icmp ule i64 %next, %far",
        _rollout(1),
    ),
    "a record too many": (
        r"%now = udiv i64 %n.up, %every",
        r"%few = udiv i64 %n.up, %every\n  %now = add i64 %few, 1",
        _rollout(3),
    ),
    "a call too many": (
        r"%further = icmp ult i64 %k.next, %to",
        r"%further = icmp ule i64 %k.next, %to",
        _back,
    ),
    "a row too many": (
        r"%count = sub i64 %last, %first\n(?=  call void %batch)",
        r"%few = sub i64 %last, %first\n  %count = add i64 %few, 1\n",
        _batch,
    ),
    "a workspace too small": (
        r"%memory = call ptr @malloc\(i64 %room\)",
        r"%memory = call ptr @malloc(i64 64)",
        _batch,
    ),
    "a tile too many": (
        r"%fits = icmp ule i64 %group_next, %count",
        r"%fits = icmp ule i64 %group, %count",
        lambda: ROBOT.mass_matrix(STATES[:12]),
    ),
    "an output too long": (
        r"getelementptr <1 x double>, ptr %out0, i64 1\b",
        r"getelementptr <1 x double>, ptr %out0, i64 2",
        _one,
    ),
    "a list too long": (
        r"= alloca i64, i64 %x\d+",
        r"= alloca i64, i64 1",
        lambda: _often([0.1, 0.2]),
    ),
    "a batch too long": (
        r"  call void (%x\d+)\(i64 (%x\d+), (ptr %x\d+, ptr)",
        r"  %far = add i64 \2, 1\n  call void \1(i64 %far, \3",
        lambda: _often(STATES[:5]),
    ),
}
"""Patterns in the text of a module, their replacements, and calls that run the code, by name."""


def planted(name: str) -> None:
    """Plant an error and run its call."""
    pattern, mistake, call = PLANTED[name]
    found, right = 0, checked.instrumented

    def changed(text: str, **options: Any) -> str:
        nonlocal found
        text, count = re.subn(pattern, mistake, text)
        found += count
        return right(text, **options)

    checked.instrumented = changed
    call()
    print("not noticed" if found else "not planted", file=sys.stderr)


def main() -> None:
    """Run each error in a process and print its first message; then run all calls unchanged."""
    for name in PLANTED:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(writing, 2)
            planted(name)
            sys.stderr.flush()
            os._exit(0)
        os.close(writing)
        with open(reading) as told:
            message = told.readline().strip()
        _, status = os.waitpid(child, 0)
        print(f"{name}|{os.WIFSIGNALED(status)}|{message}", flush=True)
    for _, _, call in PLANTED.values():
        call()
    print("clean")


if __name__ == "__main__":
    os.environ["CHASLES_CACHE"] = os.devnull  # do not share compiled code with other processes
    main()
