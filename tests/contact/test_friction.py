"""Coulomb's law: closed forms for blocks, balls and rods, its definition, and related laws."""

import math

import numpy as np
import pytest
import scipy
from contact_bodies import GRAVITY, ball, block, body, free, turned
from support import raises

import chasles
from chasles import contact

pytest.importorskip("clarabel", reason="cones need the extra contact")

SIZE = (0.4, 0.3, 0.2)
BLOCK = block(2.0, SIZE)
BOX = contact.Box("body", SIZE)


def slope(angle: float) -> tuple[contact.Plane, np.ndarray, np.ndarray]:
    """Return a plane that descends along x, its normal, and the direction of descent."""
    normal = np.array([math.sin(angle), 0.0, math.cos(angle)])
    down = np.array([math.cos(angle), 0.0, -math.sin(angle)])
    return contact.Plane(None, tuple(normal)), normal, down


def on_slope(
    robot: chasles.Robot, shape, angle: float, height: float, mu: float, *,
    speed: float = 0.0, spin: float = 0.0, friction: str = "coulomb",
) -> tuple[contact.ContactMotion, np.ndarray]:  # fmt: skip
    """Return the contact dynamics of a body on a slope, and the body's rotation matrix."""
    plane, normal, _ = slope(angle)
    q = np.array([*turned(angle), *(height * normal)])
    qd = np.array([0.0, spin, 0.0, speed, 0.0, 0.0])
    contacts = contact.contact_points(robot, q, qd, shape, plane, friction=mu)
    motion = contact.contact_dynamics(robot, q, qd, np.zeros(6), contacts, friction=friction)
    return motion, robot.forward_kinematics(q, frame="body")[:3, :3]


# Closed forms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("excess", [-0.2, -0.01, 0.01, 0.3])
def test_a_block_sticks_below_and_slips_above_the_angle_of_friction(mu, excess) -> None:
    angle = math.atan(mu) + excess
    motion, _ = on_slope(BLOCK, BOX, angle, 0.1, mu)
    slips = GRAVITY * (math.sin(angle) - mu * math.cos(angle))
    assert motion.qdd == pytest.approx([0, 0, 0, max(slips, 0.0), 0, 0], abs=1e-9)
    total = np.sum(motion.forces, axis=0)
    _, normal, _ = slope(angle)
    assert total @ normal == pytest.approx(2.0 * GRAVITY * math.cos(angle))


def test_a_sliding_block_is_braked_against_its_velocity() -> None:
    for way in (1.0, -1.0):
        motion, _ = on_slope(BLOCK, BOX, 0.3, 0.1, 0.4, speed=way)
        expected = GRAVITY * (math.sin(0.3) - way * 0.4 * math.cos(0.3))
        assert motion.qdd == pytest.approx([0, 0, 0, expected, 0, 0], abs=1e-9)


def test_the_convex_law_dilates() -> None:
    """Gravity is projected on the dual cone, so that a slide starts with a_n = mu a_t."""
    mu, angle = 0.3, 0.6
    motion, _ = on_slope(BLOCK, BOX, angle, 0.1, mu, friction="convex")
    slide = GRAVITY * (math.sin(angle) - mu * math.cos(angle)) / (1.0 + mu * mu)
    assert motion.qdd == pytest.approx([0, 0, 0, slide, 0, mu * slide], abs=1e-8)
    still, _ = on_slope(BLOCK, BOX, 0.2, 0.1, mu, friction="convex")
    assert still.qdd == pytest.approx(np.zeros(6), abs=1e-8)


def test_the_polyhedral_law_is_coulombs_within_its_facets() -> None:
    mu, angle = 0.3, 0.6
    exact, _ = on_slope(BLOCK, BOX, angle, 0.1, mu)
    near, _ = on_slope(BLOCK, BOX, angle, 0.1, mu, friction="polyhedral")
    lost = mu * GRAVITY * math.cos(angle) * (1.0 - math.cos(math.pi / 8.0))
    assert near.qdd[5] == pytest.approx(0.0, abs=1e-9)
    assert exact.qdd[3] - 1e-9 <= near.qdd[3] <= exact.qdd[3] + lost + 1e-9
    still, _ = on_slope(BLOCK, BOX, 0.2, 0.1, mu, friction="polyhedral")
    assert still.qdd == pytest.approx(np.zeros(6), abs=1e-9)


