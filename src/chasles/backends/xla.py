"""LLVM IR of handlers that run kernels when called through XLA's foreign function interface.

A handler is a C function with one argument, a call frame, whose layout is public
(xla/ffi/api/c_api.h, major version 0). Arrays are contiguous, with shape (rows, entries per row).
An array with a single row is shared by all states.

On the CPU, small batches run in XLA's calling thread. Batches that are large or need a lot of
memory for their tiles are divided among threads. On a GPU, a handler launches the kernel on XLA's
stream. Handlers never call Python. Results that the kernel writes as columns have shape (entries,
states), and XLA transposes them. A handler declares no XLA traits, so XLA does not record it in its
command buffers.
"""

from collections.abc import Callable, Mapping
from typing import Any

from chasles.backends import arrays
from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda import kernel as cuda
from chasles.backends.cuda.build import Built, Layout
from chasles.backends.llvm import kernel as llvm
from chasles.backends.llvm.calls import SMALL_WORKSPACE
from chasles.backends.llvm.code import Machine, assemble, load
from chasles.backends.llvm.math import ELEMENTS, Writer
from chasles.backends.llvm.source import WORTH_THREADS
from chasles.backends.llvm.threads import pool

MAJOR = 0
"""Supported major version of the call frame's layout."""

EXTENSION, API, CONTEXT, ARGUMENTS, RESULTS = 8, 16, 24, 72, 112
"""Offsets (bytes) of fields in a call frame: its extensions, XLA's functions, their context, and
the tables of argument and result buffers.
"""

KIND, METADATA, VERSION = 8, 24, 24
"""Offsets (bytes) of an extension's type and metadata, and of the version in the metadata. The
version follows two size fields and a pointer."""

DATA, SIZES = 24, 40
"""Offsets (bytes) of a buffer's data address and shape in XLA's buffer struct."""

ERROR_CREATE, STREAM_GET = 48, 80
"""Offsets (bytes), in XLA's function table, of two functions: one creates an error, and the other
returns the stream."""

STREAM_SIZE, ERROR_SIZE = 32, 28
"""Sizes (bytes) of the argument structs of two XLA functions. The struct for getting the stream
holds size, extensions, context and space for the stream. The struct for creating an error holds
size, extensions, message and code."""

INTERNAL = 13
"""XLA's error code for an internal error, which the caller did not cause."""

_KEPT: dict[int, Any] = {}
"""Address, machine code and owner (kernel or function) of each handler, by the owner's `id`. All
entries are kept forever, because XLA never releases a handler."""


def _keep(owner: Any, make: Callable[[], tuple[str, Mapping[str, int]]]) -> int:
    """Return the address of an object's handler, which is compiled on first use and never freed."""
    if id(owner) not in _KEPT:
        text, symbols = make()
        made = assemble(text, Machine.host(), opaque=True)
        code = load(made, symbols, ["handler"])
        _KEPT[id(owner)] = (code.address("handler"), code, owner)
    return int(_KEPT[id(owner)][0])


def filled_tables(w: Writer, arrays: list[tuple[str, str]]) -> tuple[str, str]:
    """Emit code that fills two tables on the stack for `batch`: array addresses and row strides."""
    places, steps = w.room(len(arrays), "ptr"), w.room(len(arrays), "i64")
    for k, (place, step) in enumerate(arrays):
        w.store(places, 8 * k, place)
        w.store(steps, 8 * k, step)
    return places, steps


def _handler(w: Writer, minor: int, declarations: str, work: str) -> str:
    """Return LLVM IR of a handler that answers XLA's metadata requests and handles calls.

    A call runs the code that `w` has emitted, then `work`, which must end with a return
    instruction.
    """
    reserved, body = "\n".join(w.reserved), "\n".join(w.lines)
    return f"""{declarations}
define ptr @handler(ptr %frame) {{
entry:
{reserved}
  %extension_place = getelementptr i8, ptr %frame, i64 {EXTENSION}
  %extension = load ptr, ptr %extension_place
  %asked = icmp ne ptr %extension, null
  br i1 %asked, label %question, label %work
question:
  %kind_place = getelementptr i8, ptr %extension, i64 {KIND}
  %kind = load i32, ptr %kind_place
  %is_metadata = icmp eq i32 %kind, 1
  br i1 %is_metadata, label %answer, label %work
answer:
  %metadata_place = getelementptr i8, ptr %extension, i64 {METADATA}
  %metadata = load ptr, ptr %metadata_place
  %major_answer = getelementptr i8, ptr %metadata, i64 {VERSION}
  store i32 {MAJOR}, ptr %major_answer
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


def _buffer(w: Writer, table: int, k: int) -> tuple[str, str, str]:
    """Emit code that loads the address and dimensions of the frame's k-th argument or result."""
    each = w.field(w.field("%frame", table, "ptr"), 8 * k, "ptr")
    sizes = w.field(each, SIZES, "ptr")
    return w.field(each, DATA, "ptr"), w.field(sizes, 0, "i64"), w.field(sizes, 8, "i64")


