"""Gradients of motions: finite differences, step Jacobians in NumPy, closed forms, invariants."""

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from contact_bodies import ball, body
from scipy.spatial.transform import Rotation
from support import close, pairwise, raises, state, tree

import chasles
from chasles import contact
from chasles.expr import sin
from chasles.mathematics.linear import Vector
from chasles.model import Description, JointData
from chasles.robots import four_bar, planar, puma560, quadruped
from chasles.rollouts import STEPS, PDControl, RolloutGradient

RNG = np.random.default_rng(11)


def slope(f: Any, h: float = 1e-3) -> float:
    """Return the derivative at 0 by Richardson extrapolation, with an error of order h^4."""

    def central(h: float) -> float:
        return (f(h) - f(-h)) / (2.0 * h)

    return float(4.0 * central(h) - central(2.0 * h)) / 3.0


def check_slope(robot: chasles.Robot, q: Any, qd: Any, tau: Any, **options: Any) -> None:
    """Check the gradient of a random linear loss along a random change of all inputs."""
    base = robot.rollout(q, qd, tau, **options)
    by_q, by_qd = RNG.normal(size=(2, *base.qd.shape))
    got = robot.rollout_pullback(q, qd, tau, covectors=(by_q, by_qd), **options)
    given = options.pop("parameters", None)
    forces = None if callable(tau) else tau
    others = [(forces, got.tau), (given, got.parameters)]
    moves = [RNG.normal(size=(*base.qd.shape[:-2], robot.nv)) for _ in range(2)]
    more = [None if a is None else RNG.normal(size=np.shape(a)) for a, _ in others]

    def loss(h: float) -> float:
        there = [robot.integrate(q, h * moves[0]), qd + h * moves[1]]
        force, own = (a if d is None else a + h * d for (a, _), d in zip(others, more, strict=True))
        extra = {} if own is None else {"parameters": own}
        moved = robot.rollout(*there, tau if force is None else force, **options, **extra)
        change = robot.difference(base.q, moved.q)
        return float((by_q * change).sum() + (by_qd * moved.qd).sum())

    found = (got.q * moves[0]).sum() + (got.qd * moves[1]).sum()
    found += sum((g * d).sum() for (_, g), d in zip(others, more, strict=True) if d is not None)
    assert found == pytest.approx(slope(loss), rel=1e-8)


FLOATING = tree(2, 4, floating=True)
BALLS = tree(5, 10)
"""Tree with planar, spherical, prismatic, yaw-pitch-roll and sphere-in-cylinder joints."""


@pytest.mark.parametrize(
    ("robot", "method", "every"), pairwise([planar(2), FLOATING], STEPS, [1, 4, 40]), ids=str
)
def test_finite_differences(robot: chasles.Robot, method: str, every: int) -> None:
    q, qd, _ = state(robot, 1, 3)
    tau = RNG.normal(size=(3, 23, robot.nv))
    check_slope(robot, q, qd, tau, dt=1e-2, steps=23, every=every, integrator=method)


def test_finite_differences_on_other_joints() -> None:
    q, qd, tau = state(BALLS, 2)
    check_slope(BALLS, q, qd, tau, dt=5e-3, steps=12, every=5, dissipation=True)


# The product of step Jacobians, in NumPy ---------------------------------------------------------


def tangent(robot: chasles.Robot, q: np.ndarray) -> np.ndarray:
    """Return the map (nv, nq) from rates of q to tangent steps; only the base may be free."""
    if robot.nq == robot.nv:
        return np.eye(robot.nv)
    out = np.zeros((robot.nv, robot.nq))
    w, x, y, z = q[:4]
    out[:3, :4] = 2.0 * np.array([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])
    out[3:6, 4:7] = Rotation.from_quat([x, y, z, w]).as_matrix().T
    out[6:, 7:] = np.eye(robot.nv - 6)
    return out


