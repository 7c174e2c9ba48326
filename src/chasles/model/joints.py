"""The joint contract and every joint type.

A joint lets its body move against its parent. `transform(q)` takes motion coordinates of the parent
body's frame to those of the body's frame; `subspace(q)` is S with joint velocity S @ qd, written in
the body's frame; `subspace_rates(q, rates)` are S and its derivatives in that frame; `bias(q, qd)`
is the first one times qd. Every type is written for
its natural axes (z, or x then y); any other axis is absorbed by `placement` when a model is built.
A joint may also close a loop: then `fit(X)` are its coordinates, and `constraint(q)` is T, the
forces it transmits (T' S = 0), which are the directions in which it forbids motion.
To add a type, add a class here and its row in `JOINTS`: the tests in tests/model/test_joints.py
then hold it to the contract.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from typing import ClassVar, NamedTuple

from chasles.expr import Number, atan2, cos, less, sin
from chasles.mathematics.leibniz import leibniz
from chasles.mathematics.linear import Matrix, Symmetric, Vector, invert_symmetric
from chasles.mathematics.rotations import (
    General,
    Rotation,
    about,
    conjugate,
    matrix_from_quaternion,
    quaternion_from_matrix,
    quaternion_from_vector,
    quaternion_product,
    screw_of_translation,
    translation_of_screw,
    vector_from_quaternion,
)
from chasles.mathematics.spatial import Force, Forces, Motion, Motions, RigidInertia, Transform

_UNIT = [Motion.of(*(float(i == k) for i in range(6))) for k in range(6)]
_WX, _WY, _WZ, _VX, _VY, _VZ = _UNIT
_MX, _MY, _MZ, _FX, _FY, _FZ = (Force.of(*unit) for unit in _UNIT)
Z = Vector.of(0.0, 0.0, 1.0)


class Slopes(NamedTuple):
    """Derivatives of a joint's motion by its own coordinates, components in the body frame.

    subspace: of S, one for each coordinate. velocity: of S qd. acceleration: of S qdd + c_J. bias:
    of c_J by qd. One column for each coordinate; all zero where S is constant.
    """

    subspace: tuple[Motions, ...]
    velocity: Motions
    acceleration: Motions
    bias: Motions


@dataclass(frozen=True)
class Joint:
    """What every joint type provides; coordinates q have nq entries, velocities qd have nv.

    placement: the joint's own frame in the parent body's frame, at q = neutral.
    armature: rotor inertia added to each freedom's diagonal of the mass matrix.
    damping, friction: viscous coefficient and dry friction of each freedom.
    """

    placement: Transform
    armature: Vector
    damping: Vector
    friction: Vector

    kind: ClassVar[str]
    nq: ClassVar[int]
    nv: ClassVar[int]
    units: ClassVar[tuple[str, ...]]
    additive: ClassVar[bool] = True
    """Whether velocities are the rates of q, so that `integrate` adds them."""

    def motion(self, q: Vector) -> Transform:
        """The joint's own transform, from its predecessor frame to its successor frame."""
        raise NotImplementedError

    def transform(self, q: Vector) -> Transform:
        """From coordinates of the parent body to those of the body."""
        XT, XJ = self.placement, self.motion(q)
        return Transform(XT.E.then(XJ.E), XT.r + XT.E.T @ XJ.r)

    def subspace(self, q: Vector) -> Motions:
        """S: the columns span the joint's freedom, in body coordinates."""
        raise NotImplementedError

    def subspace_rates(self, q: Vector, rates: Sequence[Vector]) -> list[Motions]:
        """S, and the time derivatives of its components in the body frame: one for each rate.

        rates: qd, qdd, and so on. Types whose subspace is not constant override this.
        """
        return [self.subspace(q), *[Motions((Motion.zero(),) * self.nv) for _ in rates]]

    def subspace_rate(self, q: Vector, qd: Vector) -> Motions:
        """The derivative of S's components in the body frame."""
        return self.subspace_rates(q, (qd,))[1]

    def bias(self, q: Vector, qd: Vector) -> Motion:
        """c_J: the part of the joint's acceleration that is due to S changing in the body frame."""
        return self.subspace_rate(q, qd) @ qd

    def rates(self, q: Vector, v: Motion) -> Vector:
        """The qd of a velocity v = S qd across the joint (the nearest, where v is none)."""
        return self.active(q).T @ v

    def active(self, q: Vector) -> Forces:
        """T_a, with T_a' S = 1: as a force T_a @ tau an actuator inside the joint exerts tau.

        Another choice, such as that of a gear wheel at the rim, changes the load of the bearings
        and not the motion (Featherstone 2008, example 3.2).
        """
        S = self.subspace(q)
        dual = Forces(tuple(Force(s.angular, s.linear) for s in S.columns))
        return dual @ invert_symmetric(dual.T @ S)

    def constraint(self, q: Vector) -> Forces:
        """T: the columns span the forces that the joint transmits, in body coordinates."""
        raise NotImplementedError

    def fit(self, X: Transform) -> Vector:
        """The q with motion(q) = X; for other X, one that leaves of the error what T feels."""
        raise NotImplementedError

    def slopes(self, q: Vector, qd: Vector, qdd: Vector) -> Slopes:
        """How S and what it carries change with the joint's own coordinates."""
        none = Motions((Motion.zero(),) * self.nv)
        return Slopes((none,) * self.nv, none, none, none)

    def drift(self, qd: Vector) -> Matrix:
        """-ad(qd): a small step d along `integrate` changes at the rate drift @ d + (change of qd).

        Zero where steps add; the Lie bracket of the joint's own group where they do not.
        """
        return Matrix.zero(self.nv, self.nv)

    def neutral(self) -> Vector:
        """The configuration in which the joint's two frames coincide."""
        return Vector.zero(self.nq)

    def integrate(self, q: Vector, v: Vector) -> Vector:
        """The configuration after moving with constant velocity v for unit time."""
        return q + v

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        """The velocity that takes q0 to q1 in unit time."""
        return q1 - q0

    def rotor(self, qdd: Vector) -> Vector:
        """The force that accelerates the rotor (armature times acceleration)."""
        return Vector(tuple(a * x for a, x in zip(self.armature, qdd, strict=True)))

    def resistance(self, qd: Vector) -> Vector:
        """Viscous damping and dry friction: the force that keeps the joint moving."""
        return Vector(
            tuple(
                d * x + f * (less(0.0, x) - less(x, 0.0))
                for d, f, x in zip(self.damping, self.friction, qd, strict=True)
            )
        )

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        """A part of the body's inertia that acts the same when it is moved to the parent body.

        It satisfies I S = 0 and does not change with q (Featherstone 2008, section 9.7). k: how
        much inertia about the axes normal to z goes, where the joint lets any amount go.
        """
        return RigidInertia.zero()


