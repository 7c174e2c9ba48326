"""Docstrings, which are plain words with `code` in them, as the reStructuredText Sphinx parses."""

import re
from typing import Any

from sphinx.application import Sphinx

SPECIAL = re.compile(r"([*|\\])|(?<=\w)(_)(?!\w)")
"""What reStructuredText would take for emphasis, a substitution or a link."""


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}


def process(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """The lines of a docstring, in place."""
    lines[:] = restructured("\n".join(lines)).splitlines()


def restructured(text: str) -> str:
    """Paragraph by paragraph."""
    paragraphs = re.split(r"\n\s*\n", text.strip("\n"))
    return "\n\n".join(map(paragraph, paragraphs)) + "\n"


def paragraph(text: str) -> str:
    """A table, what is shown as it stands (statements, an indented part), or words."""
    lines = text.splitlines()
    if all(line.startswith("|") for line in lines):
        return table(lines)
    if all(re.match(r"\s|[\w.]+(, \w+)* = |(from|import) ", line) for line in lines):
        return "::\n\n" + "\n".join(f"    {line}" for line in lines)
    return words(text)


def table(lines: list[str]) -> str:
    """A table of Markdown."""
    head, _, *rows = ([words(c.strip()) for c in line.strip("| ").split("|")] for line in lines)
    cells = ("\n".join(f"     - {cell}" for cell in row)[5:] for row in (head, *rows))
    body = "\n".join(f"   * {row}" for row in cells)
    return f".. list-table::\n   :header-rows: 1\n\n{body}"


def words(text: str) -> str:
    """Text with `code` in it; a space that does not show lets letters follow code."""
    spans = re.split(r"(`[^`]+`)", text)
    marked = (f"`{s}`\\ " if s.startswith("`") else SPECIAL.sub(r"\\\g<0>", s) for s in spans)
    return "".join(marked)
