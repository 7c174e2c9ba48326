"""Gram matrices W'W for several column blocks of a matrix W, summed in registers.

A Gram matrix is divided into square blocks that are one SIMD vector wide. Up to `ABREAST` adjacent
square blocks are summed at once, over all rows of W. Therefore each entry of W is loaded only a few
times, and each sum is stored once. Square blocks below the diagonal are not computed.
"""

import ctypes
import functools
from collections.abc import Callable, Sequence

import numpy as np

from chasles.backends.arrays import words
from chasles.backends.llvm import checked
from chasles.backends.llvm.checked import address
from chasles.backends.llvm.code import Code, Machine, assemble, load
from chasles.backends.llvm.math import Writer

ABREAST = 3
"""Number of square blocks summed at once. With 8 lanes, the sums occupy 24 of 32 registers."""


def lanes() -> int:
    """Return the number of doubles in a SIMD vector; block widths are multiples of this number."""
    return Machine.host().width


def _square(w: Writer, many: int) -> str:
    """Generate a function in LLVM IR that updates adjacent square blocks of a Gram matrix.

    The function adds the products W'W of `count` rows of W to the blocks.

    - many: number of square blocks.
    - %left, %right: addresses of two entries in the first row of W. The columns of these entries
      correspond to the first row and to the first column of the blocks, respectively.
    - %row_size, %far: row lengths of W and of the Gram matrix.
    - %sums: address of the first block in the Gram matrix.
    """
    width, each = w.width, range(many)
    cells = [(i, v) for i in range(width) for v in each]
    w.raw("  br label %row\nrow:")
    w.raw("  %k = phi i64 [ 0, %entry ], [ %next, %row ]")
    for i, v in cells:
        w.raw(f"  %s{i}.{v} = phi {w.type} [ zeroinitializer, %entry ], [ %n{i}.{v}, %row ]")
    start = w.emit("mul i64 %k, %row_size")
    left, right = (w.at(name, start, "double") for name in ("%left", "%right"))
    columns = [_loaded(w, w.at(right, v * width, "double")) for v in each]
    for i in range(width):
        one = w.emit(f"load double, ptr {w.at(left, i, 'double')}")
        first = w.emit(f"insertelement {w.type} poison, double {one}, i32 0")
        mask = f"<{width} x i32> zeroinitializer"
        spread = w.emit(f"shufflevector {w.type} {first}, {w.type} poison, {mask}")
        for v in each:
            summed = w.fma(spread, columns[v], f"%s{i}.{v}")
            w.lines[-1] = w.lines[-1].replace(f"{summed} =", f"%n{i}.{v} =")
    w.raw("  %next = add i64 %k, 1\n  %more = icmp ult i64 %next, %count")
    w.raw("  br i1 %more, label %row, label %end\nend:")
    for i, v in cells:
        start = w.emit(f"mul i64 {i}, %far")
        place = w.at(w.at("%sums", start, "double"), v * width, "double")
        total = w.add(_loaded(w, place), f"%n{i}.{v}")
        w.raw(f"  store {w.type} {total}, ptr {place}, align 8")
    given = "i64 %count, i64 %row_size, ptr %left, ptr %right, i64 %far, ptr %sums"
    wide = f'"min-legal-vector-width"="{8 * w.bytes}" "prefer-vector-width"="{8 * w.bytes}"'
    return w.function(f"internal void @squares{many}({given}) noinline {wide}")


def _loaded(w: Writer, place: str) -> str:
    return w.emit(f"load {w.type}, ptr {place}, align 8")


def _source(machine: Machine) -> str:
    """Generate the LLVM module with `gram`, which updates the Gram matrix of one column block."""
    width = machine.width
    functions = [_square(Writer(width, machine.fuse), many) for many in range(1, ABREAST + 1)]
    calls = []
    for many in range(1, ABREAST + 1):
        operands = "i64 %count, i64 %row_size, ptr %left, ptr %right, i64 %far, ptr %place"
        calls.append(f"do{many}:\n  call void @squares{many}({operands})\n  br label %on")
    cases = " ".join(f"i64 {many}, label %do{many}" for many in range(1, ABREAST))
    kind = f"<{width} x double>"
    return f"""
declare {kind} @llvm.fma.v{width}f64({kind}, {kind}, {kind})
declare i64 @llvm.umin.i64(i64, i64)
{"".join(functions)}
define void @gram(i64 %count, i64 %row_size, ptr %rows, i64 %groups, ptr %sums) {{
entry:
  %far = mul i64 %groups, {width}
  br label %down
down:
  %i = phi i64 [ 0, %entry ], [ %i.next, %below ]
  %i.column = mul i64 %i, {width}
  %left = getelementptr double, ptr %rows, i64 %i.column
  %i.row = mul i64 %i.column, %far
  %line = getelementptr double, ptr %sums, i64 %i.row
  br label %across
across:
  %j = phi i64 [ %i, %down ], [ %j.next, %on ]
  %j.column = mul i64 %j, {width}
  %right = getelementptr double, ptr %rows, i64 %j.column
  %place = getelementptr double, ptr %line, i64 %j.column
  %rest = sub i64 %groups, %j
  %many = call i64 @llvm.umin.i64(i64 %rest, i64 {ABREAST})
  switch i64 %many, label %do{ABREAST} [ {cases} ]
{chr(10).join(calls)}
on:
  %j.next = add i64 %j, %many
  %j.more = icmp ult i64 %j.next, %groups
  br i1 %j.more, label %across, label %below
below:
  %i.next = add i64 %i, 1
  %i.more = icmp ult i64 %i.next, %groups
  br i1 %i.more, label %down, label %end
end:
  ret void
}}
"""


@functools.cache
def _loaded_code() -> tuple[Code, Callable[..., None]]:
    code = load(assemble(_source(Machine.host()), Machine.host()), {}, ("gram",))
    kinds = (ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    return code, checked.ends(ctypes.CFUNCTYPE(None, *kinds)(code.address("gram")))


class Grams:
    """Accumulated products W'W for column blocks W whose widths are multiples of `lanes()`.

    sums: the array W'W (width, width) for each block of columns. The array is divided into square
    blocks of `lanes()` rows and columns. Only blocks on and above the diagonal are computed; the
    other entries are zero.
    """

    def __init__(self, widths: Sequence[int]) -> None:
        assert all(width > 0 and width % lanes() == 0 for width in widths)
        self.sums = [np.zeros((width, width)) for width in widths]
        ends = np.cumsum(widths)
        pairs = zip(map(int, ends), widths, strict=True)
        self.places = [slice(end - width, end) for end, width in pairs]

    def add(self, rows: np.ndarray) -> None:
        """Add the products of further rows of the matrix W to the Gram matrices.

        rows: contiguous float64 array with these rows, in which the column blocks are side by side.
        """
        size = self.places[-1].stop if self.places else 0
        assert rows.shape[1:] == (size,)
        assert rows.dtype == float
        assert rows.flags.c_contiguous
        _, gram = _loaded_code()
        for place, total in zip(self.places, self.sums, strict=True):
            if len(rows):
                groups = len(total) // lanes()
                places = address(rows[:, place]), address(total)
                gram(*words((len(rows), size, places[0], groups, places[1])))

    @property
    def matrices(self) -> list[np.ndarray]:
        """The Gram matrices, with both triangles filled."""
        upper = [np.triu(total) for total in self.sums]
        return [half + np.triu(half, 1).T for half in upper]
