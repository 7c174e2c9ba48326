"""Pairs of extended bodies: rates by finite differences, known patches, continuous gaps."""

import math
from itertools import product

import numpy as np
import pytest
from contact_bodies import GRAVITY, body, free, touch, turned
from support import raises

from chasles import contact
from chasles.motion.contact.dynamics import contact_problem
from chasles.motion.geometry.kinematics import carrier
from chasles.motion.geometry.patches import _placed

coal = pytest.importorskip("coal", reason="pairs of extended bodies need the extra contact")

TWO = free(body(1.0, (0.3, 0.2, 0.4), "upper"), body(2.0, (0.5, 0.4, 0.6), "lower"))
STONE = 0.2 * np.random.default_rng(3).normal(size=(14, 3))


def shapes(frame: str) -> dict[str, object]:
    """One shape of each kind, displaced from the origin of its frame."""
    return {
        "capsule": contact.Capsule(frame, 0.1, (0.0, 0.05, 0.3), (0.1, 0.0, -0.2)),
        "box": contact.Box(frame, (0.3, 0.5, 0.4), (0.05, 0.0, 0.02)),
        "cylinder": contact.Cylinder(frame, 0.2, (0.0, 0.0, -0.25), (0.05, 0.1, 0.3)),
        "mesh": contact.ConvexMesh(frame, STONE),
    }


PAIRS = list(product(shapes("upper"), shapes("lower")))


def pair(names: tuple[str, str]):
    return shapes("upper")[names[0]], shapes("lower")[names[1]]


def scattered(rng: np.random.Generator, least: float = 0.4, most: float = 0.9) -> np.ndarray:
    """Configuration with the upper body `least` to `most` meters from the lower one.

    The direction is random.
    """
    q = TWO.random(rng)
    way = rng.normal(size=3)
    q[4:7] = rng.uniform(least, most) * way / np.linalg.norm(way)
    q[11:14] = 0.0
    return q


def distance(q: np.ndarray, names: tuple[str, str]) -> float:
    """Return the distance that coal computes."""
    upper, lower = (
        _placed(shape, carrier(TWO.mechanism, q, np.zeros(12), shape.frame))
        for shape in pair(names)
    )
    return float(coal.distance(*upper, *lower, coal.DistanceRequest(), coal.DistanceResult()))


# Rates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_rates_of_two_moving_bodies_by_finite_differences(names: tuple[str, str]) -> None:
    rng, h, kinds = np.random.default_rng(5), 1e-5, 0
    shapes_of_pair = pair(names)
    for _ in range(12):
        q, (qd, qdd) = scattered(rng), rng.normal(size=(2, TWO.nv))

        def at(s: float, q=q, qd=qd, qdd=qdd):
            v = qd + s * qdd
            there = TWO.integrate(q, s * qd + 0.5 * s * s * qdd)
            return there, v, contact.contact_points(TWO, there, v, *shapes_of_pair)

        now, (after, v1, later), (before, v0, earlier) = at(0.0)[2], at(h), at(-h)
        if not len(now) == len(later) == len(earlier):
            continue  # another point joins the patch
        for c, last, first in zip(now, later, earlier, strict=True):
            for name, rate in (("point", c.point_rate), ("normal", c.normal_rate)):
                moved = (getattr(last, name) - getattr(first, name)) / (2.0 * h)
                assert np.allclose(moved, rate, rtol=1e-5, atol=1e-5)
            moves = touch(TWO.mechanism, q, qd, c)
            rate = (last.gap - first.gap) / (2.0 * h)
            assert c.normal @ moves.velocity == pytest.approx(rate, abs=1e-6)
            rates = [
                k.normal @ touch(TWO.mechanism, p, v, k).velocity
                for k, p, v in ((last, after, v1), (first, before, v0))
            ]
            bias = c.normal @ moves.bias + c.normal_rate @ moves.velocity
            second = c.normal @ moves.J @ qdd + bias
            assert (rates[0] - rates[1]) / (2.0 * h) == pytest.approx(second, rel=1e-4, abs=1e-4)
            kinds += 1
    assert kinds >= 10


@pytest.mark.parametrize("names", PAIRS[1:], ids="-".join)
def test_the_least_gap_is_coals_distance(names: tuple[str, str]) -> None:
    """The gap agrees within coal's accuracy, for bodies apart and bodies that overlap slightly."""
    rng, deep = np.random.default_rng(6), 0
    for _ in range(30):
        q = scattered(rng, 0.25, 0.7)
        expected = distance(q, names)
        if expected < -0.05:
            continue
        found = contact.contact_points(TWO, q, np.zeros(12), *pair(names))
        assert min(c.gap for c in found) == pytest.approx(expected, abs=5e-6)
        deep += expected < 0.0
    assert deep > 0


