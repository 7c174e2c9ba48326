"""Impacts agree with closed forms: bodies, robots, loops, friction laws, cradles, derivatives."""

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from contact_bodies import ball, block
from scipy.integrate import solve_ivp
from support import close, raises

import chasles
from chasles.contact import (
    Box,
    Contact,
    ImpactLaw,
    Moreau,
    Newton,
    Plane,
    Poisson,
    Sphere,
    Sticking,
    Stronge,
    collide,
    contact_forces,
    contact_points,
    impact,
    impact_derivatives,
    velocity_step,
)
from chasles.mathematics.linear import Vector
from chasles.model import Description, JointData, LinkData
from chasles.motion.contact.impact import contact_jacobian
from chasles.robots._solids import sphere

LAWS: dict[str, Callable[[Any, Any], ImpactLaw]] = {
    "Newton": Newton,
    "Poisson": Poisson,
    "Stronge": Stronge,
}
RADIUS = 0.1


def points(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return random inverse inertias of points, and velocities at which the points approach."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, 3, 3))
    zeta = rng.normal(size=(n, 3))
    zeta[:, 2] = -np.abs(zeta[:, 2])
    return A @ np.swapaxes(A, 1, 2) + 0.05 * np.eye(3), zeta


def gain(W: np.ndarray, zeta: np.ndarray, impulse: np.ndarray) -> np.ndarray:
    """Return the energy added by an impulse: its product with the mean of both velocities."""
    after = zeta + np.einsum("...ij,...j->...i", W, impulse)
    return np.asarray(0.5 * np.sum(impulse * (zeta + after), axis=-1))


def energy(W: np.ndarray, zeta: np.ndarray) -> np.ndarray:
    """Return the part of the initial kinetic energy that impulses at the point can change."""
    return np.asarray(0.5 * np.sum(zeta * np.linalg.solve(W, zeta[..., None])[..., 0], axis=-1))


def solid(mass: float, seed: int) -> np.ndarray:
    """Return the spatial inertia (6, 6) of a body with a random center of mass."""
    rng = np.random.default_rng(seed)
    c = rng.normal(size=3)
    cx = np.array([[0.0, -c[2], c[1]], [c[2], 0.0, -c[0]], [-c[1], c[0], 0.0]])
    A = rng.normal(size=(3, 3))
    inner = A @ A.T + 0.2 * np.eye(3) - mass * cx @ cx
    return np.block([[inner, mass * cx], [-mass * cx, mass * np.eye(3)]])


def fixed(
    robot: chasles.Robot,
    q: Any,
    frame: str,
    at: Any = (0.0, 0.0, 0.0),
    normal: Any = (0.0, 0.0, 1.0),
    other: str | None = None,
) -> Contact:
    """Contact at a point given in a body's frame, with a normal given in the world frame."""
    pose = robot.forward_kinematics(q, frame=frame)
    place = pose[..., :3, :3] @ np.asarray(at, dtype=float) + pose[..., :3, 3]
    n = np.broadcast_to(np.asarray(normal) / np.linalg.norm(normal), place.shape)
    still = np.zeros_like(place)
    return Contact(frame, other, place, n, still[..., 0], still, still)


def approach(robot: chasles.Robot, q: Any, qd: Any, contact: Contact) -> float:
    """Return the normal velocity at a contact."""
    return float((contact_jacobian(robot.mechanism, q, contact) @ qd)[2])


@cache
def cradle(n: int, masses: tuple[float, ...] = ()) -> chasles.Robot:
    """Robot of n balls with a diameter of 1 m that slide along x."""
    weights = masses or (1.0,) * n
    links = tuple(LinkData(f"ball{k}", sphere(weights[k], 0.5)) for k in range(n))
    slides = tuple(
        JointData(f"x{k}", "prismatic", None, f"ball{k}", axis=Vector.of(1.0, 0.0, 0.0))
        for k in range(n)
    )
    return chasles.Robot(Description("cradle", links, slides))


def struck(n: int, qd: Any, law: ImpactLaw, apart: float = 0.0, **options: Any) -> Any:
    """Return the result of impacts in a row of n balls, each `apart` meters from the next."""
    robot, q, qd = options.pop("robot", cradle(n)), (1.0 + apart) * np.arange(n), np.asarray(qd)
    touches = [
        contact_points(robot, q, qd, Sphere(f"ball{k + 1}", 0.5), Sphere(f"ball{k}", 0.5))[0]
        for k in range(n - 1)
    ]
    return impact(robot, q, qd, touches, law, **options)


# Two bodies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("e", [0.0, 0.4, 1.0])
def test_two_balls_head_on(e: float) -> None:
    """Velocities satisfy v' = (m1 v1 + m2 v2 + m_other e (v_other - v)) / (m1 + m2)."""
    m1, m2, v1, v2 = 2.0, 0.5, 1.5, -0.7
    I1, I2 = (np.diag([0.4 * m * RADIUS**2] * 3 + [m] * 3) for m in (m1, m2))
    N = contact_forces((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    before = (np.array([0, 0, 0, v1, 0, 0]), np.array([0, 0, 0, v2, 0, 0]))
    after1, after2, _ = collide((I1, I2), before, N, Newton(e))
    close(after1[3], (m1 * v1 + m2 * v2 + m2 * e * (v2 - v1)) / (m1 + m2), 1e-14)
    close(after2[3], (m1 * v1 + m2 * v2 + m1 * e * (v1 - v2)) / (m1 + m2), 1e-14)


def test_any_two_bodies_by_the_books_formulas() -> None:
    """Impulses agree with Eq 11.65 and 11.72, evaluated with matrix inverses.

    Momentum is conserved, and the bodies separate with the required velocity.
    """
    rng = np.random.default_rng(3)
    I1, I2 = solid(2.0, 1), solid(0.7, 2)
    both = np.linalg.inv(I1) + np.linalg.inv(I2)
    for _ in range(20):
        N = contact_forces(rng.normal(size=3), rng.normal(size=3))
        n = N[:, 2]
        v1, v2 = rng.normal(size=(2, 6))
        v2 = v2 - (n @ (v2 - v1) > 0) * 2.0 * np.r_[0, 0, 0, n[3:]] * (n @ (v2 - v1))
        e = rng.uniform()
        after1, after2, impulse = collide((I1, I2), (v1, v2), N, Newton(e))
        close(impulse, [0.0, 0.0, -(1.0 + e) * (n @ (v2 - v1)) / (n @ both @ n)], 1e-12)
        close(I1 @ after1 + I2 @ after2, I1 @ v1 + I2 @ v2, 1e-12)
        E = np.diag([0.0, 0.0, e])
        after1, after2, impulse = collide((I1, I2), (v1, v2), N, Sticking(e))
        expected = -np.linalg.inv(N.T @ both @ N) @ (np.eye(3) + E) @ N.T @ (v2 - v1)
        close(impulse, expected, 1e-10)
        close(N.T @ (after2 - after1), [0.0, 0.0, -e * (n @ (v2 - v1))], 1e-10)


def test_a_ball_with_spin_on_ground_sticks_or_slips() -> None:
    """The tangential impulse is mu times the normal impulse, or less if it stops the slip.

    To stop the slip, it must be 2/7 m times the slip velocity (Horak 1948). The tangential
    directions are not coupled with the normal.
    """
    m, e, robot = 0.5, 0.6, ball(0.5, RADIUS)
    q = robot.state({"body_joint": [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, RADIUS]})
    hit = contact_points(robot, q, np.zeros(6), Sphere("body", RADIUS), Plane())
    for mu, v, w in ((0.1, 2.0, 3.0), (0.5, 0.6, 1.0), (0.3, -0.5, 40.0)):
        qd = np.array([0.0, w, 0.0, v, 0.0, -1.5])
        slip, normal = v - RADIUS * w, 1.5 * m * (1.0 + e)
        side = -math.copysign(min(mu * normal, 2.0 / 7.0 * m * abs(slip)), slip)
        expected = [0.0, w - RADIUS * side / (0.4 * m * RADIUS**2), 0.0, v + side / m, 0.0, 1.5 * e]
        for law in LAWS.values():
            found = impact(robot, q, qd, hit, law(e, mu))
            close(found.qd, expected, 1e-11)
            close(found.impulses, [[side, 0.0, normal]], 1e-11)
    held = impact(robot, q, [0.0, 3.0, 0.0, 2.0, 0.0, -1.5], hit, Sticking(e)).qd
    close(held[3] - RADIUS * held[1], 0.0, 1e-14, scale=1.0)
    close(held[3], 2.0 - 2.0 / 7.0 * (2.0 - 0.3), 1e-13)


def test_bounces_lose_the_square_of_restitution() -> None:
    robot, e, g = ball(0.5, RADIUS), 0.7, 9.81
    q = robot.state({"body_joint": [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, RADIUS]})
    height, heights = 1.0, []
    for _ in range(5):
        falling = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -math.sqrt(2.0 * g * height)])
        hit = contact_points(robot, q, falling, Sphere("body", RADIUS), Plane())
        height = impact(robot, q, falling, hit, Newton(e)).qd[5] ** 2 / (2.0 * g)
        heights.append(height)
    close(heights, 0.49 ** np.arange(1, 6), 1e-12)


# One point with friction ------------------------------------------------------------------------


def test_laws_agree_without_friction() -> None:
    W, zeta = points(500)
    e = np.random.default_rng(1).uniform(size=500)
    expected = np.zeros_like(zeta)
    expected[:, 2] = -(1.0 + e) * zeta[:, 2] / W[:, 2, 2]
    for law in LAWS.values():
        close(law(e, 0.0).impulse(W, zeta), expected, 1e-10)


def test_stronge_never_creates_energy_and_stays_in_the_cone() -> None:
    W, zeta = points(10_000, seed=4)
    rng = np.random.default_rng(5)
    e, mu = rng.uniform(size=10_000), rng.uniform(0.0, 1.5, size=10_000)
    e[:2000], mu[1000:3000] = 1.0, 0.0
    impulse = Stronge(e, mu).impulse(W, zeta)
    gained = gain(W, zeta, impulse) / energy(W, zeta)
    assert np.max(gained) < 1e-10
    lossless = slice(1000, 2000)
    close(gained[lossless], np.zeros(1000), 1e-10, scale=1.0)
    assert np.max(gained[:1000]) < -1e-9  # friction dissipates energy
    assert np.all(np.hypot(impulse[:, 0], impulse[:, 1]) <= mu * impulse[:, 2] + 1e-12)
    after = zeta + np.einsum("nij,nj->ni", W, impulse)
    assert np.min(after[:, 2]) > -1e-10


def test_newtons_law_with_friction_creates_energy() -> None:
    """Kane and Levinson found this gain of energy, which the other laws avoid."""
    W, zeta = points(2000, seed=4)
    assert np.max(gain(W, zeta, Newton(0.9, 0.5).impulse(W, zeta)) / energy(W, zeta)) > 0.1


def test_slip_that_turns_back_in_the_plane() -> None:
    """Slip stops at p = 1/2 and reverses, and compression ends at p = 1 (calculated by hand)."""
    W = np.array([[1.0, 0.0, 0.5], [0.0, 2.0, 0.0], [0.5, 0.0, 1.0]])
    zeta, mu, e = np.array([-0.35, 0.0, -1.0]), 0.2, 0.5
    work = 0.5 * (1.0 + 0.45) / 2.0 + 0.5 * 0.45 / 2.0
    more = {"Newton": 0.5 / 0.9, "Poisson": 0.5, "Stronge": math.sqrt(e * e * work / 0.45)}
    for name, law in LAWS.items():
        p = 1.0 + more[name]
        close(law(e, mu).impulse(W, zeta), [0.1 - 0.2 * (p - 0.5), 0.0, p], 1e-13)


def test_slip_that_stops_and_sticks_in_the_plane() -> None:
    """Slip stops at 0.35/1.1 for mu = 0.6 > 1/2; then friction is -p/2, and w' = 3/4."""
    W = np.array([[1.0, 0.0, 0.5], [0.0, 2.0, 0.0], [0.5, 0.0, 1.0]])
    zeta = np.array([-0.35, 0.0, -1.0])
    stop = 0.35 / 1.1
    end = stop + (1.0 - 1.3 * stop) / 0.75
    expected = [0.6 * stop - 0.5 * (1.5 * end - stop), 0.0, 1.5 * end]
    close(Poisson(0.5, 0.6).impulse(W, zeta), expected, 1e-13)


def test_slip_that_turns_in_space_against_scipy() -> None:
    """Impulses agree with the integral of Coulomb's law over the normal impulse.

    Cases in which the slip nearly vanishes are skipped.
    """
    W, zeta = points(40, seed=8)
    mu, checked = 0.15, 0
    found = Poisson(0.5, mu).impulse(W, zeta)
    for k in range(40):
        compression = slipped(W[k], zeta[k], mu, 100.0)
        pc = compression.t[-1]
        whole = slipped(W[k], zeta[k], mu, 1.5 * pc, parting=False)
        if compression.t_events[-1].size or whole.t_events[-1].size:
            continue  # slip nearly stopped
        close(found[k], [*whole.y[:, -1], 1.5 * pc], 1e-7)
        checked += 1
    assert checked > 20


def slipped(W: np.ndarray, zeta: np.ndarray, mu: float, end: float, parting: bool = True) -> Any:
    """Integrate friction (2,) up to a normal impulse, nearly zero slip, or separation.

    Separation ends the integration only if `parting` is true.
    """

    def velocity(p: float, y: np.ndarray) -> np.ndarray:
        return np.asarray(zeta + W @ [y[0], y[1], p])

    def friction(p: float, y: np.ndarray) -> np.ndarray:
        side = velocity(p, y)[:2]
        return np.asarray(-mu * side / np.linalg.norm(side))

    def parted(p: float, y: np.ndarray) -> float:
        return float(velocity(p, y)[2])

    def stopped(p: float, y: np.ndarray) -> float:
        return float(np.linalg.norm(velocity(p, y)[:2])) - 0.05

    for event in (parted, stopped):
        event.terminal = True  # type: ignore[attr-defined]
    events = [parted, stopped] if parting else [stopped]
    return solve_ivp(
        friction,
        (0.0, end),
        [0.0, 0.0],
        "DOP853",
        events=events,
        rtol=1e-10,
        atol=1e-12,
        max_step=0.2,
    )


def test_what_separates_is_left_alone() -> None:
    W, zeta = points(5)
    zeta[:, 2] = [0.0, 1.0, 2.0, 0.5, 0.1]
    for law in (Newton(0.5), Sticking(0.5), Poisson(0.5, 0.3), Stronge(0.5, 0.3)):
        assert not law.impulse(W, zeta).any()
        assert not law.derivatives(W[1:], zeta[1:])[1].any()


# Robots -----------------------------------------------------------------------------------------


def test_impulses_on_a_tree_and_its_handle() -> None:
    """M d(qd) = J' iota, and the handle's velocity step is its inverse inertia times iota.

    The inertia is the articulated inertia at the handle.
    """
    robot = chasles.robots.quadruped()
    rng = np.random.default_rng(0)
    q, iota = robot.random(rng, size=3), rng.normal(size=(3, 6))
    foot = robot.frames[-1]
    step = velocity_step(robot, q, iota, frame=foot)
    J = robot.jacobian(q, frame=foot)
    close(
        np.einsum("nij,nj->ni", robot.mass_matrix(q), step), np.einsum("nij,ni->nj", J, iota), 1e-10
    )
    handle = robot.operational_inertia_inverse(q, frame=foot)
    close(np.einsum("nij,nj->ni", J, step), np.einsum("nij,nj->ni", handle, iota), 1e-10)


def test_impulses_on_loops_keep_them_closed() -> None:
    """The step solves the equations with multipliers: M d(qd) = u + A' k, A d(qd) = 0."""
    robot = chasles.robots.five_bar()
    q = robot.assemble([2.2, 0.9])
    frame = robot.bodies[-1]
    iota = np.random.default_rng(0).normal(size=6)
    step = velocity_step(robot, q, iota, frame=frame)
    M, A = robot.mass_matrix(q), robot.loop_matrix(q)
    u = robot.jacobian(q, frame=frame).T @ iota
    whole = np.block([[M, A.T], [A, np.zeros((len(A), len(A)))]])
    expected = np.linalg.lstsq(whole, np.r_[u, np.zeros(len(A))], rcond=None)[0][: robot.nv]
    close(step, expected, 1e-9)
    qd = robot.complete(q, [1.0, -2.0])
    hit = fixed(robot, q, frame, normal=(1.0, 0.5, 0.0))
    if approach(robot, q, qd, hit) > 0.0:
        hit = fixed(robot, q, frame, normal=(-1.0, -0.5, 0.0))
    after = impact(robot, q, qd, [hit], Newton(1.0)).qd
    close(A @ after, np.zeros(len(A)), 1e-12, scale=1.0)
    close(robot.kinetic_energy(q, after), robot.kinetic_energy(q, qd), 1e-10)
    close(approach(robot, q, after + qd, hit), 0.0, 1e-12, scale=1.0)


def test_batches_are_their_members() -> None:
    robot, law = chasles.robots.puma560(), Stronge(0.5, 0.4)
    rng = np.random.default_rng(1)
    q, qd = robot.random(rng, size=(2, 5)), rng.normal(size=(2, 5, 6))
    whole = impact(robot, q, qd, [fixed(robot, q, "tool", normal=(0.3, 0.0, 1.0))], law)
    assert whole.impulses.shape == (2, 5, 1, 3)
    for place in np.ndindex(2, 5):
        hit = fixed(robot, q[place], "tool", normal=(0.3, 0.0, 1.0))
        one = impact(robot, q[place], qd[place], [hit], law)
        close(one.qd, whole.qd[place], 1e-11)
        close(one.impulses, whole.impulses[place], 1e-11, scale=1e-9)


def test_bodies_apart_do_not_hit() -> None:
    for law in (Newton(0.5), Stronge(0.5, 0.3)):
        found = struck(2, [1.0, 0.0], law, apart=1e-3)
        assert not found.impulses.any()
    for treatment in ("propagated", "simultaneous", "sequential"):
        found = struck(3, [1.0, 0.0, -1.0], Newton(0.5), apart=1e-3, treatment=treatment)
        assert np.array_equal(found.qd, [1.0, 0.0, -1.0])


DERIVED: dict[str, ImpactLaw] = {
    "Newton": Newton(0.6),
    "Sticking": Sticking(0.6),
    "Poisson": Poisson(0.6, 0.3),
    "Stronge": Stronge(0.6, 0.3),
    "Moreau": Moreau(0.6, 0.3),
}


@pytest.mark.parametrize("pair", [False, True], ids=["ground", "pair"])
@pytest.mark.parametrize("name", DERIVED)
def test_derivatives_of_the_impact_map(name: str, pair: bool) -> None:
    robot, law = chasles.robots.puma560(), DERIVED[name]
    where = {"at": (0.1, -0.05, 0.2), "normal": (0.2, 0.1, 1.0)}
    where |= {"other": robot.bodies[1]} if pair else {}
    rng = np.random.default_rng(2)
    q, qd = robot.random(rng), rng.normal(size=6)
    hit = fixed(robot, q, "tool", **where)
    qd = qd if approach(robot, q, qd, hit) < 0.0 else -qd
    by_q, by_qd = impact_derivatives(robot, q, qd, hit, law)
    h = 1e-6
    steps = np.stack([h * np.eye(6), -h * np.eye(6)])
    moved = robot.integrate(q, steps)
    ahead, behind = impact(robot, moved, qd, [fixed(robot, moved, "tool", **where)], law).qd
    close(by_q, (ahead - behind).T / (2.0 * h), 1e-6)
    ahead, behind = impact(robot, q, qd + steps, [hit], law).qd
    close(by_qd, (ahead - behind).T / (2.0 * h), 1e-6)


@pytest.mark.parametrize("name", DERIVED)
def test_derivatives_of_impacts_on_loops(name: str) -> None:
    """Derivatives by independent positions and velocities agree with differences.

    The loops are closed at each evaluation.
    """
    robot, law, h = chasles.robots.five_bar(), DERIVED[name], 1e-6
    y, yd = np.array([2.2, 0.9]), np.array([1.0, -2.0])
    frame, where = robot.bodies[-1], {"at": (0.05, 0.02, 0.0), "normal": (1.0, 0.4, 0.0)}
    law = Sticking(0.0) if name == "Sticking" else law  # the linkage is planar

    def after(y: np.ndarray, yd: np.ndarray) -> np.ndarray:
        q = robot.assemble(y, robot.assemble([2.2, 0.9]))
        hit = fixed(robot, q, frame, **where)
        return impact(robot, q, robot.complete(q, yd), [hit], law).qd

    q = robot.assemble(y)
    hit = fixed(robot, q, frame, **where)
    yd = yd if approach(robot, q, robot.complete(q, yd), hit) < 0.0 else -yd
    by_q, by_qd = impact_derivatives(robot, q, robot.complete(q, yd), hit, law)
    assert by_q.shape == by_qd.shape == (4, 2)
    for k, step in enumerate(h * np.eye(2)):
        close(by_q[:, k], (after(y + step, yd) - after(y - step, yd)) / (2.0 * h), 2e-6, scale=1.0)
        close(by_qd[:, k], (after(y, yd + step) - after(y, yd - step)) / (2.0 * h), 2e-6, scale=1.0)


SEVERAL: dict[str, tuple[ImpactLaw, str]] = {
    "Newton at once": (Newton(0.4), "simultaneous"),
    "Moreau at once": (Moreau(0.4, 0.3), "simultaneous"),
    "Moreau, sticking": (Moreau(0.0, 3.0), "simultaneous"),
    "Newton passed on": (Newton(0.4), "propagated"),
    "Moreau passed on": (Moreau(0.4, 0.3), "propagated"),
    "Newton in turn": (Newton(0.4), "sequential"),
    "Stronge in turn": (Stronge(0.4, 0.3), "sequential"),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_derivatives_of_several_impacts(name: str) -> None:
    """An arm hits with its tool and its elbow, while another of its links is in the air."""
    (law, treatment), robot = SEVERAL[name], chasles.robots.puma560()
    rng, h = np.random.default_rng(6), 1e-6
    q, qd = robot.random(rng), rng.normal(size=robot.nv)
    links = ("tool", robot.bodies[2], robot.bodies[1])
    at, gaps = ((0.1, -0.05, 0.2), (0.3, 0.1, 0.1), (0.1, 0.1, 0.1)), (0.0, 0.0, 0.3)
    normals = [np.array([0.2, 0.1, 1.0]), np.array([-0.5, 1.0, 0.3]), np.array([1.0, 0.0, 0.1])]
    for k, hit in enumerate(
        fixed(robot, q, *each) for each in zip(links, at, normals, strict=True)
    ):
        normals[k] *= -np.sign(approach(robot, q, qd, hit))

    def touches(q: np.ndarray) -> list[Contact]:
        hits = [fixed(robot, q, *each) for each in zip(links, at, normals, strict=True)]
        return [hit._replace(gap=hit.gap + gap) for hit, gap in zip(hits, gaps, strict=True)]

    by_q, by_qd = impact_derivatives(robot, q, qd, touches(q), law, treatment=treatment)
    steps = np.stack([h * np.eye(6), -h * np.eye(6)])
    moved = robot.integrate(q, steps)
    ahead, behind = impact(robot, moved, qd, touches(moved), law, treatment=treatment).qd
    close(by_q, (ahead - behind).T / (2.0 * h), 5e-6)
    ahead, behind = impact(robot, q, qd + steps, touches(q), law, treatment=treatment).qd
    close(by_qd, (ahead - behind).T / (2.0 * h), 5e-6)


# Several points ---------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"treatment": "sequential"}], ids=["default", "in turn"])
@pytest.mark.parametrize("moving", [1, 2, 3])
def test_newtons_cradle_one_impact_after_the_other(moving: int, options: dict) -> None:
    """Equal numbers of balls arrive and leave, at the same speed."""
    n = 5
    before = np.where(np.arange(n) < moving, 1.0, 0.0)
    found = struck(n, before, Newton(1.0), **options)
    close(found.qd, before[::-1], 1e-14)


@pytest.mark.parametrize("law", [Newton(1.0), Moreau(1.0)])
def test_a_cradle_that_is_struck_from_both_sides_stays_symmetric(law: ImpactLaw) -> None:
    """Both outer balls rebound with their original speed.

    Impacts in order from one side would break the symmetry.
    """
    before = np.array([1.0, 0.0, 0.0, 0.0, -1.0])
    close(struck(5, before, law).qd, -before, 1e-9)
    close(struck(4, before[[0, 1, 3, 4]], law).qd, -before[[0, 1, 3, 4]], 1e-9)


def test_balls_of_any_masses_pass_a_blow_on_as_pairs_do() -> None:
    """Each ball passes the velocity v' = 2 m1/(m1 + m2) v to the next, for e = 1.

    The masses of the cradle decrease.
    """
    masses = (8.0, 4.0, 2.0, 1.0)
    found = struck(4, [1.0, 0.0, 0.0, 0.0], Newton(1.0), robot=cradle(4, masses))
    passed = np.cumprod([1.0, *(2.0 * a / (a + b) for a, b in pairwise(masses))])
    left = [v * (a - b) / (a + b) for v, (a, b) in zip(passed, pairwise(masses), strict=False)]
    close(found.qd, [*left, passed[-1]], 1e-14)


@pytest.mark.parametrize("law", [Newton(0.0), Moreau(0.0, 0.3)])
def test_without_restitution_an_impact_is_simultaneous(law: ImpactLaw) -> None:
    """The balls stay together, and move with the center of mass."""
    found = struck(4, [1.0, 0.0, 0.0, 0.0], law)
    close(found.qd, np.full(4, 0.25), 1e-9)


def test_all_at_once_is_another_law() -> None:
    """The velocity change is the smallest for which no pair separates too slowly.

    Energy is conserved, and all balls move.
    """
    found = struck(3, [1.0, 0.0, 0.0], Newton(1.0), treatment="simultaneous")
    close(found.qd, [-1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0], 1e-13)
    close(np.sum(found.qd), 1.0, 1e-14)


def test_simultaneous_impacts_satisfy_the_complementarity_problem() -> None:
    """A box lands flat on five points, which are more than it needs to stop."""
    robot, e = block(2.0, (0.4, 0.3, 0.2)), 0.4
    q = np.broadcast_to([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1], (50, 7))
    qd = np.random.default_rng(0).normal(scale=0.3, size=(50, 6)) - [0, 0, 0, 0, 0, 1.5]
    shape = Box("body", (0.4, 0.3, 0.2))
    hits = contact_points(robot, q, qd, shape, Plane())
    hits.append(fixed(robot, q, "body", at=(0.0, 0.0, -0.1)))
    found = impact(robot, q, qd, hits, Newton(e))
    bottom = [hit for hit in hits if np.all(hit.gap < 1e-9)]
    assert len(bottom) == 5
    J = np.stack([contact_jacobian(robot.mechanism, q, hit)[:, 2] for hit in bottom], axis=1)
    before, after = (np.einsum("nij,nj->ni", J, v) for v in (qd, found.qd))
    slack = after + e * np.minimum(before, 0.0)
    pushed = found.impulses[:, [np.all(hit.gap < 1e-9) for hit in hits], 2]
    close(pushed.sum(axis=1), found.impulses[..., 2].sum(axis=1), 1e-12)
    assert np.all(slack > -1e-10)
    assert np.all(pushed >= 0.0)
    assert np.max(np.abs(slack * pushed)) < 1e-10
    assert np.all(robot.kinetic_energy(q, found.qd) <= robot.kinetic_energy(q, qd) + 1e-12)
    falling = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -1.0])
    level = contact_points(robot, q[0], falling, shape, Plane())
    close(impact(robot, q[0], falling, level, Newton(e)).qd, -e * falling, 1e-12)


