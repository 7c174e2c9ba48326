"""Robots from files land and stand under PD control, in steps of 2 and 5 ms.

Each robot is dropped from 5 cm and stands for 10 s. The stiffness of the ankles exceeds m g h, the
moment per radian with which gravity tips the robot over.
"""

import itertools
import re
import warnings
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np
import pytest

import chasles
from chasles import contact

HEIGHT = 0.05


@dataclass(frozen=True)
class Robot:
    """File of a package, feet, posture by patterns of joint names, and gains."""

    file: str
    feet: tuple
    posture: dict = field(default_factory=dict)
    stiffness: float = 20.0
    damping: float = 0.5
    package: str = "example-robot-data"


def soles(names, size, center):
    return tuple(contact.Box(name, size, center) for name in names)


ROBOTS = {
    "solo12": Robot(
        "solo12.urdf",
        tuple(contact.Sphere(f"{leg}_FOOT", 0.016) for leg in ("FL", "FR", "HL", "HR")),
        {"^F._HFE": 0.7, "^F._KFE": -1.4, "^H._HFE": -0.7, "^H._KFE": 1.4},
    ),
    "go2": Robot(
        "go2.urdf",
        tuple(contact.Sphere(f"{leg}_foot", 0.022) for leg in ("FL", "FR", "RL", "RR")),
        {"thigh": 0.8, "calf": -1.6}, 100.0, 3.0,
    ),
    "anymal": Robot(
        "anymal_b_simple_description/robots/anymal.urdf",
        tuple(contact.Sphere(f"{leg}_FOOT", 0.03) for leg in ("LF", "RF", "LH", "RH")),
        {".F_HFE": 0.7, ".F_KFE": -1.4, ".H_HFE": -0.7, ".H_KFE": 1.4}, 300.0, 10.0,
    ),
    "talos": Robot(
        "talos_reduced.urdf",
        soles(("left_sole_link", "right_sole_link"), (0.2, 0.13, 0.02), (0.0, 0.0, 0.01)),
        {"leg_left_3|leg_right_3": -0.4, "leg_left_4|leg_right_4": 0.8,
         "leg_left_5|leg_right_5": -0.4}, 5000.0, 150.0,
    ),
    "g1": Robot(
        "g1_29dof_rev_1_0.urdf",
        soles(("left_ankle_roll_link", "right_ankle_roll_link"), (0.17, 0.055, 0.01),
              (0.035, 0.0, -0.03)),
        {"hip_pitch": -0.3, "knee": 0.6, "ankle_pitch": -0.3}, 800.0, 20.0,
    ),
    "dm_control": Robot(
        "suite/humanoid.xml",
        tuple(
            contact.Capsule(f"{side}_foot", 0.027, (-0.07, start, 0.0), (0.14, end, 0.0))
            for side, sign in (("right", -1.0), ("left", 1.0))
            for start, end in ((0.02 * sign, 0.04 * sign), (0.0, -0.02 * sign))
        ),
        {}, 2000.0, 100.0, "dm_control",
    ),
}  # fmt: skip


def loaded(name):
    row = ROBOTS[name]
    try:
        listed = files(row.package)
    except PackageNotFoundError:
        pytest.skip(f"{row.package} is not installed")
    found = next(p for p in listed if str(p).endswith(row.file))
    urdf = row.file.endswith("urdf")
    return chasles.load(str(found.locate()), **({"floating": True} if urdf else {}))


def posed(robot, row):
    """Return the posture with the lowest point of the feet at the drop height."""
    q = robot.neutral()
    for part, value in row.posture.items():
        for joint in robot.joints:
            if re.search(part, joint):
                q[robot.position_slice(joint)] = value
    lowest = np.inf
    for foot in row.feet:
        T = robot.forward_kinematics(q, frame=foot.frame)
        for at, radius in foot.balls():
            lowest = min(lowest, (T[:3, :3] @ at + T[:3, 3])[2] - radius)
    q[6] += HEIGHT - lowest
    return q


def dropped(name, dt, duration=10.0):
    robot, row = loaded(name), ROBOTS[name]
    q = posed(robot, row)
    law = contact.Rigid(friction=0.7)
    pairs = [contact.Pair(foot, contact.Plane(), law) for foot in row.feet]
    free = np.zeros(6)
    gains = [np.r_[free, np.full(robot.nv - 6, gain)] for gain in (row.stiffness, row.damping)]
    control = chasles.rollouts.PDControl(*gains, q)
    run = robot.simulate(
        q, np.zeros(robot.nv), duration=duration, dt=dt, contacts=pairs, control=control,
        integrator="time-stepping",
    )  # fmt: skip
    return robot, q, run


@pytest.mark.parametrize(("name", "dt"), [*zip(ROBOTS, itertools.cycle([0.002, 0.005]))])
def test_robots_land_and_stand(name, dt):
    robot, q, run = dropped(name, dt)
    half = len(run.t) // 2
    drift = np.abs(run.q[half:] - run.q[half])
    assert run.compiled
    assert run.q[-1, 6] > 0.7 * (q[6] - HEIGHT)
    # A sticking foot creeps at the load's impulse per step divided by the stiffness of friction.
    assert drift[:, 4:7].max() < 1e-3 * dt / 0.002
    assert 2.0 * drift[:, 1:4].max() < np.radians(0.1)
    assert -run.touching.gaps.min() < 1e-3
    weight = 9.81 * robot.mass_matrix(q)[3, 3]  # total mass
    assert run.touching.forces[-1, :, 2].sum() == pytest.approx(weight, rel=1e-3)
    assert run.excess <= 1e-6 * abs(run.work)
    # A step whose friction bounds had to be fixed counts as unsolved. Its impulses satisfy the
    # fixed bounds to the same residual, but Coulomb's law at the end of the step only
    # approximately.
    assert run.unsolved <= 0.001 * len(run.t)


def test_a_humanoid_without_ankles_falls_and_rests_without_jitter():
    gymnasium = pytest.importorskip("gymnasium")
    folder = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes on the file
        robot = chasles.load(folder / "humanoid.xml")
        run = robot.simulate(
            robot.neutral(), np.zeros(robot.nv), duration=11.0, dt=0.002, contacts="file"
        )
    late = run.t > 10.0  # until then, an arm slides on the robot's frictionless shapes
    assert run.q[-1, 6] < 0.5
    assert np.abs(run.qd[late]).max() < 1e-3
    assert np.abs(np.diff(run.qd[late], axis=0)).max() < 1e-6
    assert -run.touching.gaps[late].min() < 1e-3
    assert run.excess <= 1e-6 * abs(run.work)
