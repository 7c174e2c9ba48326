"""Compilation of long modules in pieces, by parallel processes.

LLVM takes seconds for the long functions of a large robot, and llvmlite holds one lock for a whole
process, so pieces are compiled by other processes of this Python (`llvm.worker`). They communicate
through files, need no guard in the caller's main module, and end with the call. A piece whose
process was killed or could not start is compiled here.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import llvmlite

from chasles.backends.llvm.code import joined

LONG = 2000
"""Number of lines above which a function is a separate piece."""

WORTH = 10_000
"""Total lines of long functions above which processes are started: about a second of compiling."""

_GLOBAL = re.compile(r"@([A-Za-z_][\w.]*)")


@dataclass(frozen=True)
class Function:
    """A function of a module: its head up to the brace, and the lines after it."""

    head: str
    body: tuple[str, ...]

    @property
    def name(self) -> str:
        return _GLOBAL.findall(self.head)[0]

    @property
    def used(self) -> set[str]:
        return set(_GLOBAL.findall("\n".join(self.body)))

    @property
    def declaration(self) -> str:
        """Return the declaration for another module, without parameter names or attributes."""
        kind, rest = self.head.removeprefix("define internal ").split(" @", 1)
        name, parameters = rest.split("(", 1)
        types = [p.strip().split()[0] for p in parameters[: parameters.rindex(")")].split(",") if p]
        return f"declare hidden {kind} @{name}({', '.join(types)})"

    def text(self, shared: bool) -> str:
        """Return the function; if shared, other pieces of its module can call it.

        A long function is not tuned for a processor: the time of scheduling by the processor's
        model grows faster than the length of the function, without a measurable gain.
        """
        head = self.head.replace("define internal", "define hidden") if shared else self.head
        if len(self.body) > LONG:
            head = head.replace(" {", ' "tune-cpu"="generic" {')
        return "\n".join((head, *self.body))


def split(text: str, count: int) -> list[str]:
    """Split a module into one with short functions, and at most `count` with long functions.

    If there is too little work to divide, return only the module itself.
    """
    rest, functions = _parsed(text)
    defined = {f.name: f for f in functions}
    data = {m[1] for line in rest if (m := re.match(r"@([\w.]+) =", line))}
    long = [f for f in functions if _is_long(f) and not f.used & data]
    if count < 2 or sum(len(f.body) for f in long) < WORTH:
        return ["\n".join((*rest, *(f.text(False) for f in functions)))]
    bins: list[list[Function]] = [[] for _ in range(min(count, len(long)))]
    for f in sorted(long, key=lambda f: -len(f.body)):
        min(bins, key=lambda bin: sum(len(g.body) for g in bin)).append(f)
    apart = {f.name for f in long}
    groups = [[f for f in functions if f.name not in apart], *bins]
    home = {f.name: k for k, group in enumerate(groups) for f in group}
    calls = [set[str]().union(*(f.used for f in group)) for group in groups]
    shared = {name for k, used in enumerate(calls) for name in used if home.get(name, k) != k}
    common = [line for line in rest if not line.startswith("@")]
    pieces = []
    for k, group in enumerate(groups):
        others = sorted(name for name in calls[k] & shared if home[name] != k)
        declared = [defined[name].declaration for name in others]
        own = [f.text(f.name in shared) for f in group]
        pieces.append("\n".join((*(common if k else rest), *declared, *own)))
    return pieces


def _is_long(function: Function) -> bool:
    return len(function.body) > LONG and function.head.startswith("define internal")


def _parsed(text: str) -> tuple[list[str], list[Function]]:
    """Return the lines outside of functions, and the functions."""
    rest, functions = [], []
    lines = iter(text.split("\n"))
    for line in lines:
        if not line.startswith("define"):
            rest.append(line)
            continue
        head, body = line, list[str]()
        for inner in lines:
            body.append(inner)
            if inner == "}":
                break
        functions.append(Function(head, tuple(body)))
    return rest, functions


def interpreter() -> str | None:
    """Return the Python executable; None in an application that embeds Python."""
    name = Path(sys.executable or "").name.lower()
    plain = name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)
    return sys.executable if plain else None


def compiled(
    text: str, machine: Mapping[str, Any], cores: int, assemble: Callable[[str], bytes]
) -> bytes:
    """Return the machine code of a module, in the format of `joined`.

    machine: triple, cpu, features and effort. assemble: compiles in this process.
    """
    first, *others = split(text, cores if interpreter() else 1)
    with ExitStack() as stack:
        running = [_started(piece, machine, stack) for piece in others]
        own = assemble(first)
        made = [_result(r) or assemble(piece) for r, piece in zip(running, others, strict=True)]
    return joined([own, *made])


Running = tuple[subprocess.Popen[bytes], IO[bytes]]
"""A process, and the file to which it writes."""


def _started(text: str, machine: Mapping[str, Any], stack: ExitStack) -> Running | None:
    """Return a process that compiles a text, and ends with the stack; None if it cannot start."""
    folder = str(Path(llvmlite.__file__).parent.parent)
    script = str(Path(__file__).with_name("worker.py"))
    try:
        given = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
        answer = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        given.write(json.dumps(dict(machine)).encode() + b"\n" + text.encode())
        given.seek(0)
        process = subprocess.Popen(
            [str(interpreter()), "-I", "-S", script, folder],
            stdin=given,
            stdout=answer,
            stderr=subprocess.DEVNULL,
            start_new_session=os.name == "posix",  # Ctrl-C must not reach the worker
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError:
        return None
    stack.callback(_ended, process)
    return process, answer


def _ended(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()


def _result(running: Running | None) -> bytes | None:
    """Return the machine code that a process made; None if it failed."""
    if running is None:
        return None
    process, answer = running
    if process.wait() != 0:
        return None
    answer.seek(0)
    digest, code = answer.read(32), answer.read()
    return code if hashlib.sha256(code).digest() == digest else None
