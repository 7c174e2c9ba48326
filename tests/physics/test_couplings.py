"""Gears, differentials and other couplings.

Expected values are from mimic joints, closed forms and finite differences.
"""

import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import TARGETS, close, raises

import chasles
from chasles import Robot
from chasles.expr import cos, sin, sqrt
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import (
    Description,
    JointData,
    LinkData,
    Mimic,
    coupling,
    gear,
)
from chasles.robots._solids import box, cylinder, rod

RNG = np.random.default_rng(6)


def along(x: float) -> Transform:
    return Transform(Rotation(), Vector.of(x, 0.0, 0.0))


def hinge(name: str, parent: str | None, child: str, x: float, **more: Any) -> JointData:
    return JointData(name, "revolute", parent, child, along(x), **more)


def bodies(**inertias: RigidInertia) -> tuple[LinkData, ...]:
    return tuple(LinkData(name, inertia) for name, inertia in inertias.items())


def wheels(*inertias: float) -> Robot:
    """Return independent wheels with the given axial inertias on a base."""
    names = [f"w{k}" for k in range(1, len(inertias) + 1)]
    made = [cylinder(2.0 * i, 1.0, 0.1, 2) for i in inertias]
    return Robot(
        Description(
            "wheels",
            bodies(base=box(1.0, (1.0, 1.0, 1.0)), **dict(zip(names, made, strict=True))),
            tuple(hinge(name, "base", name, float(k)) for k, name in enumerate(names)),
        )
    )


# Linear gears ------------------------------------------------------------------------------------

RATIO, OFFSET = -1.7, 0.4


def arm(mimic: Mimic | None) -> Description:
    return Description(
        "arm",
        bodies(base=box(1.0, (0.2, 0.2, 0.2)), a=rod(1.0, 0.7), b=rod(0.8, 0.5), c=rod(0.5, 0.4)),
        (
            hinge("first", "base", "a", 0.0, axis=Vector.of(0.0, 1.0, 0.0)),
            hinge("second", "a", "b", 0.7, mimic=mimic, armature=0.02),
            hinge("third", "b", "c", 0.5, axis=Vector.of(0.0, 1.0, 0.0)),
        ),
    )


def test_a_gear_is_a_mimic_joint() -> None:
    """A gear as a constraint between coordinates gives the same motion as a mimic joint."""
    explicit = Robot(arm(Mimic("third", RATIO, OFFSET)))
    robot = Robot(arm(None)).with_couplings(gear("belt", "second", {"third": RATIO}, OFFSET))
    robot = robot.with_independent("first", "third")
    assert explicit.joints == robot.independent == ("first", "third")
    y, yd, ydd, tau = RNG.normal(size=(4, 20, 2))
    q = robot.assemble(y)
    close(q[:, 1], RATIO * y[:, 1] + OFFSET, 1e-13)
    qd, qdd = robot.complete(q, yd, ydd)
    close(qd[:, 1], RATIO * yd[:, 1], 1e-12)
    close(qdd[:, 1], RATIO * ydd[:, 1], 1e-12)
    close(robot.mass_matrix(q, coordinates="independent"), explicit.mass_matrix(y), 1e-12)
    forces = np.stack([tau[:, 0], np.zeros(20), tau[:, 1]], axis=-1)
    expected = explicit.forward_dynamics(y, yd, tau)
    for method in ("multipliers", "direct", "minimal", "fastest"):
        found, _ = robot.constrained_dynamics(q, qd, forces, method=method)
        close(found[:, [0, 2]], expected, 1e-10)
    driven = robot.inverse_dynamics(q, qd, qdd, actuated=["first", "third"])
    close(driven[:, [0, 2]], explicit.inverse_dynamics(y, yd, ydd), 1e-10)


