"""`chasles sweep`: grids and random values of a scenario, as one dataset."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import dataset
from support import raises
from typer.testing import CliRunner

import chasles
from chasles.cli import sweep as work
from chasles.cli.app import app
from chasles.cli.axes import parsed
from chasles.cli.scenario import read, with_flags
from chasles.cli.scene import loaded, made

SCENARIO = """
format = "scenario"
robot = "planar:2"
duration = 0.05
dt = 0.005
[start]
q = {joint1 = 0.3}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    return path


def command(*words: Any) -> Any:
    return CliRunner().invoke(app, ["sweep", *map(str, words)])


def table(folder: Path) -> dict[str, np.ndarray]:
    """Return the dataset as any reader of Parquet sees it."""
    found = dataset.dataset(folder, format="parquet").to_table()
    return {name: found[name].to_numpy() for name in found.column_names}


def test_a_grid_has_the_runs_of_simulate(scenario: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Final states equal those of `robot.simulate`, up to rounding.

    They are not bitwise equal, because masses are inputs of one program. Tables have four runs.
    """
    monkeypatch.setattr(work, "RUNS", 4)
    over = ("--over", "link2.mass=0.5,2", "--over", "start.qd.joint2=-1:1:3")
    answer = command(scenario, *over, "-o", tmp_path / "out", "--json")
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["runs"] == 6
    assert sorted(os.listdir(tmp_path / "out")) == ["part-000000.parquet", "part-000001.parquet"]
    found = table(tmp_path / "out")
    assert found["run"].tolist() == list(range(6))
    assert found["link2.mass"].tolist() == [0.5, 0.5, 0.5, 2.0, 2.0, 2.0]
    assert found["start.qd.joint2"].tolist() == [-1.0, 0.0, 1.0] * 2
    for k in range(6):
        robot = chasles.robots.planar(2).with_parameters({"link2.mass": found["link2.mass"][k]})
        qd = [0.0, found["start.qd.joint2"][k]]
        run = robot.simulate([0.3, 0.0], qd, duration=0.05, dt=0.005)
        for name, exact in (
            ("joint1.q", run.q[-1, 0]),
            ("joint2.q", run.q[-1, 1]),
            ("joint1.qd", run.qd[-1, 0]),
            ("joint2.qd", run.qd[-1, 1]),
            ("kinetic", robot.kinetic_energy(run.q, run.qd)[-1]),
            ("potential", robot.potential_energy(run.q)[-1]),
        ):
            assert found[name][k] == pytest.approx(exact, rel=1e-12, abs=1e-13)
    assert np.all(found["energy.change"] < 1e-6)
    assert not found["failed"].any()


@pytest.mark.parametrize(
    ("extra", "over", "shared"),
    [
        ("", "link2.mass=1:2:3", True),
        ('[control]\nlaw = "pd"\nstiffness = 3\ndamping = 1\n', "link2.mass=1:2:3", True),
        ('[control]\nlaw = "gravity"\n', "link2.mass=1:2:3", False),
        ("", "joint1.damping=1:2:3", False),
        ("", "start.qd.joint1=1:2:3", False),
    ],
)
def test_one_program_serves_all_masses(
    extra: str, over: str, shared: bool, scenario: Path, tmp_path: Path
) -> None:
    """All masses share a program unless the control law uses the robot.

    The results always equal those of individual robots.
    """
    scenario.write_text(SCENARIO + extra)
    given = with_flags(read(str(scenario)), {})
    swept = work.Sweep(given, loaded(given), parsed([over], None, 0))
    for run in range(3):
        _, changed = swept._given(run)
        assert swept._shared(changed) is shared
        robot = chasles.robots.planar(2)
        robot = robot.with_parameters(changed) if changed else robot
        alone = made(with_flags(given, swept._given(run)[0]), robot=robot).simulate()
        _, found = swept.simulated(run)
        np.testing.assert_allclose(found.q, alone.q, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(found.qd, alone.qd, rtol=1e-11, atol=1e-12)


def test_random_values_depend_on_the_seed_and_the_run(scenario: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        over = ("--over", "start.q.joint2=normal(1,0.1)", "--over", "start.qd.joint1=uniform(2,3)")
        words = (scenario, *over, "--samples", 20, "--seed", seed, "-o", tmp_path / name)
        assert command(*words).exit_code == 0
    a, b, c = (table(tmp_path / name) for name in "abc")
    assert all(np.array_equal(a[name], b[name]) for name in a)
    assert not np.any(a["start.q.joint2"] == c["start.q.joint2"])
    assert abs(a["start.q.joint2"].mean() - 1.0) < 0.1
    assert 2.0 <= a["start.qd.joint1"].min() < a["start.qd.joint1"].max() <= 3.0


def test_every_state(scenario: Path, tmp_path: Path) -> None:
    answer = command(scenario, "--over", "duration=0.01,0.02", "--motions", "-o", tmp_path / "out")
    assert answer.exit_code == 0, answer.output
    found = table(tmp_path / "out")
    assert found["run"].tolist() == [0.0] * 3 + [1.0] * 5
    np.testing.assert_allclose(found["t"], 0.005 * np.array([0, 1, 2, 0, 1, 2, 3, 4]))
    run = chasles.robots.planar(2).simulate([0.3, 0.0], [0.0, 0.0], duration=0.02, dt=0.005)
    assert np.array_equal(found["joint1.q"][3:], run.q[:, 0])


def test_an_interrupted_sweep_continues(scenario: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(work, "RUNS", 2)
    words = (scenario, "--over", "start.q.joint2=0:1:6", "-o", tmp_path / "out")
    real = work.Sweep.rows

    def stopped(self: Any, run: int, before: Any) -> Any:
        if run == 3:
            raise KeyboardInterrupt
        return real(self, run, before)

    monkeypatch.setattr(work.Sweep, "rows", stopped)
    assert command(*words).exit_code == 130
    assert not [name for name in os.listdir(tmp_path / "out") if name.startswith(".")]
    assert (tmp_path / "out" / "part-000000.parquet").exists()
    assert not (tmp_path / "out" / "part-000001.parquet").exists()
    monkeypatch.setattr(work.Sweep, "rows", real)
    answer = command(*words, "--json")
    told = json.loads(answer.stdout)
    assert told["runs"] == 6
    assert 2 <= told["resumed"] <= 4
    assert table(tmp_path / "out")["run"].tolist() == list(range(6))
    other = command(scenario, "--over", "start.q.joint2=0:2:6", "-o", tmp_path / "out")
    assert "E-CLI-272" in other.output


def test_a_run_that_diverges_is_counted(scenario: Path, tmp_path: Path) -> None:
    """A step of 0.1 s diverges for a gain of 1e7; the other run is kept."""
    text = SCENARIO.replace("0.005", "0.1").replace("0.05", "20.0")
    scenario.write_text(text + '[control]\nlaw = "pd"\nstiffness = 1\ndamping = 1\n')
    words = (scenario, "--over", "control.stiffness=0.1,1e7", "-o", tmp_path / "out", "--json")
    answer = command(*words)
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["failed"] == 1
    found = table(tmp_path / "out")
    assert found["failed"].tolist() == [0.0, 1.0]
    assert np.isfinite(found["joint1.q"][0])
    assert np.isnan(found["joint1.q"][1])


def test_refusals(scenario: Path, tmp_path: Path) -> None:
    for over, code in (
        ("link2.mass", "E-SWEEP-001"),
        ("link2.mass=1:2:0", "E-SWEEP-001"),
        ("link2.mass=normal(1,-1)", "E-SWEEP-001"),
        ("link2.mass=inf", "E-SWEEP-001"),
        ("link2.mass=normal(1,1)", "E-SWEEP-003"),
        ("link9.mass=1", "link9"),
        ("start.q=1", "E-SCENARIO-019"),
        ("start.p.joint1=1", "E-DH-090"),
    ):
        answer = command(scenario, "--over", over, "-o", tmp_path / "out")
        assert answer.exit_code == 2, over
        assert code in answer.output, answer.output
    for words, code in (((), "E-SWEEP-004"), (("--over", "dt=1", "--over", "dt=2"), "E-SWEEP-002")):
        assert code in command(scenario, *words, "-o", tmp_path / "out").output
    with raises("E-SWEEP-005", "runs"):
        parsed([f"a{k}=0:1:1000000" for k in range(2)], None, 0)
    assert not (tmp_path / "out").exists()


def test_on_a_cluster(scenario: Path, tmp_path: Path, monkeypatch: Any) -> None:
    distributed = pytest.importorskip("distributed")
    over = ("--over", "link2.mass=uniform(1,2)", "--samples", 70)
    assert command(scenario, *over, "-o", tmp_path / "here").exit_code == 0
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as made:
        where = ("--cluster", made.scheduler_address)
        answer = command(scenario, *over, "-o", tmp_path / "there", *where)
    assert answer.exit_code == 0, answer.output
    here, there = table(tmp_path / "here"), table(tmp_path / "there")
    assert all(np.array_equal(here[name], there[name]) for name in here)
