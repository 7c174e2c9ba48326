"""Joints with several degrees of freedom."""

from collections.abc import Sequence
from dataclasses import dataclass

from chasles.expr import Number, atan2, cos, sin
from chasles.mathematics import rotations
from chasles.mathematics.derivatives import leibniz
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import General, Rotation, about
from chasles.mathematics.spatial import (
    Force,
    Forces,
    Motion,
    Motions,
    Transform,
    group_drift,
    turn_about_z,
)
from chasles.model.joints.contract import (
    LOADS,
    UNITS,
    Joint,
    Natural,
    Numbers,
    Part,
    Y,
    Z,
)

WX, WY, WZ, VX, VY, VZ = UNITS
MX, MY, MZ, FX, FY, FZ = LOADS


@dataclass(frozen=True)
class Universal(Joint):
    """Rotation about x by q[0], then about the rotated y by q[1] (rad)."""

    kind = "universal"
    nq = nv = 2
    units = ("rad", "rad")
    pivots, unfelt = True, "m"
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
        """Return the angles of Rx and Ry in R = Rx Rz Ry, ignoring Rz, which is constrained."""
        R = X.R
        return Vector.of(atan2(R[2, 1], R[1, 1]), atan2(R[0, 2], R[0, 0]))


@dataclass(frozen=True)
class Spherical(Natural):
    """Rotation about a point: q is a nonzero quaternion (w, x, y, z), qd the angular velocity."""

    kind = "spherical"
    additive = False
    nq, nv = 4, 3
    units = ("1", "1", "1", "1")
    pivots, unfelt = True, "m"
    free = (WX, WY, WZ)
    along = ""
    names = {"SDF": "ball", "MJCF": "ball", "MJCF equality": "connect"}
    numbers = Numbers("qw qx qy qz", "wx wy wz")
    elsewhere = {
        "Pinocchio": Numbers("qx qy qz qw", "wx wy wz"),
        "MuJoCo": numbers,
        "Drake": "its BallRpyJoint has roll, pitch and yaw instead of a quaternion",
    }

    def motion(self, q: Vector) -> Transform:
        return Transform(_orientation(q), Vector.zero())

    def transmission(
        self, q: Vector, gear: Vector, in_parent: bool
    ) -> tuple[Number, tuple[Number, ...]]:
        """Return the rotation vector's component along the gear axis, and the moment arms (3,)."""
        axis = _orientation(q) @ _first(gear, 3) if in_parent else _first(gear, 3)
        return self.difference(self.neutral(), q).dot(axis), axis.entries

    def fit(self, X: Transform) -> Vector:
        return rotations.quaternion_from_matrix(X.R)

    def integrate(self, q: Vector, v: Vector) -> Vector:
        return _turned(q, v)

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        return _turn(q0, q1)


@dataclass(frozen=True)
class YawPitchRoll(Joint):
    """Rotation by three angles (rad): q = (yaw, pitch, roll) about z, the new y and the new x.

    See Featherstone 2008, Eq 4.7-4.9. If the pitch is a right angle, yaw and roll rotate about the
    same axis, and S is singular. A spherical joint has no such singularity.
    """

    kind = "yaw_pitch_roll"
    nq = nv = 3
    units = ("rad", "rad", "rad")
    pivots, unfelt = True, "m"
    along = ""
    numbers = Numbers("angle1 angle2 angle3", "rate1 rate2 rate3")
    series = (Part("revolute", 2), Part("revolute", 1), Part("revolute", 0))

    def motion(self, q: Vector) -> Transform:
        E = about(2, q[0]).then(about(1, q[1])).then(about(0, q[2]))
        return Transform(E, Vector.zero())

    def subspace(self, q: Vector) -> Motions:
        yaw = about(0, q[2]) @ Vector.of(-sin(q[1]), 0.0, cos(q[1]))
        pitch = about(0, q[2]) @ Y
        return Motions((Motion(yaw, Vector.zero()), Motion(pitch, Vector.zero()), WX))

    def constraint(self, q: Vector) -> Forces:
        return Forces((FX, FY, FZ))

    def fit(self, X: Transform) -> Vector:
        roll, pitch, yaw = rotations.rpy_from_matrix(X.R)
        return Vector.of(yaw, pitch, roll)


