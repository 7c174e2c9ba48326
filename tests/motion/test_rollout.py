"""Compiled rollouts agree with single steps in Python, `simulate` and closed forms."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import close, pairwise, raises

import chasles
from chasles.expr import sin
from chasles.motion.controllers import computed, controlled
from chasles.motion.drivers.compiled import prepared
from chasles.robots import four_bar, planar, puma560, quadruped, random_tree
from chasles.rollouts import STEPS, ComputedTorque, GravityCompensation, PDControl

RNG = np.random.default_rng(7)


def start(robot: chasles.Robot, *lead: int) -> tuple[np.ndarray, np.ndarray]:
    return robot.random(RNG, size=lead), RNG.uniform(-1.0, 1.0, (*lead, robot.nv))


def stepped(
    robot: chasles.Robot, method: str, q: Any, qd: Any, tau: Callable[..., Any], h: float, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the rollout in Python, step by step."""
    for k in range(n):
        qdd = robot.forward_dynamics(q, qd, tau(k, q, qd))
        after = qd + h * qdd
        q, qd = robot.integrate(q, h * (qd if method == "euler" else after)), after
    return q, qd


@pytest.mark.parametrize(
    ("robot", "method", "count"),
    pairwise(
        [puma560(), quadruped(), random_tree(4, seed=2)], ["euler", "semi-implicit"], [1, 5, 130]
    ),
    ids=str,
)
def test_as_one_by_one(robot: chasles.Robot, method: str, count: int) -> None:
    """Rollouts agree for several numbers of states, with torques for each state and step."""
    q, qd = start(robot, count)
    tau = RNG.normal(size=(count, 20, robot.nv))
    got = robot.rollout(q, qd, tau, dt=1e-3, steps=20, every=6, integrator=method)
    np.testing.assert_allclose(got.t, [0.0, 0.006, 0.012, 0.018, 0.02], atol=1e-15)
    for k in range(5):
        steps = round(got.t[k] / 1e-3)
        right = stepped(robot, method, q, qd, lambda k, *_: tau[:, k], 1e-3, steps)
        close(got.q[:, k], right[0], 1e-12)
        close(got.qd[:, k], right[1], 1e-11)


@pytest.mark.parametrize("robot", [puma560(), quadruped(), random_tree(4, seed=2)], ids=str)
def test_fourth_order_as_simulated(robot: chasles.Robot) -> None:
    q, qd = start(robot, 3)
    right = chasles.simulate(robot, q, qd, duration=0.05, dt=1e-3)
    got = robot.rollout(q, qd, dt=1e-3, steps=50, integrator="rk4")
    close(got.q, right.q, 1e-12)
    close(got.qd, right.qd, 1e-11)


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("semi-implicit", 1), ("rk4", 4)])
def test_orders(method: str, order: int) -> None:
    robot = random_tree(4, seed=5)
    q, qd = start(robot)
    fine = robot.rollout(q, qd, dt=1e-4, steps=1000, every=1000, integrator="rk4").qd[-1]
    errors = [
        np.abs(
            robot.rollout(q, qd, dt=0.1 / n, steps=n, every=n, integrator=method).qd[-1] - fine
        ).max()
        for n in (25, 50)
    ]
    assert order - 0.4 < np.log2(errors[0] / errors[1]) < order + 0.6


def test_leading_shapes_and_threads() -> None:
    robot = puma560()
    q, qd = start(robot, 3, 70)
    tau = RNG.normal(size=6)
    one = robot.rollout(q, qd, tau, dt=1e-3, steps=7, threads=1)
    assert one.q.shape == (3, 70, 8, 6)
    two = robot.rollout(q, qd, tau, dt=1e-3, steps=7, threads=2)
    assert np.array_equal(one.q, two.q)
    single = robot.rollout(q[1, 2], qd[1, 2], tau, dt=1e-3, steps=7)
    close(single.q, one.q[1, 2], 1e-15)
    columns = robot.rollout(*map(np.asfortranarray, (q[0], qd[0])), tau, dt=1e-3, steps=7)
    assert np.array_equal(columns.q, one.q[0])
    shared = robot.rollout(q, qd[0, 0], tau, dt=1e-3, steps=7)
    assert shared.qd.shape == (3, 70, 8, 6)
    assert robot.rollout(q[:0], qd[:0], dt=1e-3, steps=7).q.shape == (0, 70, 8, 6)