def moved(robot: chasles.Robot, q: Any, v: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return integrate(q, v), and its derivatives by tangent steps at q and by v."""
    there = robot.integrate(q, v)
    back = tangent(robot, there)
    by_q, by_v = robot.derivatives("integrate", q, v)
    return there, back @ by_q, back @ by_v


def accelerated(robot: chasles.Robot, q: Any, qd: Any, tau: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return qdd, and its derivatives by q, qd and tau in one matrix."""
    slopes = robot.derivatives("forward_dynamics", q, qd, tau)
    return robot.forward_dynamics(q, qd, tau), np.hstack(slopes)


def one_step(
    robot: chasles.Robot, method: str, q: Any, qd: Any, tau: Any, h: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the state after a step, and its Jacobian (2 nv, 3 nv) by q, qd and tau."""
    n = robot.nv
    by_q, by_qd, _ = np.eye(3 * n).reshape(3, n, 3 * n)
    qdd, J = accelerated(robot, q, qd, tau)
    after, d_after = qd + h * qdd, by_qd + h * J
    used, d_used = (qd, by_qd) if method == "euler" else (after, d_after)
    there, A, B = moved(robot, q, h * used)
    return there, after, np.vstack([A @ by_q + h * B @ d_used, d_after])


def one_step_of_fourth_order(
    robot: chasles.Robot, q: Any, qd: Any, tau: Any, h: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the state and Jacobian of a Runge-Kutta step, for robots whose positions add."""
    n = robot.nv
    unit = np.eye(3 * n)
    x, dx = np.concatenate([q, qd]), unit[: 2 * n]
    k, dk = np.zeros(2 * n), np.zeros((2 * n, 3 * n))
    total, d_total = np.zeros_like(k), np.zeros_like(dk)
    for part, weight in ((0.0, 1.0), (0.5, 2.0), (0.5, 2.0), (1.0, 1.0)):
        y, dy = x + part * h * k, dx + part * h * dk
        qdd, J = accelerated(robot, y[:n], y[n:], tau)
        k = np.concatenate([y[n:], qdd])
        dk = np.vstack([dy[n:], J @ np.vstack([dy, unit[2 * n :]])])
        total, d_total = total + weight * k, d_total + weight * dk
    x, dx = x + h / 6.0 * total, dx + h / 6.0 * d_total
    return x[:n], x[n:], dx


@pytest.mark.parametrize(
    ("robot", "method"),
    [
        (puma560(), "euler"),
        (puma560(), "semi-implicit"),
        (puma560(), "rk4"),
        (quadruped(), "semi-implicit"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_product_of_step_jacobians(robot: chasles.Robot, method: str) -> None:
    n, steps, h = robot.nv, 20, 2e-3
    q, qd, _ = state(robot, 3)
    tau = RNG.normal(size=(steps, n))
    motion = robot.rollout(q, qd, tau, dt=h, steps=steps, integrator=method)
    weights = RNG.normal(size=(2, steps + 1, n))
    got = robot.rollout_pullback(
        q, qd, tau, covectors=tuple(weights), dt=h, steps=steps, integrator=method
    )
    jacobians = []
    for k in range(steps):
        if method == "rk4":
            q, qd, J = one_step_of_fourth_order(robot, q, qd, tau[k], h)
        else:
            q, qd, J = one_step(robot, method, q, qd, tau[k], h)
        jacobians.append(J)
    close(qd, motion.qd[-1], 1e-12)
    covector, by_tau = weights[:, steps].ravel(), np.empty((steps, n))
    for k in reversed(range(steps)):
        pulled = covector @ jacobians[k]
        covector, by_tau[k] = pulled[: 2 * n] + weights[:, k].ravel(), pulled[2 * n :]
    close(np.concatenate([got.q, got.qd]), covector, 1e-12)
    assert got.tau is not None
    close(got.tau, by_tau, 1e-12)


# Closed forms and invariants ---------------------------------------------------------------------


def test_a_mass_on_a_rail() -> None:
    """Semi-implicit Euler gives x = x0 + n h v0 + sum over k of (n - k) h^2 f_k / m."""
    mass, h, n = 2.5, 0.01, 37
    slide = JointData("slide", "prismatic", None, "box", axis=Vector.of(1.0, 0.0, 0.0))
    rail = chasles.Robot(Description("rail", (body(mass, (1.0, 1.0, 1.0), "box"),), (slide,)))
    end = np.zeros((2, 1))
    end[1] = 1.0
    options: dict[str, Any] = {"dt": h, "steps": n, "every": n, "covectors": (end, None)}
    got = rail.rollout_pullback([0.3], [0.1], np.ones((n, 1)), **options)
    close(got.q, [1.0], 1e-14)
    close(got.qd, [n * h], 1e-13)
    each = h * h / mass * np.arange(n, 0, -1)
    close(got.tau, each[:, None], 1e-13)
    constant = rail.rollout_pullback([0.3], [0.1], [1.0], **options)
    close(constant.tau, [each.sum()], 1e-13)


@pytest.mark.parametrize("robot", [puma560(), FLOATING], ids=["puma560", "floating"])
def test_energy_has_the_same_gradient_at_both_ends(robot: chasles.Robot) -> None:
    """Energy is constant, so its gradient at the end, pulled back, is its gradient at the start."""
    q, qd, _ = state(robot, 5)
    tau = np.zeros((400, robot.nv))

    def gradient(q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        by_q, by_qd = robot.derivatives("kinetic_energy", q, qd)
        return by_q + robot.derivatives("potential_energy", q, wrt="q"), by_qd

    options: dict[str, Any] = {"dt": 1e-3, "steps": 400, "every": 400, "integrator": "rk4"}
    motion = robot.rollout(q, qd, tau, **options)
    covectors = np.zeros((2, 2, robot.nv))
    covectors[:, 1] = gradient(motion.q[-1], motion.qd[-1])
    got = robot.rollout_pullback(q, qd, tau, covectors=tuple(covectors), **options)
    by_q, by_qd = gradient(q, qd)
    scale = float(max(np.abs(by_q).max(), np.abs(by_qd).max()))
    close(got.q, by_q, 1e-8, scale)
    close(got.qd, by_qd, 1e-8, scale)


@pytest.mark.parametrize("method", STEPS)
def test_a_ball_that_rolls_on_soft_ground(method: str) -> None:
    """Gradients include contact forces and surface states; the ball stays in contact."""
    robot, ground = ball(2.0, 0.3), contact.SoftSurface(4000.0, 40.0)
    law = contact.SoftContact(ground, contact.SoftFriction(0.5, 2e4, 60.0))
    pair = contact.Pair(contact.Sphere("body", 0.3), contact.Plane(), law)
    q, qd = (
        np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.294]),
        np.array([0.1, 0.5, 0.0, 0.2, 0.0, 0.0]),
    )
    z = np.array([1e-4, 0.0, -5e-3])
    options: dict[str, Any] = {"dt": 1e-3, "steps": 40, "integrator": method, "contacts": [pair]}
    base = robot.rollout(q, qd, contact_states=z, **options)
    assert base.touching is not None
    assert base.touching.forces[..., 2].min() > 0.0
    weights = RNG.normal(size=(2, 41, 6))
    got = robot.rollout_pullback(q, qd, contact_states=z, covectors=tuple(weights), **options)
    moves = RNG.normal(size=(2, 6))
    change = 1e-2 * RNG.normal(size=3)

    def loss(h: float) -> float:
        there = robot.integrate(q, h * moves[0]), qd + h * moves[1]
        motion = robot.rollout(*there, contact_states=z + h * change, **options)
        steps = robot.difference(base.q, motion.q)
        return float((weights[0] * steps + weights[1] * motion.qd).sum())

    found = got.q @ moves[0] + got.qd @ moves[1]
    assert got.contact_states is not None
    assert abs(got.contact_states @ change) > 1e-4 * abs(found)
    assert found + got.contact_states @ change == pytest.approx(slope(loss, 1e-5), rel=1e-7)


# Controllers -------------------------------------------------------------------------------------


def spring(t: Any, q: Any, qd: Any, p: Any) -> list[Any]:
    kp, kd, rate = p
    return [kp * (sin(rate * t) - x) - kd * v for x, v in zip(q, qd, strict=True)]


@pytest.mark.parametrize("method", STEPS)
def test_parameters(method: str) -> None:
    """Parameters are shared by the batch, or each member has its own."""
    robot = planar(2)
    q, qd, _ = state(robot, 6, 4)
    shared = np.array([12.0, 1.5, 2.0])
    options: dict[str, Any] = {
        "dt": 5e-3,
        "steps": 30,
        "every": 7,
        "integrator": method,
        "start": 0.3,
    }
    check_slope(robot, q, qd, spring, parameters=shared + RNG.uniform(size=(4, 3)), **options)
    one = robot.rollout(q, qd, spring, parameters=shared, **options)
    each = robot.rollout(q, qd, spring, parameters=np.tile(shared, (4, 1)), **options)
    assert np.array_equal(one.q, each.q)
    weights = RNG.normal(size=one.qd.shape)
    got = robot.rollout_pullback(
        q, qd, spring, parameters=shared, covectors=(weights, None), **options
    )
    assert got.tau is None
    assert got.parameters is not None
    assert got.parameters.shape == (4, 3)
    total = got.parameters.sum(axis=0)

    def loss(kp: float) -> float:
        p = shared + kp * np.eye(3)[0]
        return float((weights * robot.rollout(q, qd, spring, parameters=p, **options).q).sum())

    assert total[0] == pytest.approx(slope(loss), rel=1e-8)
    many = robot.rollout(q[0], qd[0], spring, parameters=RNG.uniform(size=(5, 3)), **options)
    assert many.q.shape == (5, 6, 2)


def test_controllers_without_parameters() -> None:
    robot = planar(2)
    q, qd, _ = state(robot, 7, 3)
    control = PDControl(20.0, 2.0, [0.3, -0.1])
    check_slope(robot, q, qd, control, dt=5e-3, steps=20, every=3)
    got = robot.rollout_pullback(
        q, qd, control, covectors=(None, np.ones((3, 21, 2))), dt=5e-3, steps=20
    )
    assert got.tau is None
    assert got.parameters is None


def test_training_finds_the_gains() -> None:
    """Newton's method on the residuals of a motion recovers the gains that produced it."""
    robot, truth = planar(2), np.array([30.0, 4.0, 1.0])
    q, qd = np.array([0.4, -0.2]), np.zeros(2)
    options: dict[str, Any] = {"dt": 5e-3, "steps": 100, "every": 10}
    seen = robot.rollout(q, qd, spring, parameters=truth, **options)
    p = np.array([25.0, 3.0, 1.2])
    for _ in range(8):
        motion = robot.rollout(q, qd, spring, parameters=p, **options)
        residual = (motion.q - seen.q).ravel()
        units = np.eye(residual.size).reshape(-1, *motion.q.shape)
        starts = np.tile(q, (len(units), 1))
        by = robot.rollout_pullback(
            starts, qd, spring, parameters=p, covectors=(units, None), **options
        )
        assert by.parameters is not None
        p = p - np.linalg.lstsq(by.parameters, residual, rcond=None)[0]
    close(p, truth, 1e-10)


# Schedules, batches, memory ----------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 9, 10, 16, 17, 50])
def test_any_number_of_steps_and_records(steps: int) -> None:
    """Stored states determine only where weights apply, and do not change the gradient."""
    robot = planar(2)
    q, qd, _ = state(robot, 8)
    tau = RNG.normal(size=(steps, 2))
    for every in (2, 3, 7, 60):
        kept = np.unique(np.r_[0 : steps + 1 : every, steps])
        weights = RNG.normal(size=(2, len(kept), 2))
        spread = np.zeros((2, steps + 1, 2))
        spread[:, kept] = weights
        options: dict[str, Any] = {"dt": 0.02, "steps": steps}
        few = robot.rollout_pullback(q, qd, tau, covectors=tuple(weights), every=every, **options)
        all_of_them = robot.rollout_pullback(q, qd, tau, covectors=tuple(spread), **options)
        for a, b in zip(few[:3], all_of_them[:3], strict=True):
            assert np.array_equal(a, b)


def test_leading_shapes_and_threads() -> None:
    robot = puma560()
    q, qd, tau = state(robot, 9, (3, 70))
    weights = RNG.normal(size=(2, 3, 70, 3, 6))
    options: dict[str, Any] = {"dt": 1e-3, "steps": 7, "every": 4}

    def go(*arrays: Any, covectors: Any = tuple(weights), **more: Any) -> RolloutGradient:
        return robot.rollout_pullback(*arrays, covectors=covectors, **options, **more)

    one, two = go(q, qd, tau[0, 0], threads=1), go(q, qd, tau[0, 0], threads=2)
    assert one.tau is not None
    assert two.tau is not None
    assert one.q.shape == one.tau.shape == (3, 70, 6)
    assert all(np.array_equal(a, b) for a, b in zip(one[:3], two[:3], strict=True))
    single = go(q[1, 2], qd[1, 2], tau[0, 0], covectors=tuple(weights[:, 1, 2]))
    close(single.q, one.q[1, 2], 1e-14)
    close(single.tau, one.tau[1, 2], 1e-14)
    rows = go(q, qd, np.tile(tau[0, 0], (7, 1)))
    assert rows.tau is not None
    assert rows.tau.shape == (3, 70, 7, 6)
    close(rows.tau.sum(axis=-2), one.tau, 1e-13)
    shared = go(q, qd[0, 0], tau[0, 0], covectors=(weights[0, 0, 0], None))
    assert shared.qd.shape == (3, 70, 6)
    columns = np.asfortranarray(weights)
    turned = go(*map(np.asfortranarray, (q, qd)), tau[0, 0], covectors=tuple(columns))
    assert all(np.array_equal(a, b) for a, b in zip(one[:3], turned[:3], strict=True))
    assert go(q[:0], qd[:0], covectors=(None, None)).q.shape == (0, 70, 6)
    assert not go(q, qd, covectors=(None, None)).q.any()


def test_memory_grows_as_the_square_root() -> None:
    """Four times as many steps need twice the memory, in addition to the times themselves."""
    robot = puma560()
    q, qd, _ = state(robot, 10, 64)
    covectors = np.zeros((2, 6)), None

    def peak(steps: int) -> int:
        tracemalloc.start()
        robot.rollout_pullback(
            q, 0.0 * qd, covectors=covectors, dt=1e-7, steps=steps, every=steps, threads=1
        )
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most - 2 * 8 * steps

    peak(100)
    few, many = peak(2500), peak(10000)
    assert many < 2.2 * few
    assert few < 4 * 64 * 12 * 8 * math.isqrt(2500)


# Invalid input -----------------------------------------------------------------------------------


def test_bad_input() -> None:
    robot = planar(2)
    zero = np.zeros(2)

    def go(q: Any = zero, qd: Any = zero, tau: Any = None, **options: Any) -> Any:
        given = {"dt": 1e-3, "steps": 5, "covectors": (None, np.zeros((6, 2)))} | options
        return robot.rollout_pullback(q, qd, tau, **given)

    with raises("E-MOTION-002"):
        go(covectors=(None,))
    with raises("E-MOTION-002"):
        go(covectors=3.0)
    with raises("E-MOTION-003", "(..., 6, 2)"):
        go(covectors=(None, np.zeros((5, 2))))
    with raises("E-CALL-056"):
        go(covectors=(np.zeros((6, 3)), None))
    with raises("E-MOTION-004"):
        go(covectors=(np.full((6, 2), np.nan), None))
    with raises("E-MOTION-005", "(3,)"):
        go(covectors=(np.zeros((3, 6, 2)), None))
    with raises("E-CALL-003"):
        go(steps=0)
    with raises("E-MOTION-015"):
        go(q=[np.nan, 0.0])
    with raises("E-MOTION-020"):
        go(qd=[1e200, 0.0])
    rolling = tree(1, 2, floating=False)
    with raises("E-MOTION-001", "'joint1'"):
        rolling.rollout_pullback(
            rolling.neutral(), np.zeros(3), covectors=(None, None), dt=1e-3, steps=1
        )
    with raises("E-LOOP-031"):
        four_bar().rollout_pullback(
            np.zeros(3), np.zeros(3), covectors=(None, None), dt=1e-3, steps=1
        )


def test_bad_parameters() -> None:
    robot = planar(2)

    def go(tau: Any, parameters: Any) -> Any:
        return robot.rollout(np.zeros(2), np.zeros(2), tau, parameters=parameters, dt=1e-3, steps=2)

    for without in (None, np.zeros(2), PDControl(1.0, 1.0, np.zeros(2))):
        with raises("E-MOTION-018"):
            go(without, np.ones(3))
    with raises("E-MOTION-011"):
        go(spring, 3.0)
    with raises("E-MOTION-015"):
        go(spring, [1.0, np.inf, 1.0])
    with raises("E-MOTION-008"):
        go(spring, None)
    with raises("E-MOTION-008"):
        go(spring, np.ones(4))