def test_a_tall_box_topples_about_its_edge() -> None:
    """The box tips with alpha = m g (h sin - b cos)/I_edge if tan(angle) > width/height."""
    size = (0.2, 0.3, 0.8)
    tall, shape = block(3.0, size), contact.Box("body", size)
    b, h = 0.1, 0.4
    about_edge = 3.0 * ((size[0] ** 2 + size[2] ** 2) / 12.0 + b * b + h * h)
    for angle in (0.9 * math.atan(b / h), 1.1 * math.atan(b / h), 0.5):
        motion, _ = on_slope(tall, shape, angle, h, 1.0)
        alpha = 3.0 * GRAVITY * (h * math.sin(angle) - b * math.cos(angle)) / about_edge
        turning = max(alpha, 0.0)
        assert motion.qdd[1] == pytest.approx(turning, abs=1e-9)
        assert motion.qdd[3:] == pytest.approx([h * turning, 0.0, b * turning], abs=1e-9)


@pytest.mark.parametrize("tilt", [0.05, 0.15, 0.3])
def test_a_rocking_box_falls_back_as_a_pendulum(tilt: float) -> None:
    """The box turns about its edge with alpha = -m g R sin(beta - tilt)/I_edge (Housner 1963).

    Its angular velocity does not change alpha.
    """
    size, spin, mass = (0.4, 0.3, 0.8), 0.7, 3.0
    rocker, shape = block(mass, size), contact.Box("body", size)
    b, h = 0.2, 0.4
    beta, R = math.atan2(b, h), math.hypot(b, h)
    about_edge = mass * ((size[0] ** 2 + size[2] ** 2) / 12.0 + R * R)
    place = R * np.array([-math.sin(beta - tilt), 0.0, math.cos(beta - tilt)])
    q = np.array([*turned(tilt), *place])
    velocity = np.cross([0.0, spin, 0.0], place)
    pose = rocker.forward_kinematics(q, frame="body")[:3, :3]
    qd = np.array([0.0, spin, 0.0, *(pose.T @ velocity)])
    contacts = contact.contact_points(rocker, q, qd, shape, contact.Plane(), friction=5.0)
    motion = contact.contact_dynamics(rocker, q, qd, np.zeros(6), contacts)
    alpha = -mass * GRAVITY * R * math.sin(beta - tilt) / about_edge
    assert motion.qdd[1] == pytest.approx(alpha, rel=1e-9)
    lift = np.cross([0.0, alpha, 0.0], place)[2] - spin**2 * place[2]
    assert np.sum(motion.forces[:, 2]) == pytest.approx(mass * (GRAVITY + lift), rel=1e-9)


@pytest.mark.parametrize("rolling", [0.0, 2.0])
def test_a_ball_rolls_without_slip_where_friction_is_enough(rolling: float) -> None:
    """The ball rolls with a = 5/7 g sin(angle) if mu >= 2/7 tan(angle), and otherwise slips."""
    r, angle = 0.3, 0.5
    robot, shape = ball(2.0, r), contact.Sphere("body", r)
    enough = 2.0 / 7.0 * math.tan(angle)
    motion, _ = on_slope(robot, shape, angle, r, 1.05 * enough, speed=rolling, spin=rolling / r)
    a = 5.0 / 7.0 * GRAVITY * math.sin(angle)
    coriolis = -rolling / r * rolling  # from the body frame's rotation
    assert motion.qdd[1] == pytest.approx(a / r)
    assert motion.qdd[3] == pytest.approx(a)
    assert motion.qdd[5] == pytest.approx(-coriolis, abs=1e-9)
    mu = 0.8 * enough
    slips, _ = on_slope(robot, shape, angle, r, mu, speed=rolling, spin=rolling / r)
    assert slips.qdd[3] == pytest.approx(GRAVITY * (math.sin(angle) - mu * math.cos(angle)))
    assert slips.qdd[1] == pytest.approx(2.5 * mu * GRAVITY * math.cos(angle) / r)


