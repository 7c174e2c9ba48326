"""`robot.explain` describes the program that runs. Historical methods are kept separate."""

import ast
import json
import re
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

import pytest
from typer.testing import CliRunner

import chasles
from chasles.algorithms import AUTOMATIC, FUNCTIONS, HISTORICAL, METHODS
from chasles.cli import app
from chasles.functions.programs import candidates, program
from chasles.functions.tracing import signature
from chasles.model.passes import PASSES, applied

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def panda() -> chasles.Robot:
    (file,) = [f for f in files("example-robot-data") or () if f.name == "panda.urdf"]
    return chasles.load(Path(str(file.locate())))


ROBOTS = {
    "puma560": chasles.robots.puma560,
    "panda": panda,
    "four_bar": chasles.robots.four_bar,
    "quadruped": chasles.robots.quadruped,
    "tree": lambda: chasles.robots.random_tree(6, 3),
}
ASKED = ("inverse_dynamics", "mass_matrix", "bias_forces", "gravity_forces", "kinetic_energy")


# The explained program is the program that runs ------------------------------------------------


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("function", ASKED)
def test_the_explained_program_is_the_one_that_runs(name: str, function: str) -> None:
    robot = ROBOTS[name]()
    found = robot.explain(function)
    assert found.program == chasles.compile(robot, function, backend="interpret").program
    best = min(found.candidates, key=lambda tried: tried.weight)
    assert (best.method, best.weight) == (found.method, found.program.count.weight)
    assert best.passes == tuple(each.name for each in found.passes)
    after = found.passes[-1].operations if found.passes else found.given
    assert after == found.program.count


@pytest.mark.parametrize("function", ["forward_dynamics", "constrained_dynamics"])
def test_forward_dynamics_of_loops_are_constrained_dynamics(function: str) -> None:
    robot = chasles.robots.four_bar()
    found = robot.explain(function)
    assert found.function == "constrained_dynamics"
    compiled = chasles.compile(robot, "constrained_dynamics", backend="interpret")
    assert found.program == compiled.program


@pytest.mark.parametrize("function", METHODS)
def test_the_source_is_where_the_algorithm_stands(function: str) -> None:
    """The lines contain the definition of the traced function, which has the program's name."""
    robot = chasles.robots.planar(2) if function in FUNCTIONS else chasles.robots.four_bar()
    possible = {"frame": robot.frames[-1], "actuated": (0,), "weights": (1.0,)}
    options = signature(METHODS[function][0].algorithm).options
    found = robot.explain(function, **{key: possible[key] for key in options if key in possible})
    first, last = found.lines
    lines = (SOURCES / found.source).read_text("utf-8").splitlines()[first - 1 : last]
    (definition,) = ast.parse("\n".join(lines)).body
    assert isinstance(definition, ast.FunctionDef)
    assert definition.name == found.program.name
    for file in found.sources:
        assert (SOURCES / file).exists()


def test_each_option_reaches_the_program() -> None:
    robot = chasles.robots.puma560()
    for options in (
        {"method": "waters"},
        {"dissipation": True},
        {"parameters": ("gravity",)},
        {"f_ext": {"tool": chasles.Wrench([0.0] * 6, axes="frame")}},
    ):
        found = robot.explain("inverse_dynamics", **options)
        compiled = chasles.compile(robot, "inverse_dynamics", backend="interpret", **options)
        assert found.program == compiled.program
        assert found.program != robot.explain("inverse_dynamics").program
    waters = robot.explain("inverse_dynamics", method="waters")
    assert waters.source == "chasles/algorithms/historical/lagrange.py"
    assert [each.name for each in waters.passes] == ["frictionless"]
    with pytest.raises(ValueError, match="speed"):
        robot.explain("speed")


def test_a_long_program_is_shortened_unless_asked_for() -> None:
    found = chasles.robots.puma560().explain("inverse_dynamics")
    whole = str(found.program).rstrip()
    assert whole in found.text(full=True)
    assert whole not in str(found)
    assert len(str(found).splitlines()) < 45
    assert f"return {whole.rpartition('return ')[2]}" in str(found)
    short = chasles.robots.planar(1).explain("inverse_dynamics")
    assert str(short.program).rstrip() in str(short)


def test_the_command_prints_and_gives_the_explanation() -> None:
    robot = chasles.robots.puma560()
    found = robot.explain("jacobian", frame=robot.frames[-1])
    words = ["explain", "puma560", "jacobian"]
    named = "frame: 'tool'\n"
    printed = CliRunner().invoke(app, words).stdout
    assert named in printed
    assert printed.replace(named, "").rstrip() == str(found)
    whole = CliRunner().invoke(app, [*words, "--program"]).stdout
    assert whole.replace(named, "").rstrip() == found.text(full=True)
    data = json.loads(CliRunner().invoke(app, [*words, "--program", "--json"]).stdout)
    assert data["source"] == found.source
    assert data["lines"] == list(found.lines)
    assert data["program"] == str(found.program).rstrip().split("\n")
    assert data["candidates"][0]["weight"] == found.candidates[0].weight


