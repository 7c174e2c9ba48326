"""Steps with contact on one core, beside `mujoco.rollout` with one thread, on the same files."""

import argparse
import tempfile
import time
import warnings
from importlib.metadata import files
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import gymnasium
import mujoco
import numpy as np
from mujoco import rollout
from rich.table import Table

import chasles
from benchmarks.console import count, output
from benchmarks.routes import WrongAnswer

DT, REPEATS = 0.002, 5
"""The step (s), and the timed calls, of which the fastest counts."""

FEET = {
    "solo12": ("solo12.urdf", 0.016, ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")),
    "go2": ("go2.urdf", 0.022, ("FL_foot", "FR_foot", "RL_foot", "RR_foot")),
}
"""Files of example-robot-data with feet that are spheres: radius (m) and frames."""

ASSETS = ("humanoid", "ant")
"""Files of gymnasium, with all their contacts."""


class Measured(NamedTuple):
    """Microseconds a step of both, contacts, iterations of both, residual and steps unsolved."""

    ours: float
    theirs: float
    contacts: float
    iterations: tuple[float, float]
    residual: float
    unsolved: float


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--states", type=count, default=256, help="Default: 256.")
    parser.add_argument("--steps", type=count, default=100, help="Default: 100.")
    parser.add_argument(
        "--robots", nargs="+", choices=(*FEET, *ASSETS), default=["solo12", "humanoid"]
    )


def file_of(name: str, folder: Path) -> Path:
    """An MJCF file of the robot on a plane, which both sides read."""
    if name in ASSETS:
        return Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / f"{name}.xml"
    wanted, radius, feet = FEET[name]
    found = next(p for p in files("example-robot-data") if str(p).endswith(wanted))
    path = folder / f"{name}.xml"
    chasles.save(chasles.load(str(found.locate()), floating=True), path)
    tree = ElementTree.parse(path)
    world = tree.getroot().find("worldbody")
    assert world is not None
    for parent in tree.iter():
        for geom in parent.findall("geom"):
            parent.remove(geom)
    ElementTree.SubElement(world, "geom", type="plane", size="50 50 1", friction="0.7")
    for body in tree.iter("body"):
        if body.get("name") in feet:
            ElementTree.SubElement(
                body, "geom", type="sphere", size=str(radius), mass="0", friction="0.7"
            )
    tree.write(path)
    return path


def _height(robot: Any, name: str) -> np.ndarray:
    """A posture just above the ground."""
    q = robot.neutral()
    if name in FEET:
        for joint in robot.joints:
            for part, value in (("HFE", 0.7), ("KFE", -1.4), ("thigh", 0.8), ("calf", -1.6)):
                if part in joint:
                    q[robot.position_slice(joint)] = value
        feet = FEET[name][2]
        lowest = min(robot.forward_kinematics(q, frame=foot)[2, 3] for foot in feet)
        q[6] += 0.01 + FEET[name][1] - lowest
    return q


def measure(path: Path, name: str, scene: str, states: int, steps: int) -> Measured:
    """Both sides from the same states, with the same joint torques."""
    robot, rng = chasles.load(path), np.random.default_rng(0)
    q, qd = np.tile(_height(robot, name), (states, 1)), 0.1 * rng.normal(size=(states, robot.nv))
    plan: dict[str, Any] = {"dt": DT, "contacts": "file", "threads": 1}
    if scene == "fallen":
        run = robot.simulate(q, qd, steps=750, every=750, **plan)
        q, qd = run.q[:, -1], run.qd[:, -1]
    tau = np.zeros((states, robot.nv))
    if scene == "random":
        tau[:, 6:] = rng.normal(size=(states, robot.nv - 6))
    run = robot.simulate(q, qd, steps=steps, every=steps, control=tau[:, None], **plan)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep, data = DT, mujoco.MjData(model)
    there = chasles.conventions.mujoco(robot)
    theirs = np.zeros((states, 1 + model.nq + model.nv + model.na))
    theirs[:, 1 : 1 + model.nq] = there.to_position(q)
    theirs[:, 1 + model.nq : 1 + model.nq + model.nv] = there.to_velocity(q, qd)
    effort = np.repeat(there.to_effort(q, tau)[:, None], steps, axis=1)
    pool, spec = rollout.Rollout(nthread=0), mujoco.mjtState.mjSTATE_QFRC_APPLIED.value
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(REPEATS):
        start = time.thread_time()
        robot.simulate(q, qd, steps=steps, every=steps, control=tau[:, None], **plan)
        times[0].append(time.thread_time() - start)
        start = time.thread_time()
        pool.rollout(model, data, theirs, effort, control_spec=spec, nstep=steps)
        times[1].append(time.thread_time() - start)
    touching, iterations = [], []
    for k in range(min(states, 32)):
        data.qpos, data.qvel = theirs[k, 1 : 1 + model.nq], theirs[k, 1 + model.nq :][: model.nv]
        data.qfrc_applied = effort[k, 0]
        for _ in range(10):
            mujoco.mj_step(model, data)
            touching.append(data.ncon)
            iterations.append(data.solver_niter.sum())
    if not np.isfinite(run.qd).all():
        raise WrongAnswer(f"{name}: states are not finite")
    each = 1e6 / (states * steps)
    return Measured(
        each * min(times[0]), each * min(times[1]), float(np.mean(touching)),
        (float(run.iterations.mean()), float(np.mean(iterations))), float(run.residual.max()),
        float(run.unsolved.sum()) / (states * steps),
    )  # fmt: skip


def run(chosen: argparse.Namespace) -> int:
    title = f"steps of {DT * 1e3:g} ms on one core; targets: 15 times for point feet, 8 for others"
    heads = ("robot", "scene", "us", "MuJoCo", "ratio", "contacts", "iterations", "MuJoCo's")
    table = Table(*heads, "residual", "unsolved", title=title)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pairs of own shapes that do not touch
        for name in chosen.robots:
            path = file_of(name, Path(folder))
            for scene in ("landing", "random", "fallen"):
                found = measure(path, name, scene, chosen.states, chosen.steps)
                table.add_row(
                    name, scene, f"{found.ours:.2f}", f"{found.theirs:.2f}",
                    f"{found.theirs / found.ours:.1f}", f"{found.contacts:.1f}",
                    *(f"{n:.1f}" for n in found.iterations), f"{found.residual:.0e}",
                    f"{100.0 * found.unsolved:.2f} %",
                )  # fmt: skip
    output().print(table)
    return 0
