"""Check that Pinocchio and MuJoCo read files from chasles as the same mechanism."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from pinocchio_oracle import robot_files
from same_motion import in_coordinates_of
from support import close, direct, relative, state, tree

import chasles
from chasles import conventions
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import Transform
from chasles.model import Description, LoopData, Mimic, coupling, gear
from chasles.model.graph import in_series

pin = pytest.importorskip("pinocchio")

TOLERANCE = 1e-9
NAMES = (
    *("panda", "ur5_robot", "ur5_gripper", "talos_reduced", "solo12", "kinova", "baxter"),
    *("simple_humanoid", "g1_29dof_rev_1_0", "xarm7"),
)


def published(name: str, *, floating: bool = False) -> chasles.Robot:
    """Load a published robot with a coordinate for each joint, as in Pinocchio and MuJoCo."""
    path = next(path for path in robot_files() if path.stem == name)
    return rubbing_nowhere(chasles.load(path, floating=floating).model.source)


def rubbing_nowhere(source: Description) -> chasles.Robot:
    """Remove friction, and make unlimited revolute joints continuous.

    Dry friction in MuJoCo is not a function of the state. Pinocchio has two coordinates for a
    continuous joint.
    """
    joints = [replace(joint, friction=0.0) for joint in source.joints]
    for k, joint in enumerate(joints):
        if joint.kind == "revolute" and joint.limits.upper == math.inf:
            joints[k] = replace(joint, kind="continuous")
    return chasles.Robot(replace(source, joints=tuple(joints)), mimic=False)


def trees(seed: int, *, instead: dict[str, str], armature: bool) -> chasles.Robot:
    """Return a random tree with joint types of a library, and free joints at the origin."""
    source, joints = in_series(tree(14, seed).model.source), []
    for joint in source.joints:
        if joint.kind == "free" and joint.parent is None:
            joint = replace(joint, pose=Transform.identity())
        else:
            joint = replace(joint, kind=instead.get(joint.kind, joint.kind))
        joints.append(joint if armature else replace(joint, armature=0.0))
    return rubbing_nowhere(replace(source, joints=tuple(joints)))


# Pinocchio -------------------------------------------------------------------------------------


def check_pinocchio(robot: chasles.Robot, path: Path) -> None:
    """Compare poses of links and frames, M, and joint torques at a random state."""
    chasles.save(robot, path)
    model = pin.buildModelFromUrdf(str(path))
    data, there = model.createData(), conventions.pinocchio(robot, list(model.names)[1:])
    q, qd, qdd = state(robot, 7)
    p, v = there.to_position(q), there.to_velocity(q, qd)
    pin.framesForwardKinematics(model, data, p)
    for frame in robot.frames:
        pose = direct(robot.model, "forward_kinematics", q, frame=frame)
        found = data.oMf[model.getFrameId(frame, pin.BODY)].homogeneous
        assert relative(pose, found) < TOLERANCE
    M = np.triu(pin.crba(model, data, p))
    M += np.triu(M, 1).T
    expected = direct(robot.model, "mass_matrix", q)
    assert relative(there.to_mass_matrix(q, expected), M) < TOLERANCE
    tau = pin.rnea(model, data, p, v, there.to_acceleration(q, qd, qdd))
    mine = direct(robot.model.frictionless(), "inverse_dynamics", q, qd, qdd)
    assert relative(there.to_effort(q, mine), tau) < TOLERANCE


@pytest.mark.parametrize("name", NAMES)
def test_published_robots_in_pinocchio(name: str, tmp_path: Path) -> None:
    check_pinocchio(published(name), tmp_path / "copy.urdf")


@pytest.mark.parametrize("name", ["panda", "solo12"])
def test_floating_robots_in_pinocchio(name: str, tmp_path: Path) -> None:
    check_pinocchio(published(name, floating=True), tmp_path / "copy.urdf")


@pytest.mark.parametrize("seed", range(3))
def test_trees_in_pinocchio(seed: int, tmp_path: Path) -> None:
    """Trees agree in Pinocchio, except for joint types with other coordinates or no support."""
    kinds = ("spherical", "planar", "sphere_in_cylinder", "rolling")
    robot = trees(seed, instead=dict.fromkeys(kinds, "revolute"), armature=False)
    check_pinocchio(robot, tmp_path / "tree.urdf")


def test_limits_in_pinocchio(tmp_path: Path) -> None:
    robot = published("panda")
    chasles.save(robot, tmp_path / "copy.urdf")
    model = pin.buildModelFromUrdf(str(tmp_path / "copy.urdf"))
    for name in robot.joints:
        limits, k = robot.joint(name).limits, model.joints[model.getJointId(name)].idx_q
        found = model.lowerPositionLimit[k], model.upperPositionLimit[k]
        assert found == (limits.lower, limits.upper)
        assert model.velocityLimit[k] == limits.velocity


# MuJoCo ----------------------------------------------------------------------------------------


def in_mujoco(robot: chasles.Robot, path: Path) -> tuple[Any, Any, conventions.Convention]:
    chasles.save(robot, path)
    model = mujoco.MjModel.from_xml_path(str(path))
    names = [model.joint(k).name for k in range(model.njnt)]
    return model, mujoco.MjData(model), conventions.mujoco(robot, names)


def check_mujoco(robot: chasles.Robot, path: Path) -> None:
    """Compare poses of links and frames, M, and joint torques with damping at a random state."""
    model, data, there = in_mujoco(robot, path)
    q, qd, _ = state(robot, 7)
    data.qpos[:], data.qvel[:] = there.to_position(q), there.to_velocity(q, qd)
    mujoco.mj_forward(model, data)
    source = robot.model.source
    sites = {frame.name for frame in source.frames}
    between = {link.name for link in source.links if link.massless}
    for frame in [name for name in robot.frames if name not in between]:
        place = data.site(frame) if frame in sites else data.body(frame)
        pose = direct(robot.model, "forward_kinematics", q, frame=frame)
        assert relative(pose[:3, 3], place.xpos, scale=1.0) < TOLERANCE
        assert relative(pose[:3, :3].ravel(), place.xmat) < TOLERANCE
    M = np.empty((model.nv, model.nv))
    for row, unit in zip(M, np.eye(model.nv), strict=True):
        mujoco.mj_mulM(model, data, row, unit)
    expected = there.to_mass_matrix(q, direct(robot.model, "mass_matrix", q))
    assert relative(expected, M) < TOLERANCE
    still = there.from_acceleration(data.qpos, data.qvel, np.zeros(model.nv))
    h = direct(robot.model, "inverse_dynamics", q, qd, still)
    there_too = data.qfrc_bias - data.qfrc_passive
    assert relative(there.to_effort(q, h), there_too) < TOLERANCE


@pytest.mark.parametrize("name", NAMES)
def test_published_robots_in_mujoco(name: str, tmp_path: Path) -> None:
    check_mujoco(published(name), tmp_path / "copy.xml")


@pytest.mark.parametrize("seed", range(3))
def test_trees_in_mujoco(seed: int, tmp_path: Path) -> None:
    """Trees agree in MuJoCo, which does not have some joint types, nor free joints of children."""
    kinds = {"planar": "prismatic", "free": "spherical"}
    kinds |= {"sphere_in_cylinder": "spherical", "rolling": "revolute"}
    check_mujoco(trees(seed, instead=kinds, armature=True), tmp_path / "tree.xml")


@pytest.mark.parametrize("kind", ["spherical", "fixed"])
def test_loops_in_mujoco(kind: str, tmp_path: Path) -> None:
    """Accelerations from rest agree to 1e-3, for loops with impedance 0.9999 in the file.

    MuJoCo's equality constraints are soft. With a weld, the arm has two degrees of freedom; for an
    arm of seven joints, with one degree of freedom, the difference would be 7e-3.
    """
    arm, rng = chasles.robots.general_chain(8), np.random.default_rng(2)
    q = arm.random(rng)
    T = arm.forward_kinematics(q, frame="link8")
    place = Transform.from_pose(Matrix(tuple(map(tuple, T[:3, :3]))), Vector(tuple(T[:3, 3])))
    robot = arm.with_loops(LoopData("hand", kind, None, "link8", place))
    model, data, there = in_mujoco(robot, tmp_path / "arm.xml")
    still, tau = np.zeros(robot.nv), rng.normal(size=robot.nv)
    data.qpos[:], data.qfrc_applied[:] = there.to_position(q), there.to_effort(q, tau)
    mujoco.mj_forward(model, data)
    assert np.max(np.abs(data.efc_pos)) < 1e-12
    expected = there.to_acceleration(q, still, robot.forward_dynamics(q, still, tau))
    assert relative(data.qacc, expected) < 1e-3
    assert relative(data.qacc_smooth, expected) > 0.1  # the loop has an effect


def held_by_a_hinge() -> tuple[chasles.Robot, np.ndarray]:
    """Return an arm of eight joints with a closed loop, and a configuration.

    An oblique hinge connects the last link to the world.
    """
    arm = chasles.robots.general_chain(8)
    q = arm.random(seed=2)
    T = direct(arm.model, "forward_kinematics", q, frame="link8")
    place = Transform.from_pose(Matrix(tuple(map(tuple, T[:3, :3]))), Vector(tuple(T[:3, 3])))
    hinge = LoopData("hand", "revolute", None, "link8", place, Vector.of(0.6, 0.0, 0.8))
    return arm.with_loops(hinge), q


@pytest.mark.parametrize("name", ["six_bar", "stewart", "held_by_a_hinge"])
def test_closed_robots_in_mujoco(name: str, tmp_path: Path) -> None:
    """Loop constraints of MuJoCo forbid the same velocities as in chasles, and motions agree.

    In MuJoCo, a hinge in a loop is two points on its axis, and the pose of a free joint is relative
    to the world's origin. In 0.1 s, the soft loops open by less than one micrometer.
    """
    rng = np.random.default_rng(3)
    if name == "held_by_a_hinge":
        robot, q = held_by_a_hinge()
    else:
        robot = getattr(chasles.robots, name)()
        q = robot.assemble(0.1 * rng.normal(size=len(robot.independent)))
    qd = robot.complete(q, 0.3 * rng.normal(size=len(robot.independent)))
    chasles.save(robot, tmp_path / "closed.xml")
    again = chasles.load(tmp_path / "closed.xml")
    model, data, there = in_mujoco(again, tmp_path / "again.xml")
    p, order = in_coordinates_of(again, robot, q)
    data.qpos[:], data.qvel[:] = there.to_position(p), there.to_velocity(p, qd[order])
    mujoco.mj_forward(model, data)
    assert np.max(np.abs([data.efc_pos, data.efc_vel])) < 1e-12
    K = there.to_jacobian(p, direct(robot.model, "loop_matrix", q)[:, order])
    mine, theirs = held(K), held(data.efc_J.reshape(-1, model.nv))
    assert np.trace(mine) == pytest.approx(robot.nv - int(robot.mobility(q)))
    close(theirs, mine, 1e-12)
    model.opt.timestep, model.opt.integrator = 5e-4, mujoco.mjtIntegrator.mjINT_RK4
    mujoco.mj_step(model, data, 200)
    after = chasles.simulate(robot, q, qd, duration=0.1, dt=1e-3, dissipation=True).q[-1]
    expected = there.to_position(in_coordinates_of(again, robot, after)[0])
    assert np.max(np.abs(data.qpos - expected)) < 1e-5
    assert np.max(np.abs(data.efc_pos)) < 1e-6
    assert np.max(np.abs(expected - there.to_position(p))) > 1e-2


def held(K: np.ndarray) -> np.ndarray:
    """Return the projection onto the forbidden velocities. Its trace is the rank of K."""
    return np.linalg.pinv(K, rcond=1e-9) @ K


def test_gears_and_mimics_in_mujoco(tmp_path: Path) -> None:
    """Residuals of gears, a polynomial and a mimic joint agree, and accelerations from rest."""
    source = chasles.robots.planar(5).model.source
    joints = [replace(joint, armature=1.0) for joint in source.joints]  # otherwise error 4e-3
    joints[4] = replace(joints[4], mimic=Mimic("joint1", 2.0, 0.3))
    cam = coupling("cam", ["joint3", "joint2"], lambda a, b: a - 0.1 - b * b * (0.5 + b))
    gears = gear("g", "joint4", {"joint1": 0.5, "joint2": -2.0}, 0.2), cam
    robot = chasles.Robot(replace(source, joints=tuple(joints), couplings=gears))
    chasles.save(robot, tmp_path / "arm.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    data, q = mujoco.MjData(model), np.array([0.3, -0.4, 0.5, 0.7])
    data.qpos[:] = [*q, 1.1]
    mujoco.mj_forward(model, data)
    residual = direct(robot.model, "loop_residual", q)
    close(sorted(data.efc_pos), sorted([*residual, 1.1 - 2.0 * 0.3 - 0.3]), 1e-14)
    q = robot.assemble([0.3, -0.4])
    data.qpos[:] = [*q, 2.0 * q[0] + 0.3]
    mujoco.mj_forward(model, data)
    qdd = robot.forward_dynamics(q, np.zeros(4), np.zeros(4))
    assert relative(data.qacc, [*qdd, 2.0 * qdd[0]]) < 1e-3
