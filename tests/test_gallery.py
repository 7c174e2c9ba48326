"""The gallery contains all tutorials and examples, and its thumbnails match the sources."""

from pathlib import Path

import pytest
from building import gallery

ROOT = Path(__file__).parents[1]
ROWS = {row.file.stem: row for rows in gallery.GROUPS.values() for row in rows}

ELSEWHERE = {
    "peers": "a table of all installed robots",
    "spacelib": "a program of the paper, which prints numbers",
    "tutorials": "it makes the pictures of the tutorials",
}
"""Examples without a picture, with the reason."""


def test_page() -> None:
    assert gallery.PAGE.read_text("utf-8") == gallery.text(), "python docs/building/gallery.py"


@pytest.mark.parametrize("name", ROWS)
def test_thumbnail_is_current(name: str) -> None:
    row = ROWS[name]
    assert gallery.stored(row) == gallery.digest(row), "run python docs/building/gallery.py"
    assert row.file.stat().st_size < 60_000


def test_every_tutorial_and_example_is_shown() -> None:
    pages = {row.page for row in ROWS.values()}
    tutorials = {f"tutorials/{page.name}" for page in (ROOT / "docs/tutorials").glob("*.md")}
    assert tutorials <= pages
    scripts = {row.script for row in ROWS.values()} | set(ELSEWHERE)
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} <= scripts


def test_every_thumbnail_belongs_to_a_row() -> None:
    assert {path.stem for path in gallery.FOLDER.glob("*")} == set(ROWS)
