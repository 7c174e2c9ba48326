"""Compare trees of hinge, slide, ball and free joints with MuJoCo.

In MuJoCo, the velocity of a free joint is (linear in world axes, angular in body axes). All other
velocities are as in chasles. T converts MuJoCo's velocities to those of chasles:
M_mujoco = T' M T.
"""

from collections.abc import Iterator
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from support import direct, relative, state

import chasles
from chasles.mathematics.rotations import quaternion_from_matrix
from chasles.mathematics.spatial import Transform
from chasles.model import Description, JointData, LinkData, Model
from chasles.robots import puma560, quadruped, random_tree

TOLERANCE = 1e-11  # MuJoCo stores orientations and inertias with rounded unit quaternions


# Conversion to MuJoCo --------------------------------------------------------------------------

KINDS = {
    "revolute": ("hinge",),
    "continuous": ("hinge",),
    "prismatic": ("slide",),
    "cylindrical": ("hinge", "slide"),
    "spherical": ("ball",),
    "free": ("free",),
    "fixed": (),
}


INSTEAD = {
    "helical": "revolute",
    "planar": "cylindrical",
    "universal": "prismatic",
    "rack_and_pinion": "revolute",
    "sphere_in_cylinder": "spherical",
    "yaw_pitch_roll": "spherical",
    "rolling": "spherical",
}
"""Replacement for each joint type that MuJoCo does not have."""


def possible(source: Description) -> Description:
    """Replace the joint types that MuJoCo does not have."""
    joints = []
    for joint in source.joints:
        kind = INSTEAD.get(joint.kind, joint.kind)
        if kind == "free":
            kind = "free" if joint.parent is None else "spherical"
            joint = replace(joint, pose=Transform.identity()) if kind == "free" else joint
        joints.append(replace(joint, kind=kind, friction=0.0))
    return replace(source, joints=tuple(joints))


def mjcf(source: Description) -> str:
    """Convert a mechanism to a MuJoCo model with a body for each link and without geometry."""
    children: dict[str | None, list[JointData]] = {}
    for joint in source.joints:
        children.setdefault(joint.parent, []).append(joint)
    links = {link.name: link for link in source.links}
    held = {joint.child for joint in source.joints}
    roots = [name for name in links if name not in held]

    def body(joint: JointData) -> Iterator[str]:
        w, x, y, z = quaternion_from_matrix(joint.pose.R)
        place = " ".join(map(repr, joint.pose.r))
        yield f'<body name="{joint.child}" pos="{place}" quat="{w!r} {x!r} {y!r} {z!r}">'
        for k, kind in enumerate(KINDS[joint.kind]):
            axis = " ".join(map(repr, joint.axis))
            yield (
                f'<joint name="{joint.name}.{k}" type="{kind}" axis="{axis}" '
                f'armature="{joint.armature!r}" damping="{joint.damping!r}"/>'
            )
        yield inertial(links[joint.child])
        for child in children.get(joint.child, []):
            yield from body(child)
        yield "</body>"

    bodies = [
        *children.get(None, []),
        *(JointData(f"{name}_root", "fixed", None, name) for name in roots),
    ]
    gravity = " ".join(map(repr, source.gravity))
    return (
        f'<mujoco><option gravity="{gravity}"/><compiler angle="radian" inertiafromgeom="false"/>'
        f"<worldbody>{''.join(line for joint in bodies for line in body(joint))}</worldbody>"
        "</mujoco>"
    )


def inertial(link: LinkData) -> str:
    m, h = link.inertia.m, np.array(list(link.inertia.h), dtype=float)
    if m == 0.0:
        return ""
    c = h / m
    about_origin = np.array(link.inertia.I.matrix().rows, dtype=float)
    I = about_origin - m * (c @ c * np.eye(3) - np.outer(c, c))
    full = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
    numbers = " ".join(repr(float(x)) for x in full)
    place = " ".join(repr(float(x)) for x in c)
    return f'<inertial mass="{m!r}" pos="{place}" fullinertia="{numbers}"/>'


