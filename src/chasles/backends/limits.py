"""Measurement of a processor's limits: operations and bytes per second.

An operation is one scalar arithmetic instruction; a fused multiply-add counts as one. Memory
bandwidth is measured by copying and filling arrays, with ordinary or streaming stores, whichever is
faster. Several array sizes are used, because data that fits in a cache moves faster.
"""

import ctypes
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from chasles.backends.llvm.code import Machine, assemble, load
from chasles.backends.lowering import deepest_first, fused, places
from chasles.backends.objects import address
from chasles.expr import OPS, Program

SLOW = 8
"""Number of operations that a division, square root, sine or cosine counts as (`Count.weight`)."""

FOOTPRINTS = (2**14, 2**18, 2**21, 2**24, 2**27)
"""Amounts of data (bytes, read plus written) for which the copy and fill rates are measured."""

CHAINS = 12
"""Number of independent chains of multiply-adds in the benchmark. Their operands fit in 16
registers."""

SECONDS, REPEATS = 1e-3, 4
"""Minimum duration (s) of a benchmark run, and the number of runs (the fastest one is used)."""

Rates = tuple[tuple[int, float], ...]
"""Measured transfer rates, as pairs (amount of data in bytes, rate in bytes/s)."""


class Work(NamedTuple):
    """Work per state: the numbers of operations and of array elements read and written."""

    operations: int
    read: int
    written: int

    @staticmethod
    def of(program: Program) -> "Work":
        """Return a program's work for one state; a fused multiply-add counts as one operation."""
        code = fused(program)
        needed = (code[k].op for k in deepest_first(code, list(places(program))))
        read, written = (sum(v.size for v in s) for s in (program.inputs, program.outputs))
        return Work(sum(map(_operations, needed)), read, written)


def _operations(op: str) -> int:
    if op not in OPS:  # a fused multiply-add, which has no entry in OPS
        return 1
    column = OPS[op].counts_as
    if column in ("free", "negations"):
        return 0
    return 1 if column in ("additions", "multiplications", "selections") else SLOW


@dataclass(frozen=True)
class Limits:
    """Peak rates of a device.

    - operations: operations per second, by dtype.
    - copies, fills: bytes read and written per second when an array is copied or filled, by amount
      of data.
    """

    name: str
    operations: dict[str, float]
    copies: Rates
    fills: Rates

    def arithmetic(self, work: Work, dtype: str, count: int) -> float:
        """Return the shortest possible time (s) for the operations of `count` states."""
        return count * work.operations / self.operations[dtype]

    def memory(self, work: Work, dtype: str, count: int) -> float:
        """Return the time (s) to transfer the data of `count` states.

        If more data is written than read, the difference is written at the fill rate. All other
        transfers run at the copy rate.
        """
        size = np.dtype(dtype).itemsize * count
        read, written = size * work.read, size * work.written
        filled = max(written - read, 0)
        copies, fills = (rate(known, read + written) for known in (self.copies, self.fills))
        return (read + written - filled) / copies + filled / fills


def rate(known: Rates, size: int) -> float:
    """Return the transfer rate (bytes/s) for an amount of data (bytes) by log-log interpolation."""
    sizes, rates = zip(*known, strict=True)
    return math.exp(np.interp(math.log(max(size, 1)), np.log(sizes), np.log(rates)))


@cache
def processor(cores: int) -> Limits:
    """Return the combined peak rates of several cores, never less than the rates of one core."""
    found = _measured(cores)
    if cores == 1:
        return found
    one = processor(1)
    copies, fills = (
        tuple((size, max(a, b)) for (size, a), (_, b) in zip(*pair, strict=True))
        for pair in ((found.copies, one.copies), (found.fills, one.fills))
    )
    operations = {d: max(x, one.operations[d]) for d, x in found.operations.items()}
    return Limits(found.name, operations, copies, fills)


