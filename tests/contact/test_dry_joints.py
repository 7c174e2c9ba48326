"""Dry friction of joints with rigid contacts and limits: exact rest, breakaway, closed forms.

The oracles share no code with the library: closed forms for one and two joints, the work of
friction, and the case analysis of a box-constrained problem.
"""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from support import close

import chasles
from chasles import contact
from chasles.mathematics.linear import Vector
from chasles.model import Description, JointData, Limits, LinkData
from chasles.motion.solvers import boxed
from chasles.robots import four_bar
from chasles.robots._solids import sphere

F, MU, CART, FOOT, G = 2.0, 0.4, 1.5, 0.5, 9.81
"""Joint friction (N), friction coefficient of the ground, masses (kg), gravity (m/s2)."""

EXPLICIT = ["euler", "heun2", "heun3", "rk4", "dopri5"]

GROUND = [
    contact.Pair(contact.Sphere("foot", 0.02), contact.Plane(), contact.Rigid(MU)),
]


def walker(friction: float = F, limit: float = np.inf) -> chasles.Robot:
    """Cart on a rail with dry friction, and a foot below it on a vertical prismatic joint."""
    links = (
        LinkData("rail", sphere(1.0, 0.1)),
        LinkData("cart", sphere(CART, 0.1)),
        LinkData("foot", sphere(FOOT, 0.02)),
    )
    along, up = Vector.of(1.0, 0.0, 0.0), Vector.of(0.0, 0.0, 1.0)
    ends = Limits(-limit, limit)
    joints = (
        JointData("x", "prismatic", "rail", "cart", axis=along, friction=friction, limits=ends),
        JointData("z", "prismatic", "cart", "foot", axis=up),
    )
    return chasles.Robot(Description("walker", links, joints))


WALKER = walker()


def followed(robot: chasles.Robot, q: Any, qd: Any, integrator: str = "rk4", **options: Any) -> Any:
    if integrator == "dopri5":
        options = {"rtol": 1e-9, "atol": 1e-10} | options | {"dt": None}
    return robot.simulate(q, qd, integrator=integrator, dissipation=True, **options)


@pytest.mark.parametrize("integrator", EXPLICIT)
def test_both_frictions_stop_a_cart(integrator: str) -> None:
    """The cart stops after v^2/(2 a) m with a = (f + mu m g)/(M + m), and then rests exactly."""
    v, a = 0.8, (F + MU * FOOT * G) / (CART + FOOT)
    options = {"duration": 1.5 * v / a, "dt": 4e-3, "contacts": GROUND}
    run = followed(WALKER, [0.0, 0.02], [v, 0.0], integrator, **options)
    late = run.t > v / a + 4e-3
    assert late.any()
    assert not run.qd[late].any()
    assert len(np.unique(run.q[late, 0])) == 1
    tolerance = 1e-2 if integrator == "euler" else 1e-6
    close(run.q[-1], [0.5 * v * v / a, 0.02], tolerance)


@pytest.mark.parametrize("integrator", EXPLICIT)
def test_breaks_away_at_the_sum_of_both(integrator: str) -> None:
    """The force r t moves the cart from the time (f + mu m g)/r; the joint's own friction is f."""
    rate, most = 8.0, F + MU * FOOT * G

    def tau(t: Any, q: Any, qd: Any) -> Any:
        return [rate * t, 0.0]

    whole = most / rate + 0.2
    options = {"duration": whole, "dt": 2e-3, "contacts": GROUND, "tau": tau}
    run = followed(WALKER, [0.1, 0.02], [0.0, 0.0], integrator, **options)
    early = run.t < most / rate - 1e-9
    assert np.all(run.q[early] == [0.1, 0.02])
    assert not run.qd[early].any()
    v = 0.5 * rate * 0.2**2 / (CART + FOOT)
    assert run.qd[-1, 0] == pytest.approx(v, abs=1e-3 if integrator == "euler" else 1e-6)