class Twin:
    """Robot in chasles and in MuJoCo, at the same state."""

    def __init__(self, source: Description, seed: int) -> None:
        self.robot = chasles.Robot(source)
        self.q, self.qd, self.qdd = state(self.robot, seed)
        self.there = mujoco.MjModel.from_xml_string(mjcf(source))
        self.there.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
        self.data = mujoco.MjData(self.there)
        self.T = np.zeros((self.robot.nv, self.robot.nv))
        self.rate = np.zeros(self.robot.nv)  # Tdot times MuJoCo's velocity
        for name in self.robot.joints:
            self._place(name)
        self.data.qvel[:] = np.linalg.solve(self.T, self.qd)

    def _place(self, name: str) -> None:
        here, kind = self.robot.velocity_slice(name), self.robot.joint(name).kind
        mine = self.q[self.robot.position_slice(name)]
        first = mujoco.mj_name2id(self.there, mujoco.mjtObj.mjOBJ_JOINT, f"{name}.0")
        p, v = self.there.jnt_qposadr[first], self.there.jnt_dofadr[first]
        if kind != "free":
            self.data.qpos[p : p + len(mine)] = mine
            self.T[here, v : v + here.stop - here.start] = np.eye(here.stop - here.start)
            return
        self.data.qpos[p : p + 7] = [*mine[4:], *mine[:4]]
        R = direct(
            self.robot.model, "forward_kinematics", self.q, frame=self.robot.joint(name).child
        )
        R = R[:3, :3]
        w, u = self.qd[here][:3], self.qd[here][3:]
        start = here.start
        self.T[start : start + 3, v + 3 : v + 6] = np.eye(3)
        self.T[start + 3 : start + 6, v : v + 3] = R.T
        self.rate[start + 3 : start + 6] = -np.cross(w, u)

    def acceleration_there(self) -> np.ndarray:
        return np.linalg.solve(self.T, self.qdd - self.rate)


ROBOTS = {
    "puma560": puma560(),
    "quadruped": quadruped(),
    "fixed tree": random_tree(7, 5, floating=False),
    "floating tree": random_tree(7, 6, floating=True),
}


@pytest.fixture(params=ROBOTS, scope="module")
def twin(request: pytest.FixtureRequest) -> Twin:
    return Twin(possible(ROBOTS[request.param].model.source), seed=3)


def test_poses_and_jacobians(twin: Twin) -> None:
    mujoco.mj_forward(twin.there, twin.data)
    for link in twin.robot.bodies:
        number = mujoco.mj_name2id(twin.there, mujoco.mjtObj.mjOBJ_BODY, link)
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = twin.data.xmat[number].reshape(3, 3), twin.data.xpos[number]
        found = direct(twin.robot.model, "forward_kinematics", twin.q, frame=link)
        assert relative(found, pose) < TOLERANCE
        linear, angular = np.zeros((2, 3, twin.robot.nv))
        mujoco.mj_jacBody(twin.there, twin.data, linear, angular, number)
        J = direct(twin.robot.model, "jacobian", twin.q, frame=link)
        assert relative(J @ twin.T, np.concatenate([angular, linear]), scale=1.0) < TOLERANCE


def test_velocities_and_proper_accelerations(twin: Twin) -> None:
    """Body accelerations in MuJoCo are proper accelerations, as measured by an accelerometer."""
    data, robot = twin.data, twin.robot
    data.qacc[:] = twin.acceleration_there()
    mujoco.mj_inverse(twin.there, data)
    mujoco.mj_rnePostConstraint(twin.there, data)
    for link in robot.bodies:
        number = mujoco.mj_name2id(twin.there, mujoco.mjtObj.mjOBJ_BODY, link)
        kind = mujoco.mjtObj.mjOBJ_XBODY
        for axes, local in (("world", 0), ("frame", 1)):
            v, a = np.zeros(6), np.zeros(6)
            mujoco.mj_objectVelocity(twin.there, data, kind, number, v, local)
            mujoco.mj_objectAcceleration(twin.there, data, kind, number, a, local)
            option = {"frame": link, "axes": axes}
            mine = direct(robot.model, "frame_velocity", twin.q, twin.qd, **option)
            assert relative(mine, v, scale=1.0) < TOLERANCE
            state = twin.q, twin.qd, twin.qdd
            mine = direct(robot.model, "frame_acceleration", *state, kind="proper", **option)
            assert relative(mine, a, scale=1.0) < TOLERANCE


