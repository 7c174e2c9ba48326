"""Repeated execution of kernels and loops on fixed arrays, in one call, until a condition holds.

Each repetition (a round) runs a sequence of parts in order. A part is a prepared kernel, a prepared
loop, or a test of an array. The test "stop" ends all rounds if any entry of the array is nonzero,
and "done" ends all rounds if all entries are zero.
"""

import ctypes
import functools
from collections.abc import Sequence

import numpy as np

from chasles.backends.arrays import words
from chasles.backends.llvm import checked, kernel, loop
from chasles.backends.llvm.checked import address, start_of
from chasles.backends.llvm.code import Machine, assemble, load
from chasles.backends.llvm.threads import field

PART = 8
"""Number of 8-byte words that describe a `Part`: its kind, an address, and its parameters."""


ENDS = ("done", "stop", "most", "memory")
"""Reasons why the repetition ends, indexed by the status that the machine code returns."""

Part = kernel.Prepared | loop.Prepared | tuple[str, np.ndarray]
"""A prepared kernel, a prepared loop, or a pair (name of a test, contiguous array of flags)."""

QUESTIONS = ("stop", "done")
"""Tests of flags: "stop" ends the repetition if any flag is nonzero, "done" if all are zero."""

_WORDS = "\n".join("  " + field(f"w{k}", "i64", "part", 8 * k) for k in range(PART))
_POINTERS = "\n".join(f"  %p{k} = inttoptr i64 %w{k} to ptr" for k in range(1, PART))

SOURCE = f"""
define internal i1 @any(ptr %flags, i64 %count) {{
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %on ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %look, label %none
look:
  %at = getelementptr double, ptr %flags, i64 %k
  %flag = load double, ptr %at
  %set = fcmp une double %flag, 0.0
  br i1 %set, label %some, label %on
on:
  %next = add i64 %k, 1
  br label %loop
some:
  ret i1 true
none:
  ret i1 false
}}

; Run the parts (`PART` words each) in order, at most `most` times.
define i64 @rounds(ptr %parts, i64 %count, i64 %most) {{
entry:
  br label %round
round:
  %r = phi i64 [ 0, %entry ], [ %r.next, %again ]
  %r.more = icmp ult i64 %r, %most
  br i1 %r.more, label %next, label %spent
next:
  %k = phi i64 [ 0, %round ], [ %k.next, %on ]
  %k.more = icmp ult i64 %k, %count
  br i1 %k.more, label %do, label %again
do:
  %far = mul i64 %k, {8 * PART}
  %part = getelementptr i8, ptr %parts, i64 %far
{_WORDS}
{_POINTERS}
  switch i64 %w0, label %on [ i64 0, label %batch
                              i64 1, label %loop
                              i64 2, label %stop
                              i64 3, label %done ]
batch:
  call void %p1(i64 %w2, ptr %p3, ptr %p4, ptr %p5, ptr %p6, ptr %p7)
  br label %on
loop:
  %failed = call i64 %p1(ptr %p2, i64 %w3, i64 %w4)
  %full = icmp ne i64 %failed, 0
  br i1 %full, label %memory, label %on
stop:
  %bad = call i1 @any(ptr %p1, i64 %w2)
  br i1 %bad, label %stopped, label %on
done:
  %open = call i1 @any(ptr %p1, i64 %w2)
  br i1 %open, label %on, label %finished
on:
  %k.next = add i64 %k, 1
  br label %next
again:
  %r.next = add i64 %r, 1
  br label %round
finished:
  ret i64 0
stopped:
  ret i64 1
spent:
  ret i64 2
memory:
  ret i64 3
}}
"""


@functools.cache
def _machine_code() -> bytes:
    return assemble(SOURCE, Machine.host())


class Rounds:
    """Function that runs kernels, loops and tests in turn, up to `most` times.

    The function runs on the calling thread.
    """

    def __init__(self, parts: Sequence[Part], most: int = 1) -> None:
        self._parts, self._most = tuple(parts), most
        rows = [self._words(part) for part in parts]
        self._table = words(x for row in rows for x in row)
        others = tuple(part.code for part in parts if not isinstance(part, tuple))
        self._code = load(_machine_code(), {}, ("rounds",), others)
        kinds = (ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self._call = checked.ends(ctypes.CFUNCTYPE(*kinds)(self._code.address("rounds")))

    @staticmethod
    def _words(part: Part) -> list[int]:
        if isinstance(part, tuple):
            question, flags = part
            assert flags.dtype == np.float64, "flags"
            assert flags.flags.c_contiguous, "flags"
            row = [2 + QUESTIONS.index(question), address(flags), flags.size]
        else:
            row = [int(isinstance(part, loop.Prepared)), *part.words]
        return row + [0] * (PART - len(row))

    def __call__(self) -> str:
        """Repeat the parts in order; return the reason why the repetition ended (one of `ENDS`)."""
        if checked.ON:
            for part in self._parts:
                if isinstance(part, tuple):
                    address(part[1])
                else:
                    part.note()
        end = ENDS[self._call(start_of(self._table), len(self._parts), self._most)]
        if end == "memory":
            raise MemoryError
        return end