def _axial(k: Number, hz: Number = 0.0, m: Number = 0.0) -> RigidInertia:
    """Inertia that a rotation about z neither feels nor changes."""
    return RigidInertia(m, Vector.of(0.0, 0.0, hz), Symmetric(k, k, 0.0, 0.0, 0.0, 0.0))


def _turn(X: Transform) -> Number:
    """The angle about z that comes nearest to the rotation of X."""
    R = X.R
    return atan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1])


@dataclass(frozen=True)
class Fixed(Joint):
    """No freedom: the weld that closes a loop (elsewhere, fixed joints merge two links)."""

    kind = "fixed"
    nq = nv = 0
    units = ()

    def motion(self, q: Vector) -> Transform:
        return Transform.identity()

    def subspace(self, q: Vector) -> Motions:
        return Motions(())

    def constraint(self, q: Vector) -> Forces:
        return Forces((_MX, _MY, _MZ, _FX, _FY, _FZ))

    def fit(self, X: Transform) -> Vector:
        return Vector(())


def _group_drift(S: Motions, qd: Vector) -> Matrix:
    """-ad(qd) of a joint whose motions form a group and whose S has unit columns."""
    brackets = (S @ qd).cross(S)
    rows = (Vector(tuple(s)) for s in S.columns)
    return Matrix(
        tuple(tuple(-row.dot(Vector(tuple(m))) for m in brackets.columns) for row in rows)
    )


@dataclass(frozen=True)
class Revolute(Joint):
    """Rotation about z by q (rad); at q = 0 the body's frame is turned by `offset`."""

    offset: float = 0.0

    kind = "revolute"
    nq = nv = 1
    units = ("rad",)

    def motion(self, q: Vector) -> Transform:
        return Transform(about(2, q[0] + self.offset), Vector.zero())

    def neutral(self) -> Vector:
        return Vector.of(-self.offset)

    def subspace(self, q: Vector) -> Motions:
        return Motions((_WZ,))

    def constraint(self, q: Vector) -> Forces:
        return Forces((_MX, _MY, _FX, _FY, _FZ))

    def fit(self, X: Transform) -> Vector:
        return Vector.of(_turn(X) - self.offset)

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        return _axial(k, inertia.h[2], inertia.m)


