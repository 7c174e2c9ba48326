"""Rotations as coordinate transforms, and conversions that are accurate near 0 and pi.

A `Rotation` E transforms coordinates in one frame to coordinates in a rotated frame, like
Featherstone's rx, ry and rz. E is the transpose of the matrix that rotates a vector. Quaternions
(w, x, y, z) describe the orientation of the rotated frame in the original frame, and need not be
normalized.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from chasles.expr import Number, Scalar, atan2, cos, less, maximum, select, sin, sqrt
from chasles.mathematics.linear import Matrix, Symmetric, Vector

Turned = TypeVar("Turned", Vector, Symmetric, Matrix, "Rotation")


@dataclass(frozen=True, slots=True)
class Plane:
    """Rotation about a coordinate axis, stored as the cosine and sine of the angle."""

    axis: int
    c: Number
    s: Number

    cost: ClassVar[int] = 6
    """Number of operations required to rotate a vector."""

    @property
    def others(self) -> tuple[int, int, int]:
        """Index of the axis, followed by the other two indices in cyclic order."""
        return self.axis, (self.axis + 1) % 3, (self.axis + 2) % 3

    @property
    def T(self) -> "Plane":
        return Plane(self.axis, self.c, -self.s)

    def then(self, other: "Plane") -> "Plane":
        """Combine two rotations about the same axis into one."""
        assert self.axis == other.axis
        c, s = self.c * other.c - self.s * other.s, self.s * other.c + self.c * other.s
        return Plane(self.axis, c, s)

    def apply(self, v: Vector) -> Vector:
        _, i, j = self.others
        out = list(v)
        out[i] = self.c * v[i] + self.s * v[j]
        out[j] = self.c * v[j] - self.s * v[i]
        return Vector(tuple(out))

    def congruence(self, A: Symmetric) -> Symmetric:
        """Return E A E' in 8 multiplications and 7 additions (Featherstone 2008, section A.5)."""
        k, i, j = self.others
        c, s, rows = self.c, self.s, A.matrix().rows
        a, b, d = rows[i][i], rows[i][j], rows[j][j]
        change = s * s * (d - a) + 2.0 * (c * s) * b
        out = [list(row) for row in rows]
        out[i][i], out[j][j] = a + change, d - change
        out[i][j] = out[j][i] = (1.0 - 2.0 * (s * s)) * b + c * s * (d - a)
        out[i][k] = out[k][i] = c * rows[i][k] + s * rows[j][k]
        out[j][k] = out[k][j] = c * rows[j][k] - s * rows[i][k]
        return Symmetric.of(Matrix(tuple(map(tuple, out))))

    def similarity(self, A: Matrix) -> Matrix:
        """Return E A E' for any matrix A in 12 multiplications and 12 additions.

        See Featherstone 2008, section A.5.
        """
        k, i, j = self.others
        c, s, rows = self.c, self.s, A.rows
        out = [list(r) for r in rows]
        change = s * s * (rows[j][j] - rows[i][i]) + c * s * (rows[i][j] + rows[j][i])
        twist = c * s * (rows[j][j] - rows[i][i]) - s * s * (rows[i][j] + rows[j][i])
        out[i][i], out[j][j] = rows[i][i] + change, rows[j][j] - change
        out[i][j], out[j][i] = rows[i][j] + twist, rows[j][i] + twist
        out[i][k] = c * rows[i][k] + s * rows[j][k]
        out[j][k] = c * rows[j][k] - s * rows[i][k]
        out[k][i] = c * rows[k][i] + s * rows[k][j]
        out[k][j] = c * rows[k][j] - s * rows[k][i]
        return Matrix(tuple(map(tuple, out)))


