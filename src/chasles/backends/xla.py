"""A kernel as XLA calls it: a handler of its foreign function interface, in LLVM's language.

A handler is a C function of one call frame, whose layout is public (xla/ffi/api/c_api.h, major
version 0). Arrays come as (rows, numbers in a row), contiguous; one row is shared by all states.
Small batches run where XLA calls; large ones go to Python, which shares them among threads.
"""

import ctypes
from typing import Any

from chasles.backends.llvm import Kernel, Machine, assemble, load
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
    w, interface = Writer(1, False), kernel.interface
    element = ELEMENTS[kernel.dtype.name]

    def field(base: str, offset: int, kind: str) -> str:
        place = w.emit(f"getelementptr i8, ptr {base}, i64 {offset}")
        return w.emit(f"load {kind}, ptr {place}")

    tables = []
    for table, variables in ((ARGUMENTS, interface.inputs), (RESULTS, interface.outputs)):
        buffers = field("%frame", table, "ptr")
        places, steps = w.name(), w.name()
        w.reserved.append(f"  {places} = alloca [{len(variables) + 1} x ptr]")
        w.reserved.append(f"  {steps} = alloca [{len(variables) + 1} x i64]")
        tables += [places, steps]
        for k, variable in enumerate(variables):
            buffer = field(buffers, 8 * k, "ptr")
            rows = field(field(buffer, SIZES, "ptr"), 0, "i64")
            shared = w.emit(f"icmp eq i64 {rows}, 1")
            size = element.bytes * variable.size
            step = w.emit(f"select i1 {shared}, i64 0, i64 {size}")
            for there, value in (
                (places, f"ptr {field(buffer, DATA, 'ptr')}"),
                (steps, f"i64 {step}"),
            ):
                place = w.emit(f"getelementptr i8, ptr {there}, i64 {8 * k}")
                w.raw(f"  store {value}, ptr {place}")
    operands = ", ".join([f"i64 {rows}", *(f"ptr {table}" for table in tables)])
    most = WORTH_THREADS // max(kernel.artifact.work, 1)
    many = w.emit(f"icmp ugt i64 {rows}, {most}")
    return _FRAME.format(
        extension=EXTENSION,
        kind=KIND,
        metadata=METADATA,
        version=VERSION,
        major=MAJOR,
        minor=minor,
        body="\n".join([*w.reserved, *w.lines]),
        rows=rows,
        many=many,
        operands=operands,
        workspace=kernel.artifact.workspace + 64,
    )


_FRAME = """declare void @batch(i64, ptr, ptr, ptr, ptr, ptr)
declare void @large(i64, ptr, ptr, ptr, ptr)
declare ptr @malloc(i64)
declare void @free(ptr)

define ptr @handler(ptr %frame) {{
entry:
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
  %room = call ptr @malloc(i64 {workspace})
  %start = ptrtoint ptr %room to i64
  %past = add i64 %start, 63
  %aligned = and i64 %past, -64
  %workspace = inttoptr i64 %aligned to ptr
  call void @batch({operands}, ptr %workspace)
  call void @free(ptr %room)
  br label %end
end:
  ret ptr null
}}
"""
