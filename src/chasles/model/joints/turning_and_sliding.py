"""Joints with several freedoms that turn and slide."""

from collections.abc import Sequence
from dataclasses import dataclass

from chasles.expr import Number
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import (
    about,
    conjugate,
    quaternion_from_matrix,
    quaternion_from_vector,
    quaternion_product,
    screw_of_translation,
    translation_of_screw,
    vector_from_quaternion,
)
from chasles.mathematics.spatial import Force, Forces, Motion, Motions, RigidInertia, Transform
from chasles.model.joints.basis import (
    FX,
    FY,
    FZ,
    MX,
    MY,
    UNITS,
    VX,
    VY,
    VZ,
    WX,
    WY,
    WZ,
    Z,
    axial,
    group_drift,
    left_behind,
    orientation,
    turn_about_z,
)
from chasles.model.joints.contract import Joint, Numbers, Part, Steady


@dataclass(frozen=True)
class Cylindrical(Steady):
    """Rotation about z by q[0] (rad) and translation along z by q[1] (m)."""

    kind = "cylindrical"
    nq = nv = 2
    units = ("rad", "m")
    flips = True
    numbers = Numbers("angle distance", "rate1 rate2")
    series = (Part("revolute", 2), Part("prismatic", 2))

    def motion(self, q: Vector) -> Transform:
        return Transform(about(2, q[0]), Z * q[1])

    def subspace(self, q: Vector) -> Motions:
        return Motions((WZ, VZ))

    def constraint(self, q: Vector) -> Forces:
        return Forces((MX, MY, FX, FY))

    def fit(self, X: Transform) -> Vector:
        return Vector.of(turn_about_z(X), X.r[2])

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        return axial(k)


@dataclass(frozen=True)
class Planar(Steady):
    """Motion in the plane normal to z: q = (angle, x, y), x and y in the parent's frame.

    Velocities are (wz, vx, vy) in the body's own frame, which keeps S constant; they are not the
    rates of q (the book's table 4.1 mixes the two).
    """

    kind = "planar"
    additive = False
    nq = nv = 3
    units = ("rad", "m", "m")
    names = {"URDF": "planar"}
    numbers = Numbers("angle x y", "wz vx vy")
    elsewhere = {
        "Pinocchio": Numbers("x y cos sin", "vx vy wz"),
        "Drake": Numbers("x y angle", "VX VY wz"),
    }

    def motion(self, q: Vector) -> Transform:
        return Transform(about(2, q[0]), Vector.of(q[1], q[2], 0.0))

    def subspace(self, q: Vector) -> Motions:
        return Motions((WZ, VX, VY))

    def constraint(self, q: Vector) -> Forces:
        return Forces((MX, MY, FZ))

    def fit(self, X: Transform) -> Vector:
        return Vector.of(turn_about_z(X), X.r[0], X.r[1])

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
        return group_drift(self.subspace(qd), qd)

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        return axial(k)


@dataclass(frozen=True)
class Free(Steady):
    """Six freedoms: q = (qw, qx, qy, qz, x, y, z) in the parent's frame.

    qd = (wx, wy, wz, vx, vy, vz) is the body's twist in its own frame, at its own origin.
    """

    kind = "free"
    additive = False
    nq, nv = 7, 6
    units = ("1", "1", "1", "1", "m", "m", "m")
    along, floating = "", True
    names = {"URDF": "floating", "MJCF": "free"}
    numbers = Numbers("qw qx qy qz x y z", "wx wy wz vx vy vz")
    elsewhere = {
        "Pinocchio": Numbers("x y z qx qy qz qw", "vx vy vz wx wy wz"),
        "MuJoCo": Numbers("x y z qw qx qy qz", "VX VY VZ wx wy wz"),
        "Drake": Numbers("qw qx qy qz x y z", "WX WY WZ VX VY VZ"),
    }

    def motion(self, q: Vector) -> Transform:
        return Transform(orientation(Vector(q.entries[:4])), Vector(q.entries[4:]))

    def subspace(self, q: Vector) -> Motions:
        return Motions(UNITS)

    def constraint(self, q: Vector) -> Forces:
        return Forces(())

    def fit(self, X: Transform) -> Vector:
        return Vector((*quaternion_from_matrix(X.R), *X.r))

    def neutral(self) -> Vector:
        return Vector.of(1.0, *(0.0,) * 6)

    def integrate(self, q: Vector, v: Vector) -> Vector:
        w, u = Vector(v.entries[:3]), Vector(v.entries[3:])
        turn, place = Vector(q.entries[:4]), Vector(q.entries[4:])
        place = place + orientation(turn).T @ translation_of_screw(w, u)
        return Vector((*quaternion_product(turn, quaternion_from_vector(w)), *place))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        turn, place = Vector(q0.entries[:4]), Vector(q0.entries[4:])
        w = vector_from_quaternion(quaternion_product(conjugate(turn), Vector(q1.entries[:4])))
        step = orientation(turn) @ (Vector(q1.entries[4:]) - place)
        return Vector((*w, *screw_of_translation(w, step)))

    def drift(self, qd: Vector) -> Matrix:
        return group_drift(self.subspace(qd), qd)


