"""Results of simulations are written to files that the readers of motions accept."""

import sys
from pathlib import Path

import numpy as np
import pytest
from support import raises
from typer.testing import CliRunner

import chasles
from chasles import trajectory
from chasles.cli import app
from chasles.formats import motion
from chasles.view import panel

DOG = chasles.robots.quadruped()
START = DOG.keyframes["standing"]


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".parquet"])
def test_a_saved_simulation_is_read_back(tmp_path: Path, suffix: str) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    file = tmp_path / f"run{suffix}"
    run = DOG.simulate(START.q, np.linspace(-1.0, 1.0, DOG.nv), duration=0.05, dt=0.01)
    run.save(file, DOG)
    (found,) = motion.read(file, DOG.model)
    for name in ("t", "q", "qd"):
        assert np.array_equal(getattr(found, name), getattr(run, name))
    assert np.array_equal(panel.read(file, DOG).q, run.q)
    assert np.abs(trajectory.load(file, DOG)(0.05)[1] - run.qd[-1]).max() < 1e-9
    with pytest.raises(chasles.ChaslesError, match="exists"):
        run.save(file, DOG)
    run.save(file, DOG, overwrite=True)


def test_the_command_motion_reads_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arm = chasles.robots.planar(2)
    run = arm.simulate([0.1, 0.2], [0.0, 0.0], duration=0.05, dt=0.01)
    run.save("run.csv", arm)
    done = CliRunner().invoke(app, ["motion", "planar:2", "run.csv", "--differentiate"])
    assert done.exit_code == 0, done.output
    options = ("--duration", "0.01", "--no-plots", "--table", "table.csv")
    CliRunner().invoke(app, ["simulate", "planar:2", *options])
    first, table = (Path(x).read_text().split("\n")[0] for x in ("run.csv", "table.csv"))
    assert table.startswith(first)


def test_of_the_states_at_an_event_the_last_is_written(tmp_path: Path) -> None:
    rod = chasles.robots.planar(1)
    bounce = chasles.Event(lambda t, q, qd: q[0], then=lambda t, q, qd: (q, -qd), direction=-1)
    run = rod.simulate([0.1], [0.0], duration=0.5, dt=0.01, events=[bounce])
    assert not np.diff(run.t).all()
    run.save(tmp_path / "run.csv", rod)
    (found,) = motion.read(tmp_path / "run.csv", rod.model)
    assert len(found.t) == len(np.unique(run.t))
    k = int(np.searchsorted(found.t, run.events[0].t))
    assert found.qd is not None
    assert found.qd[k, 0] > 0.0


def test_what_cannot_be_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rod = chasles.robots.planar(1)
    run = rod.rollout([[0.1], [0.2]], [[0.0], [0.0]], dt=0.01, steps=3)
    with raises("E-MOTION-212"):
        run.save(tmp_path / "run.csv", rod)
    one = rod.rollout([0.1], [0.0], dt=0.01, steps=3)
    with raises("E-FILE-415"):
        one.save(tmp_path / "run.txt", rod)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with raises("E-FILE-416"):
        one.save(tmp_path / "run.parquet", rod)
    assert not list(tmp_path.iterdir())
    with raises("E-CALL-056"):
        one.save(tmp_path / "run.csv", DOG)
