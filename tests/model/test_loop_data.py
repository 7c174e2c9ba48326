"""Loops in a description: validation, edits, and the contract of loop joints."""

import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation, matrix_from_vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import (
    JOINTS,
    LOOP_JOINTS,
    WORLD,
    Joint,
    JointData,
    LinkData,
    LoopData,
    Mimic,
    build,
)
from chasles.robots.mechanisms import four_bar, slider_crank


def joint_of(kind: str) -> Joint:
    """Return a loop joint of this type from a model."""
    loop = LoopData("loop", kind, "base", "guide", pitch=0.3, radius=0.3)
    return build(replace(slider_crank(), loops=(loop,))).loops[0].joint


# Contract of loop joints (see also test_joints.py) -----------------------------------------------


def test_every_joint_and_the_weld_can_close_a_loop() -> None:
    """Every joint type can close a loop, except a rolling sphere, which constrains velocities."""
    assert set(LOOP_JOINTS) == {"fixed", *JOINTS} - {"rolling"}


@pytest.mark.parametrize("kind", ["helical", "rack_and_pinion"])
def test_what_travels_as_it_turns_knows_its_turns(kind: str) -> None:
    joint = joint_of(kind)
    assert joint.fit(joint.motion(Vector.of(20.0)))[0] == pytest.approx(20.0)


# The model ---------------------------------------------------------------------------------------


def test_the_way_around_a_loop() -> None:
    model = build(four_bar())
    (loop,) = model.loops
    names = {model.bodies[i].name: sign for i, sign in loop.path}
    assert names == {"crank": -1.0, "coupler": -1.0, "rocker": 1.0}
    assert (loop.root, loop.rows, model.loop_rows) == (WORLD, 5, 5)


def test_a_loop_starts_where_its_branches_part() -> None:
    """Joints that both branches share are not part of the loop."""
    source = four_bar()
    raised = replace(
        source,
        links=(LinkData("ground", RigidInertia.zero()), *source.links),
        joints=(JointData("lift", "prismatic", "ground", "base", armature=1.0), *source.joints),
    )
    model = build(raised)
    (loop,) = model.loops
    assert model.bodies[loop.root].name == "base"
    robot = chasles.Robot(raised)
    A = robot.loop_matrix(robot.random(seed=1))
    assert not A[:, robot.velocity_slice("lift")].any()


def test_the_axis_turns_both_frames() -> None:
    """A loop joint with another axis, and frames rotated accordingly, gives the same four-bar."""
    turn = Transform.from_pose(matrix_from_vector(Vector.of(-math.pi / 2, 0.0, 0.0)), Vector.zero())
    source = four_bar()
    loop = source.loops[0]

    def turned(pose: Transform) -> Transform:
        return Transform(turn.E, pose.r)

    other = replace(
        loop,
        axis=Vector.of(0.0, -1.0, 0.0),
        pose=turned(loop.pose),
        child_pose=turned(loop.child_pose),
    )
    a, b = chasles.Robot(source), chasles.Robot(replace(source, loops=(other,)))
    q = a.assemble([0.8], guess=[0.8, -0.5, 1.5])
    np.testing.assert_allclose(b.assemble([0.8], guess=[0.8, -0.5, 1.5]), q, atol=1e-14)
    assert b.mobility(q).rank == a.mobility(q).rank == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parent": "no"}, "E-MODEL-047 'pin'"),
        ({"child": "no"}, "E-MODEL-047 'pin'"),
        ({"child": "coupler"}, "E-MODEL-048 'pin'"),
        ({"kind": "glue"}, "E-MODEL-043 'pin'"),
        ({"name": "crank"}, "E-MODEL-046 'crank'"),
        ({"mimic": Mimic("crank")}, "E-MODEL-049 'pin'"),
        ({"axis": Vector.zero()}, "E-MODEL-012 'pin'"),
        ({"child": "no", "where": "m.toml:7"}, "E-MODEL-047 'pin'"),
    ],
)
def test_bad_loops(change: dict[str, Any], message: str) -> None:
    source = four_bar()
    with raises(message):
        build(replace(source, loops=(replace(source.loops[0], **change),)))


def test_two_loops_of_one_name() -> None:
    source = four_bar()
    with raises("E-MODEL-046"):
        build(replace(source, loops=source.loops * 2))


# Edits -------------------------------------------------------------------------------------------


def test_edits_keep_loops() -> None:
    robot = chasles.robots.four_bar().with_independent("rocker")
    for changed in (
        robot.with_gravity((0.0, 0.0, 0.0)),
        robot.attach("coupler", mass=1.0),
        pickle.loads(pickle.dumps(robot)),
    ):
        assert changed.loops == ("pin",)
        assert changed.independent == ("rocker",)