@dataclass(frozen=True, slots=True)
class General:
    """Rotation stored as a matrix."""

    E: Matrix

    @property
    def cost(self) -> int:
        """Number of operations required to rotate a vector."""
        return 0 if self.permutes else 15

    @property
    def T(self) -> "General":
        return General(self.E.T)

    def apply(self, v: Vector) -> Vector:
        return self.E @ v

    @property
    def permutes(self) -> bool:
        """Return True if the rotation only permutes axes and changes signs."""
        entries = (e for row in self.E.rows for e in row)
        return all(not isinstance(e, Scalar) and abs(e) in (0.0, 1.0) for e in entries)

    def congruence(self, A: Symmetric) -> Symmetric:
        """Return E A E' for a symmetric A in 28 multiplications and 29 additions."""
        return Symmetric.of(self.similarity(A.matrix()).T)

    def similarity(self, A: Matrix) -> Matrix:
        """Return E A E' in 40 multiplications and 39 additions (Featherstone 2008, section A.5).

        A is split into L + i 1 + skew(v), where i is the last diagonal entry of A, and the third
        column of L is zero. Then E A E' = E L E' + i 1 + skew(E v).
        """
        E = self.E
        if self.permutes:
            return E @ A @ E.T
        (a, b, c), (d, e, f), (g, h, i) = A.rows
        F = Matrix(tuple(row[:2] for row in E.rows))
        Z = E @ Matrix(((a - i, b), (d, e - i), (g + c, h + f))) @ F.T
        x, y, z = F @ Vector.of(-f, c)
        corner = (a - i) + e - Z[1, 1] - Z[2, 2]
        return Matrix(
            (
                (corner, Z[0, 1] - z, Z[0, 2] + y),
                (Z[1, 0] + z, Z[1, 1] + i, Z[1, 2] - x),
                (Z[2, 0] - y, Z[2, 1] + x, Z[2, 2] + i),
            )
        )


@dataclass(frozen=True, slots=True)
class Rotation:
    """Coordinate rotation, stored as a sequence of simpler rotations in order of application."""

    factors: tuple[Plane | General, ...] = ()

    def __repr__(self) -> str:
        return f"Rotation({', '.join(map(repr, self.factors))})"

    @staticmethod
    def of(E: Matrix) -> "Rotation":
        """Create a rotation from its matrix E. A constant E is factorized if possible.

        Parameters
        ----------
        E : Matrix
            Orthogonal matrix (3, 3) that transforms coordinates from frame A to frame B.

        Returns
        -------
        rotation : Rotation
            The rotation.

        Examples
        --------
        >>> from chasles.mathematics.linear import Matrix
        >>> from chasles.mathematics.rotations import Rotation
        >>> quarter = Rotation.of(Matrix(((0.0, 1.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 0.0, 1.0))))
        >>> quarter.matrix().rows[0]
        (0.0, 1.0, 0.0)
        """
        if any(isinstance(e, Scalar) for row in E.rows for e in row):
            return Rotation((General(E),))
        return Rotation(_factored(E))

    @property
    def T(self) -> "Rotation":
        return Rotation(tuple([f.T for f in reversed(self.factors)]))

    def then(self, other: "Rotation") -> "Rotation":
        """Return this rotation followed by another, keeping the factors of both.

        Parameters
        ----------
        other : Rotation
            The second rotation.

        Returns
        -------
        rotation : Rotation
            The product, other @ self.

        Examples
        --------
        >>> from chasles.mathematics.linear import Matrix
        >>> from chasles.mathematics.rotations import Rotation
        >>> quarter = Rotation.of(Matrix(((0.0, 1.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 0.0, 1.0))))
        >>> quarter.then(quarter.T).matrix() == Matrix.identity()
        True
        """
        return Rotation(self.factors + other.factors)

    def matrix(self) -> Matrix:
        """Return the matrix of the rotation.

        Returns
        -------
        E : Matrix
            Orthogonal matrix (3, 3).

        Examples
        --------
        >>> from chasles.mathematics.linear import Matrix
        >>> from chasles.mathematics.rotations import Rotation
        >>> quarter = Rotation.of(Matrix(((0.0, 1.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 0.0, 1.0))))
        >>> quarter.T.matrix().rows[0]
        (0.0, -1.0, 0.0)
        """
        columns = [self @ Vector(row) for row in Matrix.identity().rows]
        return Matrix(tuple(tuple(v) for v in columns)).T

    def __matmul__(self, other: Turned) -> Turned:
        """Rotate a vector (E v) or a matrix (E A E'), or multiply two rotations."""
        if isinstance(other, Vector):
            for f in self.factors:
                other = f.apply(other)
            return other
        if isinstance(other, Symmetric):
            for f in self.factors:
                other = f.congruence(other)
            return other
        if isinstance(other, Matrix):
            for f in self.factors:
                other = f.similarity(other)
            return other
        if isinstance(other, Rotation):
            x, y, z = map(Vector, other.matrix().T.rows)
            first, second = self @ x, self @ y
            cheap = sum(f.cost for f in self.factors) <= 9  # cost of a cross product
            dense = all(isinstance(e, Scalar) or e != 0.0 for e in z)
            third = first.cross(second) if dense and not cheap else self @ z
            return Rotation((General(Matrix(tuple(map(tuple, (first, second, third)))).T),))
        return NotImplemented


