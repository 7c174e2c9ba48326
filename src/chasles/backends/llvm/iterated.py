"""One kernel made of three: a beginning, an iteration repeated until convergence, and an end.

    begin(inputs) -> point, memory, data
    refine(point, memory, data) -> point, memory
    end(inputs, point, memory, data) -> outputs

The first number of a memory is 0 until its state has converged. `refine` returns a converged state
unchanged, so that a result does not depend on its neighbors in a batch. The combined kernel has the
functions `one` and `batch` of all kernels, so loops and threads can use it like any other.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.backends.cache import Artifact
from chasles.backends.llvm.code import Machine, assemble, load
from chasles.backends.llvm.kernel import Kernel
from chasles.expr import Interface

CHUNK = 8
"""Number of states refined together: one vector of the widest registers, so that few states wait
for others."""

USUAL_REFINEMENTS = 2
"""Typical number of iterations of a state, for the estimate of the work."""

PARTS = ("begin", "refine", "end")


class Iterated(Kernel):
    """Three kernels as one (see the module)."""

    def __init__(self, begin: Kernel, refine: Kernel, end: Kernel) -> None:
        kernels = (begin, refine, end)
        inputs, carried = len(begin.interface.inputs), begin.interface.outputs
        assert refine.interface.inputs == carried, "refine takes what begin gives"
        assert refine.interface.outputs == carried[:2], "and gives a point and a memory"
        assert end.interface.inputs[inputs:] == carried, "end takes all"
        self.dtype = begin.dtype
        size = self.dtype.itemsize
        rows = [size * v.size for v in carried]
        own = max(k.artifact.workspace for k in kernels)
        layout = _Layout(inputs, len(end.interface.outputs), rows, own, size)
        text = layout.text()
        symbols = {
            f"{name}_{form}": getattr(kernel, f"{form}_address")
            for name, kernel in zip(PARTS, kernels, strict=True)
            for form in ("one", "batch")
        }
        given, taken = begin.interface, end.interface
        self.interface = Interface("step", given.inputs, taken.outputs, given.nonzero)
        begun, refined, ended = (kernel.artifact.work for kernel in kernels)
        work = begun + USUAL_REFINEMENTS * refined + ended
        self.artifact = Artifact(self.interface, self.dtype.name, layout.space, work, b"")
        others = tuple(kernel.code for kernel in kernels)
        self.code = load(assemble(text, Machine.host()), symbols, ("one", "batch"), others)
        self.parts = kernels
        self._finish()


class _Layout:
    """Layout of a thread's memory: kernel workspace, tables of addresses, and carried rows.

    inputs, outputs: numbers of inputs and outputs. rows: bytes of a state's point, memory and data.
    """

    def __init__(self, inputs: int, outputs: int, rows: Sequence[int], own: int, size: int) -> None:
        self.inputs, self.outputs, self.rows, self.own = inputs, outputs, rows, _even(own)
        self.kind = {8: "double", 4: "float"}[size]
        self.size, self.tables = size, [_even(8 * (inputs + 3)), _even(8 * outputs)]
        self.strides = _even(8 * (inputs + 3))
        at = self.own + sum(self.tables) + self.strides
        self.carried = []
        for row in rows:
            self.carried.append(at)
            at = _even(at + CHUNK * row)
        self.space = at

    def text(self) -> str:
        """Return the module: `one` with its memory on the stack, and `batch` in chunks."""
        declared = "\n".join(
            f"declare void @{name}_one(ptr, ptr)\n"
            f"declare void @{name}_batch(i64, ptr, ptr, ptr, ptr, ptr)"
            for name in PARTS
        )
        return f"{declared}\ndeclare i64 @llvm.umin.i64(i64, i64)\n{self._one()}\n{self._batch()}"

    def _one(self) -> str:
        n, k = self.inputs, len(self.rows)
        lines = [f"  %row{i} = alloca i8, i64 {row}, align 64" for i, row in enumerate(self.rows)]
        lines += [f"  %table = alloca ptr, i64 {n + k}"]
        for i in range(n):
            lines += [f"  %from{i} = getelementptr ptr, ptr %in, i64 {i}"]
            lines += [f"  %input{i} = load ptr, ptr %from{i}"]
            lines += [f"  %to{i} = getelementptr ptr, ptr %table, i64 {i}"]
            lines += [f"  store ptr %input{i}, ptr %to{i}"]
        for i in range(k):
            lines += [f"  %carried{i} = getelementptr ptr, ptr %table, i64 {n + i}"]
            lines += [f"  store ptr %row{i}, ptr %carried{i}"]
        head = "\n".join(lines)
        return f"""
