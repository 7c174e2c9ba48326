"""Robots with driven joints behave like the undriven robot in the same motion."""

import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support import TARGETS, close, direct, raises, relative, runner, state, tree

import chasles
from chasles.algorithms import FUNCTIONS
from chasles.expr import cos, sin
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import (
    JOINTS,
    Description,
    JointData,
    LinkData,
    Mimic,
    coupling,
    motion,
)
from chasles.robots._solids import rod

BALL = Symmetric(0.02, 0.03, 0.04, 0.0, 0.0, 0.0)
"""Inertia about a center of mass, in kg m^2."""

T = 0.7
"""A generic time, in s."""

H = 2e-3
"""Step of fourth-order differences, in s, with an error of about 1e-11 for motions of a few Hz."""


def swinging(robot: chasles.Robot, name: str, seed: int) -> Callable[[Any], list[Any]]:
    """Return a smooth motion of a joint; a quaternion in it does not have unit length."""
    rng = np.random.default_rng(seed)
    at = robot.neutral()[robot.position_slice(name)]
    a, w, b = rng.uniform(0.1, 0.4, (3, len(at))).tolist()

    def moved(t: Any) -> list[Any]:
        return [
            2.0 * x + a[k] * sin(4.0 * w[k] * t + b[k]) + 0.05 * t * t for k, x in enumerate(at)
        ]

    return moved


@cache
def pair() -> tuple[chasles.Robot, chasles.Robot, tuple[str, ...]]:
    """Return a tree with every joint type, the tree with driven joints, and their names.

    One joint of each type is driven, except for rolling joints.
    """
    free = tree(16, 3)
    first = {free.joint(name).kind: name for name in reversed(free.joints)}
    chosen = tuple(name for kind, name in first.items() if kind != "rolling")
    return free, free.drive({n: swinging(free, n, k) for k, n in enumerate(chosen)}), chosen


def given(free: chasles.Robot, chosen: tuple[str, ...], t: float) -> np.ndarray:
    """Return q of the undriven robot with the driven joints at their positions for time t."""
    q = free.neutral()
    for k, name in enumerate(chosen):
        q[free.position_slice(name)] = swinging(free, name, k)(t)
    return q


def slope(f: Callable[[float], np.ndarray], t: float = T) -> np.ndarray:
    """Return df/dt by fourth-order differences."""
    return (8.0 * (f(t + H) - f(t - H)) - (f(t + 2.0 * H) - f(t - 2.0 * H))) / (12.0 * H)


