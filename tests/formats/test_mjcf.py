"""MJCF: comparison with MuJoCo on the same files, refusals, and limits."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from support import direct, raises, relative

import chasles
from chasles import conventions
from chasles.formats import mjcf, mjcf_source
from chasles.mathematics.linear import Vector

TOLERANCE = 1e-12  # rounding in both; at most 4e-14 for models of gymnasium and dm_control

SPHERE = '<geom size="0.1" mass="1"/>'
"""Shape that gives a body mass."""

TREES = {
    "every joint type": f"""
        <option gravity="1 2 -3"/>
        <worldbody>
          <body name="ship" pos="1 2 3" euler="10 20 30"><freejoint name="root"/>
            <geom type="box" size="0.3 0.2 0.1" pos="0.1 0 0"/>
            <body name="arm" pos="0.3 0.1 0" quat="1 2 3 4">
              <joint name="shoulder" type="ball" pos="0.1 -0.2 0.3" armature="0.02"/>
              <geom type="capsule" size="0.05" fromto="0 0 0 0.1 0.2 0.3"/>
              <body name="fore" pos="0 0 0.5" axisangle="1 1 0 50">
                <joint name="elbow" type="hinge" axis="1 2 3" pos="0.05 0 0.1" armature="0.1"/>
                {SPHERE}
                <body name="hand" xyaxes="0 1 0 -1 0 0">
                  <joint name="finger" type="slide" axis="1 0 1" pos="1 2 3"/>
                  <inertial mass="0.5" pos="0.1 0.2 0.3" fullinertia="3 2 4 .1 .2 .3"/>
                </body>
              </body>
            </body>
          </body>
        </worldbody>""",
    "several joints on a body": """
        <worldbody>
          <body name="torso" pos="0 0 1.2">
            <joint name="x" type="slide" axis="1 0 0"/>
            <joint name="z" type="slide" axis="0 0 1" ref="1.2"/>
            <joint name="y" type="hinge" axis="0 1 0" pos="0 0 0.3"/>
            <geom type="capsule" size="0.05 0.2"/>
            <body name="thigh" pos="0 0 -0.2">
              <joint name="twist" axis="0 0 1" pos="0.1 0 -0.1"/>
              <joint name="bend" axis="0 1 0" pos="-0.1 0 -0.2"/>
              <geom type="capsule" size="0.05 0.2" pos="0 0 -0.2"/>
              <body name="shank" pos="0 0 -0.3" euler="0 0 30">
                <joint name="stretch" type="slide" axis="0 1 2"/>
                <joint name="knee" type="ball" pos="0.1 0 0"/>
                <geom type="capsule" size="0.05 0.2" pos="0 0 -0.2"/>
              </body>
            </body>
          </body>
        </worldbody>""",
    "references": f"""
        <compiler angle="radian"/>
        <worldbody>
          <body name="a" pos="0.1 0.2 0.3"><joint name="turn" axis="1 1 0" ref="0.7" pos="0 0.1 0"/>
            {SPHERE}
            <body name="b" pos="0.5 0 0"><joint name="slide" type="slide" axis="0 3 4" ref="-0.4"/>
              {SPHERE}
              <body name="c" pos="0 0 1"><joint name="last" ref="2"/>{SPHERE}</body>
            </body>
          </body>
        </worldbody>""",
    "defaults and frames": f"""
        <compiler autolimits="true"/>
        <default><joint armature="0.3" damping="2"/><default class="thin"><geom mass="0.1"/>
          <joint axis="1 0 0" frictionloss="0.4" range="-30 60"/></default></default>
        <worldbody>
          <frame pos="0 0 1" euler="0 45 0">
            <body name="left"><joint name="l"/>{SPHERE}
              <frame euler="90 0 0" pos="0 1 0">
                <body name="tip" childclass="thin" pos="0.2 0 0">
                  <joint name="t" actuatorfrcrange="-5 5"/><geom size="0.1"/>
                  <site name="eye" pos="1 2 3" quat="1 1 0 0"/></body>
              </frame></body>
          </frame>
          <body name="fixed" pos="0 -1 0" euler="0 0 90">{SPHERE}
            <body name="right"><joint name="r" axis="0 1 1"/>{SPHERE}</body></body>
        </worldbody>""",
    "nameless": f"""
        <worldbody>
          <body><joint/><joint axis="1 0 0"/>{SPHERE}
            <body pos="0 1 0"><joint type="slide"/>{SPHERE}<body/></body></body>
          <body name="body1" pos="1 0 0"><joint name="joint0"/>{SPHERE}</body>
        </worldbody>""",
    "two that float": f"""
        <option><flag gravity="disable"/></option>
        <worldbody>
          <body name="one" pos="0 0 1"><joint name="free1" type="free"/>{SPHERE}
            <body name="arm" pos="0.3 0 0"><joint name="hinge" axis="1 0 0"/>{SPHERE}</body></body>
          <body name="two" pos="0 0 2"><freejoint name="free2"/>{SPHERE}</body>
        </worldbody>""",
}
"""Mechanisms without equality constraints."""


def document(inside: str) -> str:
    return f'<mujoco model="machine">{inside}</mujoco>'


Saved = Callable[[str], Path]


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    """Return a function that writes a text to a file."""

    def save(text: str) -> Path:
        (tmp_path / "machine.xml").write_text(text)
        return tmp_path / "machine.xml"

    return save


class Twin:
    """Robot and MuJoCo model of one file, in the same state."""

    def __init__(self, file: Path, *, mimic: bool = True) -> None:
        self.robot = chasles.load(file, mimic=mimic)
        self.there = mujoco.MjModel.from_xml_path(str(file))
        self.data = mujoco.MjData(self.there)

    def place(self, q: np.ndarray, qd: np.ndarray) -> conventions.Convention:
        """Set MuJoCo to a state of chasles and compute all derived quantities."""
        convention = conventions.mujoco(self.robot)
        self.data.qpos[:] = convention.to_position(q)
        self.data.qvel[:] = convention.to_velocity(q, qd)
        mujoco.mj_forward(self.there, self.data)
        return convention

    def mass_matrix(self) -> np.ndarray:
        M = np.empty((self.there.nv, self.there.nv))
        for row, unit in zip(M, np.eye(self.there.nv), strict=True):
            mujoco.mj_mulM(self.there, self.data, row, unit)
        return M


# Comparison with MuJoCo ------------------------------------------------------------------------


@pytest.mark.parametrize("name", TREES)
def test_trees_are_those_of_mujoco(name: str, saved: Saved) -> None:
    """Poses, mass matrix and bias forces at random states equal MuJoCo's, in its coordinates."""
    twin = Twin(saved(document(TREES[name])))
    model, data, rng = twin.robot.model, twin.data, np.random.default_rng(5)
    bodies = [link.name for link in model.source.links if not link.massless]
    assert len(bodies) == twin.there.nbody
    for _ in range(3):
        q, qd = twin.robot.random(rng), rng.normal(size=twin.robot.nv)
        there = twin.place(q, qd)
        for i, body in enumerate(bodies):
            pose = direct(model, "forward_kinematics", q, frame=body)
            assert relative(pose[:3, 3], data.xpos[i], scale=1.0) < TOLERANCE
            assert relative(pose[:3, :3], data.xmat[i].reshape(3, 3)) < TOLERANCE
        M = there.to_mass_matrix(q, direct(model, "mass_matrix", q))
        assert relative(M, twin.mass_matrix()) < TOLERANCE
        still = there.from_acceleration(data.qpos, data.qvel, np.zeros(twin.there.nv))
        h = direct(model.frictionless(), "inverse_dynamics", q, qd, still)
        assert relative(there.to_effort(q, h), data.qfrc_bias, scale=1e-3) < TOLERANCE