def test_mass_matrix_and_bias(twin: Twin) -> None:
    mujoco.mj_forward(twin.there, twin.data)
    M = np.empty((twin.robot.nv, twin.robot.nv))
    for k, unit in enumerate(np.eye(twin.robot.nv)):
        mujoco.mj_mulM(twin.there, twin.data, M[k], unit)
    mine = twin.robot.mass_matrix(twin.q)
    assert relative(twin.T.T @ mine @ twin.T, M) < TOLERANCE
    h = twin.robot.bias_forces(twin.q, twin.qd)
    there = twin.T.T @ (h + mine @ twin.rate)
    assert relative(there, twin.data.qfrc_bias) < TOLERANCE


def test_inverse_and_forward_dynamics(twin: Twin) -> None:
    """Dynamics with damping agrees; MuJoCo includes damping in passive forces."""
    robot, data = twin.robot, twin.data
    data.qacc[:] = twin.acceleration_there()
    mujoco.mj_inverse(twin.there, data)
    tau = robot.inverse_dynamics(twin.q, twin.qd, twin.qdd, dissipation=True)
    assert relative(twin.T.T @ tau, data.qfrc_inverse) < TOLERANCE
    data.qfrc_applied[:] = twin.T.T @ twin.qdd
    mujoco.mj_forward(twin.there, data)
    found = robot.forward_dynamics(twin.q, twin.qd, twin.qdd, dissipation=True)
    expected = twin.T @ data.qacc + twin.rate
    assert relative(found, expected) < 1e-9  # eps times the condition number of M
    data.qfrc_applied[:] = 0.0


def test_external_forces(twin: Twin) -> None:
    """MuJoCo applies (force, moment) in world axes at the center of mass of a body."""
    robot, data = twin.robot, twin.data
    link = robot.bodies[-1]
    number = mujoco.mj_name2id(twin.there, mujoco.mjtObj.mjOBJ_BODY, link)
    wrench = np.array([0.3, -0.2, 0.5, 2.0, 1.0, -3.0])
    data.xfrc_applied[number] = [*wrench[3:], *wrench[:3]]
    mujoco.mj_forward(twin.there, data)
    data.xfrc_applied[number] = 0.0
    center = tuple(map(float, twin.there.body_ipos[number]))
    f_ext = {link: chasles.Wrench(wrench, axes="world", at=center)}
    none = np.zeros(robot.nv)
    found = robot.forward_dynamics(twin.q, twin.qd, none, f_ext=f_ext, dissipation=True)
    assert relative(found, twin.T @ data.qacc + twin.rate) < 1e-9


def test_energy_and_momentum(twin: Twin) -> None:
    mujoco.mj_forward(twin.there, twin.data)
    mujoco.mj_subtreeVel(twin.there, twin.data)
    robot, moving = twin.robot, twin.robot.model
    potential, kinetic = twin.data.energy
    assert relative(robot.kinetic_energy(twin.q, twin.qd), kinetic) < TOLERANCE
    fixed = [link for link in moving.source.links if moving.frames[link.name].body < 0]
    still = sum(_potential(moving, link) for link in fixed)  # MuJoCo includes fixed links
    assert relative(robot.potential_energy(twin.q) + still, potential) < TOLERANCE
    if fixed:
        return
    assert relative(robot.center_of_mass(twin.q), twin.data.subtree_com[0]) < TOLERANCE
    h = robot.momentum(twin.q, twin.qd, at="com")
    assert relative(h[:3], twin.data.subtree_angmom[0]) < TOLERANCE
    assert relative(h[3:], twin.data.subtree_linvel[0] * twin.there.body_subtreemass[0]) < TOLERANCE


def _potential(model: Model, link: LinkData) -> float:
    """Return the potential energy of a link that cannot move."""
    pose = direct(model, "forward_kinematics", np.ones(model.nq), frame=link.name)
    moment = pose[:3, :3] @ list(link.inertia.h) + link.inertia.m * pose[:3, 3]
    return -float(moment @ list(model.gravity_vector))