def test_moreaus_law_never_creates_energy() -> None:
    """Moreau's law creates no energy at one to four simultaneous contacts, with slip or sticking.

    Normal velocities obey Newton's law, and impulses lie in the friction cone. Newton's law with
    friction does create energy at such contacts.
    """
    pytest.importorskip("clarabel", reason="cones need the extra contact")
    rng, sticks, slips = np.random.default_rng(9), 0, 0
    for _ in range(150):
        k = int(rng.integers(1, 5))
        A = rng.normal(size=(3 * k, 3 * k + 2))
        W, zeta = A @ A.T, rng.normal(size=3 * k)
        e, mu = rng.uniform(), rng.uniform(0.0, 1.5)
        impulse = Moreau(e, mu).impulse(W, zeta)
        after = zeta + W @ impulse
        before = 0.5 * zeta @ np.linalg.solve(W, zeta)
        assert 0.5 * impulse @ (zeta + after) <= 1e-9 * before
        side, normal = impulse.reshape(k, 3)[:, :2], impulse[2::3]
        small = 1e-7 * (1.0 + np.max(np.abs(impulse)))
        assert np.min(normal) >= -small
        assert np.all(np.linalg.norm(side, axis=1) <= mu * normal + small)
        slack = after[2::3] + e * zeta[2::3]
        assert np.min(slack) >= -small
        assert np.max(np.abs(slack * normal)) <= small * (1.0 + np.max(np.abs(slack)))
        mean = (after + e * zeta).reshape(k, 3)[:, :2]
        still = np.linalg.norm(mean, axis=1) < 1e-6
        sticks += np.count_nonzero(still & (normal > small))
        slips += np.count_nonzero(~still & (normal > small))
    assert sticks > 30
    assert slips > 30


