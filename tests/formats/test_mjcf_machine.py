"""Springs, tendons, actuators, keyframes and fluid of MJCF files, compared with MuJoCo."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest
from benchmarks.machines import TOLERANCE, compared

import chasles
from chasles.checks.floats import evaluate
from chasles.errors import LeftOutWarning

mujoco = pytest.importorskip("mujoco")

MACHINE = """
<mujoco>
  <compiler angle="radian"/>
  <option density="900" viscosity="0.4" wind="1 -2 0.5"/>
  <worldbody>
    <site name="post" pos="0.4 0 1" euler="0.3 0.1 0"/>
    <body name="base" pos="0 0 1" gravcomp="0.6">
      <joint name="lift" type="slide" axis="0 0 1" stiffness="40" springref="0.2" damping="3"
        actuatorfrcrange="-1 4"/>
      <geom size="0.1 0.05 0.2" type="box" mass="2"/>
      <body name="arm" pos="0.1 0 0.1" gravcomp="0.3">
        <joint name="yaw" axis="0 0 1" ref="0.5" stiffness="7" springref="0.1" damping="0.2"/>
        <joint name="pitch" axis="0 1 0" pos="0 0 0.05" actuatorgravcomp="true"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0.4 0.1 0" mass="1"/>
        <site name="tip" pos="0.4 0.1 0" euler="0 0.4 0.2"/>
        <body name="ball" pos="0.4 0.1 0">
          <joint name="wrist" type="ball" stiffness="2" damping="0.1"/>
          <geom type="ellipsoid" size="0.05 0.08 0.04" pos="0.1 0.02 0" mass="0.5"/>
          <site name="finger" pos="0.15 0 0.02"/>
        </body>
      </body>
    </body>
    <body name="loose" pos="0 1 1.2">
      <joint name="free" type="free" stiffness="5"/>
      <geom type="box" size="0.1 0.2 0.05" pos="0.05 0 0" mass="1"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="sum" stiffness="9" springlength="0.1 0.3" damping="0.7" actuatorfrcrange="-2 2">
      <joint joint="lift" coef="0.8"/><joint joint="yaw" coef="-1.1"/>
    </fixed>
    <spatial name="rope" stiffness="30" springlength="0.2" damping="2">
      <site site="post"/><site site="tip"/><site site="finger"/>
      <pulley divisor="2"/><site site="post"/><site site="finger"/>
    </spatial>
  </tendon>
  <actuator>
    <motor name="hoist" joint="lift" gear="3" ctrlrange="-1 1" ctrllimited="true"/>
    <position name="servo" joint="yaw" kp="20" kv="1"/>
    <velocity name="spin" joint="pitch" kv="2" forcerange="-1 1"/>
    <intvelocity name="slow" joint="yaw" kp="5" actrange="-1 1"/>
    <general name="lag" joint="pitch" dyntype="filter" dynprm="0.2" gainprm="2" biastype="affine"
      biasprm="0.1 -0.4 -0.3"/>
    <general name="stiffer" tendon="rope" gaintype="affine" gainprm="1 0.5 0.2" gear="2"/>
    <motor name="pull" tendon="sum" gear="4"/>
    <motor name="pull2" tendon="sum" gear="-2"/>
    <motor name="twist" joint="wrist" gear="1 2 3"/>
    <motor name="twist2" jointinparent="wrist" gear="1 0.5 -1"/>
    <motor name="thrust" joint="free" gear="1 2 3 0.1 0.2 0.3"/>
    <motor name="thrust2" jointinparent="free" gear="1 2 3 0.1 0.2 0.3"/>
    <motor name="jet" site="finger" gear="1 0.2 0.3 0.1 0 0.2"/>
    <general name="aim" site="finger" refsite="tip" gear="1 0.4 0.2 0 0 0" biastype="affine"
      biasprm="0 -3 -1"/>
    <general name="turn" site="finger" refsite="post" gear="0 0.4 0.2 0.3 0.1 0" biastype="affine"
      biasprm="0 -3 -1"/>
    <damper name="brake" joint="yaw" kv="3" ctrlrange="0 1"/>
    <cylinder name="piston" joint="lift" timeconst="0.3" area="0.7" bias="0.1 -0.5 -0.2"/>
    <general name="crank" cranksite="finger" slidersite="post" cranklength="0.9" biastype="affine"
      biasprm="0 -2 -0.5"/>
  </actuator>
  <keyframe>
    <key name="up" qpos="0.3 0.7 0.1 0.8 0.6 0 0 1 2 3 0.6 0 0.8 0"
      qvel="1 2 3 0.1 0.2 0.3 4 5 6 0.4 0.5 0.6" act="0.3 0.4 0.5"
      ctrl="1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18"/>
  </keyframe>
