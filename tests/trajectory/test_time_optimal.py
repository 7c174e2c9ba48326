"""Time-optimal motions agree with a direct optimization, and satisfy limits on finer grids."""

from itertools import pairwise
from typing import Any

import clarabel
import numpy as np
import pytest
from benchmarks.robots import CASES, chasles_robot
from scipy import sparse

import chasles
from chasles import trajectory
from chasles.errors import ChaslesError
from chasles.functions.loads import loads

RNG = np.random.default_rng(22)

SHARE = {"panda": 0.5, "ur5": 0.4, "puma560": 0.5}
"""Fraction of the torque limits that is used, so that torques are limiting."""


def arm(name: str) -> tuple[chasles.Robot, trajectory.Move, dict[str, Any]]:
    """Return a robot, a path of it, and limits."""
    robot = chasles.robots.puma560() if name == "puma560" else chasles_robot(CASES[name])
    q = 0.4 * robot.random(np.random.default_rng(5), size=4)
    if name == "panda":
        q[:, 3] -= 1.2
    velocity = np.where(np.isinf(robot.limits.velocity), 4.0, robot.limits.velocity)
    limits = {
        "velocity": velocity,
        "acceleration": np.full(robot.nv, 25.0),
        "effort": SHARE[name] * robot.limits.effort,
    }
    return robot, trajectory.spline([0.0, 0.5, 1.0, 2.0], q), limits


@pytest.mark.parametrize("name", SHARE)
def test_durations_are_those_of_a_direct_optimisation(name: str) -> None:
    robot, path, limits = arm(name)
    move = trajectory.time_optimal(robot, path, grid=400, **limits)
    direct = optimised(robot, path, limits, 400)
    assert abs(move.duration / direct - 1.0) < 0.01
    assert move.duration > direct * 0.999
    _, _, qdd = move(np.linspace(0.0, move.duration, 4001))
    q, qd, _ = move(np.linspace(0.0, move.duration, 4001))
    share = np.abs(robot.inverse_dynamics(q, qd, qdd)) / limits["effort"]
    assert share.max() > 0.999  # torque limits are active


@pytest.mark.parametrize("name", SHARE)
@pytest.mark.parametrize("grid", [100, 400])
def test_limits_hold_on_a_grid_a_hundred_times_finer(name: str, grid: int) -> None:
    robot, path, limits = arm(name)
    move: Any = trajectory.time_optimal(robot, path, grid=grid, **limits)
    t = move.breaks
    fine = np.concatenate([np.linspace(a, b, 101)[1:-1] for a, b in pairwise(t)])
    q, qd, qdd = move(fine)
    for value, most in (
        (qd, limits["velocity"]),
        (qdd, limits["acceleration"]),
        (robot.inverse_dynamics(q, qd, qdd), limits["effort"]),
    ):
        assert np.max(np.abs(value) - most) < 1e-6
    assert np.abs(move.end - path.end).max() < 1e-9
    assert max(np.abs(move(x)[1]).max() for x in (0.0, move.duration)) < 1e-9


def test_rates_are_those_of_differences() -> None:
    robot, path, limits = arm("puma560")
    move: Any = trajectory.time_optimal(robot, path, grid=100, **limits)
    t = 0.5 * (move.breaks[1:] + move.breaks[:-1])[5:-5:7]
    h = 1e-6
    before, here, after = move(t - h, 3), move(t, 3), move(t + h, 3)
    for k in range(3):
        slope = (after[k] - before[k]) / (2.0 * h)
        assert np.abs(slope - here[k + 1]).max() < 1e-6 * np.abs(here[k + 1]).max()


def test_speeds_at_the_ends() -> None:
    robot, path, limits = arm("puma560")
    move = trajectory.time_optimal(robot, path, start_speed=0.2, end_speed=0.1, **limits)
    for t, s, speed in ((0.0, 0.0, 0.2), (move.duration, 2.0, 0.1)):
        assert np.abs(move(t)[1] - speed * path(s)[1]).max() < 1e-9
    with pytest.raises(ChaslesError) as error:
        trajectory.time_optimal(robot, path, start_speed=50.0, **limits)
    assert error.value.code == "E-PATH-031"


@pytest.mark.parametrize("share", [0.99, 1.05, 1.3])
def test_speeds_at_the_end_are_within_the_limits(share: float) -> None:
    robot, path, _ = arm("puma560")
    limits = {"velocity": 1.0, "acceleration": 25.0, "effort": np.inf}
    speed = share / np.abs(path(path.duration)[1]).max()
    if share < 1.0:
        move = trajectory.time_optimal(robot, path, end_speed=speed, **limits)
        assert np.abs(move(np.linspace(0.0, move.duration, 2001))[1]).max() < 1.0 + 1e-6
        return
    with pytest.raises(ChaslesError, match="end_speed") as error:
        trajectory.time_optimal(robot, path, end_speed=speed, **limits)
    assert error.value.code == "E-PATH-059"


