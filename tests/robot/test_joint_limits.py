"""Joint limits as arrays for all joint types and real files, in random and neutral positions."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import raises

import chasles
from chasles.formats import registry
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.model import JOINTS, Description, JointData, LinkData
from chasles.model.description import Limits

UNIFORM = ("universal", "yaw_pitch_roll")
"""Joint types with several coordinates, all angles; each coordinate has the joint's limits."""


def single(kind: str, limits: Limits) -> chasles.Robot:
    """Return a robot with one joint."""
    inertia = RigidInertia.from_center(1.0, Vector.zero(), Symmetric(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    numbers = dict.fromkeys(JOINTS[kind].data, 0.1)
    joint = JointData("j", kind, None, "a", limits=limits, **numbers)  # type: ignore[arg-type]
    return chasles.Robot(Description("r", (LinkData("a", inertia),), (joint,)))


@pytest.mark.parametrize("kind", JOINTS)
def test_every_joint_type(kind: str) -> None:
    """Limits apply to joints whose coordinates are all angles or all lengths."""
    robot = single(kind, Limits(0.2, 0.7, 3.0, 4.0))
    rng = np.random.default_rng(1)
    limits, bounded = robot.limits, robot.nq == 1 or kind in UNIFORM
    assert limits.lower.shape == limits.upper.shape == (robot.nq,)
    assert limits.velocity.shape == limits.effort.shape == (robot.nv,)
    wanted = (0.2, 0.7, 3.0, 4.0) if bounded else (-np.inf, np.inf, np.inf, np.inf)
    for found, value in zip(vars(limits).values(), wanted, strict=True):
        assert np.all(found == value), kind
    q = robot.random(rng, size=200)
    assert robot.within(q).all()
    wild = robot.integrate(q, 5.0 * rng.normal(size=(200, robot.nv)))
    inside = robot.clip(wild)
    assert robot.within(inside).all()
    assert robot.within(wild).all() == (not bounded)
    np.testing.assert_array_equal(robot.clip(inside), inside)
    np.testing.assert_array_equal(inside[robot.within(wild)], wild[robot.within(wild)])
    assert robot.within(robot.neutral(within=True))


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "helical"])
@pytest.mark.parametrize(("low", "high"), [(5.0, np.inf), (-np.inf, -5.0)])
def test_random_postures_keep_a_single_limit(kind: str, low: float, high: float) -> None:
    robot = single(kind, Limits(low, high))
    q = robot.random(0, size=500)
    assert robot.within(q).all()
    np.testing.assert_allclose(np.ptp(q), 2.0 if kind == "prismatic" else 2 * np.pi, rtol=0.05)
    assert robot.neutral(within=True) == pytest.approx(np.sign(low + high) * 5.0)


def test_within_is_exact_at_limits_and_has_a_tolerance() -> None:
    robot = single("revolute", Limits(-1.0, 2.0))
    q = [[-1.0], [2.0], [np.nextafter(2.0, 3.0)], [-1.0 - 1e-9], [np.nan]]
    np.testing.assert_array_equal(robot.within(q), [True, True, False, False, False])
    np.testing.assert_array_equal(robot.within(q, tolerance=1e-8), [True, True, True, True, False])
    assert robot.within([0.0]) is np.True_
    assert robot.within(np.zeros((2, 0, 1))).shape == (2, 0)


def test_what_is_not_a_posture_is_refused() -> None:
    robot = single("revolute", Limits(-1.0, 2.0))
    with raises("E-CALL-056"):
        robot.clip([0.0, 1.0])
    with raises("E-CALL-113"):
        robot.within("a")
    for tolerance in (-1.0, np.nan, None, True):
        with raises("E-ROBOT-050"):
            robot.within([0.0], tolerance=tolerance)


def test_mimic_followers_have_no_limits_of_their_own() -> None:
    source = chasles.robots.random_tree(12, 5, mimics=True).model.source
    joints = tuple(replace(j, limits=Limits(-0.1, 0.2)) for j in source.joints)
    robot = chasles.Robot(replace(source, joints=joints))
    assert robot.limits.lower.shape == (robot.nq,)
    assert robot.within(robot.random(3, size=50)).all()


def files() -> list[Path]:
    """Return files of installed arms, legged robots, a humanoid, and a hand with mimic joints."""
    wanted = ("panda", "ur5_robot", "talos_reduced", "solo12", "allegro_hand_right", "icub_reduced")
    return [robot.path for robot in registry.installed() if robot.name in wanted]


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_real_files_have_pinocchios_limits(path: Path) -> None:
    """Limits equal Pinocchio's, except for continuous joints, which have two coordinates there."""
    pin = pytest.importorskip("pinocchio")
    robot = chasles.load(path, mimic=False)
    theirs = pin.buildModelFromUrdf(str(path))
    for name in robot.joints:
        joint = theirs.joints[theirs.getJointId(name)]
        if joint.nq != 1 or joint.nv != 1:
            continue
        k, v = robot.position_slice(name).start, robot.velocity_slice(name).start
        assert robot.limits.lower[k] == theirs.lowerPositionLimit[joint.idx_q]
        assert robot.limits.upper[k] == theirs.upperPositionLimit[joint.idx_q]
        assert robot.limits.velocity[v] == theirs.velocityLimit[joint.idx_v]
        assert robot.limits.effort[v] == theirs.effortLimit[joint.idx_v]
    assert robot.within(robot.random(5, size=100)).all()
    assert robot.within(robot.neutral(within=True))
