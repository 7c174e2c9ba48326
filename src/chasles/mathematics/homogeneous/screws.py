"""Screws: the exponential and its inverse, axes of motions and displacements, Pluecker lines.

Everything here is exact near angles of 0 and pi, and holds for pure translations too. Squares below
1e-300 count as zero.
"""

import math
from typing import NamedTuple

from chasles.expr import Number, Scalar, less, select, sqrt
from chasles.mathematics.homogeneous.frames import Rototranslation
from chasles.mathematics.homogeneous.motions import Screw, Velocity
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import (
    General,
    Rotation,
    matrix_from_vector,
    screw_of_translation,
    translation_of_screw,
    vector_from_matrix,
)

_NONE = 1e-300
"""A square below this is that of no motion at all."""

_Z = Vector.of(0.0, 0.0, 1.0)


def _turning(R: Matrix) -> Rotation:
    """R with every digit: no small entry is taken for rounding."""
    return Rotation((General(R),))


def _chosen(condition: Number, a: Vector, b: Vector) -> Vector:
    return Vector(tuple(select(condition, x, y) for x, y in zip(a, b, strict=True)))


def _unit(v: Vector, fallback: Vector) -> tuple[Vector, Number]:
    """The direction of v (the fallback where v is zero), and its length."""
    t = v.dot(v)
    none = less(t, _NONE)
    length = sqrt(select(none, 1.0, t))
    return _chosen(none, fallback, v * (1.0 / length)), select(none, 0.0, length)


# The exponential -------------------------------------------------------------------------------


def exponential(X: Screw | Velocity, amount: Number = 1.0) -> Rototranslation:
    """Q = exp(L phi): the displacement along a screw (Legnani I, section 5).

    amount: the angle in rad, or the distance in m where the screw is a translation; of a velocity,
    the time during which it stays constant.
    """
    w, v = X.w * amount, X.v * amount
    return Rototranslation(_turning(matrix_from_vector(w)), translation_of_screw(w, v))


def logarithm(Q: Rototranslation) -> Velocity:
    """The constant velocity that makes the displacement Q in unit time, turning by at most pi."""
    w = vector_from_matrix(Q.R.matrix())
    return Velocity(w, screw_of_translation(w, Q.t))


# Axes ------------------------------------------------------------------------------------------


class Axis(NamedTuple):
    """A screw axis: its unit direction, its point nearest to the origin, its pitch in m/rad.

    The pitch of a translation is infinite.
    """

    direction: Vector
    point: Vector
    pitch: Number


def screw_from_axis(direction: Vector, point: Vector, pitch: Number = 0.0) -> Screw:
    """L = [u~ b; 0 0] with b = -u~ p + pitch u; p is any point of the axis.

    The direction need not be a unit vector. An infinite pitch gives a translation.
    """
    u, _ = _unit(direction, Vector.zero())
    if type(pitch) is not Scalar and math.isinf(pitch):
        return Screw(Vector.zero(), u * math.copysign(1.0, pitch))
    return Screw(u, point.cross(u) + u * pitch)


def axis_of_screw(L: Screw) -> Axis:
    """Direction, point and pitch of a screw: the inverse of `screw_from_axis`."""
    translates = less(L.w.dot(L.w), _NONE)
    u, _ = _unit(L.w, _unit(L.v, _Z)[0])
    point = _chosen(translates, Vector.zero(), u.cross(L.v))
    return Axis(u, point, select(translates, math.inf, u.dot(L.v)))


def screw_of_velocity(W: Velocity) -> tuple[Screw, Number]:
    """The instantaneous screw axis L and its rate: W = L rate.

    The rate is the length of w, or that of v where w is zero (Legnani I, section 5). A body at rest
    has no axis: L and the rate are zero.
    """
    u, turning = _unit(W.w, Vector.zero())
    direction, sliding = _unit(W.v, Vector.zero())
    translates = less(turning, math.sqrt(_NONE))
    b = _chosen(translates, direction, W.v * (1.0 / select(translates, 1.0, turning)))
    return Screw(u, b), select(translates, sliding, turning)


class ScrewMotion(NamedTuple):
    """A displacement as a screw motion: a turn about an axis, and a travel along it.

    axis: unit direction. point: that of the axis nearest to the origin. angle in rad, in [0, pi].
    travel in m. All are finite: a pure translation has angle 0, point 0 and its length as travel.
    Without any motion the axis is z.
    """

    axis: Vector
    point: Vector
    angle: Number
    travel: Number

    @property
    def pitch(self) -> Number:
        """Travel by angle, m/rad: infinite for a pure translation."""
        none = less(self.angle, math.sqrt(_NONE))
        return select(none, math.inf, self.travel / select(none, 1.0, self.angle))

    def rototranslation(self) -> Rototranslation:
        """Q, with t = (1 - R) p + travel u (Legnani I, section 2.3).

        As an exponential: (1 - R) p would lose the digits of a far axis and a small angle.
        """
        u, p = self.axis, self.point
        return exponential(Velocity(u * self.angle, p.cross(u) * self.angle + u * self.travel))


def screw_motion(Q: Rototranslation, tolerance: float = 0.0) -> ScrewMotion:
    """Chasles' theorem: the screw motion that makes the displacement Q.

    tolerance: angles (rad) below this are taken as rounding, and Q as a pure translation.
    """
    W = logarithm(Q)
    angle = sqrt(W.w.dot(W.w))
    slides = less(angle, max(tolerance, math.sqrt(_NONE)))
    u = _chosen(slides, _unit(Q.t, _Z)[0], W.w * (1.0 / select(slides, 1.0, angle)))
    point = _chosen(slides, Vector.zero(), u.cross(W.v) * (1.0 / select(slides, 1.0, angle)))
    return ScrewMotion(u, point, select(slides, 0.0, angle), u.dot(Q.t))


# Lines -----------------------------------------------------------------------------------------


def plucker_from_line(point: Vector, direction: Vector) -> Vector:
    """(u, p x u): the Pluecker coordinates of a line, u its unit direction and p a point of it.

    They are the six numbers of a screw without pitch.
    """
    L = screw_from_axis(direction, point)
    return Vector((*L.w, *L.v))


def line_from_plucker(coordinates: Vector) -> tuple[Vector, Vector]:
    """The line's point nearest to the origin, and its unit direction; any scale will do."""
    u, m = Vector(coordinates.entries[:3]), Vector(coordinates.entries[3:])
    return u.cross(m) * (1.0 / u.dot(u)), _unit(u, _Z)[0]
