"""XLA's foreign function interface: what handlers for every device share, in LLVM's language.

A handler is a C function of one call frame, whose layout is public (xla/ffi/api/c_api.h, major
version 0). Arrays come as (rows, numbers in a row), contiguous; one row is shared by all states.
"""

from collections.abc import Callable, Mapping
from typing import Any

from chasles.backends.llvm import Machine, assemble, load
from chasles.backends.llvm_math import Writer

MAJOR = 0
"""The version of the layout that is known here."""

EXTENSION, API, CONTEXT, ARGUMENTS, RESULTS = 8, 16, 24, 72, 112
"""Where a call frame keeps its extensions, XLA's functions, their context, and the tables of its
buffers."""

KIND, METADATA, VERSION = 8, 24, 24
"""Where an extension keeps its type and its metadata, and these the version (after their size and
that of the version), major and minor."""

DATA, SIZES = 24, 40
"""Where a buffer keeps its data and its sizes."""

_KEPT: dict[int, Any] = {}
"""Handlers and what they call, by the identity of their code: XLA keeps them for ever."""


def keep(code: Any, make: Callable[[], tuple[str, Mapping[str, int], Any]]) -> int:
    """The address of a handler of some code, made once: text, what that calls, more to keep."""
    if id(code) not in _KEPT:
        text, symbols, more = make()
        library = load(assemble(text, Machine.host()), symbols, ["handler"])
        _KEPT[id(code)] = (library["handler"], library, code, more)
    address: int = _KEPT[id(code)][0]
    return address


def source(w: Writer, minor: int, *, declarations: str, work: str) -> str:
    """The text of a handler: the writer's lines, then `work`, which returns.

    minor: the version of XLA's interface, to be told when it asks.
    """
    return _FRAME.format(
        declarations=declarations,
        extension=EXTENSION,
        kind=KIND,
        metadata=METADATA,
        version=VERSION,
        major=MAJOR,
        minor=minor,
        reserved="\n".join(w.reserved),
        body="\n".join(w.lines),
        work=work,
    )


def field(w: Writer, base: str, offset: int, kind: str) -> str:
    """A field of a structure."""
    place = w.emit(f"getelementptr i8, ptr {base}, i64 {offset}")
    return w.emit(f"load {kind}, ptr {place}")


def store(w: Writer, base: str, offset: int, value: str) -> None:
    """Set a field of a structure."""
    place = w.emit(f"getelementptr i8, ptr {base}, i64 {offset}")
    w.raw(f"  store {value}, ptr {place}")


def buffer(w: Writer, table: int, k: int) -> tuple[str, str, str]:
    """Where the frame's k-th argument or result is, and its two sizes."""
    each = field(w, field(w, "%frame", table, "ptr"), 8 * k, "ptr")
    sizes = field(w, each, SIZES, "ptr")
    return field(w, each, DATA, "ptr"), field(w, sizes, 0, "i64"), field(w, sizes, 8, "i64")


def step(w: Writer, rows: str, length: int) -> str:
    """How far rows of some length are apart: not at all where one is shared by all states."""
    shared = w.emit(f"icmp eq i64 {rows}, 1")
    return w.emit(f"select i1 {shared}, i64 0, i64 {length}")


_FRAME = """{declarations}
define ptr @handler(ptr %frame) {{
entry:
{reserved}
  %extension_place = getelementptr i8, ptr %frame, i64 {extension}
  %extension = load ptr, ptr %extension_place
  %asked = icmp ne ptr %extension, null
  br i1 %asked, label %question, label %work
question:
  %kind_place = getelementptr i8, ptr %extension, i64 {kind}
  %kind = load i32, ptr %kind_place
  %is_metadata = icmp eq i32 %kind, 1
  br i1 %is_metadata, label %answer, label %work
answer:
  %metadata_place = getelementptr i8, ptr %extension, i64 {metadata}
  %metadata = load ptr, ptr %metadata_place
  %major_answer = getelementptr i8, ptr %metadata, i64 {version}
  store i32 {major}, ptr %major_answer
  %minor_answer = getelementptr i8, ptr %major_answer, i64 4
  store i32 {minor}, ptr %minor_answer
  %traits_answer = getelementptr i8, ptr %major_answer, i64 8
  store i32 0, ptr %traits_answer
  ret ptr null
work:
{body}
{work}
}}
"""
