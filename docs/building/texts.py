"""List all texts of the project with their places: `python docs/building/texts.py [FOLDER]`.

The texts are docstrings, messages, help texts and comments of the source, and headings and
paragraphs of the pages. The problem and the remedy of an error are listed as one text, as users see
them. `--sample N --seed S` draws a random sample for review.
"""

import argparse
import ast
import random
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from building.errors import entries

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/chasles"
PAGES = (ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "docs")

MESSAGES = re.compile(r"(Error|Loop|Position|Determined|Actuated|Mechanism|Motion|Infeasible)$")
"""Endings of the names of classes whose arguments are messages."""
NAMES = {"problem", "remedy", "note", "message", "hint", "said", "why", "what", "finds"}
"""Variables and keywords that contain parts of messages."""
WORDS = re.compile(r"[A-Za-z]{2,}")
VALUE = re.compile(r"\{\w*\}")
"""Pattern for a value in the template of an error."""


@dataclass(frozen=True)
class Text:
    """A text, its place, and its kind: docstring, message, help, comment, heading or paragraph."""

    kind: str
    place: str
    text: str

    @property
    def summary(self) -> str:
        """First paragraph of the text, on one line."""
        return " ".join(self.text.strip().split("\n\n")[0].split())


def texts(folder: Path = SOURCE, *, with_comments: bool = True) -> Iterator[Text]:
    """Yield the texts of all source files in a folder."""
    for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]:
        tree = ast.parse(path.read_text("utf-8"))
        yield from docstrings(path, tree)
        yield from messages(path, tree)
        if with_comments:
            yield from comments(path)


def joined(found: Iterable[Text]) -> Iterator[Text]:
    """Join the problem and the remedy of each error in the source: "problem; remedy"."""
    whole: dict[str, list[Text]] = {}
    for entry in entries():
        parts = [VALUE.sub("{...}", part) for part in (entry.problem, entry.remedy) if part]
        text = Text("message", entry.place, "; ".join(parts))
        whole.setdefault(entry.place.split(":")[0], []).append(text)
    listed = set[str]()
    for text in found:
        file = text.place.split(":")[0]
        if file not in listed:
            listed.add(file)
            yield from (each for each in whole.get(file, ()) if len(WORDS.findall(each.text)) > 1)
        if text.kind != "message" or not any(
            text.text in each.text for each in whole.get(file, ())
        ):
            yield text


def docstrings(path: Path, tree: ast.Module) -> Iterator[Text]:
    """Yield the docstrings of a module, of its classes and functions, and below assignments."""
    for node in ast.walk(tree):
        body = node.body if isinstance(getattr(node, "body", None), list) else []
        for statement in body:
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield Text("docstring", _place(path, statement.lineno), value.value)


def messages(path: Path, tree: ast.Module) -> Iterator[Text]:
    """Yield the texts of errors and notes, and help texts of the command line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            raised = bool(MESSAGES.search(called)) or called == "warn"
            given = node.args[1:3] if raised and called != "warn" else node.args[:1] * raised
            for value in (*given, *(k.value for k in node.keywords if k.arg in NAMES)):
                yield from _strings("message", path, value)
            for keyword in node.keywords:
                if keyword.arg == "help" or called in ("Check", "Pass"):
                    yield from _strings("help", path, keyword.value)
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in NAMES:
            yield from _strings("message", path, node.value)


def comments(path: Path) -> Iterator[Text]:
    """Yield comments: consecutive comment lines as one text, comments after code separately."""
    last, lines = 0, list[str]()
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type != tokenize.COMMENT or re.match(r"#(!| (type|noqa|fmt))", token.string):
                continue
            after_code = not token.line.lstrip().startswith("#")
            if lines and (after_code or token.start[0] != last + 1):
                yield Text("comment", _place(path, last), " ".join(lines))
                lines = []
            last = token.start[0]
            if after_code:
                yield Text("comment", _place(path, last), token.string.lstrip("# "))
            else:
                lines.append(token.string.lstrip("# "))
    if lines:
        yield Text("comment", _place(path, last), " ".join(lines))


def pages(places: Iterable[Path] = PAGES) -> Iterator[Text]:
    """Yield headings, paragraphs and list items of the documentation, without code and tables."""
    for where in places:
        for path in sorted(where.rglob("*.md")) if where.is_dir() else [where]:
            text = re.sub(
                r"^```.*?^```",
                lambda m: "\n" * m[0].count("\n"),
                path.read_text("utf-8"),
                flags=re.S | re.M,
            )
            line = 1
            for block in re.split(r"(\n\s*\n|\n(?=\s*[-*] |\s*\d+\. ))", text):
                kind = "heading" if block.startswith("#") else "paragraph"
                if WORDS.search(block) and not block.startswith(("|", "<", "!", "$$")):
                    yield Text(kind, _place(path, line), block.lstrip("# "))
                line += block.count("\n")


def _strings(kind: str, path: Path, node: ast.AST) -> Iterator[Text]:
    """Yield the texts in an expression, with {...} for values."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        pieces = node.value
    elif isinstance(node, ast.JoinedStr):
        parts = (v.value if isinstance(v, ast.Constant) else "{...}" for v in node.values)
        pieces = "".join(map(str, parts))
    elif isinstance(node, ast.IfExp | ast.BinOp):
        for child in ast.iter_child_nodes(node):
            yield from _strings(kind, path, child)
        return
    else:
        return
    if len(WORDS.findall(pieces)) > 1 and " " in pieces:
        yield Text(kind, _place(path, node.lineno), pieces)


def _place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT).as_posix()}:{line}"


def main() -> None:
    """Print the texts, or a sample of them."""
    words = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    words.add_argument(
        "folder", nargs="?", type=Path, help="Folder or file of the source, or a page."
    )
    words.add_argument("--sample", type=int, help="Number of texts to draw.")
    words.add_argument("--seed", type=int, default=0, help="Seed of the draw.")
    given = words.parse_args()
    if given.folder is None:
        found = [*joined(texts()), *pages()]
    else:
        folder = given.folder.resolve()
        page = folder.suffix == ".md" or ROOT / "docs" in (folder, *folder.parents)
        found = list(pages([folder]) if page else joined(texts(folder)))
    if given.sample:
        found = random.Random(given.seed).sample(found, given.sample)
    for text in found:
        print(f"{text.place}: {text.kind}: {text.text.strip()}\n")


if __name__ == "__main__":
    main()
