"""Motions with too many steps are rejected before they begin, by functions and commands."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import raises
from typer.testing import CliRunner

import chasles
from chasles.cli import app
from chasles.motion.options import MOST_STEPS

ROBOT = chasles.robots.planar(1)


@pytest.mark.parametrize("how", [{}, {"compiled": False}, {"integrator": "dopri5"}])
@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({"duration": 1e300}, "1e+303"),
        ({"duration": 1.0, "dt": 1e-300}, "1e+300"),
        ({"duration": 1e300, "dt": 1e-300}, "inf"),
        ({"duration": 10.0 * MOST_STEPS, "dt": 1.0}, "1e+11"),
        ({"steps": 10**11, "dt": 1e-9}, "1e+11"),
    ],
)
def test_simulate(given: dict[str, Any], count: str, how: dict[str, Any]) -> None:
    began = time.process_time()
    with raises("E-MOTION-120", f"{count} steps"):
        ROBOT.simulate([0.0], [0.0], **given, **how)
    assert time.process_time() - began < 30.0


def test_the_largest_number_of_steps_begins() -> None:
    found = ROBOT.simulate([0.0], [0.0], duration=1e-3 * MOST_STEPS, dt=1e-3, every=10, steps=20)
    assert np.array_equal(found.t, [0.0, 0.01, 0.02])


def test_rollouts() -> None:
    for call in (
        ROBOT.rollout,
        lambda *a, **k: ROBOT.rollout_pullback(*a, covectors=(None, None), **k),
    ):
        with raises("E-MOTION-121", "10,000,000,001 steps"):
            call([0.0], [0.0], dt=1e-3, steps=MOST_STEPS + 1)
        with raises("E-MOTION-122", "1e+300 s"):
            call([0.0], [0.0], dt=1e-3, steps=2, start=1e300)


@pytest.mark.parametrize("how", [{}, {"compiled": False}, {"integrator": "dopri5"}])
def test_time_goes_on(how: dict[str, Any]) -> None:
    with raises("E-MOTION-122", "1e+300 s"):
        ROBOT.simulate([0.0], [0.0], duration=1.0, start=1e300, **how)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["planar:1", "--duration", "1e12"], "E-MOTION-120"),
        (["planar:1", "--dt", "1e-300"], "E-MOTION-120"),
        (["planar:1", "--integrator", "dopri5", "--duration", "1e12"], "E-MOTION-120"),
        (["many.toml"], "E-MOTION-120"),
        (["planar:1", "--disturbance", "effort=1,hold=1e-300,seed=1"], "E-SCENARIO-030"),
    ],
)
def test_commands_and_scenarios(
    words: list[str], code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("many.toml").write_text('format = "scenario"\nrobot = "planar:1"\nduration = 1e12\n')
    result = CliRunner().invoke(app, ["simulate", *words], env={"COLUMNS": "80"})
    assert result.exit_code == 2
    assert code in result.output, result.output
    assert not Path("simulation").exists()
