"""Positions M, displacements Q, screws L, velocities W, accelerations H; exact near 0 and pi."""

import math
from typing import NamedTuple

import numpy as np

from chasles.errors import InputError
from chasles.expr import Number, Scalar, less, select, sqrt
from chasles.homogeneous import matrices
from chasles.homogeneous.matrices import ORIGIN, Array, array, number, position, typed, vector
from chasles.mathematics import homogeneous, rotations
from chasles.mathematics.angles import SEQUENCES, About, angles_from_matrix, rotation_from_angles
from chasles.mathematics.homogeneous import Acceleration, Position, Rototranslation, Screw, Velocity
from chasles.mathematics.homogeneous.frames import AnyFramed
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import General, Rotation

_NONE = 1e-300
"""A square below this is that of no motion at all."""

_Z = Vector.of(0.0, 0.0, 1.0)


# Positions ----------------------------------------------------------------------------------------


def position_from_dh(theta: Number, d: Number, a: Number, alpha: Number) -> Position:
    """M of standard (distal) Denavit-Hartenberg constants: Rz(theta) Tz(d) Tx(a) Rx(alpha)."""
    return position_from_extended_dh(theta, d, 0.0, a, alpha)


def position_from_extended_dh(
    theta: Number,
    s: Number,
    b: Number,
    a: Number,
    alpha: Number,
    *,
    kind: str = "revolute",
    q: Number | Array = 0.0,
    pitch: Number = 0.0,
) -> Position:
    """M(i-1, i) of a joint by five constants (Legnani II, fig. 6), its coordinate added.

    R = Rz(theta) Rx(alpha), translation (a cos - b sin, a sin + b cos, s).

    Parameters
    ----------
    theta, s, b, a, alpha
        The constants (rad, m).
    kind
        "revolute" (SPACELIB's 0): q is added to theta. "prismatic" (SPACELIB's 1): q is added to s.
        "helical": q (rad) is added to theta and pitch times q to s. "cylindrical": q is a pair
        (rad, m), added to theta and to s.
    q
        The joint's coordinate, or both of a cylindrical joint (0 stands for both).
    pitch
        Advance of a helical joint (m/rad).
    """
    given = {"theta": theta, "s": s, "b": b, "a": a, "alpha": alpha}
    checked = {name: number(name, x) for name, x in given.items()}
    turn, slide = _along_axis(kind, q, number("pitch", pitch))
    checked["theta"] += turn
    checked["s"] += slide
    return homogeneous.position_from_extended_dh(**checked)


def _along_axis(kind: str, q: Number | Array, pitch: Number) -> tuple[Number, Number]:
    """The turn about and the slide along the axis of a joint."""
    if kind == "cylindrical":
        both = (0.0, 0.0) if isinstance(q, int | float) and q == 0 else q
        turn, slide = vector("q", both, 2)
        return turn, slide
    one = number("q", q)
    moves = {"revolute": (one, 0.0), "prismatic": (0.0, one), "helical": (one, pitch * one)}
    if kind not in moves:
        known = ", ".join(map(repr, (*moves, "cylindrical")))
        raise InputError("E-MATH-017", f"kind must be one of {known}, not {kind!r}")
    return moves[kind]


def position_from_axis_angle(axis: Array, angle: Number, origin: Array = ORIGIN) -> Position:
    """M of a frame that is turned by an angle about a direction, with its origin at a point."""
    R = rotations.matrix_from_axis_angle(matrices.direction("axis", axis), number("angle", angle))
    return Position(Rotation.of(R), vector("origin", origin))


def axis_angle_from_position(M: Array) -> tuple[np.ndarray, Number]:
    """The unit axis and the angle in [0, pi] of the rotation of M; z where the angle is zero."""
    q = rotations.quaternion_from_matrix(position("M", M).R.matrix())
    axis, angle = rotations.axis_angle_from_quaternion(q)
    return array(axis), angle


def position_from_angles(
    sequence: str, angles: Array, origin: Array = ORIGIN, *, axes: About = "moving"
) -> Position:
    """M of a frame turned by three angles, in order: Cardan ("xyz", ...) or Euler ("zxz", ...).

    axes: "moving", each turn about an axis of the frame as turned so far (intrinsic), or "fixed",
    about the axes of the first frame (extrinsic). URDF's roll, pitch, yaw is "xyz", fixed.
    """
    _sequence(sequence, axes)
    R = rotation_from_angles(sequence, list(vector("angles", angles)), axes)
    return Position(R, vector("origin", origin))


