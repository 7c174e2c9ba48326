"""Find the equations of the books that docstrings and comments of each source file cite."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).parents[1] / "src" / "chasles"
BOOKS = {
    "Featherstone": (
        *("algorithms/spatial", "algorithms/historical/spatial", "algorithms/closed_loops"),
        "algorithms/historical/assembly",
        *("motion/contact", "motion/geometry", "motion/laws", "motion/solvers", "mathematics"),
    ),
    "Legnani": (
        "algorithms/homogeneous",
        "algorithms/historical/homogeneous",
        "mathematics/homogeneous",
        "homogeneous",
    ),
    "Mitra": ("algorithms/joint_motion",),
    "Balafoutis": (
        *("algorithms/tensor", "algorithms/historical", "mathematics/tensor"),
        *("control/", "motion/controllers.py", "motion/tracking.py"),
    ),
}
"""The books, and the folders in which an equation number without an author belongs to the book."""
WORDS = "Eqs?|tables?|sections?|algorithms?|examples?|chapters?|appendix"
NUMBER = r"(?:[IVA]+\.)?\d+(?:\.\d+)*(?:bis|[a-z](?![a-z]))?|A(?:\.\d)?"
CITATION = re.compile(
    rf"(?:{WORDS}) (?:{NUMBER})(?:(?:-| to | and |, )(?:{NUMBER}))*"
    r"|(?<=Mitra, )2\.\d(?: and 2\.\d)?"
)
IN_COMMENT = re.compile(r"# .*?\((\d\.\d\.\d+)[a-z]?\)")
OF_TENSORS = re.compile(r"Eq \d+\.\d+\.\d+|algorithm")
"""Citations that occur only in Balafoutis: equation numbers of three parts, and algorithms."""
FACADE = ("api/", "contact.py", "robot/")
"""Files that call the cited algorithms but compute nothing themselves."""
NAMED = re.compile(r"\(([A-Z][^()]*)$")
"""Pattern of a parenthesis that is not yet closed and begins with a name."""


def home(path: Path) -> str:
    """Return the book to which citations without an author belong, by the folder of the file."""
    place = path.relative_to(SOURCES).as_posix()
    folders = [(len(f), book) for book, all_ in BOOKS.items() for f in all_ if place.startswith(f)]
    return max(folders)[1] if folders else ""


class Part(NamedTuple):
    """The module docstring, or a function or class: its title, its docstrings and its source."""

    what: str
    texts: tuple[str, ...]
    source: str


@cache
def parts(path: Path) -> tuple[Part, ...]:
    """Return the parts of a file, its module docstring first."""
    source = path.read_text("utf-8")
    tree, lines = ast.parse(source), source.splitlines()
    whole = ast.get_docstring(tree) or ""
    found = [Part(whole.splitlines()[0].rstrip(".") if whole else "", (whole,), "")]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            inner = [n for n in ast.walk(node) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
            texts = tuple(ast.get_docstring(n) or "" for n in inner)
            text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            found.append(Part(f"`{node.name}`", texts, text))
    return tuple(found)


def citations(path: Path, part: Part, book: str) -> list[str]:
    """Return the places in a book that a part of a file cites, in order, without duplicates."""
    found: list[str] = []
    for text in (" ".join(text.split()) for text in part.texts):
        for cited in CITATION.finditer(text):
            named = NAMED.search(text[: cited.start()])
            word = named[1] if named and not re.match(WORDS, named[1]) else ""
            own = "Balafoutis" if OF_TENSORS.match(cited[0]) else home(path)
            if (word or own).startswith(book):
                found.append(cited[0])
    if book == "Balafoutis":
        found += [f"Eq {number}" for number in IN_COMMENT.findall(part.source)]
    return list(dict.fromkeys(found))


def table(book: str, *places: str) -> str:
    """Return a table with a row for each part of a file that cites a book.

    If `places` are given, only files in these folders are searched. A file of algorithms whose
    default book is this one always has a row for the whole file.
    """
    lines = ["| reference | subject | source file |", "|---|---|---|"]
    for path in sorted(SOURCES.rglob("*.py")):
        place = path.relative_to(SOURCES).as_posix()
        calls = path.name == "__init__.py" or place.startswith(FACADE)
        if calls or (places and not place.startswith(places)):
            continue
        link = f"[{place}](../../src/chasles/{place})"
        for k, part in enumerate(parts(path)):
            cited = citations(path, part, book)
            if cited or (k == 0 and home(path) == book and place.startswith("algorithms/")):
                lines.append(f"| {', '.join(cited) or '-'} | {part.what} | {link} |")
    return "\n".join(lines) + "\n"
