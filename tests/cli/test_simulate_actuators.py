"""`chasles simulate` with actuators and keyframes, and `chasles compare` along the result."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import chasles
from chasles.cli import app

pytest.importorskip("mujoco")

LEG = """
<mujoco model="leg">
  <compiler angle="radian"/>
  <worldbody><body name="thigh"><joint name="hip" axis="0 1 0" damping="1"/>
    <geom type="capsule" size="0.03" fromto="0 0 0  0 0 -0.3" mass="1"/>
    <body name="shank" pos="0 0 -0.3"><joint name="knee" axis="0 1 0" damping="0.5"/>
      <geom type="capsule" size="0.02" fromto="0 0 0  0 0 -0.3" mass="0.5"/></body></body>
  </worldbody>
  <actuator>
    <position name="servo" joint="hip" kp="80" kv="4"/>
    <general name="lag" joint="knee" gainprm="2" dyntype="filter" dynprm="0.05"/>
  </actuator>
  <keyframe><key name="crouch" qpos="0.5 -1.0" ctrl="0.5 1" act="0.2"/></keyframe>
</mujoco>"""


@pytest.fixture
def leg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> chasles.Robot:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leg.xml").write_text(LEG)
    return chasles.load(tmp_path / "leg.xml")


def called(*words: str, status: int = 0) -> str:
    done = CliRunner().invoke(app, [*words])
    assert done.exit_code == status, done.output
    return done.output


def last(folder: str) -> np.ndarray:
    with np.load(Path(folder) / "motion.npz") as found:
        return np.concatenate([found["q"][-1], found["qd"][-1]])


OPTIONS = ("--duration", "0.2", "--dissipation", "--no-plots")


def expected(robot: chasles.Robot, ctrl: list[float]) -> np.ndarray:
    key = robot.keyframes["crouch"]
    run = robot.simulate(
        key.q, key.qd, ctrl=ctrl, act=key.act, duration=0.2, dissipation=True, dt=1e-3
    )
    return np.concatenate([run.q[-1], run.qd[-1]])


def test_a_keyframe_with_its_controls(leg: chasles.Robot) -> None:
    called("simulate", "leg.xml", "--keyframe", "crouch", "--control", "actuators", *OPTIONS)
    assert last("simulation") == pytest.approx(expected(leg, [0.5, 1.0]), rel=1e-9)


def test_controls_by_name_and_in_a_scenario(leg: chasles.Robot) -> None:
    given = ("--keyframe", "crouch", "--ctrl", "servo=0.2", *OPTIONS)
    called("simulate", "leg.xml", *given, "-o", "one")
    assert last("one") == pytest.approx(expected(leg, [0.2, 1.0]), rel=1e-9)
    called("simulate", "leg.xml", *given, "--write-scenario", "leg.toml")
    called("simulate", "leg.toml", "--no-plots", "-o", "two")
    assert np.array_equal(last("two"), last("one"))


def test_comparing_along_a_simulation(leg: chasles.Robot) -> None:
    called("simulate", "leg.xml", "--keyframe", "crouch", "--ctrl", "0.4,0.1", *OPTIONS)
    told = called("compare", "leg.xml", "--with", "mujoco", "--motion", "simulation", "--json")
    assert json.loads(told)["ok"]
    heavier = LEG.replace('mass="0.5"', 'mass="0.6"')
    Path("other.xml").write_text(heavier)
    words = ("compare", "leg.xml", "--with", "mujoco", "--file", "other.xml")
    told = called(*words, "--motion", "simulation", "--json", status=1)
    assert "mass" in json.loads(told)["first"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--keyframe", "crouch", "--random", "1"), "E-SCENARIO-033"),
        (("--ctrl", "0,0", "--disturbance", "effort=1,hold=0.1,seed=1"), "E-SCENARIO-034"),
        (("--keyframe", "jump"), "E-SCENARIO-035"),
        (("--ctrl", "motor=1"), "E-SCENARIO-037"),
    ],
)
def test_what_does_not_suit_the_robot(
    leg: chasles.Robot, words: tuple[str, ...], code: str
) -> None:
    assert code in called("simulate", "leg.xml", *words, *OPTIONS, status=2)


def test_a_robot_without_actuators(leg: chasles.Robot) -> None:
    told = called("simulate", "puma560", "--ctrl", "1", *OPTIONS, status=2)
    assert "E-SCENARIO-036" in told
