"""Linearization of closed loops in independent coordinates, compared with closed forms.

Other expected values are fourth-order differences with steps of 1e-3, which have a relative error
of about 1e-9.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from mechanisms import mechanism, motion
from support import close, raises, tree

import chasles
from chasles.model import JointData
from chasles.robots.mechanisms import five_bar, four_bar

INDEPENDENT = {"coordinates": "independent"}


def rate(value: Callable[[float], np.ndarray], h: float = 1e-3) -> np.ndarray:
    """Return the derivative at zero."""
    return (8.0 * (value(h) - value(-h)) - value(2 * h) + value(-2 * h)) / (12.0 * h)


def by_differences(
    robot: chasles.Robot, q: np.ndarray, qd: np.ndarray, tau: np.ndarray, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return A and B by differences between neighboring motions that keep the loops closed."""
    chosen, places = robot.mechanism.closing.independent, robot.mechanism.closing.places
    n = len(chosen)
    y = np.array([0.0 if places[k] is None else q[places[k]] for k in chosen])

    def parting(dy: np.ndarray, dyd: np.ndarray, u: np.ndarray) -> np.ndarray:
        other = robot.assemble(y + dy, guess=q)
        fast = robot.complete(other, qd[chosen] + dyd)

        def gap(t: float) -> np.ndarray:
            return robot.difference(robot.integrate(q, t * qd), robot.integrate(other, t * fast))

        qdd = robot.forward_dynamics(other, fast, tau + u, **options)
        return np.concatenate([rate(gap)[chosen], qdd[chosen]])

    sizes = np.cumsum([n, n])
    columns = [
        rate(lambda s, x=x: parting(*np.split(s * x, sizes))) for x in np.eye(2 * n + robot.nv)
    ]
    both = np.array(columns).T
    return both[:, : 2 * n], both[:, 2 * n :]


def floating_loop() -> tuple[chasles.Robot, np.ndarray, np.ndarray, np.ndarray]:
    """Return a four-bar on a floating base, for which the top left block of A is not zero."""
    source, rng = four_bar(), np.random.default_rng(2)
    robot = chasles.Robot(
        replace(source, joints=(JointData("float", "free", None, "base"), *source.joints))
    )
    turn = np.array([0.5, -0.5, 0.1, 0.7, 0.2, 0.3, -0.4])
    q = np.concatenate([turn / np.linalg.norm(turn[:4]), motion("four_bar")[0][0]])
    qd = robot.complete(q, rng.normal(size=len(robot.independent)))
    return robot, q, qd, rng.normal(size=robot.nv)


def test_a_hanging_parallelogram_is_a_pendulum() -> None:
    """A hanging parallelogram has M = 2 m l^2 / 3 + c l^2 and stiffness (m l + c l) g.

    It consists of two swinging rods of mass m and a coupler of mass c.
    """
    robot, m, l, c, g = chasles.robots.four_bar(1.0, 0.5, 1.0, 0.5), 0.5, 0.5, 1.0, 9.81
    down, rest = np.array([-math.pi / 2, math.pi / 2, -math.pi / 2]), np.zeros(3)
    A, B = robot.linearize(down, rest, rest, actuation=["crank"], **INDEPENDENT)
    mass, stiffness = 2.0 * m * l * l / 3.0 + c * l * l, (m + c) * l * g
    close(A, [[0.0, 1.0], [-stiffness / mass, 0.0]], 1e-13)
    close(B, [[0.0], [1.0 / mass]], 1e-13)


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "six_bar"])
def test_neighbouring_motions_part_as_it_says(name: str) -> None:
    robot, arrays = mechanism(name), [a[0] for a in motion(name)]
    A, B = robot.linearize(*arrays, **INDEPENDENT)
    expected_A, expected_B = by_differences(robot, *arrays)
    close(A, expected_A, 1e-7)
    close(B, expected_B, 1e-9)
    n = len(robot.independent)
    np.testing.assert_array_equal(A[:n], np.eye(n, 2 * n, n))
    assert not np.any(B[:n])


