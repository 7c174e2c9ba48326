"""Convert docstrings (plain text, `code`, numpydoc sections) to reStructuredText for Sphinx."""

import re
from typing import Any

from sphinx.application import Sphinx

SPECIAL = re.compile(r"([*|\\])|(?<=\w)(_)(?!\w)")
"""Characters that reStructuredText would interpret as emphasis, a substitution or a link."""

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
"""Underlined numpydoc heading: Parameters, Returns, Raises, Notes, Examples."""


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}


def process(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Convert the lines of a docstring in place."""
    lines[:] = restructured("\n".join(lines)).splitlines()


def restructured(text: str) -> str:
    """Return a docstring as reStructuredText: its paragraphs, then its sections."""
    opening, *sections = SECTION.split(text.strip("\n"))
    parts = [prose(opening)] if opening.strip() else []
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        write = examples if title == "Examples" else prose if title == "Notes" else fields
        parts.append(f".. rubric:: {title}\n\n{write(body)}")
    return "\n\n".join(parts) + "\n"


def prose(text: str) -> str:
    """Return converted text, paragraph by paragraph."""
    paragraphs = re.split(r"\n\s*\n", text.strip("\n"))
    return "\n\n".join(map(paragraph, paragraphs))


def fields(text: str) -> str:
    """Return "name : type" lines and their indented descriptions as a definition list."""
    lines = text.strip("\n").splitlines()
    if not any(line.startswith(" ") for line in lines):
        return prose(text)
    return "\n".join(
        f"    {words(line.strip())}" if line[:1] == " " else term(line) for line in lines
    )


def term(line: str) -> str:
    """Return the first line of a definition, with the name in bold."""
    name, colon, kind = line.partition(" : ")
    return f"**{words(name)}**" + (f" : {words(kind)}" if colon else "") if line.strip() else ""


def examples(text: str) -> str:
    """Return examples as a literal block."""
    return "::\n\n" + "\n".join(f"    {line}" for line in text.strip("\n").splitlines())


def paragraph(text: str) -> str:
    """Return a converted table, literal block (statements or indented lines) or paragraph."""
    lines = text.splitlines()
    if all(line.startswith("|") for line in lines):
        return table(lines)
    if all(re.match(r"\s|[\w.]+(, \w+)* = |(from|import) ", line) for line in lines):
        return "::\n\n" + "\n".join(f"    {line}" for line in lines)
    return words(text)


def table(lines: list[str]) -> str:
    """Return a Markdown table as a list table."""
    head, _, *rows = ([words(c.strip()) for c in line.strip("| ").split("|")] for line in lines)
    cells = ("\n".join(f"     - {cell}" for cell in row)[5:] for row in (head, *rows))
    body = "\n".join(f"   * {row}" for row in cells)
    return f".. list-table::\n   :header-rows: 1\n\n{body}"


def words(text: str) -> str:
    """Return text with `code`; an escaped space separates code from letters that follow it."""
    spans = re.split(r"(`[^`]+`)", text)
    marked = (f"`{s}`\\ " if s.startswith("`") else SPECIAL.sub(r"\\\g<0>", s) for s in spans)
    return "".join(marked)