@dataclass(frozen=True)
class Prismatic(Joint):
    """Translation along z by q (m)."""

    kind = "prismatic"
    nq = nv = 1
    units = ("m",)

    def motion(self, q: Vector) -> Transform:
        return Transform(Rotation(), Z * q[0])

    def subspace(self, q: Vector) -> Motions:
        return Motions((_VZ,))

    def constraint(self, q: Vector) -> Forces:
        return Forces((_MX, _MY, _MZ, _FX, _FY))

    def fit(self, X: Transform) -> Vector:
        return Vector.of(X.r[2])

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        return RigidInertia(0.0, Vector.zero(), inertia.I)


@dataclass(frozen=True)
class Helical(Joint):
    """Screw about z: rotation by q (rad), advance by pitch times q (pitch in m/rad)."""

    pitch: float = 0.0

    kind = "helical"
    nq = nv = 1
    units = ("rad",)

    def motion(self, q: Vector) -> Transform:
        return Transform(about(2, q[0]), Z * (q[0] * self.pitch))

    def subspace(self, q: Vector) -> Motions:
        return Motions((_WZ + _VZ * self.pitch,))

    def constraint(self, q: Vector) -> Forces:
        return Forces((_MX, _MY, _FX, _FY, _FZ - _MZ * self.pitch))

    def fit(self, X: Transform) -> Vector:
        """By the advance, which knows the number of turns."""
        return Vector.of(X.r[2] / self.pitch if self.pitch else _turn(X))

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        return _axial(k)


@dataclass(frozen=True)
class Cylindrical(Joint):
    """Rotation about z by q[0] (rad) and translation along z by q[1] (m)."""

    kind = "cylindrical"
    nq = nv = 2
    units = ("rad", "m")

    def motion(self, q: Vector) -> Transform:
        return Transform(about(2, q[0]), Z * q[1])

    def subspace(self, q: Vector) -> Motions:
        return Motions((_WZ, _VZ))

    def constraint(self, q: Vector) -> Forces:
        return Forces((_MX, _MY, _FX, _FY))

    def fit(self, X: Transform) -> Vector:
        return Vector.of(_turn(X), X.r[2])

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        return _axial(k)


@dataclass(frozen=True)
class Planar(Joint):
    """Motion in the plane normal to z: q = (angle, x, y), x and y in the parent's frame.

    Velocities are (wz, vx, vy) in the body's own frame, which keeps S constant; they are not the
    rates of q (the book's table 4.1 mixes the two).
    """

    kind = "planar"
    additive = False
    nq = nv = 3
    units = ("rad", "m", "m")

    def motion(self, q: Vector) -> Transform:
        return Transform(about(2, q[0]), Vector.of(q[1], q[2], 0.0))

    def subspace(self, q: Vector) -> Motions:
        return Motions((_WZ, _VX, _VY))

    def constraint(self, q: Vector) -> Forces:
        return Forces((_MX, _MY, _FZ))

    def fit(self, X: Transform) -> Vector:
        return Vector.of(_turn(X), X.r[0], X.r[1])

    def integrate(self, q: Vector, v: Vector) -> Vector:
        step = translation_of_screw(Z * v[0], Vector.of(v[1], v[2], 0.0))
        x, y, _ = about(2, q[0]).T @ step
        return Vector.of(q[0] + v[0], q[1] + x, q[2] + y)

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        angle = q1[0] - q0[0]
        step = about(2, q0[0]) @ Vector.of(q1[1] - q0[1], q1[2] - q0[2], 0.0)
        x, y, _ = screw_of_translation(Z * angle, step)
        return Vector.of(angle, x, y)

    def drift(self, qd: Vector) -> Matrix:
        return _group_drift(self.subspace(qd), qd)

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        return _axial(k)


@dataclass(frozen=True)
class Universal(Joint):
    """Rotation about x by q[0], then about the turned y by q[1] (rad)."""

    kind = "universal"
    nq = nv = 2
    units = ("rad", "rad")

    def motion(self, q: Vector) -> Transform:
        return Transform(about(0, q[0]).then(about(1, q[1])), Vector.zero())

    def subspace(self, q: Vector) -> Motions:
        return Motions((_WX * cos(q[1]) + _WZ * sin(q[1]), _WY))

    def subspace_rates(self, q: Vector, rates: Sequence[Vector]) -> list[Motions]:
        speed, c, s = [rate[1] for rate in rates], [cos(q[1])], [sin(q[1])]
        for k in range(len(rates)):
            forward, backward = leibniz(mul, speed, c, k), leibniz(mul, speed, s, k)
            c.append(-backward)
            s.append(forward)
        turning = [Motions((_WX * x + _WZ * z, Motion.zero())) for x, z in zip(c, s, strict=True)]
        return [self.subspace(q), *turning[1:]]

    def constraint(self, q: Vector) -> Forces:
        return Forces((_MZ * cos(q[1]) - _MX * sin(q[1]), _FX, _FY, _FZ))

    def fit(self, X: Transform) -> Vector:
        """R = Rx Rz Ry: the error is a turn about z between the two axes."""
        R = X.R
        return Vector.of(atan2(R[2, 1], R[1, 1]), atan2(R[0, 2], R[0, 0]))

    def slopes(self, q: Vector, qd: Vector, qdd: Vector) -> Slopes:
        u, _ = self.subspace(q).columns
        turned, zero = _WZ * cos(q[1]) - _WX * sin(q[1]), Motion.zero()
        return Slopes(
            subspace=(Motions((zero, zero)), Motions((turned, zero))),
            velocity=Motions((zero, turned * qd[0])),
            acceleration=Motions((zero, turned * qdd[0] - u * (qd[0] * qd[1]))),
            bias=Motions((turned * qd[1], turned * qd[0])),
        )

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        return _axial(0.0, 0.0, inertia.m)