def whole(t: float = T, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Return (q, qd, qdd) of the driven robot, then of the undriven one in the same motion."""
    free, driven, chosen = pair()
    y, yd, ydd = state(driven, seed)

    def rate(t: float) -> np.ndarray:
        here = given(free, chosen, t)
        return slope(lambda later: free.difference(here, given(free, chosen, later)), t)

    q, qd, qdd = given(free, chosen, t), rate(t), slope(rate, t)
    for name in driven.joints:
        q[free.position_slice(name)] = y[driven.position_slice(name)]
        for own, all_of in ((yd, qd), (ydd, qdd)):
            all_of[free.velocity_slice(name)] = own[driven.velocity_slice(name)]
    return y, yd, ydd, q, qd, qdd


def kept() -> np.ndarray:
    """Return the undriven robot's indices of the velocity coordinates of the driven robot."""
    free, driven, _ = pair()
    return np.concatenate([np.r_[free.velocity_slice(n)] for n in driven.joints])


def test_driven_joints_have_no_coordinates() -> None:
    free, driven, chosen = pair()
    assert driven.driven_joints == tuple(n for n in free.joints if n in chosen)
    assert set(driven.joints) == set(free.joints) - set(chosen)
    assert driven.moving_joints == free.moving_joints
    assert driven.nv == free.nv - sum(np.r_[free.velocity_slice(n)].size for n in chosen)
    assert {free.joint(n).kind for n in chosen} == set(JOINTS) - {"rolling"}


def test_frames_move_as_those_of_the_free_robot() -> None:
    """Frames move like those of the undriven robot.

    Functions run on floats, without tracing. Differences have an error of 1e-10 for accelerations.
    """
    free, driven, _ = pair()
    y, yd, ydd, q, qd, qdd = whole()
    here, there = driven.model.at(T), free.model
    for name in free.frames[::5]:
        for function, own, all_of, tolerance in (
            ("forward_kinematics", (y,), (q,), 1e-12),
            ("frame_velocity", (y, yd), (q, qd), 1e-9),
            ("frame_acceleration", (y, yd, ydd), (q, qd, qdd), 1e-8),
            ("frame_motion", (y, yd, ydd), (q, qd, qdd), 1e-8),
        ):
            expected = direct(there, function, *all_of, frame=name)
            close(direct(here, function, *own, frame=name), expected, tolerance)
        J = direct(there, "jacobian", q, frame=name)[:, kept()]
        close(direct(here, "jacobian", y, frame=name), J, 1e-12)


@pytest.mark.parametrize("method", [m.name for m in FUNCTIONS["inverse_dynamics"] if not m.steep])
def test_inverse_dynamics_of_every_method(method: str) -> None:
    free, driven, _ = pair()
    y, yd, ydd, q, qd, qdd = whole()
    found = direct(driven.model.at(T), "inverse_dynamics", y, yd, ydd, method=method)
    close(found, direct(free.model, "inverse_dynamics", q, qd, qdd)[kept()], 1e-8)


@cache
def arm() -> chasles.Robot:
    """Return the PUMA, which has armature, with two driven joints."""
    return chasles.robots.puma560().drive(
        {"joint1": lambda t: 0.3 * sin(2.0 * t), "joint4": lambda t: 0.5 * t * t}
    )


def arm_state() -> tuple[np.ndarray, ...]:
    """Return (q, qd, qdd) of the arm, and of the undriven arm by closed forms of the motions."""
    y, yd, ydd = np.random.default_rng(4).normal(size=(3, 4))
    parts = (
        (y, (0.3 * np.sin(2.0 * T), 0.5 * T * T)),
        (yd, (0.6 * np.cos(2.0 * T), T)),
        (ydd, (-1.2 * np.sin(2.0 * T), 1.0)),
    )
    return y, yd, ydd, *(np.insert(own, [0, 2], sigma) for own, sigma in parts)


ARM = np.array([1, 2, 4, 5])


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics", "mass_matrix"])
def test_every_method_of_an_arm(function: str) -> None:
    """All methods that support followers agree; they run on floats, without tracing."""
    puma, (y, yd, ydd, q, qd, qdd) = chasles.robots.puma560(), arm_state()
    tau = puma.inverse_dynamics(q, qd, qdd)[ARM]
    arguments, expected = {
        "inverse_dynamics": ((y, yd, ydd), tau),
        "forward_dynamics": ((y, yd, tau), ydd),
        "mass_matrix": ((y,), puma.mass_matrix(q)[np.ix_(ARM, ARM)]),
    }[function]
    here = arm().model.frictionless().at(T)
    for method in FUNCTIONS[function]:
        if method.followers:
            found = direct(here, function, *arguments, method=method.name)
            assert relative(found, expected) < 1e-10, method.name
    close(getattr(arm().at_time(T), function)(*arguments), expected, 1e-10)


def test_other_functions_of_the_arm() -> None:
    puma, here, (y, yd, ydd, q, qd, qdd) = chasles.robots.puma560(), arm().at_time(T), arm_state()
    alone = np.where(np.isin(np.arange(6), ARM), 0.0, qdd)
    close(here.bias_forces(y, yd), puma.inverse_dynamics(q, qd, alone)[ARM], 1e-12)
    close(here.gravity_forces(y), puma.gravity_forces(q)[ARM], 1e-12)
    close(here.kinetic_energy(y, yd), puma.kinetic_energy(q, qd), 1e-12)
    close(here.momentum(y, yd), puma.momentum(q, qd), 1e-12)
    close(here.joint_reactions(y, yd, ydd), puma.joint_reactions(q, qd, qdd), 1e-12)
    close(here.driving_forces(y, yd, ydd), puma.inverse_dynamics(q, qd, qdd)[[0, 3]], 1e-12)
    Y = here.regressor(y, yd, ydd) @ here.inertial_parameters()
    close(Y, puma.regressor(q, qd, qdd)[ARM] @ puma.inertial_parameters(), 1e-12)
    expected = puma.hybrid_dynamics(q, qd, qdd, known=["joint1", "joint2", "joint4"])[ARM]
    close(here.hybrid_dynamics(y, yd, ydd, known="joint2"), expected, 1e-11)
    with raises("E-CALL-067", "'joint1'", "coriolis_matrix"):
        here.coriolis_matrix(y, yd)
    with raises("E-CONTROL-008", "'joint1'"):
        chasles.control.operational_dynamics(here, y, yd, frame=here.bodies[-1], task="position")
    with raises("E-CALL-067", "'joint1'", "closed_form"):
        here.closed_form(y)


def test_forward_dynamics_is_hybrid_with_the_motion_given() -> None:
    """Forward dynamics and driving forces agree with hybrid dynamics for every joint type.

    Functions run on floats.
    """
    free, driven, chosen = pair()
    y, yd, tau, q, qd, qdd = whole(seed=2)
    mixed = qdd.copy()
    mixed[kept()] = tau
    found = direct(free.model, "hybrid_dynamics", q, qd, mixed, known=chosen)
    here = driven.model.at(T)
    own = direct(here, "forward_dynamics", y, yd, tau, method="mass-matrix")
    close(own, found[kept()], 1e-7)
    others = np.concatenate([np.r_[free.velocity_slice(n)] for n in driven.driven_joints])
    force = direct(here, "driving_forces", y, yd, found[kept()], np.zeros(0))
    close(force, found[others], 1e-7)


def test_damping_and_outer_forces() -> None:
    puma, (y, yd, ydd, q, qd, qdd) = chasles.robots.puma560(), arm_state()
    wrench = {"tool": np.arange(6.0)}
    options = {"f_ext": wrench, "dissipation": True}
    found = arm().at_time(T).inverse_dynamics(y, yd, ydd, **options)
    close(found, puma.inverse_dynamics(q, qd, qdd, **options)[ARM], 1e-12)
    force = arm().at_time(T).driving_forces(y, yd, ydd, **options)
    close(force, puma.inverse_dynamics(q, qd, qdd, **options)[[0, 3]], 1e-12)


# Derivatives and compiled programs ----------------------------------------------------------------


def test_derivatives_of_driving_forces() -> None:
    """Derivatives by q agree with those of the undriven robot, those by t with differences."""
    puma, (y, yd, ydd, q, qd, qdd) = chasles.robots.puma560(), arm_state()
    state = (y, yd, ydd, np.zeros(0))
    by_q, by_t = (arm().at_time(T).derivatives("driving_forces", *state, wrt=x) for x in "qt")
    whole = puma.derivatives("inverse_dynamics", q, qd, qdd, wrt="q")
    close(by_q, whole[[0, 3]][:, ARM], 1e-10)
    close(by_t, slope(lambda t: arm().at_time(t).driving_forces(y, yd, ydd)), 1e-8)


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics", "kinetic_energy"])
def test_derivatives(function: str) -> None:
    """Derivatives with respect to coordinates and time agree with finite differences."""
    y, yd, x, *_ = arm_state()
    arguments = (y, yd, x)[: 2 if function == "kinetic_energy" else 3]
    by_t = arm().at_time(T).derivatives(function, *arguments, wrt="t")
    found = slope(lambda t: getattr(arm().at_time(t), function)(*arguments))
    close(by_t, found, 1e-8)
    by_q = arm().at_time(T).derivatives(function, *arguments, wrt="q")

    def moved(s: float, k: int) -> np.ndarray:
        return getattr(arm().at_time(T), function)(y + s * np.eye(4)[k], *arguments[1:])

    columns = [slope(partial(moved, k=k), 0.0) for k in range(4)]
    close(by_q, np.stack(columns, axis=-1), 1e-8)


def test_linearized_as_by_differences() -> None:
    y, yd, tau, *_ = arm_state()
    here = arm().at_time(T)
    A, B = here.linearize(y, yd, tau)
    close(B[4:], np.linalg.inv(here.mass_matrix(y)), 1e-10)
    faster = yd + np.array([0.0, 1.0, 0.0, 0.0])
    column = slope(lambda s: here.forward_dynamics(y, yd + s * (faster - yd), tau), 0.0)
    close(A[4:, 5], column, 1e-8)


def test_pullback_has_its_covector_after_the_time() -> None:
    y, yd, ydd, *_ = arm_state()
    here, covector = arm().at_time(T), np.array([1.0, -2.0, 0.5, 3.0])
    pulled = here.pullback("inverse_dynamics", y, yd, ydd, covector=covector, wrt=("q", "t"))
    for name, part in zip(("q", "t"), pulled, strict=True):
        J = here.derivatives("inverse_dynamics", y, yd, ydd, wrt=name)
        close(part, covector @ J, 1e-12)


@pytest.mark.parametrize("backend", TARGETS)
def test_time_is_an_array_like_any_other(backend: str) -> None:
    y, yd, ydd, *_ = arm_state()
    run, times = runner(arm(), backend), np.array([[0.1], [T]])
    both = run("inverse_dynamics", np.stack([y, 2.0 * y]), yd, ydd, times)
    assert both.shape == (2, 2, 4)
    close(both[1, 0], arm().at_time(T).inverse_dynamics(y, yd, ydd), 1e-12)
    close(both, arm().at_time(times).inverse_dynamics(np.stack([y, 2.0 * y]), yd, ydd), 1e-12)


def test_the_order_of_arrays() -> None:
    y, yd, ydd, *_ = arm_state()
    compiled = chasles.compile(
        arm(), "inverse_dynamics", f_ext={"tool": np.zeros(6)}, parameters=["gravity"]
    )
    names = [variable.name for variable in compiled.interface.inputs]
    assert names == ["q", "qd", "qdd", "f_ext['tool']", "t", "gravity"]
    found = compiled(y, yd, ydd, np.zeros(6), T, arm().gravity)
    close(found, arm().at_time(T).inverse_dynamics(y, yd, ydd), 1e-12)


def test_robots_without_time_have_no_such_input() -> None:
    for function in ("inverse_dynamics", "forward_dynamics", "integrate"):
        compiled = chasles.compile(chasles.robots.puma560(), function)
        assert not compiled.timed
    assert not chasles.compile(arm(), "integrate").timed
    close(arm().integrate(np.ones(4), np.ones(4)), np.full(4, 2.0), 1e-15)


def test_a_robot_at_a_time_travels() -> None:
    y, yd, ydd, *_ = arm_state()
    here = arm().at_time(T)
    tau = here.inverse_dynamics(y, yd, ydd)
    again = pickle.loads(pickle.dumps(here))
    assert np.array_equal(again.inverse_dynamics(y, yd, ydd), tau)
    weightless = here.with_gravity([0.0, 0.0, 0.0])
    expected = arm().with_gravity([0.0, 0.0, 0.0]).at_time(T).gravity_forces(y)
    assert np.array_equal(weightless.gravity_forces(y), expected)


# Published motions --------------------------------------------------------------------------------

G, LENGTH, SHAKE, PULSE = 9.81, 0.5, 0.05, 120.0


@cache
def kapitza() -> chasles.Robot:
    """Return a bob on a massless rod, whose pivot moves vertically: z = SHAKE cos(PULSE t)."""

    def shaken(t: Any) -> Any:
        return SHAKE * cos(PULSE * t)

    bob = rod(1e-9, 1e-3)
    tip = Transform(Rotation(), Vector.of(0.0, 0.0, -LENGTH))
    source = Description(
        "kapitza",
        (LinkData("pivot", bob), LinkData("rod", bob)),
        (
            JointData(
                "shaker",
                "prismatic",
                None,
                "pivot",
                motion=motion(lambda t: SHAKE * cos(PULSE * t)),
            ),
            JointData("swing", "revolute", "pivot", "rod", axis=Vector.of(0.0, 1.0, 0.0)),
        ),
    )
    return chasles.Robot(source).attach("rod", mass=2.0, center=list(tip.r), name="bob")


def angular(t: Any, angle: Any) -> Any:
    """Return angle'' from l angle'' = -(g + z'') sin(angle), with angle 0 pointing down."""
    return -(G - SHAKE * PULSE**2 * np.cos(PULSE * t)) * np.sin(angle) / LENGTH


def test_a_pendulum_on_an_oscillating_support() -> None:
    """Accelerations agree with the pendulum equation, apart from the rod's 1e-9 kg."""
    angle, t = np.linspace(-3.0, 3.0, 7)[:, None], np.linspace(0.0, 0.1, 7)
    qdd = kapitza().at_time(t).forward_dynamics(angle, np.full_like(angle, 0.3), np.zeros(1))
    close(qdd[:, 0], angular(t, angle[:, 0]), 1e-8)


def test_it_stands_upside_down_if_shaken_fast() -> None:
    """The upper position is stable if (SHAKE PULSE)^2 > 2 g l (Kapitza 1951).

    The path agrees with SciPy's.
    """
    assert (SHAKE * PULSE) ** 2 > 2.0 * G * LENGTH
    start, duration = np.pi - 0.1, 0.4
    run = chasles.simulate(kapitza(), [start], [0.0], duration=duration, dt=2e-4)
    exact = solve_ivp(
        lambda t, x: [x[1], angular(t, x[0])],
        (0.0, duration),
        [start, 0.0],
        method="DOP853",
        rtol=1e-11,
        atol=1e-12,
    )
    np.testing.assert_allclose(run.q[-1, 0], exact.y[0, -1], atol=1e-7)
    assert np.max(np.abs(run.q - np.pi)) < 0.25
    half, end = len(run.t) // 2, run.t[-1]
    rest = chasles.simulate(
        kapitza(), run.q[half], run.qd[half], duration=end - run.t[half], start=run.t[half], dt=2e-4
    )
    np.testing.assert_allclose(rest.q[-1], run.q[-1], atol=1e-10)


def test_a_follower_of_a_driven_joint_is_driven() -> None:
    """Driven followers in a chain of mimic joints need the torques of the free robot."""
    source = chasles.robots.planar(3).model.source
    first, second, third = source.joints
    led = replace(
        source,
        joints=(
            first,
            replace(second, mimic=Mimic(first.name, -2.0, 0.3)),
            replace(third, mimic=Mimic(second.name, 0.5)),
        ),
    )
    robot = chasles.Robot(led).drive({first.name: lambda t: sin(t)})
    assert robot.nv == 0
    assert robot.driven_joints == tuple(j.name for j in source.joints)
    lead = np.array([np.sin(T), np.cos(T), -np.sin(T)])
    ratios, offsets = np.array([1.0, -2.0, -1.0]), np.array([0.0, 0.3, 0.15])
    q, qd, qdd = np.outer(lead, ratios)
    q += offsets
    none = np.zeros(0)
    tau = chasles.robots.planar(3).inverse_dynamics(q, qd, qdd)
    close(robot.at_time(T).driving_forces(none, none, none), tau, 1e-12)


# Errors -------------------------------------------------------------------------------------------


def test_the_time_must_be_said_and_be_one() -> None:
    y, yd, *_ = arm_state()
    with raises("E-LOOP-039", "at_time", "mass_m"):
        arm().mass_matrix(y)
    with raises("E-ROBOT-008"):
        chasles.robots.puma560().at_time(0.0)
    with raises("E-CALL-022"):
        arm().at_time(np.nan)
    with raises("E-CALL-021"):
        arm().at_time("noon")
    with raises("E-MOTION-031"):
        chasles.simulate(arm(), y, yd, duration=0.1, start=np.inf)
    for held, start in ((arm().at_time([0.0, 1.0]), None), (arm(), "noon")):
        with raises("E-MOTION-031"):
            chasles.simulate(held, y, yd, duration=0.1, start=start)


def test_a_simulation_begins_at_the_time_of_the_robot() -> None:
    y, yd, *_ = arm_state()
    held = chasles.simulate(arm().at_time(T), y, yd, duration=0.01)
    asked = chasles.simulate(arm(), y, yd, duration=0.01, start=T)
    assert held.t[0] == T
    assert np.array_equal(held.q, asked.q)
    assert chasles.simulate(arm().at_time(T), y, yd, duration=0.01, start=0.0).t[0] == 0.0


def test_motions_that_cannot_be() -> None:
    puma = chasles.robots.puma560()
    with raises("E-MODEL-037", "'elbow'"):
        puma.drive({"elbow": lambda t: t})
    with raises("E-MODEL-015"):
        puma.drive({"joint1": lambda t: [t, t]})
    with raises("E-JOINT-013", "'joint1'", "'fast'"):
        puma.drive({"joint1": lambda t: "fast"})
    with raises("E-JOINT-013", "'joint1'"):
        puma.drive({"joint1": lambda t: None})
    with raises("E-JOINT-011", "'joint1'", "0.5"):
        puma.drive({"joint1": 0.5})
    with raises("E-JOINT-012", "'joint1'"):
        puma.drive({"joint1": math.sin})
    with raises("E-JOINT-014"):
        puma.drive({"joint1": lambda t: t * math.nan})
    with raises("E-MODEL-035"):
        arm().drive({"joint1": lambda t: t})
    with raises("E-MODEL-035", "'joint1'"):
        arm().lock({"joint1": 0.0})
    marble = JointData(
        "roll", "rolling", None, "ball", radius=0.1, motion=motion(lambda t: [t] * 6)
    )
    with raises("E-MODEL-014"):
        chasles.Robot(Description("marble", (LinkData("ball", rod(1.0, 0.1)),), (marble,)))
    weld = JointData("weld", "fixed", None, "ball", motion=motion(lambda t: t))
    with raises("E-MODEL-001", "'weld'"):
        chasles.Robot(Description("marble", (LinkData("ball", rod(1.0, 0.1)),), (weld,)))
    with raises("E-CALL-071"):
        arm().at_time(T).forward_dynamics(*np.zeros((3, 4)), method="articulated-body")


def governor(kind: str = "universal") -> chasles.Robot:
    """Return a ball of 1.5 kg, 0.4 m below a universal joint that rotates about z, then y."""
    ball = RigidInertia.from_center(1.5, Vector.of(0.0, 0.0, -0.4), Symmetric(*(0.0,) * 6))
    z, y = Vector.of(0.0, 0.0, 1.0), Vector.of(0.0, 1.0, 0.0)
    joint = JointData("hinge", kind, None, "ball", axis=z, second_axis=y)
    return chasles.Robot(Description("governor", (LinkData("ball", ball),), (joint,)))


def test_one_freedom_of_a_joint_is_driven() -> None:
    """One coordinate of a joint is driven: a pendulum that rotates about the vertical.

    By Lagrange, phi'' = (W^2 cos phi - g/l) sin phi, and the torque is
    2 m l^2 W phi' sin phi cos phi (Featherstone 2008, section 3.4).
    """
    spin, length, mass = 5.0, 0.4, 1.5
    driven = governor().drive({"hinge[0]": lambda t: spin * t})
    assert (driven.joints, driven.driven_joints) == (("hinge[1]",), ("hinge[0]",))
    phi, rate = 0.6, -1.3
    here = driven.at_time(T)
    expected = (spin**2 * math.cos(phi) - 9.81 / length) * math.sin(phi)
    found = here.forward_dynamics([phi], [rate], [0.0])
    close(found, [expected], 1e-13)
    torque = 2.0 * mass * length**2 * spin * rate * math.sin(phi) * math.cos(phi)
    close(here.driving_forces([phi], [rate], found), [torque], 1e-13)


def test_either_freedom_of_a_cylinder_is_driven() -> None:
    """Either coordinate of a cylindrical joint can be driven; the slide falls with g cos a."""
    source = governor("cylindrical").model.source
    axis = Vector.of(0.6, 0.0, 0.8)
    joint = replace(source.joints[0], axis=axis, second_axis=None)
    free = chasles.Robot(replace(source, joints=(joint,)))
    turned = free.drive({"hinge[0]": lambda t: 0.3 * t * t}).at_time(T)
    close(turned.forward_dynamics([0.2], [0.1], [0.0]), [-9.81 * 0.8], 1e-13)
    slid = free.drive({"hinge[1]": lambda t: t * t}).at_time(T)
    q = np.array([0.4, T * T])
    whole = free.forward_dynamics(q, [0.7, 2.0 * T], [0.0, 1.5 * (2.0 + 9.81 * 0.8)])
    close(whole[1], 2.0, 1e-12)
    close(slid.forward_dynamics([0.4], [0.7], [0.0]), whole[:1], 1e-12)
    force = slid.driving_forces([0.4], [0.7], whole[:1])
    close(force, [1.5 * (2.0 + 9.81 * 0.8)], 1e-12)


@pytest.mark.parametrize("polarity", [False, True], ids=["forward", "reversed"])
def test_each_coordinate_of_a_plane_is_driven(polarity: bool) -> None:
    """Coordinates of a planar joint are (angle, x, y); the other two move as under the same force.

    With the driving force, the undriven joint has the same acceleration.
    """
    link = LinkData("plate", RigidInertia.from_center(1.5, Vector.of(0.3, 0.1, -0.4), BALL))
    numbers = {"damping": 0.4, "stiffness": 3.0, "rest": (0.1, 0.2, -0.3)}
    joint = JointData("slide", "planar", None, "plate", reversed=polarity, **numbers)
    joint = replace(joint, axis=Vector.of(0.6, 0.0, 0.8))
    free = chasles.Robot(Description("plane", (link,), (joint,)))
    q, rates, forces = np.array([(0.5, -0.2, 0.8), (0.3, 1.1, -0.7), (2.0, 3.0, 5.0)])
    c, s = math.cos(q[0]), math.sin(q[0])
    E = np.array([[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]])
    turning = rates[0] * np.array([[0.0, 0.0, 0.0], [0.0, -s, c], [0.0, -c, -s]])
    for k in range(3):

        def course(t: Any, k: int = k) -> Any:
            return q[k] + rates[k] * (t - T) + 2.0 * (t - T) * (t - T)

        driven = free.drive({f"slide[{k}]": course})
        others = [i for i in (1, 2, 0) if i != k]
        assert driven.driven_joints == (f"slide[{k}]",)
        assert driven.joints == tuple(f"slide[{i}]" for i in others)
        here, at = driven.at_time(T), (q[others], rates[others])
        close(here.forward_kinematics(q[others])[0], free.forward_kinematics(q)[0], 1e-13)
        qdd, total = np.full(3, 4.0), forces.copy()
        qdd[others] = here.forward_dynamics(*at, forces[others])
        total[k] = here.driving_forces(*at, qdd[others])[0]
        found = free.forward_dynamics(q, E @ rates, E @ total)
        close(found, E @ qdd + turning @ rates, 1e-12)


def test_freedoms_of_a_ball_are_driven_together() -> None:
    for kind in ("spherical", "free", "sphere_in_cylinder"):
        with raises("E-JOINT-240", "'hinge'", kind, "not the rates of its coordinates"):
            governor(kind).drive({"hinge[0]": lambda t: t})
    with raises("E-MODEL-037", "'hinge[7]'"):
        governor().drive({"hinge[7]": lambda t: t})


def test_what_a_file_cannot_say(tmp_path: Any) -> None:
    swing = chasles.robots.planar(2)
    with raises("E-FILE-033", "'joint1'"):
        chasles.save(swing.drive({"joint1": lambda t: t}), tmp_path / "arm.toml")
    timed = swing.with_couplings(coupling("cam", ["joint2"], lambda q, t: q - sin(t)))
    with raises("E-TOML-011", "'cam'"):
        chasles.save(timed, tmp_path / "arm.toml")
    with raises("E-DH-012"):
        chasles.to_dh(arm())
    with raises("E-LOOP-039|E-LOOP-040"):
        chasles.maximal_dynamics(arm(), *np.zeros((3, 4)))
