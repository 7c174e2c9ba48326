"""User-defined joint types: one with a minimal definition, and one with a full definition."""

from dataclasses import dataclass

from chasles.expr import atan2, sqrt
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import (
    General,
    Rotation,
    about,
    conjugate,
    matrix_from_quaternion,
    quaternion_from_matrix,
    quaternion_from_vector,
    quaternion_product,
    vector_from_quaternion,
)
from chasles.mathematics.spatial import Force, Forces, Transform
from chasles.model import Joint, Steady


@dataclass(frozen=True)
class Parabola(Joint):
    """Pin in a groove y = curve x^2. The body's x axis is tangent to the groove; q = x (m)."""

    curve: float = 1.0

    nq = nv = 1
    units = ("m",)

    def motion(self, q: Vector) -> Transform:
        x = q[0]
        angle = atan2(2.0 * self.curve * x, 1.0)
        return Transform(about(2, angle), Vector.of(x, self.curve * x * x, 0.0))

    def constraint(self, q: Vector) -> Forces:
        """Return the forces that do no work.

        The body rotates by 2 curve / (1 + slope^2)^(3/2) per length of the groove.
        """
        slope = 2.0 * self.curve * q[0]
        bend = 2.0 * self.curve / ((1.0 + slope * slope) * sqrt(1.0 + slope * slope))
        along = Force.of(0.0, 0.0, 1.0, -bend, 0.0, 0.0)
        rows = Matrix.identity(6).rows
        return Forces((*(Force.of(*rows[k]) for k in (0, 1, 4, 5)), along))

    def fit(self, X: Transform) -> Vector:
        return Vector.of(X.r[0])


@dataclass(frozen=True)
class Swivel(Steady):
    """Ball joint about a point on the z axis at height `above` (m). qd is not the rate of q."""

    above: float = 0.0

    additive = False
    nq, nv = 4, 3
    units = ("1", "1", "1", "1")

    def motion(self, q: Vector) -> Transform:
        E = Rotation((General(matrix_from_quaternion(q).T),))
        point = Vector.of(0.0, 0.0, self.above)
        return Transform(E, point - E.T @ point)

    def constraint(self, q: Vector) -> Forces:
        """Return forces through the center, which has the same coordinates in both frames."""
        point = Vector.of(0.0, 0.0, self.above)
        axes = (Vector(row) for row in Matrix.identity().rows)
        return Forces(tuple(Force(point.cross(axis), axis) for axis in axes))

    def fit(self, X: Transform) -> Vector:
        return quaternion_from_matrix(X.R)

    def neutral(self) -> Vector:
        return Vector.of(1.0, 0.0, 0.0, 0.0)

    def integrate(self, q: Vector, v: Vector) -> Vector:
        return quaternion_product(q, quaternion_from_vector(v))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        return vector_from_quaternion(quaternion_product(conjugate(q0), q1))

    def drift(self, qd: Vector) -> Matrix:
        return -Matrix.skew(qd)


OWN: dict[str, type[Joint]] = {"parabola": Parabola, "swivel": Swivel}
