"""Check layers of imports, completeness of tables, and documentation of public names."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from building import graph, robot_functions, walks
from building.layers import (
    LAYERS,
    LEAVES,
    RANK,
    imported,
    imports,
    parsed,
    points_down,
    target,
    unit,
)

import chasles
from chasles.algorithms import FUNCTIONS
from chasles.backends import lowering
from chasles.backends import numpy as numpy_backend
from chasles.backends.llvm import tiles as llvm_tiles
from chasles.entry_points import ENTRY_POINTS, entry_point
from chasles.expr import OPS
from chasles.functions.tracing import signature
from chasles.robots import ROBOTS

ROOT = Path(chasles.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

ONLY = {"expr": ("errors", "names"), "backends": ("expr", "errors", "names", "writing")}
"""Units that may import fewer units than all those below them."""

LOADERS = (
    "__init__.py",
    "backends/__init__.py",
    "entry_points.py",
    "formats/files.py",
    "functions/doors.py",
    "lint/__init__.py",
)
"""Files with a table of modules that are loaded on use; other files do not load modules by name."""

OPTIONAL = ("solvers.py",)
"""Files that load optional packages by a variable name."""


PARTS = ("src", "tests", "benchmarks", "examples", "docs", "fuzz")


def name(path: Path) -> str:
    """Return the name of a test case for a file."""
    return path.relative_to(ROOT).as_posix()


@cache
def nodes(path: Path) -> list[Any]:
    """Return all syntax nodes of a file, the module first."""
    return [*ast.walk(ast.parse(path.read_text()))]


# Layers ----------------------------------------------------------------------------------------


def test_every_unit_has_a_layer() -> None:
    assert {unit(path, ROOT) for path in MODULES} == set(RANK)


def test_there_are_ten_ranks_at_most() -> None:
    assert len(LAYERS) <= 10


def test_imports_point_down() -> None:
    """Imports point to lower layers.

    Imports for annotations may also name a higher leaf whose entry point the file calls. The
    package itself names everything public for editors, but loads it only on use.
    """
    for path in MODULES:
        here = unit(path, ROOT)
        running, typing = imported(path)
        for found, above in ((running, ()), (typing, LEAVES if here else RANK)):
            for line, dotted in found:
                there = target(dotted)
                if there is None or there == here or there in above:
                    continue
                assert points_down(here, there), f"{name(path)}:{line}: {here} imports {dotted}"
                if here in ONLY:
                    assert there in ONLY[here], f"{name(path)}:{line}: {here} sees {dotted}"


def test_only_tables_load_modules_by_name() -> None:
    """Only files with tables load modules of chasles by name.

    `import_module("chasles.view")` is an import that the test above does not detect. Names of
    other packages may be loaded where they are used if they are string literals.
    """
    for path in (p for p in MODULES if name(p) not in LOADERS):
        for node in nodes(path):
            called = node.func if isinstance(node, ast.Call) else None
            word = getattr(called, "attr", getattr(called, "id", ""))
            if word in ("import_module", "__import__", "imported"):
                given, where = node.args[0], f"{name(path)}:{node.lineno}"
                assert isinstance(given, ast.Constant) or path.name in OPTIONAL, where
                assert not ast.unparse(given).strip("'").startswith(("chasles", ".")), where
            if word == "Sourced":
                package = f"chasles.{unit(path, ROOT)}"
                assert node.args[0].value == package, f"{name(path)}:{node.lineno}: of another unit"


def test_warnings_refer_to_the_line_of_the_user() -> None:
    """Files call `errors.warn`, which finds the line outside chasles, not `warnings.warn`."""
    calls = [
        f"{name(path)}:{node.lineno}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn"
    ]
    assert not calls


def test_entry_points_are_of_leaves() -> None:
    """Each entry point exists, and its leaf is in a layer above the robot, which calls it."""
    for key, place in ENTRY_POINTS.items():
        module = place.partition(":")[0]
        assert target(module) in LEAVES, key
        assert callable(entry_point(key))
    assert all(RANK[leaf] > RANK["robot"] for leaf in LEAVES)


@pytest.mark.parametrize("path", sorted((ROOT / "expr").rglob("*.py")), ids=name)
def test_the_algebra_needs_the_standard_library_only(path: Path) -> None:
    running, typing = imported(path)
    for line, dotted in running + typing:
        package = dotted.split(".")[0]
        assert package == "chasles" or package in sys.stdlib_module_names, f"{line}: {dotted}"


def test_chasles_is_imported_at_the_top() -> None:
    """An import of chasles inside a function would hide a cycle; only commands import on use."""
    for path in (p for p in MODULES if unit(p, ROOT) != "cli"):
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for inner in ast.walk(node):
                    module = inner.module if isinstance(inner, ast.ImportFrom) else ""
                    if isinstance(inner, ast.Import):
                        module = inner.names[0].name
                    assert not (module or "").startswith("chasles"), f"{name(path)}:{node.lineno}"


def test_what_is_imported_is_asked_for_by_name() -> None:
    """Every imported package is named in pyproject.toml, or a package that provides it is."""
    project = Path(__file__).parents[1]
    asked = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    rows = [asked["dependencies"], *asked["optional-dependencies"].values()]
    named = {re.split(r"[^\w-]", row)[0].lower() for some in rows for row in some}
    distributions = packages_distributions()
    for path in (p for folder in PARTS for p in (project / folder).rglob("*.py")):
        for line, dotted in imports(ast.parse(path.read_text())):
            providers = distributions.get(dotted.split(".")[0], ["chasles"])
            plain = {provider.lower().replace("_", "-") for provider in providers}
            assert plain & named, f"{path}:{line}: {dotted} is not named in pyproject.toml"


def test_the_picture_of_imports_is_true() -> None:
    """The picture is current. After a change, run `python docs/building/graph.py`."""
    text = graph.PAGE.read_text("utf-8")
    assert graph.page(text) == text
    assert "<!-- imports -->" in text
    assert graph.PICTURE.read_text("utf-8") == graph.picture()


def test_the_walks_of_three_calls_are_true() -> None:
    """The call traces are current. After a change, run `python docs/building/walks.py`."""
    text = walks.PAGE.read_text("utf-8")
    assert "<!-- walks -->" in text
    assert walks.page(text) == text
    assert text.count("\n0 calls up the layers: none\n") == len(walks.CALLS)


# Names of the package ---------------------------------------------------------------------------


def python(code: str) -> str:
    """Run code in a new process and return its output."""
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_importing_chasles_loads_nothing_large() -> None:
    """Public names load on use: `import chasles` costs less than `import numpy`."""
    loaded = set(python("import sys, chasles; print(*sys.modules)").split())
    large = {"numpy", "scipy", "lxml", "matplotlib", "typer", "rich", "llvmlite", "dataclasses"}
    assert not loaded & large
    assert {one for one in loaded if one.startswith("chasles.")} == {"chasles.version"}


def test_loading_a_robot_loads_nothing_that_is_not_needed() -> None:
    loaded = set(python("import sys, chasles; chasles.load; print(*sys.modules)").split())
    assert not loaded & {
        "scipy.linalg",
        "scipy.optimize",
        "scipy.sparse",
        "lxml",
        "matplotlib",
        "typer",
        "rich",
        "llvmlite",
    }


def test_public_names_stand_in_the_table_and_for_editors() -> None:
    """`__all__`, `PUBLIC` and the imports for type checkers contain the same names."""
    _, typing = parsed(ROOT / "__init__.py")
    rows = [node for node in typing.body if isinstance(node, ast.ImportFrom)]
    shown = {alias.name: str(node.module) for node in rows for alias in node.names}
    assert shown == chasles.PUBLIC
    assert sorted(chasles.__all__) == sorted(chasles.PUBLIC)


def test_dir_lists_names_and_modules() -> None:
    modules = {unit(path, ROOT) for path in MODULES} - {"", "__main__"}
    assert set(dir(chasles)) >= set(chasles.__all__) | modules
    assert all(getattr(chasles, key) is not None for key in dir(chasles))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = chasles.nothing


def test_functions_keep_their_names_when_folders_are_imported(tmp_path: Path) -> None:
    """`import chasles.lint.checks` must not replace the function `chasles.lint` by the folder."""
    file = tmp_path / "one.urdf"
    file.write_text("<robot name='one'><link name='a'/><link name='b'/></robot>")
    folders = ", ".join(set(chasles.PUBLIC.values()) | {"chasles.lint.checks"})
    names = [key for key, module in chasles.PUBLIC.items() if module != "chasles"]
    shown = f"print(*(type(getattr(chasles, name)).__name__ for name in {names}))"
    lint = f"print(len(chasles.lint({str(file)!r})))"
    kinds, found = python(f"import {folders}; {shown}; {lint}").splitlines()
    assert "module" not in kinds.split()
    assert int(found) > 0


# One contract -----------------------------------------------------------------------------------

KNOWING = ("model", "algorithms", "functions", "mechanisms")
"""Units that may query whether a model has loops or depends on time."""


def test_only_the_contract_asks_about_loops_and_time() -> None:
    """All higher layers use the mechanism, which handles trees without special cases."""
    for path in (p for p in MODULES if unit(p, ROOT) not in KNOWING):
        asked = [
            f"{name(path)}:{node.lineno}: {ast.unparse(node)}"
            for node in nodes(path)
            if isinstance(node, ast.Attribute) and node.attr in ("loop_rows", "timed")
        ]
        assert asked == []


def defined(folder: Path) -> set[str]:
    """Return all names of functions, classes and attributes that the files of a folder define."""
    found = set()
    for path in folder.glob("*.py"):
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.attr if isinstance(node, ast.Attribute) else node.id)
    return found


FOREIGN = ("etree", "torch", "core", "sys", "os", "xacro", "substitution_args")
"""Other packages, whose private names are not checked."""

TUPLES = ("_asdict", "_fields", "_make", "_replace")
"""Methods and fields of every NamedTuple."""


@pytest.mark.parametrize("folder", sorted({p.parent for p in MODULES}), ids=name)
def test_private_attributes_stay_in_their_folder(folder: Path) -> None:
    known = defined(folder) | set(TUPLES)
    for path in folder.glob("*.py"):
        for node in nodes(path):
            if not isinstance(node, ast.Attribute) or not re.match(r"_(?!_)", node.attr):
                continue
            owner = ast.unparse(node.value).split(".")
            if owner in (["self"], ["cls"]) or owner[0] in FOREIGN:
                continue
            assert node.attr in known, f"{name(path)}:{node.lineno}: {ast.unparse(node)}"


def test_methods_of_the_robot_are_up_to_date() -> None:
    """The methods are current. After a change, run `python docs/building/robot_functions.py`."""
    assert robot_functions.MADE.read_text("utf-8") == robot_functions.written()


# Tables ----------------------------------------------------------------------------------------


def test_every_operation_has_a_spelling() -> None:
    ops = set(OPS) - {"input", "const"}
    assert set(numpy_backend.SPELLING) == ops
    in_groups = {"sin", "cos", "select"}
    machine = set(llvm_tiles.SPELLING) | set(llvm_tiles.COMPARISONS) | in_groups
    fused = {"fma", "fms", "fnma"}
    assert machine - fused == ops
    assert fused <= set(llvm_tiles.SPELLING)
    assert set(lowering.FREE) == {"input", "const"}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_is_a_method_of_the_robot(function: str) -> None:
    """A function's arrays are positional arguments of the method, and its options are keywords.

    A frame may follow the arrays by position. For methods with `*rates`, the number of rates is
    the option `order`. Arrays with default values are for higher orders or for loops.
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
    options = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY or p.name == "frame"}
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


