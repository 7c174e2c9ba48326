"""`verify` passes for correct functions, and names wrong ones."""

import io
import json
import random
from dataclasses import fields
from importlib import import_module

import numpy as np
import pytest
from mutation import ALGORITHMS, ROOT, mutants, prepared, verdict
from rich.console import Console
from support import raises
from typer.testing import CliRunner

import chasles
from chasles.algorithms import METHODS
from chasles.algorithms.historical.newton_euler import kane
from chasles.checks import Result, Verification
from chasles.checks import trial as trials
from chasles.checks.comparing import Comparison, first_difference, relative_error
from chasles.checks.verify import CHECKS, checks, results
from chasles.cli import app
from chasles.entry_points import imported
from chasles.model import gear

report = import_module("chasles.cli.commands.verify")


def on_floats(robot: chasles.Robot, seed: int = 3) -> list:
    return list(results([trials.trial(robot, seed)], seed, checks(compiled=False)))


@pytest.mark.parametrize(
    "robot",
    [
        chasles.robots.general_chain(3),
        chasles.robots.random_tree(4, 3),
        chasles.robots.general_chain(3).with_couplings(gear("g", "joint2", {"joint1": 0.6})),
    ],
    ids=["chain", "tree", "geared"],
)
def test_robots_pass_on_floats(robot: chasles.Robot) -> None:
    wrong = [str(result) for result in on_floats(robot) if not result.ok]
    assert not wrong