def _step(w: Writer, rows: str, length: int) -> str:
    """Emit code that computes the row stride, which is zero if all states share one row."""
    shared = w.emit(f"icmp eq i64 {rows}, 1")
    return w.emit(f"select i1 {shared}, i64 0, i64 {length}")


# CPU handlers ----------------------------------------------------------------------------------


def cpu_handler(kernel: llvm.Kernel, minor: int) -> int:
    """Return the address of a kernel's handler, which stays loaded until the process ends.

    minor: the minor version of XLA's interface, which the handler reports on request.
    """

    def make() -> tuple[str, dict[str, int]]:
        run = pool()
        text = cpu_source(kernel, minor, run.address, run.threads(arrays.cores()))
        found = {"batch": kernel.batch_address, "share": run.share, "rows": run.rows}
        return text, found

    return _keep(kernel, make)


def cpu_source(kernel: llvm.Kernel, minor: int, pool: int, helpers: int) -> str:
    """Return a kernel's CPU handler in LLVM IR.

    pool: address of the thread pool.
    """
    w, workspace, rows = Writer(1, False), kernel.artifact.workspace, "0"
    tables: list[str] = []
    each, interface = ELEMENTS[kernel.dtype.name].bytes, kernel.interface
    for where, variables in ((ARGUMENTS, interface.inputs), (RESULTS, interface.outputs)):
        places = []
        for k, variable in enumerate(variables):
            data, rows, columns = _buffer(w, where, k)
            size = w.emit(f"mul i64 {w.emit(f'mul i64 {rows}, {columns}')}, {each}")
            w.raw(f"  ; room {data} {size}")  # size, for `llvm.checked`
            places.append((f"ptr {data}", f"i64 {_step(w, rows, each * variable.size)}"))
        tables += filled_tables(w, places)
    small = workspace <= SMALL_WORKSPACE
    w.reserved.append(f"  %workspace = alloca [{max(workspace, 1) if small else 1} x i8], align 64")
    most = WORTH_THREADS // max(kernel.artifact.work, 1) if small else 0
    many = w.emit(f"icmp ugt i64 {rows}, {most}")
    operands = ", ".join([f"i64 {rows}", *(f"ptr {table}" for table in tables)])
    sizes = (workspace, len(interface.inputs), len(interface.outputs))
    given, head = w.room(8, "i64"), ["ptr @batch", *(f"i64 {size}" for size in sizes)]
    for k, value in enumerate([*head, *(f"ptr {table}" for table in tables)]):
        w.store(given, 8 * k, value)
    w.reserved.append("  %question_of_error = alloca [4 x i64]")
    error_create = w.field(w.field("%frame", API, "ptr"), ERROR_CREATE, "ptr")
    declarations = """declare void @batch(i64, ptr, ptr, ptr, ptr, ptr)
declare i64 @rows(ptr, i64, i64)
declare i64 @share(ptr, ptr, ptr, i64, i64, i64, i64)
@full = internal constant [14 x i8] c"out of memory\\00"
"""
    work = f"""  %some = icmp ne i64 {rows}, 0
  br i1 %some, label %any, label %end
any:
  br i1 {many}, label %shared, label %alone
shared:
  %pool = inttoptr i64 {pool} to ptr
  %status = call i64 @share(ptr %pool, ptr @rows, ptr {given}, i64 0, i64 {rows}, i64 {llvm.SHARE},
                            i64 {helpers})
  %done = icmp eq i64 %status, 0
  br i1 %done, label %end, label %refused
refused:
{_error("@full", error_create)}
alone:
  call void @batch({operands}, ptr %workspace)
  br label %end
end:
  ret ptr null"""
    return _handler(w, minor, declarations, work)


def _error(message: str, create: str) -> str:
    """Return LLVM IR that creates an XLA error with the given message, and returns it."""
    return f"""  %message_place = getelementptr i8, ptr %question_of_error, i64 16
  %code_place = getelementptr i8, ptr %question_of_error, i64 24
  %none_place = getelementptr i8, ptr %question_of_error, i64 8
  store i64 {ERROR_SIZE}, ptr %question_of_error
  store ptr null, ptr %none_place
  store ptr {message}, ptr %message_place
  store i32 {INTERNAL}, ptr %code_place
  %error = call ptr {create}(ptr %question_of_error)
  ret ptr %error"""


# GPU handlers ----------------------------------------------------------------------------------


def gpu_handler(
    kernel: cuda.Kernel, target: str, layout: Layout, minor: int
) -> tuple[int, tuple[int, ...]]:
    """Return the address of a kernel's XLA handler, and the indices of its column-major results.

    The handler stays loaded until the process ends.

    - target: the architecture.
    - layout: the layout for which the kernel is compiled. Kernels of every layout accept
      row-major arrays.
    - minor: the minor version of XLA's interface, which the handler reports on request.
    """
    built, function = kernel.loaded(target, layout)
    names = {"launch": "cuLaunchKernel", "explain": "cuGetErrorString"}
    symbols = {name: cuda_driver.address(known) for name, known in names.items()}
    text = gpu_source(kernel, built, function.pointer, minor)
    return _keep(function, lambda: (text, symbols)), built.columns


