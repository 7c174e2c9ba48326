"""Measure the speed of time steps with contact, and compare it with `mujoco.rollout`."""

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
from benchmarks.console import WrongAnswer, count, output
from chasles.motion.drivers.stepping import Stepped

DT, REPEATS = 0.002, 5
"""Time step (s), and number of timed calls. The fastest call counts."""


class Legged(NamedTuple):
    """Robot of example-robot-data with spheres for trunk and feet, which touch only the ground.

    Attributes
    ----------
    radii : tuple
        Radii (m) of the feet and of the trunk.
    posture : dict
        Joint angles (rad), by parts of joint names.
    gains : tuple
        Stiffness (N m/rad) and damping (N m s/rad) of the joints of a standing robot.
    """

    file: str
    radii: tuple[float, float]
    feet: tuple[str, ...]
    posture: dict[str, float]
    gains: tuple[float, float]


FEET = {
    "solo12": Legged(
        "solo12.urdf", (0.016, 0.05), ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"),
        {"FL_HFE": 0.7, "FR_HFE": 0.7, "FL_KFE": -1.4, "FR_KFE": -1.4,
         "HL_HFE": -0.7, "HR_HFE": -0.7, "HL_KFE": 1.4, "HR_KFE": 1.4},
        (20.0, 0.5),
    ),
    "go2": Legged(
        "go2.urdf", (0.022, 0.08), ("FL_foot", "FR_foot", "RL_foot", "RR_foot"),
        {"thigh": 0.8, "calf": -1.6}, (100.0, 3.0),
    ),
}  # fmt: skip

ASSETS = ("humanoid", "ant")
"""Robot files of gymnasium. All contacts of these files are used."""


class Measured(NamedTuple):
    """Measurements of one robot in one scene.

    Attributes
    ----------
    ours, theirs : float
        Processor time (us) per step, of chasles and of MuJoCo.
    contacts : float
        Mean number of contacts, in MuJoCo.
    iterations : tuple
        Mean number of solver iterations per step, of chasles and of MuJoCo.
    residual : float
        Largest residual of a step.
    unsolved : float
        Fraction of steps that did not converge.
    single : float
        Error of the velocities after one step in float32, which 95 % of the states do not exceed.
        The error is relative to the largest velocity of the state or to the change of velocity in
        free fall during one step, whichever is larger.
    """

    ours: float
    theirs: float
    contacts: float
    iterations: tuple[float, float]
    residual: float
    unsolved: float
    single: float


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--states", type=count, default=256, help="Number of states; default: 256.")
    parser.add_argument("--steps", type=count, default=100, help="Number of steps; default: 100.")
    parser.add_argument(
        "--robots", nargs="+", choices=(*FEET, *ASSETS), default=["solo12", "go2", "humanoid"]
    )


def file_of(name: str, folder: Path, *, stands: bool) -> Path:
    """Return the path of an MJCF file of the robot on a plane, for both libraries.

    If `stands`, the joints of legged robots have springs and dampers that hold the posture.
    """
    if name in ASSETS:
        return Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / f"{name}.xml"
    row = FEET[name]
    found = next(p for p in files("example-robot-data") if str(p).endswith(row.file))
    path = folder / f"{name}.xml"
    chasles.save(chasles.load(str(found.locate()), floating=True), path, overwrite=True)
    tree = ElementTree.parse(path)
    world = tree.getroot().find("worldbody")
    assert world is not None
    for parent in tree.iter():
        for geom in parent.findall("geom"):
            parent.remove(geom)
    ground = {"type": "plane", "size": "50 50 1", "contype": "1", "conaffinity": "0"}
    ElementTree.SubElement(world, "geom", ground, friction="0.7")
    ball = {"type": "sphere", "contype": "0", "conaffinity": "1", "mass": "0", "friction": "0.7"}
    trunk = world.find("body")
    for body in tree.iter("body"):
        if body is trunk or body.get("name") in row.feet:
            ElementTree.SubElement(body, "geom", ball, size=str(row.radii[body is trunk]))
    for joint in tree.iter("joint"):
        if stands and joint.get("name"):
            stiffness, damping = map(str, row.gains)
            angle = str(_angle(row, str(joint.get("name"))))
            joint.attrib |= {"stiffness": stiffness, "damping": damping, "springref": angle}
    tree.write(path)
    return path


