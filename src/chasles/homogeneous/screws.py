"""Screws: the exponential and its inverse, axes of motions and displacements, Pluecker lines.

Everything here is exact near angles of 0 and pi, and holds for pure translations too. Squares below
1e-300 count as zero.
"""

import math
from typing import NamedTuple

import numpy as np

from chasles.errors import InputError
from chasles.expr import Number, Scalar, less, select, sqrt
from chasles.homogeneous.door import ORIGIN, Array, array, direction, number, typed, vector
from chasles.mathematics.homogeneous import Rototranslation, Screw, Velocity
from chasles.mathematics.linear import Vector
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


def _chosen(condition: Number, a: Vector, b: Vector) -> Vector:
    return Vector(tuple(select(condition, x, y) for x, y in zip(a, b, strict=True)))


def _unit(v: Vector, fallback: Vector) -> tuple[Vector, Number]:
    """The direction of v (the fallback where v is zero), and its length."""
    t = v.dot(v)
    none = less(t, _NONE)
    length = sqrt(select(none, 1.0, t))
    return _chosen(none, fallback, v * (1.0 / length)), select(none, 0.0, length)


# The exponential ----------------------------------------------------------------------------------


def exponential(X: Screw | Velocity, amount: Number = 1.0) -> Rototranslation:
    """Q = exp(L phi), by an angle (rad; m for a translation), or exp(W t) during a time (s).

    The displacement along a screw, or with a constant velocity (Legnani I, section 5).
    """
    typed("X", X, Screw, Velocity)
    k = number("amount", amount)
    w, v = X.w * k, X.v * k
    R = Rotation((General(matrix_from_vector(w)),))  # no small entry is taken for rounding
    return Rototranslation(R, translation_of_screw(w, v))


def logarithm(Q: Rototranslation) -> Velocity:
    """The constant velocity that makes the displacement in unit time, turning by at most pi."""
    typed("Q", Q, Rototranslation)
    w = vector_from_matrix(Q.R.matrix())
    return Velocity(w, screw_of_translation(w, Q.t))


# Axes ---------------------------------------------------------------------------------------------


class ScrewAxis(NamedTuple):
    """Unit direction, the axis' point nearest to the origin (m), pitch (m/rad; inf: translates)."""

    direction: np.ndarray
    point: np.ndarray
    pitch: Number


class Displacement(NamedTuple):
    """A screw motion: a turn by an angle in [0, pi] about an axis, and a travel (m) along it.

    axis: unit direction; point: that of the axis nearest to the origin (m). A pure translation has
    angle 0 and point 0; without motion the axis is z.
    """

    axis: np.ndarray
    point: np.ndarray
    angle: Number
    travel: Number
    pitch: Number


def screw_from_axis(axis: Array, point: Array = ORIGIN, pitch: Number = 0.0) -> Screw:
    """L of an axis through a point, with a pitch in m/rad; infinite: a translation.

    L = [u~ b; 0 0] with b = -u~ p + pitch u; p is any point of the axis.
    """
    u, _ = _unit(direction("axis", axis), Vector.zero())
    p = vector("point", point)
    if type(pitch) is not Scalar and pitch in (math.inf, -math.inf):
        return Screw(Vector.zero(), u * math.copysign(1.0, pitch))
    return Screw(u, p.cross(u) + u * number("pitch", pitch))


def axis_of_screw(L: Screw) -> ScrewAxis:
    """Direction, point and pitch of a screw: the inverse of `screw_from_axis`."""
    typed("L", L, Screw)
    translates = less(L.w.dot(L.w), _NONE)
    u, _ = _unit(L.w, _unit(L.v, _Z)[0])
    point = _chosen(translates, Vector.zero(), u.cross(L.v))
    return ScrewAxis(array(u), array(point), select(translates, math.inf, u.dot(L.v)))


def screw_of_velocity(W: Velocity) -> tuple[Screw, Number]:
    """The instantaneous screw axis and its rate, W = L rate: the length of w, or of v if w = 0.

    Legnani I, section 5. Where symbols turn out to be those of a body at rest, both are zero.
    """
    typed("W", W, Velocity)
    if not any(type(x) is Scalar or x != 0.0 for x in W):
        raise InputError("E-MATH-020", "W is zero: a body at rest has no screw axis")
    u, turning = _unit(W.w, Vector.zero())
    along, sliding = _unit(W.v, Vector.zero())
    translates = less(turning, math.sqrt(_NONE))
    b = _chosen(translates, along, W.v * (1.0 / select(translates, 1.0, turning)))
    return Screw(u, b), select(translates, sliding, turning)


def screw_motion(Q: Rototranslation, *, tolerance: float = 1e-15) -> Displacement:
    """Chasles' theorem: the axis, angle and travel of any displacement, at every angle.

    tolerance: angles (rad) below this are taken as rounding, and Q as a pure translation.
    """
    W = logarithm(Q)
    angle = sqrt(W.w.dot(W.w))
    slides = less(angle, max(tolerance, math.sqrt(_NONE)))
    divisor = select(slides, 1.0, angle)
    u = _chosen(slides, _unit(Q.t, _Z)[0], W.w * (1.0 / divisor))
    point = _chosen(slides, Vector.zero(), u.cross(W.v) * (1.0 / divisor))
    travel = u.dot(Q.t)
    pitch = select(slides, math.inf, travel / divisor)
    return Displacement(array(u), array(point), select(slides, 0.0, angle), travel, pitch)


def rototranslation_from_axis(
    axis: Array, angle: Number, point: Array = ORIGIN, *, travel: Number = 0.0
) -> Rototranslation:
    """Q of a turn by an angle about an axis through a point, and a travel (m) along it.

    t = (1 - R) p + travel u (Legnani I, section 2.3), as an exponential: (1 - R) p would lose the
    digits of a far axis and a small angle.
    """
    u, _ = _unit(direction("axis", axis), Vector.zero())
    p, phi, d = vector("point", point), number("angle", angle), number("travel", travel)
    return exponential(Velocity(u * phi, p.cross(u) * phi + u * d))


# Lines --------------------------------------------------------------------------------------------


def plucker_from_line(point: Array, axis: Array) -> np.ndarray:
    """(u, p x u) of the line through a point along a direction, u of unit length.

    They are the six numbers of a screw without pitch.
    """
    return array(list(screw_from_axis(axis, point)))


def line_from_plucker(coordinates: Array) -> tuple[np.ndarray, np.ndarray]:
    """The line's point nearest to the origin, and its unit direction; any scale will do."""
    six = vector("coordinates", coordinates, 6).entries
    u, m = Vector(six[:3]), Vector(six[3:])
    scaled = direction("coordinates", u)
    sizes = scaled.dot(scaled), m.dot(m), scaled.dot(m)
    if not any(type(x) is Scalar for x in sizes):
        uu, mm, um = sizes
        if um * um > 1e-18 * uu * mm:
            problem = "coordinates are those of no line: u.m is not zero (a screw's pitch)"
            raise InputError("E-MATH-021", problem)
    return array(u.cross(m) * (1.0 / u.dot(u))), array(_unit(u, _Z)[0])
