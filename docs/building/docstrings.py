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
    """Paragraphs of words, with their code as literals; tables and lines of code as they stand."""
    paragraphs = re.split(r"\n\s*\n", text.strip("\n"))
    return "\n\n".join(map(paragraph, paragraphs)) + "\n"


def paragraph(text: str) -> str:
    """One paragraph: words, or what is shown as it stands (a table, statements, an indented part).

    A literal is followed by a space that does not show, so that letters may follow it.
    """
    if all(re.match(r"\||\s|[\w.]+(, \w+)* = |(from|import) ", line) for line in text.splitlines()):
        return "::\n\n" + "\n".join(f"    {line}" for line in text.splitlines())
    spans = re.split(r"(`[^`]+`)", text)
    marked = (f"`{s}`\\ " if s.startswith("`") else SPECIAL.sub(r"\\\g<0>", s) for s in spans)
    return "".join(marked)
