"""Wrong input: a clear message that names the function and the argument, never a crash.

Every call is made twice: before the method has its fast entry and after.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import TARGETS, state, tree

import chasles
from chasles.robots import puma560, random_tree

ROBOT = puma560()
FLOATING = tree(5, 1, floating=True)
Q = np.zeros(6)
BASE = FLOATING.joints[0]


@pytest.fixture(params=["first call", "fast entry"])
def robot(request: pytest.FixtureRequest) -> chasles.Robot:
    """A robot that has compiled nothing, or one whose plain methods are fast entries."""
    fresh = chasles.Robot(ROBOT.model.source)
    if request.param == "fast entry":
        fresh.inverse_dynamics(Q, Q, Q)
        fresh.mass_matrix(Q)
        fresh.ltdl_factors(Q)
    return fresh


# Arrays ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (
            np.zeros(5),
            ValueError,
            r"inverse_dynamics: qd must have shape \(\.\.\., 6\), not \(5,\)",
        ),
        (np.zeros((3, 7)), ValueError, r"qd must have shape \(\.\.\., 6\), not \(3, 7\)"),
        (np.zeros((6, 1)), ValueError, r"qd must have shape .* not \(6, 1\)"),
        (1.0, ValueError, r"qd must have shape .* not \(\)"),
        ([], ValueError, r"qd must have shape .* not \(0,\)"),
        (
            np.zeros(6, dtype=complex),
            TypeError,
            "qd must be an array of real numbers, not of complex",
        ),
        (np.zeros(6, dtype=bool), TypeError, "qd must be an array of real numbers, not of bool"),
        (
            np.zeros(6, dtype=object),
            TypeError,
            "qd must be an array of real numbers, not of object",
        ),
        (["a"] * 6, TypeError, "qd must be an array of real numbers, not of <U1"),
        (np.zeros(6, dtype="M8[s]"), TypeError, "qd must be an array of real numbers"),
        ([[0.0] * 6, [0.0] * 5], TypeError, "qd is not an array of numbers"),
        (None, TypeError, "qd must be an array of real numbers, not of object"),
        ({"a": 1.0}, TypeError, "qd must be an array of real numbers, not of object"),
    ],
)
def test_bad_arrays(robot: chasles.Robot, bad: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        robot.inverse_dynamics(Q, bad, Q)


def test_leading_shapes_that_do_not_broadcast(robot: chasles.Robot) -> None:
    with pytest.raises(ValueError, match=r"leading shapes do not broadcast together: q \(3,\)"):
        robot.inverse_dynamics(np.zeros((3, 6)), np.zeros((4, 6)), Q)


def test_wrong_number_of_arrays(robot: chasles.Robot) -> None:
    with pytest.raises(TypeError):
        robot.inverse_dynamics(Q, Q)
    with pytest.raises(TypeError):
        robot.inverse_dynamics(Q, Q, Q, Q)
    with pytest.raises(TypeError):
        robot.inverse_dynamics(Q, Q, Q, bogus=1)
    with pytest.raises(TypeError, match=r"takes 3 arrays \(q, qd, qdd\), not 2"):
        chasles.compile(robot, "inverse_dynamics")(Q, Q)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e308, 5e-324])
@pytest.mark.parametrize("target", TARGETS)
def test_strange_numbers_come_back(target: str, bad: float) -> None:
    """They never raise and never hang; what they reach may be NaN."""
    for function, count in (("inverse_dynamics", 3), ("forward_dynamics", 3), ("mass_matrix", 1)):
        compiled = chasles.compile(ROBOT, function, backend=target)
        for shape in ((6,), (9, 6)):
            assert compiled(*[np.full(shape, bad)] * count).shape[: len(shape) - 1] == shape[:-1]


# Quaternions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_a_zero_quaternion_is_named(target: str) -> None:
    q, qd, qdd = state(FLOATING, 1, 6)
    where = FLOATING.position_slice(BASE)
    bad = q.copy()
    bad[4, where.start : where.start + 4] = 0.0
    compiled = chasles.compile(FLOATING, "inverse_dynamics", backend=target)
    first = rf"the quaternion of joint '{BASE}' is zero at index \(4,\) \(q\[{where.start}:"
    with pytest.raises(ValueError, match=first):
        compiled(bad, qd, qdd)
    with pytest.raises(ValueError, match=f"joint '{BASE}' is zero .*the identity is"):
        compiled(bad[4], qd[4], qdd[4])
    assert np.all(np.isfinite(compiled(q, qd, qdd)))


def test_a_zero_quaternion_in_the_fast_entry() -> None:
    robot = random_tree(5, 1, floating=True)
    q, qd, qdd = state(robot, 1)
    robot.inverse_dynamics(q, qd, qdd)
    bad = q.copy()
    bad[:4] = 0.0
    with pytest.raises(ValueError, match="the quaternion of joint 'joint1' is zero"):
        robot.inverse_dynamics(bad, qd, qdd)
    out = np.full(robot.nv, 7.0)
    with pytest.raises(ValueError, match="is zero"):
        robot.inverse_dynamics(bad, qd, qdd, out=out)
    assert np.all(out == 7.0)
    with pytest.raises(ValueError, match="is zero"):
        robot.integrate(bad, qd)
    with pytest.raises(ValueError, match="is zero"):
        robot.difference(q, bad)


# Outputs ---------------------------------------------------------------------------------------


def frozen(shape: tuple[int, ...]) -> np.ndarray:
    array = np.full(shape, 7.0)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.full(5, 7.0), ValueError, r"out must have shape \(6,\), not \(5,\)"),
        (np.full((1, 6), 7.0), ValueError, r"out must have shape \(6,\), not \(1, 6\)"),
        (np.full(6, 7.0, np.float32), TypeError, "out must have dtype float64, not float32"),
        (np.full(6, 7.0, ">f8"), TypeError, "out must have dtype float64"),
        (np.full(6, 7), TypeError, "out must have dtype float64, not int64"),
        (frozen((6,)), ValueError, "out is read-only; give a writeable array"),
        ([7.0] * 6, TypeError, "out must be a NumPy array, not list"),
        ("out", TypeError, "out must be a NumPy array, not str"),
        ((np.full(6, 7.0), np.full(6, 7.0)), ValueError, "out must be a tuple of 1 array"),
    ],
)
def test_bad_outputs_are_untouched(
    robot: chasles.Robot, out: Any, error: type, message: str
) -> None:
    with pytest.raises(error, match=message):
        robot.inverse_dynamics(Q, Q, Q, out=out)
    if not isinstance(out, str):
        assert all(np.all(np.asarray(part) == 7.0) for part in out)


def test_bad_inputs_leave_the_output_untouched(robot: chasles.Robot) -> None:
    out = np.full((4, 6), 7.0)
    with pytest.raises(ValueError, match="shape"):
        robot.inverse_dynamics(np.zeros((4, 6)), np.zeros((4, 5)), Q, out=out)
    with pytest.raises(ValueError, match=r"out must have shape \(3, 6\)"):
        robot.inverse_dynamics(np.zeros((3, 6)), Q, Q, out=out)
    assert np.all(out == 7.0)


def test_several_outputs_need_a_tuple(robot: chasles.Robot) -> None:
    with pytest.raises(ValueError, match="out must be a tuple of 2 arrays"):
        robot.ltdl_factors(Q, out=np.empty((6, 6)))
    with pytest.raises(ValueError, match=r"out must have shape \(6,\), not \(6, 6\)"):
        robot.ltdl_factors(Q, out=(np.empty((6, 6)), np.empty((6, 6))))


# Names and options -----------------------------------------------------------------------------

OPTIONS: dict[str, tuple[Callable[[chasles.Robot], Any], type, str]] = {
    "frame": (
        lambda r: r.jacobian(Q, frame="tol"),
        chasles.ModelError,
        "robot 'puma560': no frame 'tol'; did you mean 'tool'",
    ),
    "no frame": (lambda r: r.jacobian(Q), TypeError, "frame"),
    "frame by number": (
        lambda r: r.jacobian(Q, frame=3),
        TypeError,
        "a frame is given by its name, not as 3",
    ),
    "several frames": (lambda r: r.jacobian(Q, frame=["tool"]), TypeError, "by its name, not as"),
    "axes": (
        lambda r: r.jacobian(Q, frame="tool", axes="body"),
        ValueError,
        "axes must be 'world' or 'frame', not 'body'",
    ),
    "at": (
        lambda r: r.jacobian(Q, frame="tool", at="com"),
        ValueError,
        r"at must be 'frame', 'world' or \(x, y, z\) in the frame, not 'com'",
    ),
    "at two numbers": (
        lambda r: r.frame_velocity(Q, Q, frame="tool", at=(1.0, 2.0)),
        ValueError,
        "three finite numbers",
    ),
    "at infinity": (
        lambda r: r.frame_velocity(Q, Q, frame="tool", at=(1.0, 2.0, math.inf)),
        ValueError,
        "three finite numbers",
    ),
    "kind": (
        lambda r: r.frame_acceleration(Q, Q, Q, frame="tool", kind="true"),
        ValueError,
        "kind must be 'classical', 'spatial' or 'proper', not 'true'",
    ),
    "no rates": (
        lambda r: r.frame_motion(Q, frame="tool"),
        TypeError,
        "frame_motion needs rates after q: qd, or qd and qdd",
    ),
    "no rates of a derivative": (
        lambda r: r.derivatives("frame_motion", Q, frame="tool"),
        TypeError,
        "frame_motion needs rates after q",
    ),
    "a gap in named rates": (
        lambda r: r.frame_motion(Q, qd=Q, qddd=Q, frame="tool"),
        TypeError,
        "frame_motion has no argument 'qddd' here: rates by name go on with qd, qdd after",
    ),
    "a rate given twice": (
        lambda r: r.frame_motion(Q, Q, qd=Q, frame="tool"),
        TypeError,
        "no argument 'qd' here: rates by name go on with qdd",
    ),
    "too few rates": (
        lambda r: chasles.compile(r, "frame_motion", frame="tool", order=3)(Q, Q, Q),
        TypeError,
        r"frame_motion takes 4 arrays \(q, qd, qdd, qddd\), not 3",
    ),
    "too many rates": (
        lambda r: chasles.compile(r, "frame_motion", frame="tool", order=1)(Q, Q, Q),
        TypeError,
        r"frame_motion takes 2 arrays \(q, qd\), not 3",
    ),
    "shape of a rate": (
        lambda r: r.frame_motion(Q, Q, Q, np.zeros(5), frame="tool"),
        ValueError,
        r"frame_motion: qddd must have shape \(\.\.\., 6\), not \(5,\)",
    ),
    "rate is nothing": (
        lambda r: r.frame_motion(Q, Q, None, frame="tool"),
        TypeError,
        "frame_motion: qdd must be an array of real numbers",
    ),
    "shape of the motion": (
        lambda r: r.frame_motion(Q, Q, Q, frame="tool", out=np.zeros((3, 6))),
        ValueError,
        r"frame_motion: out must have shape \(2, 6\), not \(3, 6\)",
    ),
    "order 0": (
        lambda r: chasles.compile(r, "frame_motion", frame="tool", order=0),
        ValueError,
        "frame_motion: order must be a positive integer .* not 0",
    ),
    "order 1.5": (
        lambda r: chasles.cost(r, "frame_motion", frame="tool", order=1.5),
        ValueError,
        "frame_motion: order must be a positive integer .* not 1.5",
    ),
    "order True": (
        lambda r: chasles.compile(r, "jacobian_rate", frame="tool", order=True),
        ValueError,
        "jacobian_rate: order must be a positive integer .* not True",
    ),
    "order of a function without": (
        lambda r: chasles.compile(r, "jacobian", frame="tool", order=2),
        TypeError,
        "jacobian has no option 'order'",
    ),
    "rate of order 0": (
        lambda r: r.jacobian_rate(Q, Q, frame="tool", order=0),
        ValueError,
        "jacobian_rate: order must be 1 or 2, not 0; chasles.compile takes any order",
    ),
    "rate of order 2 without qdd": (
        lambda r: r.jacobian_rate(Q, Q, frame="tool", order=2),
        TypeError,
        "jacobian_rate: order=2 needs qdd: give q, qd, qdd",
    ),
    "rate of order 1 with qdd": (
        lambda r: r.jacobian_rate(Q, Q, Q, frame="tool"),
        TypeError,
        "jacobian_rate: order=1 takes no qdd; leave it out, or ask for order=2",
    ),
    "method without the order": (
        lambda r: r.jacobian_rate(Q, Q, Q, frame="tool", order=2, method="spatial"),
        ValueError,
        "jacobian_rate: method 'spatial' has no order 2; use 'joint-motion'",
    ),
    "derivative by a rate that is not given": (
        lambda r: r.derivatives("frame_motion", Q, Q, Q, frame="tool", wrt="qddd"),
        ValueError,
        "frame_motion has no argument 'qddd'; it has q, qd, qdd",
    ),
    "momentum": (
        lambda r: r.momentum(Q, Q, at="base"),
        ValueError,
        "momentum: at must be 'com' or 'world', not 'base'",
    ),
    "method": (
        lambda r: r.inverse_dynamics(Q, Q, Q, method="hamilton"),
        ValueError,
        "inverse_dynamics has no method 'hamilton'; it has 'fastest', 'newton-euler-vector'",
    ),
    "wrenches": (
        lambda r: r.inverse_dynamics(Q, Q, Q, f_ext=np.zeros(6)),
        TypeError,
        r"f_ext must be \{frame: Wrench\(...\) or array\}",
    ),
    "wrench frame": (
        lambda r: r.inverse_dynamics(Q, Q, Q, f_ext={"hand": np.zeros(6)}),
        chasles.ModelError,
        "no frame 'hand'",
    ),
    "wrench shape": (
        lambda r: r.inverse_dynamics(Q, Q, Q, f_ext={"tool": np.zeros(3)}),
        ValueError,
        r"f_ext\['tool'\] must have shape \(\.\.\., 6\), not \(3,\)",
    ),
    "wrench axes": (
        lambda r: r.inverse_dynamics(Q, Q, Q, f_ext={"tool": chasles.Wrench(Q, axes="x")}),
        ValueError,
        "axes must be",
    ),
    "wrench on a function without": (
        lambda r: r.derivatives("mass_matrix", Q, f_ext={"tool": Q}),
        ValueError,
        "mass_matrix takes no external forces; leave f_ext out",
    ),
    "wrench point": (lambda r: chasles.Wrench(Q, at="tip"), ValueError, "at must be"),
    "backend": (
        lambda r: chasles.compile(r, "mass_matrix", backend="cuda9"),
        ValueError,
        "unknown backend 'cuda9'; use one of llvm, numpy, interpret",
    ),
    "function": (
        lambda r: chasles.compile(r, "torques"),
        ValueError,
        "unknown function 'torques'; known are forward_kinematics",
    ),
    "option": (
        lambda r: chasles.compile(r, "mass_matrix", frame="tool"),
        TypeError,
        "mass_matrix has no option 'frame'; it takes no options",
    ),
    "option of cost": (
        lambda r: chasles.cost(r, "jacobian"),
        TypeError,
        "jacobian needs frame=, the name of a link or frame",
    ),
    "joint": (lambda r: r.position_slice("elbow"), chasles.ModelError, "no joint 'elbow'"),
    "joint data": (lambda r: r.joint("elbow"), chasles.ModelError, "no joint 'elbow'; it has"),
    "lock": (lambda r: r.lock({"elbow": 0.0}), chasles.ModelError, "no joint 'elbow'"),
    "lock numbers": (
        lambda r: r.lock({r.joints[0]: [0.0, 1.0]}),
        ValueError,
        "needs 1 finite numbers",
    ),
    "lock NaN": (lambda r: r.lock({r.joints[0]: math.nan}), ValueError, "needs 1 finite numbers"),
    "payload name": (
        lambda r: r.attach("tool", mass=1.0, name="tool"),
        chasles.ModelError,
        "already has a frame 'tool'",
    ),
    "payload frame": (
        lambda r: r.attach("base", mass=1.0),
        chasles.ModelError,
        "does not move",
    ),
    "payload inertia": (
        lambda r: r.attach("tool", mass=1.0, inertia=np.triu(np.ones((3, 3)))),
        ValueError,
        "inertia a symmetric 3x3 matrix",
    ),
    "payload mass": (
        lambda r: r.attach("tool", mass=math.nan),
        chasles.ModelError,
        "inertia is not finite",
    ),
    "gravity": (lambda r: r.with_gravity((0.0, 1.0)), ValueError, "give three finite numbers"),
    "gravity NaN": (lambda r: r.with_gravity((0, 0, math.nan)), ValueError, "three finite numbers"),
    "subtree": (lambda r: r.subtree("elbow"), chasles.ModelError, "no frame 'elbow'"),
    "subtree frame": (lambda r: r.subtree("tool"), chasles.ModelError, "starts at a link"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_bad_options(robot: chasles.Robot, name: str) -> None:
    call, error, message = OPTIONS[name]
    with pytest.raises(error, match=message):
        call(robot)


def test_a_robot_still_works_after_errors(robot: chasles.Robot) -> None:
    expected = ROBOT.inverse_dynamics(Q, Q, Q)
    for call, error, _ in OPTIONS.values():
        with pytest.raises(error):
            call(robot)
    assert np.array_equal(robot.inverse_dynamics(Q, Q, Q), expected)


def test_masked_entries_are_not_lost() -> None:
    """A mask says that a number is not one: it is not computed with."""
    robot = chasles.robots.planar(2)
    q = np.ma.masked_array([0.3, 0.4], mask=[False, True])
    for _ in range(2):  # by the Python path, and through the fast entry
        with pytest.raises(TypeError, match="q has masked entries"):
            robot.gravity_forces(q)
        robot.gravity_forces(np.zeros(2))
    assert np.array_equal(
        robot.gravity_forces(np.ma.masked_array(q.data)), robot.gravity_forces(q.data)
    )
