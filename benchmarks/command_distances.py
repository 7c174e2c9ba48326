"""Time self-collision distances of a robot with a sphere model, on one core."""

import argparse
import time
import warnings

import numpy as np
from rich.table import Table

import chasles
from benchmarks.console import WrongAnswer, count, output
from benchmarks.robots import CASES, chasles_robot
from benchmarks.targets import DISTANCES
from chasles.contact import Sphere
from chasles.distances import Scene

SAMPLE = 20
"""Number of postures whose distances are checked against a direct computation."""

REPEATS = 5
"""Number of timed calls. The fastest call counts."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--postures", type=count, default=100_000, help="Number of postures; default: 100,000."
    )
    parser.add_argument("--robots", nargs="+", choices=CASES, default=["panda"])


def by_hand(robot: chasles.Robot, scene: Scene, spheres: list[Sphere], q: np.ndarray) -> np.ndarray:
    """Return the distance (m) for each pair of links, computed from the centers of all spheres."""
    places: dict[str, list[tuple[np.ndarray, float]]] = {}
    for sphere in spheres:
        T = robot.forward_kinematics(q, frame=sphere.frame)
        center = T[:3, :3] @ np.array(sphere.center, float) + T[:3, 3]
        places.setdefault(sphere.frame, []).append((center, sphere.radius))
    return np.array(
        [
            min(np.linalg.norm(a - b) - r - s for a, r in places[one] for b, s in places[two])
            for one, two in scene.pairs
        ]
    )


def measure(name: str, postures: int) -> tuple[int, int, float, float]:
    """Return the numbers of spheres and pairs, and times (s) per posture: call, program alone."""
    robot = chasles_robot(CASES[name])
    spheres = list(robot.enclosing_shapes())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pairs of links that always overlap
        scene = Scene(robot, shapes=spheres)
    q = robot.random(np.random.default_rng(0), size=postures)
    found = scene(q, threads=1).distance
    for k in range(min(SAMPLE, postures)):
        if np.abs(found[k] - by_hand(robot, scene, spheres, q[k])).max() > 1e-9:
            raise WrongAnswer(f"{name}: distances differ from those computed with sphere centers")
    whole, alone, out = [], [], np.empty((postures, len(scene.pairs)))
    for _ in range(REPEATS):
        start = time.thread_time()
        scene(q, threads=1)
        whole.append(time.thread_time() - start)
        start = time.thread_time()
        scene.rounds.distances([q, np.zeros((postures, 0))], [out], 1)
        alone.append(time.thread_time() - start)
    return len(spheres), len(scene.pairs), min(whole) / postures, min(alone) / postures


def run(chosen: argparse.Namespace) -> int:
    title = f"postures per second on one core; target for the Panda: {DISTANCES:,.0f}"
    table = Table("robot", "spheres", "pairs of links", "calls", "program alone", title=title)
    for name in chosen.robots:
        spheres, pairs, *times = measure(name, chosen.postures)
        table.add_row(name, str(spheres), str(pairs), *(f"{1.0 / t:,.0f}" for t in times))
    output().print(table)
    return 0