@dataclass(frozen=True)
class Cylindrical(Natural):
    """Rotation about z by q[0] (rad) and translation along z by q[1] (m)."""

    kind = "cylindrical"
    nq = nv = 2
    units = ("rad", "m")
    unfelt = "k"
    free = (WZ, VZ)
    flips = True
    names = {"DH": "cylindrical", "DAT": "3"}
    numbers = Numbers("angle distance", "rate1 rate2")
    series = (Part("revolute", 2), Part("prismatic", 2))

    def motion(self, q: Vector) -> Transform:
        return Transform(about(2, q[0]), Z * q[1])

    def fit(self, X: Transform) -> Vector:
        return Vector.of(turn_about_z(X), X.r[2])


@dataclass(frozen=True)
class Planar(Natural):
    """Motion in the plane normal to z: q = (angle, x, y), x and y in the parent's frame.

    Velocities are (wz, vx, vy) in the body's frame, so S is constant. These velocities are not the
    rates of q; Featherstone (2008), table 4.1, does not distinguish the two.
    """

    kind = "planar"
    additive = False
    nq = nv = 3
    units = ("rad", "m", "m")
    unfelt = "k"
    free = (WZ, VX, VY)
    names = {"URDF": "planar"}
    numbers = Numbers("angle x y", "wz vx vy")
    elsewhere = {
        "Pinocchio": Numbers("x y cos sin", "vx vy wz"),
        "Drake": Numbers("x y angle", "VX VY wz"),
    }
    coordinate_series = (
        Part("prismatic", 0, coordinate=1),
        Part("prismatic", 1, coordinate=2),
        Part("revolute", 2, coordinate=0),
    )

    def motion(self, q: Vector) -> Transform:
        return Transform(about(2, q[0]), Vector.of(q[1], q[2], 0.0))

    def fit(self, X: Transform) -> Vector:
        return Vector.of(turn_about_z(X), X.r[0], X.r[1])

    def integrate(self, q: Vector, v: Vector) -> Vector:
        step = rotations.translation_of_screw(Z * v[0], Vector.of(v[1], v[2], 0.0))
        x, y, _ = about(2, q[0]).T @ step
        return Vector.of(q[0] + v[0], q[1] + x, q[2] + y)

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        angle = q1[0] - q0[0]
        step = about(2, q0[0]) @ Vector.of(q1[1] - q0[1], q1[2] - q0[2], 0.0)
        x, y, _ = rotations.screw_of_translation(Z * angle, step)
        return Vector.of(angle, x, y)

    def displacement(self, q: Vector) -> Vector:
        """Return the angle relative to `rest`, and the origin's displacement in the body's axes."""
        away = Vector.of(q[1] - self.rest[1], q[2] - self.rest[2], 0.0)
        x, y, _ = about(2, q[0]) @ away
        return Vector.of(q[0] - self.rest[0], x, y)


