"""A kernel as XLA calls it on the processor: a handler of its foreign function interface.

Small batches run where XLA calls; those that are large, or need much memory for their tiles, go to
Python, which shares them among threads.
"""

import ctypes
from typing import Any

from chasles.backends import xla
from chasles.backends.llvm import Kernel
from chasles.backends.llvm_entry import SMALL_WORKSPACE
from chasles.backends.llvm_math import ELEMENTS, Writer
from chasles.backends.llvm_source import WORTH_THREADS

_LARGE = ctypes.CFUNCTYPE(None, ctypes.c_ssize_t, *[ctypes.c_void_p] * 4)


def handler(kernel: Kernel, minor: int) -> int:
    """The address of a kernel's handler, which stays for the life of the process.

    minor: the version of XLA's interface, to be told when it asks.
    """

    def make() -> tuple[str, dict[str, int], Any]:
        large = _LARGE(kernel.run)
        address = ctypes.cast(large, ctypes.c_void_p).value or 0
        symbols = {"batch": kernel.batch_address, "large": address}
        return source(kernel, minor), symbols, large

    return xla.keep(kernel, make)


def source(kernel: Kernel, minor: int) -> str:
    """The handler of a kernel in LLVM's language."""
    w, workspace = Writer(1, False), kernel.artifact.workspace
    tables, rows = _tables(w, kernel)
    small = workspace <= SMALL_WORKSPACE
    w.reserved.append(f"  %workspace = alloca [{max(workspace, 1) if small else 1} x i8], align 64")
    most = WORTH_THREADS // max(kernel.artifact.work, 1) if small else 0
    many = w.emit(f"icmp ugt i64 {rows}, {most}")
    operands = ", ".join([f"i64 {rows}", *(f"ptr {table}" for table in tables)])
    work = _WORK.format(rows=rows, many=many, operands=operands)
    return xla.source(w, minor, declarations=_DECLARATIONS, work=work)


def _tables(w: Writer, kernel: Kernel) -> tuple[list[str], str]:
    """Addresses and strides of the frame's inputs, then of its outputs, and how many rows."""
    tables, rows, bytes_each = [], "0", ELEMENTS[kernel.dtype.name].bytes
    interface = kernel.interface
    for table, variables in ((xla.ARGUMENTS, interface.inputs), (xla.RESULTS, interface.outputs)):
        places, steps = w.name(), w.name()
        for name, kind in ((places, "ptr"), (steps, "i64")):
            w.reserved.append(f"  {name} = alloca [{max(len(variables), 1)} x {kind}]")
            tables.append(name)
        for k, variable in enumerate(variables):
            data, rows, _ = xla.buffer(w, table, k)
            xla.store(w, places, 8 * k, f"ptr {data}")
            xla.store(w, steps, 8 * k, f"i64 {xla.step(w, rows, bytes_each * variable.size)}")
    return tables, rows


_DECLARATIONS = """declare void @batch(i64, ptr, ptr, ptr, ptr, ptr)
declare void @large(i64, ptr, ptr, ptr, ptr)
"""

_WORK = """  %some = icmp ne i64 {rows}, 0
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
  ret ptr null"""
