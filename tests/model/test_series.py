"""Replace joint types by simpler joints in series, with the same motion and coordinates."""

from dataclasses import replace

import numpy as np
import pytest
from same_motion import assert_same_motion
from support import direct

import chasles
from chasles.expr import sin
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import matrix_from_vector
from chasles.mathematics.spatial import Transform
from chasles.model import Description, JointData, LinkData, coupling
from chasles.model.graph import at_children, in_series
from chasles.robots._solids import box

SPLIT = {"universal": 2, "cylindrical": 2, "yaw_pitch_roll": 3, "helical": 2, "rack_and_pinion": 2}
"""Number of simple joints in series that replace each joint type."""

POSE = Transform.from_pose(matrix_from_vector(Vector.of(0.3, -0.5, 0.9)), Vector.of(0.1, 0.2, 0.3))


def one_joint(kind: str, **options: object) -> Description:
    """Return a link on a joint of some type, with a joint frame on each side."""
    link = LinkData("a", box(2.0, (0.1, 0.2, 0.3), Vector.of(0.1, -0.1, 0.2)))
    numbers = {"pitch": 0.2, "radius": 0.3, "damping": 0.4, "armature": 0.5} | options
    axis = Vector.of(0.6, 0.0, 0.8)
    joint = JointData("j", kind, None, "a", POSE, axis, child_pose=POSE, **numbers)
    return Description("one", (link,), (joint,))


@pytest.mark.parametrize("polarity", [False, True], ids=["forward", "reversed"])
@pytest.mark.parametrize("kind", SPLIT)
def test_joints_in_series(kind: str, polarity: bool) -> None:
    source = one_joint(kind, reversed=polarity)
    split = in_series(source)
    assert len(split.joints) == SPLIT[kind]
    assert {joint.kind for joint in split.joints} <= {"revolute", "prismatic"}
    assert not any(joint.reversed for joint in split.joints)
    assert_same_motion(chasles.Robot(source), chasles.Robot(split), 1e-14)


def test_coordinates_keep_their_order() -> None:
    """Coordinates keep their order for every joint type, also reversed.

    Only joints with several degrees of freedom get new names.
    """
    robot = chasles.robots.random_tree(16, 5, mimics=True)
    joints = [
        replace(j, reversed=j.kind not in ("fixed", "free")) for j in robot.model.source.joints
    ]
    robot = chasles.Robot(replace(robot.model.source, joints=tuple(joints)))
    again = chasles.Robot(in_series(robot.model.source))
    q = robot.random(seed=3)
    expected = direct(robot.model, "mass_matrix", q)
    np.testing.assert_allclose(direct(again.model, "mass_matrix", q), expected, atol=1e-13)
    several = {name for name in robot.joints if robot.joint(name).kind in tuple(SPLIT)[:3]}
    assert set(robot.joints) - set(again.joints) == several


def test_couplings_and_chosen_freedoms_keep_their_names() -> None:
    source = one_joint("universal")
    cam = coupling("cam", ["j[0]", "j[1]"], lambda a, b: b - sin(a))
    source = replace(source, couplings=(cam,), independent=("j[0]",))
    assert chasles.Robot(in_series(source)).independent == ("j[0]",)


def test_a_child_is_fixed_where_the_joints_frame_is_another() -> None:
    source = one_joint("spherical")
    moved = at_children(source, lambda joint: not joint.child_pose.is_identity)
    assert [joint.kind for joint in moved.joints] == ["spherical", "fixed"]
    assert all(joint.child_pose.is_identity for joint in moved.joints)
    assert_same_motion(chasles.Robot(source), chasles.Robot(moved), 1e-14)
    assert at_children(source, lambda joint: False) == source