def test_sites_are_frames(saved: Saved) -> None:
    twin = Twin(saved(document(TREES["defaults and frames"])))
    q = np.array([0.3, -0.5, 0.7])
    twin.place(q, np.zeros(3))
    pose = direct(twin.robot.model, "forward_kinematics", q, frame="eye")
    assert relative(pose[:3, 3], twin.data.site("eye").xpos) < TOLERANCE
    assert relative(pose[:3, :3].ravel(), twin.data.site("eye").xmat) < TOLERANCE


def test_joints_keep_their_numbers(saved: Saved) -> None:
    text = document(TREES["defaults and frames"])
    robot = chasles.load(saved(text))
    assert robot.joints == ("l", "t", "r")
    tip, left = robot.joint("t"), robot.joint("l")
    assert (tip.kind, left.kind) == ("revolute", "continuous")
    assert (tip.limits.lower, tip.limits.upper) == pytest.approx((-np.pi / 6, np.pi / 3))
    assert (tip.limits.effort, tip.armature, tip.damping, tip.friction) == (5.0, 0.3, 2.0, 0.4)
    line = text[: text.index('name="t"')].count("\n") + 1
    assert tip.where.endswith(f"machine.xml:{line}")
    assert robot.name == "machine"
    assert tuple(robot.gravity) == (0.0, 0.0, -9.81)


