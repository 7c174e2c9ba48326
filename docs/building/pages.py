"""Prepare pages for the website: navigation, files outside the folder `docs`, external links.

The tables of index.md are the only list of pages. Each section of index.md becomes a section of the
navigation.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
OUTSIDE = {
    "contributing": "CONTRIBUTING.md",
    "changes": "CHANGELOG.md",
    "security": "SECURITY.md",
}
"""Pages whose text is a file in the repository's root; the files in `docs` only refer to them."""
LINK = re.compile(r"\]\((?!https?:)([^)\s#]+)((?:#[^)\s]*)?)\)")
"""Pattern for a link to a file: its path and anchor."""


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", read)
    app.connect("doctree-resolved", collect)
    app.connect("build-finished", list_external)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Modify the source of a page in place: links, text from other files, navigation."""
    text, folder = source[0], posixpath.dirname(f"docs/{docname}")
    if docname in OUTSIDE:
        text, folder = (ROOT / OUTSIDE[docname]).read_text("utf-8"), ""
    here = posixpath.dirname(f"docs/{docname}")
    text = LINK.sub(lambda found: f"]({target(found[1], folder, here)}{found[2]})", text)
    if docname == app.config.root_doc:
        text += navigation(text)
    source[0] = text


def target(path: str, folder: str, here: str) -> str:
    """Convert a link relative to `folder` to a link relative to `here`, both below the root."""
    file = posixpath.normpath(posixpath.join(folder, path))
    for page, outside in OUTSIDE.items():
        if file == outside:
            file = f"docs/{page}.md"
    return posixpath.relpath(file, here)


def navigation(index: str) -> str:
    """Return a hidden toctree for each section, with the pages to which its table links."""
    trees = []
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        rows = [line for line in body.splitlines() if line.startswith("| [")]
        entries = [found for row in rows for found in re.findall(r"\[([^]]+)\]\(([^)#]+\.md)", row)]
        lines = "\n".join(f"{name} <{path.removesuffix('.md')}>" for name, path in entries)
        if entries:
            trees.append(f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{lines}\n```\n")
    return "".join(trees)


def collect(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Store the external links of a page."""
    found = app.env.metadata[docname].setdefault("external", "")
    links = {node.get("refuri", "") for node in doctree.findall(nodes.reference)}
    lines = {link for link in links if link.startswith(("http:", "https:"))} | set(found.split())
    app.env.metadata[docname]["external"] = " ".join(sorted(lines))


def list_external(app: Sphinx, exception: Exception | None) -> None:
    """Write `external-links.txt`: the external links, which the build does not check."""
    lines = {
        f"{link} {page}\n"
        for page, data in app.env.metadata.items()
        for link in data.get("external", "").split()
    }
    Path(app.outdir, "external-links.txt").write_text("".join(sorted(lines)), "utf-8")
