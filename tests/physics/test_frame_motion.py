"""Velocity, acceleration, jerk and higher derivatives, and rates of Jacobians.

Trees have every joint type. Errors by rounding are at most 1e-11 of the largest derivative of the
same order, errors by differences at most 1e-7.
"""

import pickle
from itertools import cycle

import numpy as np
import pytest
import taylor
from machines import VIEWS, Machine, matvec
from support import close, direct, runner, tree

import chasles
from chasles.algorithms import FUNCTIONS
from chasles.model import JOINTS

ROUNDING = 1e-11
DIFFERENCE = 1e-7
METHODS = [method.name for method in FUNCTIONS["frame_motion"]]
TREES = {
    "fixed": {"n": 13, "seed": 3, "floating": False},
    "floating": {"n": 13, "seed": 4, "floating": True},
    "mimics": {"n": 14, "seed": 6, "mimics": True},
    "deep": {"n": 16, "seed": 8},
}


def moving(robot: chasles.Robot, order: int, seed: int) -> tuple[np.ndarray, ...]:
    """Return a random configuration with quaternions of any length, and random rates."""
    rng = np.random.default_rng(seed)
    q = robot.random(rng)
    for name in robot.joints:
        if robot.joint(name).kind in ("spherical", "free", "sphere_in_cylinder", "rolling"):
            start = robot.position_slice(name).start
            q[start : start + 4] *= rng.uniform(0.5, 2.0)
    return q, *rng.normal(size=(order, robot.nv))


def the_point(T: np.ndarray, at: object) -> np.ndarray:
    """Return the coordinates of a point in the frame."""
    if at == "world":
        return -T[:3, :3].T @ T[:3, 3]
    return np.zeros(3) if at == "frame" else np.array(at)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", TREES)
def test_any_order_against_power_series(name: str, method: str) -> None:
    """Derivatives of orders 1 to 5 agree with the Taylor coefficients of the pose, for every link.

    The links alternate between the frame's origin, the world's origin and another point.
    """
    robot = tree(**TREES[name])
    kinds = {robot.joint(joint).kind for joint in robot.moving_joints}
    assert kinds == set(JOINTS)
    state = moving(robot, 5, seed=len(name))
    for frame, at in zip(robot.frames, cycle(("frame", "world", (0.2, -0.1, 0.4))), strict=False):
        T = direct(robot.model, "forward_kinematics", state[0], frame=frame)
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
    """The jerk is J qddd + 2 Jdot qdd + Jddot qd on several backends (Mitra, 2.9)."""
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
    """The second rate is the derivative of the first rate's program along the motion."""
    robot = tree(5, 3, floating=False)
    q, qd, qdd = moving(robot, 2, seed=8)
    view = {"frame": "tip", "axes": axes, "at": at}
    found = direct(robot.model, "jacobian_rate", q, qd, qdd, method="joint-motion", **view)
    run = runner(robot, "numpy")
    by_q, by_qd = run("jacobian_rate", q, qd, method="spatial", wrt=("q", "qd"), **view)
    close(found, by_q @ qd + by_qd @ qdd, ROUNDING)


def test_rates_of_any_order_sum_to_the_motion() -> None:
    """d^4/dt^4 of a position is the third derivative of J qd, by the Leibniz rule."""
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


# Calls -----------------------------------------------------------------------------------------

ARM = chasles.robots.puma560()


def test_the_number_of_rates_is_the_order() -> None:
    """The order follows from the number of rates, in all kinds of calls.

    Calls are with batches, with `out=`, by the fast entry, with pickled programs, and in single
    precision.
    """
    q, *rates = moving(ARM, 4, seed=1)
    for order in range(1, 5):
        made = chasles.compile(ARM, "frame_motion", frame="tool", order=order)
        found = ARM.frame_motion(q, *rates[:order], frame="tool")
        assert found.shape == (order, 6)
        again = ARM.frame_motion(q, *rates[:order], frame="tool")  # uses the fast entry
        out = np.empty((order, 6))
        assert ARM.frame_motion(q, *rates[:order], frame="tool", out=out) is out
        loaded = pickle.loads(pickle.dumps(made))
        for other in (again, out, made.fast(q, *rates[:order]), loaded(q, *rates[:order])):
            assert np.array_equal(other, found)
    many = ARM.frame_motion(
        np.tile(q, (2, 1, 1)), np.tile(rates[0], (3, 1)), *rates[1:3], frame="tool"
    )
    assert many.shape == (2, 3, 3, 6)
    close(many[1, 2], found[:3], 1e-13)  # a different program, equal up to rounding
    single = ARM.frame_motion(*(x.astype(np.float32) for x in (q, *rates)), frame="tool")
    assert single.dtype == np.float32
    close(single, found, 1e-5)


