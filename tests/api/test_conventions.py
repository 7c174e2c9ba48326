"""Conversions to conventions of other libraries agree with Pinocchio and MuJoCo themselves.

Drake and ROS are checked against their documented definitions, by finite differences in time.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import files
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation as ScipyRotation
from support import close, raises, turned_rotors

import chasles
from chasles import conventions
from chasles.conventions import LIBRARIES, Convention
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import aligned_to_z
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import JOINTS, Description, JointData, LinkData
from chasles.robots import humanoid, puma560, quadruped, random_tree

ROUNDING = 1e-15
AGREEMENT = 1e-10
VIEWS = {
    "Pinocchio": conventions.pinocchio,
    "MuJoCo": conventions.mujoco,
    "Drake": conventions.drake,
}
IDENTITY = Transform.identity()
Z = Vector.of(0.0, 0.0, 1.0)


def compiled(robot: chasles.Robot, function: str, *arrays: Any, **options: Any) -> np.ndarray:
    return chasles.compile(robot, function, backend="numpy", **options)(*arrays)


@dataclass(frozen=True)
class States:
    """Random states of a robot; the fields are named like the arguments of functions."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray


def states(robot: chasles.Robot, size: tuple[int, ...] = (3,), seed: int = 7) -> States:
    rng = np.random.default_rng(seed)
    return States(robot.random(rng, size=size), *rng.normal(size=(3, *size, robot.nv)))


# Tables of joint types -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", JOINTS)
def test_every_joint_type_has_a_row(kind: str) -> None:
    assert len(JOINTS[kind].numbers.position.split()) == JOINTS[kind].nq
    assert len(JOINTS[kind].numbers.velocity.split()) == JOINTS[kind].nv


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_there_have_our_numbers_and_no_others(library: str) -> None:
    for kind, row in LIBRARIES[library].items():
        rest = set(row.position.split()) - {"cos", "sin"}
        assert rest | {"angle"} == set(JOINTS[kind].numbers.position.split()) | {"angle"}
        assert sorted(row.velocity.lower().split()) == sorted(JOINTS[kind].numbers.velocity.split())