def test_limits_are_of_mujocos_coordinate(saved: Saved) -> None:
    """The coordinate of a joint with `ref` equals `ref` in the pose that the file gives."""
    text = '<joint name="j" type="slide" ref="2" range="1 3"/>'
    body = f'<worldbody><body name="a">{text}{SPHERE}</body></worldbody>'
    robot = chasles.load(saved(document(body)))
    limits = robot.joint("j").limits
    assert (limits.lower, limits.upper) == (1.0, 3.0)
    assert np.allclose(direct(robot.model, "forward_kinematics", [2.0], frame="a"), np.eye(4))


def test_parts_without_a_name_have_mujocos_number(saved: Saved) -> None:
    robot = chasles.load(saved(document(TREES["nameless"])))
    assert robot.joints == ("joint0_1", "joint1", "joint2", "joint0")
    assert robot.bodies == ("world", "body1_1.joint0_1", "body1_1", "body2", "body3", "body1")


def test_massless_links_between_joints_are_no_surprise(saved: Saved) -> None:
    file = saved(document(TREES["several joints on a body"]))
    robot = chasles.load(file, strict=True)
    assert "torso.x" in robot.bodies
    assert robot.notes == (
        f"{file}: contacts of the shapes (3) act only in simulations with contacts='file'",
    )


def test_floating(saved: Saved) -> None:
    """A body fixed to worldbody can be made floating; a floating body is left unchanged."""
    held = f'<worldbody><body name="a" pos="0 0 1">{SPHERE}</body></worldbody>'
    assert chasles.load(saved(document(held))).nv == 0
    assert chasles.load(saved(document(held)), floating=True).joints == ("root_joint",)
    free = held.replace("<geom", "<freejoint/><geom")
    assert chasles.load(saved(document(free)), floating=True).joints == ("joint0",)
    with raises("E-MJCF-001", "'left'", "'fixed'"):
        chasles.load(saved(document(TREES["defaults and frames"])), floating=True)


