"""Shared contact slots: the motion of separate slots, overflow, and a robot of many shapes."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from support import raises

import chasles
from chasles import contact
from chasles.motion.contact.points import slot_names

BALLS = 4
RADIUS = 0.05


@pytest.fixture(scope="module")
def balls(tmp_path_factory):
    """Balls that move in the plane y = 0, and spin about the vertical."""
    rows = "".join(
        f'<body name="b{k}"><inertial pos="0 0 0" mass="{1 + 0.3 * k}" diaginertia="1e-3 1e-3 1e-3"'
        f'/><joint name="x{k}" type="slide" axis="1 0 0"/><joint name="z{k}" type="slide" '
        f'axis="0 0 1"/><joint name="s{k}" type="hinge" axis="0 0 1"/></body>'
        for k in range(BALLS)
    )
    path = tmp_path_factory.mktemp("balls") / "balls.xml"
    path.write_text(f"<mujoco><worldbody>{rows}</worldbody></mujoco>")
    return chasles.load(path)


def pairs(shared, torsion=0.0):
    shapes = [contact.Sphere(f"b{k}", RADIUS) for k in range(BALLS)]
    law = contact.Rigid(friction=0.4, torsion=torsion)
    own = [contact.Pair(a, b, law, shared=shared) for a, b in combinations(shapes, 2)]
    return [contact.Pair(a, contact.Plane(), law) for a in shapes] + own


def dropped(robot, given, duration=0.3):
    """Simulate a heap: two balls side by side, and two that fall into the gap between them."""
    q = np.array([[-0.055, 0.05, 0.0], [0.055, 0.051, 0.0], [-0.02, 0.16, 0.0], [0.03, 0.25, 0.0]])
    qd = np.tile([0.0, 0.0, 3.0], BALLS)
    options = {"duration": duration, "dt": 0.002, "integrator": "time-stepping"}
    return robot.simulate(q.ravel(), qd, contacts=given, **options)


@pytest.mark.parametrize("torsion", [0.0, 0.01])
def test_shared_slots_give_the_motion_of_separate_ones(balls, torsion):
    """The order of the equations differs, and impacts amplify the difference in rounding."""
    alone, shared = (dropped(balls, pairs(slots, torsion)) for slots in (0, 3))
    touching = np.sum(alone.touching.gaps[:, BALLS:] <= 1e-6, axis=-1)
    assert 2 <= touching.max() <= 3
    assert shared.touching.gaps.shape[-1] == BALLS + 3
    assert shared.overflow == alone.overflow == 0
    np.testing.assert_allclose(shared.q, alone.q, atol=1e-7)  # the residual is 1e-6


def test_slots_are_named_by_pairs(balls):
    """Each slot has the name of its pair; shared slots have a common name."""
    alone, shared = (slot_names(balls.model, pairs(n), 99, stepped=True) for n in (0, 3))
    assert alone[: BALLS + 1] == [f"b{k} on ground" for k in range(BALLS)] + ["b0 on b1"]
    assert len(alone) == BALLS + 6
    assert shared == alone[:BALLS] + ["6 pairs of links"] * 3


def test_overflow_counts_steps_with_more_contacts_than_slots(balls):
    run = dropped(balls, pairs(1))
    assert run.overflow > 0
    assert np.isfinite(run.q).all()


def test_the_shapes_of_a_humanoid_do_not_pass_through_each_other():
    files = pytest.importorskip("importlib.resources").files("gymnasium")
    robot = chasles.load(str(files / "envs/mujoco/assets/humanoid.xml"))
    given = contact.file_pairs(robot)
    own = [pair for pair in given if pair.shared]
    assert len(own) == 109
    q = robot.neutral()
    q[7:] = 0.3 * np.random.default_rng(2).normal(size=robot.nq - 7)
    run = robot.simulate(q, np.zeros(robot.nv), duration=1.2, dt=0.002, contacts="file")
    assert run.compiled
    assert run.overflow == 0
    lone = robot.simulate(
        q, np.zeros(robot.nv), duration=1.2, dt=0.002, limits=True, dissipation=True,
        contacts=[pair for pair in given if not pair.shared], integrator="time-stepping",
    )  # fmt: skip
    # Overlaps of the robot's shapes at the recorded states, from the distances of their axes.
    assert depth(robot, own, lone.q[::20]) > 0.02
    assert depth(robot, own, run.q[::20]) < depth(robot, own, run.q[:1]) + 1e-3


def depth(robot, given, q):
    """Return the largest overlap of spheres and capsules in the given states."""
    worst = 0.0
    for at in q:
        places = {f: robot.forward_kinematics(at, frame=f) for p in given for f in p.frames}
        for pair in given:
            ends = [axis(places[s.frame], s) for s in (pair.body, pair.surface)]
            worst = max(worst, pair.body.radius + pair.surface.radius - between(*ends))
    return worst


def axis(T, shape):
    points = [at for at, _ in shape.balls()]
    return [T[:3, :3] @ p + T[:3, 3] for p in (points[0], points[-1])]


def between(one, other):
    """Return the distance of two segments, from many points on each."""
    s = np.linspace(0.0, 1.0, 60)[:, None]
    a, b = (np.asarray(x[0]) * (1.0 - s) + np.asarray(x[1]) * s for x in (one, other))
    return np.min(np.linalg.norm(a[:, None] - b[None], axis=-1))


def test_numbers_of_shared_slots_are_checked():
    pair = pairs(0)[-1]
    for wrong in (-1, 1000, 2.0, True):
        with raises("E-CONTACT-091"):
            replace(pair, shared=wrong)
