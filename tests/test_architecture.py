"""Imports point down the layers, no row of a table is forgotten, what is public is explained."""

import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import chasles
from chasles.algorithms import FUNCTIONS
from chasles.backends import llvm_body, lowering
from chasles.backends import numpy as numpy_backend
from chasles.expr import OPS
from chasles.robots import ROBOTS
from chasles.tracing import signature

ROOT = Path(chasles.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

LAYERS = (
    ("version", "errors"),
    ("expr",),
    ("mathematics",),
    ("model",),
    ("algorithms", "backends", "formats"),
    ("tracing", "names", "cost", "numeric", "libraries"),
    ("programs",),
    ("compiled", "loops"),
    ("motion",),
    ("plots", "checks"),
    ("robot", "devices"),
    (
        *("robots", "api", "accuracy", "conventions", "homogeneous", "exporting"),
        *("contact", "control", "rollouts", "simulate"),
    ),
    ("lint", "peers"),
    ("",),  # the package itself: `import chasles`
    ("view",),
    ("cli", "published"),
    ("__main__",),
)
"""From the ground up. Units on one line never import each other."""

RANK = {unit: rank for rank, units in enumerate(LAYERS) for unit in units}
ONLY = {"expr": ("errors",), "backends": ("expr", "errors")}
"""Units that see less of chasles than everything below them."""


PARTS = ("src", "tests", "benchmarks", "examples", "docs")


def name(path: Path) -> str:
    """A file as a test's name."""
    return path.relative_to(ROOT).as_posix()


def unit(path: Path) -> str:
    """The part of the package that a file belongs to: a folder, or a module at the top."""
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every import of a file, wherever it stands: its line, and the dotted name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            module = node.module or ""
            names = [alias.name for alias in node.names] if module == "chasles" else [""]
            yield from ((node.lineno, f"{module}.{n}".rstrip(".")) for n in names)


def target(dotted: str) -> str | None:
    """The unit of chasles that an import reaches, or None for other packages."""
    first, *rest = dotted.split(".")
    if first != "chasles":
        return None
    return rest[0] if rest and rest[0] in RANK else ""


# Layers ----------------------------------------------------------------------------------------


def test_every_unit_has_a_layer() -> None:
    assert {unit(path) for path in MODULES} == set(RANK)


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_point_down(path: Path) -> None:
    here = unit(path)
    for line, dotted in imports(path):
        there = target(dotted)
        if there is None or there == here:
            continue
        assert RANK[there] < RANK[here], f"{name(path)}:{line}: {here} imports {dotted}"
        if here in ONLY:
            assert there in ONLY[here], f"{name(path)}:{line}: {here} sees {dotted}"


@pytest.mark.parametrize("path", sorted((ROOT / "expr").rglob("*.py")), ids=name)
def test_the_algebra_needs_the_standard_library_only(path: Path) -> None:
    for line, dotted in imports(path):
        package = dotted.split(".")[0]
        assert package == "chasles" or package in sys.stdlib_module_names, f"{line}: {dotted}"


@pytest.mark.parametrize("path", [p for p in MODULES if unit(p) != "cli"], ids=name)
def test_chasles_is_imported_at_the_top(path: Path) -> None:
    """An import of chasles inside a function would hide a cycle; only commands load on use."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in ast.walk(node):
                module = inner.module if isinstance(inner, ast.ImportFrom) else ""
                if isinstance(inner, ast.Import):
                    module = inner.names[0].name
                assert not (module or "").startswith("chasles"), f"{name(path)}:{node.lineno}"


def test_what_is_imported_is_asked_for_by_name() -> None:
    """By every file of the project: what comes along with another package may go as it came."""
    project = Path(__file__).parents[1]
    asked = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    rows = [asked["dependencies"], *asked["optional-dependencies"].values()]
    named = {re.split(r"[^\w-]", row)[0].lower() for some in rows for row in some}
    distributions = packages_distributions()
    for path in (p for folder in PARTS for p in (project / folder).rglob("*.py")):
        for line, dotted in imports(path):
            providers = distributions.get(dotted.split(".")[0], ["chasles"])
            plain = {provider.lower().replace("_", "-") for provider in providers}
            assert plain & named, f"{path}:{line}: {dotted} is not named in pyproject.toml"


# Tables ----------------------------------------------------------------------------------------


def test_every_operation_has_a_spelling() -> None:
    ops = set(OPS) - {"input", "const"}
    assert set(numpy_backend.SPELLING) == ops
    in_groups = {"sin", "cos", "select"}
    machine = set(llvm_body.SPELLING) | set(llvm_body.COMPARISONS) | in_groups
    fused = {"fma", "fms", "fnma"}
    assert machine - fused == ops
    assert fused <= set(llvm_body.SPELLING)
    assert set(lowering.FREE) == {"input", "const"}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_is_a_method_of_the_robot(function: str) -> None:
    """With the algorithm's arrays in order, its options, and `out=`, all by keyword.

    Where a method takes `*rates`, their number is the option `order`; arrays that may be left out
    are for higher orders, or for loops.
    """
    method = getattr(chasles.Robot, function)
    assert (inspect.getdoc(method) or "").strip()
    parameters = list(inspect.signature(method).parameters.values())[1:]
    known = signature(FUNCTIONS[function][0].algorithm).inputs
    given = [
        p.name
        for p in parameters
        if p.kind is p.POSITIONAL_OR_KEYWORD and (p.default is p.empty or p.name in known)
    ]
    options = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        given, options = [*given, "qd"], options | {"order"}
    for way in FUNCTIONS[function]:
        read = signature(way.algorithm)
        arrays = [name for name in read.inputs if name != "f_ext"]
        assert arrays == given
        assert set(read.options) <= options
        assert ("f_ext" in read.inputs) == ("f_ext" in options)
    assert "out" in options
    assert ("method" in options) == (len(FUNCTIONS[function]) > 1)


def test_methods_have_distinct_names() -> None:
    for function, ways in FUNCTIONS.items():
        names = [way.name for way in ways]
        assert len(set(names)) == len(names), function
        assert "fastest" not in names


# Documentation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    first = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n")[0]
    assert first.endswith((".", ":")) or path.name == "__init__.py", f"{name(path)}: {first!r}"
    assert first


def public() -> dict[str, object]:
    """Everything that users call, by name."""
    found: dict[str, object] = {}
    for key in chasles.__all__:
        value = getattr(chasles, key)
        found[key] = value
        if inspect.isclass(value):
            for attribute, member in vars(value).items():
                if not attribute.startswith("_") and (callable(member) or hasattr(member, "fget")):
                    found[f"{key}.{attribute}"] = member
    return found | {f"robots.{key}": make for key, make in ROBOTS.items()}


@pytest.mark.parametrize("key", public())
def test_everything_public_is_documented(key: str) -> None:
    assert (inspect.getdoc(public()[key]) or "").strip()


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_no_docstring_is_empty(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            doc = ast.get_docstring(node)
            assert doc is None or doc.strip(), f"{name(path)}:{node.lineno}: {node.name}"