_ROUNDING = 1e-15
"""Magnitude below which entries of a constant rotation are treated as rounding errors."""


def _factored(E: Matrix) -> tuple[Plane | General, ...]:
    """Factorize a constant rotation that maps a coordinate axis to +- a coordinate axis.

    The factors are a rotation about the mapped axis and a signed permutation. Any other rotation is
    a single factor. Testing for an entry of +-1 is not sufficient, because the cosine of an angle
    up to 1e-8 rounds to 1.
    """
    for a in range(3):
        for b in range(3):
            rest = [E[a, k] for k in range(3) if k != b] + [E[k, b] for k in range(3) if k != a]
            if abs(E[a, b]) == 1.0 and max(map(abs, rest)) < _ROUNDING:
                return _about(E, a, b)
    return (General(E),)


def _about(E: Matrix, a: int, b: int) -> tuple[Plane | General, ...]:
    """Factorize E = P R, where R is a rotation about axis b.

    P is a signed permutation that maps axis b to +-axis a.
    """
    i, j = (b + 1) % 3, (b + 2) % 3
    p, q = (a + 1) % 3, (a + 2) % 3
    sign = float(E[a, b])
    c, s = float(E[p, i]), float(E[p, j])
    P = [[0.0] * 3 for _ in range(3)]
    P[a][b], P[p][i], P[q][j] = sign, 1.0, sign
    if abs(s) == 1.0 and abs(c) < _ROUNDING:
        P[p][i], P[q][j], P[p][j], P[q][i] = 0.0, 0.0, s, -s * sign
        c, s = 1.0, 0.0
    elif abs(c) == 1.0 and abs(s) < _ROUNDING:
        P[p][i], P[q][j] = c, c * sign
        c, s = 1.0, 0.0
    plane = () if (c, s) == (1.0, 0.0) else (Plane(b, c, s),)
    permutation = Matrix(tuple(map(tuple, P)))
    return plane if permutation == Matrix.identity() else (*plane, General(permutation))


def about(axis: int, angle: Number) -> Rotation:
    """Return the transform to a frame that is rotated by an angle about axis 0, 1 or 2."""
    return Rotation((Plane(axis, cos(angle), sin(angle)),))


def aligned_to_z(axis: Vector) -> Matrix:
    """Return the rotation E to a frame whose z axis is the given unit vector.

    For a coordinate axis, E is a signed permutation without rounding errors.
    """
    largest = max((2, 0, 1), key=lambda k: abs(axis[k]))
    sign, beside = math.copysign(1.0, axis[largest]), (largest + 1) % 3
    helper = Vector(tuple(sign if k == beside else 0.0 for k in range(3)))
    helper = helper - axis * axis.dot(helper)
    first = helper * (1.0 / math.sqrt(helper.dot(helper)))
    return Matrix((first.entries, axis.cross(first).entries, axis.entries))


# Conversions for floats and symbols ------------------------------------------------------------


def matrix_from_quaternion(q: Vector) -> Matrix:
    """Convert a quaternion to the matrix R that rotates vectors.

    R is not finite if q.q is zero or overflows.
    """
    k = 2.0 / (n := q.dot(q))
    return matrix_by(q, select(less(0.0, k), k, n))  # if q.q overflows, k = 0 would give R = 1