def test_every_function_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function in the table is called by some check on some robot."""
    robots = (
        chasles.robots.random_tree(4, 14, floating=True),
        chasles.robots.four_bar(),
        chasles.robots.random_tree(4, 5).drive({"joint1": lambda t: 0.3 + 0.5 * t * t}),
    )
    seen: set[str] = set()
    whole = trials.evaluate

    def noted(model, function, arrays, **options):
        seen.add(function)
        return whole(model, function, arrays, **options)

    monkeypatch.setattr(trials, "evaluate", noted)
    for robot in robots:
        assert not [str(result) for result in on_floats(robot) if not result.ok]
    machine = {"actuate", "activation_rate", "actuator_values"}  # for robots with actuators
    sensing = {"sensor_values", "closed_sensor_values"}  # for robots with sensors
    around = {"fluid_forces", "line_motion"}  # for fluids and tendon stops
    stepping = {
        "closing_acceleration"
    }  # time steps with loops (tests/contact/test_loops_in_steps.py)
    assert seen == set(METHODS) - machine - sensing - around - stepping


def test_robot_passes_compiled() -> None:
    found = chasles.robots.planar(2).verify(states=1)
    assert found.ok, str(found)
    assert set(found.worst) >= {check.name for check in CHECKS if check.compiled and not check.full}


def test_a_wrong_method_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    right = kane

    def wrong(model, q, qd, qdd, f_ext=None):
        return {i: part * 1.001 for i, part in right(model, q, qd, qdd).items()}

    wrong.__annotations__ = right.__annotations__
    row = next(m for m in METHODS["inverse_dynamics"] if m.name == "kane")
    monkeypatch.setattr(type(row), "algorithm", property(lambda m: wrong if m is row else _of(m)))
    failed = [r for r in on_floats(chasles.robots.general_chain(3)) if not r.ok]
    assert failed
    assert {(r.function, r.method) for r in failed} == {("inverse_dynamics", "kane")}
    assert "instead of" in failed[0].detail


def _of(method):
    return imported(f"chasles.algorithms.{method.source}")


# Comparing -------------------------------------------------------------------------------------


def test_first_entry_that_differs() -> None:
    a, b = np.array([[1.0, 2.0], [3.5, 4.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    compared = Comparison("f", "m", a, b)
    assert relative_error(compared) == 0.125
    assert first_difference(compared, 1e-3) == "[1, 0]: 3.5 instead of 3"
    assert first_difference(compared, 0.2) == ""


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_is_an_error(bad: float) -> None:
    compared = Comparison("f", "m", [bad, 1.0], [1.0, 1.0])
    assert relative_error(compared) == np.inf
    assert first_difference(compared, 1.0).startswith("[0]")


def test_other_shapes_differ() -> None:
    assert relative_error(Comparison("f", "m", np.zeros(2), np.zeros(3))) == np.inf


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"seed": 0.5}, {"states": 0}])
def test_wrong_numbers_are_refused(wrong: dict) -> None:
    with raises("E-VERIFY-002|E-VERIFY-003"):
        chasles.robots.planar(1).verify(**wrong)


# The command -----------------------------------------------------------------------------------


def test_command_as_json() -> None:
    said = CliRunner().invoke(app, ["verify", "planar:1", "--states", "1", "--json"])
    assert said.exit_code == 0, said.output
    found = json.loads(said.stdout)
    assert found["ok"]
    assert {r["function"] for r in found["results"]} >= {"inverse_dynamics", "mass_matrix"}


BAD = (
    Result("methods agree", "mass_matrix", "spatial", float("inf"), 1e-10, 1, "ValueError: x"),
    Result("power balance", "inverse_dynamics", "power", float("nan"), 1e-6, 0),
    Result("sensitivities", "linearize", "B", 0.1, float("inf"), 0, "it is near a singular one"),
)
"""Results with errors or tolerances that are not finite; the last one cannot be checked."""


def test_numbers_that_are_not_finite_are_valid_json(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Verification("arm", BAD, left_out=("dynamics: no masses",))
    monkeypatch.setattr(report, "checked", lambda *robot, **options: found)
    said = CliRunner().invoke(app, ["verify", "planar:1", "--json"])
    assert said.exit_code == 1
    read = json.loads(said.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert [(r["error"], r["tolerance"], r["ok"], r["checked"]) for r in read["results"]] == [
        (None, 1e-10, False, True),
        (None, 1e-6, False, True),
        (0.1, None, True, False),
    ]
    assert {field.name for field in fields(Result)} < read["results"][0].keys()
    assert read["left_out"] == ["dynamics: no masses"]


def test_what_cannot_be_checked_is_no_difference() -> None:
    found = Verification("arm", BAD)
    assert [result.ok for result in found.results] == [False, False, True]
    assert found.unchecked == BAD[2:]
    assert "unchecked: linearize, B: it is near a singular one" in str(found)


@pytest.mark.parametrize("width", [80, 200])
def test_names_are_whole(width: int) -> None:
    """The longest names of all kinds are not truncated."""
    names = "inverse_dynamics_sensitivities", "augmented-tensor, result 2"
    checks = [Result(check.name, *names, 1e-12, 1e-10, 0) for check in CHECKS]
    console = Console(file=io.StringIO(), width=width)
    report.show(Verification("arm", tuple(checks)), console)
    shown = console.file.getvalue().splitlines()
    assert max(map(len, shown)) <= width
    for words in (*(check.name for check in CHECKS), *names[:1], "augmented-tensor,"):
        assert any(words in line for line in shown), words


def test_table_names_what_differs() -> None:
    good = Result("power balance", "inverse_dynamics", "power", 1e-12, 1e-6, 0)
    bad = Result("methods agree", "mass_matrix", "spatial", 0.5, 1e-10, 1, "[0, 1]: 2 instead of 1")
    console = Console(file=io.StringIO(), width=100)
    report.show(Verification("arm", (good, bad)), console)
    shown = console.file.getvalue()
    assert "ok" in shown
    assert "differs" in shown
    assert "[0, 1]: 2 instead of 1" in " ".join(shown.split())


# Mutants ---------------------------------------------------------------------------------------


def test_some_mutants_are_caught() -> None:
    """Some mutants of two functions are caught; `python tests/mutation.py` tries hundreds."""
    places = {"transmitted_forces": "spatial/dynamics.py", "kane": "historical/newton_euler.py"}
    folder = ROOT / ALGORITHMS[0]
    each = [list(mutants(folder / file, name)) for name, file in places.items()]
    chosen = [m for some in each for m in random.Random(0).sample(some, 2)]
    states = prepared(3)
    for mutant in chosen:
        said = verdict(mutant, states, "")
        assert said.startswith(("caught", "raised")), f"{mutant}: {said}"
