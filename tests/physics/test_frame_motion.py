"""Velocity, acceleration, jerk and beyond, and the rates of Jacobians, on trees of every joint.

Rounding is bounded by 1e-11 of the largest derivative of the same order, differences by 1e-7.
"""

import numpy as np
import pytest
import taylor
from machines import VIEWS, Machine, matvec
from support import close, direct, runner, tree

import chasles
from chasles.algorithms import FUNCTIONS

ROUNDING = 1e-11
DIFFERENCE = 1e-7
METHODS = [method.name for method in FUNCTIONS["frame_motion"]]
TREES = {
    "fixed": {"n": 11, "seed": 3, "floating": False},
    "floating": {"n": 11, "seed": 4, "floating": True},
    "mimics": {"n": 14, "seed": 6, "mimics": True},
    "deep": {"n": 16, "seed": 8},
}


def moving(robot: chasles.Robot, order: int, seed: int) -> tuple[np.ndarray, ...]:
    """A random configuration (quaternions of any length) and random rates."""
    rng = np.random.default_rng(seed)
    q = robot.random(rng)
    for name in robot.joints:
        if robot.joint(name).kind in ("spherical", "free"):
            start = robot.position_slice(name).start
            q[start : start + 4] *= rng.uniform(0.5, 2.0)
    return q, *rng.normal(size=(order, robot.nv))


def the_point(T: np.ndarray, at: object) -> np.ndarray:
    """A point of the frame, in the frame."""
    if at == "world":
        return -T[:3, :3].T @ T[:3, 3]
    return np.zeros(3) if at == "frame" else np.array(at)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", TREES)
def test_any_order_against_power_series(name: str, method: str) -> None:
    """Every link of random trees, orders 1 to 5: the Taylor coefficients of the pose."""
    robot = tree(**TREES[name])
    kinds = {robot.joint(joint).kind for joint in robot.joints}
    assert kinds >= {"universal", "spherical", "planar", "helical", "cylindrical", "free"}
    state = moving(robot, 5, seed=len(name))
    for frame in robot.frames:
        T = direct(robot.model, "forward_kinematics", state[0], frame=frame)
        for at in ("frame", "world", (0.2, -0.1, 0.4)):
            expected = taylor.frame_motion(robot.model, *state, frame=frame, point=the_point(T, at))
            found = direct(robot.model, "frame_motion", *state, method=method, frame=frame, at=at)
            for order in range(5):
                close(found[order], expected[order], ROUNDING, scale=1.0)


@pytest.mark.parametrize("method", METHODS)
def test_an_order_knows_nothing_of_later_ones(method: str) -> None:
    robot = tree(**TREES["deep"])
    state = moving(robot, 4, seed=1)
    whole = direct(robot.model, "frame_motion", *state, method=method, frame="tip")
    for order in range(1, 5):
        part = direct(robot.model, "frame_motion", *state[: order + 1], method=method, frame="tip")
        assert np.array_equal(part, whole[:order])


@pytest.mark.parametrize(("axes", "at"), VIEWS)
@pytest.mark.parametrize("method", METHODS)
def test_velocity_and_acceleration_are_the_known_ones(
    compiled: Machine, method: str, axes: str, at: object
) -> None:
    q, qd, qdd = compiled.q, compiled.qd, compiled.qdd
    view = {"frame": "tip", "axes": axes, "at": at}
    found = compiled.run("frame_motion", q, qd, qdd, order=2, method=method, **view)
    close(found[:, 0], compiled.run("frame_velocity", q, qd, **view), ROUNDING)
    close(found[:, 1], compiled.run("frame_acceleration", q, qd, qdd, **view), ROUNDING)


@pytest.mark.parametrize("at", ["frame", "world", (0.2, -0.1, 0.4)])
def test_frame_axes_are_components_of_the_same_vectors(at: object) -> None:
    robot = tree(**TREES["floating"])
    state = moving(robot, 3, seed=5)
    R = direct(robot.model, "forward_kinematics", state[0], frame="tip")[:3, :3]
    for method in METHODS:
        world, turned = (
            direct(
                robot.model, "frame_motion", *state, method=method, frame="tip", axes=axes, at=at
            )
            for axes in ("world", "frame")
        )
        close(turned.reshape(-1, 3) @ R.T, world.reshape(-1, 3), ROUNDING)