def test_mimics_in_a_circle_are_refused() -> None:
    source = chasles.robots.four_bar().model.source
    leader = {"crank": Mimic("coupler"), "coupler": Mimic("rocker", 2.0), "rocker": Mimic("crank")}
    joints = tuple(replace(joint, mimic=leader[joint.name]) for joint in source.joints)
    text = "E-MODEL-017 'crank'"
    with raises(text):
        chasles.Robot(replace(source, joints=joints))


def test_locking_a_joint_of_a_loop_locks_the_mechanism() -> None:
    locked = chasles.robots.four_bar().with_independent("rocker").lock({"crank": 0.8})
    assert locked.joints == ("coupler", "rocker")
    assert int(locked.mobility()) == 0
    assert locked.independent == ()
    free = chasles.robots.four_bar().assemble([0.8], guess=[0.8, -0.5, 1.5])
    np.testing.assert_allclose(locked.assemble([], guess=[-0.5, 1.5]), free[1:], atol=1e-13)


def test_subtrees_keep_whole_loops_and_note_cut_ones() -> None:
    robot = chasles.robots.four_bar()
    whole = robot.subtree("base", floating=True)
    assert whole.loops == ("pin",)
    assert int(whole.mobility()) == 7
    part = robot.subtree("crank")
    assert part.loops == ()
    assert part.notes == ("loop 'pin' is removed: it leads out of the subtree of 'crank'",)


def test_a_subtree_without_the_loop_says_nothing() -> None:
    source = four_bar()
    more = replace(
        source,
        links=(*source.links, LinkData("arm", RigidInertia.zero())),
        joints=(*source.joints, JointData("swing", "revolute", "base", "arm", armature=1.0)),
    )
    part = chasles.Robot(more).subtree("arm")
    assert (part.loops, part.notes) == ((), ())


def test_a_loop_to_the_world() -> None:
    """A loop joint without a parent link has the world as its predecessor."""
    source = slider_crank()
    to_world = replace(source, loops=(replace(source.loops[0], parent=None),))
    q = np.array([0.3, -0.5, 0.2, 3.0])
    a, b = (chasles.Robot(s).loop_residual(q) for s in (source, to_world))
    np.testing.assert_array_equal(a, b)
    cut = chasles.Robot(to_world).subtree("base", floating=True)
    assert cut.notes == ("loop 'closure' is removed: it leads out of the subtree of 'base'",)


# Built-in mechanisms -----------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_lengths_are_lengths(bad: float) -> None:
    with raises("E-ROBOT-030", "'slider_crank'"):
        slider_crank(1.0, bad)
    with raises("E-ROBOT-030", "'four_bar'"):
        four_bar(rocker=bad)


def test_bars_must_meet() -> None:
    with raises("E-ROBOT-028"):
        four_bar(9.0, 1.0, 2.0, 3.0)


def test_slider_crank_matrices_are_legnani() -> None:
    """The pose is the product of M01, M12, M23 and M34 in Legnani II, section 5.

    Frame i of the paper is at the end of link i.
    """
    l1, l2, (a1, a2, a3, a) = 1.0, 3.0, (0.4, -0.6, 0.3, 3.5)

    def plane(angle: float, x: float) -> np.ndarray:
        c, s = math.cos(angle), math.sin(angle)
        return np.array([[c, -s, 0, x * c], [s, c, 0, x * s], [0, 0, 1, 0], [0, 0, 0, 1]])

    M34 = np.eye(4)
    M34[0, 3] = -a
    M04 = plane(a1, l1) @ plane(a2, l2) @ plane(a3, 0.0) @ M34
    robot = chasles.robots.slider_crank(l1, l2)
    found = robot.forward_kinematics([a1, a2, a3, a], frame="guide")
    np.testing.assert_allclose(found, M04, atol=1e-15)


def test_numbers_that_are_none_are_named() -> None:
    source = chasles.robots.slider_crank().model.source
    lost = Transform(Rotation(), Vector.of(math.nan, 0.0, 0.0))
    loop = replace(source.loops[0], child_pose=lost)
    with raises("E-MODEL-041", "'closure'"):
        chasles.Robot(replace(source, loops=(loop,)))
    joints = (replace(source.joints[0], pitch=math.inf), *source.joints[1:])
    with raises("E-MODEL-041", "'alpha1'"):
        chasles.Robot(replace(source, joints=joints))