def test_moreaus_law_is_newtons_without_friction() -> None:
    found = struck(3, [1.0, 0.0, 0.0], Moreau(1.0), treatment="simultaneous")
    close(found.qd, [-1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0], 1e-12)
    W, zeta = points(20)
    close(Moreau(0.3).impulse(W, zeta), Newton(0.3).impulse(W, zeta), 1e-10)
    pytest.importorskip("clarabel", reason="cones need the extra contact")
    stuck = Moreau(0.0, 3.0).impulse(W, zeta)
    expected = Sticking(0.0).impulse(W, zeta)
    held = np.linalg.norm(expected[:, :2], axis=1) < 3.0 * expected[:, 2]
    close(stuck[held], expected[held], 1e-7)
    assert np.count_nonzero(held) > 5


def test_sequential_impacts_with_friction_end() -> None:
    rng = np.random.default_rng(3)
    qd = -np.sort(rng.normal(size=(20, 4)), axis=-1)
    robot = cradle(4, (1.0, 2.0, 0.5, 3.0))
    found = struck(4, qd, Stronge(0.5, 0.2), robot=robot, treatment="sequential")
    assert np.all(np.diff(found.qd, axis=-1) > -1e-10)
    weights = np.array([1.0, 2.0, 0.5, 3.0])
    close(found.qd @ weights, qd @ weights, 1e-12)