def test_every_backend_has_the_jerk(machine: Machine) -> None:
    """J qddd + 2 Jdot qdd + Jddot qd (Mitra, 2.9), by machine code, NumPy and the reference."""
    q, qd, qdd = machine.q, machine.qd, machine.qdd
    qddd = np.random.default_rng(7).normal(size=qd.shape)
    found = machine.run("frame_motion", q, qd, qdd, qddd, order=3, frame="tip")
    J = machine.run("jacobian", q, frame="tip")
    first = machine.run("jacobian_rate", q, qd, frame="tip")
    second = machine.run("jacobian_rate", q, qd, qdd, order=2, frame="tip")
    jerk = matvec(J, qddd) + 2.0 * matvec(first, qdd) + matvec(second, qd)
    close(found[:, 2], jerk, ROUNDING)


def test_a_frame_of_the_world_stands_still() -> None:
    robot = tree(**TREES["fixed"])
    state = moving(robot, 3, seed=2)
    for method in METHODS:
        found = direct(robot.model, "frame_motion", *state, method=method, frame="base")
        assert np.array_equal(found, np.zeros((3, 6)))
    rate = direct(robot.model, "jacobian_rate", *state[:3], method="joint-motion", frame="base")
    assert np.array_equal(rate, np.zeros((6, robot.nv)))


# Jacobians -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("axes", "at"), VIEWS)
def test_first_rate_of_the_jacobian_by_both_methods(axes: str, at: object) -> None:
    for name in TREES:
        robot = tree(**TREES[name])
        state, view = moving(robot, 1, seed=3), {"frame": "tip", "axes": axes, "at": at}
        spatial, mitra = (
            direct(robot.model, "jacobian_rate", *state, method=method, **view)
            for method in ("spatial", "joint-motion")
        )
        close(mitra, spatial, ROUNDING)


@pytest.mark.parametrize(("axes", "at"), VIEWS)
def test_second_rate_of_the_jacobian_by_differences(
    compiled: Machine, axes: str, at: object
) -> None:
    q, qd, qdd = compiled.q, compiled.qd, compiled.qdd
    view = {"frame": "tip", "axes": axes, "at": at}
    found = compiled.run("jacobian_rate", q, qd, qdd, order=2, **view)
    rate = compiled.rate(lambda q, qd: compiled.run("jacobian_rate", q, qd, **view))
    close(found, rate, DIFFERENCE)


@pytest.mark.parametrize(("axes", "at"), VIEWS)
def test_second_rate_of_the_jacobian_is_exact(axes: str, at: object) -> None:
    """The derivative of the first rate's program, along the motion."""
    robot = tree(9, 3, floating=False)
    q, qd, qdd = moving(robot, 2, seed=8)
    view = {"frame": "tip", "axes": axes, "at": at}
    found = direct(robot.model, "jacobian_rate", q, qd, qdd, method="joint-motion", **view)
    run = runner(robot, "numpy")
    by_q, by_qd = run("jacobian_rate", q, qd, method="spatial", wrt=("q", "qd"), **view)
    close(found, by_q @ qd + by_qd @ qdd, ROUNDING)


def test_rates_of_any_order_sum_to_the_motion() -> None:
    """d^4/dt^4 of a position is the third derivative of J qd, by Leibniz' rule."""
    robot = tree(**TREES["deep"])
    q, *rates = moving(robot, 4, seed=9)
    J = [direct(robot.model, "jacobian", q, frame="tip")]
    for k in (1, 2, 3):
        J.append(
            direct(robot.model, "jacobian_rate", q, *rates[:k], method="joint-motion", frame="tip")
        )
    total = J[0] @ rates[3] + 3.0 * J[1] @ rates[2] + 3.0 * J[2] @ rates[1] + J[3] @ rates[0]
    found = direct(robot.model, "frame_motion", q, *rates, frame="tip")
    close(found[3], total, ROUNDING)
