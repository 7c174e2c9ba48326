"""Compare sensors with MuJoCo: a file with every sensor type, and models from packages.

`python tests/oracles/mujoco_sensors.py FOLDER...` compares all models in the given folders, for
example those of dm_control, robosuite and gymnasium_robotics.
"""

import re
import sys
import warnings
from collections import Counter
from pathlib import Path

import mujoco
import numpy as np

import chasles
from chasles import conventions

OFF = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_EQUALITY
"""Flags that disable contacts and equality constraints, which are soft in MuJoCo."""

EVERY_SENSOR = """
<mujoco model="all">
  <option magnetic="0.1 -0.4 0.3"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <geom name="post" type="box" size=".1 .2 .3" pos="1 .2 .5"/>
    <camera name="eye" pos="2 -2 2" xyaxes="1 1 0 -.5 .5 1" resolution="640 480"/>
    <body name="base" pos="0 0 1" quat=".8 .2 -.3 .5">
      <freejoint name="root"/>
      <geom type="ellipsoid" size=".2 .1 .15" mass="2"/>
      <site name="imu" pos=".05 .02 -.03" quat=".3 .8 .1 -.2"/>
      <body name="arm" pos=".2 0 .1" euler="20 30 40">
        <joint name="a" type="hinge" axis="1 2 3" range="-30 40" limited="true" margin=".05"
          armature=".02" ref="17"
          stiffness="30" springref="5"/>
        <joint name="b" type="slide" axis="0 1 1"/>
        <geom type="capsule" size=".05 .2" pos=".1 0 .05" mass="1.2"/>
        <site name="wrist" pos="0 0 .2" euler="10 20 30"/>
        <body name="palm" pos="0 .1 .2" euler="0 -40 10">
          <inertial pos=".01 .02 .03" mass=".4" diaginertia=".003 .002 .0015" quat=".9 .1 .2 .3"/>
          <geom name="pad" type="cylinder" size=".06 .03" pos=".1 .1 0"/>
          <site name="ft" pos=".02 0 .01" euler="5 6 7"/>
          <body name="finger" pos=".05 .05 .05">
            <joint name="ball" type="ball"/>
            <geom name="tip" type="box" size=".05 .02 .03" mass=".2" pos=".03 0 0"/>
            <site name="zone" type="ellipsoid" size=".4 .5 .6"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="cable"><joint joint="a" coef=".3"/><joint joint="b" coef="-.7"/></fixed>
    <spatial name="string">
      <site site="imu"/><site site="ft"/><site site="zone"/>
    </spatial>
  </tendon>
  <actuator>
    <motor name="pull" joint="b" gear="3" ctrlrange="-.5 .5" ctrllimited="true"/>
    <position name="servo" joint="a" kp="7" kv="2"/>
    <general name="reel" tendon="cable" gainprm="2" biastype="affine" biasprm=".1 .2 .3"/>
    <general name="lag" joint="b" dyntype="filter" dynprm=".3"/>
  </actuator>
  <sensor>
    <accelerometer name="s_acc" site="imu"/><gyro name="s_gyro" site="wrist"/><velocimeter
      name="s_vel" site="ft"/>
    <magnetometer name="s_mag" site="ft" cutoff=".2"/>
    <force name="s_force" site="wrist"/><torque name="s_torque" site="ft"/><force name="s_force2"
      site="ft" noise=".1"/>
    <force name="s_force3" site="imu"/>
    <touch name="s_touch" site="zone"/><rangefinder name="s_range" site="imu"/><rangefinder
      name="s_range2" site="zone"/>
    <jointpos name="s_jp" joint="a"/><jointvel name="s_jv" joint="b"/>
    <ballquat name="s_bq" joint="ball"/><ballangvel name="s_bv" joint="ball"/>
    <jointlimitpos name="s_lp" joint="a"/><jointlimitvel name="s_lv" joint="a"/>
    <framepos name="s_fp" objtype="body" objname="palm"/>
    <framepos name="s_fp2" objtype="geom" objname="tip" reftype="site" refname="imu"/>
    <framequat name="s_fq" objtype="xbody" objname="finger"/>
    <framequat name="s_fq2" objtype="geom" objname="tip" reftype="body" refname="palm"/>
    <framequat objtype="camera" objname="eye" reftype="site" refname="wrist"/>
    <framexaxis name="s_fx" objtype="site" objname="ft"/><frameyaxis name="s_fy" objtype="camera"
      objname="eye" reftype="geom" refname="pad"/>
    <framezaxis name="s_fz" objtype="geom" objname="pad" reftype="site" refname="wrist"/>
    <framelinvel name="s_flv" objtype="body" objname="finger"/>
    <framelinvel name="s_flv2" objtype="site" objname="zone" reftype="xbody" refname="arm"/>
    <frameangvel name="s_fav" objtype="xbody" objname="arm" reftype="geom" refname="tip"/>
    <framelinacc name="s_fla" objtype="body" objname="palm"/><frameangacc name="s_faa"
      objtype="geom" objname="tip"/>
    <subtreecom name="s_com" body="arm"/><subtreelinvel name="s_slv" body="palm"/><subtreeangmom
      name="s_sam" body="base"/>
    <subtreecom name="s_com0" body="world"/>
    <jointactuatorfrc name="s_jaf" joint="b"/><tendonpos name="s_tp" tendon="cable"/>
    <tendonvel name="s_tv" tendon="string"/><tendonpos name="s_tp2" tendon="string"/>
    <tendonactuatorfrc name="s_taf" tendon="cable"/><actuatorpos name="s_ap" actuator="reel"/>
    <actuatorvel name="s_av" actuator="pull"/><actuatorfrc name="s_af" actuator="servo"/>
    <actuatorfrc name="s_af2" actuator="pull" cutoff=".4"/>
    <actuatorfrc name="s_af3" actuator="lag"/>
    <e_potential name="s_ep"/><e_kinetic name="s_ek"/><clock name="s_t"/>
    <camprojection name="s_cam" site="zone" camera="eye"/>
    <insidesite name="s_in" site="zone" objtype="site" objname="ft"/>
  </sensor>
</mujoco>
"""


