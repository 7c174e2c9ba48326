"""Check every statement on Drake's conventions in docs/conventions.md with Drake itself."""

from typing import Any

import numpy as np
import pytest
from support import close, state

import chasles
from chasles import conventions
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import aligned_to_z
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import Description, JointData, LinkData

pytest.importorskip("pydrake", reason="pip install drake")
from pydrake.common.value import Value
from pydrake.math import RigidTransform, RollPitchYaw, RotationMatrix
from pydrake.multibody import tree
from pydrake.multibody.math import SpatialForce
from pydrake.multibody.plant import ExternallyAppliedSpatialForce, MultibodyPlant

AGREEMENT = 1e-12
JOINTS = {
    "free": ("QuaternionFloatingJoint", lambda joint: ()),
    "planar": ("PlanarJoint", lambda joint: ()),
    "universal": ("UniversalJoint", lambda joint: ()),
    "helical": ("ScrewJoint", lambda joint: ([*joint.axis], 2.0 * np.pi * joint.pitch, 0.0)),
    "revolute": ("RevoluteJoint", lambda joint: ([*joint.axis],)),
    "continuous": ("RevoluteJoint", lambda joint: ([*joint.axis],)),
    "prismatic": ("PrismaticJoint", lambda joint: ([*joint.axis],)),
}
"""Drake's class for each joint type in the first table of the page, and its arguments."""


def branched() -> chasles.Robot:
    """Return a floating tree with every joint type of Drake, added alternately to two branches."""
    rng = np.random.default_rng(3)
    kinds = ["free", "planar", "universal", "helical", "revolute", "continuous", "prismatic"]
    links, joints = [], []
    for k, kind in enumerate(kinds):
        center, moments = Vector.of(*rng.normal(size=3)), Symmetric(0.3, 0.4, 0.5, 0.01, 0.02, 0.03)
        links.append(LinkData(f"link{k}", RigidInertia.from_center(1.0 + k, center, moments)))
        parent = f"link{max(k - 2, 0)}" if k else None
        axis = Vector.of(0.0, 0.0, 1.0) if kind == "planar" else Vector.of(0.48, 0.6, 0.64)
        turn = aligned_to_z(Vector.of(0.6, 0.0, 0.8))
        pose = Transform.from_pose(turn, Vector.of(*rng.normal(size=3)))
        joints.append(JointData(kind, kind, parent, f"link{k}", pose=pose, axis=axis, pitch=0.2))
    return chasles.Robot(Description("branched", tuple(links), tuple(joints)))


def matrix(rows: Any) -> np.ndarray:
    return np.array(rows, dtype=float)


def built(robot: chasles.Robot) -> Any:
    """Build the same robot in Drake, joint by joint."""
    plant = MultibodyPlant(0.0)
    bodies = {}
    for link in robot.model.source.links:
        m, c = link.inertia.m, np.array([*link.inertia.h]) / link.inertia.m
        I = matrix(link.inertia.I.matrix().rows)
        unit = tree.UnitInertia(*(np.diag(I) / m), *(I[[0, 0, 1], [1, 2, 2]] / m))
        bodies[link.name] = plant.AddRigidBody(link.name, tree.SpatialInertia(m, c, unit))
    for joint in robot.model.source.joints:
        above = bodies[joint.parent].body_frame() if joint.parent else plant.world_frame()
        below = bodies[joint.child].body_frame()
        turn = np.eye(3)
        if joint.kind == "universal":  # its axes are x and y of the frames on both bodies
            x, y = matrix([*joint.axis]), matrix(aligned_to_z(joint.axis).rows[0])
            turn = np.stack([x, y, np.cross(x, y)], axis=1)
        place = RigidTransform(RotationMatrix(matrix(joint.pose.R.rows) @ turn), [*joint.pose.r])
        F = plant.AddFrame(tree.FixedOffsetFrame(f"{joint.name} F", above, place))
        M = RigidTransform(RotationMatrix(turn), np.zeros(3))
        M = plant.AddFrame(tree.FixedOffsetFrame(f"{joint.name} M", below, M))
        name, arguments = JOINTS[joint.kind]
        plant.AddJoint(getattr(tree, name)(joint.name, F, M, *arguments(joint)))
    plant.Finalize()
    return plant


class Both:
    """Robot in chasles and in Drake, at the same random state."""

    def __init__(self) -> None:
        self.robot = branched()
        self.plant = built(self.robot)
        joints = [self.plant.get_joint(k) for k in self.plant.GetJointIndices()]
        joints.sort(key=lambda joint: joint.position_start())
        self.joints = [joint.name() for joint in joints]
        self.there = conventions.drake(self.robot, self.joints)
        self.q, self.qd, self.qdd = state(self.robot, 5)
        self.x = self.there.to_position(self.q)
        self.v = self.there.to_velocity(self.q, self.qd)
        self.context = self.plant.CreateDefaultContext()
        self.plant.SetPositions(self.context, self.x)
        self.plant.SetVelocities(self.context, self.v)

    def body(self, name: str) -> Any:
        return self.plant.GetBodyByName(name)


@pytest.fixture(scope="module")
def both() -> Both:
    return Both()


# Joints: the first table -----------------------------------------------------------------------


def test_every_joint_type_of_the_table_is_tried(both: Both) -> None:
    assert set(JOINTS) == set(conventions.LIBRARIES["Drake"])
    assert set(JOINTS) == {both.robot.joint(name).kind for name in both.robot.joints}


def test_positions(both: Both) -> None:
    """Poses of all links agree, which verifies axes, order and signs of the coordinates."""
    assert (both.there.nq, both.there.nv) == (
        both.plant.num_positions(),
        both.plant.num_velocities(),
    )
    for name in both.robot.bodies:
        there = both.plant.EvalBodyPoseInWorld(both.context, both.body(name)).GetAsMatrix4()
        close(both.robot.forward_kinematics(both.q, frame=name), there, AGREEMENT)


