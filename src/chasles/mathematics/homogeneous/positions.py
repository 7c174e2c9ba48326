"""Positions from joint constants, and the plain conversions between vectors and 4x4 matrices."""

from chasles.expr import Number
from chasles.mathematics.angles import turn
from chasles.mathematics.homogeneous.dense import Dense
from chasles.mathematics.homogeneous.frames import Position
from chasles.mathematics.homogeneous.motions import Velocity
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import Rotation


def position_from_extended_dh(
    theta: Number, s: Number, b: Number, a: Number, alpha: Number
) -> Position:
    """Rz(theta) Tz(s) Tx(a) Ty(b) Rx(alpha) (Legnani II, section 6); plain D-H has b = 0.

    The joint's coordinate is a part of theta (revolute) or of s (prismatic).
    """
    Rz = turn(2, theta)
    return Position(turn(0, alpha).then(Rz), Rz @ Vector.of(a, b, s))


# Mitra's conversions ---------------------------------------------------------------------------


def axis_origin(u: Vector, v: Vector, w: Vector, r: Vector) -> Position:
    """AO_H (Mitra, section 2): the frame with axes u, v, w and origin r, all in the first frame."""
    return Position(Rotation.of(Matrix((u.entries, v.entries, w.entries)).T), r)


def axes_and_origin(M: Position) -> tuple[Vector, Vector, Vector, Vector]:
    """u, v, w and r: the columns of AO_H."""
    u, v, w = map(Vector, M.R.matrix().T.rows)
    return u, v, w, M.t


def velocity_from_six(six: Vector) -> Velocity:
    """v6m4: [w~ v; 0 0] from (w, v)."""
    return Velocity(Vector(six.entries[:3]), Vector(six.entries[3:]))


def angular(X: Dense) -> Vector:
    """m4v3: w of the skew part w~ of the 3x3 block.

    For W it is the angular velocity, for L the axis, for H the angular acceleration (w~ w~ is
    symmetric), for Gamma and Phi the angular momentum and the couple.
    """
    A = X.matrix()
    return Vector.of(A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]) * 0.5


def linear(X: Dense) -> Vector:
    """The last column: velocity or acceleration of the pole, linear momentum, force, origin."""
    return Vector(tuple(row[3] for row in X.matrix().rows[:3]))


def six(X: Dense) -> Vector:
    """m4v6: angular part, then linear part."""
    return Vector((*angular(X), *linear(X)))


def three(P: Vector) -> Vector:
    """v4v3: a homogeneous point (x, y, z, 1) or direction (x, y, z, 0) without its last number."""
    return Vector(P.entries[:3])