def angles_from_position(
    M: Array, sequence: str, *, axes: About = "moving"
) -> tuple[np.ndarray, np.ndarray]:
    """Both triples of angles, each in (-pi, pi], that turn the first frame as M is turned.

    The first has its middle angle in [-pi/2, pi/2] (Cardan) or [0, pi] (Euler). Where the first and
    third axes are parallel (middle angle +-pi/2, or 0 and pi), only the sum or difference of their
    angles is determined: the first moving (third fixed) angle of the first triple is then zero.
    """
    _sequence(sequence, axes)
    first, second = angles_from_matrix(position("M", M).R.matrix(), sequence, axes)
    return array(first), array(second)


def _sequence(sequence: str, axes: str) -> None:
    if sequence not in SEQUENCES:
        problem = f"there are {', '.join(SEQUENCES)}"
        raise InputError("E-MATH-018", problem, part=f"sequence {sequence!r}")
    if axes not in ("moving", "fixed"):
        raise InputError("E-MATH-019", f"axes must be 'moving' or 'fixed', not {axes!r}")


def position_from_axes(x: Array, y: Array, z: Array, origin: Array = ORIGIN) -> Position:
    """M of the frame with these unit axes and this origin: AO_H (Mitra, section 2)."""
    axes = Matrix((vector("x", x).entries, vector("y", y).entries, vector("z", z).entries))
    matrices.rotation("the axes", axes)
    return Position(Rotation.of(axes.T), vector("origin", origin))


def rototranslation(M01: Array, M02: Array) -> Rototranslation:
    """Q = M02 M01^-1, in frame 0: the displacement that takes frame 1 to frame 2 (Eq I.4)."""
    return Rototranslation.between(position("M01", M01), position("M02", M02))


def _chosen(condition: Number, a: Vector, b: Vector) -> Vector:
    return Vector(tuple(select(condition, x, y) for x, y in zip(a, b, strict=True)))


def _unit(v: Vector, fallback: Vector) -> tuple[Vector, Number]:
    """The direction of v (the fallback where v is zero), and its length."""
    t = v.dot(v)
    none = less(t, _NONE)
    length = sqrt(select(none, 1.0, t))
    return _chosen(none, fallback, v * (1.0 / length)), select(none, 0.0, length)


# Screws: the exponential --------------------------------------------------------------------------


def exponential(X: Screw | Velocity, amount: Number = 1.0) -> Rototranslation:
    """Q = exp(L phi), phi in rad (m: translation), or exp(W t), t in s (Legnani I, section 5)."""
    typed("X", X, Screw, Velocity)
    k = number("amount", amount)
    w, v = X.w * k, X.v * k
    R = General(rotations.matrix_from_vector(w))  # no small entry is taken for rounding
    return Rototranslation(Rotation((R,)), rotations.translation_of_screw(w, v))


def logarithm(Q: Rototranslation) -> Velocity:
    """The constant velocity that makes the displacement in unit time, turning by at most pi."""
    typed("Q", Q, Rototranslation)
    w = rotations.vector_from_matrix(Q.R.matrix())
    return Velocity(w, rotations.screw_of_translation(w, Q.t))


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
    """L = [u~ b; 0 0], b = p x u + pitch u; pitch in m/rad, infinite for a translation."""
    u, _ = _unit(matrices.direction("axis", axis), Vector.zero())
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
    u, _ = _unit(matrices.direction("axis", axis), Vector.zero())
    p, phi, d = vector("point", point), number("angle", angle), number("travel", travel)
    return exponential(Velocity(u * phi, p.cross(u) * phi + u * d))


# Lines --------------------------------------------------------------------------------------------


def plucker_from_line(point: Array, axis: Array) -> np.ndarray:
    """(u, p x u) of a line, u of unit length: the six numbers of a screw without pitch."""
    return array(list(screw_from_axis(axis, point)))


