"""Joints with one freedom, or none."""

from dataclasses import dataclass
from typing import ClassVar

from chasles.expr import Number, cos, sin
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation, about
from chasles.mathematics.spatial import Forces, Motions, RigidInertia, Transform
from chasles.model.joints.basis import (
    FX,
    FY,
    FZ,
    MX,
    MY,
    MZ,
    VX,
    VY,
    VZ,
    WZ,
    Z,
    axial,
    turn_about_z,
)
from chasles.model.joints.contract import Bounds, Joint, Numbers, Part, Steady


@dataclass(frozen=True)
class Fixed(Steady):
    """No freedom: the weld that closes a loop (elsewhere, fixed joints merge two links)."""

    kind = "fixed"
    nq = nv = 0
    units = ()
    along = ""
    names = {"URDF": "fixed", "SDF": "fixed", "MJCF equality": "weld"}

    def motion(self, q: Vector) -> Transform:
        return Transform.identity()

    def subspace(self, q: Vector) -> Motions:
        return Motions(())

    def constraint(self, q: Vector) -> Forces:
        return Forces((MX, MY, MZ, FX, FY, FZ))

    def fit(self, X: Transform) -> Vector:
        return Vector(())


@dataclass(frozen=True)
class Revolute(Steady):
    """Rotation about z by q (rad); at q = 0 the body's frame is turned by `offset`."""

    offset: float = 0.0

    kind = "revolute"
    nq = nv = 1
    units = ("rad",)
    flips = hinge = True
    bounds: ClassVar[Bounds] = "needed"
    twin = "continuous"
    names = {"URDF": "revolute", "SDF": "revolute", "MJCF": "hinge", "DH": "revolute", "DAT": "0"}
    numbers = Numbers("angle", "rate")
    elsewhere = {"Pinocchio": numbers, "MuJoCo": numbers, "Drake": numbers}

    def motion(self, q: Vector) -> Transform:
        return Transform(about(2, q[0] + self.offset), Vector.zero())

    def neutral(self) -> Vector:
        return Vector.of(-self.offset)

    def subspace(self, q: Vector) -> Motions:
        return Motions((WZ,))

    def constraint(self, q: Vector) -> Forces:
        return Forces((MX, MY, FX, FY, FZ))

    def fit(self, X: Transform) -> Vector:
        return Vector.of(turn_about_z(X) - self.offset)

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        return axial(k, inertia.h[2], inertia.m)


@dataclass(frozen=True)
class Continuous(Revolute):
    """A revolute joint without stops, whose angle wraps."""

    bounds = "none"
    twin = "revolute"
    names = Revolute.names | {"URDF": "continuous", "SDF": "continuous"}
    elsewhere = Revolute.elsewhere | {"Pinocchio": Numbers("cos sin", "rate")}


@dataclass(frozen=True)
class Prismatic(Steady):
    """Translation along z by q (m)."""

    kind = "prismatic"
    nq = nv = 1
    units = ("m",)
    flips = True
    bounds = "needed"
    names = {
        "URDF": "prismatic",
        "SDF": "prismatic",
        "MJCF": "slide",
        "DH": "prismatic",
        "DAT": "1",
    }
    numbers = Numbers("distance", "rate")
    elsewhere = {"Pinocchio": numbers, "MuJoCo": numbers, "Drake": numbers}

    def motion(self, q: Vector) -> Transform:
        return Transform(Rotation(), Z * q[0])

    def subspace(self, q: Vector) -> Motions:
        return Motions((VZ,))

    def constraint(self, q: Vector) -> Forces:
        return Forces((MX, MY, MZ, FX, FY))

    def fit(self, X: Transform) -> Vector:
        return Vector.of(X.r[2])

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        return RigidInertia(0.0, Vector.zero(), inertia.I)


@dataclass(frozen=True)
class Helical(Steady):
    """Screw about z: rotation by q (rad), advance by pitch times q (pitch in m/rad)."""

    pitch: float = 0.0

    kind = "helical"
    data = ("pitch",)
    nq = nv = 1
    units = ("rad",)
    flips = True
    names = {"SDF": "screw"}
    numbers = Numbers("angle", "rate")
    elsewhere = {"Pinocchio": numbers, "Drake": numbers}
    series = (Part("prismatic", 2, "pitch"), Part("revolute", 2))

    def motion(self, q: Vector) -> Transform:
        return Transform(about(2, q[0]), Z * (q[0] * self.pitch))

    def subspace(self, q: Vector) -> Motions:
        return Motions((WZ + VZ * self.pitch,))

    def constraint(self, q: Vector) -> Forces:
        return Forces((MX, MY, FX, FY, FZ - MZ * self.pitch))

    def fit(self, X: Transform) -> Vector:
        """By the advance, which knows the number of turns."""
        return Vector.of(X.r[2] / self.pitch if self.pitch else turn_about_z(X))

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        return axial(k)


@dataclass(frozen=True)
class RackAndPinion(Joint):
    """A pinion that rolls on a rack along x: turned about z by q (rad), its centre at x = radius q.

    Featherstone 2008, example 4.6. The rack is the parent's, at a distance of `radius` (m) on the
    side of positive y; reversed, it is the body's.
    """

    radius: float = 0.0

    kind = "rack_and_pinion"
    data = ("radius",)
    nq = nv = 1
    units = ("rad",)
    along, askew = "zx", "the second one is the rack's direction"
    numbers = Numbers("angle", "rate")
    series = (Part("prismatic", 0, "radius"), Part("revolute", 2))

    def motion(self, q: Vector) -> Transform:
        return Transform(about(2, q[0]), Vector.of(q[0] * self.radius, 0.0, 0.0))

    def subspace(self, q: Vector) -> Motions:
        return Motions((WZ + VX * (self.radius * cos(q[0])) - VY * (self.radius * sin(q[0])),))

    def constraint(self, q: Vector) -> Forces:
        c, s = cos(q[0]), sin(q[0])
        return Forces((MX, MY, FX * s + FY * c, FX * c - FY * s - MZ * self.radius, FZ))

    def fit(self, X: Transform) -> Vector:
        """By the travel, which knows the number of turns."""
        return Vector.of(X.r[0] / self.radius if self.radius else turn_about_z(X))

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        return axial(k)
