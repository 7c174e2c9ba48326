"""Random bodies and robots dropped on random ground: `python -m fuzz drops --minutes 30`.

A scene has one to three free bodies or a quadruped, above a plane or hills. The masses (with ratios
up to 1e6), the friction (0 to 10) and the step size (0.1 to 10 ms) are random. A batch of states of
the scene is simulated; in some of them, bodies overlap the ground at the start. All results must be
finite. The work of contact forces must not exceed the energy that overlaps may release.
"""

import math
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import chasles
from chasles import contact
from chasles.expr import sin

BATCH, STEPS = 4096, 120
"""Number of states per scene, and of steps per state."""

WORK = 1e-6
"""Largest excess work of contact forces in a step, relative to the energy in the scene."""


class Scene(NamedTuple):
    """A robot, its contact pairs, step size (s), size of the bodies (m) and description."""

    robot: Any
    pairs: list[contact.Pair]
    dt: float
    size: float
    words: str


def drops(seconds: float, seed: int) -> list[str]:
    """Simulate random scenes for the given number of seconds; return a line per finding."""
    end, found, counts = time.monotonic() + seconds, [], Counter[str]()
    while time.monotonic() < end:
        rng = np.random.default_rng(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scene, wrong = "scene not created", ""
            try:
                made = _scene(rng)
                scene = made.words
                wrong = _dropped(made, rng, counts)
            except Exception as error:  # any exception is a finding
                wrong = f"{type(error).__name__}: {error}"
        counts["scenes"] += 1
        if wrong:
            found.append(f"seed {seed}: {scene}: {wrong}")
            print(found[-1], flush=True)
        if counts["scenes"] % 20 == 0:
            print(dict(counts), flush=True)
        seed += 1
    print(f"{counts['drops']} drops in {counts['scenes']} scenes, next seed {seed}")
    return found


def scene_and_states(seed: int) -> tuple[Scene, np.ndarray, np.ndarray]:
    """Return the scene for a seed, and its initial states q and qd."""
    rng = np.random.default_rng(seed)
    scene = _scene(rng)
    return scene, *_states(scene, rng)


def _states(scene: Scene, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    robot = scene.robot
    q = robot.random(rng, (BATCH,))
    for joint in robot.joints:
        at, speeds = robot.position_slice(joint), robot.velocity_slice(joint)
        if speeds.stop - speeds.start == 6:
            place = scene.size * rng.uniform(-1.0, 1.0, (BATCH, 3))
            place[:, 2] = scene.size * rng.uniform(-0.5, 3.0, BATCH)
            q[:, at.start + 4 : at.stop] = place
    return q, rng.normal(size=(BATCH, robot.nv)) * 10.0 ** rng.uniform(-2.0, 1.0, (BATCH, 1))


def _dropped(scene: Scene, rng: np.random.Generator, counts: Counter[str]) -> str:
    """Simulate a batch; return a description of the error, or an empty string."""
    robot, (q, qd) = scene.robot, _states(scene, rng)
    run = robot.simulate(
        q, qd, dt=scene.dt, steps=STEPS, contacts=scene.pairs, integrator="time-stepping",
        every=STEPS, limits=True, dissipation=True,
    )  # fmt: skip
    counts["drops"] += BATCH
    counts["steps"] += BATCH * STEPS
    counts["unsolved steps"] += int(run.unsolved.sum())
    bad = ~(np.isfinite(run.q).all((1, 2)) & np.isfinite(run.qd).all((1, 2)))
    if bad.any():
        return f"{bad.sum()} states are not finite; the first has index {np.argmax(bad)}"
    energy = robot.kinetic_energy(run.q, run.qd).max(axis=1) + np.abs(run.work)
    part = run.excess / (energy + 1e-12)
    if part.max() > WORK:
        worst = int(np.argmax(part))
        return f"{(part > WORK).sum()} states gain energy, {part[worst]:.1e} in state {worst}"
    return ""


def _scene(rng: np.random.Generator) -> Scene:
    mu = 0.0 if rng.random() < 0.1 else 10.0 ** rng.uniform(-2.0, 1.0)
    restitution = rng.random() if rng.random() < 0.2 else 0.0
    law, dt = contact.Rigid(friction=mu, restitution=restitution), 10.0 ** rng.uniform(-4.0, -2.0)
    tilt = rng.uniform(-0.5, 0.5, 2)
    ground: Any = contact.Plane(None, (float(tilt[0]), float(tilt[1]), 1.0))
    hills = rng.random() < 0.2
    if hills:
        steep = float(rng.uniform(0.0, 0.05))

        def height(x: Any, y: Any) -> Any:
            return steep * sin(3.0 * x) * sin(2.0 * y)

        ground = contact.Ground(height)
    words = f"mu {mu:.3g}, e {restitution:.2f}, dt {dt:.2e} s, {'hills' if hills else 'plane'}"
    if rng.random() < 0.15:
        robot = chasles.robots.quadruped()
        feet = [name for name in robot.frames if "foot" in name.lower()]
        bodies = [contact.Sphere(name, 0.02) for name in feet]
        pairs = [contact.Pair(body, ground, law) for body in bodies]
        return Scene(robot, pairs, dt, 0.5, f"quadruped, {words}")
    return _bodies(rng, law, ground, dt, hills, words)


def _bodies(
    rng: np.random.Generator, law: Any, ground: Any, dt: float, hills: bool, words: str
) -> Scene:
    """Return a scene with one to three free bodies."""
    count, parts, shapes = int(rng.integers(1, 4)), [], []
    for k in range(count):
        mass = 10.0 ** rng.uniform(-3.0, 3.0)
        edges = 0.2 * 10.0 ** rng.uniform(-0.7, 0.0, 3)
        moments = mass / 12.0 * (np.sum(edges**2) - edges**2)
        text = " ".join(f"{m:.17g}" for m in moments)
        parts.append(
            f'<body name="b{k}"><freejoint/>'
            f'<inertial pos="0 0 0" mass="{mass:.17g}" diaginertia="{text}"/></body>'
        )
        shapes.append(_shape(rng, f"b{k}", edges, hills))
        words += f", {type(shapes[-1]).__name__} of {mass:.3g} kg"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bodies.xml"
        path.write_text(f"<mujoco><worldbody>{''.join(parts)}</worldbody></mujoco>", "utf-8")
        robot = chasles.load(path)
    pairs = [contact.Pair(shape, ground, law) for shape in shapes]
    for a in range(count):
        for b in range(a):
            kinds = (type(shapes[a]), type(shapes[b]))
            if kinds in TOGETHER:
                pairs.append(contact.Pair(shapes[a], shapes[b], law))
            elif kinds[::-1] in TOGETHER:
                pairs.append(contact.Pair(shapes[b], shapes[a], law))
    return Scene(robot, pairs, dt, 0.2 * math.sqrt(count), words)


TOGETHER = {
    (contact.Sphere, contact.Sphere), (contact.Sphere, contact.Capsule),
    (contact.Capsule, contact.Sphere), (contact.Capsule, contact.Capsule),
    (contact.Sphere, contact.Box), (contact.Box, contact.Box),
}  # fmt: skip
"""Pairs of shapes between which contact is simulated."""


def _shape(rng: np.random.Generator, name: str, edges: np.ndarray, hills: bool) -> Any:
    kind, half = int(rng.integers(0, 3 if hills else 4)), float(edges[2]) / 2.0
    if kind == 0:
        return contact.Sphere(name, half)
    if kind == 1:
        return contact.Box(name, tuple(map(float, edges)))
    ends = (0.0, 0.0, -half), (0.0, 0.0, half)
    return (contact.Capsule if kind == 2 else contact.Cylinder)(name, float(edges[0]) / 2.0, *ends)
