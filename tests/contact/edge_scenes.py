"""Random scenes of boxes that leave edges: `python tests/contact/edge_scenes.py 0 1000`.

The arguments are the first scene's number and the number of scenes. The number of a scene
determines its kind, and is the seed of its random values. The command prints a table with one row
per kind of scene: errors, the largest growth of energy relative to the largest energy, and the
deepest penetration.
"""

import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1]))

from contact_bodies import GRAVITY, body, free, turned

import chasles
from chasles.contact import Box, Pair, Plane, Rigid, Stronge
from chasles.model import LinkData

Size = tuple[float, float, float]

DURATION, DT = 0.4, 1e-2
UP = (0.0, 0.0, 1.0)

BOXES: dict[Size, float] = {
    (0.2, 0.2, 0.2): 2.0,
    (0.1, 0.3, 0.15): 1.0,
    (0.35, 0.25, 0.12): 3.0,
    (0.12, 0.17, 0.38): 0.5,
    (0.4, 0.11, 0.3): 1.7,
    (0.23, 0.39, 0.21): 0.8,
}
"""Sizes (m) and masses (kg) of the falling boxes.

There are few, since each robot is compiled once.
"""

SLEDGES: dict[Size, float] = {(0.4, 0.6, 0.2): 2.0, (0.8, 0.5, 0.1): 5.0, (0.3, 0.3, 0.15): 1.0}
"""Sizes (m) and masses (kg) of the boxes below them."""


class Scene(NamedTuple):
    """Robot of one or two boxes, its state, and its contact pairs."""

    robot: chasles.Robot
    q: np.ndarray
    qd: np.ndarray
    pairs: list[Pair]


class Thrown(NamedTuple):
    """Pose and velocities of a box along the world's axes; `place` is its center's position."""

    quaternion: np.ndarray
    place: np.ndarray
    w: np.ndarray
    v: np.ndarray

    @property
    def q(self) -> np.ndarray:
        return np.concatenate([self.quaternion, self.place])

    @property
    def qd(self) -> np.ndarray:
        """Velocities along the box's own axes, as a free joint needs them."""
        a, b, c, d = self.quaternion
        axis = np.array([b, c, d])
        across = np.array([[0.0, -d, c], [d, 0.0, -b], [-c, b, 0.0]])
        R = np.eye(3) * (a * a - axis @ axis) + 2.0 * (np.outer(axis, axis) + a * across)
        return np.concatenate([R.T @ self.w, R.T @ self.v])


def cuboid(name: str, mass: float, size: Size) -> LinkData:
    x, y, z = (mass * s * s / 12.0 for s in size)
    return body(mass, (y + z, x + z, x + y), name)


@cache
def robot_of(size: Size, sledge: Size | None = None) -> chasles.Robot:
    """Return a robot with a free box b, and a free sledge a if `sledge` is given."""
    box = cuboid("b", BOXES[size], size)
    return free(box) if sledge is None else free(cuboid("a", SLEDGES[sledge], sledge), box)


def _one(rng: np.random.Generator, sizes: dict[Size, float]) -> Size:
    return [*sizes][rng.integers(len(sizes))]


def _law(rng: np.random.Generator) -> Rigid:
    """Return a law with friction between 0 and 0.9.

    Some laws have restitution, by an impact law that never creates energy.
    """
    mu = float(rng.choice([0.0, 0.1, 0.3, 0.5, rng.uniform(0.0, 0.9)]))
    e = float(rng.choice([0.0, 0.0, 0.0, 0.5]))
    return Rigid(mu, impact=Stronge(e, mu)) if e else Rigid(mu)


def _sliding(rng: np.random.Generator, size: Size, top: float, edge: float) -> Thrown:
    """Box on a level top that slides towards the edge at x = edge, with or without spin."""
    spin = rng.uniform(-6.0, 6.0) * (rng.random() < 0.7)
    place = np.array([edge * rng.uniform(0.5, 1.0), edge * rng.uniform(-0.8, 0.8), top])
    place[2] += 0.5 * size[2]
    v = np.array([rng.uniform(0.5, 3.0), rng.uniform(-1.0, 1.0), 0.0])
    yaw = rng.uniform(-np.pi, np.pi)
    return Thrown(turned(yaw, UP), place, np.array([0, 0, spin]), v)


def _aligned(rng: np.random.Generator, size: Size, top: float, edge: float) -> Thrown:
    """Sliding box whose edges are parallel to those of the top."""
    thrown = _sliding(rng, size, top, edge)
    quarter = turned(0.5 * np.pi * rng.integers(4), UP)
    v = thrown.v * [1.0, rng.integers(2), 0.0]
    return thrown._replace(quaternion=quarter, w=np.zeros(3), v=v)


def _resting(rng: np.random.Generator, size: Size, top: float, edge: float) -> Thrown:
    """Box at rest with its center near the edge or beyond it."""
    still = np.zeros(3)
    yaw = rng.choice([0.0, 0.25 * np.pi, rng.uniform(-np.pi, np.pi)])
    place = np.array([edge + rng.uniform(-0.2, 0.45) * min(size[:2]), 0.0, top + 0.5 * size[2]])
    return Thrown(turned(yaw, UP), place, still, still)


