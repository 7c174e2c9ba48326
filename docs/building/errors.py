"""Tables of docs/errors.md: all error codes in the source, with class, message and remedy.

`python docs/building/errors.py` writes the tables into the page.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE, PAGE = ROOT / "src/chasles", ROOT / "docs/errors.md"
CODE = re.compile(r"E-([A-Z]+)-(\d{3})")
BEGIN = "<!-- codes -->\n"

AREAS = {
    "URDF": "URDF files",
    "XACRO": "xacro files",
    "SRDF": "SRDF files",
    "SENSE": "Sensors",
    "SDF": "SDF files",
    "MJCF": "MJCF files",
    "TOML": "Mechanism files and Denavit-Hartenberg files",
    "DAT": "Robot data files (.dat)",
    "XML": "XML files",
    "FILE": "All file formats",
    "MODEL": "Mechanisms",
    "JOINT": "Joints",
    "DH": "Denavit-Hartenberg tables",
    "LOOP": "Closed loops and couplings",
    "ROBOT": "Robots",
    "CALL": "Function calls",
    "GPU": "GPUs",
    "CACHE": "Compilation cache",
    "MOTION": "Simulation and rollouts",
    "CONTACT": "Contact and impact",
    "DIST": "Distances",
    "PATH": "Trajectories",
    "CONTROL": "Task coordinates and controllers",
    "ACCURACY": "Accuracy",
    "COST": "Operation counts",
    "EXPORT": "Export to C",
    "EXPR": "Symbolic expressions",
    "MATH": "Mathematics",
    "CONVENTION": "Conventions of other libraries",
    "PEER": "Comparison with other libraries",
    "VERIFY": "Verification",
    "IDENT": "Identification",
    "LOG": "Measurement logs",
    "CLUSTER": "Compute clusters",
    "SWEEP": "Parameter sweeps",
    "LEARN": "Learning environments",
    "LINT": "Lint: checks of robot files",
    "PLOT": "Plots",
    "VIEW": "Viewer",
    "SCENARIO": "Scenarios",
    "CLI": "Command line",
    "TABLE": "Published tables",
}
"""Headings of the page, by the middle part of a code."""

Maker = tuple[str, tuple[str, ...], str]
Makers = Mapping[str, Maker]
"""Functions that create errors by name: class, parameters after `code`, and their own remedy."""


@dataclass(frozen=True)
class Entry:
    """An error code, the class of its error (`kind`), templates of its texts, and its place."""

    code: str
    kind: str
    problem: str
    remedy: str
    place: str


@cache
def entries() -> tuple[Entry, ...]:
    """Return all codes, in the order of the source."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    makers = dict(maker for tree in trees.values() for maker in _makers(tree))
    return tuple(entry for path, tree in trees.items() for entry in _of_file(path, tree, makers))


def _makers(tree: ast.Module) -> Iterator[tuple[str, Maker]]:
    """Yield the functions of a file that create errors, with their names."""
    for node in ast.walk(tree):
        names = [a.arg for a in node.args.args] if isinstance(node, ast.FunctionDef) else []
        if isinstance(node, ast.FunctionDef) and "code" in names and node.name != "__init__":
            kind = "" if node.returns is None else ast.unparse(node.returns)
            yield node.name, (kind, tuple(names[names.index("code") + 1 :]), _own_remedy(node))


def _own_remedy(maker: ast.FunctionDef) -> str:
    """Return the remedy that a function adds to all of its errors, or an empty string."""
    for call in ast.walk(maker):
        given = call.args if isinstance(call, ast.Call) else []
        if len(given) > 2 and ast.unparse(given[0]) == "code":
            known = _values([maker], call.lineno)
            if isinstance(given[2], ast.Constant | ast.JoinedStr) or ast.unparse(given[2]) in known:
                return _text(given[2], known)
    return ""