def test_includes_are_followed(saved: Saved, tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text(
        f'<mujocoinclude><body name="arm"><joint name="j"/>{SPHERE}</body></mujocoinclude>'
    )
    file = saved(document('<worldbody><include file="arm.xml"/></worldbody>'))
    robot = chasles.load(file)
    assert robot.joints == ("j",)
    assert robot.joint("j").where == str(file)


# Equalities ------------------------------------------------------------------------------------

STIFF = 'solref="0.002 1" solimp="0.9999 0.9999 0.001 0.5 2"'

FOUR_BAR = """
    <compiler angle="radian"/>
    <worldbody>
      <body name="crank"><joint name="crank" axis="0 1 0" ref="0.2"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0.2 0 0.2"/>
        <body name="coupler" pos="0.2 0 0.2"><joint name="coupler" axis="0 1 0"/>
          <geom type="capsule" size="0.02" fromto="0 0 0 0.5 0 0.1"/>
          <site name="pin" pos="0.5 0 0.1"/></body></body>
      <body name="rocker" pos="0.6 0 0"><joint name="rocker" axis="0 1 0" pos="0 0 -0.1"/>
        <geom type="capsule" size="0.02" fromto="0 0 -0.1 0.1 0 0.3"/>
        <site name="eye" pos="0.1 0 0.3"/></body>
    </worldbody>"""

ARMS = f"""
    <worldbody>
      <body name="l1"><joint name="l1" axis="0 0 1"/>{SPHERE}
        <body name="l2" pos="0.3 0 0"><joint name="l2" axis="0 1 0"/>{SPHERE}
          <body name="l3" pos="0 0.2 0.3"><joint name="l3" axis="1 0 1"/>{SPHERE}
            <body name="l4" pos="0.3 0 0"><joint name="l4" type="ball"/>{SPHERE}
              <site name="left" pos="0.1 0.2 0" euler="20 0 0"/></body></body></body></body>
      <body name="r1" pos="1 0 0"><joint name="r1" type="ball"/>{SPHERE}
        <body name="r2" pos="0 0.2 0.3" euler="40 0 10"><joint name="r2" axis="0 1 0"/>{SPHERE}
          <site name="right" pos="0.1 0 0" euler="0 30 0"/></body></body>
    </worldbody>"""

GEARS = f"""
    <compiler angle="radian"/>
    <worldbody>
      <body name="a"><joint name="a" ref="0.5"/>{SPHERE}
        <body name="b" pos="1 0 0"><joint name="b" axis="0 1 0"/>{SPHERE}
          <body name="c" pos="0 1 0"><joint name="c" type="slide" ref="-0.3"/>{SPHERE}
            <site name="p"/></body></body><site name="q"/>
      </body>
    </worldbody>"""


TENDONS = """
    <tendon>
      <fixed name="t"><joint joint="a" coef="2"/><joint joint="b" coef="-0.5"/></fixed>
      <fixed name="u"><joint joint="c" coef="3"/></fixed>
      <fixed name="idle"><joint joint="a" coef="0"/></fixed>
      <spatial name="s"><site site="p"/><site site="q"/></spatial>
    </tendon>"""


def geared(equality: str) -> str:
    return document(f"{GEARS}<equality>{equality}</equality>")


LOOPS = {
    "connect": (FOUR_BAR, '<connect name="e" body1="coupler" body2="rocker" anchor="0.5 0 0.1"'),
    "connect to the world": (ARMS, '<connect name="e" body1="l4" anchor="0.1 0.2 0.3"'),
    "connect of sites": (FOUR_BAR, '<connect name="e" site1="eye" site2="pin"'),
    "weld": (ARMS, '<weld name="e" body1="l4" body2="r2" anchor="0.1 0.2 0.3"'),
    "weld of sites": (ARMS, '<weld name="e" site1="left" site2="right"'),
    "weld to a place": (ARMS, '<weld name="e" body1="l4" relpose="-.4 -.1 -.2 1 .2 .1 0"'),
}


COUPLINGS = {
    "polynomial": (GEARS, '<joint name="e" joint1="c" joint2="a" polycoef=".1 1 .2 -.3 .4"'),
    "tendon": (GEARS + TENDONS, '<tendon name="e" tendon1="t" polycoef="0.3 0 0 0 0"'),
    "tendons": (GEARS + TENDONS, '<tendon name="e" tendon1="u" tendon2="t" polycoef="0 2 1 0 0"'),
}


def looped(name: str) -> str:
    tree, equality = (LOOPS | COUPLINGS)[name]
    alone = '<option><flag contact="disable"/></option>'
    return document(f"{alone}{tree}<equality>{equality} {STIFF}/></equality>")


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_open_as_in_mujoco(name: str, saved: Saved) -> None:
    """Residuals of open loops agree with MuJoCo's, at arbitrary positions.

    The distances are equal. MuJoCo's angular residual is the sine of half the angle.
    """
    twin = Twin(saved(looped(name)))
    robot, rng = twin.robot, np.random.default_rng(2)
    assert robot.loops == ("e",)
    for _ in range(3):
        q = robot.random(rng)
        twin.place(q, np.zeros(robot.nv))
        mine = np.split(direct(robot.model, "loop_residual", q), [-3])
        theirs = np.split(twin.data.efc_pos, [3])
        assert np.linalg.norm(mine[1]) == pytest.approx(np.linalg.norm(theirs[0]), rel=1e-10)
        angle = 2.0 * np.arcsin(np.linalg.norm(theirs[1]))
        turned = np.linalg.norm(mine[0])
        assert min(turned, 2.0 * np.pi - turned) == pytest.approx(min(angle, 2 * np.pi - angle))


@pytest.mark.parametrize("name", COUPLINGS)
def test_couplings_are_open_as_in_mujoco(name: str, saved: Saved) -> None:
    twin = Twin(saved(looped(name)))
    robot, rng = twin.robot, np.random.default_rng(2)
    assert (robot.joints, robot.couplings) == (("a", "b", "c"), ("e",))
    for _ in range(3):
        q = robot.random(rng)
        twin.place(q, np.zeros(robot.nv))
        assert relative(direct(robot.model, "loop_residual", q), twin.data.efc_pos) < TOLERANCE


def closed(robot: chasles.Robot) -> np.ndarray:
    """Return a position with closed loops, found from one of several random guesses."""
    for guess in robot.random(1, size=50):
        y = [0.0 if "[" in k else guess[robot.position_slice(k)][0] for k in robot.independent]
        with contextlib.suppress(chasles.ImpossiblePosition):
            return robot.assemble(y, guess=guess)
    raise AssertionError("no position closes the loops")


@pytest.mark.parametrize("name", LOOPS | COUPLINGS)
def test_loops_move_as_mujocos_equations_say(name: str, saved: Saved) -> None:
    """Accelerations follow from MuJoCo's M, J and bias by Gauss's principle: J a + Jdot v = 0.

    Jdot v is computed by central differences along v, with a relative error of 1e-9.
    """
    twin = Twin(saved(looped(name)))
    robot, model, data = twin.robot, twin.there, twin.data
    q = closed(robot)
    qd = robot.complete(q, np.linspace(-0.5, 0.7, len(robot.independent)))
    there = twin.place(q, qd)
    assert np.max(np.abs(data.efc_pos)) < 1e-11
    assert np.max(np.abs(data.efc_vel)) < 1e-11
    M, J = twin.mass_matrix(), data.efc_J.reshape(-1, model.nv).copy()
    v, position, smooth = data.qvel.copy(), data.qpos.copy(), data.qacc_smooth.copy()
    rates = []
    for step in (1e-5, -1e-5):
        data.qpos[:] = position
        mujoco.mj_integratePos(model, data.qpos, v, step)
        mujoco.mj_forward(model, data)
        rates.append(data.efc_J.reshape(-1, model.nv) @ v / (2.0 * 1e-5))
    against = J @ smooth + (rates[0] - rates[1])
    compliance = J @ np.linalg.solve(M, J.T)
    pull = J.T @ np.linalg.pinv(compliance, rcond=1e-9) @ against
    expected = smooth - np.linalg.solve(M, pull)
    qdd = robot.forward_dynamics(q, qd, np.zeros(robot.nv))
    assert relative(there.to_acceleration(q, qd, qdd), expected) < 1e-7
    assert relative(expected, smooth) > 1e-2  # the loop changes the motion


@pytest.mark.parametrize("name", LOOPS)
def test_loops_move_as_in_mujoco(name: str, saved: Saved) -> None:
    """Accelerations equal MuJoCo's for its stiffest constraints (impedance 0.9999), at rest.

    The robot is at rest, because MuJoCo ignores Jdot v. MuJoCo derives the rotational softness of a
    weld from the bodies' own inertia, which gives a hundred times the softness that applies here.
    Without torquescale, which affects only the constraint equations, differences are 0.6 to 4.5 %.
    """
    twin = Twin(saved(looped(name).replace("<weld", '<weld torquescale="100"')))
    robot, rest = twin.robot, np.zeros(twin.robot.nv)
    q = closed(robot)
    there = twin.place(q, rest)
    qdd = robot.forward_dynamics(q, rest, rest)
    assert relative(there.to_acceleration(q, rest, qdd), twin.data.qacc) < 1e-3


def test_linear_equalities_of_joints_are_mimic_joints(saved: Saved) -> None:
    """Joint c mimics a: M and bias are G' M G and G' h of MuJoCo, whose equality is satisfied."""
    line = f'<joint joint1="c" joint2="a" polycoef="0.1 2 0 0 0" {STIFF}/>'
    twin = Twin(saved(geared(line)))
    robot, data = twin.robot, twin.data
    assert robot.joints == ("a", "b")
    q, qd = np.array([0.9, 0.4]), np.array([0.3, -0.8])
    G = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    data.qpos[:] = [*q, -0.3 + 0.1 + 2.0 * (0.9 - 0.5)]
    data.qvel[:] = G @ qd
    mujoco.mj_forward(twin.there, data)
    assert abs(data.efc_pos[0]) < 1e-15
    pose = direct(robot.model, "forward_kinematics", q, frame="c")
    assert relative(pose[:3, 3], data.body("c").xpos) < TOLERANCE
    assert relative(direct(robot.model, "mass_matrix", q), G.T @ twin.mass_matrix() @ G) < TOLERANCE
    h = direct(robot.model, "bias_forces", q, qd)
    assert relative(h, G.T @ data.qfrc_bias) < TOLERANCE
    qdd = robot.forward_dynamics(q, qd, np.zeros(2))
    assert relative(G @ qdd, data.qacc) < 1e-3
    assert chasles.load(robot.model.source.where, mimic=False).joints == ("a", "b", "c")


def test_a_constant_equality_holds_its_joint(saved: Saved) -> None:
    file = saved(geared('<joint joint1="a" polycoef="0.2 0 0 0 0"/>'))
    twin = Twin(file)
    assert twin.robot.joints == ("b", "c")
    assert (
        f"{file}: equality 'equality0' holds joint 'a' at 0.7; the joint is fixed"
        in twin.robot.notes
    )
    twin.data.qpos[:] = [0.7, 0.1, 0.2]
    mujoco.mj_forward(twin.there, twin.data)
    assert abs(twin.data.efc_pos[0]) < 1e-15
    pose = direct(twin.robot.model, "forward_kinematics", [0.1, 0.2], frame="c")
    assert relative(pose[:3, 3], twin.data.body("c").xpos) < TOLERANCE


def test_what_is_not_used_is_noted(saved: Saved) -> None:
    rest = """
      <equality><connect name="off" body1="a" body2="c" anchor="0 0 0" active="false"/></equality>
      <tendon><fixed name="t"><joint joint="a" coef="1"/></fixed></tendon>
      <actuator><motor joint="a"/><motor tendon="t"/></actuator>"""
    text = document(GEARS + rest).replace('name="b" axis', 'name="b" stiffness="3" axis')
    file = saved(text)
    robot = chasles.load(file)
    assert robot.loops == ()
    line = text[: text.index('name="off"')].count("\n") + 1
    assert robot.notes == (
        f"{file}:{line}: equality 'off' is inactive and is ignored",
        f"{file}: contacts of the shapes (3) act only in simulations with contacts='file'",
    )
    stopped = text.replace("<tendon>", '<option><flag equality="disable"/></option><tendon>')
    assert chasles.load(saved(stopped.replace('active="false"', ""))).loops == ()


def test_friction_of_a_free_joint_is_noted(saved: Saved) -> None:
    body = f'<body name="a"><joint name="j" type="free" frictionloss="1"/>{SPHERE}</body>'
    notes = chasles.load(saved(document(f"<worldbody>{body}</worldbody>"))).notes
    assert any("joint 'j': translational friction of a free joint" in note for note in notes)


def test_a_site_with_a_bodys_name_gets_another(saved: Saved) -> None:
    body = f'<body name="a"><joint/>{SPHERE}<site name="a" pos="0 0 1"/></body>'
    file = saved(document(f"<worldbody>{body}</worldbody>"))
    robot = chasles.load(file)
    assert "a_site" in robot.frames
    assert (
        f"{file}:1: site 'a': a link has the same name; the frame is named 'a_site'" in robot.notes
    )


# Refusals --------------------------------------------------------------------------------------

WRONG = {
    "two leaders": (
        geared('<joint joint1="c" joint2="a"/><joint joint1="c" joint2="b"/>'),
        "E-MJCF-004 'equality1'",
    ),
    "round and round": (
        geared('<joint joint1="a" joint2="b"/><joint joint1="b" joint2="a"/>'),
        "E-MODEL-017",
    ),
    "spatial tendon": (
        geared('\n<tendon name="g" tendon1="s"/>').replace("</mujoco>", TENDONS + "</mujoco>"),
        "E-MJCF-005 'g'",
    ),
    "idle tendon": (
        geared('\n<tendon name="g" tendon1="idle"/>').replace("</mujoco>", TENDONS + "</mujoco>"),
        "E-MJCF-006 'g'",
    ),
    "another root": ("<robot/>", "E-MJCF-007"),
    "another language": ("<html/>", "E-MJCF-007"),
    "no XML": ("<mujoco", "E-XML-001"),
    "empty": ("", "E-FILE-006"),
    "entities": (
        '<!DOCTYPE m [<!ENTITY a "b">]><mujoco/>',
        "E-XML-003",
    ),
    "MuJoCo's schema": (
        "<mujoco>\n<worldbody>\n<body>\n<joint foo='1'/></body></worldbody></mujoco>",
        "E-MJCF-002 'foo'",
    ),
    "no mass": (
        "<mujoco>\n<worldbody>\n<body name='b'><joint/></body></worldbody></mujoco>",
        "E-MJCF-002",
    ),
    "missing mesh": (
        "<mujoco><asset><mesh name='x' file='no.stl'/></asset>"
        "<worldbody><body><geom type='mesh' mesh='x'/></body></worldbody></mujoco>",
        "E-MJCF-002",
    ),
    "not finite": (
        f"<mujoco><worldbody><body pos='nan 0 0'><joint/>{SPHERE}</body></worldbody></mujoco>",
        "E-MJCF-002 body_pos",
    ),
    "includes itself": (
        "<mujoco>\n<include file='machine.xml'/></mujoco>",
        "E-MJCF-002",
    ),
    "all the memory": (
        "<mujoco><size memory='1T'/><worldbody/></mujoco>",
        "E-MJCF-002",
    ),
    "an immense field": (
        "<mujoco><asset><hfield name='a' nrow='100000' ncol='100000' size='1 1 1 1'/></asset>"
        "</mujoco>",
        "E-FILE-037",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused_with_reason(name: str, saved: Saved) -> None:
    text, message = WRONG[name]
    file = saved(text)
    with raises(message) as refused:
        chasles.load(file)
    assert str(refused.value).startswith(str(file))
    assert "\n" not in str(refused.value)


def test_too_many_parts(saved: Saved, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mjcf_source, "MAX_PARTS", 50)
    many = f'<replicate count="60"><body>{SPHERE}</body></replicate>'
    with raises("E-MJCF-002", "121"):
        chasles.load(saved(document(f"<worldbody>{many}</worldbody>")))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_a_compiler_that_hangs_is_stopped(
    saved: Saved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe without a writer would block the compiler forever."""
    os.mkfifo(tmp_path / "pipe.xml")
    monkeypatch.setattr(mjcf_source, "MUJOCO", replace(mjcf_source.MUJOCO, seconds=1.0))
    start = time.monotonic()
    with raises("E-FILE-403"):
        chasles.load(saved(document('<include file="pipe.xml"/>')))
    assert time.monotonic() - start < 60.0


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="the system cannot stop processes")
def test_time_in_which_processes_are_stopped_does_not_count(tmp_path: Path) -> None:
    """The tool has a limit of 5 s, needs less, and is stopped for 6 s, as on a sleeping machine."""
    tool = tmp_path / "tool.py"
    tool.write_text("import time\ndef answer(file):\n    time.sleep(0.2)\n    return {'a': 1}\n")
    asked = (
        "from chasles.formats.walled import Tool; print('begun', flush=True); "
        f"print(Tool('tool', 'json', '', {str(tool)!r}, 0.5, 2**32).ask('file'))"
    )
    command = [sys.executable, "-c", asked]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.05)
        os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(6.0)
        os.killpg(process.pid, signal.SIGCONT)
        assert process.stdout.read() == b"{'a': 1}\n"


def test_without_mujoco_the_remedy_is_named(saved: Saved, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with raises("E-FILE-036", "'chasles[mjcf]'"):
        chasles.load(saved(document(GEARS)))


def test_nothing_is_left_beside_the_file(saved: Saved, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo writes a log file into its working directory, which is not the file's folder."""
    file = saved(document(GEARS))
    monkeypatch.chdir(file.parent)
    chasles.load(file.name)
    assert list(file.parent.iterdir()) == [file]


def test_gravity_is_the_files(saved: Saved) -> None:
    assert mjcf.read(saved(document(TREES["every joint type"]))).gravity == Vector.of(
        1.0, 2.0, -3.0
    )
    assert mjcf.read(saved(document(TREES["two that float"]))).gravity == Vector.zero()
