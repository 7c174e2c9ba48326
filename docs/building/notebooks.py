"""Write a notebook with results for each tutorial, next to its page, without running any code.

The tests run the code of the pages and compare its output and pictures with the pages. The
notebooks contain the same code, output and pictures.
"""

import base64
import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

PART = re.compile(
    r"<!-- file: (\S+) -->\n```\w+\n(.*?)```"
    r"|```python\n(.*?)```(?:\n```text\n(.*?)```)?"
    r"|!\[([^]]*)\]\(([^)]+\.png)\)",
    re.DOTALL,
)
"""A file, a block of Python with its output, or a picture."""


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", offer)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}


def offer(app: Sphinx, docname: str, source: list[str]) -> None:
    """Add a link to the notebook below the title of a tutorial."""
    folder, _, page = docname.rpartition("/")
    if folder == "tutorials":
        title, _, rest = source[0].partition("\n")
        link = f'<a href="{page}.ipynb" download>This page as a notebook</a>'
        source[0] = f"{title}\n\n{link}\n{rest}"


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write `tutorials/NAME.ipynb` for every tutorial."""
    for page in sorted(Path(app.srcdir, "tutorials").glob("*.md")):
        file = Path(app.outdir, "tutorials", page.with_suffix(".ipynb").name)
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(notebook(page), indent=1) + "\n", "utf-8")


def notebook(page: Path) -> dict[str, Any]:
    """Return a page as a notebook (format 4.5)."""
    text, cells, end = page.read_text("utf-8"), [], 0
    for found in PART.finditer(text):
        cells += words(text[end : found.start()])
        file, body, code, printed, alternative, picture = found.groups()
        if file is not None:
            cells.append(statements(f"%%writefile {file}\n{body}", None))
        elif code is not None:
            cells.append(statements(code, printed))
        else:
            cells += shown(page.parent / picture, alternative, cells)
        end = found.end()
    cells += words(text[end:])
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def shown(picture: Path, alternative: str, cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add a picture to the output of the code before it, or return a cell with the picture."""
    drawn = {"image/png": base64.b64encode(picture.read_bytes()).decode()}
    for cell in reversed(cells):
        if cell["cell_type"] == "code":
            cell["outputs"].append({"output_type": "display_data", "data": drawn, "metadata": {}})
            return []
    (cell,) = words(f"![{alternative}](attachment:{picture.name})")
    return [cell | {"attachments": {picture.name: drawn}}]


def words(text: str) -> list[dict[str, Any]]:
    """Return a list with a Markdown cell, or an empty list if there is no text."""
    text = text.strip()
    return [{"cell_type": "markdown", "metadata": {}, "source": text}] if text else []


def statements(code: str, printed: str | None) -> dict[str, Any]:
    """Return a Python cell with its output."""
    outputs = [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": outputs,
        "source": code.rstrip("\n"),
    }
