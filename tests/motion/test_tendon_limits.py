"""Limits of tendons and ball joints, and dry friction of tendons: closed forms and MuJoCo."""

from pathlib import Path

import numpy as np
import pytest

import chasles
from chasles.errors import ModelError

mujoco = pytest.importorskip("mujoco")

G = 9.81

WEIGHTS = """
<mujoco>
  <worldbody>
    <body name="one"><joint name="x" type="slide" axis="0 0 1"/>
      <geom size="0.05" mass="1" contype="0" conaffinity="0"/></body>
    <body name="two" pos="1 0 0"><joint name="y" type="slide" axis="0 0 1"/>
      <geom size="0.05" mass="2" contype="0" conaffinity="0"/></body>
  </worldbody>
  <tendon>{}</tendon>
</mujoco>"""

SUM = '<joint joint="x" coef="1"/><joint joint="y" coef="0.5"/>'
TIED = f'<fixed name="tie" limited="true" range="-0.3 0.4">{SUM}</fixed>'
RUBBED = f'<fixed name="rub" frictionloss="{{}}">{SUM}</fixed>'

STRING = """
<mujoco>
  <worldbody>
    <site name="hook" pos="0 0 1"/>
    <body name="weight" pos="0.2 0 1">
      <joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
      <geom size="0.02" mass="0.5" contype="0" conaffinity="0"/><site name="eye"/></body>
  </worldbody>
  <tendon><spatial name="string" limited="true" range="0 0.5">
    <site site="hook"/><site site="eye"/></spatial></tendon>
</mujoco>"""

ROD = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody><body name="rod"><joint name="ball" type="ball" limited="true" range="0 {}"/>
    <geom type="box" pos="0 0 0.5" size="0.2 0.3 0.5" mass="1" contype="0" conaffinity="0"/>
  </body></worldbody>