def states(
    robot: chasles.Robot, model: mujoco.MjModel, count: int, seed: int = 0
) -> list[tuple[mujoco.MjData, tuple[np.ndarray, ...]]]:
    """Return random states of a MuJoCo model, each with q, qd and qdd of the robot."""
    rng, found = np.random.default_rng(seed), []
    model.opt.disableflags |= OFF
    names = [model.joint(k).name or f"joint{k}" for k in range(model.njnt)]
    convention = conventions.mujoco(robot, names)
    for _ in range(count):
        data = mujoco.MjData(model)
        mujoco.mj_integratePos(model, data.qpos, 0.7 * rng.normal(size=model.nv), 1.0)
        data.qvel[:], data.ctrl[:] = rng.normal(size=model.nv), rng.normal(size=model.nu)
        data.act[:] = rng.normal(size=model.na)
        data.time = rng.uniform(0.0, 10.0)
        mujoco.mj_forward(model, data)
        x, v, a = data.qpos, data.qvel, data.qacc
        motion = (
            convention.from_position(x),
            convention.from_velocity(x, v),
            convention.from_acceleration(x, v, a),
        )
        found.append((data, motion))
    return found


def differences(path: str | Path, count: int = 3) -> tuple[dict[str, float], list[str]]:
    """Return the largest error of each sensor type, relative to max(1, value), and warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        robot = chasles.load(path, mimic=False, loops=False)
    model, worst = mujoco.MjModel.from_xml_path(str(path)), dict[str, float]()
    for data, motion in states(robot, model, count):
        values = robot.sense(*motion, ctrl=data.ctrl, act=data.act, t=data.time)
        for k in range(model.nsensor):
            name, start = model.sensor(k).name or f"sensor{k}", model.sensor_adr[k]
            if name not in values:
                continue
            expected = data.sensordata[start : start + model.sensor_dim[k]]
            scale = max(1.0, np.max(np.abs(expected), initial=0.0))
            error = float(np.max(np.abs(values[name] - expected), initial=0.0)) / scale
            kind = robot.sensor(name).kind
            worst[kind] = max(worst.get(kind, 0.0), error)
    return worst, [str(warning.message) for warning in told]


def main(folders: list[str]) -> None:
    """Compare all models in the given folders that have sensors and that MuJoCo can compile."""
    for folder in folders:
        compiled, agree, wrong, left = 0, 0, list[str](), Counter[str]()
        for path in sorted(Path(folder).rglob("*.xml")):
            try:
                count = mujoco.MjModel.from_xml_path(str(path)).nsensor
            except ValueError:
                continue  # only a part of a model, or not a model
            if not count:
                continue
            compiled += 1
            worst, told = differences(path, 2)
            left.update(m[1] for text in told if (m := re.search(r"\((\w+)\) is ignored", text)))
            if bad := {kind: error for kind, error in worst.items() if not error < 1e-9}:
                wrong.append(f"{path}: {bad}")
            agree += not bad
        print(f"{folder}: {agree} of {compiled} models with sensors agree to 1e-9")
        print(f"  left out, with a warning: {dict(left) or 'none'}")
        print(*(f"  {line}" for line in wrong), sep="\n", end="\n" * bool(wrong))


if __name__ == "__main__":
    main(sys.argv[1:])
