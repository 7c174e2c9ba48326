"""A debug mode, `CHASLES_CHECKED=1`, in which generated code checks every load and store.

The text of a module is instrumented before it is compiled. Memory that code may access is listed in
a table of regions. A region is an array or a table passed from Python (`address`, `start_of`), a
NumPy array passed to the fast entry, a stack slot, memory from `malloc`, or a constant of the
module. Every access must lie in a region. If the address was computed from another pointer in the
same function, the region must also contain that pointer. If an access is not allowed, the process
reports it on standard error and aborts.

Code that also accesses Python objects is checked only for pointers into known regions (`opaque` in
`instrumented`). Two cases are not checked: stores with a mask that is not a constant
(`scatter_past`), and accesses to a wrong tile within the workspace of a kernel.
"""

import ctypes
import functools
import os
import re
import sys
import threading
from array import array
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import numpy as np

from chasles.backends import objects
from chasles.backends.llvm.regions import ARRAY, HELPERS, LENGTH, SLOTS, WORDS

ON = os.environ.get("CHASLES_CHECKED", "0") not in ("", "0")
"""True if generated code checks its memory accesses (set when chasles is imported)."""

TABLE = objects.for_ever((ctypes.c_int64 * LENGTH)())
_VIEW = np.frombuffer(TABLE, np.int64)
_PYTHON = _VIEW[2 : 2 + SLOTS * WORDS].reshape(SLOTS, WORDS)
_LOCK = threading.Lock()
_OWN = threading.local()


# Regions added by Python -----------------------------------------------------------------------


def enter(start: int, end: int) -> int:
    """Allow access to a range of memory; return the index of its region in the table."""
    with _LOCK:
        free = np.flatnonzero(_PYTHON[:, 0] == 0)
        assert free.size, "the table of regions is full"
        slot = int(free[0])
        _PYTHON[slot, 0], _PYTHON[slot, 1] = start, end
        _VIEW[0] = max(_VIEW[0], slot + 1)
    return slot


def _note(start: int, end: int, owner: object) -> None:
    """Allow this thread's next call to access a memory range.

    The owner of the memory is kept alive until the call ends.
    """
    _OWN.__dict__.setdefault("slots", []).append((enter(start, end), owner))


def _leave() -> None:
    """Remove the memory regions that this thread registered for the call that has ended."""
    noted = _OWN.__dict__.pop("slots", ())
    with _LOCK:
        for slot, _ in noted:
            _PYTHON[slot, 1] = _PYTHON[slot, 0] = 0
        used = np.flatnonzero(_PYTHON[: _VIEW[0], 0])
        _VIEW[0] = used[-1] + 1 if used.size else 0


def _bounds(a: np.ndarray) -> tuple[int, int]:
    """Return the addresses of an array's first byte and of its end."""
    far = [(n - 1) * stride for n, stride in zip(a.shape, a.strides, strict=True)]
    start = objects.address(a)
    return (
        start + sum(x for x in far if x < 0),
        start + sum(x for x in far if x > 0) + a.itemsize,
    )


def _noted_array(a: np.ndarray) -> int:
    """Return the address of an array's first element, and register its memory as accessible."""
    if a.size:
        _note(*_bounds(a), a)
    return objects.address(a)


def _start(table: "array[int]") -> int:
    """Return the address of the first word of a table."""
    return table.buffer_info()[0]


def _noted_start(table: "array[int]") -> int:
    start, length = table.buffer_info()
    _note(start, start + length * table.itemsize, table)
    return start


address: Callable[[np.ndarray], int] = _noted_array if ON else objects.address
"""Function that returns the address of an array's first element.

In debug mode, it also registers the array, so that the next call may access it."""

start_of: Callable[["array[int]"], int] = _noted_start if ON else _start
"""Function that returns the address of the first element of an `array.array`.

In debug mode, it also registers the array, so that the next call may access it."""


F = TypeVar("F", bound=Callable[..., Any])


def ends(function: F) -> F:
    """Wrap a function so that the memory regions of the calling thread are removed after a call."""
    if not ON:
        return function

    @functools.wraps(function)
    def called(*given: Any) -> Any:
        try:
            return function(*given)
        finally:
            _leave()

    return cast(F, called)


def symbols() -> dict[str, int]:
    """Return the addresses of the functions and of the region table that checked code uses."""
    windows = sys.platform == "win32"
    library = ctypes.CDLL("ucrtbase" if windows else None)
    found = {"chasles_write": "_write" if windows else "write", "chasles_abort": "abort"}
    reached = {name: objects.at_address(getattr(library, own)) for name, own in found.items()}
    return reached | {"chasles_regions": ctypes.addressof(TABLE)}


# Instrumentation of a module -------------------------------------------------------------------

_KIND = r"(<\d+ x \w+>|\w+)"
_GEP = re.compile(r"\s*(%[\w.]+) = getelementptr .*?, ptr ([%@][\w.]+),")
_ALLOCA = re.compile(r"\s*(%[\w.]+) = alloca (?:\[(\d+) x (.+?)\]|(\w+))(?:, i64 (%?\w+))?(,|$)")
_LOAD = re.compile(rf"\s*(?:%[\w.]+ = )?load (?:volatile |atomic )?{_KIND}, ptr ([%@][\w.]+)")
_STORE = re.compile(rf"\s*store (?:volatile |atomic )?{_KIND} .*, ptr ([%@][\w.]+)")
_ATOMIC = re.compile(r"\s*%[\w.]+ = atomicrmw \w+ ptr (%[\w.]+), (\w+)")
_MASKED = re.compile(r".* @llvm\.masked\..*?ptr ([%@][\w.]+), i32 \d+, <\d+ x i1> <(.*?)>")
_MASKED_KIND = re.compile(r"@llvm\.masked\.\w+\.v\d+f(\d+)")
_COPY = re.compile(r".*@llvm\.memcpy\.p0\.p0\.i64\(ptr (%[\w.]+), ptr (%[\w.]+), i64 (%?[\w.]+),")
_MALLOC = re.compile(r"\s*(%[\w.]+) = call ptr @malloc\(i64 (%?[\w.]+)\)")
_FREE = re.compile(r"\s*call void @free\(ptr (%[\w.]+)\)")
_GLOBAL = re.compile(r"@([\w.]+) = internal constant \[(\d+) x (\w+)\]")
_NOTE = re.compile(r"\s*; (array|room) (%[\w.]+)(?: (%?[\w.]+))?$")
"""Comments in LLVM IR that the debug mode reads: `; array %x` marks an object that may be a NumPy
array, and `; room %x %n` marks memory of n bytes.
"""

