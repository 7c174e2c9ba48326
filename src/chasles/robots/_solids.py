"""Inertias of uniform solids (m, kg) about the origin, and poses of their visual shapes.

`along` is the index of the axis of symmetry (0, 1 or 2).
"""

from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import Rotation, aligned_to_z
from chasles.mathematics.spatial import RigidInertia, Transform

ORIGIN = Vector.zero()

SHELL, MOTOR = (0.80, 0.82, 0.85, 1.0), (0.22, 0.24, 0.28, 1.0)
"""Colors of links and of motors (red, green, blue, opacity)."""


def box(mass: float, size: tuple[float, float, float], center: Vector = ORIGIN) -> RigidInertia:
    """Return the inertia of a box; `size` contains the edge lengths along x, y and z."""
    xx, yy, zz = (mass * edge * edge / 12.0 for edge in size)
    return RigidInertia.from_center(
        mass, center, Symmetric(yy + zz, xx + zz, xx + yy, 0.0, 0.0, 0.0)
    )


def sphere(mass: float, radius: float, center: Vector = ORIGIN) -> RigidInertia:
    """Return the inertia of a sphere."""
    moment = 0.4 * mass * radius * radius
    return _round(mass, moment, moment, 2, center)


def cylinder(
    mass: float, radius: float, length: float, along: int, center: Vector = ORIGIN
) -> RigidInertia:
    """Return the inertia of a circular cylinder."""
    axial = 0.5 * mass * radius * radius
    return _round(mass, axial, 0.5 * axial + mass * length * length / 12.0, along, center)


def capsule(
    mass: float, radius: float, length: float, along: int, center: Vector = ORIGIN
) -> RigidInertia:
    """Return the inertia of a capsule; `length` excludes the hemispheres at its ends."""
    tube, ends = length, 4.0 / 3.0 * radius  # volumes divided by the cross-sectional area
    m, b = mass * tube / (tube + ends), mass * ends / (tube + ends)
    r2, l2 = radius * radius, length * length
    axial = 0.5 * m * r2 + 0.4 * b * r2
    transverse = m * (r2 / 4.0 + l2 / 12.0)
    transverse += b * (0.4 * r2 + l2 / 4.0 + 3.0 / 8.0 * length * radius)
    return _round(mass, axial, transverse, along, center)


def mirrored(inertia: RigidInertia) -> RigidInertia:
    """Return the inertia of a body's mirror image in the plane y = 0."""
    x, y, z = inertia.h
    xx, yy, zz, xy, xz, yz = inertia.I
    return RigidInertia(inertia.m, Vector.of(x, -y, z), Symmetric(xx, yy, zz, -xy, xz, -yz))


def standing(axis: Vector, center: Vector) -> Transform:
    """Return the pose of a shape with the given center and z axis (a unit vector)."""
    return Transform(Rotation.of(aligned_to_z(axis)), center)


def rod(mass: float, length: float) -> RigidInertia:
    """Return the inertia of a slender rod that extends from the origin along x."""
    transverse = mass * length * length / 12.0
    return _round(mass, transverse / 50.0, transverse, 0, Vector.of(0.5 * length, 0.0, 0.0))


def points(masses: list[float], places: list[Vector]) -> RigidInertia:
    """Return the inertia of point masses (kg) at given positions (m)."""
    total = RigidInertia.zero()
    for mass, place in zip(masses, places, strict=True):
        total = total + RigidInertia.from_center(mass, place, Symmetric.zero())
    return total


def _round(
    mass: float, axial: float, transverse: float, along: int, center: Vector
) -> RigidInertia:
    xx, yy, zz = (axial if k == along else transverse for k in range(3))
    return RigidInertia.from_center(mass, center, Symmetric(xx, yy, zz, 0.0, 0.0, 0.0))
