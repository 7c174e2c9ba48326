"""A kernel as XLA calls it: a handler of its foreign function interface, in LLVM's language.

A handler is a C function of one call frame, whose layout is public (xla/ffi/api/c_api.h, major
version 0). Arrays come as (rows, numbers in a row), contiguous; one row is shared by all states.
Small batches run where XLA calls; those that are large, or need much memory for their tiles, go to
Python, which shares them among threads.
"""

import ctypes
from typing import Any

from chasles.backends.llvm import Kernel, Machine, assemble, load
from chasles.backends.llvm_entry import SMALL_WORKSPACE
from chasles.backends.llvm_math import ELEMENTS, Writer
from chasles.backends.llvm_source import WORTH_THREADS

MAJOR = 0
"""The version of the layout that is known here."""

EXTENSION, ARGUMENTS, RESULTS = 8, 72, 112
"""Where a call frame keeps its extensions and the tables of its buffers."""

KIND, METADATA, VERSION = 8, 24, 24
"""Where an extension keeps its type and its metadata, and these the version (after their size and
that of the version), major and minor."""

DATA, SIZES = 24, 40
"""Where a buffer keeps its data and its sizes."""

_KEPT: dict[int, Any] = {}
"""What handlers call and where they are, by the kernel's identity: XLA keeps them for ever."""


def handler(kernel: Kernel, minor: int) -> int:
    """The address of a kernel's handler, which stays for the life of the process.

    minor: the version of XLA's interface, to be told when it asks.
    """
    if id(kernel) not in _KEPT:
        large = _LARGE(kernel.run)
        symbols = {
            "batch": kernel.batch_address,
            "large": ctypes.cast(large, ctypes.c_void_p).value or 0,
        }
        library = load(assemble(source(kernel, minor), Machine.host()), symbols, ["handler"])
        _KEPT[id(kernel)] = (kernel, large, library)
    address: int = _KEPT[id(kernel)][2]["handler"]
    return address


_LARGE = ctypes.CFUNCTYPE(None, ctypes.c_ssize_t, *[ctypes.c_void_p] * 4)


def source(kernel: Kernel, minor: int) -> str:
    """The handler of a kernel in LLVM's language."""
    w, workspace = Writer(1, False), kernel.artifact.workspace
    tables, rows = _tables(w, kernel)
    small = workspace <= SMALL_WORKSPACE
    most = WORTH_THREADS // max(kernel.artifact.work, 1) if small else 0
    many = w.emit(f"icmp ugt i64 {rows}, {most}")
    return _FRAME.format(
        extension=EXTENSION,
        kind=KIND,
        metadata=METADATA,
        version=VERSION,
        major=MAJOR,
        minor=minor,
        reserved="\n".join(w.reserved),
        workspace=max(workspace, 1) if small else 1,
        body="\n".join(w.lines),
        rows=rows,
        many=many,
        operands=", ".join([f"i64 {rows}", *(f"ptr {table}" for table in tables)]),
    )


def _tables(w: Writer, kernel: Kernel) -> tuple[list[str], str]:
    """Addresses and strides of the frame's inputs, then of its outputs, and how many rows."""

    def field(base: str, offset: int, kind: str) -> str:
        place = w.emit(f"getelementptr i8, ptr {base}, i64 {offset}")
        return w.emit(f"load {kind}, ptr {place}")

    tables, rows, bytes_each = [], "0", ELEMENTS[kernel.dtype.name].bytes
    interface = kernel.interface
    for table, variables in ((ARGUMENTS, interface.inputs), (RESULTS, interface.outputs)):
        buffers = field("%frame", table, "ptr")
        places, steps = w.name(), w.name()
        for name, kind in ((places, "ptr"), (steps, "i64")):
            w.reserved.append(f"  {name} = alloca [{max(len(variables), 1)} x {kind}]")
            tables.append(name)
        for k, variable in enumerate(variables):
            buffer = field(buffers, 8 * k, "ptr")
            rows = field(field(buffer, SIZES, "ptr"), 0, "i64")
            shared = w.emit(f"icmp eq i64 {rows}, 1")
            step = w.emit(f"select i1 {shared}, i64 0, i64 {bytes_each * variable.size}")
            data = field(buffer, DATA, "ptr")
            for name, value in ((places, f"ptr {data}"), (steps, f"i64 {step}")):
                place = w.emit(f"getelementptr i8, ptr {name}, i64 {8 * k}")
                w.raw(f"  store {value}, ptr {place}")
    return tables, rows


_FRAME = """declare void @batch(i64, ptr, ptr, ptr, ptr, ptr)
declare void @large(i64, ptr, ptr, ptr, ptr)

define ptr @handler(ptr %frame) {{
entry:
{reserved}
  %workspace = alloca [{workspace} x i8], align 64
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
  %some = icmp ne i64 {rows}, 0
  br i1 %some, label %any, label %end
any:
  br i1 {many}, label %shared, label %alone
shared:
  call void @large({operands})
  br label %end
alone:
  call void @batch({operands}, ptr %workspace)
  br label %end
end:
  ret ptr null
}}
"""
