"""Complete the HTML of pages for screen readers and search engines: tables, lists, pictures."""

import html
import re
from pathlib import Path
from typing import Any

import imagesize
from docutils import nodes
from sphinx.application import Sphinx

EMPTY_HEAD = re.compile(
    r'(<table class="[^"]*")>\s*<thead>(?:(?!</thead>|<p>(?!</p>)).)*</thead>', re.S
)
"""Pattern for the start of a table whose header cells are empty, such as those of the gallery."""

PARAMETERS = re.compile(r"<dl>\s*((?:<dd>(?:(?!</?d[dlt]>).)*</dd>\s*)+)</dl>", re.S)
"""Pattern for the parameters of a signature, which Sphinx writes as a list without terms."""

PICTURE = re.compile(
    r'(<img [^>]*?src="[^"]*_images/([^"]+)"(?![^>]*(?:width|height)=)[^>]*?)( ?/?>)'
)
"""Pattern for a picture without a size, and its file name."""

LONGEST = 200
"""Maximum number of characters of a page's description."""


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", complete, priority=900)  # after the theme
    app.add_css_file("pages.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def complete(
    app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Modify the parts of a page in place."""
    if "body" in context:
        files = {file: app.srcdir / image for image, file in app.builder.images.items()}
        context["body"] = sized(listed(laid_out(context["body"])), files)
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace(
        ' role="heading"', ' role="heading" aria-level="2"'
    )
    said = "" if doctree is None else description(doctree)
    if said:
        tag = f'<meta name="description" content="{html.escape(said)}" />\n'
        context["metatags"] = context.get("metatags", "") + tag


def laid_out(body: str) -> str:
    """Mark tables without headers as layout, and remove their empty header rows."""
    return EMPTY_HEAD.sub(r'\1 role="presentation">', body)


def listed(body: str) -> str:
    """Write the parameters of signatures as blocks."""

    def blocks(found: re.Match[str]) -> str:
        inner = found[1].replace("<dd>", "<div>").replace("</dd>", "</div>")
        return f'<div class="parameters">{inner}</div>'

    return PARAMETERS.sub(blocks, body)


def sized(body: str, files: dict[str, Path]) -> str:
    """State the sizes of pictures, so that texts do not move when the pictures are loaded."""

    def stated(found: re.Match[str]) -> str:
        width, height = imagesize.get(files[found[2]]) if found[2] in files else (-1, -1)
        size = f' width="{width}" height="{height}"' if width > 0 else ""
        return f"{found[1]}{size}{found[3]}"

    return PICTURE.sub(stated, body)


def description(doctree: nodes.document) -> str:
    """Return the start of a page's first paragraph, in whole words."""
    first = next(iter(doctree.findall(nodes.paragraph)), None)
    words = "" if first is None else " ".join(first.astext().split())
    return words if len(words) <= LONGEST else words[:LONGEST].rsplit(" ", 1)[0] + " ..."