</mujoco>
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    path = tmp_path / "machine.xml"
    path.write_text(MACHINE, "utf-8")
    return path


def test_every_spring_tendon_and_actuator_accelerates_as_in_mujoco(machine: Path) -> None:
    found = compared(machine)
    assert found.unsupported == ()
    assert found.passive <= TOLERANCE
    assert found.actuated <= TOLERANCE


def gymnasium_models() -> list[str]:
    spec = importlib.util.find_spec("gymnasium")
    if spec is None or spec.origin is None:
        return []
    return sorted(map(str, Path(spec.origin).parent.glob("envs/mujoco/assets/*.xml")))


@pytest.mark.parametrize("path", gymnasium_models(), ids=lambda path: Path(path).stem)
def test_models_of_gymnasium_accelerate_as_in_mujoco(path: str) -> None:
    found = compared(Path(path))
    assert found.agrees
    assert not found.unsupported


def test_keyframes_and_start_are_those_of_the_file(machine: Path) -> None:
    robot = chasles.load(machine)
    model = mujoco.MjModel.from_xml_path(str(machine))
    convention = chasles.conventions.mujoco(robot)
    key = robot.keyframes["up"]
    assert np.allclose(convention.to_position(robot.neutral()), model.qpos0, rtol=0, atol=1e-15)
    assert np.allclose(convention.to_position(key.q), model.key_qpos[0], rtol=0, atol=1e-15)
    velocity = convention.to_velocity(key.q, key.qd)
    assert np.allclose(velocity, model.key_qvel[0], rtol=0, atol=1e-14)
    assert np.array_equal(key.ctrl, model.key_ctrl[0])
    assert np.array_equal(key.act, model.key_act[0])


def test_activations_change_at_the_rates_of_mujoco(machine: Path) -> None:
    robot, model = chasles.load(machine), mujoco.MjModel.from_xml_path(str(machine))
    data, rng = mujoco.MjData(model), np.random.default_rng(1)
    data.ctrl[:], data.act[:] = rng.normal(size=model.nu), rng.normal(size=model.na)
    mujoco.mj_forward(model, data)
    state = robot.neutral(), np.zeros(robot.nv), data.ctrl, data.act
    (rate,) = evaluate(robot.model, "activation_rate", state)
    assert robot.actuators.active == ("slow", "lag", "piston")
    assert np.allclose(rate, data.act_dot, rtol=1e-14)


@pytest.mark.parametrize("suffix", [".toml", ".xml"])
def test_files_keep_the_machine(machine: Path, tmp_path: Path, suffix: str) -> None:
    robot = chasles.load(machine)
    again_at = tmp_path / f"again{suffix}"
    chasles.save(robot, again_at)
    again, rng = chasles.load(again_at), np.random.default_rng(2)
    q, qd = robot.random(rng), rng.normal(size=robot.nv)
    ctrl, act = rng.normal(size=len(robot.actuators)), rng.normal(size=3)
    for function, arrays in (("bias_forces", (q, qd)), ("actuate", (q, qd, ctrl, act))):
        (here,), (there,) = (
            evaluate(x.model.frictionless(), function, arrays) for x in (robot, again)
        )
        assert np.allclose(here, there, rtol=0, atol=1e-12 * np.max(np.abs(here))), function
    assert again.actuators == robot.actuators
    assert np.allclose(again.keyframes["up"].qd, robot.keyframes["up"].qd, rtol=0, atol=1e-14)


def test_parts_that_are_not_supported_are_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "muscle.xml"
    path.write_text(
        '<mujoco><worldbody><body><joint name="j"/><geom size="0.1"/></body></worldbody>'
        '<actuator><muscle name="biceps" joint="j" lengthrange="0 1"/></actuator></mujoco>',
        "utf-8",
    )
    with pytest.warns(LeftOutWarning, match="biceps"):
        robot = chasles.load(path)
    assert robot.actuators == ("biceps",)


def test_springs_are_left_out_with_a_warning(machine: Path) -> None:
    with pytest.warns(LeftOutWarning, match="springs"):
        robot = chasles.load(machine, springs=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chasles.load(machine)
    (found,) = evaluate(robot.model, "spring_forces", (robot.random(seed=0),))
    assert not np.any(found)