def test_geared_two_link_arm() -> None:
    """Featherstone 2008, Eq 9.27: rotor 1 is on the base, rotor 2 on the first link."""
    rho = {"q1": 50.0, "q3": -30.0}
    source = Description(
        "geared",
        bodies(
            base=box(1.0, (0.2, 0.2, 0.2)),
            link1=rod(2.0, 0.6),
            rotor1=cylinder(0.3, 0.03, 0.05, 2),
            link2=rod(1.0, 0.5),
            rotor2=cylinder(0.2, 0.02, 0.05, 2),
        ),
        (
            hinge("q1", "base", "link1", 0.0),
            hinge("q2", "base", "rotor1", 0.0),
            hinge("q3", "link1", "link2", 0.6),
            hinge("q4", "link1", "rotor2", 0.1),
        ),
    )
    robot = Robot(source).with_couplings(
        gear("gear1", "q2", {"q1": rho["q1"]}), gear("gear2", "q4", {"q3": rho["q3"]})
    )
    robot = robot.with_independent("q1", "q3")
    q = robot.assemble([0.3, -0.8])
    H = robot.mass_matrix(q)
    off = H[0, 2] + rho["q3"] * H[0, 3]
    H_G = [
        [H[0, 0] + rho["q1"] ** 2 * H[1, 1], off],
        [off, H[2, 2] + rho["q3"] ** 2 * H[3, 3]],
    ]
    close(robot.mass_matrix(q, coordinates="independent"), H_G, 1e-13)


def test_a_differential() -> None:
    """The ring turns by the mean of two wheel angles, so M = diag(I1, I2) + I3/4."""
    robot = wheels(0.2, 0.3, 0.5).with_couplings(gear("ring", "w3", {"w1": 0.5, "w2": 0.5}, 0.1))
    assert (int(robot.mobility()), robot.couplings, robot.independent) == (
        2,
        ("ring",),
        ("w1", "w2"),
    )
    q = robot.assemble([0.7, -0.3])
    assert q[2] == pytest.approx(0.3, abs=1e-14)
    M = np.diag([0.2, 0.3]) + 0.5 / 4.0
    tau = np.array([1.0, -2.0, 0.6])
    expected = np.linalg.solve(M, tau[:2] + tau[2] / 2.0)
    qdd = robot.forward_dynamics(q, robot.complete(q, [1.0, 5.0]), tau)
    close(qdd, [*expected, expected.mean()], 1e-13)


# Nonlinear gears ---------------------------------------------------------------------------------

GROUND, CRANK, COUPLER, ROCKER = 0.4, 0.1, 0.35, 0.3


def freudenstein(crank: Any, rocker: Any) -> Any:
    """Return the squared length error of the coupler, divided by twice crank times rocker."""
    x = GROUND + ROCKER * cos(rocker) - CRANK * cos(crank)
    y = ROCKER * sin(rocker) - CRANK * sin(crank)
    return (x * x + y * y - COUPLER**2) / (2.0 * CRANK * ROCKER)


def test_a_nonlinear_gear_moves_as_the_four_bar() -> None:
    """A coupling by Freudenstein's equation moves like a four-bar with a massless coupler link."""
    bars = chasles.robots.four_bar(GROUND, CRANK, COUPLER, ROCKER)
    source = bars.model.source
    light = replace(
        source,
        links=tuple(
            replace(link, inertia=rod(1e-12, COUPLER)) if link.name == "coupler" else link
            for link in source.links
        ),
    )
    ends = tuple(joint for joint in source.joints if joint.name != "coupler")
    links = tuple(link for link in source.links if link.name != "coupler")
    cam = coupling("cam", ["crank", "rocker"], freudenstein)
    robot = Robot(replace(source, links=links, joints=ends, loops=(), couplings=(cam,)))
    bars = Robot(light)
    for start in (0.3, 1.9, 4.0):
        q4 = bars.assemble([start])
        qd4, qdd4 = bars.complete(q4, [2.0], [-1.5])
        q = robot.assemble([start], guess=q4[[0, 2]])
        qd, qdd = robot.complete(q, [2.0], [-1.5])
        close(q, q4[[0, 2]], 1e-12)
        close(qd, qd4[[0, 2]], 1e-11)
        close(qdd, qdd4[[0, 2]], 1e-10)
        tau = np.array([0.3, -0.2])
        expected = bars.forward_dynamics(q4, qd4, [tau[0], 0.0, tau[1]])
        close(robot.forward_dynamics(q, qd, tau), expected[[0, 2]], 1e-8)


