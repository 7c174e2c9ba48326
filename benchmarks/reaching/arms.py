"""Time inverse kinematics of arms for reachable poses, compared with the Robotics Toolbox."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

import chasles
from benchmarks.console import WrongAnswer
from benchmarks.robots import CASES, Case, chasles_robot

TOLERANCE = 1e-6
"""Tolerance (rad and m) of a solution along each axis."""

NEARBY = 0.1
"""Standard deviation (rad or m) of a guess from the posture that produced the pose."""

ALONE = 300
"""Number of poses that are solved in single calls."""

CHUNK = 20
"""Number of calls that are timed together, alternating with those of the toolbox."""

DAMPINGS = (1.0, 0.1, 0.01)
"""Damping parameters of `ik_LM`. The fastest is used."""


def _toolbox_file(name: str) -> Path:
    """Return the path of a robot file of the package rtb-data."""
    for path in files("rtb-data") or ():
        if path.as_posix().endswith(name):
            return Path(str(path.locate()))
    raise PackageNotFoundError("rtb-data")


def _iiwa() -> chasles.Robot:
    return chasles.load(_toolbox_file("kuka_lbr_iiwa/urdf/lbr_iiwa_14_r820.urdf"))


def _talos_arm() -> chasles.Robot:
    """Return the left arm of Talos, with all other joints locked at zero."""
    whole = chasles.load(chasles_file("talos_data/robots/talos_reduced.urdf"))
    others = [name for name in whole.joints if not name.startswith("arm_left")]
    return whole.lock(dict.fromkeys(others, 0.0))


def chasles_file(name: str) -> Path:
    """Return the path of a robot file of the package example-robot-data."""
    from benchmarks.robots import path_of

    return path_of(Case(name, name, ""))


ARMS: dict[str, tuple[Callable[[], chasles.Robot], str]] = {
    "panda": (lambda: chasles_robot(CASES["panda"]), "panda_hand"),
    "ur5": (lambda: chasles_robot(CASES["ur5"]), "ee_link"),
    "ur10": (lambda: chasles.load(chasles_file("ur_description/urdf/ur10_robot.urdf")), "ee_link"),
    "iiwa14": (_iiwa, "tool0"),
    "kinova_j2s6s200": (
        lambda: chasles.load(chasles_file("kinova_description/robots/kinova.urdf")),
        "j2s6s200_end_effector",
    ),
    "talos_arm": (_talos_arm, "gripper_left_base_link"),
    "puma560": (chasles.robots.puma560, "tool"),
    "stanford_arm": (chasles.robots.stanford_arm, "tool"),
}
"""Function that creates each arm, and its end-effector frame.

The PUMA 560 and the Stanford arm are built in. The file of the iiwa is from rtb-data, and all other
files are from example-robot-data.
"""


@dataclass(frozen=True)
class Row:
    """Fraction of solved poses, steps, and times (s) per pose: in a batch, and in single calls.

    The pairs `alone` and `peer` contain times of single calls without and with a guess.
    """

    name: str
    solved: float
    steps: float
    batch: float
    alone: tuple[float, float]
    peer_solved: float = math.nan
    peer: tuple[float, float] = (math.nan, math.nan)


def rotation_errors(R: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the angles (...) between rotations, accurate for small angles."""
    return 2.0 * np.arcsin(np.minimum(np.linalg.norm(R - wanted, axis=(-2, -1)) / 8**0.5, 1.0))


