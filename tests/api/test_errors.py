"""Every error has its own code and data fields, and is listed in docs/errors.md."""

import ast
import builtins
import importlib
import json
import pickle
import pkgutil
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from support import raises
from typer.testing import CliRunner

import chasles
from chasles.cli.app import app
from chasles.errors import ChaslesError, InputError, ModelError, said

ROOT = Path(chasles.__file__).parent
sys.path.insert(0, str(ROOT.parents[1] / "docs"))
page = importlib.import_module("building.errors")


PROTOCOL = {"AttributeError", "StopIteration", "KeyError", "AssertionError", "BrokenPipeError"}
"""Errors whose type is required by a protocol of Python or of the system."""

APART = {f"formats/{name}.py" for name in ("mjcf_child", "xacro_child", "xacro_expressions")}
"""Programs that run in separate processes without chasles; their messages come back as data."""


@cache
def classes() -> list[type[ChaslesError]]:
    """Return all classes of errors, from all modules."""
    for found in pkgutil.walk_packages([str(ROOT)], "chasles."):
        if found.name.rpartition(".")[2] not in ("__main__", "mjcf_child", "xacro_child"):
            try:
                importlib.import_module(found.name)
            except ImportError:  # an optional package is not installed
                continue
    known: list[type[ChaslesError]] = [ChaslesError]
    for kind in known:
        known += [k for k in kind.__subclasses__() if k not in known]
    return known


def calls(path: Path) -> Iterator[ast.Call]:
    """Yield all calls in a file."""
    return (node for node in nodes(path) if isinstance(node, ast.Call))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Return all calls and raise statements of a file."""
    found = ast.walk(ast.parse(path.read_text("utf-8")))
    return [node for node in found if isinstance(node, ast.Call | ast.Raise)]


SOURCES = [p for p in sorted(ROOT.rglob("*.py")) if p.relative_to(ROOT).as_posix() not in APART]


# The source --------------------------------------------------------------------------------------


def test_every_error_has_a_literal_code() -> None:
    """The first argument of each error is a code, or a variable that contains one."""
    kinds = {kind.__name__ for kind in classes()}
    for path in SOURCES:
        for call in calls(path):
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            if name not in kinds and name not in ("error", "refusal", "_refused", "_unequal"):
                continue
            first = call.args[0] if call.args else None
            code = first.value if isinstance(first, ast.Constant) else ast.unparse(first or call)
            place = f"{path}:{call.lineno}"
            assert code in ("code", "*text") or page.CODE.fullmatch(str(code)), place


def test_no_code_stands_twice() -> None:
    times = Counter(entry.code for entry in page.entries())
    assert [code for code, n in times.items() if n > 1] == []


def test_no_error_is_a_bare_built_in_one() -> None:
    """Messages need a code; only errors of protocols (`PROTOCOL`) may be plain built-in ones."""
    for path in SOURCES:
        for node in nodes(path):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                name = ast.unparse(node.exc.func)
                built_in = isinstance(getattr(builtins, name, None), type)
                assert not built_in or name in PROTOCOL, f"{path}:{node.lineno}: {name}"


def test_every_entry_has_a_class_an_area_and_a_text() -> None:
    kinds = {kind.__name__ for kind in classes()}
    for entry in page.entries():
        assert entry.kind in kinds, entry
        assert page.CODE.fullmatch(entry.code)[1] in page.AREAS, entry
        assert entry.problem or entry.kind == "InputError", entry


def test_the_page_is_current() -> None:
    text = page.PAGE.read_text("utf-8")
    assert text.endswith(page.BEGIN + page.page()), "run python docs/building/errors.py"


# The classes -------------------------------------------------------------------------------------

EXTRA: dict[str, dict[str, Any]] = {
    "Infeasible": {"ray": np.array([1.0, 2.0])},
    "Indeterminate": {"solutions": np.eye(2)},
    "Lost": {"members": np.array([True])},
}


def test_fields_text_and_pickle() -> None:
    for kind in classes():
        check_fields_text_and_pickle(kind)


def check_fields_text_and_pickle(kind: type[ChaslesError]) -> None:
    more = EXTRA.get(kind.__name__, {})
    error = kind("E-A-001", "it is wrong", "mend it", part="arm", file="a.urdf:12", **more)
    assert (error.file, error.line, error.place) == ("a.urdf", 12, "a.urdf:12")
    assert str(error) == "a.urdf:12: arm: it is wrong; mend it [E-A-001]"
    assert said(error) == "a.urdf:12: arm: it is wrong; mend it"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert again.fields() == error.fields() == json.loads(json.dumps(error.fields()))
    assert str(again) == str(error)
    for name in more:
        assert np.array_equal(getattr(again, name), getattr(error, name))


def test_a_caller_adds_what_it_knows() -> None:
    error = ModelError("E-A-001", "no mass", "give one", part="link 'a'")
    outer = error.within("row 3")
    assert (outer.part, outer.code, type(outer)) == ("row 3: link 'a'", "E-A-001", ModelError)
    assert str(error.at(file=Path("b.toml"), line=4, part="")) == (
        "b.toml:4: no mass; give one [E-A-001]"
    )
    assert InputError("E-A-001", "p", file="12").file == "12"


def test_an_extension_needs_no_code() -> None:
    error = pickle.loads(pickle.dumps(ModelError("a rod is too long")))
    assert (error.code, error.problem, str(error)) == ("", "a rod is too long", "a rod is too long")


def test_errors_are_the_built_in_ones_too() -> None:
    robot = chasles.robots.puma560()
    with raises("E-CALL-009", "inverse_dynamics", kind=ValueError) as caught:
        robot.inverse_dynamics([0.0], [0.0], [0.0])
    assert caught.value.part == "inverse_dynamics"
    with raises("E-MODEL-034", "'elbow'", kind=chasles.ModelError):
        robot.forward_kinematics(robot.neutral(), frame="elbow")


# The command line --------------------------------------------------------------------------------


def test_json_has_the_fields_of_an_error(tmp_path: Path) -> None:
    (tmp_path / "arm.urdf").write_text('<robot name="arm"/>')
    found = CliRunner().invoke(app, ["info", str(tmp_path / "arm.urdf"), "--json"])
    assert found.exit_code == 2
    told = json.loads(found.stdout)["error"]
    assert (told["code"], told["line"]) == ("E-URDF-002", 1)
    assert told["file"] == str(tmp_path / "arm.urdf")
