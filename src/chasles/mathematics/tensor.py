"""Second-order Cartesian tensors for rigid-body dynamics.

Tensors are of type `Matrix` or `Symmetric`, and vectors of type `Vector`. The notation, signs and
factors follow Balafoutis and Patel (1991), chapters 3 and 4. All functions accept floats and
symbols, except `spectral`, which accepts only floats.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, overload

from chasles.errors import ArgumentError, InputError
from chasles.expr import Number, Scalar, atan2, sqrt
from chasles.mathematics.linear import Mapped, Matrix, Symmetric, Vector
from chasles.mathematics.spatial import Force, RigidInertia

_INDICES = range(3)

# Products --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fourth:
    """Tensor product T (x) S of two second-order tensors, with components t_ij s_kl.

    See Balafoutis and Patel 1991, Eq 3.2.19.
    """

    T: Matrix
    S: Matrix

    def __getitem__(self, index: tuple[int, int, int, int]) -> Number:
        i, j, k, l = index
        return self.T[i, j] * self.S[k, l]

    def contract(self, first: int, second: int) -> Matrix:
        """Contract two of the four indices. Contracting (1, 2) gives the dot product T S."""
        free = [n for n in range(4) if n not in (first, second)]
        if len(free) != 2 or not {first, second} <= set(range(4)):
            problem = f"the indices must be different integers from 0 to 3, not {first, second}"
            raise InputError("E-MATH-026", problem, part="contract")

        def entry(row: int, column: int) -> Number:
            total: Number = 0.0
            for both in _INDICES:
                place = {free[0]: row, free[1]: column, first: both, second: both}
                total = total + self[place[0], place[1], place[2], place[3]]
            return total

        return Matrix(tuple(tuple(entry(i, j) for j in _INDICES) for i in _INDICES))


@overload
def tensor_product(u: Vector, v: Vector) -> Matrix: ...
@overload
def tensor_product(u: Matrix, v: Matrix) -> Fourth: ...
def tensor_product(u: Vector | Matrix, v: Vector | Matrix) -> Matrix | Fourth:
    """Return the tensor product of two vectors or two tensors.

    For vectors, the product is the dyad with (u (x) v) r = u (v . r) (Balafoutis and Patel 1991, Eq
    3.2.3). For tensors, the product is a fourth-order tensor.
    """
    if type(u) is Vector and type(v) is Vector:
        return Matrix(tuple(tuple(a * b for b in v) for a in u))
    if type(u) is Matrix and type(v) is Matrix:
        return Fourth(u, v)
    raise ArgumentError(
        "E-MATH-027",
        f"tensor_product requires two vectors or two tensors, not {type(u).__name__} and "
        f"{type(v).__name__}",
    )


def wedge(u: Vector, v: Vector) -> Matrix:
    """Return the skew tensor u ^ v = u (x) v - v (x) u (Balafoutis and Patel 1991, Eq 3.3.9)."""
    return tensor_product(u, v) - tensor_product(v, u)


def trace(T: Matrix) -> Number:
    """Return the trace t_ii, the contraction of a tensor."""
    return T[0, 0] + T[1, 1] + T[2, 2]


def double_dot(T: Matrix, S: Matrix) -> Number:
    """Return the double dot product T : S = tr(T S), without a transpose.

    See Balafoutis and Patel 1991, Eq 3.2.30.
    """
    total: Number = 0.0
    for row, column in zip(T.rows, S.T.rows, strict=True):
        total = total + Vector(row).dot(Vector(column))
    return total


def norm(T: Matrix) -> Number:
    """Return the norm sqrt(T : T') (Balafoutis and Patel 1991, Eq 3.2.31)."""
    return sqrt(double_dot(T, T.T))


def angle(T: Matrix, S: Matrix) -> Number:
    """Return the angle (rad) between two tensors, the arccosine of T : S' / (|T| |S|).

    See Balafoutis and Patel 1991, Eq 3.2.33. The half angle is computed first, which is accurate
    for nearly parallel tensors.
    """
    t, s = T * (1.0 / norm(T)), S * (1.0 / norm(S))
    return 2.0 * atan2(norm(t - s), norm(t + s))


# Parts of a tensor -----------------------------------------------------------------------------


def symmetric_part(T: Matrix) -> Symmetric:
    """Return the symmetric part T+ = (T + T') / 2 (Balafoutis and Patel 1991, Eq 3.3.7)."""
    return Symmetric.of((T + T.T) * 0.5)


def skew_part(T: Matrix) -> Matrix:
    """Return the skew-symmetric part T- = (T - T') / 2 (Balafoutis and Patel 1991, Eq 3.3.8)."""
    return (T - T.T) * 0.5


def along(e: Vector) -> Matrix:
    """Return P_e = e (x) e, the projection onto the unit vector e.

    See Balafoutis and Patel 1991, Eq 3.3.10.
    """
    return tensor_product(e, e)


def across(e: Vector) -> Matrix:
    """Return P^e = 1 - e (x) e, the projection onto the plane normal to e.

    See Balafoutis and Patel 1991, Eq 3.3.11.
    """
    return Matrix.identity() - along(e)


def vect(T: Matrix) -> Vector:
    """Return the axial vector eps_ijk t_kj / 2 of a tensor.

    See Balafoutis and Patel 1991, Eq 3.3.25.
    """
    return Vector.of(T[2, 1] - T[1, 2], T[0, 2] - T[2, 0], T[1, 0] - T[0, 1]) * 0.5


@overload
def dual(x: Vector) -> Matrix: ...
@overload
def dual(x: Matrix) -> Vector: ...
def dual(x: Vector | Matrix) -> Matrix | Vector:
    """Return the dual of a vector or a skew tensor (Balafoutis and Patel 1991, Eq 3.3.29-33).

    The dual of a vector u is the tensor u~ with u~ v = u x v. The dual of u~ is u.
    """
    if type(x) is Vector:
        return Matrix.skew(x)
    if type(x) is Matrix:
        return Vector.of(x[2, 1], x[0, 2], x[1, 0])
    problem = f"the argument must be a Vector or a Matrix, not {type(x).__name__}"
    raise ArgumentError("E-MATH-028", problem, part="dual")


@overload
def left_dual(x: Vector) -> Matrix: ...
@overload
def left_dual(x: Matrix) -> Vector: ...
def left_dual(x: Vector | Matrix) -> Matrix | Vector:
    """Return the left-handed dual, which is the negative of `dual`.

    See Balafoutis and Patel 1991, Eq 3.3.34.
    """
    return -dual(x)


# Bases and invariants --------------------------------------------------------------------------


def change_basis(A: Matrix, x: Mapped) -> Mapped:
    """Transform a vector or tensor to another orthonormal basis: A v or A T A'.

    See Balafoutis and Patel 1991, Eq 3.3.1.
    """
    return A @ x @ A.T if isinstance(x, Matrix) else A @ x


class Invariants(NamedTuple):
    """Invariants of a tensor under a change of basis (Balafoutis and Patel 1991, Eq 3.3.18-21)."""

    I1: Number
    I2: Number
    I3: Number
    I4: Number


def invariants(T: Matrix) -> Invariants:
    """Return the trace, sum of principal 2x2 minors, determinant, and tr(T T') of a tensor T."""
    (a, b, c), (d, e, f), (g, h, i) = T.rows
    minors = (e * i - f * h, a * i - c * g, a * e - b * d)
    det = a * minors[0] - b * (d * i - f * g) + c * (d * h - e * g)
    return Invariants(trace(T), minors[0] + minors[1] + minors[2], det, double_dot(T, T.T))


def spectral(T: Symmetric) -> tuple[tuple[float, Vector], ...]:
    """Return the eigenvalues of T in ascending order, each with a unit eigenvector.

    See Balafoutis and Patel 1991, Eq 3.3.17. T is the sum of eigenvalue * along(eigenvector).
    Symbols are not supported, because eigenvectors are not smooth functions of T where eigenvalues
    are equal.
    """
    import numpy as np  # imported only if needed

    if any(isinstance(x, Scalar) or not math.isfinite(x) for x in T):
        problem = "all entries of the tensor must be finite floats"
        raise InputError("E-MATH-029", problem, part="spectral")
    values, vectors = np.linalg.eigh(np.array(T.matrix().rows, dtype=float))
    columns = (Vector(tuple(column)) for column in vectors.T.tolist())
    return tuple(zip(values.tolist(), columns, strict=True))


# Rotation of a rigid body -------------------------------------------------------------------------


def angular_velocity(R: Matrix, Rd: Matrix) -> Matrix:
    """Return the angular velocity tensor w~ = Rd R' for an orientation R with rate Rd.

    See Balafoutis and Patel 1991, Eq 4.2.5. w~ is expressed in the basis to which R transforms.
    """
    return Rd @ R.T


@dataclass(frozen=True, slots=True)
class AngularAcceleration:
    """Angular acceleration tensor Omega = wd~ + w~ w~ = Rdd R'.

    See Balafoutis and Patel 1991, Eq 4.2.7. Omega r is the second derivative of a body-fixed vector
    r. `tensor` is computed from the vectors w and wd in 6 multiplications and 9 additions. The
    axial vector (`vect`) of the tensor is wd, and its symmetric part is w~ w~.
    """

    w: Vector
    wd: Vector
    tensor: Matrix = field(init=False, repr=False, compare=False)

    @staticmethod
    def zero() -> "AngularAcceleration":
        return AngularAcceleration(Vector.zero(), Vector.zero())

    def __post_init__(self) -> None:
        (x, y, z), (p, q, s) = self.w, self.wd
        xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
        rows = (
            (-(yy + zz), xy - s, xz + q),
            (xy + s, -(xx + zz), yz - p),
            (xz - q, yz + p, -(xx + yy)),
        )
        object.__setattr__(self, "tensor", Matrix(rows))

    def __matmul__(self, r: Vector) -> Vector:
        """Return Omega r in 9 multiplications and 6 additions."""
        if type(r) is not Vector:
            return NotImplemented
        return self.tensor @ r

    def moment(self, J: Symmetric) -> Vector:
        """Return the moment dual(Omega J - (Omega J)') on a body with Euler tensor J.

        See Balafoutis and Patel 1991, Eq 4.3.41. The computation takes 15 multiplications and 15
        additions, because only differences between diagonal entries of Omega are needed (Balafoutis
        and Patel 1991, section 5.3).
        """
        (a, xy, xz), (yx, b, yz), (zx, zy, c) = self.tensor.rows
        return Vector.of(
            zy * J.yy - yz * J.zz + (c - b) * J.yz + zx * J.xy - yx * J.xz,
            xz * J.zz - zx * J.xx + (a - c) * J.xz + xy * J.yz - zy * J.xy,
            yx * J.xx - xy * J.yy + (b - a) * J.xy + yz * J.xz - xz * J.yz,
        )

    def moment_of(self, J: Symmetric) -> Vector:
        """Return the moment on a body (see `moment`), computed from w and wd.

        This form needs fewer operations if J is constant and Omega is not used elsewhere.
        """
        (x, y, z), (p, q, s) = self.w, self.wd
        (a, xy, xz), (yx, b, yz), (zx, zy, c) = self.tensor.rows
        return Vector.of(
            _pair(J.yy, J.zz, y * z, p) + (c - b) * J.yz + zx * J.xy - yx * J.xz,
            _pair(J.zz, J.xx, x * z, q) + (a - c) * J.xz + xy * J.yz - zy * J.xy,
            _pair(J.xx, J.yy, x * y, s) + (b - a) * J.xy + yz * J.xz - xz * J.yz,
        )


def _pair(a: Number, b: Number, product: Number, rate: Number) -> Number:
    """Return a (product + rate) - b (product - rate), a term of the moment in `moment_of`.

    If a and b are nonzero constants, the term is computed as (a - b) product + (a + b) rate, with
    fewer operations.
    """
    if any(isinstance(x, Scalar) or x == 0.0 for x in (a, b)):
        return a * (product + rate) - b * (product - rate)
    return (a - b) * product + (a + b) * rate


# Mass distribution --------------------------------------------------------------------------------
#
# I is the inertia tensor, whose off-diagonal entries are negative products of inertia. J is the
# Euler tensor, the integral of r (x) r dm, whose off-diagonal entries are positive products of
# inertia.


def euler_from_inertia(I: Symmetric) -> Symmetric:
    """Return the Euler tensor J = tr(I)/2 1 - I (Balafoutis and Patel 1991, Eq 4.3.14)."""
    half = (I.xx + I.yy + I.zz) * 0.5
    return Symmetric(half - I.xx, half - I.yy, half - I.zz, -I.xy, -I.xz, -I.yz)


def inertia_from_euler(J: Symmetric) -> Symmetric:
    """Return the inertia tensor I = tr(J) 1 - J (Balafoutis and Patel 1991, Eq 4.3.13)."""
    return Symmetric(J.yy + J.zz, J.xx + J.zz, J.xx + J.yy, -J.xy, -J.xz, -J.yz)


def point_mass(m: Number, r: Vector) -> RigidInertia:
    """Return the inertia of a point mass m at r: first moment m r, inertia tensor -m r~ r~."""
    return RigidInertia.from_center(m, r, Symmetric.zero())


def inertia_about(I: Symmetric, m: Number, r: Vector) -> Symmetric:
    """Return the inertia I_o = I_c - m r~ r~ about a point o (Balafoutis and Patel 1991, Eq 4.3.8).

    r is the vector from o to the center of mass.
    """
    return I + point_mass(m, r).I


def euler_about(J: Symmetric, m: Number, r: Vector) -> Symmetric:
    """Return the Euler tensor J_o = J_c + m r (x) r about a point o.

    See Balafoutis and Patel 1991, Eq 4.3.12.
    """
    x, y, z = r
    a, b, c = r * m
    return J + Symmetric(a * x, b * y, c * z, a * y, a * z, b * z)


def inertia_rate(w: Vector, I: Symmetric) -> Symmetric:
    """Return the rate w~ I - I w~ of an inertia or Euler tensor at angular velocity w.

    See Balafoutis and Patel 1991, Eq 4.3.16.
    """
    half = dual(w) @ I.matrix()
    return Symmetric.of(half + half.T)


def angular_momentum(w: Vector, J: Symmetric) -> Vector:
    """Return the angular momentum dual(J w~ - (J w~)') about the reference point of J.

    See Balafoutis and Patel 1991, Eq 4.3.30. The reference point must be at rest.
    """
    half = J.matrix() @ dual(w)
    return dual(half - half.T)


@dataclass(frozen=True, slots=True)
class Center:
    """Mass m, center of mass r, and inertia I about the center of mass."""

    m: Number
    r: Vector
    I: Symmetric

    @staticmethod
    def of(rigid: RigidInertia) -> "Center":
        """Create a `Center` from an inertia about the origin. For a massless body, r is zero."""
        if not isinstance(rigid.m, Scalar) and rigid.m == 0.0:
            assert not any(rigid.h), "regrouped inertias have no center of mass"
            return Center(rigid.m, Vector.zero(), rigid.I)
        r = rigid.h * (1.0 / rigid.m)
        return Center(rigid.m, r, rigid.I - point_mass(rigid.m, r).I)

    @staticmethod
    def together(parts: Sequence["Center"]) -> "Center":
        """Combine several bodies into a composite body (Balafoutis and Patel 1991, Eq 6.2.5-7)."""
        m: Number = 0.0
        h, I = Vector.zero(), Symmetric.zero()
        for part in parts:
            m, h = m + part.m, h + part.r * part.m
        r = Center.of(RigidInertia(m, h, I)).r
        for part in parts:
            I += inertia_about(part.I, part.m, part.r - r)
        return Center(m, r, I)


class GeneralizedLink(NamedTuple):
    """Composite body of a moving link and all links beyond it.

    m is the mass, U the first moment, Ud the rate of U, E the inertia, and L the tensor defined in
    Balafoutis and Patel 1991, Eq 7.3.18d. All moments are about the link origin.
    """

    m: Number
    U: Vector
    Ud: Vector
    E: Symmetric
    L: Matrix

    def force(self, zdd: Vector, zd2: Vector, xdd: Vector) -> Force:
        """Return the wrench about the link origin due to a change in the link's motion.

        zdd and xdd are the changes in the angular acceleration and in the acceleration of the
        origin. zd2 is twice the change in the angular velocity. See Balafoutis and Patel 1991, Eq
        7.3.18e-k.
        """
        moment = self.E @ zdd - self.L @ zd2 + self.U.cross(xdd)
        return Force(moment, xdd * self.m - self.U.cross(zdd) - self.Ud.cross(zd2))
