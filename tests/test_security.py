"""The tests named in the table of SECURITY.md exist, and every kind of threat has a row."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "SECURITY.md").read_text("utf-8")
AUDIT = (ROOT / "docs" / "memory-safety.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


def functions(path: Path) -> set[str]:
    """Return the names of functions and classes that a file defines."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in nodes if isinstance(node, kinds)}


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_named_test_exists(file: str, name: str) -> None:
    assert name in functions(ROOT / file)


def test_every_row_of_threats_names_a_test() -> None:
    table = PAGE.partition("## Threats")[2]
    rows = [line for line in table.splitlines() if line.startswith("|")][2:]
    assert all("`tests/" in row for row in rows)
    assert {row.split("|")[1].strip() for row in rows} == {
        *("file", "cache", "call", "network", "worker")
    }


def _rows() -> list[list[str]]:
    table = AUDIT.partition("## Array size checks")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_files_of_the_audit_exist() -> None:
    for file, *_ in _rows():
        assert (ROOT / "src" / "chasles" / file.strip("`")).is_file(), file


def test_every_file_that_hands_addresses_to_machine_code_is_in_the_audit() -> None:
    """These files make C functions from addresses, or write functions that take pointers."""
    audited = {file.strip("`") for file, *_ in _rows()}
    marks = re.compile(r"CFUNCTYPE\(|launch\(\(|\.launch\(|start_of\(given\)|code\.load")
    found = set()
    for path in (ROOT / "src" / "chasles" / "backends").rglob("*.py"):
        if marks.search(path.read_text("utf-8")):
            found.add(path.relative_to(ROOT / "src" / "chasles").as_posix())
    here = {
        "backends/cuda/driver.py",
        "backends/cuda/limits.py",
    }  # the launch function itself, and a measurement
    assert found - audited <= here
