"""Joints that turn about a point."""

from dataclasses import dataclass

from chasles.expr import Number, atan2, cos, sin
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import (
    about,
    conjugate,
    quaternion_from_matrix,
    quaternion_from_vector,
    quaternion_product,
    rpy_from_matrix,
    vector_from_quaternion,
)
from chasles.mathematics.spatial import Forces, Motion, Motions, RigidInertia, Transform
from chasles.model.joints.basis import (
    FX,
    FY,
    FZ,
    MX,
    MZ,
    WX,
    WY,
    WZ,
    axial,
    group_drift,
    orientation,
)
from chasles.model.joints.contract import Joint, Numbers, Part, Steady


@dataclass(frozen=True)
class Universal(Joint):
    """Rotation about x by q[0], then about the turned y by q[1] (rad)."""

    kind = "universal"
    nq = nv = 2
    units = ("rad", "rad")
    along, askew = "xy", "put a fixed rotation between two revolute joints instead"
    names = {"SDF": "universal revolute2"}
    numbers = Numbers("angle1 angle2", "rate1 rate2")
    elsewhere = {"Pinocchio": numbers, "Drake": numbers}
    series = (Part("revolute", 0), Part("revolute", 1))

    def motion(self, q: Vector) -> Transform:
        return Transform(about(0, q[0]).then(about(1, q[1])), Vector.zero())

    def subspace(self, q: Vector) -> Motions:
        return Motions((WX * cos(q[1]) + WZ * sin(q[1]), WY))

    def constraint(self, q: Vector) -> Forces:
        return Forces((MZ * cos(q[1]) - MX * sin(q[1]), FX, FY, FZ))

    def fit(self, X: Transform) -> Vector:
        """R = Rx Rz Ry: the error is a turn about z between the two axes."""
        R = X.R
        return Vector.of(atan2(R[2, 1], R[1, 1]), atan2(R[0, 2], R[0, 0]))

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        return axial(0.0, 0.0, inertia.m)


@dataclass(frozen=True)
class Spherical(Steady):
    """Any rotation: q is a non-zero quaternion (w, x, y, z), qd the body's angular velocity."""

    kind = "spherical"
    additive = False
    nq, nv = 4, 3
    units = ("1", "1", "1", "1")
    along = ""
    names = {"SDF": "ball", "MJCF": "ball", "MJCF equality": "connect"}
    numbers = Numbers("qw qx qy qz", "wx wy wz")
    elsewhere = {
        "Pinocchio": Numbers("qx qy qz qw", "wx wy wz"),
        "MuJoCo": numbers,
        "Drake": "its BallRpyJoint has roll, pitch and yaw, no quaternion",
    }

    def motion(self, q: Vector) -> Transform:
        return Transform(orientation(q), Vector.zero())

    def subspace(self, q: Vector) -> Motions:
        return Motions((WX, WY, WZ))

    def constraint(self, q: Vector) -> Forces:
        return Forces((FX, FY, FZ))

    def fit(self, X: Transform) -> Vector:
        return quaternion_from_matrix(X.R)

    def neutral(self) -> Vector:
        return Vector.of(1.0, 0.0, 0.0, 0.0)

    def integrate(self, q: Vector, v: Vector) -> Vector:
        return quaternion_product(q, quaternion_from_vector(v))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        return vector_from_quaternion(quaternion_product(conjugate(q0), q1))

    def drift(self, qd: Vector) -> Matrix:
        return group_drift(self.subspace(qd), qd)

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        return axial(0.0, 0.0, inertia.m)


@dataclass(frozen=True)
class YawPitchRoll(Joint):
    """Any rotation by three angles: q = (yaw, pitch, roll) about z, the new y and the new x (rad).

    Featherstone 2008, Eq 4.7-4.9. Where the pitch is a right angle, yaw and roll turn about one
    axis and S loses a rank: a spherical joint has no such positions.
    """

    kind = "yaw_pitch_roll"
    nq = nv = 3
    units = ("rad", "rad", "rad")
    along = ""
    numbers = Numbers("angle1 angle2 angle3", "rate1 rate2 rate3")
    series = (Part("revolute", 2), Part("revolute", 1), Part("revolute", 0))

    def motion(self, q: Vector) -> Transform:
        E = about(2, q[0]).then(about(1, q[1])).then(about(0, q[2]))
        return Transform(E, Vector.zero())

    def subspace(self, q: Vector) -> Motions:
        yaw = about(0, q[2]) @ Vector.of(-sin(q[1]), 0.0, cos(q[1]))
        pitch = about(0, q[2]) @ Vector.of(0.0, 1.0, 0.0)
        return Motions((Motion(yaw, Vector.zero()), Motion(pitch, Vector.zero()), WX))

    def constraint(self, q: Vector) -> Forces:
        return Forces((FX, FY, FZ))

    def fit(self, X: Transform) -> Vector:
        roll, pitch, yaw = rpy_from_matrix(X.R)
        return Vector.of(yaw, pitch, roll)

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        return axial(0.0, 0.0, inertia.m)
