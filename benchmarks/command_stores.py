"""Time batches of mass matrices, and compare them with filling memory and with Pinocchio."""

import argparse
import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

import chasles
from benchmarks.compare import relative_error
from benchmarks.console import WrongAnswer, count, output
from benchmarks.pinocchio_peer import coordinates, routes
from benchmarks.robots import CASES, chasles_robot, pinocchio_model
from benchmarks.states import Array, States
from benchmarks.targets import STORES
from benchmarks.timing import Rounds, interleaved
from chasles.backends.llvm.code import Machine, assemble, load

FILL = """
define void @fill(ptr %to, i64 %lines) "prefer-vector-width"="512" "min-legal-vector-width"="512" {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %line = getelementptr [8 x double], ptr %to, i64 %i
  %half = getelementptr double, ptr %line, i64 4
  store volatile <4 x double> splat (double 1.0), ptr %line, align 32{how}
  store volatile <4 x double> splat (double 1.0), ptr %half, align 32{how}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %lines
  br i1 %more, label %loop, label %end
end:
  fence seq_cst
  ret void
}}
!0 = !{{i32 1}}
"""
"""Fills consecutive memory, through the cache or bypassing it, in LLVM IR."""


@dataclass(frozen=True)
class Row:
    """Time (s) per state to fill the memory of the mass matrix, and to compute the matrix."""

    robot: str
    batch: int
    bytes: int
    fill: float
    whole: float
    packed: float
    peer: float


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--robots", nargs="+", choices=CASES, default=["talos"])
    parser.add_argument("--batches", nargs="+", type=count, default=[1000, 10_000, 100_000])
    parser.add_argument("--quick", action="store_true", help="short trial run with few rounds")


def run(chosen: argparse.Namespace) -> int:
    """Run the benchmark, print the results and return 0."""
    errors, rows = Console(stderr=True), []
    rounds = Rounds(1, 1) if chosen.quick else Rounds(5, 12)
    for robot in chosen.robots:
        for batch in chosen.batches:
            errors.print(f"{robot}, {batch} states")
            rows.append(measured(robot, batch, rounds))
    show(rows)
    return 0


def measured(name: str, batch: int, rounds: Rounds) -> Row:
    """Measure one robot. Matrices are compared with those of single states and of Pinocchio."""
    case = CASES[name]
    robot, model = chasles_robot(case, snap=False), pinocchio_model(case)
    n = robot.nv
    q = States.draw(robot, batch).q
    out = aligned(batch * n * n).reshape(batch, n, n)
    short = aligned(batch * n * (n + 1) // 2).reshape(batch, -1)
    whole = chasles.compile(robot, "mass_matrix").fast
    packed = chasles.compile(robot, "mass_matrix", packed=True).fast
    runs: list[Callable[[], object]] = [
        *(partial(fill, out.ctypes.data, out.size // 8) for fill in fills()),
        partial(whole, q, out=out, threads=1),
        partial(packed, q, out=short, threads=1),
    ]
    *filled, long, brief = (t.minimum / batch for t in interleaved(runs, rounds, repeats=1))
    whole(q, out=out, threads=1)
    for k in {0, batch // 2, batch - 1}:
        check(out[k], whole(q[k]), 0.0)
        check(short[k], out[k][np.tril_indices(n)], 1e-12)
    states = States.draw(robot, min(batch, 200))
    theirs = coordinates(robot, model, states)
    peers = routes(model, "mass_matrix", states, theirs, case.tip)
    for peer in peers:
        peer.run()
        check(peer.answers(), whole(states.q), 1e-9)
    times = interleaved([peer.run for peer in peers], rounds)
    least = min(t.minimum for t in times) / len(states.q)
    return Row(name, batch, 8 * n * n, min(filled), long, brief, least)


def check(found: Array, expected: Array, allowed: float) -> None:
    """Raise WrongAnswer if a matrix differs from the expected one."""
    error = relative_error(found.ravel()[None], expected.ravel()[None])
    if not error <= allowed:
        raise WrongAnswer(f"mass matrix: relative error {error:.1e}, allowed {allowed:.1e}")


def fills() -> list[Callable[[int, int], None]]:
    """Return functions that fill cache lines from an address, through the cache or bypassing it."""
    found: list[Callable[[int, int], None]] = []
    for how in ("", ", !nontemporal !0"):
        library = load(assemble(FILL.format(how=how), Machine.host()), {}, ["fill"])
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t)
        function = kind(library.address("fill"))
        function.library = library  # type: ignore[attr-defined]
        found.append(function)
    return found


def aligned(size: int) -> Array:
    """Return an array of the given size, aligned to 64 bytes."""
    memory = np.zeros(size + 8)
    start = (-memory.ctypes.data // 8) % 8
    return memory[start : start + size]


def show(rows: Sequence[Row]) -> None:
    """Print a table with one row per batch."""
    columns = ("fill ns", "GB/s", "mass matrix ns", "share", "packed ns", "Pinocchio ns", "ratio")
    table = Table("robot", "states", *columns)
    for row in rows:
        table.add_row(
            row.robot,
            f"{row.batch}",
            f"{1e9 * row.fill:.0f}",
            f"{row.bytes / row.fill / 1e9:.1f}",
            f"{1e9 * row.whole:.0f}",
            f"{row.fill / row.whole:.2f}",
            f"{1e9 * row.packed:.0f}",
            f"{1e9 * row.peer:.0f}",
            f"{row.peer / row.whole:.1f}",
        )
    output().print(table)
    output().print(f"Processor time on one thread. Target: share of {STORES:g} for large batches.")