@dataclass(frozen=True)
class Free(Natural):
    """Six degrees of freedom: q = (qw, qx, qy, qz, x, y, z) in the parent's frame.

    qd = (wx, wy, wz, vx, vy, vz) is the body's twist in the body's frame, at its origin.
    """

    kind = "free"
    additive = False
    nq, nv = 7, 6
    units = ("1", "1", "1", "1", "m", "m", "m")
    free = UNITS
    along, floating = "", True
    names = {"URDF": "floating", "MJCF": "free"}
    numbers = Numbers("qw qx qy qz x y z", "wx wy wz vx vy vz")
    elsewhere = {
        "Pinocchio": Numbers("x y z qx qy qz qw", "vx vy vz wx wy wz"),
        "MuJoCo": Numbers("x y z qw qx qy qz", "VX VY VZ wx wy wz"),
        "Drake": Numbers("qw qx qy qz x y z", "WX WY WZ VX VY VZ"),
    }

    def motion(self, q: Vector) -> Transform:
        return Transform(_orientation(q), Vector(q.entries[4:]))

    def transmission(
        self, q: Vector, gear: Vector, in_parent: bool
    ) -> tuple[Number, tuple[Number, ...]]:
        """Return 0 as the transmission length (undefined for this joint), and the moment arms.

        `gear` contains the force along the parent's axes, followed by the moment.
        """
        E, moment = _orientation(q), Vector(gear.entries[3:])
        return 0.0, (*(E @ moment if in_parent else moment), *(E @ _first(gear, 3)))

    def fit(self, X: Transform) -> Vector:
        return Vector((*rotations.quaternion_from_matrix(X.R), *X.r))

    def integrate(self, q: Vector, v: Vector) -> Vector:
        w, u = _first(v, 3), Vector(v.entries[3:])
        place = Vector(q.entries[4:]) + _orientation(q).T @ rotations.translation_of_screw(w, u)
        return Vector((*_turned(q, w), *place))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        w = _turn(q0, q1)
        step = _orientation(q0) @ (Vector(q1.entries[4:]) - Vector(q0.entries[4:]))
        return Vector((*w, *rotations.screw_of_translation(w, step)))

    def displacement(self, q: Vector) -> Vector:
        """Return the rotation vector and the displacement of the origin, along the body's axes."""
        away = Vector(q.entries[4:]) - Vector(self.rest.entries[4:])
        return Vector((*_turn(self.rest, q), *(_orientation(q) @ away)))


@dataclass(frozen=True)
class SphereInCylinder(Joint):
    """Ball-in-tube joint along z: q = (qw, qx, qy, qz, distance along z in m).

    qd contains the ball's angular velocity in its own frame and the rate of the distance. The tube
    is fixed to the parent, or to the body if the joint is reversed. A loop joint of this type
    removes two degrees of freedom. In a planar loop, such a joint avoids the three redundant
    constraints of a revolute joint (Featherstone 2008, chapter 8).
    """

    kind = "sphere_in_cylinder"
    additive = False
    nq, nv = 5, 4
    units = ("1", "1", "1", "1", "m")
    numbers = Numbers("qw qx qy qz distance", "wx wy wz rate")

    def motion(self, q: Vector) -> Transform:
        return Transform(_orientation(q), Z * q[4])

    def subspace(self, q: Vector) -> Motions:
        return self.subspace_rates(q, ())[0]

    def subspace_rates(self, q: Vector, rates: Sequence[Vector]) -> list[Motions]:
        n = _left_behind(_orientation(q) @ Z, [_first(rate, 3) for rate in rates])
        still = Motion.zero()
        slides = [Motion(Vector.zero(), each) for each in n]
        return [
            Motions((WX, WY, WZ, slides[0])),
            *(Motions((still, still, still, slide)) for slide in slides[1:]),
        ]

    def bias_slopes(self, q: Vector, qd: Vector) -> Motions:
        n, w = _orientation(q) @ Z, _first(qd, 3)
        turned = (n.cross(Vector(unit)).cross(w) * qd[3] for unit in Matrix.identity().rows)
        return Motions((*(Motion(Vector.zero(), v) for v in turned), Motion.zero()))

    def constraint(self, q: Vector) -> Forces:
        x, y, _ = _orientation(q).matrix().T.rows
        return Forces(tuple(Force(Vector.zero(), Vector(axis)) for axis in (x, y)))

    def fit(self, X: Transform) -> Vector:
        return Vector((*rotations.quaternion_from_matrix(X.R), X.r[2]))

    def integrate(self, q: Vector, v: Vector) -> Vector:
        return Vector((*_turned(q, _first(v, 3)), q[4] + v[3]))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        return Vector((*_turn(q0, q1), q1[4] - q0[4]))

    def drift(self, qd: Vector) -> Matrix:
        turning = group_drift(Motions((WX, WY, WZ)), _first(qd, 3))
        return Matrix((*((*row, 0.0) for row in turning.rows), (0.0,) * 4))


