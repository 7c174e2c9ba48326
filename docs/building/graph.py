"""Draw the imports of chasles: `python docs/building/graph.py` writes them into the documentation.

The script writes the picture docs/images/imports.svg and a list between two marks in
docs/architecture.md. In the picture, layers are rows, and lines are imports between units. Imports
that follow from other lines are not drawn.
"""

import re
import sys
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from building.layers import LAYERS, edges

DOCS = Path(__file__).parents[1]
PAGE, PICTURE = DOCS / "architecture.md", DOCS / "images" / "imports.svg"
BLOCK = re.compile(r"(<!-- imports -->\n).*?(<!-- end of imports -->)", re.DOTALL)
WIDTH, STEP, BOX = 1080, 74, 26
HIDDEN = ("__main__",)


def shown() -> list[list[str]]:
    """Return the rows of units that have a box, top layer first."""
    rows = [[name for name in row if name not in HIDDEN] for row in reversed(LAYERS)]
    return [row for row in rows if row]


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the transitive reduction of a graph: edges that no longer path implies."""

    @cache
    def below(name: str) -> set[str]:
        return graph[name].union(*(below(other) for other in graph[name]))

    return {
        name: {t for t in there if not any(t in below(o) for o in there - {t})}
        for name, there in graph.items()
    }


def title(name: str) -> str:
    """Return the displayed name of a unit."""
    return name or "chasles"


def places() -> dict[str, tuple[float, float]]:
    """Return the center of each box."""
    return {
        name: (WIDTH * (k + 0.5) / len(row), STEP * (level + 0.5))
        for level, row in enumerate(shown())
        for k, name in enumerate(row)
    }


def picture() -> str:
    """Return the graph as SVG."""
    at, height = places(), STEP * len(shown())
    lines, boxes = [], []
    for name, there in reduced(edges()).items():
        for other in sorted(there if name in at else ()):
            (x0, y0), (x1, y1) = at[name], at[other]
            if y0 == y1:  # within a layer
                lines.append(f'<path d="M{x0:.0f} {y0:.0f}H{x1:.0f}"/>')
                continue
            y0, y1 = y0 + BOX / 2, y1 - BOX / 2
            bend = (y1 - y0) / 2
            lines.append(
                f'<path d="M{x0:.0f} {y0:.0f}C{x0:.0f} {y0 + bend:.0f} {x1:.0f} {y1 - bend:.0f}'
                f' {x1:.0f} {y1:.0f}"/>'
            )
    for name, (x, y) in at.items():
        half = 4.2 * len(title(name)) + 9
        boxes.append(
            f'<rect x="{x - half:.0f}" y="{y - BOX / 2:.0f}" width="{2 * half:.0f}"'
            f' height="{BOX}" rx="5"/><text x="{x:.0f}" y="{y + 5:.0f}">{title(name)}</text>'
        )
    style = (
        "path{fill:none;stroke:#8a94a6;stroke-width:1}rect{fill:#eef2f8;stroke:#34496a}"
        "text{font:13px monospace;text-anchor:middle;fill:#1b2638}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">\n'
        f'<style>{style}</style>\n<path style="fill:#fff;stroke:none"'
        f' d="M0 0H{WIDTH}V{height}H0z"/>\n' + "\n".join([*lines, *boxes]) + "\n</svg>\n"
    )


def listing() -> str:
    """Return the text between the marks: the picture, and a list of all imports."""
    graph = edges()
    rows = []
    for level, row in enumerate(shown()):
        rank = len(shown()) - level
        for name in row:
            there = " ".join(sorted(map(title, graph[name]))) or "-"
            rows.append(f"{rank:2}  {title(name):14}{there}")
    body = "\n".join(rows)
    return f"![Imports between the parts of chasles](images/imports.svg)\n\n```text\n{body}\n```\n"


def page(text: str) -> str:
    """Return the page with an updated list."""
    return BLOCK.sub(lambda found: found[1] + listing() + found[2], text)


def main() -> None:
    """Write the picture and the page."""
    PICTURE.write_text(picture(), "utf-8")
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
