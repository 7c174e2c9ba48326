"""The command `chasles lint`: check robot files and write repaired copies."""

import difflib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from chasles.cli.command import FOUND, WRONG, Answer, write
from chasles.cli.options import Arguments, Trust, given, installed, option
from chasles.errors import ChaslesError, FileError, ModelError
from chasles.lint import CHECKS, SEVERITIES, Finding, at_least, findings, surveyed
from chasles.lint.repair import repaired, unrepaired
from chasles.lint.sheet import Sheet
from chasles.writing import store

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}

FailOn = StrEnum("FailOn", ["error", "warning", "note", "never"])
"""Lowest severity that sets exit status 1."""


def lint(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|NAME",
            help="Robot files, or names of installed robots.",
            autocompletion=installed,
        ),
    ],
    argument: Arguments,
    fix: Annotated[
        bool, option("Write NAME.fixed.urdf next to the file and show the changes.")
    ] = False,
    fail_on: Annotated[FailOn, option("Lowest severity that sets exit status 1.")] = FailOn.warning,
    no_meshes: Annotated[bool, option("Do not open mesh files.")] = False,
    trust: Trust = False,
) -> Answer:
    """Find errors and suspicious values in robot files, even if they do not load.

    Checks inertias, units, symmetry, limits, names, loops and shapes.

    The exit status is 0 if all files are clean, 1 if there are findings, and 2 if
    a file cannot be read.

    Examples:
        chasles lint robot.urdf
        chasles lint robots/*.urdf --json --fail-on error
        chasles lint robot.urdf --fix
    """
    how: dict[str, Any] = {"meshes": not no_meshes, "arguments": given(argument), "trust": trust}
    reports = [_report(file, fix=fix, how=how) for file in files]

    def show(console: Console) -> None:
        for report in reports:
            _show(report, console)

    return Answer({"reports": list(map(_plain, reports))}, show, _status(reports, fail_on.value))


@dataclass(frozen=True)
class Report:
    """Findings for one file, and its repaired copy.

    Attributes
    ----------
    unreadable
        Error from reading the file.
    asked
        True if a repair was requested.
    copy, diff
        Path of the repaired copy, and its diff from the original.
    left
        Findings that could not be repaired, with reasons.
    unwritten
        Error from writing the copy.
    """

    file: str
    findings: tuple[Finding, ...] = ()
    unreadable: ChaslesError | None = None
    copy: str = ""
    diff: str = ""
    left: tuple[str, ...] = ()
    asked: bool = False
    unwritten: ChaslesError | None = None


def _report(target: str, *, fix: bool, how: Mapping[str, Any]) -> Report:
    """Check a file; if `fix` is True, also write a repaired copy."""
    try:
        sheet = surveyed(target, **how)
    except ModelError as error:
        return Report(target, unreadable=error)
    left = tuple(map(str, unrepaired(sheet))) if fix else ()
    report = Report(target, findings(sheet), left=left, asked=fix)
    if not fix or not any(finding.repairable for finding in report.findings):
        return report
    try:
        copy, diff = _fixed(sheet, Path(target))
        return replace(report, copy=copy, diff=diff)
    except (ModelError, FileError) as error:
        return replace(report, unwritten=error)


def _fixed(sheet: Sheet, target: Path) -> tuple[str, str]:
    """Write a repaired copy; return its path and its diff from the original.

    The copy is written next to the file or, for an installed robot, to the current folder.
    """
    copy = target.with_name(f"{target.stem}.fixed{Path(sheet.file).suffix}")
    if os.path.lexists(copy):
        problem = "the file already exists"
        raise ModelError("E-CLI-017", problem, "remove or rename the file", file=copy)
    old, new = repaired(sheet)
    if old == new:
        return "", ""
    store(copy, new, overwrite=False)
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), sheet.file, str(copy)
    )
    return str(copy), "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _status(reports: Sequence[Report], fail_on: str) -> int:
    """Return the exit status: 2 if a file cannot be read or written, 1 for findings, else 0."""
    if any(report.unreadable or report.unwritten for report in reports):
        return WRONG
    found = [finding for report in reports for finding in report.findings]
    return FOUND if fail_on != "never" and any(at_least(f, fail_on) for f in found) else 0


def _plain(report: Report) -> dict[str, Any]:
    """Convert a report to machine-readable data, with errors as dictionaries."""
    errors = {"unreadable": report.unreadable, "unwritten": report.unwritten}
    told = {key: None if error is None else error.fields() for key, error in errors.items()}
    return asdict(replace(report, unreadable=None, unwritten=None)) | told


def _show(report: Report, console: Console) -> None:
    """Print the findings by check, with the most severe first, and the result of the repair."""
    if report.unreadable:
        told = " ".join(str(report.unreadable).split())
        console.print(f"[red]unreadable[/] {escape(told)}", soft_wrap=True)
        return
    counts = Counter(finding.severity for finding in report.findings)
    words = [f"{n} {key}{'s' if n > 1 else ''}" for key in SEVERITIES if (n := counts[key])]
    summary = ", ".join(words) or "clean"
    console.print(f"[bold]{escape(report.file)}[/]: {summary}", soft_wrap=True)
    for name, row in sorted(CHECKS.items(), key=lambda item: SEVERITIES.index(item[1].severity)):
        found = [finding for finding in report.findings if finding.check == name]
        if found:
            head = f"[{_COLOURS[row.severity]}]{row.severity}[/] [bold]{name}[/]: {row.why}"
            remedies = {finding.remedy for finding in found}
            same = f"; {escape(found[0].remedy)}" if len(remedies) == 1 else ""
            console.print(f"{head}{same}", soft_wrap=True)
            own = ["" if same else f"; {finding.remedy}" for finding in found]
            lines = zip(found, own, strict=True)
            write(console, *(f"  {x.where}: {x.part}: {x.what}{remedy}" for x, remedy in lines))
    if report.diff:
        write(console, *report.diff.splitlines())
        write(console, f"Repaired copy saved to {report.copy}")
    elif report.unwritten:
        why = escape(str(report.unwritten))
        console.print(f"[red]no copy was written[/] {why}", soft_wrap=True)
    elif report.asked and report.findings:
        console.print("No copy was written: these findings cannot be repaired automatically.")
    write(console, *report.left)
