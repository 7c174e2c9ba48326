"""A kernel as XLA calls it on a GPU: a handler that launches it on XLA's stream, without Python.

Results that the kernel writes as columns come as (numbers, states), and XLA turns them. A handler
has no traits: XLA does not record it in its command buffers.
"""

from chasles.backends import cuda_driver, xla
from chasles.backends.cuda import MANY, Kernel
from chasles.backends.cuda_build import Built, Layout
from chasles.backends.cuda_source import WARP
from chasles.backends.llvm_math import Writer

ERROR_CREATE, STREAM_GET = 48, 80
"""Where XLA's table of functions has that which makes an error and that which tells the stream."""

STREAM_SIZE, ERROR_SIZE = 32, 28
"""Bytes of what these take: size, extensions and context, with room for the stream; or size,
extensions, message and code."""

INTERNAL = 13
"""XLA's code of an error that is not the caller's."""


def handler(kernel: Kernel, target: str, layout: Layout, minor: int) -> tuple[int, tuple[int, ...]]:
    """The address of a kernel's handler, and which results are columns.

    It stays for the life of the process. target: the architecture. layout: the kernel to launch;
    all take rows. minor: the version of XLA's interface, to be told when it asks.
    """
    built, function = kernel.loaded(target, layout)
    names = {"launch": "cuLaunchKernel", "explain": "cuGetErrorString"}
    symbols = {name: cuda_driver.address(known) for name, known in names.items()}
    text = source(kernel, built, function.pointer, minor)
    return xla.keep(function, lambda: (text, symbols, kernel)), built.columns


def source(kernel: Kernel, built: Built, pointer: int, minor: int) -> str:
    """The handler of a kernel, which the driver knows by a pointer, in LLVM's language."""
    w = Writer(1, False)
    w.reserved += [
        "  %question_of_stream = alloca [4 x i64]",
        "  %question_of_error = alloca [4 x i64]",
        "  %reason = alloca ptr",
    ]
    count, words = _words(w, kernel, built)
    large = w.emit(f"icmp uge i64 {count}, {MANY}")
    block = w.emit(f"select i1 {large}, i32 {built.block}, i32 {WARP}")
    shared = w.emit(
        f"select i1 {large}, i32 {built.shared * built.block // WARP}, i32 {built.shared}"
    )
    threads = w.emit(f"zext i32 {block} to i64")
    most = w.emit(f"sub i64 {threads}, 1")
    wanted = w.emit(f"add i64 {count}, {most}")
    blocks = w.emit(f"trunc i64 {w.emit(f'udiv i64 {wanted}, {threads}')} to i32")
    api = xla.field(w, "%frame", xla.API, "ptr")
    context = xla.field(w, "%frame", xla.CONTEXT, "ptr")
    for k, value in enumerate((f"i64 {STREAM_SIZE}", "ptr null", f"ptr {context}", "ptr null")):
        xla.store(w, "%question_of_stream", 8 * k, value)
    work = _WORK.format(
        count=count,
        stream_get=xla.field(w, api, STREAM_GET, "ptr"),
        error_create=xla.field(w, api, ERROR_CREATE, "ptr"),
        error_size=ERROR_SIZE,
        internal=INTERNAL,
        grid=f"i32 {blocks}, i32 1, i32 1",
        block=f"i32 {block}, i32 1, i32 1, i32 {shared}",
        pointer=pointer,
        words=words,
    )
    return xla.source(w, minor, declarations=_DECLARATIONS, work=work)


def _words(w: Writer, kernel: Kernel, built: Built) -> tuple[str, str]:
    """How many states, and the last argument of a launch, as `Function.launch` makes it."""
    inputs, outputs = kernel.interface.inputs, kernel.interface.outputs
    size = 2 + 3 * (len(inputs) + len(outputs))
    words, count, places = w.name(), "0", []
    w.reserved.append(f"  {words} = alloca [{6 + size} x i64]")
    for k, variable in enumerate(inputs):
        data, rows, _ = xla.buffer(w, xla.ARGUMENTS, k)
        places += [f"ptr {data}", f"i64 {xla.step(w, rows, variable.size)}", "i64 1"]
    for k, variable in enumerate(outputs):
        data, first, second = xla.buffer(w, xla.RESULTS, k)
        count = second if k in built.columns else first
        row, column = (1, count) if k in built.columns else (variable.size, 1)
        places += [f"ptr {data}", f"i64 {row}", f"i64 {column}"]
    parameters = w.emit(f"getelementptr i8, ptr {words}, i64 48")
    bytes_place = w.emit(f"getelementptr i8, ptr {words}, i64 40")
    values = [
        f"i64 {cuda_driver.POINTER}",
        f"ptr {parameters}",
        f"i64 {cuda_driver.SIZE}",
        f"ptr {bytes_place}",
        f"i64 {cuda_driver.END}",
        f"i64 {8 * size}",
        f"i64 {count}",
        "i64 -1",
        *places,
    ]
    for k, value in enumerate(values):
        xla.store(w, words, 8 * k, value)
    return count, words


_DECLARATIONS = """declare i32 @launch(ptr, i32, i32, i32, i32, i32, i32, i32, ptr, ptr, ptr)
declare i32 @explain(i32, ptr)
"""

_WORK = """  %some = icmp ne i64 {count}, 0
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
  %status = call i32 @launch(ptr %kernel, {grid}, {block}, ptr %stream, ptr null, ptr {words})
  %launched = icmp eq i32 %status, 0
  br i1 %launched, label %end, label %refused
refused:
  %told = call i32 @explain(i32 %status, ptr %reason)
  %message = load ptr, ptr %reason
  %message_place = getelementptr i8, ptr %question_of_error, i64 16
  %code_place = getelementptr i8, ptr %question_of_error, i64 24
  %none_place = getelementptr i8, ptr %question_of_error, i64 8
  store i64 {error_size}, ptr %question_of_error
  store ptr null, ptr %none_place
  store ptr %message, ptr %message_place
  store i32 {internal}, ptr %code_place
  %error = call ptr {error_create}(ptr %question_of_error)
  ret ptr %error
end:
  ret ptr null"""