def test_energy_through_a_cam() -> None:
    """For w2 = sin(w1), (I1 + I2 cos^2) w1'^2 / 2 is constant, which determines w1''."""
    robot = wheels(0.2, 0.3).with_couplings(coupling("cam", ["w1", "w2"], lambda a, b: b - sin(a)))
    y, yd = 0.9, 3.0
    q = robot.assemble([y])
    qd = robot.complete(q, [yd])
    c, s = math.cos(y), math.sin(y)
    acceleration = 0.3 * c * s * yd * yd / (0.2 + 0.3 * c * c)
    expected = [acceleration, c * acceleration - s * yd * yd]
    close(robot.forward_dynamics(q, qd, [0.0, 0.0]), expected, 1e-12)


def test_a_motion_through_a_cam_keeps_its_energy() -> None:
    robot = wheels(0.2, 0.3).with_couplings(coupling("cam", ["w1", "w2"], lambda a, b: b - sin(a)))
    q = robot.assemble([0.9])
    qd = robot.complete(q, [3.0])
    motion = chasles.simulate(robot, q, qd, duration=1.0, dt=2.5e-3)
    energy = 0.1 * motion.qd[:, 0] ** 2 + 0.15 * motion.qd[:, 1] ** 2
    close(energy, np.full(len(energy), energy[0]), 1e-9)
    close(motion.q[:, 1], np.sin(motion.q[:, 0]), 1e-12)


def test_maximal_coordinates_of_geared_wheels() -> None:
    """The acceleration satisfies (0.2 + 4 * 0.3) qdd1 = tau1 + 2 tau2."""
    robot = wheels(0.2, 0.3).with_couplings(gear("belt", "w2", {"w1": 2.0}))
    tau = np.array([0.5, 0.7])
    qdd, multipliers = chasles.maximal_dynamics(robot, np.zeros(2), np.zeros(2), tau)
    close(qdd, np.array([1.9, 3.8]) / 1.4, 1e-12)
    close(tau + robot.loop_matrix(np.zeros(2)).T @ multipliers, [0.2, 0.3] * qdd, 1e-12)


# Constraint equations ----------------------------------------------------------------------------


def mixed() -> Robot:
    """Return a four-bar with a geared motor and a cylindrical joint.

    The coordinates of the cylindrical joint are coupled to each other and to the rocker.
    """
    source = chasles.robots.four_bar().model.source
    return Robot(
        replace(
            source,
            links=(
                *source.links,
                *bodies(motor=cylinder(0.1, 0.02, 0.1, 2), nut=box(0.2, (0.1,) * 3)),
            ),
            joints=(
                *source.joints,
                hinge("motor", "base", "motor", 0.0),
                JointData("nut", "cylindrical", "base", "nut"),
            ),
            couplings=(
                gear("box", "motor", {"crank": 20.0}, 0.5),
                gear("screw", "nut[1]", {"nut[0]": 0.002}),
                coupling(
                    "cam", ["nut[0]", "rocker"], lambda n, r: n * sqrt(1.0 + n * n) - 2.0 * sin(r)
                ),
            ),
        )
    )


@pytest.mark.parametrize("backend", TARGETS)
def test_rows_follow_those_of_the_loops(backend: str) -> None:
    """Coupling rows of the matrix and the bias are derivatives of the residual.

    The bias is -d(matrix)/dt qd. The rows of couplings follow those of loops.
    """
    robot, loops = mixed(), chasles.robots.four_bar()
    residual, matrix, bias = (
        chasles.compile(robot, f"loop_{what}", backend=backend)
        for what in ("residual", "matrix", "bias")
    )
    q, qd = RNG.normal(size=(2, robot.nv))
    crank, rocker, motor, turn, slide = q[0], q[2], *q[3:]
    assert residual(q).shape == (8,)
    np.testing.assert_allclose(residual(q)[:5], loops.loop_residual(q[:3]), atol=1e-14)
    by_hand = [
        motor - 20.0 * crank - 0.5,
        slide - 0.002 * turn,
        turn * math.sqrt(1.0 + turn * turn) - 2.0 * math.sin(rocker),
    ]
    close(residual(q)[5:], by_hand, 1e-14)
    h = 1e-6
    slopes = np.stack(
        [(residual(q + h * e) - residual(q - h * e)) / (2 * h) for e in np.eye(6)], -1
    )
    close(matrix(q)[5:], slopes[5:], 1e-9)
    rate = (matrix(q + h * qd) - matrix(q - h * qd)) / (2 * h)
    close(bias(q, qd)[5:], -(rate @ qd)[5:], 1e-8)


