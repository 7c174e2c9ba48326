r"""Convert equations of the pages to MathML, which browsers display without scripts or downloads.

Docutils converts LaTeX. A displayed equation may contain `\tag{NUMBER}`, its number in the cited
source, which is shown at the right margin.
"""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

TAG = re.compile(r"\\tag\{([^}]*)\}")
"""Equation number in LaTeX."""


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.add_css_file("equations.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def converted(tex: str) -> str:
    """Return LaTeX as MathML; an expression that cannot be converted stops the build."""
    try:
        return tex2mathml(tex)
    except (ValueError, SyntaxError) as error:  # SyntaxError: docutils before 0.22
        raise ExtensionError(f"equation {tex!r}: {error}") from error


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