# Architecture page ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["puma560", "panda"])
def test_the_page_shows_the_source_that_runs(name: str) -> None:
    """The first source shown on the architecture page is the one that runs.

    `test_docs.py` compares the page with the file.
    """
    file, function = re.findall(r"<!-- source: src/(\S+) (\w+) -->", PAGE)[0]
    found = ROBOTS[name]().explain("inverse_dynamics")
    assert (file, function) == (found.source, found.program.name)
    assert found.sources == (found.source,)


# Passes -----------------------------------------------------------------------------------------


def test_every_pass_is_one_row_one_line_and_in_use() -> None:
    used = {
        name
        for build in (ROBOTS["puma560"], ROBOTS["panda"])
        for function in ("inverse_dynamics", "mass_matrix")
        for each in candidates(build().model, function)
        for name in each.passes
    }
    assert used == set(PASSES)
    for each in PASSES.values():
        assert re.fullmatch(r"[A-Z][^\n]{10,79}\.", each.what)
        assert each.what in PAGE


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_changes_some_robot(name: str) -> None:
    models = [build().model for build in ROBOTS.values()]
    assert any(applied(model, [name]) != model for model in models)


# Historical methods -----------------------------------------------------------------------------

USE = """
import sys, chasles
from chasles.algorithms import DERIVATIVES, FUNCTIONS
from chasles.model import ModelError
from chasles.functions.tracing import signature
make = chasles.robots
for robot in (make.planar(2), make.random_tree(1, 1, floating=True), make.four_bar()):
    for function, rows in FUNCTIONS.items():
        read = signature(rows[0].algorithm)
        given = {"frame": robot.frames[-1]} if "frame" in read.options else {}
        push = {robot.frames[-1]: chasles.Wrench([0.0] * 6)} if "f_ext" in read.inputs else None
        for f_ext in (None, push):
            try:
                chasles.compile(robot, function, backend="interpret", f_ext=f_ext, **given).program
            except ModelError:
                pass
    if not robot.model.loop_rows:
        for function in DERIVATIVES:
            chasles.compile(robot, function, backend="interpret", wrt="q").program
print(*sorted(m for m in sys.modules if "historical" in m))
"""


def test_what_runs_never_loads_what_is_historical() -> None:
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_nothing_imports_what_is_historical() -> None:
    package = "chasles.algorithms.historical"
    for path in (SOURCES / "chasles").rglob("*.py"):
        if "historical" not in path.parts:
            assert f"import {package}" not in path.read_text("utf-8")
            assert f"from {package}" not in path.read_text("utf-8"), path


def test_every_historical_module_is_used_by_a_row() -> None:
    """Each historical module is used by a method or by another historical module.

    No automatic method is in a historical module.
    """
    folder = SOURCES / "chasles" / "algorithms"
    modules = {
        ".".join(path.relative_to(folder).with_suffix("").parts): path.read_text("utf-8")
        for path in (folder / "historical").rglob("[!_]*.py")
    }
    rows = {m.source.partition(":")[0] for ways in HISTORICAL.values() for m in ways}
    for module in modules:
        helps = any(f"chasles.algorithms.{module} import" in text for text in modules.values())
        assert module in rows or helps, module
    assert not any(m.source.startswith("historical") for ways in AUTOMATIC.values() for m in ways)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_historical_methods_are_never_chosen(function: str) -> None:
    assert [m.name for m in FUNCTIONS[function] if not m.by_name] == [
        m.name for m in AUTOMATIC[function]
    ]
    for build in (ROBOTS["puma560"], ROBOTS["tree"]):
        model = build().model
        options = signature(FUNCTIONS[function][0].algorithm).options
        given = {"frame": list(model.frames)[-1]} if "frame" in options else {}
        try:
            found = candidates(model, function, **given)
        except chasles.ModelError:
            continue
        assert {each.method for each in found} <= set(AUTOMATIC[function])


@pytest.mark.parametrize("function", HISTORICAL)
def test_historical_methods_run_by_name(function: str) -> None:
    model = chasles.robots.planar(2).model
    given = {"frame": list(model.frames)[-1]} if function == "forward_kinematics" else {}
    for way in HISTORICAL[function]:
        assert program(model, function, method=way.name, **given).name == way.algorithm.__name__
