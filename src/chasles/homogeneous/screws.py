"""Screws: axes of motions and displacements, the exponential, Pluecker coordinates of lines."""

import math
from typing import NamedTuple

import numpy as np

from chasles.errors import InputError
from chasles.expr import Number, Scalar
from chasles.homogeneous.door import ORIGIN, Array, array, direction, number, typed, vector
from chasles.mathematics import homogeneous
from chasles.mathematics.homogeneous import Rototranslation, Screw, ScrewMotion, Velocity
from chasles.mathematics.linear import Vector


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
    """L of an axis through a point, with a pitch in m/rad; infinite: a translation."""
    translates = type(pitch) is not Scalar and pitch in (math.inf, -math.inf)
    p = pitch if translates else number("pitch", pitch)
    return homogeneous.screw_from_axis(direction("axis", axis), vector("point", point), p)


def axis_of_screw(L: Screw) -> ScrewAxis:
    """Direction, point and pitch of a screw."""
    typed("L", L, Screw)
    axis = homogeneous.axis_of_screw(L)
    return ScrewAxis(array(axis.direction), array(axis.point), axis.pitch)


def screw_of_velocity(W: Velocity) -> tuple[Screw, Number]:
    """The instantaneous screw axis and its rate, W = L rate: the length of w, or of v if w = 0."""
    typed("W", W, Velocity)
    if not any(type(x) is Scalar or x != 0.0 for x in W):
        raise InputError("E-MATH-020", "W is zero: a body at rest has no screw axis")
    return homogeneous.screw_of_velocity(W)


def screw_motion(Q: Rototranslation, *, tolerance: float = 1e-15) -> Displacement:
    """Chasles' theorem: the axis, angle and travel of any displacement, at every angle.

    tolerance: angles (rad) below this are taken as rounding, and Q as a pure translation.
    """
    typed("Q", Q, Rototranslation)
    motion = homogeneous.screw_motion(Q, tolerance)
    axis, point = array(motion.axis), array(motion.point)
    return Displacement(axis, point, motion.angle, motion.travel, motion.pitch)


def rototranslation_from_axis(
    axis: Array, angle: Number, point: Array = ORIGIN, *, travel: Number = 0.0
) -> Rototranslation:
    """Q of a turn by an angle about an axis through a point, and a travel (m) along it."""
    u = homogeneous.screw_from_axis(direction("axis", axis), Vector.zero()).w
    phi, d = number("angle", angle), number("travel", travel)
    return ScrewMotion(u, vector("point", point), phi, d).rototranslation()


def exponential(X: Screw | Velocity, amount: Number = 1.0) -> Rototranslation:
    """Q = exp(L phi), by an angle (rad; m for a translation), or exp(W t) during a time (s)."""
    typed("X", X, Screw, Velocity)
    return homogeneous.exponential(X, number("amount", amount))


def logarithm(Q: Rototranslation) -> Velocity:
    """The constant velocity that makes the displacement in unit time, turning by at most pi."""
    typed("Q", Q, Rototranslation)
    return homogeneous.logarithm(Q)


def plucker_from_line(point: Array, axis: Array) -> np.ndarray:
    """(u, p x u) of the line through a point along a direction, u of unit length."""
    u = direction("axis", axis)
    return array(homogeneous.plucker_from_line(vector("point", point), u))


def line_from_plucker(coordinates: Array) -> tuple[np.ndarray, np.ndarray]:
    """The line's point nearest to the origin, and its unit direction."""
    six = vector("coordinates", coordinates, 6)
    u = direction("coordinates", six.entries[:3])
    m = Vector(six.entries[3:])
    sizes = u.dot(u), m.dot(m), u.dot(m)
    if not any(type(x) is Scalar for x in sizes):
        uu, mm, um = sizes
        if um * um > 1e-18 * uu * mm:
            problem = "coordinates are those of no line: u.m is not zero (a screw's pitch)"
            raise InputError("E-MATH-021", problem)
    point, along = homogeneous.line_from_plucker(six)
    return array(point), array(along)