@dataclass(frozen=True)
class Rolling(Joint):
    """A sphere that rolls on a plane normal to z without slipping: q = (qw, qx, qy, qz, x, y).

    The joint frame is at the center of the sphere, and the plane is at z = -radius (m). x and y are
    the coordinates of the center in the parent's frame. qd is the angular velocity in the sphere's
    frame. The joint has three velocities but five positional degrees of freedom, because the
    constraint is nonholonomic (Featherstone 2008, section 3.4). x and y depend on the path, and
    `difference` considers only the rotation.
    """

    radius: float = 0.0

    kind = "rolling"
    data = ("radius",)
    additive = holonomic = False
    path = (4, 5)
    nq, nv = 6, 3
    units = ("1", "1", "1", "1", "m", "m")
    numbers = Numbers("qw qx qy qz x y", "wx wy wz")

    def motion(self, q: Vector) -> Transform:
        return Transform(_orientation(q), Vector.of(q[4], q[5], 0.0))

    def subspace(self, q: Vector) -> Motions:
        return self.subspace_rates(q, ())[0]

    def subspace_rates(self, q: Vector, rates: Sequence[Vector]) -> list[Motions]:
        """Return the motion subspace S and its time derivatives.

        The velocity of the center is w x r, where r = radius * n, and n is the normal of the plane.
        """
        n = _left_behind(_orientation(q) @ Z * self.radius, rates)
        turns, none = [e.angular for e in (WX, WY, WZ)], Vector.zero()
        S = Motions(tuple(Motion(e, e.cross(n[0])) for e in turns))
        return [S, *(Motions(tuple(Motion(none, e.cross(nd)) for e in turns)) for nd in n[1:])]

    def bias_slopes(self, q: Vector, qd: Vector) -> Motions:
        n = _orientation(q) @ Z * self.radius
        turned = (n.cross(Vector(unit)).cross(qd) for unit in Matrix.identity().rows)
        return Motions(tuple(Motion(Vector.zero(), qd.cross(v)) for v in turned))

    def constraint(self, q: Vector) -> Forces:
        """Return the wrenches about the center of unit forces at the contact point."""
        n = _orientation(q) @ Z * self.radius
        return Forces(tuple(Force(f.force.cross(n), f.force) for f in (FX, FY, FZ)))

    def fit(self, X: Transform) -> Vector:
        return Vector((*rotations.quaternion_from_matrix(X.R), X.r[0], X.r[1]))

    def integrate(self, q: Vector, v: Vector) -> Vector:
        """Return the configuration after rolling along a straight line."""
        x, y, _ = (_orientation(q).T @ v).cross(Z * self.radius)
        return Vector((*_turned(q, v), q[4] + x, q[5] + y))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        return _turn(q0, q1)

    def drift(self, qd: Vector) -> Matrix:
        return group_drift(Motions((WX, WY, WZ)), qd)


def _first(q: Vector, n: int) -> Vector:
    return Vector(q.entries[:n])


def _orientation(q: Vector) -> Rotation:
    """Return the rotation E for the quaternion in the first four entries of q."""
    return Rotation((General(rotations.matrix_from_quaternion(_first(q, 4)).T),))


def _turned(q: Vector, w: Vector) -> Vector:
    """Rotate the quaternion in the first four entries of q by a rotation vector."""
    return rotations.quaternion_product(_first(q, 4), rotations.quaternion_from_vector(w))


def _turn(q0: Vector, q1: Vector) -> Vector:
    """Return the rotation vector from one quaternion to another."""
    back = rotations.conjugate(_first(q0, 4))
    return rotations.vector_from_quaternion(rotations.quaternion_product(back, _first(q1, 4)))


def _left_behind(n: Vector, spins: Sequence[Vector]) -> list[Vector]:
    """Return the components of a constant vector n in a rotating frame, and their derivatives.

    The derivative is n' = n x w. `spins` contains the angular velocity w of the frame and its
    derivatives.
    """
    found = [n]
    for k in range(len(spins)):
        found.append(leibniz(Vector.cross, found, spins, k))
    return found