def test_the_ground_drags_a_joint_that_sticks_or_slides() -> None:
    """A belt under the foot moves the cart if mu m g > f, and otherwise does not."""
    push = MU * FOOT * G
    links = WALKER.model.source.links
    belt = LinkData("belt", sphere(50.0, 0.1))
    along = Vector.of(1.0, 0.0, 0.0)
    for friction in (0.9 * push, 1.1 * push):
        joints = walker(friction).model.source.joints
        moving = JointData("belt", "prismatic", "rail", "belt", axis=along)
        robot = chasles.Robot(Description("belt", (*links, belt), (*joints, moving)))
        table = contact.Box("belt", (40.0, 1.0, 0.2), (0.0, 0.0, -0.1))
        pair = contact.Pair(contact.Sphere("foot", 0.02), table, contact.Rigid(MU))
        q, qd = robot.neutral(), np.array([0.0, 0.0, 1.0])
        q[robot.position_slice("z")] = 0.02
        run = followed(robot, q, qd, duration=0.2, dt=5e-3, contacts=[pair])
        a = max(push - friction, 0.0) / (CART + FOOT)
        assert run.qd[-1, 0] == pytest.approx(0.2 * a, abs=1e-9)
        assert (run.q[-1, 0] == 0.0) == (a == 0.0)


@pytest.mark.parametrize("integrator", EXPLICIT)
def test_a_joint_rests_at_its_limit_until_it_breaks_away(integrator: str) -> None:
    """The joint slides to its limit, rests there, and leaves the limit when the force is -f.

    It rests whether or not the force presses it against the limit.
    """
    robot, rate = walker(limit=0.1), 10.0

    def tau(t: Any, q: Any, qd: Any) -> Any:
        return [3.0 - rate * t, FOOT * G]

    options = {"duration": 1.0, "dt": 5e-3, "limits": True, "tau": tau}
    run = followed(robot, [0.05, 0.0], [1.0, 0.0], integrator, **options)
    leaves = (3.0 + F) / rate
    rests = (run.t > 0.1) & (run.t < leaves - 1e-6)
    assert np.all(run.q[rests, 0] == run.q[rests, 0][0])
    assert run.q[rests, 0][0] == pytest.approx(0.1, abs=1e-12)
    assert not run.qd[rests, 0].any()
    gone = 1.0 - leaves
    expected = 0.1 - rate * gone**3 / (6.0 * (CART + FOOT))
    assert run.q[-1, 0] == pytest.approx(expected, abs=1e-2 if integrator == "euler" else 2e-5)


def test_an_impact_moves_a_joint_at_rest() -> None:
    """An impulse exceeds any friction force, so an impact sets a cart at rest in motion."""
    links = (*WALKER.model.source.links[:2], LinkData("ball", sphere(1.0, 0.05)))
    along = Vector.of(1.0, 0.0, 0.0)
    joints = (
        JointData("x", "prismatic", "rail", "cart", axis=along, friction=F),
        JointData("b", "prismatic", "rail", "ball", axis=along),
    )
    robot = chasles.Robot(Description("shot", links, joints))
    law = contact.Rigid(0.0, restitution=1.0)
    pair = contact.Pair(contact.Sphere("ball", 0.05), contact.Sphere("cart", 0.1), law)
    run = followed(robot, [0.0, -0.35], [0.0, 2.0], duration=1.5, dt=5e-3, contacts=[pair])
    v = 2.0 * 2.0 * 1.0 / (1.0 + CART)
    before = run.t < 0.1 - 1e-9
    assert np.all(run.q[before, 0] == 0.0)
    assert np.max(run.qd[:, 0]) == pytest.approx(v, rel=1e-9)
    stop = 0.5 * CART * v * v / F
    assert run.q[-1, 0] == pytest.approx(stop, rel=1e-6)
    assert run.qd[-1, 0] == 0.0


@pytest.mark.parametrize("rubs", [("crank", "coupler", "rocker"), ("crank",), ("coupler",)])
def test_closed_loops(rubs: tuple[str, ...]) -> None:
    """Dry friction of any joint, independent or dependent, stops a linkage, also with limits."""
    source = four_bar().model.source
    joints = (replace(j, friction=0.5 * (j.name in rubs)) for j in source.joints)
    robot = chasles.Robot(replace(source, joints=tuple(joints)))
    q = robot.assemble([0.8])
    given: Any = (robot, q, robot.complete(q, [2.0]))
    run, plain = (
        followed(*given, duration=0.1, dt=2e-3, limits=limits) for limits in (True, False)
    )
    rest = run.t > 0.05
    assert not run.qd[rest].any()
    assert len(np.unique(run.q[rest], axis=0)) == 1
    close(run.q[-1], plain.q[-1], 1e-4)


