"""Layers of chasles, and the actual imports of its files.

The test of imports, the graph on the architecture page (`graph.py`) and the call traces
(`walks.py`) use this module.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

LAYERS: tuple[tuple[str, ...], ...] = (
    ("version", "errors", "entry_points", "expr", "names", "tasks", "writing"),
    ("mathematics", "model"),
    ("algorithms", "backends", "formats"),
    ("functions",),
    ("mechanisms", "numeric"),
    ("motion",),
    ("robot",),
    (
        *("", "api", "accuracy", "checks", "contact", "control", "conventions", "distances"),
        *("exporting", "homogeneous", "robots", "rollouts", "simulate", "targets", "trajectory"),
    ),
    ("identification", "learning", "lint", "peers", "plots", "view"),
    ("cli", "__main__"),
)
"""Folders and files of src/chasles in ten layers, lowest layer first ("" is `import chasles`)."""

BESIDE = {
    ("expr", "errors"),
    ("expr", "names"),
    ("names", "errors"),
    ("tasks", "errors"),
    ("tasks", "version"),
    ("writing", "errors"),
    ("model", "mathematics"),
    ("", "version"),
    ("__main__", "cli"),
}
"""Allowed imports within a layer; other units of the same layer must not import each other."""

RANK = {unit: rank for rank, units in enumerate(LAYERS) for unit in units}

LEAVES = ("checks", "distances", "identification", "learning", "lint", "peers", "plots", "view")
"""Units that the robot classes do not import, except through entry points."""


def points_down(here: str, there: str) -> bool:
    """Return True if a unit may import another one."""
    return RANK[there] < RANK[here] or (here, there) in BESIDE


ROOT = Path(__file__).parents[2] / "src" / "chasles"


def unit(path: Path, root: Path = ROOT) -> str:
    """Return the unit of a file: the name of its top-level folder or module."""
    first = path.relative_to(root).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def parsed(path: Path) -> tuple[ast.Module, ast.Module]:
    """Return the syntax tree of a file, and separately its statements under `if TYPE_CHECKING`."""
    tree, typing = ast.parse(path.read_text("utf-8")), ast.Module([], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            typing.body += node.body
            node.body = [ast.Pass()]
    return tree, typing


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of each import in a file, also within functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            module = node.module or ""
            names = [alias.name for alias in node.names] if module == "chasles" else [""]
            yield from ((node.lineno, f"{module}.{n}".rstrip(".")) for n in names)


@cache
def imported(path: Path) -> tuple[tuple[tuple[int, str], ...], tuple[tuple[int, str], ...]]:
    """Return the imports of a file that run, and those that are only for annotations."""
    running, typing = parsed(path)
    return (*imports(running),), (*imports(typing),)


def target(dotted: str) -> str | None:
    """Return the unit of chasles that is imported, or None for other packages."""
    first, *rest = dotted.split(".")
    if first != "chasles":
        return None
    return rest[0] if rest and rest[0] in RANK else ""


@cache
def edges() -> dict[str, set[str]]:
    """Return the units that each unit imports at run time."""
    found: dict[str, set[str]] = {name: set() for name in RANK}
    for path in sorted(ROOT.rglob("*.py")):
        here = unit(path)
        for _, dotted in imported(path)[0]:
            there = target(dotted)
            if there is not None and there != here:
                found[here].add(there)
    return found