</mujoco>"""


def loaded(folder: Path, text: str) -> chasles.Robot:
    """Load the robot of an MJCF text."""
    path = folder / "robot.xml"
    path.write_text(text)
    return chasles.load(path)


def held(tension: float) -> np.ndarray:
    """Return the accelerations of both weights under a tension of the tendon."""
    return np.array([tension / 1.0, 0.5 * tension / 2.0]) - G


TENSION = 1.5 * G / (1.0 + 0.125)
"""Tension (N) at which the sum x + y/2 of falling weights does not accelerate."""


@pytest.mark.parametrize(
    ("options", "tolerance"),
    [({"integrator": "rk4", "limits": True}, 1e-12), ({"contacts": "file"}, 1e-4)],
)
def test_weights_on_a_tendon_stop_and_accelerate_together(
    tmp_path: Path, options: dict[str, object], tolerance: float
) -> None:
    robot = loaded(tmp_path, WEIGHTS.format(TIED))
    run = robot.simulate([0.0, 0.0], [0.0, 0.0], duration=1.0, dt=1e-3, **options)
    length = run.q @ [1.0, 0.5]
    assert length.min() >= -0.3 - 1e-6
    assert length[-1] == pytest.approx(-0.3, abs=1e-6)
    taut = run.t > 0.5
    slopes = np.polyfit(run.t[taut], run.qd[taut], 1)[0]
    assert slopes == pytest.approx(held(TENSION), rel=tolerance)


def test_the_tendon_stops_at_the_time_of_free_fall(tmp_path: Path) -> None:
    robot = loaded(tmp_path, WEIGHTS.format(TIED))
    run = robot.simulate([0.0, 0.0], [0.0, 0.0], duration=0.4, limits=True)
    [impact] = [e for e in run.events if e.name == "impact tie lower limit"]
    assert impact.t == pytest.approx(np.sqrt(2.0 * 0.2 / G), rel=1e-12)


@pytest.mark.parametrize("friction", [5.0, 40.0])
def test_dry_friction_of_a_tendon_slows_it_or_holds_it(tmp_path: Path, friction: float) -> None:
    robot = loaded(tmp_path, WEIGHTS.format(RUBBED.format(friction)))
    options = {"integrator": "time-stepping", "dissipation": True}
    run = robot.simulate([0.0, 0.0], [0.0, 0.0], duration=0.5, dt=1e-3, **options)
    slopes = run.qd[-1] / run.t[-1]
    assert slopes == pytest.approx(held(min(friction, TENSION)), rel=1e-9)


def test_a_string_makes_a_pendulum(tmp_path: Path) -> None:
    robot = loaded(tmp_path, STRING)
    taut = {"integrator": "rk4", "limits": True}
    run = robot.simulate([0.3, 0.0], [0.0, 0.0], duration=1.5, dt=1e-3, **taut)
    x, z = 0.2 + run.q[:, 0], run.q[:, 1]
    assert np.hypot(x, z) == pytest.approx(0.5, abs=1e-9)
    energy = 0.5 * np.sum(run.qd**2, axis=1) + G * z
    assert energy == pytest.approx(0.0, abs=1e-8)
    stepped = robot.simulate([0.3, 0.0], [0.0, 0.0], duration=0.5, dt=5e-4, contacts="file")
    assert stepped.q[-1] == pytest.approx(run.q[500], abs=5e-3)


def test_a_slack_string_falls_freely(tmp_path: Path) -> None:
    robot = loaded(tmp_path, STRING)
    run = robot.simulate([0.0, 0.0], [0.0, 0.0], duration=0.2, limits=True)
    assert run.q[-1] == pytest.approx([0.0, -0.5 * G * 0.04], abs=1e-12)


@pytest.mark.parametrize("turned", [1.0, -1.0])
def test_a_ball_joint_stops_at_its_angle(tmp_path: Path, turned: float) -> None:
    robot = loaded(tmp_path, ROD.format(0.8))
    q, qd = turned * np.array([1.0, 0.0, 0.0, 0.0]), np.array([1.0, 0.4, 0.3])
    for options in ({"limits": True}, {"contacts": "file"}):
        run = robot.simulate(q, qd, duration=1.5, dt=1e-3, **options)
        angle = 2.0 * np.arccos(np.minimum(np.abs(run.q[:, 0]), 1.0))
        assert angle.max() <= 0.8 + 5e-4
        assert angle[-1] == pytest.approx(0.8, abs=5e-4)
    # At the limit, the rod still rotates about its own axis and sideways.
    assert np.linalg.norm(run.qd[-1]) > 0.0


def test_a_ball_joint_at_its_limit_moves_on_the_cone(tmp_path: Path) -> None:
    """A rod that slides along its cone keeps its energy.

    This requires the derivative of the limit's direction.
    """
    robot = loaded(tmp_path, ROD.format(0.8)).with_gravity([0.0, 0.0, 0.0])
    q = np.array([np.cos(0.4), np.sin(0.4), 0.0, 0.0])
    run = robot.simulate(q, [0.0, 1.0, 0.5], duration=1.0, dt=1e-3, limits=True)
    energy = robot.kinetic_energy(run.q, run.qd)
    assert energy == pytest.approx(energy[0], rel=1e-9)
    angle = 2.0 * np.arccos(np.minimum(np.abs(run.q[:, 0]), 1.0))
    assert angle.max() <= 0.8 + 1e-9


def test_limits_are_the_stiff_limit_of_mujoco(tmp_path: Path) -> None:
    """MuJoCo's soft limit with a short time constant and high impedance gives the same motion."""
    soft = 'solreflimit="0.0004 1" solimplimit="0.9999 0.9999 0.001"'
    text = WEIGHTS.format(TIED.replace("limited", f"{soft} limited"))
    robot = loaded(tmp_path, text)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep = 2e-5
    data = mujoco.MjData(model)
    while data.time < 0.5 - 1e-9:
        mujoco.mj_step(model, data)
    run = robot.simulate([0.0, 0.0], [0.0, 0.0], duration=0.5, limits=True)
    assert run.q[-1] == pytest.approx(data.qpos, abs=1e-3)
    assert run.qd[-1] == pytest.approx(data.qvel, abs=5e-3)


def test_other_integrators_refuse_dry_friction_of_tendons(tmp_path: Path) -> None:
    robot = loaded(tmp_path, WEIGHTS.format(RUBBED.format(5.0)))
    for compiled in (None, False):
        with pytest.raises(ModelError, match="E-MOTION-147"):
            robot.simulate(
                [0.0, 0.0], [0.0, 0.0], duration=0.1, dissipation=True, compiled=compiled
            )


@pytest.mark.parametrize("suffix", [".xml", ".toml"])
def test_files_keep_limits_and_friction(tmp_path: Path, suffix: str) -> None:
    both = f'<fixed name="tie" limited="true" range="-0.3 0.4" frictionloss="2">{SUM}</fixed>'
    for text in (WEIGHTS.format(both), ROD.format(0.8)):
        robot = loaded(tmp_path, text)
        chasles.save(robot, tmp_path / f"again{suffix}", overwrite=True)
        again = chasles.load(tmp_path / f"again{suffix}")
        one, two = (x.model.source for x in (robot, again))
        kept = [(x.limits, x.friction) for x in one.rotors]
        assert kept == [(x.limits, x.friction) for x in two.rotors]
        assert [x.limits for x in one.joints] == [x.limits for x in two.joints]