def test_a_ball_rolls_through_a_bowl() -> None:
    """The ball presses with m (g + v^2/(R - r)) at the bottom, without a tangential force."""
    r, curvature, v = 0.1, 0.5, 1.5
    robot, bowl = ball(2.0, r), contact.Ground(lambda x, y: 0.25 * (x * x + y * y))
    q, qd = np.array([1.0, 0, 0, 0, 0, 0, r]), np.array([0.0, v / r, 0.0, v, 0.0, 0.0])
    shape = contact.Sphere("body", r)
    contacts = contact.contact_points(robot, q, qd, shape, bowl, friction=0.5)
    motion = contact.contact_dynamics(robot, q, qd, np.zeros(6), contacts)
    press = 2.0 * (GRAVITY + v * v / (1.0 / curvature - r))
    assert motion.forces[0] == pytest.approx([0.0, 0.0, press], abs=1e-9)


def test_painleves_rod() -> None:
    """M is negative for a sliding rod if 1 + 3 cos^2 - 3 mu sin cos < 0, so mu > 4/3."""
    half, mass = 0.5, 2.0
    moment = mass * half * half / 3.0
    rod = free(body(mass, (moment / 50.0, moment, moment)))
    seen = set()
    for angle in np.linspace(0.1, 1.5, 15):
        s, c = math.sin(angle), math.cos(angle)
        q = np.array([*turned(-angle), half * c, 0.0, half * s])
        lower = contact.Point("body", (-half, 0.0, 0.0))
        for mu, spin, way in ((1.3, 0.0, -1), (2.0, 0.0, -1), (2.0, 9.0, -1), (2.0, 0.0, 1)):
            number = 1.0 + 3.0 * c * c + 3.0 * way * mu * s * c
            free_fall = -GRAVITY + half * spin**2 * s
            velocity = [way - half * spin * s, 0.0, half * spin * c]
            pose = rod.forward_kinematics(q, frame="body")[:3, :3]
            qd = np.array([0.0, -spin, 0.0, *(pose.T @ velocity)])
            contacts = contact.contact_points(rod, q, qd, lower, contact.Plane(), friction=mu)
            outcome = "unique"
            try:
                motion = contact.contact_dynamics(rod, q, qd, np.zeros(6), contacts, speed=1e-6)
                expected = max(0.0, -free_fall * mass / number)
                assert motion.forces[0, 2] == pytest.approx(expected, abs=1e-8)
            except contact.Inconsistent:
                outcome = "inconsistent"
            except contact.Indeterminate as error:
                outcome = "indeterminate"
                forces = sorted(float(f) for f in error.solutions[:, 0])
                assert forces == pytest.approx([0.0, -free_fall * mass / number])
            paradox = "inconsistent" if free_fall < 0.0 else "indeterminate"
            assert outcome == (paradox if number < 0.0 else "unique")
            assert number > 0.0 or mu > 4.0 / 3.0
            seen.add(outcome)
    assert seen == {"unique", "inconsistent", "indeterminate"}


def test_a_walker_obeys_newton() -> None:
    """The rate of a quadruped's momentum is the sum of weight and ground forces."""
    robot = chasles.robots.quadruped()
    rng = np.random.default_rng(3)
    legs = [name for name in robot.joints if robot.joint(name).kind == "revolute"]
    bent = {name: 0.7 if "hip" in name else -1.4 for name in legs if "abduction" not in name}
    q = robot.state(bent)
    feet = [f for f in robot.frames if "foot" in f]
    height = min(robot.forward_kinematics(q, frame=f)[2, 3] for f in feet)
    ground = contact.Plane(None, (0.0, 0.0, 1.0), (0.0, 0.0, height))
    qd = np.zeros(robot.nv)
    contacts = [
        c
        for f in feet
        for c in contact.contact_points(robot, q, qd, contact.Point(f), ground, friction=0.7)
    ]
    assert len(contacts) == 4
    for _ in range(5):
        tau = np.concatenate([np.zeros(6), 8.0 * rng.normal(size=robot.nv - 6)])
        motion = contact.contact_dynamics(robot, q, qd, tau, contacts, limits=None)
        force = (robot.centroidal_momentum_matrix(q) @ motion.qdd)[3:]
        weight = robot.mass * robot.gravity
        assert force == pytest.approx(weight + np.sum(motion.forces, axis=0), abs=1e-7)
        assert np.all(motion.forces[:, 2] >= -1e-9)
        assert np.any(motion.forces[:, 2] > 1.0)


# Torsion ---------------------------------------------------------------------------------------

TOP = free(body(2.0, (0.02, 0.02, 0.05)))
TIP = contact.Point("body", (0.0, 0.0, -0.1))


