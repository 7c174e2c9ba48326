"""Mechanisms with massless links, immobile joints or faulty couplings.

Results are either correct, or an error names the faulty part.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from mechanisms import constraint_forces, mechanism, motion
from support import Floats, close, raises

import chasles
from chasles import contact
from chasles.contact import impact_derivatives
from chasles.control import operational_dynamics
from chasles.expr import Number, sin, sqrt
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.mechanisms import dynamics
from chasles.model import Description, JointData, LinkData, coupling, gear
from chasles.model.graph import from_graph
from chasles.robots.mechanisms import five_bar, four_bar


def light(source: Description, *names: str) -> chasles.Robot:
    """Return the mechanism with the given links massless."""

    def changed(link: LinkData) -> LinkData:
        return replace(link, inertia=RigidInertia.zero()) if link.name in names else link

    return chasles.Robot(replace(source, links=tuple(map(changed, source.links))))


def inverting(robot: chasles.Robot, q: Any, qd: Any, tau: Any) -> list[Callable[[], Any]]:
    """Return calls of functions outside the robot that solve with its mass matrix."""
    frame = robot.frames[-1]
    touch = contact.contact_points(robot, q, qd, contact.Point(frame), contact.Plane())
    law = contact.Newton(0.5)
    return [
        *(partial(f, robot, q, qd, tau) for f in (chasles.maximal_dynamics, maximal)),
        partial(contact.contact_dynamics, robot, q, qd, tau, touch),
        lambda: contact.contact_problem(robot, q, qd, tau, touch).M,
        *(partial(f, robot, q, qd, touch, law) for f in (contact.impact, impact_derivatives)),
        partial(contact.velocity_step, robot, q, np.ones(6), frame=frame),
        partial(operational_dynamics, robot, q, qd, frame, damping=0.1),
    ]


def maximal(robot: chasles.Robot, *state: Any) -> Any:
    return chasles.MaximalDynamics(robot)(*state)


# Links without mass ------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("rocker",), ("coupler",), ("crank", "rocker")])
def test_links_without_mass_in_a_loop(names: tuple[str, ...]) -> None:
    """Massless links are allowed in a loop if the reduced mass matrix is regular."""
    robot, (q, qd, tau) = light(four_bar(), *names), motion("four_bar")
    run = Floats(robot)
    qdd, lam = robot.constrained_dynamics(q, qd, tau)
    for k in range(len(q)):
        M, h = run.mass_matrix(q[k]), run.bias_forces(q[k], qd[k])
        A, b = run.loop_matrix(q[k]), run.loop_bias(q[k], qd[k])
        close(qdd[k], constraint_forces(M, h, A, b, tau[k]), 1e-9)
        close(A.T @ lam[k], M @ qdd[k] + h - tau[k], 1e-9)
    u = robot.inverse_dynamics(q, qd, qdd, actuated=["crank"])
    close(robot.forward_dynamics(q, qd, u), qdd, 1e-9)
    A, _ = robot.linearize(q[0], qd[0], tau[0])
    assert np.all(np.isfinite(A))
    moved = chasles.simulate(robot, q[0], qd[0], duration=0.1)
    energy = robot.kinetic_energy(moved.q, moved.qd) + robot.potential_energy(moved.q)
    assert np.ptp(energy) < 1e-8


def test_what_needs_the_mass_matrix_of_the_tree_says_so() -> None:
    robot, (q, qd, tau) = light(four_bar(), "rocker"), motion("four_bar")
    for method in ("multipliers", "direct"):
        with raises("E-CALL-070", "'rocker'", "'minimal'"):
            robot.constrained_dynamics(q, qd, tau, method=method)
    for call in (robot.ltdl_factors, robot.ltl_factor, robot.operator_factors):
        with raises("E-CALL-067", "'rocker'"):
            call(q)
    with raises("E-CALL-067", "'rocker'"):
        robot.mass_matrix_inverse(q, coordinates="tree")


def test_singular_values_need_no_mass_of_single_links(monkeypatch: pytest.MonkeyPatch) -> None:
    robot, (q, qd, tau) = light(four_bar(), "rocker"), motion("four_bar")
    qdd, lam = robot.constrained_dynamics(q, qd, tau)
    monkeypatch.setattr(dynamics, "WEAK", 2.0)
    again, others = robot.constrained_dynamics(q, qd, tau)
    close(again, qdd, 1e-10)
    A = np.swapaxes(robot.loop_matrix(q), 1, 2)
    close(A @ others[..., None], A @ lam[..., None], 1e-10)


def test_a_gear_moves_a_wheel_without_mass() -> None:
    """A massless tip has an acceleration only if it is geared to the first joint."""
    arm = chasles.robots.planar(3).model.source
    with raises("E-CALL-067", "'joint3'"):
        light(arm, "link3").forward_dynamics([0.3, -0.8, 0.1], [0.0] * 3, [0.0] * 3)
    geared = light(replace(arm, couplings=(gear("belt", "joint3", {"joint1": 0.5}),)), "link3")
    two = chasles.robots.planar(2)
    q, qd, tau = np.array([0.3, -0.8]), np.array([1.0, 2.0]), np.array([0.4, 0.1])
    qdd = geared.forward_dynamics([*q, 0.15], [*qd, 0.5], [*tau, 0.0])
    close(qdd[:2], two.forward_dynamics(q, qd, tau), 1e-10)
    close(qdd[2], 0.5 * qdd[0], 1e-12)


def test_known_accelerations_of_a_wheel_without_mass() -> None:
    """Hybrid dynamics raises an error unless the massless wheel's acceleration is known."""
    arm = chasles.robots.planar(3).model.source
    geared = light(replace(arm, couplings=(gear("belt", "joint3", {"joint1": 0.5}),)), "link3")
    q, qd = np.array([0.3, -0.8, 0.15]), np.array([1.0, 2.0, 0.5])
    qdd, _ = geared.constrained_dynamics(q, qd, [0.4, 0.1, 0.0])
    given = np.array([qdd[0], 0.1, qdd[2]])
    found = geared.hybrid_dynamics(q, qd, given, known=["joint1", "joint3"])
    close(found[1], qdd[1], 1e-10)
    close(found[0] + 0.5 * found[2], 0.4, 1e-10)
    with raises("E-CALL-067", "'joint3'"):
        geared.hybrid_dynamics(q, qd, given, known="joint1")


