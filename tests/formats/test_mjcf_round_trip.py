"""Sensors, actuators, tendons and keyframes survive writing and reading of MJCF files."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import chasles
from chasles.errors import LeftOutWarning

pytest.importorskip("mujoco")

TEXT = """
<mujoco model="machine">
  <compiler angle="radian"/>
  <option magnetic="0.1 -0.2 0.4"/>
  <worldbody>
    <site name="post" pos="0.4 0 1" euler="0.3 0.1 0"/>
    <body name="base" pos="0 0 1">
      <freejoint name="root"/>
      <geom size="0.1 0.05 0.2" type="box" mass="2"/>
      <site name="imu" pos="0.02 0 0.1" euler="0.1 0.2 0.3"/>
      <body name="arm" pos="0.1 0 0.1">
        <joint name="yaw" axis="0 0 1" range="-1 1" damping="0.2"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0.4 0.1 0" mass="1"/>
        <site name="tip" type="box" size="0.05 0.04 0.03" pos="0.4 0.1 0" euler="0 0.4 0.2"/>
        <body name="hand" pos="0.4 0.1 0">
          <joint name="wrist" type="ball" range="0 1.5" limited="true"/>
          <geom type="ellipsoid" size="0.05 0.08 0.04" pos="0.1 0.02 0" mass="0.5"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="sum" stiffness="9" springlength="0.1 0.3" limited="true" range="-2 2"
      frictionloss="0.5"><joint joint="yaw" coef="0.8"/></fixed>
    <spatial name="rope" stiffness="30" damping="2"><site site="post"/><site site="tip"/></spatial>
  </tendon>
  <actuator>
    <position name="servo" joint="yaw" kp="20" kv="1"/>
    <general name="lag" tendon="rope" dyntype="filter" dynprm="0.2" gainprm="2" actrange="-1 1"/>
  </actuator>
  <sensor>
    <accelerometer name="acc" site="imu" noise="0.1" cutoff="90"/>
    <gyro name="gyro" site="imu"/><velocimeter name="speed" site="tip"/>
    <magnetometer name="north" site="imu"/><force name="force" site="tip"/>
    <torque name="torque" site="tip"/><touch name="touch" site="tip"/>
    <framepos name="place" objtype="body" objname="hand" reftype="site" refname="imu"/>
    <framequat name="turn" objtype="site" objname="tip"/>
    <framexaxis name="axis" objtype="geom" objname="" /></sensor>
  <keyframe>
    <key name="home" qpos="0.1 0.2 1.3 1 0 0 0 0.4 1 0 0 0" qvel="1 0 0 0 0 2 0.3 0 0 0"
      ctrl="0.2 0.7" act="0.1"/>
  </keyframe>
</mujoco>"""

REST = """
    <framelinvel name="v" objtype="site" objname="tip"/>
    <frameangvel name="w" objtype="xbody" objname="arm" reftype="xbody" refname="base"/>
    <framelinacc name="a" objtype="site" objname="tip"/>
    <frameangacc name="aa" objtype="site" objname="tip"/>
    <subtreecom name="com" body="base"/><subtreelinvel name="comv" body="arm"/>
    <subtreeangmom name="spin" body="base"/>
    <jointpos name="jp" joint="yaw"/><jointvel name="jv" joint="yaw"/>
    <jointlimitpos name="jl" joint="yaw"/><jointactuatorfrc name="jf" joint="yaw"/>
    <ballquat name="bq" joint="wrist"/><ballangvel name="bw" joint="wrist"/>
    <tendonpos name="tp" tendon="rope"/><tendonvel name="tv" tendon="rope"/>
    <tendonactuatorfrc name="tf" tendon="rope"/>
    <actuatorpos name="ap" actuator="servo"/><actuatorvel name="av" actuator="lag"/>
    <actuatorfrc name="af" actuator="servo"/>
    <insidesite name="in" site="tip" objtype="xbody" objname="hand"/>
    <e_potential name="ep"/><e_kinetic name="ek"/><clock name="time"/></sensor>"""


@pytest.fixture
def machine(tmp_path: Path) -> tuple[chasles.Robot, chasles.Robot]:
    text = TEXT.replace('<framexaxis name="axis" objtype="geom" objname="" /></sensor>', REST)
    path, again = tmp_path / "machine.xml", tmp_path / "again.xml"
    path.write_text(text)
    with warnings.catch_warnings():  # force sensors ignore spatial tendons
        warnings.simplefilter("ignore", LeftOutWarning)
        robot = chasles.load(path)
        notes = chasles.save(robot, again)
        assert not [note for note in notes or () if "sensor" in note]
        return robot, chasles.load(again)


def test_sensors_read_the_same(machine: tuple[chasles.Robot, chasles.Robot]) -> None:
    robot, again = machine
    assert list(again.sensors) == list(robot.sensors)
    rng = np.random.default_rng(0)
    for _ in range(3):
        q, qd, qdd = robot.random(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
        given = {"ctrl": rng.normal(size=2), "act": rng.normal(size=1)}
        one, two = (x.sense(q, qd, qdd, **given) for x in (robot, again))
        for name in robot.sensors:
            assert two[name] == pytest.approx(one[name], rel=1e-9, abs=1e-9), name
    acc = next(x for x in again.model.source.sensors if x.name == "acc")
    assert (acc.cutoff, acc.noise.deviation) == (90.0, 0.1)


def test_actuators_tendons_and_keyframes_are_the_same(
    machine: tuple[chasles.Robot, chasles.Robot],
) -> None:
    robot, again = machine
    rng = np.random.default_rng(1)
    assert again.actuators == robot.actuators
    q, qd = robot.random(rng), rng.normal(size=robot.nv)
    given = rng.normal(size=2), rng.normal(size=1)
    assert again.actuate(q, qd, *given) == pytest.approx(robot.actuate(q, qd, *given), rel=1e-12)
    for part, other in zip(robot.keyframes["home"], again.keyframes["home"], strict=True):
        assert other == pytest.approx(part, rel=1e-12, abs=1e-15)
    one, two = robot.model.source.rotors, again.model.source.rotors
    assert [(x.limits, x.friction) for x in one] == [(x.limits, x.friction) for x in two]
    springs = [x.spring_forces(q) for x in machine]
    assert springs[1] == pytest.approx(springs[0], rel=1e-9, abs=1e-12)
