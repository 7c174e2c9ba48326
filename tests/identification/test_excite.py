"""Excitation trajectories have correct gradients, and satisfy limits between samples."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.robots import CASES, chasles_robot
from support import raises

import chasles
from chasles.contact import Sphere
from chasles.identification import excitation
from chasles.identification.linear import LinearModel, base

RNG = np.random.default_rng(12)


def search(robot: chasles.Robot, **limits: object) -> excitation.Search:
    given = {"velocity": 2.0, "acceleration": 20.0, "effort": 60.0, "clearance": None} | limits
    names = ("velocity", "acceleration", "effort", "clearance", "obstacles", "workspace")
    bounds = excitation._bounds(robot, *(given.get(name) for name in names))
    model = LinearModel(robot, ("armature", "damping", "offset"))
    chosen = base(model, np.random.default_rng(0), excitation._none(robot))
    kind = {name: limits[name] for name in ("shape", "goal") if name in limits}
    return excitation.Search(model, chosen, bounds, 3, 4.0, **kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", ["fourier", "spline"])
@pytest.mark.parametrize("goal", ["condition", "information"])
def test_gradients_by_differences(goal: str, shape: str) -> None:
    """Gradients of condition number, information and penalties of violated limits are correct."""
    box = {"tool": [[0.1, 0.1, 0.1], [0.2, 0.2, 0.2]]}
    kind = {"goal": goal, "shape": shape}
    tried = search(chasles.robots.puma560(), workspace=box, effort=5.0, **kind)
    theta = 2.0 * tried.random(RNG, 3)
    way, h = RNG.normal(size=theta.shape), 1e-6
    value, gradient = tried.objective(theta, 2.0, 5.0)
    ahead, behind = (tried.objective(theta + s * h * way, 2.0, 5.0)[0] for s in (1.0, -1.0))
    slope = np.sum(gradient * way, axis=(1, 2))
    np.testing.assert_allclose((ahead - behind) / (2.0 * h), slope, rtol=1e-5)
    assert np.all(tried.bounds.penalty(tried.states(theta), 0.0)[0] > 0.0)
    conditions, goals = tried.conditions(theta)
    if goal == "condition":
        assert np.all(value > np.log(conditions) - 1e-9)  # the objective is an upper bound
    else:
        W = tried._columns(tried.states(theta))
        exact = -np.linalg.slogdet(np.swapaxes(W, 1, 2) @ W)[1]
        np.testing.assert_allclose(goals, exact, rtol=1e-9)


def test_limits_on_one_side_hold() -> None:
    """A joint may have only a lower or an upper limit; initial trajectories satisfy it."""
    robot = chasles.robots.planar(2)
    tried = search(robot)
    lower, upper = np.array([0.5, -np.inf]), np.array([np.inf, -2.0])
    one_sided = replace(tried, bounds=replace(tried.bounds, lower=lower, upper=upper))
    theta = one_sided.random(RNG, 20)
    center = theta[:, -1]
    assert np.all((center >= lower) & (center <= upper))
    q = RNG.uniform(-4.0, 4.0, (3, 50, 2))
    still, way, h = np.zeros_like(q), RNG.normal(size=q.shape), 1e-7
    value, (slope, _, _) = one_sided.bounds.penalty((q, still, still), 0.1)
    beyond = np.maximum(q - (upper - 0.1), 0.0) + np.maximum(lower + 0.1 - q, 0.0)
    np.testing.assert_allclose(value, np.sum((beyond / 0.9) ** 2, axis=(1, 2)) / 50)
    ahead, behind = (
        one_sided.bounds.penalty((q + s * h * way, still, still), 0.1)[0] for s in (1.0, -1.0)
    )
    expected = np.sum(slope * way, axis=(1, 2))
    np.testing.assert_allclose((ahead - behind) / (2.0 * h), expected, rtol=1e-6)


def test_gradient_of_distances_by_differences() -> None:
    robot = chasles.robots.planar(2)
    obstacles = {"ball": Sphere(None, 0.5, (1.0, 0.0, 1.0))}
    shapes = [chasles.contact.Capsule("link2", 0.1, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))]
    tried = search(robot, clearance=0.2)
    scene = {"shapes": shapes, "obstacles": obstacles}
    tried.bounds.__dict__.update(_scene=scene, _enclosed=[("link2", "ball")], clearance=0.2)
    q = tried.states(tried.random(RNG, 2))[0]
    way, h = RNG.normal(size=q.shape), 1e-6

    def value(q: np.ndarray) -> np.ndarray:
        return next(tried.bounds._places(q, 0.0))[0]

    slope = np.sum(next(tried.bounds._places(q, 0.0))[1] * way, axis=(1, 2))
    assert np.any(slope != 0.0)
    difference = (value(q + h * way) - value(q - h * way)) / (2.0 * h)
    np.testing.assert_allclose(difference, slope, rtol=1e-5, atol=1e-8)


def test_the_condition_number_is_that_of_the_identification() -> None:
    """The condition number equals that of the scaled regressor of `identify`, by an SVD."""
    robot = chasles.robots.puma560()
    limits = {"velocity": 2.0, "effort": 200.0}
    found = chasles.excite(robot, include=["inertia"], steps=30, starts=100, **limits)
    assert found.condition < found.random
    t = np.arange(100) * 0.1
    q, qd, qdd = found.move(t)
    tau = robot.inverse_dynamics(q, qd, qdd)
    known = chasles.identify(robot, q=q, qd=qd, qdd=qdd, tau=tau, include=["inertia"])
    Y = robot.regressor(q, qd, qdd).reshape(-1, 60)[:, known.columns]
    sizes = np.linalg.svd(Y / np.linalg.norm(Y, axis=0), compute_uv=False)
    np.testing.assert_allclose(found.condition, sizes[0] / sizes[-1], rtol=1e-6)


def test_limits_hold_between_samples(tmp_path: Path) -> None:
    robot = chasles.robots.puma560()
    box = {"tool": [[-1.0, -1.0, -0.6], [1.0, 1.0, 0.9]]}
    given = {"velocity": 1.5, "acceleration": 6.0, "effort": 150.0}
    found = chasles.excite(robot, steps=60, starts=60, improved=2, workspace=box, **given)
    q, qd, qdd = found.move(np.linspace(0.0, 10.0, 7001))
    assert np.abs(qd[[0, -1]]).max() < 1e-12
    assert np.abs(qdd[[0, -1]]).max() < 1e-9
    assert np.abs(qd).max() <= 1.5
    assert np.abs(qdd).max() <= 6.0
    assert np.abs(robot.inverse_dynamics(q, qd, qdd)).max() <= 150.0
    place = robot.forward_kinematics(q, frame="tool")[:, :3, 3]
    assert np.all((place > box["tool"][0]) & (place < box["tool"][1]))
    assert np.all((q > robot.limits.lower) & (q < robot.limits.upper))
    assert min(found.margins.values()) >= 0.0
    assert "condition number" in repr(found)
    found.move.save(tmp_path / "motion.csv")
    again = chasles.trajectory.load(tmp_path / "motion.csv", robot)
    np.testing.assert_allclose(again(1.234)[0], found.move(1.234)[0], atol=1e-6)


@pytest.mark.parametrize("name", ["panda", "ur5"])
def test_half_of_the_best_of_many_random_motions(name: str) -> None:
    """The condition number is less than half of the best of 10,000 random motions."""
    robot = chasles_robot(CASES[name])
    found = chasles.excite(robot, include=["inertia"])
    bounds = excitation._bounds(robot, None, None, None, None, None, None)
    model = LinearModel(robot, ())
    chosen = base(model, np.random.default_rng(0), excitation._none(robot))
    many = excitation.Search(model, chosen, bounds, 5, 10.0)
    best = many.conditions(many.random(np.random.default_rng(1), 10_000))[0].min()
    assert found.condition < 0.5 * best
    q, qd, qdd = found.move(np.linspace(0.0, 10.0, 1501))
    assert robot.distance(q).least.min() > -1e-4
    assert np.all(np.abs(qd) <= robot.limits.velocity)
    assert np.all(np.abs(robot.inverse_dynamics(q, qd, qdd)) <= robot.limits.effort)


def test_splines_and_information(tmp_path: Path) -> None:
    """A spline is at rest at both ends, and each goal is best where it is optimized."""
    robot = chasles.robots.puma560()
    given: Any = {"velocity": 2.0, "acceleration": 10.0, "effort": 150.0, "include": ["inertia"]}
    given |= {"steps": 60, "starts": 60, "improved": 4}
    found = {
        goal: chasles.excite(robot, shape="spline", goal=goal, **given)  # type: ignore[arg-type]
        for goal in ("condition", "information")
    }
    determinants = {}
    for goal, each in found.items():
        q, qd, qdd = each.move(np.linspace(0.0, 10.0, 4001))
        assert np.abs(qd[[0, -1]]).max() < 1e-9
        assert np.abs(qdd[[0, -1]]).max() < 1e-8
        assert np.abs(qd).max() <= 2.0
        assert np.abs(qdd).max() <= 10.0
        assert np.all((q > robot.limits.lower) & (q < robot.limits.upper))
        W = robot.regressor(q, qd, qdd).reshape(-1, 60)
        sizes = np.linalg.svd(W, compute_uv=False)
        determinants[goal] = np.log(sizes[sizes > 1e-9 * sizes[0]]).sum()
        assert each.condition < each.random or goal == "information"
    assert determinants["information"] > determinants["condition"] + 1.0
    assert found["condition"].condition < found["information"].condition


def test_refusals() -> None:
    robot = chasles.robots.planar(2)
    with raises("E-IDENT-045", "shape"):
        chasles.excite(robot, velocity=1.0, shape="circle")  # type: ignore[arg-type]
    with raises("E-IDENT-045", "goal"):
        chasles.excite(robot, velocity=1.0, goal="fun")  # type: ignore[arg-type]
    with raises("E-IDENT-013", "velocity"):
        chasles.excite(robot)
    with raises("E-IDENT-012", "effort"):
        chasles.excite(robot, velocity=1.0, effort=0.0)
    with raises("E-IDENT-011", "harmonics"):
        chasles.excite(robot, velocity=1.0, harmonics=1)
    with raises("E-IDENT-021", "floating"):
        chasles.excite(chasles.robots.quadruped())
    with raises("E-IDENT-022", "link2"):
        chasles.excite(robot, velocity=1.0, workspace={"link2": [[0.0] * 3, [0.0] * 3]})
    with raises("E-IDENT-014", "torque"):
        chasles.excite(robot, velocity=1.0, effort=0.1, steps=3, starts=10)


def test_fourier_series() -> None:
    """Derivatives of a Fourier series agree with differences; wrong arguments raise errors."""
    sines, cosines = RNG.normal(size=(2, 3, 2))
    move = chasles.trajectory.fourier([1.0, 2.0], sines, cosines, duration=3.0)
    t, h = np.linspace(0.1, 2.9, 50), 1e-5
    rates = move(t, order=3)
    for k in range(3):
        difference = (move(t + h, order=3)[k] - move(t - h, order=3)[k]) / (2.0 * h)
        np.testing.assert_allclose(difference, rates[k + 1], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(move(0.0)[0], move(3.0)[0], atol=1e-12)
    with raises("E-PATH-056", "sines"):
        chasles.trajectory.fourier([0.0], sines, cosines, duration=1.0)
    with raises("E-PATH-057", "3 sines and 2"):
        chasles.trajectory.fourier([0.0, 0.0], sines, cosines[:2], duration=1.0)
    with raises("E-PATH-058", "loops"):
        robot = chasles.robots.four_bar()
        zero = np.zeros((1, robot.nq))
        chasles.trajectory.fourier(robot.neutral(), zero, zero, duration=1.0, robot=robot)


def test_progress_and_margins_of_existing_limits_only() -> None:
    """Each gradient step is reported, and a limit that no joint has shows no margin."""
    told: list[int] = []
    robot = chasles.robots.planar(2)
    limits = {"velocity": 2.0, "include": ["inertia"], "steps": 3}
    found = chasles.excite(robot, **limits, progress=told.append)
    assert told == [1, 1, 1]
    assert {"acceleration", "torque"}.isdisjoint(found.margins)
    effort = [np.inf, 80.0]
    assert "torque" in chasles.excite(robot, **limits, effort=effort).margins
