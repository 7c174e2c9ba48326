"""Contact geometry: gaps, normals and rates agree with finite differences; minimal point sets."""

import numpy as np
import pytest
from contact_bodies import body, free, touch
from scipy.optimize import minimize
from scipy.spatial import ConvexHull
from support import raises

from chasles import contact
from chasles.expr import cos, sin

TWO = free(body(1.0, (0.3, 0.2, 0.4), "upper"), body(2.0, (0.5, 0.4, 0.6), "lower"))
HILLS = contact.Ground(lambda x, y: 0.1 * sin(2.0 * x) * cos(1.5 * y) + 0.05 * x * x)
BALL = contact.Sphere("upper", 0.11, (0.1, -0.2, 0.05))
PAIRS = [
    (contact.Point("upper", (0.1, 0.2, -0.3)), contact.Plane(None, (0.3, -0.2, 1.0))),
    (contact.Capsule("upper", 0.1, (0.0, 0.0, 0.3), (0.1, 0.0, -0.2)), contact.Plane("lower")),
    (
        contact.Box("upper", (0.2, 0.3, 0.4), (0.1, 0.0, 0.0)),
        contact.Plane("lower", (1.0, 2.0, 3.0)),
    ),
    (contact.Point("upper", (0.0, 0.1, 0.0)), HILLS),
    (BALL, HILLS),
    (BALL, contact.Ground(HILLS.height, "lower")),
    (BALL, contact.Sphere("lower", 0.2, (0.0, 0.1, 0.0))),
    (BALL, contact.Capsule("lower", 0.2, (-0.5, 0.0, 0.0), (0.5, 0.1, 0.0))),
    (BALL, contact.Box("lower", (0.4, 0.6, 0.2), (0.0, 0.1, 0.0))),
]
BEYOND = [  # not traced into compiled steps
    (BALL, contact.Cylinder("lower", 0.2, (-0.3, 0.0, 0.1), (0.3, 0.1, 0.0))),
    (BALL, contact.ConvexMesh("lower", 0.4 * np.random.default_rng(1).normal(size=(12, 3)))),
    (contact.Box("upper", (0.2, 0.3, 0.4)), contact.Sphere("lower", 0.1, (0.0, 0.1, 0.0))),
    (contact.Cylinder("upper", 0.2, (0.0, 0.1, 0.2), (0.1, 0.0, -0.2)), contact.Plane("lower")),
    (contact.Cylinder("upper", 0.2, (0.0, 0.1, 0.2), (0.1, 0.0, -0.2)), HILLS),
    (contact.ConvexMesh("upper", np.vstack([np.zeros(3), 0.3 * np.eye(3)])), contact.Plane()),
]


def states(count: int) -> tuple[np.ndarray, ...]:
    """Random states and accelerations, with the upper body about 0.5 m above the lower one."""
    rng = np.random.default_rng(7)
    q = TWO.random(rng, size=count)
    q[:, 4:7] = rng.uniform((-0.4, -0.4, 0.5), (0.4, 0.4, 0.8), size=(count, 3))
    q[:, 11:14] = 0.1 * rng.normal(size=(count, 3))
    return q, *rng.normal(size=(2, count, TWO.nv))


@pytest.mark.parametrize(
    "pair", PAIRS + BEYOND, ids=lambda p: "-".join(type(s).__name__ for s in p)
)
def test_rates_by_finite_differences(pair) -> None:
    q, qd, qdd = states(12)
    h = 1e-5

    def at(s: float):
        v = qd + s * qdd
        there = TWO.integrate(q, s * qd + 0.5 * s * s * qdd)
        return there, v, contact.contact_points(TWO, there, v, *pair)

    here, (after, v1, later), (before, v0, earlier) = at(0.0)[2], at(h), at(-h)
    for k, now in enumerate(here):
        for name, rate in (("point", now.point_rate), ("normal", now.normal_rate)):
            moved = (getattr(later[k], name) - getattr(earlier[k], name)) / (2.0 * h)
            assert np.allclose(moved, rate, atol=2e-7)
        gap_rate = (later[k].gap - earlier[k].gap) / (2.0 * h)
        for i in range(len(q)):
            one, last, first = (one_state(c, i) for c in (now, later[k], earlier[k]))
            moves = touch(TWO.mechanism, q[i], qd[i], one)
            assert one.normal @ moves.velocity == pytest.approx(gap_rate[i], abs=1e-7)
            rates = [
                c.normal @ touch(TWO.mechanism, p[i], v[i], c).velocity
                for c, p, v in ((last, after, v1), (first, before, v0))
            ]
            bias = one.normal @ moves.bias + one.normal_rate @ moves.velocity
            second = one.normal @ moves.J @ qdd[i] + bias
            assert (rates[0] - rates[1]) / (2.0 * h) == pytest.approx(second, abs=1e-6)


def one_state(c: contact.Contact, i: int) -> contact.Contact:
    """Return the contact of entry i of a batch."""
    arrays = {name: getattr(c, name)[i] for name in c._fields[2:7]}
    return c._replace(**arrays)


