"""Time inverse kinematics of a humanoid: poses of hands and feet, and center of mass."""

import logging
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from importlib.metadata import files
from typing import Any

import numpy as np
from rich.table import Table

import chasles
from benchmarks.console import WrongAnswer
from benchmarks.robots import CASES, chasles_robot, pinocchio_model
from chasles.targets import CENTER, CenterOfMass, Pose

FRAMES = (
    "gripper_left_base_link",
    "gripper_right_base_link",
    "leg_left_6_link",
    "leg_right_6_link",
)
TOLERANCE = 1e-4
"""Tolerance for each angle (rad) and each length (m)."""

SPREAD = 0.2
"""Standard deviation (rad) of joint angles from the standing posture."""

MOST = 200
"""Maximum number of steps of pink."""


@dataclass(frozen=True)
class Problem:
    """Robot, standing posture, and targets: frame poses and centers of mass."""

    robot: chasles.Robot
    standing: np.ndarray
    poses: dict[str, np.ndarray]
    center: np.ndarray


def _standing(robot: chasles.Robot) -> np.ndarray:
    """Return the posture `half_sitting` of the package's SRDF file."""
    path = next(p for p in files("example-robot-data") or () if p.name == "talos.srdf")
    root = ElementTree.parse(str(path.locate())).getroot()
    state = next(g for g in root.iter("group_state") if g.get("name") == "half_sitting")
    given = {str(j.get("name")): str(j.get("value")).split() for j in state.iter("joint")}
    q = robot.neutral()
    for name in robot.joints:
        place = robot.position_slice(name)
        if name in given and len(given[name]) == place.stop - place.start == 1:
            q[place] = float(given[name][0])
    return q


def problem(count: int) -> Problem:
    """Return targets computed from postures near standing, with a displaced base."""
    robot = chasles_robot(CASES["talos"], snap=False)
    standing, rng = _standing(robot), np.random.default_rng(0)
    v = SPREAD * rng.normal(size=(count, robot.nv))
    v[:, 3:6] *= 0.3  # position of the base, in m
    q = np.clip(robot.integrate(standing, v), robot.limits.lower, robot.limits.upper)
    poses = {frame: robot.forward_kinematics(q, frame=frame) for frame in FRAMES}
    return Problem(robot, standing, poses, robot.center_of_mass(q))


def measure(count: int) -> tuple[float, float, float, float]:
    """Return fraction solved, steps and time (s) per posture in a batch, and time (s) per call."""
    given = problem(count)
    robot = given.robot
    whole: dict[str, Any] = {f: Pose(T, tolerance=TOLERANCE) for f, T in given.poses.items()}
    whole[CENTER] = CenterOfMass(given.center, tolerance=TOLERANCE)
    found = robot.inverse_kinematics(whole, guess=given.standing, threads=1)
    start = time.thread_time()
    found = robot.inverse_kinematics(whole, guess=given.standing, threads=1)
    seconds = (time.thread_time() - start) / count
    for frame, T in given.poses.items():
        far = np.abs(robot.forward_kinematics(found.q, frame=frame) - T)[found.solved]
        if far.max() > 3 * TOLERANCE:
            raise WrongAnswer(f"{frame} misses its pose by {far.max():.2g}")
    if np.abs(robot.center_of_mass(found.q) - given.center)[found.solved].max() > TOLERANCE:
        raise WrongAnswer("the center of mass misses its target")
    few = [
        {f: Pose(t.pose[k], tolerance=TOLERANCE) for f, t in whole.items() if f != CENTER}
        | {CENTER: CenterOfMass(given.center[k], tolerance=TOLERANCE)}
        for k in range(50)
    ]
    start = time.thread_time()
    for each in few:
        robot.inverse_kinematics(each, guess=given.standing)
    alone = (time.thread_time() - start) / len(few)
    return found.solved.mean(), found.iterations.mean(), seconds, alone


def measure_pink(count: int) -> tuple[float, float, float]:
    """Return the fraction that pink solves, and its number of steps and time (s) per posture."""
    import pink
    import pinocchio

    given, model = problem(count), pinocchio_model(CASES["talos"])
    standing = _for_pinocchio(given.robot, model, given.standing)
    logging.getLogger().setLevel(logging.ERROR)  # pink violates limits temporarily
    tasks = {f: pink.tasks.FrameTask(f, 1.0, 1.0) for f in FRAMES}
    center = pink.tasks.ComTask(1.0)
    every = [*tasks.values(), center]
    solved, steps, begin = 0, 0, time.thread_time()
    for k in range(count):
        for frame, task in tasks.items():
            T = given.poses[frame][k]
            task.set_target(pinocchio.SE3(T[:3, :3], T[:3, 3]))
        center.set_target(given.center[k])
        at = pink.Configuration(model, model.createData(), standing)
        for _ in range(MOST):
            errors = [task.compute_error(at) for task in every]
            if max(np.abs(e).max() for e in errors) <= TOLERANCE:
                solved += 1
                break
            v = pink.solve_ik(at, every, 1.0, solver="daqp", damping=1e-8, safety_break=False)
            at.integrate_inplace(v, 1.0)
            steps += 1
    return solved / count, steps / count, (time.thread_time() - begin) / count


def _for_pinocchio(robot: chasles.Robot, model: Any, q: np.ndarray) -> np.ndarray:
    """Convert a configuration to Pinocchio's order of joints and of free-joint coordinates."""
    there = np.zeros(model.nq)
    for name, joint in zip(model.names[1:], model.joints[1:], strict=True):
        own = q[robot.position_slice(name)]
        moved = np.concatenate([own[4:], own[1:4], own[:1]]) if own.size == 7 else own
        there[joint.idx_q : joint.idx_q + joint.nq] = moved
    return there


def table(count: int, peer_count: int) -> Table:
    """Return a table with both libraries."""
    shown = Table("Talos, four poses and CoM", "solved", "steps", "us, batch", "us, call", "ratio")
    share, steps, seconds, alone = measure(count)
    cells = [f"{100 * share:.2f} %", f"{steps:.1f}", f"{1e6 * seconds:.1f}", f"{1e6 * alone:.0f}"]
    shown.add_row("chasles", *cells, "")
    try:
        share, steps, own = measure_pink(peer_count)
    except ImportError:
        return shown
    ratio = f"batch {own / seconds:.0f}, call {own / alone:.0f}"
    cells = [f"{100 * share:.2f} %", f"{steps:.1f}", "-", f"{1e6 * own:.0f}"]
    shown.add_row("pink", *cells, ratio)
    return shown