define void @one(ptr %in, ptr %out) {{
entry:
{head}
  call void @begin_one(ptr %in, ptr %carried0)
  br label %again
again:
  %status = load {self.kind}, ptr %row1
  %open = fcmp oeq {self.kind} %status, 0.0
  br i1 %open, label %refine, label %end
refine:
  call void @refine_one(ptr %carried0, ptr %carried0)
  br label %again
end:
  call void @end_one(ptr %table, ptr %out)
  ret void
}}"""

    def _batch(self) -> str:
        n, m, k = self.inputs, self.outputs, len(self.rows)
        ins, outs = self.own, self.own + self.tables[0]
        strides = self.own + sum(self.tables)
        setup, moved = [], []
        for i in range(k):
            setup += [
                f"  %carried{i} = getelementptr i8, ptr %workspace, i64 {self.carried[i]}",
                f"  %place{i} = getelementptr ptr, ptr %ins, i64 {n + i}",
                f"  store ptr %carried{i}, ptr %place{i}",
                f"  %wide{i} = getelementptr i64, ptr %strides, i64 {n + i}",
                f"  store i64 {self.rows[i]}, ptr %wide{i}",
            ]
        for i in range(n):
            setup += [
                f"  %step_from{i} = getelementptr i64, ptr %in_strides, i64 {i}",
                f"  %step{i} = load i64, ptr %step_from{i}",
                f"  %step_to{i} = getelementptr i64, ptr %strides, i64 {i}",
                f"  store i64 %step{i}, ptr %step_to{i}",
            ]
        for table, count, kind in (("in", n, "ins"), ("out", m, "outs")):
            for i in range(count):
                a = f"{table}{i}"
                moved += [
                    f"  %{a}_at = getelementptr ptr, ptr %{table}_pointers, i64 {i}",
                    f"  %{a}_first = load ptr, ptr %{a}_at",
                    f"  %{a}_wide = getelementptr i64, ptr %{table}_strides, i64 {i}",
                    f"  %{a}_step = load i64, ptr %{a}_wide",
                    f"  %{a}_far = mul i64 %{a}_step, %first",
                    f"  %{a}_here = getelementptr i8, ptr %{a}_first, i64 %{a}_far",
                    f"  %{a}_to = getelementptr ptr, ptr %{kind}, i64 {i}",
                    f"  store ptr %{a}_here, ptr %{a}_to",
                ]
        lines, each = "\n".join(setup), "\n".join(moved)
        memory = self.rows[1] // self.size
        return f"""
define void @batch(i64 %count, ptr %in_pointers, ptr %in_strides, ptr %out_pointers,
                   ptr %out_strides, ptr %workspace) {{
entry:
  %ins = getelementptr i8, ptr %workspace, i64 {ins}
  %outs = getelementptr i8, ptr %workspace, i64 {outs}
  %strides = getelementptr i8, ptr %workspace, i64 {strides}
{lines}
  br label %chunk
chunk:
  %first = phi i64 [ 0, %entry ], [ %first_next, %finished ]
  %left = sub i64 %count, %first
  %rows = call i64 @llvm.umin.i64(i64 %left, i64 {CHUNK})
{each}
  call void @begin_batch(i64 %rows, ptr %ins, ptr %strides, ptr %place0, ptr %wide0, ptr %workspace)
  br label %look
look:
  %r = phi i64 [ 0, %chunk ], [ %r_next, %look_on ], [ 0, %refine ]
  %far = mul i64 %r, {memory}
  %status_at = getelementptr {self.kind}, ptr %carried1, i64 %far
  %status = load {self.kind}, ptr %status_at
  %open = fcmp oeq {self.kind} %status, 0.0
  br i1 %open, label %refine, label %look_on
look_on:
  %r_next = add i64 %r, 1
  %more = icmp ult i64 %r_next, %rows
  br i1 %more, label %look, label %finished
refine:
  call void @refine_batch(i64 %rows, ptr %place0, ptr %wide0, ptr %place0, ptr %wide0,
                          ptr %workspace)
  br label %look
finished:
  call void @end_batch(i64 %rows, ptr %ins, ptr %strides, ptr %outs, ptr %out_strides,
                       ptr %workspace)
  %first_next = add i64 %first, %rows
  %again = icmp ult i64 %first_next, %count
  br i1 %again, label %chunk, label %done
done:
  ret void
}}"""


def _even(place: int) -> int:
    """Return an offset rounded up to the alignment of a vector."""
    return -(-place // 64) * 64


def iterated(kernels: Sequence[Any]) -> Iterated:
    """Return the kernel of a beginning, an iteration and an end, all of one dtype."""
    assert len({np.dtype(kernel.dtype) for kernel in kernels}) == 1
    return Iterated(*kernels)