def test_the_two_ways_round_are_one_contact() -> None:
    rng = np.random.default_rng(7)
    for names in PAIRS:
        q, qd = scattered(rng), rng.normal(size=12)
        over, under = pair(names)
        (c,), (d,) = (
            contact.contact_points(TWO, q, qd, *two)[:1] for two in ((over, under), (under, over))
        )
        assert c.gap == pytest.approx(d.gap, abs=1e-9)
        assert np.allclose(c.normal, -d.normal, atol=1e-8)
        assert np.allclose(c.point - c.gap * c.normal, d.point, atol=1e-8)
        assert np.allclose(c.normal_rate, -d.normal_rate, atol=1e-5)


# Closed forms ----------------------------------------------------------------------------------


def level(x: float, y: float, z: float, yaw: float = 0.0) -> np.ndarray:
    """Configuration with the upper body above the lower one, which is at the origin."""
    return np.array([*turned(yaw, (0.0, 0.0, 1.0)), x, y, z, 1.0, 0, 0, 0, 0, 0, 0])


SQUARE = contact.Box("upper", (1.0, 1.0, 0.2)), contact.Box("lower", (1.0, 1.0, 0.2))


@pytest.mark.parametrize("gap", [0.05, 0.0, -1e-6])
def test_patches_of_two_boxes(gap: float) -> None:
    """Equal squares touch at all corners, in a rectangle if shifted, in an octagon if rotated."""
    inner = math.sqrt(0.5) - 0.5
    octagon = [p for s in (-0.5, 0.5) for r in (-inner, inner) for p in ((s, r), (r, s))]
    half, part = (-0.5, 0.5), (-0.2, 0.5)
    for q, corners in (
        (level(0.0, 0.0, 0.2 + gap), list(product(half, half))),
        (level(0.3, 0.3, 0.2 + gap), list(product(part, part))),
        (level(0.0, 0.0, 0.2 + gap, 0.25 * math.pi), octagon),
    ):
        found = contact.contact_points(TWO, q, np.zeros(12), *SQUARE)
        places = sorted(tuple(np.round(c.point[:2], 9) + 0.0) for c in found)
        assert np.allclose(places, sorted(corners), atol=1e-9)
        assert len(contact.minimal(found)) == len(found)
        for c in found:
            assert c.gap == pytest.approx(gap, abs=1e-12)
            assert np.allclose(c.normal, [0.0, 0.0, 1.0], atol=1e-12)


def test_lines_and_discs_on_a_box() -> None:
    """An edge, a lying cylinder and a capsule touch at two points.

    A standing cylinder touches at its rim. If the cylinder overhangs the box, it touches only above
    the box.
    """
    table = contact.Box("lower", (2.0, 0.4, 0.2))
    edge = np.array([*turned(0.25 * math.pi, (1.0, 0, 0)), 0, 0, 0.1 + 0.2 * math.sqrt(0.5)])
    q = np.concatenate([edge, level(0, 0, 0)[7:]])
    found = contact.contact_points(
        TWO, q, np.zeros(12), contact.Box("upper", (0.5, 0.2, 0.2)), table
    )
    assert sorted(c.point[0] for c in found) == pytest.approx([-0.25, 0.25])
    ends = (-0.3, 0.0, 0.0), (0.3, 0.0, 0.0)
    for lying in (contact.Cylinder("upper", 0.1, *ends), contact.Capsule("upper", 0.1, *ends)):
        found = contact.contact_points(TWO, level(0, 0, 0.2), np.zeros(12), lying, table)
        assert sorted(c.point[0] for c in found) == pytest.approx([-0.3, 0.3])
        assert [float(c.gap) for c in found] == pytest.approx([0.0, 0.0], abs=1e-12)
    standing = contact.Cylinder("upper", 0.1, (0, 0, -0.1), (0, 0, 0.1))
    found = contact.contact_points(TWO, level(0, 0, 0.2), np.zeros(12), standing, table)
    assert len(contact.minimal(found)) == 8
    over_edge = contact.contact_points(TWO, level(0, 0.17, 0.2), np.zeros(12), standing, table)
    assert max(c.point[1] for c in over_edge) == pytest.approx(0.2)
    assert all(np.hypot(*(c.point[:2] - [0, 0.17])) <= 0.1 + 1e-9 for c in over_edge)


