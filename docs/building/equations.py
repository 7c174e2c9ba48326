r"""Convert equations of the pages to MathML, which browsers display without scripts or downloads.

Docutils converts LaTeX. A displayed equation may contain `\tag{NUMBER}`, its number in the cited
source, which is shown at the right margin. To place indices and to stretch brackets, browsers need
a font with mathematical tables. The site contains such a font, reduced to the characters of its
equations.
"""

import logging
import re
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from fontTools.subset import Options, Subsetter, load_font, save_font
from lxml import etree
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

TAG = re.compile(r"\\tag\{([^}]*)\}")
"""Equation number in LaTeX."""

REWRITTEN = (
    (re.compile(r"(\\[dt]?frac)\s*(\d)\s*(\d)"), r"\1{\2}{\3}"),
    (re.compile("'"), r"^\\prime "),
)
r"""LaTeX that docutils misreads, such as `\frac12` and `x'`, and equivalent LaTeX."""

APPLIED = "\N{FUNCTION APPLICATION}"
"""Invisible operator after the name of a function."""

FONT = ("ziamath", "fonts/STIXTwoMath-Regular.ttf")
"""Package and file of the font (SIL Open Font License)."""

ALWAYS = (*range(0x20, 0x7F), 0x210E, *range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C))
"""Characters of the reduced font: ASCII, and the italic Latin and Greek letters of MathML."""


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.add_css_file("equations.css")
    app.connect("build-finished", write_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def converted(tex: str) -> str:
    """Return LaTeX as MathML; an expression that cannot be converted stops the build."""
    given = tex
    for pattern, meant in REWRITTEN:
        given = pattern.sub(meant, given)
    try:
        written = tex2mathml(given).replace("&ApplyFunction;", APPLIED)
    except (ValueError, SyntaxError) as error:  # SyntaxError: docutils before 0.22
        raise ExtensionError(f"equation {tex!r}: {error}") from error
    equation = etree.fromstring(written)
    for element in [*equation.iter()]:
        if _name(element) in ("munder", "munderover"):
            _put_index_after(element)
        elif _name(element) == "mi" and len(element.text) > 1:
            _separate(element)
    return etree.tostring(equation, encoding="unicode")


def _name(element: Any) -> str:
    return etree.QName(element).localname


def _made(name: str, like: Any, **attributes: str) -> Any:
    return etree.Element(etree.QName(like.nsmap[None], name), attributes)


def _put_index_after(element: Any) -> None:
    """Move the index of an accented letter, which docutils places below the letter."""
    letter, index, *above = element
    if not above or _name(above[0]) != "mo" or _name(letter) == "mo":
        return
    accented = _made("mover", element, accent="true")
    accented.extend([letter, above[0]])
    element.tag = etree.QName(element.nsmap[None], "msub")
    element[:] = [accented, index]


def _separate(name: Any) -> None:
    """Put spaces between the name of a function, with its exponent, and its neighbors."""
    first = name
    if _name(name.getparent()) in ("msup", "msub", "msubsup") and name.getprevious() is None:
        first = name.getparent()
    last = first.getnext()
    if last is None or last.text != APPLIED:
        if first is name:
            return
        last = first
    before, after = first.getprevious(), last.getnext()
    if before is not None and (_name(before) not in ("mo", "mspace") or before.text in ")]"):
        first.addprevious(_made("mspace", name, width="0.1667em"))
    if after is not None and _name(after) not in ("mo", "mspace", "mrow"):
        last.addnext(_made("mspace", name, width="0.1667em"))


def inline(translator: Any, node: nodes.math) -> None:
    """Write an inline expression."""
    translator.body.append(converted(node.astext()))
    raise nodes.SkipNode


def display(translator: Any, node: nodes.math_block) -> None:
    """Write a displayed equation with its number at the right."""
    tex = node.astext()
    numbers = ", ".join(TAG.findall(tex))
    label = f'<span class="number">({numbers})</span>' if numbers else ""
    equation = converted(TAG.sub("", tex)).replace("<math", '<math display="block"', 1)
    translator.body.append(f'<div class="equation">{equation}{label}</div>\n')
    raise nodes.SkipNode


def write_font(app: Sphinx, failed: Exception | None) -> None:
    """Write the font, reduced to the characters of the site's equations."""
    if failed or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    equations = (
        text
        for page in folder.rglob("*.html")
        for text in re.findall(r"<math.*?</math>", page.read_text("utf-8"), re.S)
    )
    characters = {c for text in equations for c in re.sub("<[^>]*>", "", text)}
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    options = Options(layout_features=["*"], flavor="woff")
    with as_file(files(FONT[0]) / FONT[1]) as path:
        font = load_font(path, options)
    subset = Subsetter(options)
    subset.populate(unicodes={*ALWAYS, *map(ord, characters)})
    subset.subset(font)
    save_font(font, folder / "_static" / "equations.woff", options)
