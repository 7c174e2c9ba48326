"""Different mechanisms with the same equation of motion: regrouped inertias and geared rotors.

The source is Featherstone (2008), sections 9.6 and 9.7. Rounding errors are at most 1e-11.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support import Floats, close, raises, relative, state, tree

import chasles
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform
from chasles.model import Description, JointData, LinkData, Mimic
from chasles.robots import four_bar, planar, puma560, quadruped, stanford_arm
from chasles.robots._solids import box

ROBOTS: dict[str, Callable[[], chasles.Robot]] = {
    "puma560": puma560,
    "stanford_arm": stanford_arm,
    "quadruped": quadruped,
    "tree": lambda: tree(12, 3, floating=False),
    "mimics": lambda: tree(12, 5, floating=True, mimics=True),
    "four_bar": four_bar,
}


def zeros(robot: chasles.Robot) -> int:
    """Return the number of inertial parameters that are zero relative to the largest one."""
    found = np.abs(
        [x for b in robot.model.bodies for x in (b.inertia.m, *b.inertia.h, *b.inertia.I)]
    )
    return int(np.count_nonzero(found < 1e-14 * np.max(found)))


@pytest.mark.parametrize("name", ROBOTS)
def test_simplified_robots_move_the_same(name: str) -> None:
    robot = ROBOTS[name]()
    simple = robot.simplified()
    assert zeros(simple) > zeros(robot)
    q, qd, qdd = state(robot, 1)
    a, b = Floats(robot), Floats(simple)
    close(b.inverse_dynamics(q, qd, qdd), a.inverse_dynamics(q, qd, qdd), 1e-11)
    close(b.mass_matrix(q), a.mass_matrix(q), 1e-11)
    close(b.gravity_forces(q), a.gravity_forces(q), 1e-11)
    frame = robot.frames[-1]
    pose = a.forward_kinematics(q, frame=frame)
    close(b.forward_kinematics(q, frame=frame), pose, 1e-15)
    assert (simple.joints, simple.frames, simple.bodies) == (
        robot.joints,
        robot.frames,
        robot.bodies,
    )


def test_what_does_not_stay() -> None:
    """Simplification changes joint reactions, and the momentum unless the base floats."""
    robot = stanford_arm()
    simple = robot.simplified()
    q, qd, qdd = state(robot, 2)
    a, b = Floats(robot), Floats(simple)
    assert relative(b.joint_reactions(q, qd, qdd), a.joint_reactions(q, qd, qdd)) > 1e-2
    assert relative(b.momentum(q, qd), a.momentum(q, qd)) > 1e-2
    close(b.kinetic_energy(q, qd), a.kinetic_energy(q, qd), 1e-11)
    walker = quadruped()
    q, qd, _ = state(walker, 2)
    close(Floats(walker.simplified()).momentum(q, qd), Floats(walker).momentum(q, qd), 1e-11)


def test_no_mass_has_no_centre() -> None:
    """A simplified arm has no center of mass if all its mass has moved into the base."""
    simple = puma560().simplified()
    q, qd, _ = state(simple, 3)
    with raises("E-CALL-001"):
        simple.center_of_mass(q)
    with raises("E-CALL-001"):
        simple.momentum(q, qd)
    assert np.all(np.isfinite(simple.momentum(q, qd, at="world")))


def test_simplifying_twice_changes_nothing() -> None:
    simple = puma560().simplified()
    assert any("regrouped" in note for note in simple.notes)
    assert zeros(simple.simplified()) == zeros(simple)
    close(simple.simplified().inertial_parameters(), simple.inertial_parameters(), 1e-14)


def test_equivalence_is_noticed_and_missed() -> None:
    robot = chasles.robots.general_chain(2)
    assert robot.is_equivalent(robot.simplified())
    assert not robot.is_equivalent(robot.attach(robot.frames[-1], mass=1e-3))
    assert not robot.is_equivalent(robot.with_gravity((0.0, 0.0, -9.80)))
    assert not robot.is_equivalent(planar(2))


def test_joints_of_two_names_and_mechanisms_that_rest_are_equivalent() -> None:
    """Continuous and revolute joints are equivalent; other gravity makes a robot different.

    A mechanism whose joints are all driven is equivalent to itself.
    """
    for robot in (planar(2), chasles.robots.four_bar()):
        source = robot.model.source
        joints = tuple(replace(joint, kind="continuous") for joint in source.joints)
        assert robot.is_equivalent(chasles.Robot(replace(source, joints=joints)))
        afloat = replace(source, joints=joints, gravity=Vector.zero())
        assert not robot.is_equivalent(chasles.Robot(afloat))
    bars = chasles.robots.four_bar(1.0, 0.5, 1.0, 0.5)
    rests = bars.drive(dict.fromkeys(bars.joints, lambda t: 0.0 * t)).at_time(0.0)
    assert rests.mobility() == 0
    assert rests.is_equivalent(rests)


def test_fewer_operations() -> None:
    """Named methods do not simplify the robot, so simplified robots need fewer operations."""
    robot = puma560()
    before, after = (
        chasles.cost(r, "inverse_dynamics", method="spatial") for r in (robot, robot.simplified())
    )
    assert after.flops < 0.75 * before.flops


# Gears -----------------------------------------------------------------------------------------


def geared_arm(first: float, second: float) -> Description:
    """Return two links, each turned through a gear by a rotor on the previous link."""
    link, rotor = box(2.0, (0.5, 0.1, 0.1), Vector.of(0.25, 0.0, 0.0)), box(0.3, (0.05, 0.05, 0.08))
    elbow = Transform(Rotation(), Vector.of(0.5, 0.0, 0.0))
    y = Vector.of(0.0, 1.0, 0.0)
    names = ("base", "link1", "rotor1", "link2", "rotor2")
    joints = (
        JointData("joint1", "revolute", "base", "link1", axis=y),
        JointData("motor1", "revolute", "base", "rotor1", axis=y, mimic=Mimic("joint1", first)),
        JointData("joint2", "revolute", "link1", "link2", elbow, axis=y),
        JointData("motor2", "revolute", "link1", "rotor2", axis=y, mimic=Mimic("joint2", second)),
    )
    links = tuple(LinkData(n, rotor if n.startswith("rotor") else link) for n in names)
    return Description("geared arm", links, joints)


def test_geared_arm() -> None:
    """Mass matrix of section 9.6: H_G = [[H11 + r1^2 H22, H13 + r2 H14], [., H33 + r2^2 H44]]."""
    r1, r2 = 40.0, -25.0
    source = geared_arm(r1, r2)
    y = np.array([0.3, 0.9])
    H = Floats(chasles.Robot(source, mimic=False)).mass_matrix([y[0], r1 * y[0], y[1], r2 * y[1]])
    between = H[0, 2] + r2 * H[0, 3]
    expected = [[H[0, 0] + r1**2 * H[1, 1], between], [between, H[2, 2] + r2**2 * H[3, 3]]]
    robot = chasles.Robot(source)
    close(Floats(robot).mass_matrix(y), expected, 1e-13)
    assert not np.any(H[1, [0, 2, 3]])
    assert H[2, 3] == 0.0
    assert robot.is_equivalent(robot.simplified())
