"""Wrong input raises an error that names the function and the argument.

Every call is tested as the first call of a method, and after the method has its fast entry.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import TARGETS, raises, state, tree

import chasles
from chasles.robots import puma560, random_tree

ROBOT = puma560()
FLOATING = tree(5, 1, floating=True)
Q = np.zeros(6)
BASE = FLOATING.joints[0]


@pytest.fixture(params=["first call", "fast entry"])
def robot(request: pytest.FixtureRequest) -> chasles.Robot:
    """Return a robot that has compiled nothing, or one whose methods are fast entries."""
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
            "E-CALL-009 (..., 6)",
        ),
        (np.zeros((3, 7)), ValueError, "E-CALL-009 (..., 6)"),
        (np.zeros((6, 1)), ValueError, "E-CALL-009 (6, 1)"),
        (1.0, ValueError, "E-CALL-009"),
        ([], ValueError, "E-CALL-009 (0,)"),
        (
            np.zeros(6, dtype=complex),
            TypeError,
            "E-CALL-008",
        ),
        (np.zeros(6, dtype=bool), TypeError, "E-CALL-008"),
        (
            np.zeros(6, dtype=object),
            TypeError,
            "E-CALL-008",
        ),
        (["a"] * 6, TypeError, "E-CALL-008"),
        (np.zeros(6, dtype="M8[s]"), TypeError, "E-CALL-008"),
        ([[0.0] * 6, [0.0] * 5], TypeError, "E-CALL-006"),
        (None, TypeError, "E-CALL-008"),
        ({"a": 1.0}, TypeError, "E-CALL-008"),
    ],
)
def test_bad_arrays(robot: chasles.Robot, bad: Any, error: type, message: str) -> None:
    with raises(message, kind=error):
        robot.inverse_dynamics(Q, bad, Q)


def test_leading_shapes_that_do_not_broadcast(robot: chasles.Robot) -> None:
    with raises("E-CALL-005", "(3,)"):
        robot.inverse_dynamics(np.zeros((3, 6)), np.zeros((4, 6)), Q)


def test_wrong_number_of_arrays(robot: chasles.Robot) -> None:
    with pytest.raises(TypeError):
        robot.inverse_dynamics(Q, Q)
    with pytest.raises(TypeError):
        robot.inverse_dynamics(Q, Q, Q, Q)
    with pytest.raises(TypeError):
        robot.inverse_dynamics(Q, Q, Q, bogus=1)
    with raises("E-CALL-035"):
        chasles.compile(robot, "inverse_dynamics")(Q, Q)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e308, 5e-324])
@pytest.mark.parametrize("target", TARGETS)
def test_strange_numbers_come_back(target: str, bad: float) -> None:
    """Extreme values raise no error and do not hang; results that depend on them may be NaN."""
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
    with raises("E-CALL-037", repr(BASE), "(4,)", f"q[{where.start}:"):
        compiled(bad, qd, qdd)
    with raises("E-CALL-037", BASE):
        compiled(bad[4], qd[4], qdd[4])
    assert np.all(np.isfinite(compiled(q, qd, qdd)))


def test_a_zero_quaternion_in_the_fast_entry() -> None:
    robot = random_tree(5, 1, floating=True)
    q, qd, qdd = state(robot, 1)
    robot.inverse_dynamics(q, qd, qdd)
    bad = q.copy()
    bad[:4] = 0.0
    with raises("E-CALL-037", "'joint1'"):
        robot.inverse_dynamics(bad, qd, qdd)
    out = np.full(robot.nv, 7.0)
    with raises("E-CALL-037"):
        robot.inverse_dynamics(bad, qd, qdd, out=out)
    assert np.all(out == 7.0)
    with raises("E-CALL-037"):
        robot.integrate(bad, qd)
    with raises("E-CALL-037"):
        robot.difference(q, bad)


# Outputs ---------------------------------------------------------------------------------------


def frozen(shape: tuple[int, ...]) -> np.ndarray:
    array = np.full(shape, 7.0)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.full(5, 7.0), ValueError, "E-CALL-013 (6,)"),
        (np.full((1, 6), 7.0), ValueError, "E-CALL-013 (6,)"),
        (np.full(6, 7.0, np.float32), TypeError, "E-CALL-012"),
        (np.full(6, 7.0, ">f8"), TypeError, "E-CALL-012"),
        (np.full(6, 7), TypeError, "E-CALL-012"),
        (frozen((6,)), ValueError, "E-CALL-014"),
        ([7.0] * 6, TypeError, "E-CALL-011"),
        ("out", TypeError, "E-CALL-011"),
        ((np.full(6, 7.0), np.full(6, 7.0)), ValueError, "E-CALL-010"),
    ],
)
def test_bad_outputs_are_untouched(
    robot: chasles.Robot, out: Any, error: type, message: str
) -> None:
    with raises(message, kind=error):
        robot.inverse_dynamics(Q, Q, Q, out=out)
    if not isinstance(out, str):
        assert all(np.all(np.asarray(part) == 7.0) for part in out)


def test_bad_inputs_leave_the_output_untouched(robot: chasles.Robot) -> None:
    out = np.full((4, 6), 7.0)
    with raises("E-CALL-009"):
        robot.inverse_dynamics(np.zeros((4, 6)), np.zeros((4, 5)), Q, out=out)
    with raises("E-CALL-013", "(3, 6)"):
        robot.inverse_dynamics(np.zeros((3, 6)), Q, Q, out=out)
    assert np.all(out == 7.0)


def test_several_outputs_need_a_tuple(robot: chasles.Robot) -> None:
    with raises("E-CALL-010"):
        robot.ltdl_factors(Q, out=np.empty((6, 6)))
    with raises("E-CALL-013", "(6,)", "(6, 6)"):
        robot.ltdl_factors(Q, out=(np.empty((6, 6)), np.empty((6, 6))))


# Names and options -----------------------------------------------------------------------------

OPTIONS: dict[str, tuple[Callable[[chasles.Robot], Any], type, str]] = {
    "frame": (
        lambda r: r.jacobian(Q, frame="tol"),
        chasles.ModelError,
        "E-MODEL-034 'puma560'",
    ),
    "frame by number": (
        lambda r: r.jacobian(Q, frame=3),
        TypeError,
        "E-MODEL-033 must be a name",
    ),
    "several frames": (lambda r: r.jacobian(Q, frame=["tool"]), TypeError, "E-MODEL-033"),
    "axes": (
        lambda r: r.jacobian(Q, frame="tool", axes="body"),
        ValueError,
        "E-CALL-017 'world'",
    ),
    "at": (
        lambda r: r.jacobian(Q, frame="tool", at="com"),
        ValueError,
        "E-CALL-018 'frame'",
    ),
    "at two numbers": (
        lambda r: r.frame_velocity(Q, Q, frame="tool", at=(1.0, 2.0)),
        ValueError,
        "E-CALL-019",
    ),
    "at infinity": (
        lambda r: r.frame_velocity(Q, Q, frame="tool", at=(1.0, 2.0, math.inf)),
        ValueError,
        "E-CALL-019",
    ),
    "kind": (
        lambda r: r.frame_acceleration(Q, Q, Q, frame="tool", kind="true"),
        ValueError,
        "E-CALL-028 'classical'",
    ),
    "no rates": (
        lambda r: r.frame_motion(Q, frame="tool"),
        TypeError,
        "E-CALL-023 frame_motion",
    ),
    "no rates of a derivative": (
        lambda r: r.derivatives("frame_motion", Q, frame="tool"),
        TypeError,
        "E-CALL-023 frame_motion",
    ),
    "a gap in named rates": (
        lambda r: r.frame_motion(Q, qd=Q, qddd=Q, frame="tool"),
        TypeError,
        "E-CALL-024 'qddd'",
    ),
    "a rate given twice": (
        lambda r: r.frame_motion(Q, Q, qd=Q, frame="tool"),
        TypeError,
        "E-CALL-024 'qd'",
    ),
    "too few rates": (
        lambda r: chasles.compile(r, "frame_motion", frame="tool", order=3)(Q, Q, Q),
        TypeError,
        "E-CALL-035 frame_motion",
    ),
    "too many rates": (
        lambda r: chasles.compile(r, "frame_motion", frame="tool", order=1)(Q, Q, Q),
        TypeError,
        "E-CALL-035 frame_motion",
    ),
    "shape of a rate": (
        lambda r: r.frame_motion(Q, Q, Q, np.zeros(5), frame="tool"),
        ValueError,
        "E-CALL-009 (..., 6)",
    ),
    "rate is nothing": (
        lambda r: r.frame_motion(Q, Q, None, frame="tool"),
        TypeError,
        "E-CALL-008 frame_motion",
    ),
    "shape of the motion": (
        lambda r: r.frame_motion(Q, Q, Q, frame="tool", out=np.zeros((3, 6))),
        ValueError,
        "E-CALL-013 (2, 6)",
    ),
    "order 0": (
        lambda r: chasles.compile(r, "frame_motion", frame="tool", order=0),
        ValueError,
        "E-CALL-003 frame_motion",
    ),
    "order 1.5": (
        lambda r: chasles.cost(r, "frame_motion", frame="tool", order=1.5),
        ValueError,
        "E-CALL-003 1.5",
    ),
    "order True": (
        lambda r: chasles.compile(r, "jacobian_rate", frame="tool", order=True),
        ValueError,
        "E-CALL-003 jacobian_rate",
    ),
    "order 2**53": (
        lambda r: chasles.compile(r, "frame_motion", frame="tool", order=2**53),
        ValueError,
        "E-CALL-003 rates",
    ),
    "order 33 of derivatives": (
        lambda r: chasles.compile(r, "frame_motion", frame="tool", order=33, wrt="q"),
        ValueError,
        "E-CALL-003 not 33",
    ),
    "order of a pullback": (
        lambda r: r.pullback("frame_motion", Q, Q, covector=Q, order=10**5000),
        ValueError,
        "E-CALL-003 bits",
    ),
    "33 rates": (
        lambda r: r.frame_motion(Q, *[Q] * 33, frame="tool"),
        ValueError,
        "E-CALL-003 not 33",
    ),
    "order of a function without": (
        lambda r: chasles.compile(r, "jacobian", frame="tool", order=2),
        TypeError,
        "E-CALL-026 'order'",
    ),
    "rate of order 0": (
        lambda r: r.jacobian_rate(Q, Q, frame="tool", order=0),
        ValueError,
        "E-CALL-003 jacobian_rate",
    ),
    "rate of order 2 without qdd": (
        lambda r: r.jacobian_rate(Q, Q, frame="tool", order=2),
        TypeError,
        "E-ROBOT-026 jacobian_rate",
    ),
    "rate of order 1 with qdd": (
        lambda r: r.jacobian_rate(Q, Q, Q, frame="tool", order=1),
        TypeError,
        "E-ROBOT-026 jacobian_rate",
    ),
    "method without the order": (
        lambda r: r.jacobian_rate(Q, Q, Q, frame="tool", order=2, method="spatial"),
        ValueError,
        "E-CALL-069 'spatial'",
    ),
    "derivative by a rate that is not given": (
        lambda r: r.derivatives("frame_motion", Q, Q, Q, frame="tool", wrt="qddd"),
        ValueError,
        "E-CALL-034 'qddd'",
    ),
    "momentum": (
        lambda r: r.momentum(Q, Q, at="base"),
        ValueError,
        "E-CALL-084 'com'",
    ),
    "method": (
        lambda r: r.inverse_dynamics(Q, Q, Q, method="hamilton"),
        ValueError,
        "E-CALL-068 'hamilton'",
    ),
    "wrenches": (
        lambda r: r.inverse_dynamics(Q, Q, Q, f_ext=np.zeros(6)),
        TypeError,
        "E-CALL-038 f_ext",
    ),
    "wrench frame": (
        lambda r: r.inverse_dynamics(Q, Q, Q, f_ext={"hand": np.zeros(6)}),
        chasles.ModelError,
        "E-MODEL-034 'hand'",
    ),
    "wrench shape": (
        lambda r: r.inverse_dynamics(Q, Q, Q, f_ext={"tool": np.zeros(3)}),
        ValueError,
        "E-CALL-009 'tool'",
    ),
    "wrench axes": (
        lambda r: r.inverse_dynamics(Q, Q, Q, f_ext={"tool": chasles.Wrench(Q, axes="x")}),
        ValueError,
        "E-CALL-017",
    ),
    "wrench on a function without": (
        lambda r: r.derivatives("mass_matrix", Q, f_ext={"tool": Q}),
        ValueError,
        "E-CALL-066 mass_matrix",
    ),
    "wrench point": (lambda r: chasles.Wrench(Q, at="tip"), ValueError, "E-CALL-018"),
    "backend": (
        lambda r: chasles.compile(r, "mass_matrix", backend="cuda9"),
        ValueError,
        "E-CALL-002 'cuda9'",
    ),
    "function": (
        lambda r: chasles.compile(r, "torques"),
        ValueError,
        "E-CALL-025 'torques'",
    ),
    "option": (
        lambda r: chasles.compile(r, "mass_matrix", frame="tool"),
        TypeError,
        "E-CALL-026 'frame'",
    ),
    "option of cost": (
        lambda r: chasles.cost(r, "jacobian", frame="nowhere"),
        ValueError,
        "E-MODEL-034 'nowhere'",
    ),
    "joint": (lambda r: r.position_slice("elbow"), chasles.ModelError, "E-MODEL-037 'elbow'"),
    "joint data": (lambda r: r.joint("elbow"), chasles.ModelError, "E-ROBOT-005 'elbow'"),
    "lock": (lambda r: r.lock({"elbow": 0.0}), chasles.ModelError, "E-MODEL-037 'elbow'"),
    "lock numbers": (
        lambda r: r.lock({r.joints[0]: [0.0, 1.0]}),
        ValueError,
        "E-ROBOT-006",
    ),
    "lock NaN": (lambda r: r.lock({r.joints[0]: math.nan}), ValueError, "E-ROBOT-006"),
    "payload name": (
        lambda r: r.attach("tool", mass=1.0, name="tool"),
        chasles.ModelError,
        "E-MODEL-023 'tool'",
    ),
    "payload frame": (
        lambda r: r.attach("base", mass=1.0),
        chasles.ModelError,
        "E-MODEL-024",
    ),
    "payload inertia": (
        lambda r: r.attach("tool", mass=1.0, inertia=np.triu(np.ones((3, 3)))),
        ValueError,
        "E-ROBOT-007",
    ),
    "payload mass": (
        lambda r: r.attach("tool", mass=math.nan),
        ValueError,
        "E-ROBOT-041",
    ),
    "gravity": (lambda r: r.with_gravity((0.0, 1.0)), ValueError, "E-ROBOT-009"),
    "gravity NaN": (
        lambda r: r.with_gravity((0, 0, math.nan)),
        ValueError,
        "E-ROBOT-009",
    ),
    "subtree": (lambda r: r.subtree("elbow"), chasles.ModelError, "E-MODEL-034 'elbow'"),
    "subtree frame": (lambda r: r.subtree("tool"), chasles.ModelError, "E-MODEL-025"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_bad_options(robot: chasles.Robot, name: str) -> None:
    call, error, message = OPTIONS[name]
    with raises(message, kind=error):
        call(robot)


def test_an_argument_that_python_misses(robot: chasles.Robot) -> None:
    with pytest.raises(TypeError, match="qd"):
        robot.frame_velocity(Q)  # type: ignore[call-arg]


def test_a_robot_still_works_after_errors(robot: chasles.Robot) -> None:
    expected = ROBOT.inverse_dynamics(Q, Q, Q)
    for call, error, _ in OPTIONS.values():
        with pytest.raises(error):
            call(robot)
    assert np.array_equal(robot.inverse_dynamics(Q, Q, Q), expected)


def test_masked_entries_are_not_lost() -> None:
    """Masked entries are missing values, so they are rejected."""
    robot = chasles.robots.planar(2)
    q = np.ma.masked_array([0.3, 0.4], mask=[False, True])
    for _ in range(2):  # in Python first, then through the fast entry
        with raises("E-CALL-007"):
            robot.gravity_forces(q)
        robot.gravity_forces(np.zeros(2))
    assert np.array_equal(
        robot.gravity_forces(np.ma.masked_array(q.data)), robot.gravity_forces(q.data)
    )
