"""Tables of docs/lint.md: all checks, and their findings in example-robot-data.

`python tests/lint/lint_page.py` writes the tables into the page.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path

from chasles.lint import CHECKS, SEVERITIES, Finding, lint

PAGE = Path(__file__).parents[2] / "docs/lint.md"
PACKAGE = "example-robot-data"
START, END = "<!-- {} -->\n", "<!-- end -->"


def checks_table() -> str:
    """Return a table of the checks in the source, with one row per check."""
    lines = ["| check | severity | finds | why it matters | remedy | `--fix` |", "|---" * 6 + "|"]
    for name, row in CHECKS.items():
        repaired = "yes" if row.repair else ""
        cells = (f"`{name}`", row.severity, row.finds, row.why, row.remedy, repaired)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def installed() -> str:
    """Return the installed version of example-robot-data, or "" if it is not installed."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return ""


def robots() -> dict[str, Path]:
    """Return the URDF files of example-robot-data by path below the folder of robots."""
    found = (Path(str(f.locate())) for f in files(PACKAGE) or () if f.suffix == ".urdf")
    return {path.as_posix().partition("/robots/")[2]: path for path in sorted(found)}


@cache
def found(path: Path) -> tuple[Finding, ...]:
    """Lint a file without meshes, so that the result does not depend on installed packages."""
    return lint(path, meshes=False)


def published_table() -> str:
    """Return a table of the findings, with one row per file."""
    lines = ["| file | errors | warnings | notes | findings by check |", "|---" * 5 + "|"]
    for name, path in robots().items():
        counts = Counter(finding.severity for finding in found(path))
        numbers = [str(counts[severity] or "") for severity in SEVERITIES]
        lines.append(f"| {name} | {' | '.join(numbers)} | {_checks(found(path))} |")
    return "\n".join(lines) + "\n"


def _checks(findings: Iterable[Finding]) -> str:
    counts = Counter(finding.check for finding in findings)
    return ", ".join(f"{name} {counts[name]}" for name in CHECKS if counts[name])


def section(text: str, name: str) -> tuple[int, int]:
    """Return the start and the end of a generated part of the page."""
    start = text.index(START.format(name)) + len(START.format(name))
    return start, text.index(END, start)


def documented_version() -> str:
    """Return the version of example-robot-data that the page describes."""
    match = re.search(rf"<!-- {PACKAGE} (\S+) -->", PAGE.read_text("utf-8"))
    assert match is not None
    return match[1]


def write() -> None:
    """Write both tables into the page."""
    text = re.sub(rf"{PACKAGE} \d+(\.\d+)*", f"{PACKAGE} {installed()}", PAGE.read_text("utf-8"))
    for name, table in (
        ("checks", checks_table()),
        (f"{PACKAGE} {installed()}", published_table()),
    ):
        start, end = section(text, name)
        text = f"{text[:start]}\n{table}\n{text[end:]}"
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    write()