def test_accelerations_alone_bound_a_motion() -> None:
    """Limits on some accelerations suffice; a straight line takes the known minimum time."""
    robot, path, _ = arm("puma560")
    free = {"velocity": np.inf, "effort": np.inf}
    for limit in (np.full(6, 2.0), np.array([2.0, np.inf, 1.0, np.inf, np.inf, np.inf])):
        move = trajectory.time_optimal(robot, path, acceleration=limit, **free)
        peak = np.abs(move(np.linspace(0.0, move.duration, 4001))[2]).max(axis=0)
        assert (peak < limit + 1e-6).all()
        assert (peak / limit).max() > 0.99
    straight = trajectory.spline([0.0, 1.0], [np.zeros(6), np.full(6, 0.5)])
    move = trajectory.time_optimal(robot, straight, acceleration=2.0, **free)
    assert abs(move.duration - 1.0) < 1e-4


def test_one_interval_cannot_begin_and_end_at_rest() -> None:
    robot, path, limits = arm("puma560")
    straight = trajectory.spline([0.0, 1.0], [path.start, path.end])
    with pytest.raises(ChaslesError) as error:
        trajectory.time_optimal(robot, straight, grid=1, **limits)
    assert error.value.code == "E-PATH-029"


def test_loops_bound_torques_of_motors() -> None:
    robot = chasles.robots.five_bar()
    q0 = robot.assemble([1.2, 1.0])
    q1 = robot.assemble([1.0, 1.3], guess=q0)
    path = trajectory.spline([0.0, 1.0], [q0, q1], robot=robot)
    move = trajectory.time_optimal(robot, path, velocity=5.0, effort=6.0, grid=60)
    q, qd, qdd = move(np.linspace(0.0, move.duration, 1501))
    tau = robot.inverse_dynamics(q, qd, qdd, actuated=robot.independent)
    assert np.abs(robot.loop_residual(q)).max() < 1e-10
    assert 5.999 < np.abs(tau).max() < 6.0 + 1e-6


def test_a_floating_robot_on_a_spline_of_its_configuration_space() -> None:
    robot = chasles.robots.quadruped()
    q = robot.integrate(robot.neutral(), 0.3 * RNG.normal(size=(3, robot.nv)))
    path = trajectory.spline([0.0, 1.0, 2.0], q, robot=robot)
    move = trajectory.time_optimal(robot, path, velocity=2.0, acceleration=5.0, grid=60)
    _, qd, qdd = move(np.linspace(0.0, move.duration, 2001))
    assert np.abs(qd).max() < 2.0 + 1e-6
    assert 4.9 < np.abs(qdd).max() < 5.0 + 1e-6


@pytest.mark.parametrize("limited", [(True,) * 6, (True, False, True, True, False, True)])
def test_torques_of_one_program_are_those_of_inverse_dynamics(limited: tuple[bool, ...]) -> None:
    """Torques are computed for (qd, qdd) = (0, 0), (0, q') and (q', q'')."""
    robot = chasles.robots.puma560()
    q, q1, q2 = RNG.normal(size=(3, 40, 6))
    found = [np.empty((40, sum(limited))) for _ in range(3)]
    kernel = loads(robot.model, limited)
    assert kernel is not None
    kernel([q, q1, q2], found)
    for tau, rates in zip(found, ((0 * q, 0 * q), (0 * q, q1), (q1, q2)), strict=True):
        whole = robot.inverse_dynamics(q, *rates)
        assert np.abs(tau - whole[:, limited]).max() < 1e-12 * np.abs(whole).max()


def test_limits_of_some_joints() -> None:
    """Limits on one joint give the same motion as additional wide limits on the other joints."""
    robot, path, limits = arm("puma560")
    second = np.arange(6) == 1
    some = limits | {k: np.where(second, limits[k], np.inf) for k in ("effort", "acceleration")}
    wide = limits | {k: np.where(second, limits[k], 1e9) for k in ("effort", "acceleration")}
    one, other = (trajectory.time_optimal(robot, path, **each) for each in (some, wide))
    assert abs(one.duration / other.duration - 1.0) < 1e-6


