"""Joint types with at most one degree of freedom, reversed joints, and the table of all types.

To add a type, add a class to this folder and an entry to `JOINTS`. Properties for file formats and
other libraries are attributes of the class (`contract.Joint`), so that other modules do not depend
on the names of types. The tests are in tests/model/test_joints.py.
"""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from chasles.expr import cos, sin
from chasles.mathematics.derivatives import leibniz
from chasles.mathematics.linear import Vector, diagonal
from chasles.mathematics.rotations import Rotation, about, conjugate
from chasles.mathematics.spatial import Forces, Motion, Motions, Transform, inverted, turn_about_z
from chasles.model.joints.contract import (
    LOADS,
    UNITS,
    Continuous,
    Joint,
    Natural,
    Numbers,
    Part,
    Revolute,
    Steady,
    Z,
)
from chasles.model.joints.several_freedoms import (
    Cylindrical,
    Free,
    Planar,
    Rolling,
    SphereInCylinder,
    Spherical,
    Universal,
    YawPitchRoll,
)

WX, WY, WZ, VX, VY, VZ = UNITS
MX, MY, MZ, FX, FY, FZ = LOADS


@dataclass(frozen=True)
class Fixed(Natural):
    """A fixed joint that closes a loop. (Links connected by other fixed joints are merged.)"""

    kind = "fixed"
    nq = nv = 0
    units = ()
    free = ()
    along = ""
    names = {"URDF": "fixed", "SDF": "fixed", "MJCF equality": "weld"}

    def motion(self, q: Vector) -> Transform:
        return Transform.identity()

    def fit(self, X: Transform) -> Vector:
        return Vector(())


@dataclass(frozen=True)
class Prismatic(Natural):
    """Translation along z by q (m)."""

    kind = "prismatic"
    nq = nv = 1
    units = ("m",)
    unfelt = "I"
    free = (VZ,)
    flips = True
    bounds = "needed"
    names = Revolute.names | {"URDF": "prismatic", "SDF": "prismatic", "DH": "prismatic"}
    names |= {"MJCF": "slide", "DAT": "1"}
    numbers = Numbers("distance", "rate")
    elsewhere = {"Pinocchio": numbers, "MuJoCo": numbers, "Drake": numbers}

    def motion(self, q: Vector) -> Transform:
        return Transform(Rotation(), Z * q[0])

    def fit(self, X: Transform) -> Vector:
        return Vector.of(X.r[2])


@dataclass(frozen=True)
class Helical(Steady):
    """Screw joint about z: rotation by q (rad) and translation by pitch (m/rad) times q."""

    pitch: float = 0.0

    kind = "helical"
    data = ("pitch",)
    nq = nv = 1
    units = ("rad",)
    unfelt = "k"
    flips = True
    names = {"SDF": "screw", "DH": "helical", "DAT": "2"}
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
        """Return the angle; full turns are included only if the pitch is nonzero."""
        return Vector.of(X.r[2] / self.pitch if self.pitch else turn_about_z(X))


@dataclass(frozen=True)
class RackAndPinion(Joint):
    """Pinion that rolls on a rack along x: rotation about z by q (rad), center at x = radius * q.

    The rack is fixed to the parent at y = radius (m), or to the body if the joint is reversed. See
    Featherstone 2008, example 4.6.
    """

    radius: float = 0.0

    kind = "rack_and_pinion"
    data = ("radius",)
    nq = nv = 1
    units = ("rad",)
    unfelt = "k"
    along, askew = "zx", "give the second axis along the rack"
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
        """Return the angle, including full turns, computed from the position along the rack."""
        return Vector.of(X.r[0] / self.radius if self.radius else turn_about_z(X))


@dataclass(frozen=True, kw_only=True)
class Reversed(Joint):
    """A joint with predecessor and successor frames exchanged (Featherstone 2008, table 4.2).

    X is inverted; S, c_J and T are negated and expressed in the other frame. Coordinates,
    generalized forces, power and the attribute `unfelt` are unchanged.
    """

    inner: Joint

    def __post_init__(self) -> None:
        traits = ("nq", "nv", "units", "additive", "holonomic", "path")
        same = ("neutral", "integrate", "difference", "drift", "transferable", "transmission")
        for name in (*traits, *same):
            object.__setattr__(self, name, getattr(self.inner, name))
        object.__setattr__(self, "kind", f"reversed {self.inner.kind}")

    def displacement(self, q: Vector) -> Vector:
        return replace(self.inner, rest=self.rest).displacement(q)

    def motion(self, q: Vector) -> Transform:
        return inverted(self.inner.motion(q))

    def turn(self, q: Vector) -> Vector:
        return conjugate(self.inner.turn(q))

    def subspace(self, q: Vector) -> Motions:
        return self.subspace_rates(q, ())[0]

    def subspace_rates(self, q: Vector, rates: Sequence[Vector]) -> list[Motions]:
        """Return the motion subspace S and its time derivatives.

        `inner` is the joint before the exchange of frames. A motion vector A with derivative Ad in
        the successor frame of `inner` has the derivative Ad + vJ x A in its predecessor frame,
        where vJ is the joint velocity of `inner`.
        """
        back = self.inner.motion(q).inverse()
        A = self.inner.subspace_rates(q, rates)
        vJ = [leibniz(lambda qd, S: S @ qd, rates, A, k) for k in range(len(rates))]
        found = []
        while A:
            found.append(back @ _negative(A[0]))
            A = [A[k + 1] + leibniz(Motion.cross, vJ, A, k) for k in range(len(A) - 1)]
        return found

    def bias_slopes(self, q: Vector, qd: Vector) -> Motions:
        back, c = self.inner.motion(q).inverse(), self.inner.bias(q, qd)
        S, slopes = self.inner.subspace(q).columns, self.inner.bias_slopes(q, qd).columns
        turned = Motions(tuple(slope + s.cross(c) for s, slope in zip(S, slopes, strict=True)))
        return back @ _negative(turned)

    def constraint(self, q: Vector) -> Forces:
        return self.inner.motion(q).T @ (self.inner.constraint(q) * -1.0)

    def fit(self, X: Transform) -> Vector:
        return self.inner.fit(inverted(X))


def _negative(S: Motions) -> Motions:
    return Motions(tuple(-column for column in S.columns))


# Table of joint types -----------------------------------------------------------------------------

JOINTS: dict[str, type[Joint]] = {
    "revolute": Revolute,
    "continuous": Continuous,
    "prismatic": Prismatic,
    "helical": Helical,
    "cylindrical": Cylindrical,
    "planar": Planar,
    "universal": Universal,
    "spherical": Spherical,
    "free": Free,
    "rack_and_pinion": RackAndPinion,
    "sphere_in_cylinder": SphereInCylinder,
    "yaw_pitch_roll": YawPitchRoll,
    "rolling": Rolling,
}
"""Joint types by name. "fixed" is not included, because fixed joints merge two links."""

TYPES: Mapping[str, type[Joint]] = ChainMap(JOINTS, {"fixed": Fixed})
"""The fixed joint and all types in `JOINTS`, including types that are added later."""

LOOP_JOINTS: dict[str, type[Joint]] = {"fixed": Fixed} | {
    name: joint for name, joint in JOINTS.items() if joint.holonomic
}
"""Joint types that can close a loop, because they constrain positions, not only velocities."""

__all__ = [
    "JOINTS",
    "LOOP_JOINTS",
    "TYPES",
    "Joint",
    "Numbers",
    "Reversed",
    "Revolute",
    "Steady",
    "Z",
    "diagonal",
]