def test_velocities(both: Both) -> None:
    for name in both.robot.bodies:
        there = both.plant.EvalBodySpatialVelocityInWorld(both.context, both.body(name))
        here = both.robot.frame_velocity(both.q, both.qd, frame=name)
        close(here, there.get_coeffs(), AGREEMENT)  # angular first, at the body's origin


def test_accelerations_and_forces(both: Both) -> None:
    """Mass matrix and inverse dynamics agree for converted accelerations and forces."""
    plant, context, there = both.plant, both.context, both.there
    close(
        there.to_mass_matrix(both.q, both.robot.mass_matrix(both.q)),
        plant.CalcMassMatrix(context),
        AGREEMENT,
    )
    forces = tree.MultibodyForces(plant)
    plant.CalcForceElementsContribution(context, forces)
    a = there.to_acceleration(both.q, both.qd, both.qdd)
    tau = there.to_effort(both.q, both.robot.inverse_dynamics(both.q, both.qd, both.qdd))
    close(tau, plant.CalcInverseDynamics(context, a, forces), AGREEMENT)


def test_ball_joints_have_angles() -> None:
    plant = MultibodyPlant(0.0)
    body = plant.AddRigidBody("body", tree.SpatialInertia.SolidCubeWithDensity(1.0, 1.0))
    plant.AddJoint(tree.BallRpyJoint("ball", plant.world_frame(), body.body_frame()))
    plant.Finalize()
    assert (plant.num_positions(), plant.num_velocities()) == (3, 3)


# Other conventions: the second table -----------------------------------------------------------


def test_quaternion_is_scalar_first(both: Both) -> None:
    turn = both.plant.GetJointByName("free").get_quaternion(both.context)
    assert [turn.w(), turn.x(), turn.y(), turn.z()] == both.x[:4].tolist()


def test_jacobian_of_a_point_measured_and_expressed_in_frames(both: Both) -> None:
    frame, point = both.body("link6").body_frame(), (0.1, -0.2, 0.3)
    for expressed, axes in ((both.plant.world_frame(), "world"), (frame, "frame")):
        J = both.plant.CalcJacobianSpatialVelocity(
            both.context,
            tree.JacobianWrtVariable.kV,
            frame,
            np.array(point),
            both.plant.world_frame(),
            expressed,
        )
        here = both.robot.jacobian(both.q, frame="link6", axes=axes, at=point)
        close(both.there.to_jacobian(both.q, here), J, AGREEMENT)


def test_acceleration_of_a_frame_is_classical(both: Both) -> None:
    a = both.there.to_acceleration(both.q, both.qd, both.qdd)
    all_there = both.plant.CalcSpatialAccelerationsFromVdot(both.context, a)
    for name in both.robot.bodies:
        body = both.body(name)
        here = both.robot.frame_acceleration(both.q, both.qd, both.qdd, frame=name)
        close(here, all_there[int(body.index())].get_coeffs(), AGREEMENT)


def test_inertia_of_a_link_is_about_the_origin(both: Both) -> None:
    for link in both.robot.model.source.links:
        there = both.body(link.name).default_spatial_inertia().CalcRotationalInertia()
        close(matrix(link.inertia.I.matrix().rows), there.CopyToFullMatrix3(), AGREEMENT)


def test_wrench_has_its_moment_first() -> None:
    force = SpatialForce(tau=[1.0, 2.0, 3.0], f=[4.0, 5.0, 6.0])
    assert force.get_coeffs().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_roll_pitch_yaw_about_fixed_axes() -> None:
    roll, pitch, yaw = angles = (0.3, -0.5, 0.9)
    x, y, z = (
        make(angle).matrix()
        for make, angle in zip(
            (
                RotationMatrix.MakeXRotation,
                RotationMatrix.MakeYRotation,
                RotationMatrix.MakeZRotation,
            ),
            (roll, pitch, yaw),
            strict=True,
        )
    )
    close(RollPitchYaw(angles).ToRotationMatrix().matrix(), z @ y @ x, AGREEMENT)


def test_order_of_coordinates_is_depth_first(both: Both) -> None:
    """Joint indices follow the order of addition; coordinates are in depth-first order."""
    added = [both.plant.get_joint(k).name() for k in both.plant.GetJointIndices()]
    assert added == list(both.robot.joints)
    assert both.joints == [
        "free",
        "planar",
        "helical",
        "continuous",
        "universal",
        "revolute",
        "prismatic",
    ]


def test_external_forces_act_on_the_robot(both: Both) -> None:
    """Forward dynamics agrees for a force in world axes at a point of a body."""
    push, point = np.array([0.5, -1.0, 2.0, 3.0, -2.0, 1.0]), (0.2, 0.1, -0.3)
    applied = ExternallyAppliedSpatialForce()
    applied.body_index = both.body("link6").index()
    applied.p_BoBq_B, applied.F_Bq_W = np.array(point), SpatialForce(push)
    port = both.plant.get_applied_spatial_force_input_port()
    context = both.plant.CreateDefaultContext()
    both.plant.SetPositions(context, both.x)
    both.plant.SetVelocities(context, both.v)
    port.FixValue(context, Value[list[ExternallyAppliedSpatialForce]]([applied]))
    rates = both.plant.EvalTimeDerivatives(context).get_generalized_velocity().CopyToVector()
    wrench = {"link6": chasles.Wrench(push, axes="world", at=point)}
    here = both.robot.forward_dynamics(both.q, both.qd, np.zeros(both.robot.nv), f_ext=wrench)
    close(both.there.to_acceleration(both.q, both.qd, here), rates, 1e-10)