def test_computed_torque_is_a_damped_spring() -> None:
    """Each coordinate decays as (1 + w t) exp(-w t) for kp = w^2 and kd = 2 w."""
    robot, w, t = puma560(), 8.0, 0.5
    control = ComputedTorque(w * w, 2.0 * w, np.zeros(6))
    got = robot.rollout(np.full(6, 0.4), np.zeros(6), control, dt=1e-3, steps=500, integrator="rk4")
    close(got.q[-1], np.full(6, 0.4 * (1.0 + w * t) * np.exp(-w * t)), 1e-8)


def test_gravity_compensation_holds() -> None:
    robot = quadruped()
    q, _ = start(robot)
    got = robot.rollout(q, np.zeros(robot.nv), GravityCompensation(), dt=1e-3, steps=200)
    close(got.q[-1], q, 1e-9)


def test_scalar_gains_do_not_act_on_a_floating_base() -> None:
    """Scalars agree with gains per degree of freedom that are zero for the base."""
    robot, rng = quadruped(), np.random.default_rng(3)
    q, qd = robot.random(rng), rng.uniform(-1.0, 1.0, 18)
    goal, motors = robot.keyframes["standing"].q, np.r_[np.zeros(6), np.ones(12)]
    scalar = PDControl(20.0, 2.0, goal, 0.5)
    given = PDControl(20.0 * motors, 2.0 * motors, goal, 0.5 * motors)
    tau = computed(robot.model, scalar)(0.0, q, qd)
    assert not tau[:6].any()
    assert np.array_equal(tau, computed(robot.model, given)(0.0, q, qd))
    move = chasles.trajectory.minimum_jerk(q, goal, 1.0, robot=robot)
    runs = [
        robot.rollout(q, qd, replace(law, target=target), dt=1e-3, steps=3).q[-1]
        for target in (goal, move)
        for law in (scalar, given)
    ]
    assert np.array_equal(runs[0], runs[1])
    assert np.array_equal(runs[2], runs[3])
    laws = [controlled(robot.mechanism, replace(law, target=move)) for law in (scalar, given)]
    assert np.array_equal(*(law(0.5, q, qd) for law in laws))
    whole = computed(robot.model, PDControl(20.0 * np.ones(18), 2.0, goal))(0.0, q, qd)
    assert whole[:6].all()


def test_controllers_as_functions() -> None:
    """A traced function with a moving target and PDControl agree with single steps."""
    robot = planar(2)
    q, qd = start(robot, 4)

    def law(t: Any, q: Any, qd: Any) -> list[Any]:
        return [20.0 * (sin(3.0 * t) - x) - 2.0 * v for x, v in zip(q, qd, strict=True)]

    got = robot.rollout(q, qd, law, dt=1e-3, steps=30, start=0.2)
    right = stepped(
        robot,
        "semi-implicit",
        q,
        qd,
        lambda k, q, qd: 20.0 * (np.sin(3.0 * (0.2 + 1e-3 * k)) - q) - 2.0 * qd,
        1e-3,
        30,
    )
    close(got.q[:, -1], right[0], 1e-12)
    still = robot.rollout(q, qd, PDControl(20.0, 2.0, [0.3, -0.1], [1.0, 0.0]), dt=1e-3, steps=30)
    right = stepped(
        robot,
        "semi-implicit",
        q,
        qd,
        lambda k, q, qd: 20.0 * (np.array([0.3, -0.1]) - q) - 2.0 * qd + np.array([1.0, 0.0]),
        1e-3,
        30,
    )
    close(still.q[:, -1], right[0], 1e-12)


def test_a_step_is_compiled_once_for_controllers_that_are_equal() -> None:
    """Gains are compared by value, as lists or arrays.

    Functions with equal code and equal values share a step.
    """
    assert PDControl([1.0], np.ones(1), [[0.0]]) == PDControl(np.ones(1), [1.0], np.zeros((1, 1)))
    assert len({PDControl([1.0, 2.0], 0.1, np.zeros(k)) for k in (2, 2, 3)}) == 2
    robot, rest = planar(2), (False, None, 1e-3)
    held = [prepared(robot, "euler", PDControl([1.0, 2.0], 0.1, [0.0, 0.0]), *rest) for _ in "ab"]
    assert held[0] is held[1]
    laws = [
        prepared(robot, "euler", lambda t, q, qd, k=k: [t, k - q[1]], *rest)
        for k in (1.0, 1.0, 2.0)
    ]
    assert laws[0] is laws[1]
    assert laws[1] is not laws[2]