def _tumbling(rng: np.random.Generator, size: Size, top: float, edge: float) -> Thrown:
    """Box in the air near the edge, with random orientation and angular velocity."""
    quaternion = rng.normal(size=4)
    place = np.array([edge + rng.uniform(-0.2, 0.1), edge * rng.uniform(-0.8, 0.8), top + 0.05])
    place[2] += 0.5 * np.linalg.norm(size)
    w, v = rng.normal(size=(2, 3)) * [[3.0] * 3, [1.0, 1.0, 0.5]]
    return Thrown(quaternion / np.linalg.norm(quaternion), place, w, v)


def _fixed(rng: np.random.Generator, throw: Callable[..., Thrown], half: float) -> Scene:
    """Box on a table that does not move."""
    size = _one(rng, BOXES)
    table = Box(None, (2.0 * half, 2.0 * half, 0.2), (0.0, 0.0, -0.1))
    thrown, pair = throw(rng, size, 0.0, half), Pair(Box("b", size), table, _law(rng))
    return Scene(robot_of(size), thrown.q, thrown.qd, [pair])


def _moving(rng: np.random.Generator, throw: Callable[..., Thrown]) -> Scene:
    """Box on another box that slides over the ground; both boxes can fall on the ground."""
    size, sledge_size = _one(rng, BOXES), _one(rng, SLEDGES)
    low, high, law, (x, _, z) = Box("a", sledge_size), Box("b", size), _law(rng), sledge_size
    sledge = Thrown(turned(0.0), np.array([0, 0, 0.5 * z]), np.zeros(3), np.zeros(3))
    sledge = sledge._replace(v=np.array([rng.uniform(-2.0, 2.0), 0.0, 0.0]))
    thrown = throw(rng, size, z, 0.5 * x)
    ground = Rigid(float(rng.choice([0.0, 0.2, 0.5])))
    pairs = [Pair(low, Plane(), ground), Pair(high, Plane(), law), Pair(high, low, law)]
    q, qd = (np.concatenate([a, b]) for a, b in ((sledge.q, thrown.q), (sledge.qd, thrown.qd)))
    return Scene(robot_of(size, sledge_size), q, qd, pairs)


KINDS: dict[str, Callable[[np.random.Generator], Scene]] = {
    "slides off a table": lambda rng: _fixed(rng, _sliding, 0.5),
    "slides off, edges aligned": lambda rng: _fixed(rng, _aligned, 0.5),
    "at rest across an edge": lambda rng: _fixed(rng, _resting, 0.5),
    "tumbles on an edge": lambda rng: _fixed(rng, _tumbling, 0.5),
    "slides off a pillar": lambda rng: _fixed(rng, _sliding, 0.1),
    "slides off a moving box": lambda rng: _moving(rng, _sliding),
    "the same, edges aligned": lambda rng: _moving(rng, _aligned),
    "at rest across a moving edge": lambda rng: _moving(rng, _resting),
    "tumbles on a moving box": lambda rng: _moving(rng, _tumbling),
}


def scene(number: int) -> tuple[str, Scene]:
    """Return the kind of a scene, and the scene."""
    kind = [*KINDS][number % len(KINDS)]
    return kind, KINDS[kind](np.random.default_rng(number))


class Outcome(NamedTuple):
    """Largest growth of energy (J), reference energy (J), least gap (m) and number of events."""

    grown: float
    size: float
    gap: float
    events: int


def outcome(given: Scene) -> Outcome:
    """Simulate a scene, and evaluate all stored states: each step, and both sides of each event."""
    robot, q, qd, pairs = given
    run = chasles.simulate(robot, q, qd, duration=DURATION, dt=DT, contacts=pairs)
    kinetic = robot.kinetic_energy(run.q, run.qd)
    energy = kinetic + robot.potential_energy(run.q)
    size = max(float(np.max(kinetic)), float(GRAVITY * 0.1 * robot.mass_matrix(q)[3, 3]))
    gap = float(np.min(run.touching.gaps))
    return Outcome(float(np.max(np.diff(energy))), size, gap, len(run.events))


def main(first: int, count: int) -> None:
    """Simulate scenes, print faults immediately, and print a table at the end."""
    rows: dict[str, list[tuple[float, Outcome | None]]] = {kind: [] for kind in KINDS}
    for number in range(first, first + count):
        kind, given = scene(number)
        start, found = time.process_time(), None
        try:
            found = outcome(given)
        except Exception as error:  # report every error, and continue with the other scenes
            print(f"{number} {kind}: {type(error).__name__}: {error}", flush=True)
        spent = time.process_time() - start
        rows[kind].append((spent, found))
        if number % 100 == 99:
            print(f"{number + 1 - first} of {count}", file=sys.stderr, flush=True)
        if found and (found.grown > 1e-6 * found.size or found.gap < -1e-6 or spent > 20.0):
            print(f"{number} {kind}: {found} {spent:.0f} s", flush=True)
    print("| scene | scenes | errors | energy grows by at most | least gap (m) | s each |")
    for kind, all_of in rows.items():
        good = [found for _, found in all_of if found]
        grown = max((found.grown / found.size for found in good), default=0.0)
        gap = min((found.gap for found in good), default=0.0)
        spent = np.mean([t for t, _ in all_of]) if all_of else 0.0
        errors = len(all_of) - len(good)
        print(f"| {kind} | {len(all_of)} | {errors} | {grown:.1e} | {gap:.1e} | {spent:.1f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
