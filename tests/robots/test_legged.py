"""The keyframe "standing" of the built-in legged robots."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import chasles
from chasles import contact
from chasles.cli import app
from chasles.rollouts import PDControl

GAINS = {"quadruped": (600.0, 12.0), "humanoid": (3000.0, 60.0)}
"""Stiffness (N m/rad) and damping (N m s/rad) that hold the posture, by robot name."""


def soles(robot: chasles.Robot, q: np.ndarray) -> np.ndarray:
    """Return the lowest points of the quadruped's feet or the corners of the humanoid's soles."""
    if robot.name == "quadruped":
        feet = [frame for frame in robot.frames if frame.endswith("_foot")]
        return np.array([robot.forward_kinematics(q, frame=f)[:3, 3] for f in feet]) - [0, 0, 0.02]
    sides, corners = ("left_sole", "right_sole"), product((-0.08, 0.16), (-0.05, 0.05))
    places = [robot.forward_kinematics(q, frame=side) for side in sides]
    return np.array([T[:3] @ [x, y, 0.0, 1.0] for T, (x, y) in product(places, corners)])


@pytest.mark.parametrize("name", GAINS)
def test_feet_touch_the_ground_and_the_center_of_mass_is_above_them(name: str) -> None:
    robot = chasles.robots.ROBOTS[name]()
    q = robot.keyframes["standing"].q
    assert robot.within(q)
    knees = [q[robot.position_slice(joint)] for joint in robot.joints if joint.endswith("_knee")]
    assert np.abs(knees).min() > 0.5
    feet = soles(robot, q)
    assert feet[:, 2] == pytest.approx(0.0, abs=1e-12)
    center = robot.center_of_mass(q)[:2]
    assert (feet[:, :2].min(axis=0) < center - 0.03).all()
    assert (feet[:, :2].max(axis=0) > center + 0.03).all()


@pytest.mark.parametrize("name", GAINS)
def test_a_pd_controller_holds_the_posture_on_rigid_ground(name: str) -> None:
    robot = chasles.robots.ROBOTS[name]()
    start, (kp, kd) = robot.keyframes["standing"], GAINS[name]
    run = robot.simulate(
        start.q,
        start.qd,
        tau=PDControl(kp, kd, start.q),
        duration=1.0,
        dt=2e-3,
        contacts=contact.file_pairs(robot, ground=True, friction=0.8),
        limits=True,
        dissipation=True,
    )
    assert np.linalg.norm(run.q[:, 4:7] - start.q[4:7], axis=1).max() < 0.01
    assert run.unsolved == 0


def test_the_command_starts_from_the_keyframe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = "simulate quadruped --ground rigid --keyframe standing --duration 0.002 --no-plots"
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 0, done.output
    with np.load("simulation/motion.npz") as found:
        start = found["q"][0]
    assert np.array_equal(start, chasles.robots.quadruped().keyframes["standing"].q)