def on_tip(
    mu: float, torsion: float, *, spin: float = 0.0, speed: float = 0.0, moment: float = 0.0,
    law: str = "coulomb",
) -> contact.ContactMotion:  # fmt: skip
    """Return the contact dynamics of an upright body on its lower tip.

    The body spins, slides or is loaded by a moment about the normal.
    """
    q = np.array([1.0, 0, 0, 0, 0, 0, 0.1])
    qd = np.array([0.0, 0, spin, speed, 0, 0])
    tau = np.array([0.0, 0, moment, 0, 0, 0])
    plane = contact.Plane()
    touching = contact.contact_points(TOP, q, qd, TIP, plane, friction=mu, torsion=torsion)
    return contact.contact_dynamics(TOP, q, qd, tau, touching, friction=law)


@pytest.mark.parametrize("law", ["coulomb", "polyhedral"])
def test_a_moment_about_the_normal_up_to_its_bound(law: str) -> None:
    """Torsional friction balances a moment up to torsion N; a larger one is not fully balanced.

    The acceleration is then alpha = (M - torsion N)/I.
    """
    weight, torsion = 2.0 * GRAVITY, 0.03
    for moment in (0.3, -0.5, 0.9, -1.4):
        found = on_tip(0.6, torsion, moment=moment, law=law)
        held = min(abs(moment), torsion * weight)
        assert found.moments[0] == pytest.approx(-math.copysign(held, moment), abs=1e-8)
        assert found.qdd[2] == pytest.approx((moment + found.moments[0]) / 0.05, abs=1e-7)
        assert found.forces[0] == pytest.approx([0.0, 0.0, weight], abs=1e-7)
    assert on_tip(0.6, 0.0, moment=0.3, law=law).qdd[2] == pytest.approx(6.0)


@pytest.mark.parametrize("law", ["coulomb", "polyhedral", "convex"])
def test_spin_and_slide_share_one_cone(law: str) -> None:
    """Force and moment lie on an ellipsoid, opposite to the scaled slip (v, spin torsion/mu).

    Without spin, this is Coulomb's law. Without sliding, the moment is torsion times the weight.
    """
    weight, mu, torsion, moment = 2.0 * GRAVITY, 0.5, 0.02, 0.05
    for spin, speed in ((3.0, 0.0), (-2.0, 0.0), (0.0, 1.0), (20.0, 1.0)):
        found = on_tip(mu, torsion, spin=spin, speed=speed, law=law)
        way = np.array([speed, spin * torsion / mu]) / math.hypot(speed, spin * torsion / mu)
        assert found.forces[0, :2] == pytest.approx([-mu * weight * way[0], 0.0], abs=1e-8)
        assert found.moments[0] == pytest.approx(-torsion * weight * way[1], abs=1e-9)
        ellipsoid = math.hypot(found.forces[0, 0] / mu, found.moments[0] / torsion)
        assert ellipsoid == pytest.approx(weight)
        assert found.qdd[2] == pytest.approx(found.moments[0] / moment)


def test_a_ball_that_rolls_does_not_turn_about_the_normal() -> None:
    """The normal rotates as the ball rolls in a bowl: w.n stays zero, and d(w.n)/dt = 0."""
    r, v = 0.1, 1.0
    robot = ball(2.0, r)
    bowl = contact.Ground(lambda x, y: 0.25 * (x * x + y * y))
    q, qd = np.array([1.0, 0, 0, 0, 0, 0, r]), np.array([0.0, v / r, 0.0, v, 0.0, 0.0])
    tau = np.array([0.0, 0.0, 1e-3, 0.0, 0.0, 0.0])
    touching = contact.contact_points(
        robot, q, qd, contact.Sphere("body", r), bowl, friction=0.5, torsion=0.01
    )
    motion = contact.contact_dynamics(robot, q, qd, tau, touching)
    assert motion.moments[0] == pytest.approx(-1e-3, abs=1e-9)
    assert motion.qdd[2] == pytest.approx(0.0, abs=1e-8)


