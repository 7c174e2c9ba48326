"""What `chasles verify` shows: the worst error of each check, and what differs."""

from typing import Any

from rich.console import Console
from rich.markup import escape

from chasles.checks import Result, Verification
from chasles.checks.verify import reasons
from chasles.cli.tables import table

WIDE = 120
"""Columns from which the function and the method stand beside the check, not below it."""


def show(found: Verification, console: Console) -> None:
    """One row a check: the function and method nearest to its tolerance, or farthest beyond."""
    console.print(f"[bold]{escape(found.robot)}[/]: {len(found.results)} comparisons")
    wide = console.width >= WIDE
    words = ["", "check", "worst of"] if wide else ["", "check, and worst of"]
    rows = table(words, ["error", "tolerance", "seed"])
    for name, worst in found.worst.items():
        who = f"{worst.function}, {worst.method}" if worst.method else worst.function
        check, what = f"[cyan]{name}[/]", escape(who)
        cells = [check, what] if wide else [f"{check}\n{what}"]
        numbers = f"{worst.error:.1e}", f"{worst.tolerance:.0e}", str(worst.seed)
        rows.add_row(_mark(worst), *cells, *numbers)
    console.print(rows)
    for result in found.failures:
        console.print(f"[red]differs[/] {escape(str(result))}")
    for line in (*found.left_out, *reasons(found.unchecked)):
        console.print(f"[yellow]unchecked[/] {escape(line)}")
    if not found.full:
        console.print("--full compiles every function, also in float32.")


def _mark(result: Result) -> str:
    if not result.checked:
        return "[yellow]unchecked[/]"
    return "[green]ok[/]" if result.ok else "[red]differs[/]"


def facts(found: Verification) -> dict[str, Any]:
    """The same for programs: ok, every result, and what was left out."""
    return {
        "robot": found.robot,
        "ok": found.ok,
        "full": found.full,
        "results": [_fields(result) for result in found.results],
        "left_out": found.left_out,
    }


def _fields(result: Result) -> dict[str, Any]:
    return {
        "check": result.check,
        "function": result.function,
        "method": result.method,
        "error": result.error,
        "tolerance": result.tolerance,
        "seed": result.seed,
        "ok": result.ok,
        "checked": result.checked,
        "detail": result.detail,
    }