# Contact axes and invalid input -----------------------------------------------------------------


def test_contact_forces_pass_through_their_point() -> None:
    point = np.array([0.3, -0.2, 0.5])
    for normal in ((0, 0, 2), (1, 0, 0), (0, -1, 0), (1, 2, -3)):
        N = contact_forces(point, normal)
        axes = N[3:]
        close(axes.T @ axes, np.eye(3), 1e-14)
        close(np.linalg.det(axes), 1.0, 1e-14)
        close(axes[:, 2], np.array(normal) / np.linalg.norm(normal), 1e-14)
        close(N[:3], np.cross(point, axes, axisb=0).T, 1e-14)


TOUCH = fixed(cradle(2), np.zeros(2), "ball1", normal=(1.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Newton(1.2), "E-CONTACT-038|E-CONTACT-066"),
        (lambda: Stronge(0.5, -1.0), "E-CONTACT-038|E-CONTACT-066"),
        (lambda: Newton(0.5).impulse(np.eye(3), [0.0, 0.0]), "E-CALL-056"),
        (
            lambda: Newton(0.5).impulse(np.eye(3), [0.0, 0.0, math.nan]),
            "E-CONTACT-036|E-CONTACT-041|E-CONTACT-063",
        ),
        (lambda: Newton(0.5).impulse(np.eye(2), [0.0, 0.0, 1.0]), "E-CONTACT-062"),
        (lambda: Newton(0.5).impulse(0.0 * np.eye(3), [0.0, 0.0, -1.0]), "E-CONTACT-064"),
        (lambda: Newton([0.5, 0.6]).impulse(np.eye(3), np.zeros((3, 3))), "E-CONTACT-065"),
        (lambda: Sticking(0.5).impulse(np.ones((3, 3)), [-1.0, -1.0, -1.0]), "E-CONTACT-061"),
        (lambda: contact_forces(np.zeros(3), np.zeros(3)), "E-CONTACT-029"),
        (lambda: struck(1, [0.0], Newton(0.5)), "E-CONTACT-032"),
        (lambda: struck(3, [1.0, 0.0, 0.0], Stronge(0.5, 0.1)), "E-CONTACT-034 'sequential'"),
        (
            lambda: struck(2, [1.0, 0.0], Newton(0.5), treatment="both"),
            "E-CONTACT-031 'simultaneous'",
        ),
        (lambda: Moreau(1.5), "E-CONTACT-038|E-CONTACT-066"),
        (lambda: Moreau(0.5, math.nan), "E-CONTACT-038|E-CONTACT-066"),
        (lambda: Moreau(0.5).impulse(np.eye(4), np.zeros(4)), "E-CONTACT-040"),
        (
            lambda: Moreau(0.5).impulse(np.eye(3), [0.0, 0.0, math.inf]),
            "E-CONTACT-036|E-CONTACT-041|E-CONTACT-063",
        ),
        (
            lambda: impact(cradle(2), [0.0, 1.0], [math.inf, 0.0], [TOUCH], Newton(0.5)),
            "E-CONTACT-036|E-CONTACT-041|E-CONTACT-063",
        ),
    ],
)
def test_bad_numbers_are_refused(make: Callable[[], Any], message: str) -> None:
    with raises(message):
        make()