def gpu_source(kernel: cuda.Kernel, built: Built, pointer: int, minor: int) -> str:
    """Return a kernel's GPU handler in LLVM IR.

    pointer: the driver's handle for the kernel.
    """
    w = Writer(1, False)
    w.reserved += [
        "  %question_of_stream = alloca [4 x i64]",
        "  %question_of_error = alloca [4 x i64]",
        "  %reason = alloca ptr",
    ]
    count, words = _words(w, kernel, built)
    large = w.emit(f"icmp uge i64 {count}, {cuda.MANY}")
    many, few = cuda.block(built, cuda.MANY), cuda.block(built, 1)
    limits = [cuda.most_blocks(built, threads, 0) for _, threads, _ in (many, few)]
    states, block, shared = (
        w.emit(f"select i1 {large}, {kind} {a}, {kind} {b}")
        for kind, a, b in zip(("i64", "i32", "i32"), many, few, strict=True)
    )
    wanted = w.emit(f"add i64 {count}, {w.emit(f'sub i64 {states}, 1')}")
    wanted = w.emit(f"udiv i64 {wanted}, {states}")
    most = w.emit(f"select i1 {large}, i64 {limits[0]}, i64 {limits[1]}")
    fewer = w.emit(f"icmp ult i64 {wanted}, {most}")
    blocks = w.emit(f"trunc i64 {w.emit(f'select i1 {fewer}, i64 {wanted}, i64 {most}')} to i32")
    api, context = w.field("%frame", API, "ptr"), w.field("%frame", CONTEXT, "ptr")
    for k, value in enumerate((f"i64 {STREAM_SIZE}", "ptr null", f"ptr {context}", "ptr null")):
        w.store("%question_of_stream", 8 * k, value)
    stream_get, error_create = w.field(api, STREAM_GET, "ptr"), w.field(api, ERROR_CREATE, "ptr")
    grid = f"i32 {blocks}, i32 1, i32 1, i32 {block}, i32 1, i32 1, i32 {shared}"
    declarations = """declare i32 @launch(ptr, i32, i32, i32, i32, i32, i32, i32, ptr, ptr, ptr)
declare i32 @explain(i32, ptr)
"""
    work = f"""  %some = icmp ne i64 {count}, 0
  br i1 %some, label %any, label %end
any:
  %no_stream = call ptr {stream_get}(ptr %question_of_stream)
  %has_stream = icmp eq ptr %no_stream, null
  br i1 %has_stream, label %go, label %lost
lost:
  ret ptr %no_stream
go:
  %stream_place = getelementptr i8, ptr %question_of_stream, i64 24
  %stream = load ptr, ptr %stream_place
  %kernel = inttoptr i64 {pointer} to ptr
  %status = call i32 @launch(ptr %kernel, {grid}, ptr %stream, ptr null, ptr {words})
  %launched = icmp eq i32 %status, 0
  br i1 %launched, label %end, label %refused
refused:
  %told = call i32 @explain(i32 %status, ptr %reason)
  %message = load ptr, ptr %reason
{_error("%message", error_create)}
end:
  ret ptr null"""
    return _handler(w, minor, declarations, work)


def _words(w: Writer, kernel: cuda.Kernel, built: Built) -> tuple[str, str]:
    """Emit code that writes a kernel's parameters for `cuLaunchKernel`, as in `Function.launch`.

    Return the number of states and the address of the parameters.
    """
    inputs, outputs = kernel.interface.inputs, kernel.interface.outputs
    size = 2 + 3 * (len(inputs) + len(outputs))
    words, count, places = w.room(6 + size, "i64"), "0", []
    for k, variable in enumerate(inputs):
        data, rows, _ = _buffer(w, ARGUMENTS, k)
        places += [f"ptr {data}", f"i64 {_step(w, rows, variable.size)}", "i64 1"]
    for k, variable in enumerate(outputs):
        data, first, second = _buffer(w, RESULTS, k)
        count = second if k in built.columns else first
        row, column = (1, count) if k in built.columns else (variable.size, 1)
        places += [f"ptr {data}", f"i64 {row}", f"i64 {column}"]
    parameters, bytes_place = w.at(words, 48), w.at(words, 40)
    head = [cuda_driver.POINTER, parameters, cuda_driver.SIZE, bytes_place, cuda_driver.END]
    values = [f"ptr {v}" if isinstance(v, str) else f"i64 {v}" for v in head]
    for k, value in enumerate([*values, f"i64 {8 * size}", f"i64 {count}", "i64 -1", *places]):
        w.store(words, 8 * k, value)
    return count, words
