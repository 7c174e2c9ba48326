"""What `chasles lint` does with each file, what it prints, and the copies that it repairs."""

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from chasles.cli.command import FOUND, WRONG
from chasles.errors import ChaslesError, FileError, ModelError
from chasles.formats.files import store
from chasles.lint import CHECKS, SEVERITIES, Finding, at_least, findings, surveyed
from chasles.lint.repair import repaired, unrepaired
from chasles.lint.sheet import Sheet

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


@dataclass(frozen=True)
class Report:
    """Of a file. unreadable: why it cannot be read. copy, diff: of the repair, if one was made.

    left: what could not be repaired, and why. asked: a repair was asked for. unwritten: why the
    copy could not be written. Both errors are None where all went well.
    """

    file: str
    findings: tuple[Finding, ...] = ()
    unreadable: ChaslesError | None = None
    copy: str = ""
    diff: str = ""
    left: tuple[str, ...] = ()
    asked: bool = False
    unwritten: ChaslesError | None = None


@dataclass(frozen=True)
class Task:
    """What was asked. fail_on: the least severity that counts, or "never"; arguments: of xacro."""

    fix: bool
    fail_on: str
    meshes: bool
    arguments: Mapping[str, str]

    def status(self, reports: Sequence[Report]) -> int:
        """The exit status: 2 where a file cannot be read, or its copy not be written, 1 where
        findings count, else 0."""
        if any(report.unreadable or report.unwritten for report in reports):
            return WRONG
        found = [finding for report in reports for finding in report.findings]
        counts = self.fail_on != "never"
        return FOUND if counts and any(at_least(f, self.fail_on) for f in found) else 0

    def report(self, target: str) -> Report:
        """Look at a file, and repair a copy of it if that was asked."""
        try:
            sheet = surveyed(target, meshes=self.meshes, arguments=self.arguments)
        except ModelError as error:
            return Report(target, unreadable=error)
        found = findings(sheet)
        if not self.fix:
            return Report(target, found)
        left = tuple(map(str, unrepaired(sheet)))
        if not any(finding.repairable for finding in found):
            return Report(target, found, left=left, asked=True)
        try:
            return Report(target, found, None, *_fixed(sheet, Path(target)), left, asked=True)
        except (ModelError, FileError) as error:
            return Report(target, found, left=left, asked=True, unwritten=error)


def _fixed(sheet: Sheet, target: Path) -> tuple[str, str]:
    """The name of the repaired copy, and its difference to the file; the file itself stays.

    The copy of a file stands beside it, that of an installed robot in the present folder.
    """
    copy = target.with_name(f"{target.stem}.fixed{Path(sheet.file).suffix}")
    if copy.exists():
        problem = "it is there already"
        raise ModelError("E-CLI-017", problem, "remove it, or give it another name", file=copy)
    old, new = repaired(sheet)
    if old == new:
        return "", ""
    store(copy, new)
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), sheet.file, str(copy)
    )
    return str(copy), "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


# What is printed -------------------------------------------------------------------------------


def show(reports: Sequence[Report], console: Console) -> None:
    """What was found in all files."""
    for report in reports:
        _show(report, console)


def _show(report: Report, console: Console) -> None:
    """The findings of a file by check, the gravest first; then the repair."""
    if report.unreadable:
        told = " ".join(str(report.unreadable).split())
        console.print(f"[red]unreadable[/] {escape(told)}", soft_wrap=True)
        return
    console.print(f"[bold]{escape(report.file)}[/]: {summary(report.findings)}", soft_wrap=True)
    for name, row in sorted(CHECKS.items(), key=lambda item: SEVERITIES.index(item[1].severity)):
        found = [finding for finding in report.findings if finding.check == name]
        if not found:
            continue
        head = f"[{_COLOURS[row.severity]}]{row.severity}[/] [bold]{name}[/]: {row.why}"
        console.print(f"{head}; {escape(found[0].remedy)}", soft_wrap=True)
        for finding in found:
            line = f"  {finding.where}: {finding.part}: {finding.what}"
            console.print(line, markup=False, soft_wrap=True)
    if report.diff:
        console.print(report.diff, markup=False, soft_wrap=True, end="")
        console.print(f"Repaired copy saved to {report.copy}", markup=False, soft_wrap=True)
    elif report.unwritten:
        console.print(
            f"[red]no copy was written[/] {escape(str(report.unwritten))}", soft_wrap=True
        )
    elif report.asked and report.findings:
        console.print("No copy was written: only you can put these right.")
    for line in report.left:
        console.print(line, markup=False, soft_wrap=True)


def summary(found: Sequence[Finding]) -> str:
    """How many findings there are of each severity."""
    counts = Counter(finding.severity for finding in found)
    words = [f"{n} {key}{'s' if n > 1 else ''}" for key in SEVERITIES if (n := counts[key])]
    return ", ".join(words) or "clean"


def plain(report: Report) -> dict[str, Any]:
    """A report for programs; errors as their fields."""
    errors = {"unreadable": report.unreadable, "unwritten": report.unwritten}
    told = {key: None if error is None else error.fields() for key, error in errors.items()}
    return asdict(replace(report, unreadable=None, unwritten=None)) | told