def reached(robot: chasles.Robot, frame: str, T: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return True for each posture that is within the limits and reaches its pose."""
    P = robot.forward_kinematics(q, frame=frame)
    far = np.abs(P[..., :3, 3] - T[..., :3, 3]).max(axis=-1)
    turned = rotation_errors(P[..., :3, :3], T[..., :3, :3])
    inside = ((q >= robot.limits.lower) & (q <= robot.limits.upper)).all(axis=-1)
    met: np.ndarray = (far <= TOLERANCE) & (turned <= 3**0.5 * TOLERANCE) & inside
    return met


def measure(name: str, poses: int, peer_poses: int) -> Row:
    """Solve poses of postures distributed uniformly within the limits; check all solutions."""
    make, frame = ARMS[name]
    robot = make()
    rng = np.random.default_rng(0)
    q = robot.random(rng, size=poses)
    T = robot.forward_kinematics(q, frame=frame)
    times = []
    for _ in range(5):
        start = time.thread_time()
        found = robot.inverse_kinematics({frame: T}, threads=1)
        times.append((time.thread_time() - start) / poses)
    if not reached(robot, frame, T, found.q)[found.solved].all():
        raise WrongAnswer(f"{name}: a pose is marked as solved but is not reached")
    near = np.clip(q + NEARBY * rng.normal(size=q.shape), robot.limits.lower, robot.limits.upper)
    few = range(min(ALONE, poses))
    calls = [lambda k: robot.inverse_kinematics({frame: T[k]})]
    calls += [lambda k: robot.inverse_kinematics({frame: T[k]}, guess=near[k])]
    for k in few:
        if not np.array_equal(calls[0](k).q, found.q[k]):
            raise WrongAnswer(f"{name}: solutions of a single call and of a batch differ")
    share, own = _toolbox(robot, frame, T[:peer_poses])
    if own is not None:
        calls += [lambda k: own(T[k]), lambda k: own(T[k], q0=near[k])]
    alone = [*_timed(calls, few), math.nan, math.nan]
    known = found.solved.mean(), found.iterations.mean(), min(times)
    return Row(name, *known, (alone[0], alone[1]), share, (alone[2], alone[3]))


def _timed(calls: list[Callable[[int], Any]], few: range, repeats: int = 6) -> list[float]:
    """Return the mean time (s) of each kind of call, from the minimum times of chunks of calls."""
    chunks = [few[k : k + CHUNK] for k in range(0, len(few), CHUNK)]
    best = np.full((len(calls), len(chunks)), math.inf)
    for _ in range(repeats):
        for n, chunk in enumerate(chunks):
            for kind, call in enumerate(calls):
                start = time.thread_time()
                for k in chunk:
                    call(k)
                best[kind, n] = min(best[kind, n], time.thread_time() - start)
    return [float(total) / len(few) for total in best.sum(axis=1)]


def _toolbox(robot: chasles.Robot, frame: str, T: np.ndarray) -> tuple[float, Any]:
    """Return the fraction that `ik_LM` solves, and a function that calls the fastest variant."""
    try:
        chain = _chain(robot, frame)
    except ImportError:
        return math.nan, None
    tol = 0.5 * TOLERANCE**2  # `tol` bounds half of the squared error
    calls = [partial(chain.ik_LM, tol=tol, joint_limits=True, k=k) for k in DAMPINGS]
    times = _timed([lambda k, call=call: call(T[k]) for call in calls], range(min(len(T), 60)), 2)
    own = calls[int(np.argmin(times))]
    ends = np.array([np.ravel(own(each).q) for each in T])
    return float(reached(robot, frame, T, ends).mean()), own


def _chain(robot: chasles.Robot, frame: str) -> Any:
    """Return the arm for the toolbox. Unlimited joints get a range of one turn."""
    from roboticstoolbox import ET, ETS

    chain, before, here = ETS(), np.eye(4), np.zeros(robot.nq)
    lower, upper = robot.limits.lower, robot.limits.upper
    for name in robot.joints:
        joint, k = robot.joint(name), robot.position_slice(name).start
        after = robot.forward_kinematics(here, frame=joint.child)
        sort = ET.tz if joint.kind == "prismatic" else ET.Rz
        turn = _to_axis(np.array(list(joint.axis)))
        limits = [max(lower[k], -math.pi), min(upper[k], math.pi)]
        if np.isfinite(lower[k]) and np.isfinite(upper[k]):
            limits = [lower[k], upper[k]]
        chain = chain * ET.SE3(np.linalg.inv(before) @ after @ turn) * sort(qlim=limits)
        before = after @ turn
    chain = chain * ET.SE3(np.linalg.inv(before) @ robot.forward_kinematics(here, frame=frame))
    whole = chain.compile()
    q = robot.random(np.random.default_rng(1))
    if not np.allclose(np.array(whole.eval(q)), robot.forward_kinematics(q, frame=frame)):
        raise WrongAnswer(f"{robot.name}: forward kinematics differs from the toolbox")
    return whole


def _to_axis(axis: np.ndarray) -> np.ndarray:
    """Return a rotation (4, 4) with the given z axis."""
    z = axis / np.linalg.norm(axis)
    other = np.eye(3)[np.argmin(np.abs(z))]
    x = np.cross(other, z) / np.linalg.norm(np.cross(other, z))
    T = np.eye(4)
    T[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    return T


def table(names: list[str], poses: int, peer_poses: int) -> Table:
    """Return a table with one row per arm: times in microseconds, and ratios to the toolbox."""
    shown = Table("arm", "solved", "steps", "us, batch", "us, call", "us, guess", "toolbox")
    for title in ("us, call", "us, guess", "batch ratio", "call ratio", "guess ratio"):
        shown.add_column(title)
    for name in names:
        row = measure(name, poses, peer_poses)
        times = [f"{1e6 * row.batch:.2f}", *(f"{1e6 * t:.1f}" for t in row.alone)]
        peer = ["-"] * 6
        if not math.isnan(row.peer_solved):
            peer = [f"{100 * row.peer_solved:.2f} %", *(f"{1e6 * t:.0f}" for t in row.peer)]
            peer += [f"{row.peer[0] / row.batch:.0f}"]
            peer += [f"{p / own:.1f}" for p, own in zip(row.peer, row.alone, strict=True)]
        shown.add_row(name, f"{100 * row.solved:.3f} %", f"{row.steps:.1f}", *times, *peer)
    return shown