def _measured(cores: int) -> Limits:
    code, operations = _code(), {}
    with ThreadPoolExecutor(cores) as pool:
        for dtype, lanes in code.lanes.items():
            seconds = _least(partial(code.turned, pool, cores, f"peak_{dtype}"))
            operations[dtype] = cores * CHAINS * lanes * (1 if code.fuses else 2) / seconds
        memory = [np.empty(FOOTPRINTS[-1] // 2 + 64, np.uint8) for _ in range(2)]
        starts = [-(-address(a) // 64) * 64 for a in memory]
        for a in memory:
            a[:] = 0  # makes the system allocate the memory pages
        copies, fills = (
            tuple((size, _rate(pool, cores, code, kind, size, starts)) for size in FOOTPRINTS)
            for kind in ("copy", "fill")
        )
    number = "1 core" if cores == 1 else f"{cores} cores"
    return Limits(f"{code.name}, {number}", operations, copies, fills)


def _rate(
    pool: ThreadPoolExecutor,
    cores: int,
    code: "_Code",
    kind: str,
    size: int,
    starts: Sequence[int],
) -> float:
    """Return the measured transfer rate (bytes/s) with the faster of two kinds of stores."""
    arrays = 2 if kind == "copy" else 1
    share = size // arrays // cores // code.step * code.step
    share = max(min(share, FOOTPRINTS[-1] // 2 // cores), code.step)

    def run(name: str, times: int) -> None:
        def part(k: int) -> None:
            code.run(name, times, share // code.step, *(start + k * share for start in starts))

        _shared(pool, cores, part)

    names = (f"{kind}_plain", f"{kind}_streaming")
    return max(arrays * share * cores / _least(partial(run, name)) for name in names)


def _shared(pool: ThreadPoolExecutor, cores: int, work: Callable[[int], None]) -> None:
    """Call `work(k)` with k = 0, ..., cores - 1, on all cores at the same time."""
    if cores == 1:
        work(0)
    else:
        list(pool.map(work, range(cores)))


def _least(run: Callable[[int], object]) -> float:
    """Return the time (s) per repetition in the fastest of several sufficiently long runs."""
    times = 1
    while True:
        taken = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            run(times)
            taken.append(time.perf_counter() - begin)
        if min(taken) >= SECONDS:
            return min(taken) / times
        times = math.ceil(times * min(1.5 * SECONDS / max(min(taken), 1e-9), 1000.0))


class _Code:
    """Benchmark loops in machine code: chains of multiply-adds, copies and fills."""

    def __init__(self) -> None:
        machine = Machine.host()
        self.name = machine.cpu
        self.fuses = machine.fuse
        self.lanes = {"float64": machine.width, "float32": 2 * machine.width}
        self.step = 8 * machine.width  # vector size (bytes)
        kinds = {"float64": ("double", "f64"), "float32": ("float", "f32")}
        texts = [
            _peak(dtype, *kinds[dtype], lanes, fuse=self.fuses)
            for dtype, lanes in self.lanes.items()
        ]
        names = [f"peak_{dtype}" for dtype in self.lanes]
        for kind in ("copy", "fill"):
            for store in ("plain", "streaming"):
                names.append(f"{kind}_{store}")
                texts.append(_moved(names[-1], machine.width, kind == "copy", store != "plain"))
        text = "\n".join([*texts, "!0 = !{i32 1}"])
        self._code = load(assemble(text, machine, opaque=True), {}, names)

    def turned(self, pool: ThreadPoolExecutor, cores: int, name: str, turns: int) -> None:
        """Run the benchmark loop `name` on each core, with `turns` iterations."""
        _shared(pool, cores, lambda _: self.run(name, turns))

    def run(self, name: str, *numbers: int) -> None:
        """Run a loop without holding the GIL."""
        size: Any = ctypes.c_ssize_t
        ctypes.CFUNCTYPE(size, *[size] * len(numbers))(self._code.address(name))(*numbers)


@cache
def _code() -> _Code:
    """Return the benchmark loops, which are loaded once per process."""
    return _Code()


def _peak(dtype: str, kind: str, suffix: str, lanes: int, *, fuse: bool) -> str:
    """Generate LLVM IR for a loop with one multiply-add per chain in each iteration."""
    vector = f"<{lanes} x {kind}>"
    factor, term = (
        f"<{', '.join([f'{kind} {x}'] * lanes)}>"
        for x in ("0x3FEFFFFFE0000000", "0x3E10000000000000")
    )
    intrinsic = f"llvm.fma.v{lanes}{suffix}"
    chains = range(CHAINS)
    begin = [
        f"  %x{k} = phi {vector} [ zeroinitializer, %entry ], [ %y{k}, %turn ]" for k in chains
    ]
    if fuse:
        call, rest = f"call {vector} @{intrinsic}", f"{vector} {factor}, {vector} {term}"
        made = [f"  %y{k} = {call}({vector} %x{k}, {rest})" for k in chains]
    else:
        made = [f"  %p{k} = fmul {vector} %x{k}, {factor}" for k in chains]
        made += [f"  %y{k} = fadd {vector} %p{k}, {term}" for k in chains]
    sums = [f"  %s{k} = fadd {vector} %y{k}, %{'y' if k == 1 else 's'}{k - 1}" for k in chains[1:]]
    # The return value only prevents the compiler from removing the multiply-adds.
    return "\n".join(
        [
            f"declare {vector} @{intrinsic}({vector}, {vector}, {vector})",
            f"define i64 @peak_{dtype}(i64 %turns) {{\nentry:\n  br label %turn\nturn:",
            "  %k = phi i64 [ 0, %entry ], [ %next, %turn ]",
            *begin,
            *made,
            "  %next = add i64 %k, 1\n  %more = icmp ult i64 %next, %turns",
            "  br i1 %more, label %turn, label %end\nend:",
            *sums,
            f"  %one = extractelement {vector} %s{CHAINS - 1}, i64 0",
            f"  %whole = fptosi {kind} %one to i64\n  ret i64 %whole\n}}",
        ]
    )


def _moved(name: str, width: int, copies: bool, streaming: bool) -> str:
    """Generate LLVM IR for a loop that repeatedly copies an array or fills it with zeros."""
    vector, hint = f"<{width} x double>", ", !nontemporal !0" if streaming else ""
    read = f"  %x = load {vector}, ptr %from" if copies else ""
    value = "%x" if copies else "zeroinitializer"
    return f"""define i64 @{name}(i64 %times, i64 %count, ptr %target, ptr %source) {{
entry:
  br label %time
time:
  %t = phi i64 [ 0, %entry ], [ %t.next, %again ]
  br label %each
each:
  %k = phi i64 [ 0, %time ], [ %k.next, %each ]
  %from = getelementptr {vector}, ptr %source, i64 %k
  %to = getelementptr {vector}, ptr %target, i64 %k
{read}
  store {vector} {value}, ptr %to, align {8 * width}{hint}
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %count
  br i1 %more, label %each, label %again
again:
  %t.next = add i64 %t, 1
  %another = icmp ult i64 %t.next, %times
  br i1 %another, label %time, label %end
end:
  ret i64 0
}}
"""