def test_a_contact_that_nothing_moves_is_infeasible_by_name() -> None:
    """A cart that slides along x runs into rising ground, whose normal force cannot brake it."""
    trough = contact.Ground(lambda x, y: x * x - 0.05)
    joint = chasles.model.JointData(
        "slide", "prismatic", None, "cart", axis=chasles.mathematics.linear.Vector.of(1.0, 0.0, 0.0)
    )
    cart = chasles.Robot(
        chasles.model.Description("cart", (body(1.0, (0.1, 0.1, 0.1), "cart"),), (joint,))
    )
    foot = contact.Point("cart", (0.0, 0.0, -0.05))
    for mu, law in ((0.0, "coulomb"), (0.5, "coulomb"), (0.5, "convex"), (0.5, "polyhedral")):
        touching = contact.contact_points(cart, [0.0], [2.0], foot, trough, friction=mu)
        with raises("E-CONTACT-014", "'cart'"):
            contact.contact_dynamics(cart, [0.0], [2.0], [0.0], touching, friction=law)
        still = contact.contact_points(cart, [0.0], [0.0], foot, trough, friction=mu)
        found = contact.contact_dynamics(cart, [0.0], [0.0], [3.0], still, friction=law)
        assert np.all(np.isfinite(found.qdd))
    G = np.diag([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    with raises("E-CONTACT-012"):
        contact.coulomb(G, [0.0, 0, -1, 0, 0, -1], [0.5, 0.5])


# The laws themselves ---------------------------------------------------------------------------


def problem(rng: np.random.Generator, nc: int, nv: int) -> tuple[np.ndarray, ...]:
    """Return G, c and mu of nc contacts of a falling system with nv degrees of freedom."""
    J, A = rng.normal(size=(3 * nc, nv)), rng.normal(size=(nv, nv + 4))
    c = J @ rng.normal(size=nv)
    return J @ np.linalg.solve(A @ A.T, J.T), c, rng.uniform(0.1, 1.0, size=nc)


def test_coulombs_law_is_what_it_says() -> None:
    """Cone, non-penetration and complementarity hold, and friction opposes the slide."""
    rng = np.random.default_rng(4)
    kinds = set()
    for _ in range(60):
        nc = int(rng.integers(1, 5))
        G, c, mu = problem(rng, nc, int(rng.integers(3, 12)))
        f = contact.coulomb(G, c, mu)
        a = (G @ f.ravel() + c).reshape(nc, 3)
        small = 1e-9 * np.max(np.abs(c))
        for force, acceleration, m in zip(f, a, mu, strict=True):
            pushes, slides = np.linalg.norm(force[:2]), np.linalg.norm(acceleration[:2])
            scale = max(1.0, force[2])
            assert force[2] >= -small
            assert acceleration[2] >= -small
            assert pushes <= m * force[2] + small * scale
            assert abs(force[2] * acceleration[2]) <= small * scale
            if force[2] > 1e-6 and slides > 1e-6:
                against = -m * force[2] * acceleration[:2] / slides
                assert force[:2] == pytest.approx(against, abs=1e-7 * scale)
            kinds.add((bool(force[2] > 1e-6), bool(slides > 1e-6)))
    assert kinds >= {(False, True), (True, False), (True, True)}


@pytest.mark.parametrize("mu", [1e2, 1e3, 1e4])
def test_a_large_coefficient_means_no_slip(mu: float) -> None:
    """Large coefficients give the results of no slip.

    A ball is thrown at the ground. A block on a slope is at rest, or starts to topple over an edge.
    """
    G, c = np.diag([1.75, 1.75, 0.5]), np.array([1.0, 0.3, -2.0])
    assert np.allclose(contact.coulomb(G, c, [mu]), [-c / np.diagonal(G)], rtol=1e-10)
    for angle in (0.9, 1.2):
        motion, _ = on_slope(BLOCK, BOX, angle, 0.1, mu)
        moment = GRAVITY * (0.1 * math.sin(angle) - 0.2 * math.cos(angle))
        turn = max(0.0, moment / (4.0 / 3.0 * (0.1**2 + 0.2**2)))
        expected = [0.0, turn, 0.0, 0.1 * turn, 0.0, 0.2 * turn]
        assert motion.qdd == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("wide", [3, 4])
def test_some_contacts_slide_and_others_stick(wide: int) -> None:
    """Sliding contacts have full friction, and the others satisfy Coulomb's law.

    Contacts have three components, or four with torsion.
    """
    rng, solved = np.random.default_rng(14), 0
    for _ in range(30):
        nc = int(rng.integers(2, 5))
        J, A = rng.normal(size=(wide * nc, 12)), rng.normal(size=(12, 16))
        G, c = J @ np.linalg.solve(A @ A.T, J.T), J @ rng.normal(size=12)
        mu, slip = rng.uniform(0.1, 0.6, size=nc), np.zeros((nc, wide - 1))
        slip[0] = rng.normal(size=wide - 1)
        slip[0] /= np.linalg.norm(slip[0])
        try:
            f = contact.coulomb(G, c, mu, slip)
        except ArithmeticError:
            continue  # Painleve's paradox: no forces exist
        solved += 1
        a = (G @ f.ravel() + c).reshape(nc, wide)
        small = 1e-8 * np.max(np.abs(c)) * max(1.0, np.max(np.abs(f)))
        assert np.min(f[:, -1]) >= -small
        assert np.min(a[:, -1]) >= -small
        assert np.max(np.abs(a[:, -1] * f[:, -1])) <= small
        assert f[0, :-1] == pytest.approx(-mu[0] * f[0, -1] * slip[0], abs=small)
        for force, acceleration, m in zip(f[1:], a[1:], mu[1:], strict=True):
            slides = np.linalg.norm(acceleration[:-1])
            assert np.linalg.norm(force[:-1]) <= m * force[-1] + small
            if slides > 1e-6:
                against = -m * force[-1] * acceleration[:-1] / slides
                assert force[:-1] == pytest.approx(against, abs=10 * small)
    assert solved >= 25


def test_the_convex_law_minimises() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        G, c, mu = problem(rng, 3, 9)
        f = contact.convex(G, c, mu)
        best = 0.5 * f.ravel() @ G @ f.ravel() + f.ravel() @ c
        g = contact.cone_program(G, c, mu)
        assert np.allclose(f, g, atol=1e-4)  # Clarabel's minimum has nine digits, its forces five
        assert best <= 0.5 * g.ravel() @ G @ g.ravel() + g.ravel() @ c + 1e-10
        for _ in range(100):
            h = contact.project(f + 0.3 * rng.normal(size=f.shape), mu).ravel()
            assert 0.5 * h @ G @ h + h @ c >= best - 1e-9


def test_many_facets_come_near_to_the_cone() -> None:
    rng = np.random.default_rng(6)
    errors = []
    for _ in range(20):
        G, c, mu = problem(rng, 2, 8)
        G += 2.0 * np.eye(6)
        exact = contact.coulomb(G, c, mu)
        far = [np.max(np.abs(contact.polyhedral(G, c, mu, facets=k) - exact)) for k in (4, 8, 24)]
        errors.append(np.array(far) / max(np.max(np.abs(exact)), 1e-3))
    worst = np.max(errors, axis=0)
    assert worst[0] > 4.0 * worst[2]
    assert worst[2] < 2.0 * math.pi / 24


def test_projection_is_the_nearest_point_of_the_cone() -> None:
    rng = np.random.default_rng(7)
    f, mu = 2.0 * rng.normal(size=(500, 3)), rng.uniform(0.0, 2.0, size=500)
    p = contact.project(f, mu)
    assert np.all(np.linalg.norm(p[:, :2], axis=-1) <= mu * p[:, 2] + 1e-12)
    left = f - p  # in the polar cone, and orthogonal to p (Moreau)
    assert np.allclose(np.sum(left * p, axis=-1), 0.0, atol=1e-12)
    assert np.all(left[:, 2] + mu * np.linalg.norm(left[:, :2], axis=-1) <= 1e-12)


def test_a_batch_by_gauss_seidel() -> None:
    rng = np.random.default_rng(8)
    made = [problem(rng, 3, 12) for _ in range(20)]
    G, c, mu = (np.array(part) for part in zip(*made, strict=True))
    G += 0.5 * np.eye(9)
    slip = np.zeros((20, 3, 2))
    slip[::2, 0] = [0.6, -0.8]
    for dilates, law in ((False, contact.coulomb), (True, contact.convex)):
        found = contact.cone_gauss_seidel(G, c, mu, slip, dilates=dilates, sweeps=5000)
        assert np.all(found.residual <= 1e-10 * np.max(np.abs(c), axis=-1))
        exact = np.array([law(*each) for each in zip(G, c, mu, slip, strict=True)])
        assert np.allclose(found.forces, exact, atol=1e-7)
        again = contact.cone_gauss_seidel(
            G, c, mu, slip, start=exact, dilates=dilates, tolerance=1e-9
        )
        assert again.sweeps <= 1


def test_contacts_that_cannot_be_kept_are_reported() -> None:
    """Two opposite contacts approach: cone programs are unbounded, and pyramids return a ray."""
    J = np.vstack([np.eye(3), -np.eye(3)])
    c = np.array([0.0, 0.0, -1.0, 0.0, 0.0, -1.0])
    for law in (contact.coulomb, contact.convex, contact.polyhedral):
        with pytest.raises(contact.Infeasible):
            law(J @ J.T, c, np.array([0.0, 0.0]))
    with raises("E-CONTACT-008"):
        contact.cone_program(J @ J.T, c, np.array([0.0, 0.2]))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: contact.coulomb(np.eye(3), np.zeros(3), [0.5, 0.5]), "E-CONTACT-010"),
        (lambda: contact.coulomb(np.eye(3), np.zeros(3), [-0.5]), "E-CONTACT-011"),
        (lambda: contact.polyhedral(np.eye(3), np.zeros(3), [0.5], facets=2), "E-CONTACT-022"),
        (lambda: contact.cone_gauss_seidel(np.eye(3), np.zeros(4), [0.5]), "E-CONTACT-023"),
        (lambda: contact.contact_dynamics(BLOCK, *3 * [0], [], friction="glue"), "E-CONTACT-013"),
    ],
)
def test_bad_arguments_are_refused(call, words: str) -> None:
    with raises(words):
        call()


