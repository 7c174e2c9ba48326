"""The benchmarks run, check their results, and reject wrong ones. Times are not checked."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pinocchio")
pytest.importorskip("mujoco")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


def test_quick_comparison(tmp_path):
    """The command runs for one robot; all implementations are checked and all values are finite."""
    file, picture = tmp_path / "numbers.json", tmp_path / "ratios.png"
    command = [sys.executable, "-m", "benchmarks", "compare", "--quick", "--robots", "ur5"]
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [*command, "--mechanisms", "--batch", "9", "--json", str(file), "--plot", str(picture)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "UR5" in done.stdout
    assert "inverse_dynamics" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    numbers = json.loads(file.read_text(encoding="utf-8"))
    assert {"date", "cpu", "versions"} <= numbers.keys()
    assert [row["function"] for row in numbers["rows"]] == [
        "inverse_dynamics",
        "mass_matrix",
        "forward_dynamics",
        "inverse_dynamics_derivatives",
        "forward_dynamics_derivatives",
    ]
    for row in numbers["rows"]:
        others = {"Pinocchio"} if "derivatives" in row["function"] else {"Pinocchio", "MuJoCo"}
        assert {r["library"] for r in row["routes"]} == {"chasles", *others}
        assert row["exact_error"] <= 1e-9
        assert all(r["error"] <= row["tolerance"] and r["minimum"] > 0 for r in row["routes"])
        assert all(row["speedup"][ratio] > 0 for ratio in ("pinocchio", "single_call"))
    alone = numbers["alone"]
    assert [row["what"] for row in alone["colds"]] == ["import", "nothing cached", "cached"]
    assert all(row["wall"] > 0 for row in alone["colds"])
    assert all(row["before"] > 0 and row["after"] > 0 for row in alone["ratios"])


@pytest.mark.parametrize("name", ["panda", "solo12"])
def test_other_functions_agree(name):
    """Both functions that are not timed by default agree for locked joints and a floating base."""
    from benchmarks.compare import QUICK, Bench

    bench = Bench(name, replace(QUICK, batch=5))
    for function in ("forward_kinematics", "jacobian"):
        row = bench.row(function)
        assert max(route.error for route in row.routes) <= bench.tolerance


def test_wrong_answers_are_refused(monkeypatch):
    """A benchmark of a program with wrong results prints no time."""
    from benchmarks import compare
    from benchmarks.routes import chasles_routes

    def spoiled(*arguments):
        batch, *others = chasles_routes(*arguments)
        return [replace(batch, answers=lambda: batch.answers() * (1 + 1e-6)), *others]

    monkeypatch.setattr(compare, "chasles_routes", spoiled)
    bench = compare.Bench("ur5", replace(compare.QUICK, batch=3))
    with pytest.raises(compare.WrongAnswer, match="UR5: chasles, threads=1, mass_matrix"):
        bench.row("mass_matrix")


@pytest.mark.parametrize("name", ["panda", "solo12"])
def test_derivatives_agree(name):
    """Derivatives agree after conversion to Pinocchio's coordinates, also for a floating base."""
    from benchmarks.compare import QUICK, Bench

    bench = Bench(name, replace(QUICK, batch=5))
    for function in ("inverse_dynamics_derivatives", "forward_dynamics_derivatives"):
        row = bench.row(function)
        assert max(route.error for route in row.routes) <= bench.tolerance


def test_linear_systems_agree():
    """A and B of an arm with locked joints agree for all implementations."""
    from benchmarks.compare import QUICK, Bench

    bench = Bench("panda", replace(QUICK, batch=5))
    row = bench.row("linearize")
    assert max(route.error for route in row.routes) <= bench.tolerance


def test_chain_is_checked(monkeypatch):
    """A short chain is checked by the recursion on plain floats, and a wrong result is rejected."""
    from benchmarks import command_chains as chains
    from benchmarks.compare import WrongAnswer
    from benchmarks.timing import Rounds

    for found in chains.measured("general_chain", 5, 16, Rounds(1, 1)):
        assert found.error <= 1e-9
        assert min(found.first, found.one, found.batched) > 0
    monkeypatch.setattr(chains, "by_hand", lambda robot, state: np.ones(robot.nv))
    with pytest.raises(WrongAnswer, match="general_chain of 5 bodies"):
        chains.measured("general_chain", 5, 16, Rounds(1, 1))