def test_links_without_mass_that_move_together() -> None:
    """Massless links that move while the crank with mass stands still cause an error."""
    robot = light(five_bar(), "left", "left_coupler", "right_coupler")
    q = robot.assemble([0.8] * len(robot.independent))
    still = np.zeros(robot.nv)
    assert np.all(np.isfinite(robot.mass_matrix(q, coordinates="tree")))
    for call in (robot.forward_dynamics, robot.constrained_dynamics):
        with raises("E-LOOP-017 'five_bar'"):
            call(q, still, still)
    others = (
        lambda: robot.mass_matrix_inverse(q, coordinates="independent"),
        lambda: robot.operational_inertia_inverse(q, frame=robot.frames[-1]),
        lambda: robot.simulate(q, still, duration=0.01, integrator="time-stepping"),
        *inverting(robot, q, still, still),
    )
    for other in others:
        with raises("E-LOOP-017 'five_bar'"):
            other()


def test_a_leaf_without_mass_has_kinematics_and_inverse_dynamics() -> None:
    """Functions that do not invert the mass matrix agree with those of a tip of 1e-13 kg."""
    arm = chasles.robots.planar(3).model.source
    robot = light(arm, "link3")
    assert any("'joint3': it moves no inertia" in note for note in robot.notes)
    grain = robot.attach("link3", mass=1e-13, center=(0.1, 0.0, 0.0))
    rng = np.random.default_rng(2)
    q, qd, qdd = rng.normal(size=(3, 3))
    close(robot.inverse_dynamics(q, qd, qdd), grain.inverse_dynamics(q, qd, qdd), 1e-10)
    close(robot.mass_matrix(q), grain.mass_matrix(q), 1e-10)
    for frame in robot.frames:
        T = grain.forward_kinematics(q, frame=frame)
        close(robot.forward_kinematics(q, frame=frame), T, 1e-14)
    known = robot.hybrid_dynamics(q, qd, qdd, known=["joint3"])
    close(known, grain.hybrid_dynamics(q, qd, qdd, known=["joint3"]), 1e-9)
    calls = (
        *(lambda: robot.forward_dynamics(q, qd, qdd), lambda: robot.mass_matrix_inverse(q)),
        *(lambda: robot.linearize(q, qd, qdd), lambda: robot.ltl_factor(q)),
        *(lambda: robot.derivatives("forward_dynamics", q, qd, qdd), lambda: robot.ltdl_factors(q)),
        lambda: robot.operational_inertia_inverse(q, frame=robot.frames[-1]),
        lambda: robot.simulate(q, qd, duration=0.01, dt=1e-3),
        lambda: robot.rollout(q, qd, dt=1e-3, steps=2),
        lambda: robot.simulate(q, qd, duration=0.01, integrator="time-stepping"),
        lambda: robot.rollout(q, qd, dt=1e-3, steps=2, integrator="time-stepping"),
        lambda: chasles.simulate(robot, q, qd, duration=0.01),
        lambda: chasles.compile(robot, "forward_dynamics"),
        *inverting(robot, q, qd, qdd),
    )
    for call in calls:
        with raises("E-CALL-067", "'joint3'", "lock"):
            call()
    assert robot.lock("joint3").forward_dynamics(q[:2], qd[:2], qdd[:2]).shape == (2,)


