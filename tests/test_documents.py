"""docs/documents.md covers all numbered items of the five documents, and all its names exist.

Numbers of equations, tables, examples and other items are listed here from the documents.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from chasles.algorithms import FUNCTIONS

ROOT = Path(__file__).parents[1]


class Row(NamedTuple):
    item: str
    here: str
    tests: str
    value: str


@cache
def page() -> dict[str, list[Row]]:
    """Return the rows of each section; the section's title begins with the document's name."""
    found: dict[str, list[Row]] = {}
    section = ""
    for line in (ROOT / "docs/documents.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:].partition(":")[0]
            found[section] = []
        elif line.startswith("| ") and not line.startswith("| item |"):
            cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
            assert len(cells) == 4, line
            found[section].append(Row(*cells))
    return found


LEGNANI_1, LEGNANI_2 = "Legnani et al., part I", "Legnani et al., part II"
MITRA, BALAFOUTIS, FEATHERSTONE = "Mitra", "Balafoutis and Patel", "Featherstone"
DOCUMENTS = (LEGNANI_1, LEGNANI_2, MITRA, BALAFOUTIS, FEATHERSTONE)


# Numbered items of the documents ----------------------------------------------------------------


def run(text: str) -> list[str]:
    """Expand a range: `2.14-2.18` gives five numbers, as does `C-1 to C-5`."""
    first, _, last = text.replace(" to ", "-to-").partition("-to-")
    if not last and re.fullmatch(r"[A-Z]?[\d.]+-[A-Z]?[\d.]+", text):
        first, last = text.split("-")
    if not last:
        return [text]
    stem, start = re.fullmatch(r"(.*?)(\d+)", first.strip()).groups()  # type: ignore[union-attr]
    other, end = re.fullmatch(r"(.*?)(\d+)", last.strip()).groups()  # type: ignore[union-attr]
    if stem != other:
        return [first.strip(), last.strip()]
    return [f"{stem}{k}" for k in range(int(start), int(end) + 1)]


def runs(*texts: str) -> list[str]:
    return [number for text in texts for number in run(text)]


EQUATIONS = {
    LEGNANI_1: runs("1-26"),
    LEGNANI_2: [*runs("1-11"), "3bis"],
    MITRA: runs("1-3"),
    BALAFOUTIS: runs(
        *("1.1.1-1.1.3", "1.2.1", "2.2.1-2.2.11", "2.3.1-2.3.6"),
        *("3.2.1-3.2.34", "3.3.1-3.3.36", "3.4.1-3.4.39", "4.2.1-4.2.24", "4.3.1-4.3.44"),
        *("5.1.1", "5.2.1-5.2.37", "5.3.1-5.3.46", "5.4.1-5.4.20"),
        *("6.1.1", "6.2.1-6.2.19", "6.3.1-6.3.46"),
        *("7.2.1-7.2.3", "7.3.1-7.3.19", "7.4.1-7.4.18"),
        *("A.1-A.16", "B.1-B.10", "C.1-C.16"),
    ),
    FEATHERSTONE: runs(
        *("1.1-1.5", "2.1-2.78", "3.1-3.74", "4.1-4.13", "5.1-5.20", "6.1-6.29"),
        *("7.1-7.63", "8.1-8.64", "9.1-9.30", "10.1-10.12", "11.1-11.79"),
    ),
}
OTHERS: dict[tuple[str, str], list[str]] = {
    (LEGNANI_1, "section"): runs("2.1-2.3", "3.1-3.3", "4.1-4.6", "5"),
    (LEGNANI_2, "section"): runs("2.1-2.3", "3", "4.1-4.2", "5", "6"),
    (LEGNANI_2, "fig."): ["4", "5", "6"],
    (LEGNANI_2, "appendix"): ["A1", "A2"],
    (MITRA, "section"): runs("1", "2", "2.1-2.9", "3.1-3.2"),
    (BALAFOUTIS, "definition"): runs("3.1-3.4", "5.1-5.2"),
    (BALAFOUTIS, "theorem"): runs("2.1-2.2", "4.1-4.5"),
    (BALAFOUTIS, "corollary"): runs("4.1-4.2"),
    (BALAFOUTIS, "proposition"): runs("3.1-3.12"),
    (BALAFOUTIS, "lemma"): [*runs("5.1-5.2", "6.1"), *(f"C-{k}" for k in range(1, 13))],
    (BALAFOUTIS, "algorithm"): runs("5.1-5.7", "6.1-6.2", "7.1"),
    (BALAFOUTIS, "table"): runs("5.1-5.3", "6.1-6.3", "7.1-7.2"),
    (BALAFOUTIS, "appendix"): ["A", "B"],
    (FEATHERSTONE, "table"): runs(
        *("2.1-2.5", "3.1", "4.1-4.3", "5.1-5.2", "6.1-6.6", "7.1-7.2", "8.1-8.4", "9.1-9.7"),
        *("10.1-10.3", "11.1", "A.1-A.5"),
    ),
    (FEATHERSTONE, "example"): runs(
        *("2.1-2.6", "3.1-3.2", "4.1-4.6", "7.1", "8.1-8.2", "9.1-9.5", "11.1"),
    ),
    (FEATHERSTONE, "section"): runs(
        *("1.1-1.2", "2.1-2.16", "3.1-3.7", "4.1.1-4.1.4", "4.1-4.6", "5.1-5.4", "6.1-6.5"),
        *("7.1", "7.2.1-7.2.2", "7.3-7.5", "8.1-8.13", "9.1-9.7"),
        *("10.1-10.3", "10.3.1-10.3.2", "10.4", "11.1-11.8", "A.1-A.5"),
    ),
}
"""Numbered items by document and kind, without sections that contain nothing to compute."""

NUMBER = r"(?:[A-C]-?)?(?:\.?\d+)+(?:bis)?|[A-C]\b"
LISTED = rf"(?:{NUMBER})(?:-(?:{NUMBER}))?(?:(?:, | and | to )(?:{NUMBER}))*"


def named(document: str, kind: str) -> set[str]:
    """Return numbers in items such as `Tables 2.1 and 2.2` or `lemmas C-2 to C-4`."""
    plural = {"lemma": "lemmas?", "appendix": "appendix", "eq": "eq", "fig.": r"fig\."}
    word = re.compile(rf"\b{plural.get(kind, kind + 's?')} ({LISTED})", re.IGNORECASE)
    found = (match[1] for row in page()[document] for match in word.finditer(row.item))
    return {n for text in found for part in re.split(", | and ", text) for n in run(part)}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_equation_is_in_a_row(document: str) -> None:
    numbers = EQUATIONS[document]
    assert len(set(numbers)) == len(numbers)
    assert [n for n in numbers if n not in named(document, "eq")] == []


@pytest.mark.parametrize(("document", "kind"), OTHERS)
def test_every_numbered_item_is_in_a_row(document: str, kind: str) -> None:
    found = named(document, kind)
    assert [n for n in OTHERS[document, kind] if n not in found] == []


def test_no_number_is_made_up() -> None:
    """Equations, tables and examples that a row cites are in the document."""
    for document in DOCUMENTS:
        assert named(document, "eq") <= set(EQUATIONS[document])
        for kind in ("table", "example", "algorithm", "lemma", "theorem", "proposition"):
            assert named(document, kind) <= set(OTHERS.get((document, kind), ()))


def test_runs_of_numbers() -> None:
    assert run("2.9-2.11") == ["2.9", "2.10", "2.11"]
    assert run("C-2 to C-4") == ["C-2", "C-3", "C-4"]
    assert run("A.1-A.2") == ["A.1", "A.2"]
    assert run("4.1 to 4.1.1") == ["4.1", "4.1.1"]
    assert run("3bis") == ["3bis"]


# Names on the page ------------------------------------------------------------------------------


def rows() -> Iterator[tuple[str, Row]]:
    for document, found in page().items():
        for row in found:
            yield document, row


def test_the_page_has_the_five_documents() -> None:
    assert tuple(page()) == DOCUMENTS
    items = [(document, row.item) for document, row in rows()]
    assert len(set(items)) == len(items)


def test_no_cell_is_empty() -> None:
    for _, row in rows():
        assert all(len(cell) > 2 and cell != "-" for cell in row), row
        assert quoted(row.here), row
        assert quoted(row.tests), row


def quoted(cell: str) -> list[str]:
    """Return the names in a cell, which are separated by commas only."""
    names = re.findall(r"`([^`]+)`", cell)
    assert re.sub(r"`[^`]+`", "", cell).strip(", ") == "", cell
    return names


@cache
def defined(path: Path) -> frozenset[str]:
    """Return the functions, classes and constants at the top level of a file."""
    found: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Assign(targets=targets):
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
    return frozenset(found)


def in_file(name: str) -> bool:
    path, _, part = name.partition("::")
    return (ROOT / path).is_file() and (not part or part in defined(ROOT / path))


def resolved(name: str) -> Any:
    """Return the object of a dotted name: the longest prefix that is a module, then attributes."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            value: Any = import_module(".".join(parts[:k]))
        except ImportError:
            continue
        for part in parts[k:]:
            value = getattr(value, part)
        return value
    raise AttributeError(name)


def exists(name: str) -> bool:
    if "/" in name:
        return in_file(name)
    called = re.fullmatch(r'(chasles\.Robot\.(\w+))\(method="([\w-]+)"\)', name)
    try:
        resolved(called[1] if called else name)
    except AttributeError:
        return False
    return not called or called[3] in [method.name for method in FUNCTIONS[called[2]]]


def test_every_function_exists() -> None:
    names = {name for _, row in rows() for name in quoted(row.here)}
    assert [name for name in sorted(names) if not exists(name)] == []
    assert not exists("chasles.homogeneous.nothing")
    assert not exists('chasles.Robot.mass_matrix(method="nothing")')
    assert not exists("tests/test_documents.py::nothing")


def test_every_test_exists() -> None:
    names = {name for _, row in rows() for name in quoted(row.tests)}
    assert [name for name in sorted(names) if not in_file(name)] == []
    assert all(re.fullmatch(r"tests/[\w/]+\.py::test_\w+", name) for name in names)
