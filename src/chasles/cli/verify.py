"""What `chasles verify` shows: the worst error of each check, and what differs."""

from typing import Any

from rich.console import Console
from rich.markup import escape

from chasles.checks import Result, Verification
from chasles.cli.tables import table


def show(found: Verification, console: Console, *, freedoms: int, arm: int) -> None:
    """One row a check: the function and method nearest to its tolerance, or farthest beyond."""
    console.print(f"[bold]{escape(found.robot)}[/]: {len(found.results)} comparisons")
    rows = table(["", "check", "worst of"], ["error", "tolerance", "seed"])
    for name, worst in found.worst.items():
        mark = "[green]ok[/]" if worst.ok else "[red]differs[/]"
        what = f"{worst.function}, {worst.method}" if worst.method else worst.function
        numbers = f"{worst.error:.1e}", f"{worst.tolerance:.0e}", str(worst.seed)
        rows.add_row(mark, f"[cyan]{name}[/]", escape(what), *numbers)
    console.print(rows)
    for result in found.failures:
        console.print(f"[red]differs[/] {escape(str(result))}")
    if not found.full:
        closed = f"; closed forms are for {arm} freedoms or fewer" if freedoms > arm else ""
        console.print(f"--full compiles every function, also in float32{closed}.")


def facts(found: Verification) -> dict[str, Any]:
    """The same for programs: ok, and every result."""
    return {
        "robot": found.robot,
        "ok": found.ok,
        "full": found.full,
        "results": [_fields(result) for result in found.results],
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
        "detail": result.detail,
    }