def test_capsules_and_balls_in_closed_form() -> None:
    """Gaps of capsules agree with closed forms.

    The gap of crossed capsules is the distance of their axes minus their radii. Parallel capsules
    touch along a line. A very short capsule is a ball.
    """
    under = contact.Capsule("lower", 0.1, (-0.5, 0.0, 0.0), (0.5, 0.0, 0.0))
    over = contact.Capsule("upper", 0.05, (-0.3, 0.0, 0.0), (0.3, 0.0, 0.0))
    (c,) = contact.contact_points(TWO, level(0.1, 0, 0.4, 0.5 * math.pi), np.zeros(12), over, under)
    assert c.gap == pytest.approx(0.25)
    assert c.point == pytest.approx([0.1, 0.0, 0.35])
    both = contact.contact_points(TWO, level(0.4, 0, 0.15), np.zeros(12), over, under)
    assert sorted(k.point[0] for k in both) == pytest.approx([0.1, 0.5])
    rng = np.random.default_rng(8)
    for names in PAIRS:
        short = contact.Capsule("upper", 0.1, (0, 0, -1e-9), (0, 0, 1e-9))
        q, qd = scattered(rng), rng.normal(size=12)
        ball = contact.Sphere("upper", 0.1)
        found = contact.contact_points(TWO, q, qd, short, pair(names)[1])[0]
        (exact,) = contact.contact_points(TWO, q, qd, ball, pair(names)[1])
        assert found.gap == pytest.approx(exact.gap, abs=1e-8)
        assert np.allclose(found.normal, exact.normal, atol=1e-6)
        assert np.allclose(found.normal_rate, exact.normal_rate, atol=1e-4)


# Systems ---------------------------------------------------------------------------------------


def test_a_stack_carries_its_weight() -> None:
    """A box rests on a box on the ground, which carries both weights.

    A moment on the upper box displaces the center of pressure by the moment divided by the weight.
    """
    size = (0.4, 0.3, 0.2)
    robot = free(body(1.0, (0.3, 0.2, 0.4), "upper"), body(2.0, (0.5, 0.4, 0.6), "lower"))
    upper, lower = (contact.Box(name, size) for name in ("upper", "lower"))
    q = np.array([1.0, 0, 0, 0, 0.1, 0, 0.3, 1, 0, 0, 0, 0, 0, 0.1])
    qd, tau = np.zeros(12), np.zeros(12)
    tau[1] = 0.5
    between = contact.contact_points(robot, q, qd, upper, lower)
    ground = [
        c for c in contact.contact_points(robot, q, qd, lower, contact.Plane()) if c.gap < 1e-9
    ]
    problem = contact_problem(robot, q, qd, tau, [*between, *ground])
    motion = contact.solve(problem)
    assert np.allclose(motion.qdd, 0.0, atol=1e-10)
    up, down = motion.forces[: len(between)], motion.forces[len(between) :]
    assert np.sum(up) == pytest.approx(GRAVITY)
    assert np.sum(down) == pytest.approx(3.0 * GRAVITY)
    x = np.array([c.point[0] for c in between])
    assert up @ x == pytest.approx(0.1 * GRAVITY + 0.5)


def test_the_least_gap_does_not_jump_where_features_change() -> None:
    """The least gap changes no faster than the fastest point moves.

    A box or cylinder slides over a table's edge, tips and falls, and points come and go (geometric
    loss).
    """
    table = contact.Box("lower", (1.0, 1.0, 0.2))
    for shape in (
        contact.Box("upper", (0.3, 0.2, 0.2)),
        contact.Cylinder("upper", 0.1, (-0.15, 0, 0), (0.15, 0, 0)),
    ):
        times, counts, gaps = np.linspace(0.0, 1.0, 151), set(), []
        for t in times:
            tilt = 2.0 * max(t - 0.4, 0.0)
            q = np.array([*turned(tilt), 0.2 + t, 0.0, 0.201 - 0.1 * t * t, 1.0, 0, 0, 0, 0, 0, 0])
            found = contact.contact_points(TWO, q, np.zeros(12), shape, table)
            counts.add(len(found))
            gaps.append(min(float(c.gap) for c in found))
        fastest = 1.0 + 0.2 + 2.0 * 0.25
        assert np.max(np.abs(np.diff(gaps))) <= fastest * (times[1] - times[0])
        assert len(counts) > 1
        assert min(gaps) < -0.01
        assert max(gaps) > 0.02


def test_what_has_no_patch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    over, under = pair(("box", "mesh"))
    q = np.array([scattered(np.random.default_rng(9))] * 2)
    with raises("E-CONTACT-048"):
        contact.contact_points(TWO, q, np.zeros((2, 12)), over, under)
    monkeypatch.setitem(__import__("sys").modules, "coal", None)
    with raises("E-CONTACT-059"):
        contact.contact_points(TWO, q[0], np.zeros(12), over, under)