def test_a_robot_with_quaternions_needs_a_path_of_its_own() -> None:
    robot = chasles.robots.quadruped()
    q = robot.integrate(robot.neutral(), 0.3 * RNG.normal(size=(3, robot.nv)))
    path = trajectory.spline([0.0, 1.0, 2.0], q)  # a path of plain vectors
    with pytest.raises(ChaslesError) as error:
        trajectory.time_optimal(robot, path, velocity=2.0)
    assert error.value.code == "E-PATH-060"


def test_infeasible_paths_name_the_place() -> None:
    robot, path, limits = arm("panda")
    with pytest.raises(ChaslesError, match="joint 'panda_joint4' needs") as error:
        trajectory.time_optimal(robot, path, **limits | {"effort": 0.05 * robot.limits.effort})
    assert error.value.code == "E-PATH-030"
    with pytest.raises(ChaslesError, match="zero velocity at s = 0") as error:
        trajectory.time_optimal(robot, trajectory.minimum_jerk(path.start, path.end, 1.0))
    assert error.value.code == "E-PATH-054"
    with pytest.raises(ChaslesError) as error:
        trajectory.time_optimal(chasles.robots.planar(7), path)
    assert error.value.code == "E-PATH-026"


# The oracle --------------------------------------------------------------------------------------


def optimised(robot: Any, path: Any, limits: dict[str, Any], n: int) -> float:
    """Return the minimum duration by a convex program for squared speeds x at n + 1 grid points.

    Verscheure et al. (IEEE Transactions on Automatic Control 54, 2009) minimize the sum of 2 D d,
    with second-order cones c <= sqrt(x) and d >= 1 / (c + next c). Constraints are evaluated in the
    middle of intervals; torques are M q' u + (M q'' + h - g) x + g.
    """
    s = np.linspace(0.0, path.duration, n + 1)
    q, q1, q2 = path(0.5 * (s[1:] + s[:-1]))
    M, g = robot.mass_matrix(q), robot.gravity_forces(q)
    turned = (M @ q2[..., None])[..., 0] + robot.bias_forces(q, q1) - g
    a = np.concatenate([q1, (M @ q1[..., None])[..., 0]], axis=1)
    b, c = np.concatenate([q2, turned], axis=1), np.concatenate([0.0 * g, g], axis=1)
    most = np.concatenate([limits["acceleration"], limits["effort"]])
    step = path.duration / n
    # Factors of x and of the next x.
    low, high = b / 2.0 - a / (2.0 * step), b / 2.0 + a / (2.0 * step)
    m, size = len(most), 3 * n + 2  # x, c, d
    rows, columns = np.arange(n * m), np.repeat(np.arange(n), m)
    shape = (n * m, size)
    lines = sparse.csc_array((low.ravel(), (rows, columns)), shape)
    lines = lines + sparse.csc_array((high.ravel(), (rows, columns + 1)), shape)
    top = np.min((limits["velocity"] / np.abs(path(s)[1])) ** 2, axis=-1)
    top[[0, -1]] = 0.0
    x = sparse.eye_array(n + 1, size)
    A = [lines, -lines, x, -x]
    right = [(most - c).ravel(), (most + c).ravel(), top, np.zeros(n + 1)]
    cones: list[Any] = [clarabel.NonnegativeConeT(2 * n * m + 2 * n + 2)]
    cone, offset = sparse.lil_array((6 * n + 3, size)), np.zeros(6 * n + 3)
    for i in range(n + 1):  # |2 c, x - 1| <= x + 1
        cone[3 * i, i] = cone[3 * i + 1, i] = -1.0
        cone[3 * i + 2, n + 1 + i] = -2.0
        offset[3 * i : 3 * i + 2] = 1.0, -1.0
    for i in range(n):  # |2, c + next c - d| <= c + next c + d
        k = 3 * (n + 1 + i)
        for row, sign in ((k, -1.0), (k + 1, 1.0)):
            cone[row, n + 1 + i] = cone[row, n + 2 + i] = -1.0
            cone[row, 2 * n + 2 + i] = sign
        offset[k + 2] = 2.0
    cones += [clarabel.SecondOrderConeT(3)] * (2 * n + 1)
    cost = np.concatenate([np.zeros(2 * n + 2), np.full(n, 2.0 * step)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    whole = sparse.csc_matrix(sparse.vstack([*A, cone]))
    zero = sparse.csc_matrix((size, size))
    problem = (zero, cost, whole, np.concatenate([*right, offset]), cones, settings)
    found = clarabel.DefaultSolver(*problem).solve()
    assert "Solved" in str(found.status), found.status
    return float(found.obj_val)
