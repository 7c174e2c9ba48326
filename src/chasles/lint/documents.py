"""The text of a robot file and where its numbers stand in it, for repairs."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from lxml import etree

from chasles.errors import ModelError


class Edit(NamedTuple):
    """New text of an element's attribute, or of what stands in its child of that name; of a table's
    key in TOML."""

    place: Any
    name: str
    text: str


class Document(Protocol):
    """A file that is repaired."""

    @property
    def text(self) -> str:
        """All of it."""

    def span(self, edit: Edit) -> tuple[int, int]:
        """From where to where its text is exchanged."""


_TAG = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<([^\s<>/!?][^\s<>/]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>",
    re.DOTALL,
)
"""What begins with "<": comments and the like, or a start tag by its name and attributes."""


@dataclass(frozen=True, eq=False)
class XmlDocument:
    """Places are elements of the root."""

    file: str
    data: bytes
    root: etree._Element

    @cached_property
    def text(self) -> str:
        return decoded(self.file, self.data)

    @cached_property
    def _starts(self) -> dict[etree._Element, re.Match[str]]:
        """The start tag of each element: both are in the order of the text."""
        tags = (match for match in _TAG.finditer(self.text) if match[1])
        return dict(zip(self.root.iter(), tags, strict=True))

    def span(self, edit: Edit) -> tuple[int, int]:
        child = edit.place.find(edit.name)
        if child is not None:
            first = self._starts[child].end()
            return first, self.text.index("<", first)
        tag = self._starts[edit.place]
        found = re.search(rf"(?<![\w:.-]){edit.name}\s*=\s*([\"'])(.*?)\1", tag[2], re.DOTALL)
        assert found is not None, "the parser found the attribute"
        return tag.start(2) + found.start(2), tag.start(2) + found.end(2)


class Table(NamedTuple):
    """A table of a TOML file. line: of its key `inertia`. written: moments (kg m2, about the centre
    of mass) as the file has them, in its units and about its point."""

    line: int
    written: Callable[[np.ndarray], Sequence[float]]


_LIST = re.compile(r"[^=\n]*=\s*(\[[^\[\]#]*\])")


@dataclass(frozen=True, eq=False)
class TomlDocument:
    """Places are tables."""

    file: str
    data: bytes

    @cached_property
    def text(self) -> str:
        return decoded(self.file, self.data)

    def span(self, edit: Edit) -> tuple[int, int]:
        found = self.list_at(edit.place.line)
        assert found is not None, "places are lists"
        return found.span(1)

    def list_at(self, line: int) -> re.Match[str] | None:
        """A key and its list of numbers, which begin in a line."""
        start = sum(len(x) + 1 for x in self.text.split("\n")[: line - 1])
        return _LIST.match(self.text, start)


def decoded(file: str, data: bytes) -> str:
    """The text of a file in UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        problem = "only text in UTF-8 is repaired"
        raise ModelError("E-LINT-002", problem, "save it as such", file=file) from None
