"""What joint types are written with: unit motions and forces, and a few common parts."""

from collections.abc import Sequence

from chasles.expr import Number, atan2
from chasles.mathematics.leibniz import leibniz
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import General, Rotation, matrix_from_quaternion
from chasles.mathematics.spatial import Force, Motion, Motions, RigidInertia, Transform

UNITS = tuple(Motion.of(*(float(i == k) for i in range(6))) for k in range(6))
WX, WY, WZ, VX, VY, VZ = UNITS
"""Turning about, then sliding along each axis."""
MX, MY, MZ, FX, FY, FZ = (Force.of(*unit) for unit in UNITS)
"""A moment about, then a force along each axis."""
X, Y, Z = (Vector(row) for row in Matrix.identity().rows)


def axial(k: Number, hz: Number = 0.0, m: Number = 0.0) -> RigidInertia:
    """Inertia that a rotation about z neither feels nor changes."""
    return RigidInertia(m, Vector.of(0.0, 0.0, hz), Symmetric(k, k, 0.0, 0.0, 0.0, 0.0))


def turn_about_z(XJ: Transform) -> Number:
    """The angle about z that comes nearest to the rotation of XJ."""
    R = XJ.R
    return atan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1])


def orientation(q: Vector) -> Rotation:
    """E of a quaternion."""
    return Rotation((General(matrix_from_quaternion(q).T),))


def group_drift(S: Motions, qd: Vector) -> Matrix:
    """-ad(qd) of a joint whose motions form a group and whose S has unit columns."""
    brackets = (S @ qd).cross(S)
    rows = (Vector(tuple(s)) for s in S.columns)
    return Matrix(
        tuple(tuple(-row.dot(Vector(tuple(m))) for m in brackets.columns) for row in rows)
    )


def left_behind(n: Vector, spins: Sequence[Vector]) -> list[Vector]:
    """n and its derivatives as a body sees them that turns, where n itself does not: n' = n x w.

    spins: w in body axes and its derivatives, as many as are wanted of n.
    """
    found = [n]
    for k in range(len(spins)):
        found.append(leibniz(Vector.cross, found, spins, k))
    return found