def test_loops_and_couplings_together() -> None:
    """All methods satisfy the equation of motion of a mechanism with one degree of freedom."""
    robot = mixed()
    assert int(robot.mobility()) == 1
    assert robot.mobility().redundant == (("pin", 3), ("box", 0), ("screw", 0), ("cam", 0))
    robot = robot.with_independent("crank")
    q = robot.assemble([[0.4], [2.0]])
    qd = robot.complete(q, [[1.0], [-2.0]])
    tau = RNG.normal(size=(2, robot.nv))
    A, h = robot.loop_matrix(q), robot.bias_forces(q, qd)
    for method in ("multipliers", "direct", "minimal"):
        qdd, force = robot.constrained_dynamics(q, qd, tau, method=method)
        left = np.einsum("nij,nj->ni", robot.mass_matrix(q), qdd) + h - tau
        close(left, np.einsum("nri,nr->ni", A, force), 1e-10)
        close(np.einsum("nri,ni->nr", A, qdd), robot.loop_bias(q, qd), 1e-9, scale=1.0)
    assert robot.loop_forces(q, force).shape == (2, 1, 6)


def test_stabilization_lets_errors_of_couplings_decay() -> None:
    robot = wheels(0.2, 0.3).with_couplings(gear("belt", "w2", {"w1": 2.0}))
    q, qd = np.array([0.1, 0.2 + 1e-7]), np.array([1.0, 2.0 + 1e-3])
    qdd, _ = robot.constrained_dynamics(q, qd, np.zeros(2), stabilization=0.1)
    close(qdd[1] - 2.0 * qdd[0], -2.0 / 0.1 * 1e-3 - 1e-7 / 0.1**2, 1e-9)


# Redundant and faulty couplings ------------------------------------------------------------------


def test_redundant_couplings_are_named() -> None:
    robot = wheels(0.2, 0.3, 0.4).with_couplings(
        gear("a", "w2", {"w1": 2.0}), gear("b", "w3", {"w2": 3.0}), gear("c", "w3", {"w1": 6.0})
    )
    report = robot.mobility()
    assert report == 1
    assert report.redundant == (("a", 0), ("b", 0), ("c", 1))
    assert "rank 2 of 3 equations (redundant: 1 of coupling 'c';" in str(report)
    qdd = robot.forward_dynamics(robot.assemble([0.1]), [0.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    close(qdd, np.array([1.0, 2.0, 6.0]) / (0.2 + 4.0 * 0.3 + 36.0 * 0.4), 1e-12)


def test_couplings_that_contradict_each_other() -> None:
    robot = wheels(0.2, 0.3).with_couplings(
        gear("a", "w2", {"w1": 2.0}), gear("b", "w2", {"w1": 2.0}, 1.0)
    )
    with raises("E-LOOP-002"):
        robot.mobility()


def test_a_position_where_a_coupling_does_not_hold() -> None:
    robot = wheels(0.2, 0.3).with_couplings(gear("belt", "w2", {"w1": 2.0}))
    with raises("E-LOOP-021", "'belt'", "0.05"):
        robot.complete([0.0, 0.1], [1.0])
    with raises("E-LOOP-021", "'belt'"):
        robot.forward_dynamics([0.0, 0.1], [1.0, 2.0], [0.0, 0.0])


def test_a_singular_position_names_the_coupling() -> None:
    robot = wheels(0.2, 0.3).with_couplings(
        coupling("crosshead", ["w1", "w2"], lambda a, b: b - cos(a))
    )
    other = robot.with_independent("w2")
    with raises("E-LOOP-011", "'w1'", "'crosshead'"):
        other.complete([0.0, 1.0], [1.0])


def test_a_coupling_that_has_values_in_a_part_of_space() -> None:
    """Searches may start at positions where w2 = sqrt(w1 - 2) is undefined."""
    robot = wheels(0.2, 0.3).with_couplings(
        coupling("cam", ["w1", "w2"], lambda a, b: b - sqrt(a - 2.0))
    )
    assert int(robot.mobility()) == 1
    y = np.array([[3.0], [4.5]])
    q = robot.with_independent("w1").assemble(y, guess=[3.0, 1.0])
    close(q, np.concatenate([y, np.sqrt(y - 2.0)], axis=-1), 1e-13)
    text = "E-LOOP-001 (1,)"
    with raises(text):
        robot.with_independent("w1").assemble([[3.0], [1.0]], guess=[3.0, 1.0])


def test_a_coupling_that_has_no_value_near_neutral() -> None:
    robot = wheels(0.2, 0.3).with_couplings(
        coupling("cam", ["w1", "w2"], lambda a, b, t: b - sqrt(a - 4.0 + t))
    )
    with raises("E-LOOP-002", "'cam'"):
        robot.mobility()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gear("g", "w2", {"w9": 1.0}), "E-MODEL-004 'g'"),
        (lambda: gear("g", "w2", {"w1": math.nan}), "E-LOOP-030 'w1'"),
        (lambda: gear("g", "w2", {"w1": 1.0}, math.inf), "E-LOOP-030"),
        (lambda: gear("g", "w2", {"w2": 1.0}), "E-LOOP-025"),
        (lambda: gear("w1", "w2", {"w1": 1.0}), "E-MODEL-051 'w1'"),
        (lambda: coupling("g", [], lambda: 0.0), "E-LOOP-025"),
        (lambda: coupling("g", ["w1"], lambda a: [a, "b"]), "E-LOOP-027"),
        (lambda: coupling("g", ["w1"], lambda a: 3.0), "E-LOOP-028 'g'"),
    ],
)
def test_bad_couplings(make: Callable[[], Any], message: str) -> None:
    with raises(message):
        wheels(0.2, 0.3).with_couplings(make())