def test_other_libraries_are_not_imported() -> None:
    files = Path(conventions.__file__).parent.glob("*.py")
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text("utf-8")))]
    names = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    names |= {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
    assert {str(name).split(".")[0] for name in names} == {
        "chasles",
        "collections",
        "dataclasses",
        "numpy",
        "typing",
    }


# Round trips -----------------------------------------------------------------------------------


def possible(source: Description, library: str) -> Description:
    """Return a mechanism whose joints are replaced by types that a library has."""
    joints = []
    for joint in source.joints:
        kind = joint.kind if joint.kind in (*LIBRARIES[library], "fixed") else "revolute"
        axis = Z if kind in ("planar", "continuous") else joint.axis
        if kind == "free" and library == "MuJoCo":
            kind = "free" if joint.parent is None else "spherical"
            joint = replace(joint, pose=IDENTITY) if kind == "free" else joint
        joints.append(replace(joint, kind=kind, axis=axis, friction=0.0))
    return replace(source, joints=tuple(joints))


def tree_for(library: str, n: int = 12, seed: int = 4, **options: bool) -> chasles.Robot:
    """Return a floating tree with all joint types of a library, and joints in random order."""
    source = possible(random_tree(n, seed, floating=True, **options).model.source, library)
    mixed = np.random.default_rng(seed).permutation(len(source.joints))
    robot = chasles.Robot(replace(source, joints=tuple(source.joints[k] for k in mixed)))
    kinds = {robot.joint(name).kind for name in robot.joints}
    assert kinds == set(LIBRARIES[library])
    return robot


@pytest.mark.parametrize("library", VIEWS)
@pytest.mark.parametrize("size", [(), (5,), (2, 3), (0,)])
def test_round_trips(library: str, size: tuple[int, ...]) -> None:
    robot = tree_for(library)
    there = VIEWS[library](robot, robot.joints[::-1])
    here = states(robot, size)
    x = there.to_position(here.q)
    v = there.to_velocity(here.q, here.qd)
    a = there.to_acceleration(here.q, here.qd, here.qdd)
    tau = there.to_effort(here.q, here.tau)
    assert x.shape == (*size, there.nq)
    assert v.shape == a.shape == tau.shape == (*size, there.nv)
    close(there.from_position(x), here.q, ROUNDING)
    close(there.from_velocity(x, v), here.qd, ROUNDING)
    close(there.from_acceleration(x, v, a), here.qdd, ROUNDING, scale=10.0)
    close(there.from_effort(x, tau), here.tau, ROUNDING)
    rng = np.random.default_rng(1)
    J, M = rng.normal(size=(*size, 6, robot.nv)), rng.normal(size=(*size, robot.nv, robot.nv))
    close(there.from_jacobian(x, there.to_jacobian(here.q, J)), J, ROUNDING)
    close(there.from_mass_matrix(x, there.to_mass_matrix(here.q, M)), M, ROUNDING)
    close(there.spatial(there.spatial(J, axis=-2), axis=-2), J, ROUNDING)


@pytest.mark.parametrize("library", VIEWS)
def test_leading_shapes_broadcast_and_each_state_is_on_its_own(library: str) -> None:
    robot = tree_for(library)
    there, here = VIEWS[library](robot), states(robot, (4,))
    whole = there.to_acceleration(here.q[:, None], here.qd, here.qdd[0])
    J = np.random.default_rng(0).normal(size=(6, robot.nv))
    assert whole.shape == (4, 4, robot.nv)
    for i in range(4):
        for k in range(4):
            one = there.to_acceleration(here.q[i], here.qd[k], here.qdd[0])
            close(whole[i, k], one, ROUNDING)
        close(there.to_jacobian(here.q, J)[i], there.to_jacobian(here.q[i], J), ROUNDING)


@pytest.mark.parametrize("library", VIEWS)
def test_power_energy_and_twist_do_not_change(library: str) -> None:
    robot = tree_for(library)
    there, here = VIEWS[library](robot, robot.joints[::-1]), states(robot, ())
    rng = np.random.default_rng(2)
    J, M = rng.normal(size=(6, robot.nv)), rng.normal(size=(robot.nv, robot.nv))
    v, tau = there.to_velocity(here.q, here.qd), there.to_effort(here.q, here.tau)
    close(tau @ v, here.tau @ here.qd, 1e-14, scale=10.0)
    close(v @ there.to_mass_matrix(here.q, M) @ v, here.qd @ M @ here.qd, 1e-14, scale=100.0)
    close(there.to_jacobian(here.q, J) @ v, there.spatial(J @ here.qd), 1e-14)


def moved(robot: chasles.Robot, here: States, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Return position and velocity after a short time h, to second order."""
    step = h * here.qd + 0.5 * h * h * here.qdd
    return compiled(robot, "integrate", here.q, step), here.qd + h * here.qdd


@pytest.mark.parametrize("library", VIEWS)
def test_accelerations_are_the_derivatives_of_velocities(library: str) -> None:
    robot = tree_for(library)
    there, here, h = VIEWS[library](robot), states(robot, (3,)), 1e-4
    later, earlier = (there.to_velocity(*moved(robot, here, t)) for t in (h, -h))
    a = there.to_acceleration(here.q, here.qd, here.qdd)
    close((later - earlier) / (2 * h), a, 1e-6)


def test_precision_is_kept() -> None:
    robot = tree_for("MuJoCo")
    there, here = conventions.mujoco(robot), states(robot)
    q, qd = here.q.astype(np.float32), here.qd.astype(np.float32)
    assert there.to_position(q).dtype == there.to_velocity(q, qd).dtype == np.float32
    assert there.from_position(there.to_position(q)).dtype == np.float32
    assert there.to_position([int(k) for k in here.q[0] > -9]).dtype == np.float64


def test_a_robot_without_freedom() -> None:
    robot = puma560()
    stiff = robot.lock(dict.fromkeys(robot.joints, 0.0))
    for view in VIEWS.values():
        there = view(stiff)
        assert there.to_position(np.zeros((3, 0))).shape == (3, 0)
        assert there.from_acceleration(*np.zeros((3, 0))).shape == (0,)


# Pinocchio -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """A robot in chasles and in Pinocchio."""

    robot: chasles.Robot
    model: Any

    @property
    def view(self) -> Convention:
        return conventions.pinocchio(self.robot, list(self.model.names)[1:])


def urdf(name: str) -> Path:
    found = [f for f in files("example-robot-data") or () if f.name == name]
    return Path(str(found[0].locate()))


def real(name: str, *, floating: bool) -> Pair:
    path = urdf(name)
    free = [pin.JointModelFreeFlyer()] if floating else []
    robot = chasles.load(path, floating=floating, mimic=False, snap=False)
    return Pair(robot, pin.buildModelFromUrdf(str(path), *free))


PINOCCHIO_JOINTS = {
    "revolute": lambda a, _: pin.JointModelRevoluteUnaligned(a),
    "continuous": lambda *_: pin.JointModelRUBZ(),
    "prismatic": lambda a, _: pin.JointModelPrismaticUnaligned(a),
    "helical": lambda a, joint: pin.JointModelHelicalUnaligned(a, joint.pitch),
    "universal": lambda a, joint: pin.JointModelUniversal(
        a, np.array(aligned_to_z(joint.axis).rows[0])
    ),
    "planar": lambda *_: pin.JointModelPlanar(),
    "spherical": lambda *_: pin.JointModelSpherical(),
    "free": lambda *_: pin.JointModelFreeFlyer(),
}


def se3(X: Transform) -> Any:
    return pin.SE3(np.array(X.R.rows, dtype=float), np.array([*X.r], dtype=float))


def built() -> Pair:
    """Return a tree with all joint types of Pinocchio, built there joint by joint."""
    robot = tree_for("Pinocchio", fixed=False)
    inertias = {link.name: link.inertia for link in robot.model.source.links}
    model, number = pin.Model(), {None: 0}
    armature: list[float] = []

    def add(joint: JointData) -> None:
        """Add a joint and its descendants; Pinocchio needs the joints of a branch together."""
        kind = PINOCCHIO_JOINTS[joint.kind](np.array([*joint.axis]), joint)
        k = model.addJoint(number[joint.parent], kind, se3(joint.pose), joint.name)
        model.appendBodyToJoint(k, in_pinocchio(inertias[joint.child]), pin.SE3.Identity())
        model.addFrame(pin.Frame(joint.child, k, pin.SE3.Identity(), pin.BODY))
        armature.extend([joint.armature] * model.joints[k].nv)
        number[joint.child] = k
        hang(joint.child)

    def hang(link: str | None) -> None:
        for joint in robot.model.source.joints:
            if joint.parent == link:
                add(joint)

    hang(None)
    model.armature = np.array(armature)
    return Pair(robot, model)


def in_pinocchio(inertia: RigidInertia) -> Any:
    m, c = inertia.m, np.array([*inertia.h]) / inertia.m
    I = np.array(inertia.I.matrix().rows, dtype=float) - m * (c @ c * np.eye(3) - np.outer(c, c))
    return pin.Inertia(m, c, I)


PAIRS = {
    "panda": lambda: real("panda.urdf", floating=False),
    "kinova, continuous joints": lambda: real("kinova.urdf", floating=False),
    "talos, floating": lambda: real("talos_reduced.urdf", floating=True),
    "g1, free joint in the file": lambda: real("g1_29dof_rev_1_0.urdf", floating=False),
    "every joint type": built,
}


@pytest.fixture(scope="module", params=PAIRS)
def pair(request: pytest.FixtureRequest) -> Pair:
    return PAIRS[request.param]()


def test_pinocchio_sizes_and_neutral(pair: Pair) -> None:
    assert (pair.view.nq, pair.view.nv) == (pair.model.nq, pair.model.nv)
    close(pair.view.to_position(pair.robot.neutral()), pin.neutral(pair.model), ROUNDING)


def test_pinocchio_dynamics(pair: Pair) -> None:
    view, model, data = pair.view, pair.model, pair.model.createData()
    here = states(pair.robot)
    x, v = view.to_position(here.q), view.to_velocity(here.q, here.qd)
    a = view.to_acceleration(here.q, here.qd, here.qdd)
    tau = view.to_effort(here.q, here.tau)
    turned = turned_rotors(pair.robot, here.qd)  # Pinocchio leaves these forces out
    efforts = compiled(pair.robot, "inverse_dynamics", here.q, here.qd, here.qdd) - turned
    accelerations = compiled(pair.robot, "forward_dynamics", here.q, here.qd, here.tau + turned)
    masses = compiled(pair.robot, "mass_matrix", here.q)
    for k in range(len(x)):
        close(
            view.to_effort(here.q, efforts)[k], pin.rnea(model, data, x[k], v[k], a[k]), AGREEMENT
        )
        M = np.triu(pin.crba(model, data, x[k]))
        M = M + np.triu(M, 1).T
        close(view.to_mass_matrix(here.q, masses)[k], M, AGREEMENT)
        close(view.from_mass_matrix(x, M)[k], masses[k], AGREEMENT)
        found = pin.aba(model, data, x[k], v[k], tau[k])
        close(view.from_acceleration(x[k], v[k], found), accelerations[k], AGREEMENT)


@pytest.mark.parametrize("word", [pin.LOCAL, pin.WORLD, pin.LOCAL_WORLD_ALIGNED])
def test_pinocchio_jacobians_and_frame_velocities(pair: Pair, word: Any) -> None:
    view, model, data = pair.view, pair.model, pair.model.createData()
    robot, here = pair.robot, states(pair.robot)
    x, v = view.to_position(here.q), view.to_velocity(here.q, here.qd)
    link = robot.joint(robot.joints[-1]).child
    option = {"frame": link, **conventions.reference_frame(word)}
    assert option == {"frame": link, **conventions.reference_frame(str(word))}
    J = view.to_jacobian(here.q, compiled(robot, "jacobian", here.q, **option))
    motion = view.spatial(compiled(robot, "frame_velocity", here.q, here.qd, **option))
    frame = model.getFrameId(link, pin.BODY)
    for k in range(len(x)):
        pin.forwardKinematics(model, data, x[k], v[k])
        close(pin.getFrameVelocity(model, data, frame, word).vector, motion[k], AGREEMENT)
        expected = pin.computeFrameJacobian(model, data, x[k], frame, word)
        close(J[k], expected, AGREEMENT)


def test_pinocchio_momentum_and_external_forces(pair: Pair) -> None:
    view, model, data = pair.view, pair.model, pair.model.createData()
    robot, here = pair.robot, states(pair.robot, ())
    x, v = view.to_position(here.q), view.to_velocity(here.q, here.qd)
    A = compiled(robot, "centroidal_momentum_matrix", here.q)
    close(view.to_jacobian(here.q, A), pin.computeCentroidalMap(model, data, x), AGREEMENT)
    name, wrench = robot.joints[-1], np.arange(1.0, 7.0)
    forces = pin.StdVec_Force()
    forces.extend([pin.Force.Zero() for _ in range(model.njoints)])
    forces[model.getJointId(name)] = pin.Force(wrench)
    given = chasles.Wrench(view.spatial(wrench), **conventions.reference_frame("LOCAL"))
    keyed = {robot.joint(name).child: given}
    run = chasles.compile(robot, "bias_forces", backend="numpy", f_ext=keyed)
    bias = run(here.q, here.qd, given.value) - turned_rotors(robot, here.qd)
    tau = view.to_effort(here.q, bias)
    close(tau, pin.rnea(model, data, x, v, np.zeros(model.nv), forces), AGREEMENT)


def test_positions_integrate_alike(pair: Pair) -> None:
    """Both libraries have the same tangent spaces, so equal steps give equal positions."""
    view, here = pair.view, states(pair.robot, ())
    x, v = view.to_position(here.q), view.to_velocity(here.q, here.qd)
    later = view.to_position(compiled(pair.robot, "integrate", here.q, here.qd))
    close(pin.difference(pair.model, pin.integrate(pair.model, x, v), later), 0 * v, 1e-13, 1.0)


# MuJoCo ----------------------------------------------------------------------------------------

MJCF = """
<mujoco>
  <option gravity="0.5 0 -9.81"/>
  <compiler angle="radian" inertiafromgeom="false"/>
  <worldbody>
    <body name="trunk" {place}>
      {base}
      <inertial mass="4" pos="0.1 -0.05 0.02" fullinertia="0.3 0.4 0.5 0.02 -0.01 0.03"/>
      <body name="arm" pos="0.3 0.1 -0.2" euler="0.4 -0.7 1.1">
        <joint name="shoulder" type="ball" armature="0.02"/>
        <inertial mass="2" pos="0 0.1 0.2" fullinertia="0.1 0.12 0.08 0.01 0.02 -0.01"/>
        <body name="hand" pos="0 0 0.5">
          <joint name="elbow" type="hinge" axis="0 1 0" armature="0.1"/>
          <inertial mass="1" pos="0.05 0 0.1" fullinertia="0.03 0.02 0.04 0.001 0 0.002"/>
        </body>
      </body>
      <body name="head" pos="-0.1 0.2 0.4">
        <joint name="neck" type="slide" axis="0.6 0 0.8"/>
        <inertial mass="1.5" pos="0.02 0.03 0.1" fullinertia="0.02 0.02 0.03 0 0.001 0"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
PLACE = (0.2, -0.3, 0.9)
INERTIALS = {
    "trunk": (4.0, (0.1, -0.05, 0.02), (0.3, 0.4, 0.5, 0.02, -0.01, 0.03)),
    "arm": (2.0, (0.0, 0.1, 0.2), (0.1, 0.12, 0.08, 0.01, 0.02, -0.01)),
    "hand": (1.0, (0.05, 0.0, 0.1), (0.03, 0.02, 0.04, 0.001, 0.0, 0.002)),
    "head": (1.5, (0.02, 0.03, 0.1), (0.02, 0.02, 0.03, 0.0, 0.001, 0.0)),
}
BASES = {
    "free": ("free", "<freejoint/>", IDENTITY),
    "ball": ("spherical", '<joint name="base" type="ball"/>', Transform(IDENTITY.E, Vector(PLACE))),
    "fixed": ("fixed", "", Transform(IDENTITY.E, Vector(PLACE))),
}
EULER = ScipyRotation.from_euler("XYZ", [0.4, -0.7, 1.1]).as_matrix()  # MuJoCo's "xyz"


@dataclass(frozen=True)
class Twin:
    """A robot in chasles and in MuJoCo."""

    robot: chasles.Robot
    model: Any

    @property
    def view(self) -> Convention:
        return conventions.mujoco(
            self.robot, [self.model.joint(i).name for i in range(self.model.njnt)]
        )

    def at(self, x: np.ndarray, v: np.ndarray) -> Any:
        data = mujoco.MjData(self.model)
        data.qpos[:], data.qvel[:] = x, v
        mujoco.mj_forward(self.model, data)
        return data


@pytest.fixture(scope="module", params=BASES)
def twin(request: pytest.FixtureRequest) -> Twin:
    kind, base, pose = BASES[request.param]
    tilted = Transform.from_pose(
        Matrix(tuple(map(tuple, EULER.tolist()))), Vector.of(0.3, 0.1, -0.2)
    )
    joints = (  # not in MuJoCo's order, which follows each branch
        JointData("neck", "prismatic", "trunk", "head", at(-0.1, 0.2, 0.4), Vector.of(0.6, 0, 0.8)),
        JointData(
            "elbow", "continuous", "arm", "hand", at(0.0, 0.0, 0.5), Vector.of(0.0, 1.0, 0.0)
        ),
        JointData("base", kind, None, "trunk", pose),
        JointData("shoulder", "spherical", "trunk", "arm", tilted),
    )
    armatures = {"shoulder": 0.02, "elbow": 0.1}
    joints = tuple(replace(j, armature=armatures.get(j.name, 0.0)) for j in joints)
    links = tuple(
        LinkData(name, RigidInertia.from_center(m, Vector(c), Symmetric(*I)))
        for name, (m, c, I) in INERTIALS.items()
    )
    source = Description("twin", links, joints, gravity=Vector.of(0.5, 0.0, -9.81))
    place = f'pos="{PLACE[0]} {PLACE[1]} {PLACE[2]}"'
    model = mujoco.MjModel.from_xml_string(MJCF.format(base=base, place=place))
    return Twin(chasles.Robot(source), model)


def at(x: float, y: float, z: float) -> Transform:
    return Transform(IDENTITY.E, Vector.of(x, y, z))


def test_mujoco_sizes_and_neutral(twin: Twin) -> None:
    assert (twin.view.nq, twin.view.nv) == (twin.model.nq, twin.model.nv)
    neutral = twin.view.to_position(twin.robot.neutral())
    start = mujoco.MjData(twin.model).qpos.copy()
    if twin.view.nv == 11:
        start[:3] -= PLACE  # a free body starts at its position in the file
    close(neutral, start, ROUNDING)


def test_mujoco_kinematics(twin: Twin) -> None:
    view, robot, here = twin.view, twin.robot, states(twin.robot)
    x, v = view.to_position(here.q), view.to_velocity(here.q, here.qd)
    for link in robot.bodies:
        poses = compiled(robot, "forward_kinematics", here.q, frame=link)
        J = view.to_jacobian(here.q, compiled(robot, "jacobian", here.q, frame=link))
        for local, axes in ((0, "world"), (1, "frame")):
            motion = compiled(robot, "frame_velocity", here.q, here.qd, frame=link, axes=axes)
            for k in range(len(x)):
                data, number = twin.at(x[k], v[k]), twin.model.body(link).id
                found, p, r = np.zeros(6), *np.zeros((2, 3, robot.nv))
                kind = mujoco.mjtObj.mjOBJ_XBODY
                mujoco.mj_objectVelocity(twin.model, data, kind, number, found, local)
                close(view.spatial(motion[k]), found, AGREEMENT, scale=1.0)
                mujoco.mj_jacBody(twin.model, data, p, r, number)
                close(J[k], np.concatenate([r, p]), AGREEMENT, scale=1.0)
                close(poses[k, :3, 3], data.xpos[number], AGREEMENT)
                quaternion = conventions.scalar_first(conventions.to_pose(poses[k])[1])
                there = data.xquat[number] * np.sign(data.xquat[number, 0])
                close(quaternion, there, AGREEMENT)


def test_mujoco_dynamics(twin: Twin) -> None:
    view, robot, here = twin.view, twin.robot, states(twin.robot)
    x, v = view.to_position(here.q), view.to_velocity(here.q, here.qd)
    a, tau = view.to_acceleration(here.q, here.qd, here.qdd), view.to_effort(here.q, here.tau)
    efforts = compiled(robot, "inverse_dynamics", here.q, here.qd, here.qdd)
    accelerations = compiled(robot, "forward_dynamics", here.q, here.qd, here.tau)
    masses = compiled(robot, "mass_matrix", here.q)
    for k in range(len(x)):
        data, M = twin.at(x[k], v[k]), np.empty((robot.nv, robot.nv))
        for row, unit in zip(M, np.eye(robot.nv), strict=True):
            mujoco.mj_mulM(twin.model, data, row, unit)
        close(view.to_mass_matrix(here.q, masses)[k], M, AGREEMENT)
        close(view.from_mass_matrix(x[k], M), masses[k], AGREEMENT)
        at_rest_there = view.from_acceleration(x[k], v[k], np.zeros(robot.nv))
        bias = compiled(robot, "inverse_dynamics", here.q[k], here.qd[k], at_rest_there)
        close(view.to_effort(here.q[k], bias), data.qfrc_bias, AGREEMENT)
        data.qacc[:] = a[k]
        mujoco.mj_inverse(twin.model, data)
        close(view.to_effort(here.q, efforts)[k], data.qfrc_inverse, AGREEMENT)
        data.qfrc_applied[:] = tau[k]
        mujoco.mj_forward(twin.model, data)
        close(view.from_acceleration(x[k], v[k], data.qacc), accelerations[k], AGREEMENT)


def test_mujoco_positions_move_with_the_velocities(twin: Twin) -> None:
    view, robot, here, h = twin.view, twin.robot, states(twin.robot, ()), 1e-5
    x, v = view.to_position(here.q), view.to_velocity(here.q, here.qd)
    rate = np.empty(robot.nv)
    later, earlier = (view.to_position(moved(robot, here, t)[0]) for t in (h, -h))
    mujoco.mj_differentiatePos(twin.model, rate, 2 * h, earlier, later)
    close(rate, v, 1e-8)
    assert x.shape == later.shape


# Drake -----------------------------------------------------------------------------------------


def hamilton(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the product of quaternions (w, x, y, z)."""
    A, B = (ScipyRotation.from_quat(np.roll(x / np.linalg.norm(x), -1)) for x in (a, b))
    product = np.roll((A * B).as_quat(), 1) * np.linalg.norm(a) * np.linalg.norm(b)
    sign = np.sign(a[0] * b[0] - a[1:] @ b[1:]) * np.sign(product[0])
    return product * sign


def test_drake_free_joint_by_its_definition() -> None:
    """QuaternionFloatingJoint: q = (q_FM, p_FM), v = (w_FM, v_FM), both along the axes of F."""
    robot = quadruped()
    there, here, h = conventions.drake(robot), states(robot, ()), 1e-5
    x, v = there.to_position(here.q), there.to_velocity(here.q, here.qd)
    later, earlier = (there.to_position(moved(robot, here, t)[0]) for t in (h, -h))
    rate = (later - earlier) / (2 * h)
    close(0.5 * hamilton(np.array([0.0, *v[:3]]), x[:4]), rate[:4], 1e-8)
    close(v[3:6], rate[4:7], 1e-8)
    close(v[6:], rate[7:], 1e-8)
    trunk = compiled(robot, "frame_velocity", here.q, here.qd, frame="trunk")
    close(v[:6], trunk, 1e-14)
    J = compiled(robot, "jacobian", here.q, frame="trunk")
    close(there.to_jacobian(here.q, J)[:, :6], np.eye(6), 1e-14)


def test_drake_planar_joint_by_its_definition() -> None:
    """PlanarJoint: q = (x, y, theta), and v is its rate, so forces and M are those of Lagrange."""
    robot = tree_for("Drake")
    name = next(name for name in robot.joints if robot.joint(name).kind == "planar")
    there, here, h = conventions.drake(robot, (name, *others(robot, name))), states(robot, ()), 1e-5
    v = there.to_velocity(here.q, here.qd)
    later, earlier = (there.to_position(moved(robot, here, t)[0]) for t in (h, -h))
    close(v[:3], (later - earlier)[:3] / (2 * h), 1e-8)
    angle, *place = here.q[robot.position_slice(name)]
    assert there.to_position(here.q)[:3].tolist() == [*place, angle]


def others(robot: chasles.Robot, name: str) -> tuple[str, ...]:
    return tuple(other for other in robot.joints if other != name)


# Joint orders, and failed conversions ------------------------------------------------------------


def test_order_and_the_name_of_the_base() -> None:
    robot = quadruped()
    names = ["root_joint", *robot.joints[:0:-1]]
    there, same = conventions.pinocchio(robot, names), conventions.pinocchio(robot)
    assert there.joints == ("floating_base", *names[1:])
    assert same.joints == robot.joints
    q = robot.random(seed=3)
    close(there.to_position(q)[7:], q[:6:-1], 0.0)
    close(there.to_position(q)[:7], [*q[4:7], *q[1:4], q[0]], ROUNDING)


def test_fixed_joints_are_skipped() -> None:
    robot = tree_for("Drake", fixed=True)
    everything = [joint.name for joint in robot.model.source.joints]
    assert len(everything) > len(robot.joints)
    assert conventions.drake(robot, everything).joints == robot.joints


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda names: [*names[:-1], "elbow"], ("not in the robot: 'elbow'", "missing: 'joint6'")),
        (lambda names: names[:-2], ("missing: 'joint5', 'joint6'",)),
        (lambda names: [*names, names[0]], ("named twice: 'joint1'",)),
        (lambda names: ["universe", *names], ("not in the robot: 'universe'",)),
    ],
)
def test_wrong_joints_are_named(change: Any, words: tuple[str, ...]) -> None:
    robot = puma560()
    with pytest.raises(chasles.ModelError) as error:
        conventions.pinocchio(robot, change(list(robot.joints)))
    assert all(word in str(error.value) for word in words)


def test_mimic_joints_need_coordinates() -> None:
    robot = random_tree(12, 5, mimics=True, floating=False)
    with raises("E-CONVENTION-005", "mimic="):
        conventions.pinocchio(robot, robot.moving_joints)


@pytest.mark.parametrize(
    ("library", "kind", "words"),
    [
        ("Drake", "spherical", "E-CONVENTION-002"),
        ("Drake", "cylindrical", "E-CONVENTION-002"),
        ("Pinocchio", "cylindrical", "E-CONVENTION-002"),
        ("MuJoCo", "planar", "E-CONVENTION-002"),
        ("MuJoCo", "universal", "E-CONVENTION-002"),
        ("MuJoCo", "helical", "E-CONVENTION-002"),
    ],
)
def test_joints_that_a_library_lacks(library: str, kind: str, words: str) -> None:
    with raises(words) as error:
        VIEWS[library](single(JointData("odd", kind, None, "link", pitch=0.1)))
    assert "'odd'" in str(error.value)


def single(joint: JointData) -> chasles.Robot:
    inertia = RigidInertia.from_center(1.0, Vector.of(0.1, 0.2, 0.3), Symmetric(1, 1, 1, 0, 0, 0))
    return chasles.Robot(Description("single", (LinkData(joint.child, inertia),), (joint,)))


def test_planes_and_free_joints_that_mean_something_else() -> None:
    turned = single(JointData("slab", "planar", None, "link", axis=Vector.of(1.0, 0.0, 0.0)))
    for view in (conventions.pinocchio, conventions.drake):
        with raises("E-CONVENTION-003", "'slab'"):
            view(turned)
    raised = single(JointData("base", "free", None, "link", at(0.0, 0.0, 1.0)))
    assert conventions.pinocchio(raised).nq == conventions.drake(raised).nq == 7
    with raises("E-CONVENTION-004", "'base'"):
        conventions.mujoco(raised)


def test_wrong_arrays() -> None:
    robot = quadruped()
    there = conventions.pinocchio(robot)
    q, qd = robot.random(seed=1), np.zeros(robot.nv)
    with raises("E-CALL-056", "19"):
        there.to_velocity(qd, qd)
    with raises("E-CALL-056", "18"):
        there.to_velocity(q, q)
    with raises("E-CONVENTION-007"):
        there.to_jacobian(q, np.zeros((3, robot.nv)))
    with raises("E-CONVENTION-008", "'floating_base'"):
        there.to_position(np.zeros((2, robot.nq)))
    with raises("E-CONVENTION-007"):
        conventions.swap(1.0)
    with raises("E-CONVENTION-006"):
        conventions.reference_frame("ELSEWHERE")


def test_quaternions_of_any_length_are_made_unit() -> None:
    robot = quadruped()
    there, q = conventions.pinocchio(robot), robot.random(seed=1)
    longer = q.copy()
    longer[:4] *= 3.0
    close(there.to_position(longer), there.to_position(q), ROUNDING)
    close(np.linalg.norm(there.to_position(longer)[3:7]), 1.0, ROUNDING)


# ROS, and states by joint name -------------------------------------------------------------------


def test_states_by_name() -> None:
    robot = random_tree(12, 3)
    here = states(robot, (4, 2))
    q, qd = (
        conventions.position_by_name(robot, here.q),
        conventions.velocity_by_name(robot, here.qd),
    )
    assert tuple(q) == tuple(qd) == robot.joints
    for name in robot.joints:
        size = JOINTS[robot.joint(name).kind].nq
        assert q[name].shape == ((4, 2) if size == 1 else (4, 2, size))
    close(conventions.position_from_names(robot, q), here.q, 0.0)
    close(conventions.velocity_from_names(robot, qd), here.qd, 0.0)


def test_named_joints_replace_a_default() -> None:
    robot = quadruped()
    bent = conventions.position_from_names(robot, {"front_left_knee": -1.0})
    expected = robot.neutral()
    expected[robot.position_slice("front_left_knee")] = -1.0
    close(bent, expected, 0.0)
    many = conventions.position_from_names(
        robot,
        {"front_left_knee": np.zeros(5), "floating_base": [1, 0, 0, 0, 0, 0, 0.4]},
        default=bent,
    )
    assert many.shape == (5, robot.nq)
    assert not many[:, robot.position_slice("front_left_knee")].any()
    close(bent, expected, 0.0)
    still = conventions.velocity_from_names(robot, {})
    assert still.tolist() == [0.0] * robot.nv
    with raises("E-MODEL-037", "'tail'"):
        conventions.position_from_names(robot, {"tail": 0.0})
    with raises("E-CALL-056", "'floating_base'"):
        conventions.position_from_names(robot, {"floating_base": 0.0})


class JointState:
    """Stand-in for sensor_msgs/JointState: attributes, with empty lists for unknown values."""

    def __init__(self, name: list[str], position: Any = (), velocity: Any = (), effort: Any = ()):
        self.name, self.position, self.velocity, self.effort = name, position, velocity, effort


def test_joint_states() -> None:
    robot = humanoid()
    here = states(robot, ())
    fields = conventions.to_joint_state(robot, here.q, here.qd, here.tau)
    assert "floating_base" not in fields["name"]
    assert all(isinstance(x, float) for x in fields["position"])
    for message in (fields, JointState(**fields)):
        q, qd, tau = conventions.from_joint_state(robot, message, default=here.q)
        close(q, here.q, 0.0)
        close(qd[6:], here.qd[6:], 0.0)
        close(tau[6:], here.tau[6:], 0.0)
        assert not qd[:6].any()
    backwards: Mapping[str, Any] = {key: value[::-1] for key, value in fields.items()}
    close(conventions.from_joint_state(robot, backwards, default=here.q)[0], here.q, 0.0)
    only = conventions.to_joint_state(robot, here.q)
    assert only["velocity"] == only["effort"] == []
    q, qd, tau = conventions.from_joint_state(robot, JointState(**only))
    close(q[7:], here.q[7:], 0.0)
    close(q[:7], robot.neutral()[:7], 0.0)
    assert not qd.any()
    assert not tau.any()


def test_joint_states_of_many_moments_and_of_strangers() -> None:
    robot = puma560()
    here = states(robot, (4,))
    fields = conventions.to_joint_state(robot, here.q, here.qd)
    close(conventions.from_joint_state(robot, fields)[1], here.qd, 0.0)
    with raises("E-MODEL-037", "'gripper'"):
        conventions.from_joint_state(robot, JointState(["gripper"], [0.1]))
    with raises("E-CALL-056"):
        conventions.from_joint_state(robot, JointState(["joint1"], [0.1], [0.1, 0.2]))
    geared = random_tree(12, 5, mimics=True, floating=False)
    follower = next(name for name in geared.moving_joints if name not in geared.joints)
    q, *_ = conventions.from_joint_state(geared, JointState([follower], [0.1]))
    close(q, geared.neutral(), 0.0)


def test_poses() -> None:
    """Conversions are accurate near every half turn, where three of four formulas fail."""
    rng = np.random.default_rng(5)
    half = ScipyRotation.from_rotvec(np.pi * np.eye(3)).as_quat()
    turns = np.concatenate([rng.normal(size=(50, 4)), half, half + 1e-9, [[0, 0, 0, -1]]])
    turns /= np.linalg.norm(turns, axis=-1, keepdims=True)
    places = rng.normal(size=(len(turns), 3))
    T = conventions.from_pose(places, turns)
    close(T[:, :3, :3], ScipyRotation.from_quat(turns).as_matrix(), 1e-15)
    p, found = conventions.to_pose(T)
    close(p, places, 0.0)
    assert np.all(found[:, 3] >= 0.0)
    same = np.minimum(*(np.abs(found + s * turns).max(axis=-1) for s in (1.0, -1.0)))
    assert same.max() < 1e-15
    close(conventions.from_pose(p, found), T, 2e-15)
    close(conventions.to_pose(T.reshape(3, -1, 4, 4))[1].reshape(-1, 4), found, 0.0)


def test_quaternion_and_twist_orders() -> None:
    assert conventions.scalar_last([1.0, 2.0, 3.0, 4.0]).tolist() == [2, 3, 4, 1]
    assert conventions.scalar_first([2.0, 3.0, 4.0, 1.0]).tolist() == [1, 2, 3, 4]
    twist = np.arange(12.0).reshape(2, 6)
    assert conventions.swap(twist)[1].tolist() == [9, 10, 11, 6, 7, 8]
    close(conventions.swap(conventions.swap(twist)), twist, 0.0)