def test_energy_is_kept_by_the_fourth_order() -> None:
    robot = puma560()
    q, qd = start(robot)
    got = robot.rollout(q, qd, dt=1e-3, steps=2000, every=20, integrator="rk4")
    energy = robot.kinetic_energy(got.q, got.qd) + robot.potential_energy(got.q)
    assert np.ptp(energy) < 1e-8 * robot.kinetic_energy(got.q, got.qd).max()


def test_counts_may_be_integers_of_numpy() -> None:
    robot = planar(2)
    q, qd = start(robot)
    counts = {"steps": np.int64(7), "every": np.int32(3), "threads": np.int64(1)}
    got, wanted = (
        robot.rollout(q, qd, dt=1e-3, **some)  # type: ignore[arg-type]
        for some in (counts, {name: int(n) for name, n in counts.items()})
    )
    assert np.array_equal(got.t, wanted.t)
    assert np.array_equal(got.q, wanted.q)


def test_bad_input() -> None:
    robot = puma560()
    q, qd = np.zeros(6), np.zeros(6)

    def go(q: Any = q, qd: Any = qd, tau: Any = None, **options: Any) -> Any:
        return robot.rollout(q, qd, tau, **({"dt": 1e-3, "steps": 5} | options))

    with raises("E-MOTION-016", "'leapfrog'"):
        go(integrator="leapfrog")
    with raises("E-CALL-003"):
        go(steps=0)
    for threads in ("x", 0, 1.5, True):
        with raises("E-CALL-003"):
            go(threads=threads)
    with raises("E-MATH-031"):
        go(dt=-1.0)
    with raises("E-MOTION-015"):
        go(q=np.full(6, np.nan))
    with raises("E-MOTION-023", "(6,)", "(..., 5, 6)"):
        go(tau=np.zeros((4, 6)))
    with raises("E-MOTION-024"):
        go(tau=np.zeros((3, 5, 6)))
    with raises("E-MOTION-009"):
        go(tau=lambda t, q, qd: [1.0])
    with raises("E-MOTION-008"):
        go(tau=lambda t, q, qd: np.sin(q))
    with raises("E-MOTION-012"):
        go(tau=PDControl([1.0, 2.0], 0.0, np.zeros(6)))
    with raises("E-LOOP-031"):
        four_bar().rollout(np.zeros(3), np.zeros(3), dt=1e-3, steps=1)
    with raises("E-MOTION-014", "integrator='time-stepping'", "PDControl"):
        go(qd=np.full(6, 1e200), steps=50)


@pytest.mark.parametrize("method", ["semi-implicit", "time-stepping"])
def test_records_that_do_not_fit_in_memory(method: str) -> None:
    q = np.zeros((10**6, 2))
    with raises("E-MOTION-219", "3.2e+05 GB", "every"):
        planar(2).rollout(q, [0.0, 0.0], dt=1e-3, steps=10**7, integrator=method)


def test_every_method_is_known() -> None:
    assert set(STEPS) == {"euler", "heun2", "heun3", "rk4", "semi-implicit"}


@pytest.mark.parametrize("kind", [np.longdouble, np.float32, np.int64, int])
def test_a_start_of_any_type_is_that_time(kind: Any) -> None:
    """Times are passed to compiled code as float64, for any type of `start`."""
    robot = planar(2)

    def push(t: Any, q: Any, qd: Any) -> Any:
        return [t * t, 0.0]

    runs = [
        robot.rollout([0.1, 0.2], [0.0, 0.0], control=push, dt=1e-3, steps=5, start=start)
        for start in (2.0, kind(2))
    ]
    assert np.array_equal(runs[0].q, runs[1].q)
    assert np.array_equal(runs[0].t, runs[1].t)


@pytest.mark.parametrize("steps", range(1, 6))
@pytest.mark.parametrize("every", [1, 2, 5])
def test_one_robot_moves_as_in_a_batch(steps, every):
    """A single robot's states are swapped with the results of a step; those of a batch are not."""
    robot, rng = chasles.robots.planar(3), np.random.default_rng(2)
    q, qd = rng.normal(size=(2, 2, 3))
    options = {"dt": 0.01, "steps": steps, "every": every}
    both = robot.rollout(q, qd, **options)
    for k in range(2):
        alone = robot.rollout(q[k], qd[k], **options)
        for name in ("q", "qd"):
            found, expected = getattr(alone, name), getattr(both, name)[k]
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(alone.q[0], q[k])
        np.testing.assert_array_equal(alone.end.q, alone.q[-1])