def _of_file(path: Path, tree: ast.Module, makers: Makers) -> Iterator[Entry]:
    makers = {**makers, **dict(_makers(tree))}  # several files define functions of the same name
    scopes = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    constants = {k: v for k, v in _values([tree]).items() if isinstance(v, ast.Constant)}
    for node in ast.walk(tree):
        given = node.args if isinstance(node, ast.Call) else getattr(node, "elts", [])
        found = [k for k, arg in enumerate(given) if CODE.fullmatch(str(getattr(arg, "value", "")))]
        if not found:
            continue
        code, rest = given[found[0]].value, given[found[0] + 1 :]
        func = getattr(node, "func", None)
        name = getattr(func, "attr", getattr(func, "id", ""))
        around = [n for n in scopes if n.lineno <= node.lineno <= (n.end_lineno or 0)]
        known = _values(around[-1:], node.lineno) | constants
        names = ("problem", "remedy") if func or not found[0] else ("problem",)
        kind, names, own = makers.get(name, (name, names, ""))
        if kind in ("", "None"):  # another function raises the error
            kind = next(filter(None, map(_class_of_code, ast.walk(tree))), "")
        if not kind:
            continue
        texts = dict(zip(names, (_text(arg, known) for arg in rest), strict=False))
        place = f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"
        yield Entry(code, kind, texts.get("problem", ""), texts.get("remedy", own), place)


def _class_of_code(node: ast.AST) -> str:
    """Return the class of an error that is created with a variable code, or an empty string."""
    given = node.args if isinstance(node, ast.Call) else []
    is_error = bool(given) and ast.unparse(given[0]) == "code" and len(given) > 2
    return ast.unparse(node.func) if is_error and isinstance(node, ast.Call) else ""


def _values(scopes: Sequence[ast.Module | ast.FunctionDef], line: int = 0) -> dict[str, ast.expr]:
    """Return the values assigned to names in a function before a line, or at the top of a file."""
    found = [
        n
        for scope in scopes
        for n in (ast.walk(scope) if line else scope.body)
        if isinstance(n, ast.Assign) and (not line or n.lineno < line)
    ]
    values = dict[str, ast.expr]()
    for node in sorted(found, key=lambda n: n.lineno):
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            values |= zip(map(ast.unparse, target.elts), value.elts, strict=False)
        else:
            values[ast.unparse(target)] = value
    return values


def _text(node: ast.expr, known: Mapping[str, ast.expr]) -> str:
    """Return the template of a text, with {name} for each value."""
    if isinstance(node, ast.Name) and node.id in known:
        rest = {name: value for name, value in known.items() if name != node.id}
        return _text(known[node.id], rest)
    if isinstance(node, ast.IfExp):
        return " / ".join(filter(None, (_text(node.body, known), _text(node.orelse, known))))
    if isinstance(node, ast.BoolOp):
        told = [each for each in node.values if not ast.unparse(each).startswith("similar(")]
        return " / ".join(filter(None, (_text(each, known) for each in told)))
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        fixed = {k: v for k, v in known.items() if isinstance(v, ast.Constant)}
        parts = (p.value if isinstance(p, ast.FormattedValue) else p for p in node.values)
        return "".join(_text(part, fixed) for part in parts)
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "one_of":
        return "did you mean {names}? / use one of {names}"
    return f"{{{_name(node)}}}"


def _name(node: ast.AST) -> str:
    """Return a name for a value, as "c" for a.b.c; called functions are skipped."""
    called = {id(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
    names = [
        n.attr if isinstance(n, ast.Attribute) else n.id
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute | ast.Name) and id(n) not in called
    ]
    return names[0].strip("_") if names else "value"


def page() -> str:
    """Return the generated part of the page."""
    found = sorted(entries(), key=lambda entry: entry.code)
    lines = []
    for area, title in AREAS.items():
        rows = [entry for entry in found if CODE.fullmatch(entry.code)[1] == area]  # type: ignore[index]
        if rows:
            lines += [
                "",
                f"## {title}",
                "",
                "| code | error | problem | remedy |",
                "|---" * 4 + "|",
            ]
        for row in rows:
            texts = (_cell(row.problem), _cell(row.remedy))
            lines.append(f"| {row.code} | `{row.kind}` | {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return (
        f"`` {text.replace('|', chr(92) + '|')} ``" if "`" in text else f"`{text}`" if text else ""
    )


def write() -> None:
    """Write the tables into the page."""
    text = PAGE.read_text("utf-8")
    PAGE.write_text(text[: text.index(BEGIN) + len(BEGIN)] + page(), "utf-8")


if __name__ == "__main__":
    write()
