"""Print the results of a comparison as tables, and write them as JSON."""

import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import chasles
from benchmarks.alone import Alone
from benchmarks.closed_loops import CLOSED
from benchmarks.compare import SNAP_AMPLIFICATION, TOLERANCE, Comparison, Compilation, Row
from benchmarks.robots import CASES
from benchmarks.routes import NEW, REUSED
from benchmarks.targets import (
    BATCH,
    COLD_SECONDS,
    COMPILE_SECONDS,
    FLOAT32,
    OPERATIONS,
    SINGLE_CALL,
    SINGLE_CALL_REUSED,
    SPEEDUP,
    THREADED_BATCH,
    THREADS,
)

PACKAGES = ("numpy", "llvmlite", "pin", "mujoco", "casadi", "example-robot-data")
"""Packages whose versions are written to the JSON file, in addition to that of chasles."""


def show(comparison: Comparison, alone: Alone, console: Console) -> None:
    """Print tables of all measurements, with the targets."""
    console.print(
        _batches(comparison),
        _single_calls(comparison),
        _answers(comparison),
        _compilations(comparison),
        _operations(comparison),
        _ratios(alone),
        _cold_starts(alone),
    )
    for note in comparison.notes:
        console.print(note, markup=False)


def _table(title: str, *columns: str, caption: str | None = None) -> Table:
    """Return an empty table with two columns of text, followed by columns of numbers."""
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < 2 else "right", no_wrap=True)
    return table


def _batches(comparison: Comparison) -> Table:
    table = _table(
        f"Batches of {comparison.effort.batch} states: time per state, in ns",
        *("robot", "function", "chasles", "Pinocchio", "ratio", "target", "by medians", "kept"),
        *("MuJoCo", "ratio"),
        caption="Minimum processor time of each library's fastest route, called from Python on one "
        "thread.\nchasles and loops in C++ store all results in an array; loops in Python discard "
        "them. kept: ratio to the fastest route of Pinocchio that stores them.",
    )
    for row in comparison.rows:
        ratio, target = row.speedup, _speedup_target(comparison, row)
        table.add_row(
            *_head(row),
            _fastest(row, "chasles", [True]),
            _fastest(row, "Pinocchio"),
            _verdict(f"{ratio.pinocchio:.2f}", target is None or ratio.pinocchio >= target),
            _number(target, "g"),
            f"{ratio.pinocchio_by_medians:.2f}",
            _number(ratio.pinocchio_kept, ".2f"),
            _fastest(row, "MuJoCo"),
            _number(ratio.mujoco, ".1f"),
        )
    return table


def _single_calls(comparison: Comparison) -> Table:
    ours = ("new array", "ratio", "target", "out=", "ratio", "target")
    table = _table("Time per call from Python, in ns", "robot", "function", "Pinocchio", *ours)
    for row in comparison.rows:
        cells = [_fastest(row, "Pinocchio", [False])]
        key, found = (row.robot, row.function), {r.label: r for r in row.routes}
        for label, ratio, target in (
            (NEW, row.speedup.single_call, SINGLE_CALL.get(key)),
            (REUSED, row.speedup.single_call_reused, SINGLE_CALL_REUSED.get(key)),
        ):
            cells.append(f"{1e9 * found[label].minimum:.1f}")
            cells.append(_verdict(f"{ratio:.2f}", target is None or ratio >= target))
            cells.append(_number(target, "g"))
        table.add_row(*_head(row), *cells)
    return table


def _answers(comparison: Comparison) -> Table:
    table = _table(
        "Largest relative difference from Pinocchio, over all states",
        *("robot", "function", "as timed", "allowed", "snap=False", "MuJoCo", "allowed"),
        caption="Timed with snap=True, which rounds angles of the file. Allowed: "
        f"{TOLERANCE:g} plus {SNAP_AMPLIFICATION:g} times the sum of the changes in rad.",
    )
    for row in comparison.rows:
        errors = [r.error for r in row.routes if r.library == "MuJoCo"]
        table.add_row(
            *_head(row),
            f"{max(r.error for r in row.routes if r.library == 'chasles'):.1e}",
            f"{row.tolerance:.1e}",
            f"{row.exact_error:.1e}",
            f"{max(errors):.1e}" if errors else "-",
            f"{TOLERANCE:.1e}",
        )
    return table