def test_a_singular_mass_matrix_in_a_single_configuration() -> None:
    """A point mass on the axis of the first joint has no moment of inertia about this axis."""
    mass = RigidInertia.from_center(1.0, Vector.of(0.0, 0.0, 1.0), Symmetric.zero())
    up, across = Vector.of(0.0, 0.0, 1.0), Vector.of(0.0, 1.0, 0.0)
    links = LinkData("yaw", RigidInertia.zero()), LinkData("pitch", mass)
    joints = (
        JointData("pan", "revolute", None, "yaw", axis=up),
        JointData("tilt", "revolute", "yaw", "pitch", axis=across),
    )
    robot = chasles.Robot(Description("head", links, joints))
    state = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    for call in inverting(robot, *state):
        with raises("E-CALL-590"):
            call()


# Immobile joints ---------------------------------------------------------------------------------


def half_locked() -> chasles.Robot:
    """Return a five-bar with a coupling that fixes the angle of its right crank."""
    return mechanism("five_bar").with_couplings(coupling("brake", ["right"], lambda x: x - 0.9))


def test_joints_that_are_held_are_named() -> None:
    robot = half_locked()
    report = robot.mobility()
    assert int(report) == 1
    assert report.immobile == ("right",)
    assert "; 'right' cannot move" in str(report)
    assert robot.independent == ("left",)
    text = "E-LOOP-010 'right'"
    with raises(text):
        robot.with_independent("right")
    assert mechanism("five_bar").mobility().immobile == ()
    truss = chasles.robots.four_bar().lock({"crank": 1.0})
    assert "cannot move" not in str(truss.mobility())
    assert truss.mobility().immobile == ("coupler", "rocker")


# Errors that name the part -----------------------------------------------------------------------

BARS = mechanism("four_bar")
REST = np.zeros(3)
LINKS, JOINTS = BARS.model.source.links, BARS.model.source.joints


def fails(x: Number, y: Number) -> Number:
    raise KeyError("lever")


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no independent freedoms": (
        lambda: BARS.with_independent(),
        chasles.ModelError,
        "E-LOOP-003 'four_bar'",
    ),
    "no actuators": (
        lambda: BARS.inverse_dynamics(BARS.assemble([0.5]), REST, REST, actuated=[]),
        chasles.UnderActuated,
        "E-LOOP-013 'crank'",
    ),
    "an actuator by letters": (
        lambda: from_graph("bars", LINKS, JOINTS, base="base", actuated="crank"),
        TypeError,
        "E-MODEL-027 'crank'",
    ),
    "a loop by letters": (
        lambda: from_graph("bars", LINKS, JOINTS, base="base", loops="rocker"),
        TypeError,
        "E-MODEL-027 'rocker'",
    ),
    "a coupling that raises": (
        lambda: coupling("cam", ["crank", "rocker"], fails),
        chasles.ModelError,
        "E-LOOP-026 'cam'",
    ),
    "a coupling of the math module": (
        lambda: coupling("cam", ["crank"], lambda x: math.sin(x)),
        chasles.ModelError,
        "E-LOOP-026 'cam'",
    ),
    "a coupling of other arguments": (
        lambda: coupling("cam", ["crank", "rocker"], lambda x: x),
        chasles.ModelError,
        "E-LOOP-026 'cam'",
    ),
    "a coupling of no numbers": (
        lambda: coupling("cam", ["crank", "rocker"], lambda x, y: ()),
        chasles.ModelError,
        "E-LOOP-027 'cam'",
    ),
    "a coupling that is no number": (
        lambda: coupling("cam", ["crank"], lambda x: x * math.nan),
        chasles.ModelError,
        "E-LOOP-029 'cam'",
    ),
    "a coupling without a value here": (
        lambda: (
            chasles.robots.planar(2)
            .with_couplings(coupling("cam", ["joint1", "joint2"], lambda x, y: sin(y) - sqrt(x)))
            .mobility([-1.0, 0.0])
        ),
        chasles.ImpossiblePosition,
        "E-LOOP-020 'cam'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_the_part(name: str) -> None:
    call, error, message = WRONG[name]
    with raises(message, kind=error):
        call()