def _orientation(q: Vector) -> Rotation:
    return Rotation((General(matrix_from_quaternion(q).T),))


@dataclass(frozen=True)
class Spherical(Joint):
    """Any rotation: q is a non-zero quaternion (w, x, y, z), qd the body's angular velocity."""

    kind = "spherical"
    additive = False
    nq, nv = 4, 3
    units = ("1", "1", "1", "1")

    def motion(self, q: Vector) -> Transform:
        return Transform(_orientation(q), Vector.zero())

    def subspace(self, q: Vector) -> Motions:
        return Motions((_WX, _WY, _WZ))

    def constraint(self, q: Vector) -> Forces:
        return Forces((_FX, _FY, _FZ))

    def fit(self, X: Transform) -> Vector:
        return quaternion_from_matrix(X.R)

    def neutral(self) -> Vector:
        return Vector.of(1.0, 0.0, 0.0, 0.0)

    def integrate(self, q: Vector, v: Vector) -> Vector:
        return quaternion_product(q, quaternion_from_vector(v))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        return vector_from_quaternion(quaternion_product(conjugate(q0), q1))

    def drift(self, qd: Vector) -> Matrix:
        return _group_drift(self.subspace(qd), qd)

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        return _axial(0.0, 0.0, inertia.m)


@dataclass(frozen=True)
class Free(Joint):
    """Six freedoms: q = (qw, qx, qy, qz, x, y, z) in the parent's frame.

    qd = (wx, wy, wz, vx, vy, vz) is the body's twist in its own frame, at its own origin.
    """

    kind = "free"
    additive = False
    nq, nv = 7, 6
    units = ("1", "1", "1", "1", "m", "m", "m")

    def motion(self, q: Vector) -> Transform:
        return Transform(_orientation(Vector(q.entries[:4])), Vector(q.entries[4:]))

    def subspace(self, q: Vector) -> Motions:
        return Motions(tuple(_UNIT))

    def constraint(self, q: Vector) -> Forces:
        return Forces(())

    def fit(self, X: Transform) -> Vector:
        return Vector((*quaternion_from_matrix(X.R), *X.r))

    def neutral(self) -> Vector:
        return Vector.of(1.0, *(0.0,) * 6)

    def integrate(self, q: Vector, v: Vector) -> Vector:
        w, u = Vector(v.entries[:3]), Vector(v.entries[3:])
        turn, place = Vector(q.entries[:4]), Vector(q.entries[4:])
        place = place + _orientation(turn).T @ translation_of_screw(w, u)
        return Vector((*quaternion_product(turn, quaternion_from_vector(w)), *place))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        turn, place = Vector(q0.entries[:4]), Vector(q0.entries[4:])
        w = vector_from_quaternion(quaternion_product(conjugate(turn), Vector(q1.entries[:4])))
        step = _orientation(turn) @ (Vector(q1.entries[4:]) - place)
        return Vector((*w, *screw_of_translation(w, step)))

    def drift(self, qd: Vector) -> Matrix:
        return _group_drift(self.subspace(qd), qd)


JOINTS: dict[str, type[Joint]] = {
    "revolute": Revolute,
    "continuous": Revolute,
    "prismatic": Prismatic,
    "helical": Helical,
    "cylindrical": Cylindrical,
    "planar": Planar,
    "universal": Universal,
    "spherical": Spherical,
    "free": Free,
}
"""Every joint type by the name that files and builders use; "fixed" joints merge two links."""

LOOP_JOINTS: dict[str, type[Joint]] = {"fixed": Fixed} | JOINTS
"""Every type that can close a loop."""


def diagonal(entries: Vector) -> Matrix:
    """A diagonal matrix, such as a joint's armature."""
    n = len(entries)
    return Matrix(tuple(tuple(entries[i] if i == j else 0.0 for j in range(n)) for i in range(n)))
