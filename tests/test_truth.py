"""Every test can fail: it asserts, or calls a helper that does."""

import ast
from functools import cache
from pathlib import Path

import pytest
import slow
from building.layers import ROOT, unit

TESTS = Path(__file__).parent
FILES = sorted(TESTS.rglob("*.py"))
SUITES = [path for path in FILES if path.name.startswith("test_")]
ASSERTING = ("raises", "warns", "fail", "deprecated_call")
"""Functions of pytest that fail unless the expected event happens."""
Function = ast.FunctionDef | ast.AsyncFunctionDef

PROJECT = (
    "adding",
    "architecture",
    "benchmarks",
    "docs",
    "documents",
    "fuzz",
    "gallery",
    "gpu_peers",
    "language",
    "platforms",
    "security",
    "site",
    "truth",
)
"""Tests of the project as a whole, which are not in a folder of tests/."""
ACROSS = ("golden", "gpu", "oracles", "physics", "published")
"""Folders with tests of several parts of the source."""
PARTS = ("api", "functions", "mechanisms", "motion", "robot")
"""Folders with tests of single layers."""

DECLARED = {
    "raises": "support.raises compares the code of an error when its block ends",
    "check_grads": "jax.test_util compares derivatives with finite differences",
    "torch.library.opcheck": "PyTorch's own tests of an operation",
    "(FUNCTIONS_OF_THE_ROBOT | FUNCTIONS_OF_CHASLES)[name]": "test_every_row_of_loops_can_fail",
}
"""Calls that these tests cannot resolve, and the code that asserts in them."""


@cache
def functions(path: Path) -> dict[str, Function]:
    """Return all functions of a file by name, including methods and inner functions."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return {node.name: node for node in nodes if isinstance(node, Function)}


@cache
def origins(path: Path) -> dict[str, Path]:
    """Return the names that a file imports from other test files, with those files."""
    files = {file.stem: file for file in FILES}
    found: dict[str, Path] = {}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module in files:
            found |= {alias.asname or alias.name: files[node.module] for alias in node.names}
        if isinstance(node, ast.Import):
            found |= {a.asname or a.name: files[a.name] for a in node.names if a.name in files}
    return found


def asserts(path: Path, function: Function, seen: frozenset[tuple[Path, str]]) -> bool:
    """Return True if a function asserts, itself or in a function of the tests that it calls."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call) and _asserting(path, ast.unparse(node.func), seen):
            return True
    return False


def _asserting(path: Path, called: str, seen: frozenset[tuple[Path, str]]) -> bool:
    first, _, rest = called.partition(".")
    last = called.rpartition(".")[2]
    if called in DECLARED or (first == "pytest" and rest in ASSERTING):
        return True
    if first == "np" and rest.startswith("testing.assert_"):
        return True
    file = origins(path).get(first, path)
    helper = functions(file).get(last)
    if helper is None or (file, last) in seen:
        return False
    return asserts(file, helper, seen | {(file, last)})


def test_every_test_can_fail() -> None:
    for path in SUITES:
        names = [name for name in functions(path) if name.startswith("test_")]
        idle = [n for n in names if not asserts(path, functions(path)[n], frozenset({(path, n)}))]
        assert not idle, f"{path.name}: nothing is asserted in {', '.join(idle)}"


def test_every_row_of_loops_can_fail() -> None:
    """Rows of the tables are functions that assert, or calls that make such functions."""
    (path,) = (file for file in SUITES if file.stem == "test_loops_everywhere")
    rows: list[ast.expr] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.AnnAssign) and "FUNCTIONS_OF" in ast.unparse(node.target):
            assert isinstance(node.value, ast.Dict)
            rows += node.value.values
    assert len(rows) > 80
    for row in rows:
        called = ast.unparse(row.func if isinstance(row, ast.Call) else row)
        assert asserts(path, functions(path)[called], frozenset()), called


def test_folders_mirror_the_source() -> None:
    """Folders of tests have the names of folders of the source."""
    top = {path.stem.removeprefix("test_") for path in SUITES if path.parent == TESTS}
    assert top == set(PROJECT)
    folders = {path.relative_to(TESTS).parts[0] for path in SUITES if path.parent != TESTS}
    source = {unit(path, ROOT) for path in ROOT.rglob("*.py")}
    assert folders - {*ACROSS, *PARTS} <= source
    names = [path.name for path in SUITES]
    assert len(set(names)) == len(names), "two files of one name"


def test_slow_tests_are_there() -> None:
    """Rows of `slow.txt` and the files in `FIRST` name existing tests and files."""
    assert set(slow.FIRST) <= {path.name for path in SUITES}
    known = {f"{path.name}::{name}" for path in SUITES for name in functions(path)}
    known |= {path.name for path in SUITES}
    assert {row.partition("[")[0] for row in slow.rows()} <= known


def test_a_long_list_is_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow, "rows", lambda: {"a.py::long": 3, "a.py::all": 0, "a.py::one[x]": 0})
    tests = [*(f"long[{k}]" for k in range(7)), "all[x]", "one[x]", "one[y]"]
    fast = [
        t for t, no in zip(tests, slow.marked(("a.py", t) for t in tests), strict=True) if not no
    ]
    assert fast == ["long[0]", "long[3]", "long[6]", "one[y]"]


def test_a_test_that_asserts_nothing_is_found(tmp_path: Path) -> None:
    file = tmp_path / "test_idle.py"
    file.write_text(
        "def help(): return 1\n"
        "def check(): assert help()\n"
        "def test_idle(): help()\n"
        "def test_busy(): check()\n"
    )
    assert not asserts(file, functions(file)["test_idle"], frozenset())
    assert asserts(file, functions(file)["test_busy"], frozenset())


def test_files_are_left_out_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files without rows have no slow tests; files that are rows have no other tests."""
    monkeypatch.setattr(slow, "rows", lambda: {"test_a.py": 0, "test_b.py::long[x]": 0})
    monkeypatch.setattr(slow, "files", slow.files.__wrapped__)
    names = ["test_a.py", "test_b.py", "test_c.py", "conftest.py"]
    assert [n for n in names if slow.left_out(n, "slow")] == ["test_c.py"]
    assert [n for n in names if slow.left_out(n, "not slow")] == ["test_a.py"]
    assert not [n for n in names if slow.left_out(n, "")]


def test_files_that_take_long_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in `FIRST` run first, then those with slow tests, then those with many tests."""
    monkeypatch.setattr(slow, "FIRST", ("long.py",))
    monkeypatch.setattr(slow, "rows", lambda: {"one.py::slow[x]": 0, "many.py::thin": 3})
    tests = [("few.py", "a"), *[("many.py", f"thin[{k}]") for k in range(5)]]
    ranks = slow.ranks([*tests, ("long.py", "a"), ("one.py", "slow[x]")])
    order = sorted(ranks, key=lambda name: ranks[name])
    assert order == ["long.py", "one.py", "many.py", "few.py"]
