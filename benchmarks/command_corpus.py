"""Read all robot files of installed packages, and compare the robots with reference readers.

The reference readers are Pinocchio for URDF and xacro, MuJoCo for MJCF, and Drake for SDF.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.corpus import SUFFIXES, Case, Outcome, Reader, in_folder, in_packages

FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))

COLUMNS: dict[str, Callable[[Outcome], bool]] = {
    "files": lambda _: True,
    "read by the reference": lambda x: x.known,
    "read by both": lambda x: x.known and x.read,
    "agree": lambda x: x.agrees,
    "differ": lambda x: x.known and x.read and not x.agrees,
    "refused by chasles": lambda x: x.known and "refused" in x.found,
    "crash or hang": lambda x: bool(x.ended) and x.known,
    "read only by chasles": lambda x: not x.known and x.read,
}
"""Columns of the tables of counts: title, and condition for counting a file."""

BEGIN, END = "<!-- corpus -->\n", "<!-- end -->\n"
"""Lines of a page between which the tables are written."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    site = "folders of installed packages (default: those of this Python)"
    parser.add_argument("--site", nargs="+", default=sys.path, metavar="FOLDER", help=site)
    folders = "folders of robot files to read instead of installed packages"
    parser.add_argument("--folders", nargs="+", default=[], type=Path, help=folders)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
    parser.add_argument("--packages", nargs="+", help="names of packages to read (default: all)")
    parser.add_argument("--page", type=Path, help="page in which the tables are replaced")
    again = "page to update: only files listed there as different are read again"
    parser.add_argument("--again", type=Path, metavar="PAGE", help=again)
    record = "file of outcomes in JSON lines; files that it contains are not read again"
    parser.add_argument("--record", type=Path, help=record)


def run(chosen: argparse.Namespace) -> int:
    """Read all files. Return 1 if one crashes or hangs, or differs without explanation, else 0."""
    within = [case for folder in chosen.folders for case in in_folder(folder)]
    cases = within or list(in_packages(chosen.site))
    wanted = [
        case
        for case in cases
        if case.format in chosen.formats and case.package in (chosen.packages or [case.package])
    ]
    if chosen.again:
        page = chosen.again.read_text("utf-8")
        listed = [case for case in wanted if _row(case) in page]
        outcomes = list(tried(listed, chosen.record))
        chosen.again.write_text(corrected(page, outcomes), "utf-8")
        return int(any(x.ended for x in outcomes if x.known))
    outcomes = list(tried(wanted, chosen.record))
    text = "\n".join(report(outcomes))
    if chosen.page:
        before, _, rest = chosen.page.read_text("utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        chosen.page.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{after}", "utf-8")
    else:
        print(text)
    wrong = (x for x in outcomes if x.known and x.read and not x.agrees and not x.explanation)
    return int(any(wrong) or any(x.ended for x in outcomes if x.known))


def tried(cases: Sequence[Case], record: Path | None) -> Iterator[Outcome]:
    """Yield the outcome of each file, in order."""
    known, reader, told = recorded(record), Reader(), Console(stderr=True)
    try:
        for k, case in enumerate(cases, start=1):
            if case.path not in known:
                told.print(f"{k} of {len(cases)}: {case.path}", markup=False, highlight=False)
                outcome = reader.tried(case)
                known[case.path] = outcome.found
                if record is not None:
                    with record.open("a", encoding="utf-8") as stream:
                        print(json.dumps({"path": str(case.path)} | outcome.found), file=stream)
            yield Outcome(case, known[case.path])
    finally:
        reader.close()


def recorded(record: Path | None) -> dict[Path, dict[str, object]]:
    """Return the outcomes of an earlier run, by path."""
    if record is None or not record.exists():
        return {}
    rows = map(json.loads, record.read_text("utf-8").splitlines())
    return {Path(row.pop("path")): row for row in rows}


def _row(case: Case) -> str:
    """Return the start of the table row of a file that differs."""
    return f"| {case.package}: {case.path.name} |"


def corrected(page: str, outcomes: Sequence[Outcome]) -> str:
    """Remove the rows of files that now agree from a page, and correct its counts."""
    lines, places = page.splitlines(keepends=True), [*COLUMNS]
    differs = {_row(x.case) for x in outcomes if x.known and not x.agrees}
    agrees = {_row(x.case): x.case for x in outcomes if x.agrees and _row(x.case) not in differs}
    for row, case in agrees.items():
        lines = [line for line in lines if not line.startswith(row)]
        for start in (f"| {case.format} |", f"| {case.package} | {case.format} |"):
            k = next(k for k, line in enumerate(lines) if line.startswith(start))
            cells = lines[k].removeprefix(start).split("|")
            for name, more in (("agree", 1), ("differ", -1)):
                cells[places.index(name)] = f" {int(cells[places.index(name)]) + more} "
            lines[k] = start + "|".join(cells)
    return "".join(lines)


# Tables ------------------------------------------------------------------------------------------


def report(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of all tables: counts by format and package, refusals, and differences."""
    yield from _counted("format", outcomes, lambda x: x.case.format)
    yield ""
    by_package = _counted("package", outcomes, lambda x: f"{x.case.package} | {x.case.format}")
    yield from (line.replace("| package |", "| package | format |", 1) for line in by_package)
    massless = [
        x for x in outcomes if x.known and x.read and x.found["idle"] and "errors" in x.found
    ]
    worst = max((x.kinematics for x in massless), default=0.0)
    yield ""
    yield (
        f"In {len(massless)} robots, some joints move only massless links. The link poses and "
        f"Jacobians of these robots differ from the reference by at most {worst:.0e}."
    )
    yield from _table("code", "files", _refusals(outcomes))
    yield from _table("file", "notes about the difference", _differences(outcomes))


def _counted(
    what: str, outcomes: Sequence[Outcome], key: Callable[[Outcome], str]
) -> Iterator[str]:
    groups: dict[str, list[Outcome]] = {}
    for outcome in sorted(outcomes, key=lambda x: (key(x).lower(), str(x.case.path))):
        groups.setdefault(key(outcome), []).append(outcome)
    yield f"| {what} | {' | '.join(COLUMNS)} |"
    yield "|---" * (1 + len(COLUMNS) + (what == "package")) + "|"
    for name, group in groups.items():
        counts = (sum(map(count, group)) for count in COLUMNS.values())
        yield f"| {name} | {' | '.join(map(str, counts))} |"


def _refusals(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Count the files that only the reference reads, by format and error code."""
    refused = (x for x in outcomes if x.known and "refused" in x.found)
    codes = Counter(f"{x.case.format} {x.found['refused']}" for x in refused)
    return {code: str(count) for code, count in sorted(codes.items())}


def _differences(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return the explanation of each file that differs, by package and name."""
    unlike = [x for x in outcomes if x.known and x.read and not x.agrees]
    return {
        f"{x.case.package}: {x.case.path.name}": x.explanation or f"nothing: {x.found['first']}"
        for x in unlike
    }


def _table(left: str, right: str, rows: dict[str, str]) -> Iterator[str]:
    if rows:
        yield from ("", f"| {left} | {right} |", "|---|---|")
    for row in rows.items():
        yield "| " + " | ".join(cell.replace("|", "/") for cell in row) + " |"