@dataclass(frozen=True)
class SphereInCylinder(Joint):
    """A ball in a tube along z: q = (qw, qx, qy, qz, distance along z in m).

    qd is the ball's angular velocity in its own frame and the rate of the distance. The tube is the
    parent's; reversed, it is the body's. As a loop joint it takes two freedoms, where a revolute
    joint takes five, three of them idle in a plane loop (Featherstone 2008, chapter 8).
    """

    kind = "sphere_in_cylinder"
    additive = False
    nq, nv = 5, 4
    units = ("1", "1", "1", "1", "m")
    numbers = Numbers("qw qx qy qz distance", "wx wy wz rate")

    def motion(self, q: Vector) -> Transform:
        return Transform(orientation(_first(q, 4)), Z * q[4])

    def subspace(self, q: Vector) -> Motions:
        return self.subspace_rates(q, ())[0]

    def subspace_rates(self, q: Vector, rates: Sequence[Vector]) -> list[Motions]:
        n = left_behind(orientation(_first(q, 4)) @ Z, [_first(rate, 3) for rate in rates])
        still = Motion.zero()
        slides = [Motion(Vector.zero(), each) for each in n]
        return [
            Motions((WX, WY, WZ, slides[0])),
            *(Motions((still, still, still, slide)) for slide in slides[1:]),
        ]

    def bias_slopes(self, q: Vector, qd: Vector) -> Motions:
        n, w = orientation(_first(q, 4)) @ Z, _first(qd, 3)
        turned = (n.cross(Vector(unit)).cross(w) * qd[3] for unit in Matrix.identity().rows)
        return Motions((*(Motion(Vector.zero(), v) for v in turned), Motion.zero()))

    def constraint(self, q: Vector) -> Forces:
        x, y, _ = orientation(_first(q, 4)).matrix().T.rows
        return Forces(tuple(Force(Vector.zero(), Vector(axis)) for axis in (x, y)))

    def fit(self, X: Transform) -> Vector:
        return Vector((*quaternion_from_matrix(X.R), X.r[2]))

    def neutral(self) -> Vector:
        return Vector.of(1.0, *(0.0,) * 4)

    def integrate(self, q: Vector, v: Vector) -> Vector:
        turn = quaternion_product(_first(q, 4), quaternion_from_vector(_first(v, 3)))
        return Vector((*turn, q[4] + v[3]))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        turn = quaternion_product(conjugate(_first(q0, 4)), _first(q1, 4))
        return Vector((*vector_from_quaternion(turn), q1[4] - q0[4]))

    def drift(self, qd: Vector) -> Matrix:
        turning = group_drift(Motions((WX, WY, WZ)), _first(qd, 3))
        return Matrix((*((*row, 0.0) for row in turning.rows), (0.0,) * 4))


@dataclass(frozen=True)
class Rolling(Joint):
    """A sphere that rolls on a plane normal to z without slipping: q = (qw, qx, qy, qz, x, y).

    The joint's frame is at the centre of the sphere, the plane at z = -radius (m); x and y are the
    centre in the parent's frame. qd is the angular velocity in the sphere's own frame. Three
    velocities and five freedoms of position, because the constraint is nonholonomic (Featherstone
    2008, section 3.4): the place depends on the way, and `difference` knows the rotation only.
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
        return Transform(orientation(_first(q, 4)), Vector.of(q[4], q[5], 0.0))

    def subspace(self, q: Vector) -> Motions:
        return self.subspace_rates(q, ())[0]

    def subspace_rates(self, q: Vector, rates: Sequence[Vector]) -> list[Motions]:
        """The contact is at -radius n from the centre, and does not move: v = w x radius n."""
        n = left_behind(orientation(_first(q, 4)) @ Z * self.radius, rates)
        turns, none = [e.angular for e in (WX, WY, WZ)], Vector.zero()
        S = Motions(tuple(Motion(e, e.cross(n[0])) for e in turns))
        return [S, *(Motions(tuple(Motion(none, e.cross(nd)) for e in turns)) for nd in n[1:])]

    def bias_slopes(self, q: Vector, qd: Vector) -> Motions:
        n = orientation(_first(q, 4)) @ Z * self.radius
        turned = (n.cross(Vector(unit)).cross(qd) for unit in Matrix.identity().rows)
        return Motions(tuple(Motion(Vector.zero(), qd.cross(v)) for v in turned))

    def constraint(self, q: Vector) -> Forces:
        """Forces at the contact, which have moments about the centre."""
        n = orientation(_first(q, 4)) @ Z * self.radius
        return Forces(tuple(Force(f.force.cross(n), f.force) for f in (FX, FY, FZ)))

    def fit(self, X: Transform) -> Vector:
        return Vector((*quaternion_from_matrix(X.R), X.r[0], X.r[1]))

    def neutral(self) -> Vector:
        return Vector.of(1.0, *(0.0,) * 5)

    def integrate(self, q: Vector, v: Vector) -> Vector:
        """What turns about one axis rolls along a line."""
        turn = _first(q, 4)
        x, y, _ = (orientation(turn).T @ v).cross(Z * self.radius)
        return Vector((*quaternion_product(turn, quaternion_from_vector(v)), q[4] + x, q[5] + y))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        return vector_from_quaternion(quaternion_product(conjugate(_first(q0, 4)), _first(q1, 4)))

    def drift(self, qd: Vector) -> Matrix:
        return group_drift(Motions((WX, WY, WZ)), qd)


def _first(q: Vector, n: int) -> Vector:
    return Vector(q.entries[:n])