def test_derivatives_of_the_motion() -> None:
    """Derivatives by the highest rate are J; derivatives by q agree with differences.

    The pullback is the product of covector and derivatives.
    """
    q, *rates = moving(ARM, 3, seed=2)
    by = dict(
        zip(
            ("q", "qd", "qdd", "qddd"),
            ARM.derivatives("frame_motion", q, *rates, frame="tool"),
            strict=True,
        )
    )
    J = ARM.jacobian(q, frame="tool")
    for k, name in enumerate(("qd", "qdd", "qddd")):
        close(by[name][k], J, ROUNDING)
        assert not np.any(by[name][:k])
    rate = ARM.jacobian_rate(q, rates[0], frame="tool")
    close(by["qdd"][2, 3:], 3.0 * rate[3:], ROUNDING)  # the Hessian of a position is symmetric
    step = 1e-5 * np.random.default_rng(3).normal(size=ARM.nv)
    ahead, behind = (ARM.frame_motion(q + s * step, *rates, frame="tool") for s in (1.0, -1.0))
    close(by["q"] @ step, (ahead - behind) / 2.0, DIFFERENCE)
    covector = np.random.default_rng(4).normal(size=(3, 6))
    pulled = ARM.pullback("frame_motion", q, *rates, frame="tool", covector=covector)
    for name, back in zip(by, pulled, strict=True):
        close(back, np.einsum("ki,kij->j", covector, by[name]), ROUNDING)
    second = ARM.derivatives("frame_motion", q, *rates[:2], frame="tool", wrt="qd", order=2)
    close(second[1] @ rates[0] @ rates[0], 2.0 * rate @ rates[0], ROUNDING)


def test_derivatives_of_the_second_rate() -> None:
    q, *rates = moving(ARM, 2, seed=3)
    by_qdd = ARM.derivatives("jacobian_rate", q, *rates, frame="tool", wrt="qdd")
    hessian = ARM.derivatives("jacobian", q, frame="tool", wrt="q")
    close(by_qdd, hessian, ROUNDING)


def test_the_jerk_is_not_three_times_the_acceleration() -> None:
    """The jerk takes at most three times the operations of the acceleration."""
    for robot, frame in ((ARM, "tool"), (chasles.robots.humanoid(), "left_hand")):
        acceleration = chasles.cost(robot, "frame_acceleration", frame=frame)
        jerk = chasles.cost(robot, "frame_motion", frame=frame, order=3)
        assert jerk.flops <= 3 * acceleration.flops


@pytest.mark.parametrize("at", ["frame", "world", (0.1, -0.2, 0.3)])
@pytest.mark.parametrize("axes", ["world", "frame"])
@pytest.mark.parametrize("seed", [0, 1])
def test_link_frames_see_the_same(seed: int, axes: str, at: object) -> None:
    """Velocities and accelerations of every kind agree between spatial vectors and link frames."""
    robot = tree(8, seed, floating=bool(seed))
    q, qd, qdd = moving(robot, 2, seed=seed)
    for frame in robot.frames[-3:]:
        view = {"frame": frame, "axes": axes, "at": at}
        questions = [("frame_velocity", (q, qd), {})]
        for kind in ("classical", "spatial", "proper"):
            questions.append(("frame_acceleration", (q, qd, qdd), {"kind": kind}))
        for function, arrays, more in questions:
            ways = (
                direct(robot.model, function, *arrays, method=method, **view, **more)
                for method in ("spatial", "link-frames")
            )
            close(*ways, 1e-11)


def test_rates_by_name() -> None:
    """Rates given by keyword, in any order, agree with positional rates."""
    robot = tree(6, 1)
    q, qd, qdd, qddd = moving(robot, 3, seed=9)
    last = robot.bodies[-1]
    expected = robot.frame_motion(q, qd, qdd, qddd, frame=last)
    assert np.array_equal(robot.frame_motion(q, qdd=qdd, qddd=qddd, qd=qd, frame=last), expected)
    assert np.array_equal(robot.frame_motion(q, qd, qdd=qdd, qddd=qddd, frame=last), expected)