def matrix_by(q: Vector, k: Number) -> Matrix:
    """Convert a quaternion q = (w, x, y, z) to the rotation matrix R, given k = 2 / q.q."""
    w, x, y, z = q
    kx, ky, kz = k * x, k * y, k * z
    xx, yy, zz = kx * x, ky * y, kz * z
    xy, xz, yz, wx, wy, wz = kx * y, kx * z, ky * z, kx * w, ky * w, kz * w
    return Matrix(
        (
            (1.0 - (yy + zz), xy - wz, xz + wy),
            (xy + wz, 1.0 - (xx + zz), yz - wx),
            (xz - wy, yz + wx, 1.0 - (xx + yy)),
        )
    )


def quaternion_from_matrix(R: Matrix) -> Vector:
    """Convert R to a unit quaternion whose largest entry is positive, accurately at all angles."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R.rows
    squares = (1.0 + xx + yy + zz, 1.0 + xx - yy - zz, 1.0 - xx + yy - zz, 1.0 - xx - yy + zz)
    columns = (
        (squares[0], zy - yz, xz - zx, yx - xy),
        (zy - yz, squares[1], yx + xy, xz + zx),
        (xz - zx, yx + xy, squares[2], zy + yz),
        (yx - xy, xz + zx, zy + yz, squares[3]),
    )
    best, chosen = squares[0], columns[0]
    for square, column in zip(squares[1:], columns[1:], strict=True):
        better = less(best, square)
        chosen = tuple(select(better, a, b) for a, b in zip(column, chosen, strict=True))
        best = maximum(best, square)
    return Vector(chosen) * (0.5 / sqrt(best))


def quaternion_product(p: Vector, q: Vector) -> Vector:
    """Return the Hamilton product p q, whose rotation matrix is R(p) R(q)."""
    a, v = p[0], Vector(p.entries[1:])
    b, u = q[0], Vector(q.entries[1:])
    return Vector((a * b - v.dot(u), *(u * a + v * b + v.cross(u))))


def conjugate(q: Vector) -> Vector:
    """Return the conjugate, which is the inverse rotation for a unit quaternion."""
    w, x, y, z = q
    return Vector.of(w, -x, -y, -z)


SMALL = 1e-2
"""Squared angle below which functions use a power series, accurate to within rounding error."""


def _series(t: Number, *coefficients: float) -> Number:
    total: Number = 0.0
    for c in reversed(coefficients):
        total = total * t + c
    return total


def _blend(t: Number, near: Number, far: Number) -> Number:
    return select(less(t, SMALL), near, far)


def _safe_angle(t: Number) -> Number:
    """Return sqrt(t), or 1 if t is small, to avoid 0/0 where a series is used instead."""
    return sqrt(select(less(t, SMALL), 1.0, t))


def quaternion_from_vector(v: Vector) -> Vector:
    """Convert a rotation vector (axis times angle) to a unit quaternion."""
    t = v.dot(v)
    angle = _safe_angle(t)
    half = angle * 0.5
    w = _blend(t, _series(t, 1.0, -1 / 8, 1 / 384, -1 / 46080, 1 / 10321920), cos(half))
    k = _blend(t, _series(t, 0.5, -1 / 48, 1 / 3840, -1 / 645120), sin(half) / angle)
    return Vector((w, *(v * k)))


def vector_from_quaternion(q: Vector) -> Vector:
    """Convert a nonzero quaternion to a rotation vector with a length of at most pi.

    The result is finite if the rotation matrix of the quaternion is finite.
    """
    sign = select(less(q[0], 0.0), -1.0, 1.0)
    w, v = q[0] * sign, Vector(q.entries[1:]) * sign
    t = v.dot(v)
    near = less(t, SMALL * w * w)
    length = sqrt(select(near, 1.0, t))
    far = 2.0 * atan2(length, w) / length
    u = select(near, w, 1.0)
    x = select(near, t, 0.0) / (u * u)
    close = _series(x, 2.0, -2 / 3, 2 / 5, -2 / 7, 2 / 9, -2 / 11, 2 / 13, -2 / 15) / u
    k = 1.0 / (n := t + w * w)
    return v * select(
        less(k, k + k), select(near, close, far), k + n
    )  # k is 0 or infinite if the condition is false


def quaternion_from_axis_angle(axis: Vector, angle: Number) -> Vector:
    """Return the unit quaternion for a rotation by an angle about an axis of any nonzero length."""
    k = sin(angle * 0.5) / sqrt(axis.dot(axis))
    return Vector((cos(angle * 0.5), *(axis * k)))


def axis_angle_from_quaternion(q: Vector) -> tuple[Vector, Number]:
    """Convert a quaternion to a unit axis and an angle in [0, pi]. For angle 0, the axis is z."""
    v = vector_from_quaternion(q)
    t = v.dot(v)
    none = less(t, 1e-300)
    x, y, z = v * (1.0 / sqrt(select(none, 1.0, t)))
    axis = Vector((select(none, 0.0, x), select(none, 0.0, y), select(none, 1.0, z)))
    return axis, sqrt(t)


def matrix_from_axis_angle(axis: Vector, angle: Number) -> Matrix:
    """Return the matrix R that rotates vectors by an angle about an axis."""
    return matrix_from_quaternion(quaternion_from_axis_angle(axis, angle))


def matrix_from_vector(v: Vector) -> Matrix:
    """Convert a rotation vector (axis times angle) to the rotation matrix R."""
    return matrix_from_quaternion(quaternion_from_vector(v))


def vector_from_matrix(R: Matrix) -> Vector:
    """Convert R to a rotation vector. The result is accurate near 0 and pi."""
    return vector_from_quaternion(quaternion_from_matrix(R))


def matrix_from_rpy(roll: Number, pitch: Number, yaw: Number) -> Matrix:
    """Return the rotation matrix R for roll (x), pitch (y) and yaw (z) about fixed axes (URDF)."""
    return (about(0, roll) @ about(1, pitch) @ about(2, yaw)).matrix().T


def rpy_from_matrix(R: Matrix) -> Vector:
    """Return the roll, pitch and yaw of R. The roll is zero if the pitch is +-pi/2."""
    forward = sqrt(R[0, 0] * R[0, 0] + R[1, 0] * R[1, 0])
    pitch = atan2(-R[2, 0], forward)
    gimbal = less(forward, 1e-12)
    roll = select(gimbal, 0.0, atan2(R[2, 1], R[2, 2]))
    c, s = cos(roll), sin(roll)  # yaw is consistent with roll, even if roll is inaccurate
    yaw = atan2(s * R[0, 2] - c * R[0, 1], c * R[1, 1] - s * R[1, 2])
    return Vector.of(roll, pitch, yaw)


def translation_of_screw(w: Vector, v: Vector) -> Vector:
    """Return the translation part of the exponential map exp(w, v) on SE(3).

    The translation is v + (1 - cos t)/t^2 w x v + (t - sin t)/t^3 w x (w x v), where t is the
    length of w.
    """
    t = w.dot(w)
    angle = _safe_angle(t)
    half = sin(angle * 0.5) / angle
    a = _blend(t, _series(t, 1 / 2, -1 / 24, 1 / 720, -1 / 40320, 1 / 3628800), 2.0 * half * half)
    near = _series(t, 1 / 6, -1 / 120, 1 / 5040, -1 / 362880, 1 / 39916800)
    b = _blend(t, near, (angle - sin(angle)) / (angle * angle * angle))
    return v + w.cross(v) * a + w.cross(w.cross(v)) * b


def screw_of_translation(w: Vector, p: Vector) -> Vector:
    """Return v such that exp(w, v) has the translation p (inverse of `translation_of_screw`)."""
    t = w.dot(w)
    angle = _safe_angle(t)
    half = angle * 0.5
    far = (1.0 - half * cos(half) / sin(half)) / (angle * angle)
    near = _series(t, 1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160)
    return p - w.cross(p) * 0.5 + w.cross(w.cross(p)) * _blend(t, near, far)