def test_stores_are_checked():
    """Times are positive; mass matrices written past the cache agree with single calls."""
    from benchmarks import command_stores as stores
    from benchmarks.timing import Rounds

    found = stores.measured("panda", 40, Rounds(1, 1))
    assert min(found.fill, found.whole, found.packed, found.peer) > 0


def test_relative_error_sees_nan():
    from benchmarks.compare import relative_error

    assert np.isnan(relative_error(np.array([[np.nan, 1.0]]), np.array([[1.0, 1.0]])))


def test_casadi_operations():
    """In x*y + sin(x) - 2*y, the products, sums and doublings count; the sine does not."""
    casadi = pytest.importorskip("casadi")
    from benchmarks.casadi_count import operations

    x, y = casadi.SX.sym("x"), casadi.SX.sym("y")
    assert operations(casadi.Function("f", [x, y], [x * y + casadi.sin(x) - 2 * y])) == 4
    assert operations(casadi.Function("f", [x, y], [x * 1 + 0 * y])) == 0


def test_closed_loops_agree():
    """Results for a mechanism with closed loops agree for all implementations."""
    from benchmarks.closed_loops import closed_loops
    from benchmarks.compare import QUICK

    (row,) = closed_loops(["stewart"], replace(QUICK, batch=3))
    assert {route.library for route in row.routes} == {"chasles", "Pinocchio"}
    assert max(route.error for route in row.routes) <= 1e-9
    assert row.speedup.single_call > 0


def test_all_ways_of_calling_agree():
    """The benchmark raises an error if a result is wrong. Times are ignored here."""
    from benchmarks.calls import BATCHES, FUNCTIONS, WAYS, measure, measure_others
    from benchmarks.timing import Rounds

    single, batched = measure(Rounds(1, 1))
    assert len(single) == sum(len(way.functions) for way in WAYS) + len(FUNCTIONS)
    assert len(batched) == sum(len(way.functions) for way in BATCHES)
    assert all(cell.seconds > 0.0 and cell.peer > 0.0 for cell in (*single, *batched))
    assert len(list(measure_others(Rounds(1, 1)))) > 8


def test_motions_agree():
    """Every row is measured, with results checked before and after; each target has a row."""
    from benchmarks.motions import measure
    from benchmarks.targets import MOTIONS
    from benchmarks.timing import Rounds

    found = measure(8, 100, Rounds(1, 1))
    assert set(MOTIONS) <= {motion.name for motion in found}
    assert all(motion.ratio > 0.0 for motion in found)


def test_exported_c_agrees():
    """All implementations agree for both kinds of states, checked before and after the timing."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed: exported C is not measured here")
    from benchmarks import exported_c
    from benchmarks.compare import QUICK
    from benchmarks.targets import EXPORTED_C

    sections = exported_c.measure(QUICK)
    assert [section.states for section in sections] == ["random", "a smooth motion"]
    for section in sections:
        labels = {route.label for route in section.routes}
        assert labels == {"rneaInParallel", "batch", *EXPORTED_C}
        assert all(section.ratio(label) > 0 for label in labels)


def test_identified_parameters_are_accurate():
    """Accuracy targets are met for an arm and a closed loop; the table has all six robots."""
    from benchmarks.command_identification import met
    from benchmarks.identified import ROBOTS, measure

    assert len(ROBOTS) == 6
    for name in ("ur5", "four-bar"):
        assert met(measure(name, 1000, 2))


def test_normal_equations_agree_with_those_of_pinocchio():
    """The benchmark raises an error if predicted torques differ."""
    from benchmarks.normal_equations import measure

    found = measure("ur5", 2000)
    assert found.difference < 1e-6
    assert min(found.ours, found.theirs) > 0.0