def test_coordinates_of_joints_with_several_are_named_in_the_remedy() -> None:
    source = Description(
        "ball",
        bodies(base=box(1.0, (1.0, 1.0, 1.0)), ball=box(1.0, (0.1, 0.2, 0.3))),
        (JointData("ball", "spherical", "base", "ball"),),
        couplings=(coupling("no", ["ball[0]"], lambda x: x),),
    )
    with raises("E-MODEL-004", "'ball[0]'", "'ball[qx]'"):
        Robot(source)


def test_mimic_chains_that_lead_nowhere() -> None:
    source = arm(Mimic("third"))
    loop = replace(source.joints[2], mimic=Mimic("second"))
    with raises("E-MODEL-017"):
        Robot(replace(source, joints=(*source.joints[:2], loop)))
    with raises("E-MODEL-016", "'second'", "'fourth'"):
        Robot(arm(Mimic("fourth")))


# Edits -------------------------------------------------------------------------------------------


def test_edits_keep_couplings() -> None:
    robot = mixed().with_independent("crank")
    y = robot.assemble([0.7])
    for same in (pickle.loads(pickle.dumps(robot)), robot.with_gravity((0.0, 0.0, 0.0))):
        assert same.couplings == ("box", "screw", "cam")
        np.testing.assert_allclose(same.assemble([0.7], guess=y), y, atol=1e-13)


def test_a_locked_joint_is_a_number_in_its_couplings() -> None:
    robot = wheels(0.2, 0.3, 0.5).with_couplings(gear("ring", "w3", {"w1": 0.5, "w2": 0.5}))
    locked = robot.lock({"w2": 1.0})
    assert locked.assemble([0.4])[1] == pytest.approx(0.7, abs=1e-13)
    assert robot.lock({"w1": 1.0, "w2": 1.0, "w3": 1.0}).couplings == ()
    with raises("E-MODEL-022", "'ring'", "'w3'", "'w1'", "'w2'"):
        robot.lock({"w1": 1.0, "w2": 1.0, "w3": 0.0})


def test_subtrees_keep_couplings_of_their_own() -> None:
    source = arm(None)
    robot = Robot(replace(source, couplings=(gear("belt", "third", {"second": 2.0}),)))
    assert robot.subtree("a").couplings == ("belt",)
    part = robot.subtree("b")
    assert part.couplings == ()
    assert part.notes == ("coupling 'belt' is removed: it leads out of the subtree of 'b'",)


def test_a_coupled_arm_has_no_table() -> None:
    robot = Robot(arm(None)).with_couplings(gear("belt", "third", {"second": 2.0}))
    with raises("E-DH-009", "'belt'"):
        chasles.to_dh(robot)