def _speedup_target(comparison: Comparison, row: Row) -> float | None:
    """Return the target, or None if the batch does not have the size of the targets."""
    return SPEEDUP.get((row.robot, row.function)) if comparison.effort.batch == BATCH else None


def _head(row: Row | Compilation) -> tuple[str, str]:
    case = CLOSED[row.robot] if row.robot in CLOSED else CASES[row.robot]
    return case.title, row.function


def _compilations(comparison: Comparison) -> Table:
    columns = ("robot", "function", "trace", "trace and compile", "target", "from cache")
    table = _table("Processor time to trace and compile a function, in s", *columns)
    for made in comparison.compilations:
        target = COMPILE_SECONDS.get((made.robot, made.function))
        total = _verdict(f"{made.total:.3f}", target is None or made.total <= target)
        cells = (f"{made.trace:.3f}", total, _number(target, "g"), f"{made.cached:.4f}")
        table.add_row(*_head(made), *cells)
    return table


def _operations(comparison: Comparison) -> Table:
    columns = ("robot", "reference", "chasles", "Pinocchio", "ratio", "target")
    caption = "Pinocchio: traced with CasADi, with constants folded."
    table = _table("Multiplications and additions in inverse dynamics", *columns, caption=caption)
    for count in comparison.operations:
        target, reference = OPERATIONS.get(count.robot), count.pinocchio
        source, theirs, verdict = "-", "-", "-"
        if reference is not None:
            ratio = count.chasles / reference.operations
            verdict = _verdict(f"{ratio:.3f}", target is None or ratio <= target)
            source, theirs = reference.source, str(reference.operations)
        title, ours = CASES[count.robot].title, str(count.chasles)
        table.add_row(title, source, ours, theirs, verdict, _number(target, "g"))
    return table


def _ratios(alone: Alone) -> Table:
    columns = ("Panda, inverse dynamics", "batch", "before", "after", "ratio", "target", "error")
    caption = "float32: processor time. Threads: wall time, valid only on an idle computer."
    table = _table("float32 and two threads: time per state, in ns", *columns, caption=caption)
    wanted = ((FLOAT32, BATCH), (THREADS, THREADED_BATCH))
    for row, (target, batch) in zip(alone.ratios, wanted, strict=True):
        met = row.batch != batch or row.speedup >= target
        times = (f"{1e9 * row.before:.1f}", f"{1e9 * row.after:.1f}")
        verdict = _verdict(f"{row.speedup:.2f}", met)
        table.add_row(row.what, f"{row.batch}", *times, verdict, f"{target:g}", f"{row.error:.1e}")
    return table


def _cold_starts(alone: Alone) -> Table:
    columns = ("new process", "case", "processor time", "wall time", "target")
    table = _table("Start-up of a new process with a Panda, in s", *columns)
    for row in alone.colds:
        head = "import chasles" if row.what == "import" else "load to first torques"
        target = COLD_SECONDS[row.what]
        verdict = _verdict(f"{row.processor:.3f}", row.processor <= target)
        table.add_row(head, row.what, verdict, f"{row.wall:.3f}", f"{target:g}")
    return table


def _fastest(row: Row, library: str, whole: Sequence[bool] = (True, False)) -> str:
    """Return the shortest time (ns) of a library, with the route's label for other libraries."""
    for route in row.times(library, whole):
        time = route.minimum * 1e9
        return f"{time:.1f}" if library == "chasles" else f"{time:.0f} {route.label}"
    return "-"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _verdict(text: str, met: bool) -> str:
    return text if met else f"[bold red]{text} missed[/]"


def write(comparison: Comparison, alone: Alone, path: Path) -> None:
    """Write all measurements to a JSON file, with the date, processor, load and versions."""
    content = asdict(comparison) | {
        "alone": asdict(alone),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _processor(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "versions": {"chasles": chasles.__version__, **_versions(PACKAGES)},
    }
    for row, written in zip(comparison.rows, content["rows"], strict=True):
        target = _speedup_target(comparison, row)
        written.update(speedup=asdict(row.speedup), target=target)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _versions(packages: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def _processor() -> str:
    """Return the name of the processor."""
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