def test_a_paradox_beside_a_contact_that_sticks_has_its_name() -> None:
    """A rod slides into Painleve's paradox, and an unrelated brick rests."""
    arm = np.array([[-math.sin(1.1), 0.0, math.cos(1.1)]])
    G = scipy.linalg.block_diag(np.eye(3) + 3.0 * arm.T @ arm, np.eye(3))
    with raises("E-CONTACT-018", "integrator='time-stepping'"):
        contact.coulomb(G, [0, 0, -9.81, 0.1, 0, -9.81], [2.0, 0.5], [[-1.0, 0.0], [0.0, 0.0]])


def test_a_fifth_point_that_hardly_parts_beside_contacts_that_stick() -> None:
    """A box slides on a sledge at rest, and its redundant fifth point separates by 1e-6 m/s^2."""
    masses, (x, y) = (5.0, 1.0), (0.4, 0.25)
    inverse = np.diag(np.concatenate([[1 / m] * 3 + [60.0 / m] * 3 for m in masses]))
    low = [(i * x, j * y, -0.05) for i in (-1, 1) for j in (-1, 1)]
    high = [(i * 0.05, j * 0.15, -0.075) for i in (-1, 1) for j in (-1, 1)] + [(0.02, 0.15, -0.075)]

    def rows(body: int, point: np.ndarray) -> np.ndarray:
        found = np.zeros((3, 12))
        a, b, c = point
        found[:, 6 * body : 6 * body + 3] = np.eye(3)
        found[:, 6 * body + 3 : 6 * body + 6] = [[0, c, -b], [-c, 0, a], [b, -a, 0]]
        return found

    shift = np.array([0.1, 0.0, 0.125])  # position of the box's center relative to the sledge's
    J = [rows(0, np.array(p)) for p in low]
    J += [rows(1, np.array(p)) - rows(0, p + shift) for p in np.array(high)]
    J = np.vstack(J)
    c = J @ np.tile([0.0, 0.0, -GRAVITY, 0.0, 0.0, 0.0], 2)
    c[-1] += 1.25e-6
    slip = np.zeros((9, 2))
    slip[4:, 0] = 1.0
    mu = np.array([0.5] * 4 + [0.1] * 5)
    G = J @ inverse @ J.T
    f = contact.coulomb(G, c, mu, slip)
    a = (G @ f.ravel() + c).reshape(9, 3)
    assert np.sum(f[4:], axis=0) == pytest.approx(
        [-0.1 * GRAVITY, 0.0, GRAVITY], rel=1e-9, abs=1e-12
    )
    assert np.sum(f[:4], axis=0)[2] == pytest.approx(6.0 * GRAVITY)
    assert f[8] == pytest.approx(np.zeros(3), abs=1e-12)
    assert a[8, 2] == pytest.approx(1.25e-6, rel=1e-3)
    assert a[:4] == pytest.approx(np.zeros((4, 3)), abs=1e-9)