def _angle(row: Legged, joint: str) -> float:
    """Return the angle (rad) of a joint in the posture."""
    return next((value for part, value in row.posture.items() if part in joint), 0.0)


def _height(robot: Any, name: str) -> np.ndarray:
    """Return the initial configuration. The feet of legged robots touch the ground."""
    q = robot.neutral()
    if name in FEET:
        row = FEET[name]
        for joint in robot.joints[1:]:
            q[robot.position_slice(joint)] = _angle(row, joint)
        lowest = min(robot.forward_kinematics(q, frame=foot)[2, 3] for foot in row.feet)
        q[6] += row.radii[0] - lowest
    return q


def measure(path: Path, name: str, scene: str, states: int, steps: int) -> Measured:
    """Time both libraries from the same initial states, with the same joint torques."""
    robot, rng = chasles.load(path), np.random.default_rng(0)
    q, qd = np.tile(_height(robot, name), (states, 1)), 0.1 * rng.normal(size=(states, robot.nv))
    plan: dict[str, Any] = {"dt": DT, "contacts": "file", "threads": 1}
    if scene != "random":  # let the robots come to rest
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
        raise WrongAnswer(f"{name}: velocities are not finite")
    each = 1e6 / (states * steps)
    return Measured(
        each * min(times[0]), each * min(times[1]), float(np.mean(touching)),
        (float(run.iterations.mean()), float(np.mean(iterations))), float(run.residual.max()),
        float(run.unsolved.sum()) / (states * steps), single(robot, q, qd, tau),
    )  # fmt: skip


def single(robot: Any, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> float:
    """Return the error of a step in float32 (see `Measured`)."""
    steps = (x for x in robot.mechanism.kept.values() if isinstance(x, Stepped))
    step = next(x for x in steps if x.control is None)
    found = []
    for dtype in ("float32", "float64"):
        sizes = [v.size for v in step.steps.inputs[2 : len(step.steps.states)]]
        states = [q, qd, *(np.zeros((len(q), n)) for n in sizes)]
        states = [np.array(a, dtype) for a in states]
        controls = [tau[:, None].astype(dtype), np.zeros((1, 1, 1), dtype)]
        step.loop("llvm", dtype)(states, controls, [], 1, 1, 1)
        found.append(states[1].astype(float))
    speed = np.maximum(np.abs(found[1]).max(1), 9.81 * DT)
    return float(np.quantile(np.abs(found[0] - found[1]).max(1) / speed, 0.95))


def run(chosen: argparse.Namespace) -> int:
    title = f"time per step of {DT * 1e3:g} ms, one core; target ratios: Solo12 15, others 8"
    heads = (
        "robot",
        "scene",
        "us",
        "MuJoCo us",
        "ratio",
        "contacts",
        "iterations",
        "MuJoCo iterations",
    )
    table = Table(*heads, "residual", "unsolved", "float32", title=title)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unsupported pairs of shapes
        for name in chosen.robots:
            for scene in ("standing", "random", "fallen") if name in FEET else ("random", "fallen"):
                path = file_of(name, Path(folder), stands=scene != "fallen")
                found = measure(path, name, scene, chosen.states, chosen.steps)
                table.add_row(
                    name, scene, f"{found.ours:.2f}", f"{found.theirs:.2f}",
                    f"{found.theirs / found.ours:.1f}", f"{found.contacts:.1f}",
                    *(f"{n:.1f}" for n in found.iterations), f"{found.residual:.0e}",
                    f"{100.0 * found.unsolved:.2f} %", f"{found.single:.0e}",
                )  # fmt: skip
    output().print(table)
    return 0