def test_a_floating_base() -> None:
    robot, *arrays = floating_loop()
    A, B = robot.linearize(*arrays, **INDEPENDENT)
    expected_A, expected_B = by_differences(robot, *arrays)
    close(A, expected_A, 1e-6)
    close(B, expected_B, 1e-8)
    n = len(robot.independent)
    assert np.max(np.abs(A[:n, :n])) > 0.1
    close(A[:n, :n], expected_A[:n, :n], 1e-7)


def test_forces_damping_time_and_actuators() -> None:
    """Linearization agrees with external wrenches, damping, discrete time and selected actuators.

    One wrench has fixed world axes, the other turns with its link.
    """
    source = five_bar()
    damped = replace(source, joints=tuple(replace(j, damping=0.2) for j in source.joints))
    robot, arrays = chasles.Robot(damped), [a[0] for a in motion("five_bar")]
    options = {
        "f_ext": {
            "left_coupler": chasles.Wrench([0.1, 0.0, 0.2, 1.0, -3.0, 0.5], at=(0.3, 0.0, 0.0)),
            "right": chasles.Wrench([0.0, 0.0, 0.0, 2.0, 1.0, 0.0], axes="frame"),
        },
        "dissipation": True,
    }
    A, B = robot.linearize(*arrays, **options, **INDEPENDENT)
    expected_A, expected_B = by_differences(robot, *arrays, **options)
    close(A, expected_A, 1e-7)
    close(B, expected_B, 1e-9)
    some = robot.linearize(*arrays, dt=0.01, actuation=["right", "left"], **options, **INDEPENDENT)
    S = np.eye(4)[:, [2, 0]]
    whole = np.block([[A, B @ S], [np.zeros((2, 6))]])
    after = scipy.linalg.expm(0.01 * whole)
    close(some[0], after[:4, :4], 1e-12)
    close(some[1], after[:4, 4:], 1e-12)


def test_batches_results_in_place_and_single_precision() -> None:
    robot, (q, qd, tau) = mechanism("four_bar"), motion("four_bar")
    A, B = robot.linearize(q, qd, tau, **INDEPENDENT)
    assert (A.shape, B.shape) == ((3, 2, 2), (3, 2, 3))
    for k in range(3):
        close(robot.linearize(q[k], qd[k], tau[k], **INDEPENDENT)[0], A[k], 1e-13)
    grid, _ = robot.linearize(q[:, None], qd[:, None], tau, threads=1, **INDEPENDENT)
    assert grid.shape == (3, 3, 2, 2)
    close(grid[1, 1], A[1], 1e-13)
    out = np.empty_like(A), np.empty_like(B)
    assert robot.linearize(q, qd, tau, out=out, **INDEPENDENT) is out
    np.testing.assert_array_equal(out[0], A)
    single = robot.linearize(*(a.astype(np.float32) for a in (q, qd, tau)), **INDEPENDENT)
    assert single[0].dtype == single[1].dtype == np.float32
    close(single[0], A, 1e-3)


def test_without_loops_all_coordinates_are_independent() -> None:
    robot = tree(3, 1, floating=True)
    q, qd, tau = robot.random(seed=1), *np.random.default_rng(1).normal(size=(2, robot.nv))
    for mine, theirs in zip(
        robot.linearize(q, qd, tau, **INDEPENDENT), robot.linearize(q, qd, tau), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
    with raises("E-LOOP-037"):
        robot.linearize(q, qd, tau, coordinates="all")


def test_where_others_must_be_independent() -> None:
    """At a dead center the slider does not determine the crank, so it is not a valid coordinate."""
    pump = mechanism("slider_crank").with_independent("a")
    q, rest = np.array([0.0, 0.0, 0.0, 4.0]), np.zeros(4)
    with raises("E-LOOP-011", "'a'", "'alpha1'", "'alpha2'"):
        pump.linearize(q, rest, rest, **INDEPENDENT)
    A, _ = mechanism("slider_crank").linearize(q, rest, rest, **INDEPENDENT)
    assert np.all(np.isfinite(A))
