"""What `chasles compare` shows: each term here and there, and the first difference."""

from typing import Any

from rich.console import Console
from rich.markup import escape

from chasles.cli.tables import table
from chasles.peers import Agreement


def show(found: Agreement, console: Console) -> None:
    """One row a term: its worst relative difference."""
    console.print(f"[bold]{escape(found.robot)}[/] here and in {found.library}:")
    rows = table(["", "term", "worst of"], ["difference"])
    for name, worst in found.terms:
        same = worst.error <= found.tolerance
        mark = "[green]same[/]" if same else "[red]differs[/]"
        rows.add_row(mark, f"[cyan]{name}[/]", escape(worst.of), f"{worst.error:.1e}")
    if found.terms:
        console.print(rows)
    if found.ok:
        console.print(f"All terms agree to {found.tolerance:g} of the largest entry.")
    else:
        console.print(f"[bold]first difference[/] {escape(found.first)}")
        console.print(f"[bold]likely cause[/] {escape(found.cause)}")


def facts(found: Agreement) -> dict[str, Any]:
    """The same for programs."""
    return {
        "robot": found.robot,
        "library": found.library,
        "ok": found.ok,
        "tolerance": found.tolerance,
        "terms": [
            {"term": name, "of": worst.of, "difference": worst.error} for name, worst in found.terms
        ],
        "first": found.first,
        "cause": found.cause,
    }