def test_a_module_says_what_it_is_for() -> None:
    for path in MODULES:
        first = (ast.get_docstring(nodes(path)[0]) or "").split("\n")[0]
        assert first.endswith((".", ":")) or path.name == "__init__.py", f"{name(path)}: {first!r}"
        assert first, name(path)


def public() -> dict[str, object]:
    """Return everything that users call, by name."""
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


def is_docstring(node: ast.AST) -> bool:
    """Return True for a string that stands alone below a definition or an assignment."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


LONG = {
    "backends/llvm/iterated_source.py": "all functions of the kernel use the same tile layout",
    "backends/llvm/source.py": "all functions of an LLVM module use the same tile layout",
    "model/model.py": "a model is defined together with its bodies, rotors, frames and loops",
    "model/spaces.py": "the table of spaces is next to the functions that fill their entries",
    "motion/drivers/stepping.py": "a step is compiled, checked and recorded in one place",
    "motion/steps/convex.py": "all kinds of Newton steps use the same momentum balance",
    "motion/steps/stepping.py": "the programs of a step solve one problem and exchange data",
}
"""Modules of more than 400 lines besides docstrings, and the reason why each is not divided."""


def test_long_modules_are_listed_with_a_reason() -> None:
    """Modules with more than 400 lines besides docstrings are generated or listed in `LONG`."""
    found = set()
    for path in MODULES:
        text = path.read_text()
        lengths = [n.end_lineno - n.lineno + 1 for n in nodes(path) if is_docstring(n)]
        generated = "Generated by" in (ast.get_docstring(nodes(path)[0]) or "")
        if len(text.splitlines()) - sum(lengths) > 400 and not generated:
            found.add(name(path))
    assert found == set(LONG)


def test_no_docstring_is_empty() -> None:
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                doc = ast.get_docstring(node)
                assert doc is None or doc.strip(), f"{name(path)}:{node.lineno}: {node.name}"