def test_the_nearest_point_of_a_ground_is_nearest() -> None:
    rng = np.random.default_rng(8)
    for c in rng.uniform((-1.0, -1.0, 0.3), (1.0, 1.0, 0.8), size=(10, 3)):
        distance, normal, _ = HILLS.nearest(c, np.zeros(3))

        def square(p: np.ndarray, c: np.ndarray = c) -> float:
            z = 0.1 * np.sin(2.0 * p[0]) * np.cos(1.5 * p[1]) + 0.05 * p[0] ** 2
            return float((c[0] - p[0]) ** 2 + (c[1] - p[1]) ** 2 + (c[2] - z) ** 2)

        best = minimize(square, c[:2], tol=1e-14)
        assert distance == pytest.approx(np.sqrt(best.fun), rel=1e-9)
        assert np.allclose((c - distance * normal)[:2], best.x, atol=1e-5)


@pytest.mark.parametrize(
    ("height", "message"),
    [
        (
            lambda x, y: np.sin(x),
            "E-CONTACT-025 Ground: height(x, y) failed when traced: TypeError:",
        ),
        (lambda x: x, "E-CONTACT-025 Ground: height(x, y) failed when traced: TypeError:"),
        (lambda x, y: "flat", "E-CONTACT-026 Ground:"),
    ],
)
def test_a_height_that_is_no_expression_is_named(height, message: str) -> None:
    with raises(message):
        contact.Ground(height).nearest(np.ones(3), np.zeros(3))


def test_a_ball_inside_a_box_leaves_through_the_nearest_face() -> None:
    box = contact.Box(None, (2.0, 2.0, 2.0))
    distance, normal, rate = box.nearest(np.array([0.1, -0.8, 0.3]), np.array([1.0, 2.0, 3.0]))
    assert distance == pytest.approx(-0.2)
    assert np.array_equal(normal, [0.0, -1.0, 0.0])
    assert np.array_equal(rate, np.zeros(3))


def patch(points: np.ndarray) -> list[contact.Contact]:
    """Contacts at points of a tilted plane, all with the plane's normal."""
    n = np.array([0.1, 0.2, 1.0]) / np.linalg.norm([0.1, 0.2, 1.0])
    axes = np.linalg.svd(n[None])[2][1:]
    still = np.zeros(3)
    return [
        contact.Contact("upper", None, 5.0 + p @ axes, n, np.float64(0.0), still, still)
        for p in points
    ]


def test_a_face_is_its_hull_and_an_edge_its_ends() -> None:
    rng = np.random.default_rng(9)
    points = rng.normal(size=(25, 2))
    contacts = patch(points)
    kept = contact.minimal(contacts)
    hull = {int(k) for k in ConvexHull(points).vertices}
    assert {next(i for i, c in enumerate(contacts) if c is k) for k in kept} == hull
    edge = patch(np.outer(np.linspace(0.0, 1.0, 7), [0.3, 0.4]))
    ends = contact.minimal(edge)
    assert [c is e for c, e in zip(ends, (edge[0], edge[-1]), strict=True)] == [True, True]
    assert len(contact.minimal([edge[0], edge[0]._replace()])) == 1


def test_a_ruled_surface_keeps_every_point() -> None:
    """Normals along the straight edge of z = x tan(y) are independent, so no point is redundant."""
    still = np.zeros(3)
    twisted = [
        contact.Contact(
            "upper", None, np.array([0.0, y, 0.0]), np.array([-np.sin(y), 0.0, np.cos(y)]),
            np.float64(0.0), still, still,
        )
        for y in np.linspace(-0.5, 0.5, 5)
    ]  # fmt: skip
    assert len(contact.minimal(twisted)) == 5


@pytest.mark.parametrize(
    "make",
    [
        lambda: contact.Sphere(None, 0.0),
        lambda: contact.Capsule(None, 0.1, (1.0, 2.0, 3.0), (1.0, 2.0, 3.0)),
        lambda: contact.Box(None, (1.0, -1.0, 1.0)),
        lambda: contact.Plane(None, (0.0, 0.0, 0.0)),
        lambda: contact.Sphere(None, "wide"),
        lambda: contact.Cylinder(None, -0.1, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
        lambda: contact.Cylinder(None, 0.1, (1.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
    ],
)
def test_shapes_without_extent_are_refused(make) -> None:
    with raises("E-CONTACT-028|E-CONTACT-075"):
        make()


def test_what_cannot_touch_is_refused() -> None:
    q, qd, _ = states(1)
    box = contact.Box("upper", (0.1, 0.1, 0.1))
    with raises("E-CONTACT-051"):
        contact.contact_points(TWO, q[0], qd[0], contact.Plane(), box)
    with raises("E-CONTACT-052"):
        contact.contact_points(TWO, q[0], qd[0], box, contact.Plane(), friction=np.nan)
    same = contact.Sphere("upper", 0.1), contact.Sphere("upper", 0.2)
    with raises("E-CONTACT-016"):
        contact.contact_points(TWO, q[0], qd[0], *same)