_SIZES = {"double": 8, "float": 4, "ptr": 8, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1}


def _bytes(kind: str) -> int:
    """Return the size (bytes) of a value of an LLVM type."""
    vector = re.fullmatch(r"<(\d+) x (\w+)>", kind)
    return int(vector[1]) * _SIZES[vector[2]] if vector else _SIZES[kind]


def instrumented(text: str, *, opaque: bool = False) -> str:
    """Return a module's text with checks of its loads and stores.

    opaque: True to allow accesses through pointers that are outside all regions.
    """
    sizes = {f"@{name}": int(n) * _SIZES[kind] for name, n, kind in _GLOBAL.findall(text)}
    module = _Module(sizes, opaque)
    lines, function = list[str](), list[str]()
    for line in text.split("\n"):
        if function or line.startswith("define"):
            function.append(line)
            if line == "}":
                lines += module.function(function)
                function = []
        else:
            lines.append(line)
    array = ARRAY if "@chasles_array(" in "\n".join(lines) else ""
    return "\n".join([*lines, *module.texts, HELPERS, array])


class _Module:
    """Code generator for a module's memory checks; `texts` holds error messages as constants."""

    def __init__(self, sizes: dict[str, int], opaque: bool) -> None:
        self.texts: list[str] = []
        self._sizes, self._known = sizes, str(not opaque).lower()

    def function(self, lines: list[str]) -> list[str]:
        """Return the lines of a function with checks of its memory accesses."""
        self._root: dict[str, str] = {}
        self._name = re.findall(r"@[\w.]+", lines[0])[0]
        head = lines.index("entry:") + 1
        used = set(re.findall(r"@[\w.]+", "\n".join(lines[head:]))) & self._sizes.keys()
        body = [each for line in lines[head:] for each in self._line(line)]
        start = [self._enter(name, str(self._sizes[name])) for name in sorted(used)]
        if any("%chasles_mark" in line for line in (*start, *body)):
            start = ["  %chasles_mark = alloca i64", *start]
            release = "  call void @chasles_leave(ptr %chasles_mark)"
            body = [x for line in body for x in ((release, line) if _returns(line) else (line,))]
        return [*lines[:head], *start, *body]

    def _line(self, line: str) -> Iterator[str]:
        """Yield a line of LLVM IR, preceded by its memory checks.

        If the line allocates memory, a call that registers this memory as a region follows.
        """
        yield from self._checks(line)
        if m := _FREE.match(line):
            yield f"  call void @chasles_leave(ptr {m[1]})"
        yield line
        if m := _GEP.match(line):
            self._root[m[1]] = self._root.get(m[2], m[2])
        elif m := _ALLOCA.match(line):
            name, count, entries, kind, times, _ = m.groups()
            each = _bytes(entries or kind) * int(count or 1)
            size = str(each)
            if times:
                size = f"{name}.bytes"
                yield f"  {size} = mul i64 {times}, {each}"
            yield self._enter(name, size)
        elif m := _MALLOC.match(line):
            yield self._enter(m[1], m[2], m[1])
        elif m := _NOTE.match(line):
            if m[1] == "array":
                yield f"  call void @chasles_array(ptr {m[2]}, ptr %chasles_mark)"
            else:
                yield self._enter(m[2], m[3])

    def _checks(self, line: str) -> Iterator[str]:
        if (m := _LOAD.match(line)) or (m := _STORE.match(line)):
            yield self._access(m[2], str(_bytes(m[1])), line)
        elif m := _ATOMIC.match(line):
            yield self._access(m[1], str(_bytes(m[2])), line)
        elif m := _MASKED.match(line):
            element = int(_MASKED_KIND.findall(line)[0]) // 8
            yield self._access(m[1], str(m[2].count("true") * element), line)
        elif m := _COPY.match(line):
            for place in (m[1], m[2]):
                yield self._access(place, m[3], line)

    def _enter(self, place: str, size: str, owner: str = "%chasles_mark") -> str:
        return f"  call void @chasles_enter(ptr {place}, i64 {size}, ptr {owner})"

    def _access(self, place: str, size: str, line: str) -> str:
        root = self._root.get(place, place)
        if root.startswith("@") and root not in self._sizes:  # defined in another module
            return ""
        what = re.sub(r"[^ -~]|[\"\\]", "?", line.strip())[:100]
        message = f"chasles: out-of-bounds access in {self._name}: {what}\n"
        name = f"@chasles_text{len(self.texts)}"
        spelled = message.replace("\n", "\\0A")
        self.texts.append(f'{name} = internal constant [{len(message)} x i8] c"{spelled}"')
        given = f"ptr {root}, ptr {place}, i64 {size}, i1 {self._known}"
        return f"  call void @chasles_access({given}, ptr {name}, i64 {len(message)})"


def _returns(line: str) -> bool:
    return line.startswith("  ret ")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release)
    os.register_at_fork(after_in_child=_LOCK.release)