def line_from_plucker(coordinates: Array) -> tuple[np.ndarray, np.ndarray]:
    """The line's point nearest to the origin, and its unit direction; any scale will do."""
    six = vector("coordinates", coordinates, 6).entries
    u, m = Vector(six[:3]), Vector(six[3:])
    scaled = matrices.direction("coordinates", u)
    sizes = scaled.dot(scaled), m.dot(m), scaled.dot(m)
    if not any(type(x) is Scalar for x in sizes):
        uu, mm, um = sizes
        if um * um > 1e-18 * uu * mm:
            problem = "the coordinates do not describe a line: u.m is not zero (a screw with pitch)"
            raise InputError("E-MATH-021", problem)
    return array(u.cross(m) * (1.0 / u.dot(u))), array(_unit(u, _Z)[0])


# Velocities and accelerations ---------------------------------------------------------------------


def velocity(w: Array, v: Array) -> Velocity:
    """W from the angular velocity w (rad/s) and the velocity v of the pole (m/s)."""
    return Velocity(vector("w", w), vector("v", v))


def acceleration(W: Velocity, wd: Array, a: Array) -> Acceleration:
    """H of a body with velocity W, from angular acceleration wd and the pole's acceleration a."""
    typed("W", W, Velocity)
    return Acceleration(W.w, vector("wd", wd), vector("a", a))


def acceleration_from_array(A: Array, W: Velocity) -> Acceleration:
    """H from its 4x4 array and the velocity of the body, whose sign the array does not tell."""
    typed("W", W, Velocity)
    rows = matrices.matrix("A", A)
    block, last = Matrix(tuple(row[:3] for row in rows.rows[:3])), Vector(rows.T.rows[3][:3])
    read = homogeneous.Block(block, last)
    H = Acceleration(W.w, homogeneous.angular(read), homogeneous.linear(read))
    form = "of type Acceleration: [wd~ + w~ w~, a; 0 0 0 0] with the w of W"
    matrices.has_form("A", rows, H.matrix(), form)
    return H


def joint_screw(kind: str, pitch: Number = 0.0) -> Screw:
    """L of a "revolute", "prismatic" or "helical" joint in its frame, z its axis (Eq II.1)."""
    p = number("pitch", pitch)
    pitches = {"revolute": 0.0, "prismatic": math.inf, "helical": p}
    if kind not in pitches:
        raise InputError("E-MATH-015", f"kind must be one of {', '.join(pitches)}, not {kind!r}")
    if kind != "helical" and (type(p) is Scalar or p != 0.0):
        raise InputError(
            "E-MATH-016",
            f"a {kind} joint has no pitch",
            "use kind='helical' for a joint with pitch",
        )
    return screw_from_axis((0.0, 0.0, 1.0), pitch=pitches[kind])


def joint_velocity(kind: str, qd: Number, *, pitch: Number = 0.0) -> Velocity:
    """W = L qd of a joint, in its own frame."""
    return joint_screw(kind, pitch).velocity(number("qd", qd))


def joint_acceleration(kind: str, qd: Number, qdd: Number, *, pitch: Number = 0.0) -> Acceleration:
    """H = L^2 qd^2 + L qdd of a joint, in its own frame."""
    return joint_screw(kind, pitch).acceleration(number("qd", qd), number("qdd", qdd))


def change_reference(X: AnyFramed, M: Array) -> AnyFramed:
    """A matrix that is written in the second frame of M, written in the first.

    M X M^-1 for Q, W, H and L (SPACELIB's trasf_mami), M X M' for J, Gamma and Phi (trasf_mamt).
    `M.to_second` is the way back.
    """
    return position("M", M).to_first(X)


def compose_velocities(*velocities: Velocity) -> Velocity:
    """W_ik = W_ij + W_jk + ...: relative velocities add, all in one frame (Eq I.10)."""
    return sum(velocities, start=Velocity.zero())


def compose_accelerations(
    H_ij: Acceleration, W_ij: Velocity, H_jk: Acceleration, W_jk: Velocity
) -> Acceleration:
    """Coriolis' theorem: H_ik = H_ij + H_jk + 2 W_ij W_jk, all in one frame (Eq I.11)."""
    for name, H, W in (("ij", H_ij, W_ij), ("jk", H_jk, W_jk)):
        typed(f"H_{name}", H, Acceleration)
        typed(f"W_{name}", W, Velocity)
    return H_ij.after(W_ij, H_jk, W_jk)