def test_linkages_at_rest_stay_at_rest() -> None:
    """Dry friction holds a linkage with one degree of freedom, and no joint moves."""
    source = four_bar().model.source
    joints = tuple(replace(j, friction=0.5) for j in source.joints)
    robot = chasles.Robot(replace(source, joints=joints))
    for angle in np.linspace(0.3, 2.5, 12):
        q = robot.assemble([angle])
        run = followed(robot, q, 0.0 * q, duration=4e-3, dt=2e-3, limits=True)
        assert not run.qd.any()


def test_resuming() -> None:
    """A motion interrupted while the joint rests resumes with bitwise identical results."""

    def tau(t: Any, q: Any, qd: Any) -> Any:
        return [12.0 * t, 0.0]

    options: Any = {"duration": 0.6, "dt": 5e-3, "contacts": GROUND, "tau": tau}
    whole = followed(WALKER, [0.0, 0.02], [0.3, 0.0], **options)
    half = followed(WALKER, [0.0, 0.02], [0.3, 0.0], steps=35, **options)
    rest = followed(WALKER, [0.0, 0.02], [0.3, 0.0], resume=half.end, **options)
    assert np.all(whole.q[-1] == rest.q[-1])


# Complementarity ---------------------------------------------------------------------------------


def test_bounded_rows_beside_contacts() -> None:
    """The solution of a problem with bounds agrees with the enumeration of all cases."""
    rng = np.random.default_rng(11)
    for _ in range(60):
        n = int(rng.integers(1, 5))
        L = np.tril(rng.normal(size=(n, n))) + 2.0 * np.eye(n)
        A, b = L @ L.T, rng.normal(size=n) * 3.0
        high = np.where(rng.integers(0, 2, n), np.inf, rng.uniform(size=n))
        low = np.where(np.isinf(high), 0.0, -high)
        found = boxed(A, b, low, high)
        answers = []
        for case in product((-1, 0, 1), repeat=n):
            side = np.array(case)
            if np.any((side > 0) & np.isinf(high)):
                continue
            z = np.where(side < 0, low, np.where(side > 0, high, 0.0))
            on = side == 0
            z[on] = np.linalg.solve(A[np.ix_(on, on)], -(b + A @ z)[on])
            w = A @ z + b
            right = np.where(on, (low <= z) & (z <= high), side * w <= 1e-12)
            if right.all():
                answers.append(z)
        assert answers
        close(found, answers[0], 1e-9)


def test_coulomb_with_bounds() -> None:
    """Forces satisfy Coulomb's law at contacts and the bounds of joints, on random problems."""
    rng = np.random.default_rng(12)
    for _ in range(40):
        n, k = int(rng.integers(1, 3)), int(rng.integers(1, 3))
        rows = [*range(3 * n), *range(3 * n + 2, 3 * (n + k), 3)]
        J = np.zeros((3 * (n + k), 8))
        J[rows] = rng.normal(size=(len(rows), 8))
        M, c = J @ J.T, rng.normal(size=3 * (n + k))
        mu = np.append(np.full(n, 0.5), np.zeros(k))
        bound = np.append(np.full(n, np.inf), rng.uniform(0.05, 1.0, size=k))
        f = contact.coulomb(M, c, mu, bound=bound)
        a = (M @ f.ravel() + c).reshape(-1, 3)
        size = 1e-8 * np.max(np.abs(c))
        for i in range(n):
            slip, pull = np.linalg.norm(a[i, :2]), np.linalg.norm(f[i, :2])
            assert f[i, 2] >= -size
            assert a[i, 2] >= -size
            assert abs(f[i, 2] * a[i, 2]) <= size
            assert pull <= 0.5 * f[i, 2] + size
            if slip > 1e-6 and f[i, 2] > 1e-6:
                close(f[i, :2], -0.5 * f[i, 2] * a[i, :2] / slip, 1e-6)
        for i in range(n, n + k):
            assert abs(f[i, 2]) <= bound[i] + size
            if abs(f[i, 2]) < (1.0 - 1e-6) * bound[i]:
                assert abs(a[i, 2]) <= size
            else:
                assert f[i, 2] * a[i, 2] <= size


def test_bounds_are_checked() -> None:
    with pytest.raises(chasles.errors.InputError, match="E-CONTACT-089"):
        contact.coulomb(np.eye(3), np.zeros(3), [0.5], bound=[1.0])
