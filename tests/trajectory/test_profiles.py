"""Trapezoidal and S-curve profiles: limits, ends, and durations by closed forms and Ruckig."""

from typing import Any

import numpy as np
import pytest

import chasles
from chasles import trajectory
from chasles.errors import ChaslesError

RNG = np.random.default_rng(21)


def test_durations_are_those_of_closed_forms() -> None:
    def duration(far: float, **limits: float) -> float:
        make = trajectory.s_curve if "jerk" in limits else trajectory.trapezoid
        return make([0.0], [far], **limits).duration

    v, a, j = 1.5, 2.0, 9.0
    assert duration(9.0, velocity=v, acceleration=a) == pytest.approx(9.0 / v + v / a, 1e-14)
    assert duration(0.1, velocity=v, acceleration=a) == pytest.approx(2.0 * (0.1 / a) ** 0.5, 1e-14)
    whole = 9.0 / v + v / a + a / j
    assert duration(9.0, velocity=v, acceleration=a, jerk=j) == pytest.approx(whole, 1e-14)
    short = 4.0 * (0.01 / (2.0 * j)) ** (1.0 / 3.0)
    assert duration(0.01, velocity=v, acceleration=a, jerk=j) == pytest.approx(short, 1e-12)


@pytest.mark.parametrize("jerk", [False, True])
@pytest.mark.parametrize("moving", [False, True])
def test_ends_and_limits_are_met(jerk: bool, moving: bool) -> None:
    for _ in range(25):
        n = 4
        q0, q1 = RNG.normal(size=(2, n)) * RNG.choice([0.01, 1.0, 10.0])
        v, a, j = RNG.uniform(0.2, 3.0, size=(3, n)) * [[1.0], [1.0], [5.0]]
        ends = RNG.uniform(-0.9, 0.9, size=(2, n)) * v if moving else np.zeros((2, n))
        limits: dict[str, Any] = {"velocity": v, "acceleration": a, "qd0": ends[0], "qd1": ends[1]}
        make = trajectory.s_curve if jerk else trajectory.trapezoid
        move = make(q0, q1, **limits, **({"jerk": j} if jerk else {}))
        rates = move(np.linspace(0.0, move.duration, 2001), 3)
        for rate, most in zip(rates[1:], (v, a, j), strict=True):
            assert np.all(np.abs(rate) <= most * (1.0 + 1e-9) + 1e-9) or (
                rate is rates[3] and not jerk
            )
        assert np.abs(rates[0][[0, -1]] - [q0, q1]).max() < 1e-9
        assert np.abs(rates[1][[0, -1]] - ends).max() < 1e-9
        if jerk:  # accelerations are continuous, so the jerk limits their change between samples
            step = np.abs(np.diff(rates[2], axis=0)).max(axis=0)
            assert np.all(step <= j * move.duration / 2000.0 * (1.0 + 1e-6))


def test_durations_are_those_of_ruckig() -> None:
    ruckig = pytest.importorskip("ruckig")
    for k in range(60):
        n = int(RNG.integers(1, 5))
        q0, q1 = RNG.normal(size=(2, n)) * RNG.choice([0.01, 1.0, 10.0])
        v, a, j = RNG.uniform(0.2, 3.0, size=(3, n)) * [[1.0], [1.0], [5.0]]
        ends = RNG.uniform(-0.9, 0.9, size=(2, n)) * v * (k % 3 > 0)
        limits = {"velocity": v, "acceleration": a, "jerk": j, "qd0": ends[0], "qd1": ends[1]}
        given, peer = ruckig.InputParameter(n), ruckig.Trajectory(n)
        given.current_position, given.target_position = q0, q1
        given.current_velocity, given.target_velocity = ends
        given.current_acceleration = given.target_acceleration = np.zeros(n)
        given.max_velocity, given.max_acceleration, given.max_jerk = v, a, j
        ruckig.Ruckig(n).calculate(given, peer)
        move = trajectory.s_curve(q0, q1, **limits)
        assert move.duration == pytest.approx(peer.duration, rel=1e-8)


def test_joints_with_quaternions_turn_about_one_axis() -> None:
    robot = chasles.robots.quadruped()
    q0, q1 = robot.random(RNG, size=2)
    limits = {"velocity": 1.0, "acceleration": 2.0, "jerk": 10.0}
    for synchronize in (True, False):
        move = trajectory.s_curve(q0, q1, robot=robot, synchronize=synchronize, **limits)
        rates = move(np.linspace(0.0, move.duration, 1001), 3)[1:]
        peaks = [np.abs(rate).max() for rate in rates]
        assert np.allclose(peaks, list(limits.values()), rtol=1e-3)
        assert np.abs(robot.difference(move.end, q1)).max() < 1e-9


def test_a_longer_duration_is_met_exactly() -> None:
    q0, q1 = RNG.normal(size=(2, 3))
    limits = {"velocity": 1.0, "acceleration": 2.0, "jerk": 10.0}
    move = trajectory.s_curve(q0, q1, duration=9.0, **limits)
    assert move.duration == 9.0
    assert np.abs(move.end - q1).max() < 1e-9


@pytest.mark.parametrize(
    ("code", "more"),
    [
        ("E-PATH-033", {"qd0": [2.0]}),
        ("E-PATH-014", {"velocity": -1.0}),
        ("E-PATH-014", {"acceleration": np.nan}),
        ("E-PATH-035", {"duration": 0.1}),
        ("E-PATH-013", {"velocity": [1.0, 2.0]}),
    ],
)
def test_bad_input_is_named(code: str, more: dict[str, Any]) -> None:
    with pytest.raises(ChaslesError) as error:
        trajectory.trapezoid([0.0], [1.0], **({"velocity": 1.0, "acceleration": 1.0} | more))
    assert error.value.code == code
