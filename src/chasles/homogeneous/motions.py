"""Compute positions M, displacements Q, screws L, velocities W and accelerations H.

All functions are accurate for angles near 0 and pi.
"""

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
from chasles.names import one_of

_NONE = 1e-300
"""Squared length below which a vector is treated as zero."""

_Z = Vector.of(0.0, 0.0, 1.0)


# Positions ----------------------------------------------------------------------------------------


def position_from_dh(theta: Number, d: Number, a: Number, alpha: Number) -> Position:
    """Return M = Rz(theta) Tz(d) Tx(a) Rx(alpha) for standard Denavit-Hartenberg parameters.

    Parameters
    ----------
    theta, d, a, alpha : float
        Parameters in the distal convention (rad, m, m, rad).

    Returns
    -------
    M : Position
        Position of frame i in frame i-1.

    Raises
    ------
    ArgumentError
        If a parameter is not a number.
    InputError
        If a parameter is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import homogeneous as hm
    >>> np.asarray(hm.position_from_dh(0.0, 0.4, 0.3, np.pi / 2)).round(3)
    array([[ 1. ,  0. ,  0. ,  0.3],
           [ 0. ,  0. , -1. ,  0. ],
           [ 0. ,  1. ,  0. ,  0.4],
           [ 0. ,  0. ,  0. ,  1. ]])
    """
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
    """Return the pose M for five extended Denavit-Hartenberg constants and a joint coordinate.

    The constants are defined in Legnani et al. 1996, part II, fig. 6. The rotation is R = Rz(theta)
    Rx(alpha), and the translation is (a cos theta - b sin theta, a sin theta + b cos theta, s).

    Parameters
    ----------
    theta, s, b, a, alpha : float
        Constants (rad, m).
    kind : str, optional
        "revolute" (0 in SPACELIB) adds q to theta. "prismatic" (1 in SPACELIB) adds q to s.
        "helical" adds q (rad) to theta, and pitch times q to s. "cylindrical" adds q[0] (rad) to
        theta, and q[1] (m) to s.
    q : float or array_like, shape (2,), optional
        Joint coordinate, or the two coordinates of a cylindrical joint. Default: zero.
    pitch : float, optional
        Pitch of a helical joint (m/rad).

    Returns
    -------
    M : Position
        Position of frame i in frame i-1.

    Raises
    ------
    InputError
        If `kind` is unknown, if a parameter or `q` is not finite, or if `q` does not have shape
        (2,) for a cylindrical joint.
    ArgumentError
        If a parameter or `q` is not a number.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import homogeneous as hm
    >>> np.asarray(hm.position_from_extended_dh(0, 0.4, 0, 0.3, 0, kind="prismatic", q=0.1))[:3, 3]
    array([0.3, 0. , 0.5])
    """
    given = {"theta": theta, "s": s, "b": b, "a": a, "alpha": alpha}
    checked = {name: number(name, x) for name, x in given.items()}
    turn, slide = _along_axis(kind, q, number("pitch", pitch))
    checked["theta"] += turn
    checked["s"] += slide
    return homogeneous.position_from_extended_dh(**checked)


def _along_axis(kind: str, q: Number | Array, pitch: Number) -> tuple[Number, Number]:
    """Return a joint's rotation about its axis and its translation along the axis."""
    if kind == "cylindrical":
        both = (0.0, 0.0) if isinstance(q, int | float) and q == 0 else q
        turn, slide = vector("q", both, 2)
        return turn, slide
    one = number("q", q)
    moves = {"revolute": (one, 0.0), "prismatic": (0.0, one), "helical": (one, pitch * one)}
    if kind not in moves:
        remedy = one_of(kind, (*moves, "cylindrical"))
        raise InputError("E-MATH-017", f"unknown joint kind {kind!r}", remedy)
    return moves[kind]


def position_from_axis_angle(axis: Array, angle: Number, origin: Array = ORIGIN) -> Position:
    """Return the pose M of a frame that is rotated by an angle about an axis.

    Parameters
    ----------
    axis : array_like, shape (3,)
        Direction of the axis, of any nonzero length.
    angle : float
        Angle (rad).
    origin : array_like, shape (3,), optional
        Origin of the frame (m). Default: zero.

    Returns
    -------
    M : Position
        Position matrix.

    Raises
    ------
    ArgumentError
        If `angle` or an entry of an array is not a number.
    InputError
        If an array does not have shape (3,), if `axis` is zero, or if a number is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import homogeneous as hm
    >>> np.asarray(hm.position_from_axis_angle([0, 0, 2], np.pi / 2, origin=[1, 0, 0])).round(3)
    array([[ 0., -1.,  0.,  1.],
           [ 1.,  0.,  0.,  0.],
           [ 0.,  0.,  1.,  0.],
           [ 0.,  0.,  0.,  1.]])
    """
    R = rotations.matrix_from_axis_angle(matrices.direction("axis", axis), number("angle", angle))
    return Position(Rotation.of(R), vector("origin", origin))


def axis_angle_from_position(M: Array) -> tuple[np.ndarray, Number]:
    """Return the axis and the angle of the rotation in M.

    Parameters
    ----------
    M : Position or array_like, shape (4, 4)
        Position matrix.

    Returns
    -------
    axis : ndarray, shape (3,)
        Unit vector along the axis, or z if the angle is zero.
    angle : float
        Angle (rad) in [0, pi].

    Raises
    ------
    ArgumentError
        If M is a typed matrix other than Position, or if its entries are not numbers.
    InputError
        If M does not have shape (4, 4), or is not a pose matrix.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> axis, angle = hm.axis_angle_from_position(hm.position_from_axis_angle([0, 1, 0], 0.5))
    >>> axis.round(9), round(float(angle), 9)
    (array([0., 1., 0.]), 0.5)
    """
    q = rotations.quaternion_from_matrix(position("M", M).R.matrix())
    axis, angle = rotations.axis_angle_from_quaternion(q)
    return array(axis), angle


def position_from_angles(
    sequence: str, angles: Array, origin: Array = ORIGIN, *, axes: About = "moving"
) -> Position:
    """Return the pose M of a frame that is rotated by three Cardan or Euler angles.

    Parameters
    ----------
    sequence : str
        Three axes, such as "xyz": one of the 12 Cardan and Euler sequences.
    angles : array_like, shape (3,)
        Angles (rad), in the order of the axes.
    origin : array_like, shape (3,), optional
        Origin of the frame (m). Default: zero.
    axes : {"moving", "fixed"}, optional
        Rotate about the axes of the moving frame (intrinsic, the default) or of the fixed frame
        (extrinsic).

    Returns
    -------
    M : Position
        Position matrix.

    Raises
    ------
    InputError
        If `sequence` or `axes` is unknown, or if an array does not have shape (3,) or is not
        finite.
    ArgumentError
        If an entry of an array is not a number.

    Notes
    -----
    URDF's roll, pitch and yaw correspond to "xyz" with fixed axes.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import homogeneous as hm
    >>> np.asarray(hm.position_from_angles("xyz", [0.0, 0.0, np.pi / 2], axes="fixed")).round(3)
    array([[ 0., -1.,  0.,  0.],
           [ 1.,  0.,  0.,  0.],
           [ 0.,  0.,  1.,  0.],
           [ 0.,  0.,  0.,  1.]])
    """
    _sequence(sequence, axes)
    R = rotation_from_angles(sequence, list(vector("angles", angles)), axes)
    return Position(R, vector("origin", origin))


def angles_from_position(
    M: Array, sequence: str, *, axes: About = "moving"
) -> tuple[np.ndarray, np.ndarray]:
    """Return the two sets of Cardan or Euler angles for the rotation in M.

    Parameters
    ----------
    M : Position or array_like, shape (4, 4)
        Position matrix.
    sequence : str
        Three axes, such as "xyz": one of the 12 Cardan and Euler sequences.
    axes : {"moving", "fixed"}, optional
        Axes of the rotations; see `position_from_angles`.

    Returns
    -------
    first, second : ndarray, shape (3,)
        Angles (rad) in (-pi, pi]. The middle angle of the first solution is in [-pi/2, pi/2]
        (Cardan) or [0, pi] (Euler).

    Raises
    ------
    InputError
        If `sequence` or `axes` is unknown, if M does not have shape (4, 4), or if M is not a pose
        matrix.
    ArgumentError
        If M is a typed matrix other than Position, or if its entries are not numbers.

    Notes
    -----
    If the first and third axes are parallel (middle angle +-pi/2 for Cardan angles, 0 or pi for
    Euler angles), only the sum or difference of the first and third angles is determined. The angle
    about the first moving axis (or the third fixed axis) is then zero in the first solution.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> M = hm.position_from_angles("zyx", [0.3, 0.2, 0.1])
    >>> hm.angles_from_position(M, "zyx")[0].round(9)
    array([0.3, 0.2, 0.1])
    """
    _sequence(sequence, axes)
    first, second = angles_from_matrix(position("M", M).R.matrix(), sequence, axes)
    return array(first), array(second)


def _sequence(sequence: str, axes: str) -> None:
    if sequence not in SEQUENCES:
        problem = f"unknown sequence {sequence!r}"
        raise InputError("E-MATH-018", problem, one_of(sequence, SEQUENCES))
    if axes not in ("moving", "fixed"):
        raise InputError("E-MATH-019", f"`axes` must be 'moving' or 'fixed', not {axes!r}")


def position_from_axes(x: Array, y: Array, z: Array, origin: Array = ORIGIN) -> Position:
    """Return the pose M of a frame from its unit axes and origin.

    Mitra (section 2) names this matrix AO_H.

    Parameters
    ----------
    x, y, z : array_like, shape (3,)
        Orthonormal axes of the frame, right-handed.
    origin : array_like, shape (3,), optional
        Origin of the frame (m). Default: zero.

    Returns
    -------
    M : Position
        Position matrix.

    Raises
    ------
    InputError
        If the axes are not orthonormal and right-handed, or if an array does not have shape (3,) or
        is not finite.
    ArgumentError
        If an entry of an array is not a number.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import homogeneous as hm
    >>> np.asarray(hm.position_from_axes([0, 1, 0], [-1, 0, 0], [0, 0, 1]))
    array([[ 0., -1.,  0.,  0.],
           [ 1.,  0.,  0.,  0.],
           [ 0.,  0.,  1.,  0.],
           [ 0.,  0.,  0.,  1.]])
    """
    axes = Matrix((vector("x", x).entries, vector("y", y).entries, vector("z", z).entries))
    matrices.rotation("the axes", axes)
    return Position(Rotation.of(axes.T), vector("origin", origin))


def rototranslation(M01: Array, M02: Array) -> Rototranslation:
    """Return the displacement Q = M02 M01^-1 from frame 1 to frame 2, expressed in frame 0.

    See Legnani et al. 1996, Eq I.4.

    Parameters
    ----------
    M01 : Position or array_like, shape (4, 4)
        First position.
    M02 : Position or array_like, shape (4, 4)
        Second position.

    Returns
    -------
    Q : Rototranslation
        Displacement, expressed in frame 0.

    Raises
    ------
    ArgumentError
        If a pose is a typed matrix other than Position, or if its entries are not numbers.
    InputError
        If an array does not have shape (4, 4), or is not a pose matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import homogeneous as hm
    >>> Q = hm.rototranslation(hm.Position.identity(), hm.position_from_dh(0.0, 0.4, 0.3, 0.0))
    >>> np.asarray(Q)[:3, 3]
    array([0.3, 0. , 0.4])
    """
    return Rototranslation.between(position("M01", M01), position("M02", M02))


def _chosen(condition: Number, a: Vector, b: Vector) -> Vector:
    return Vector(tuple(select(condition, x, y) for x, y in zip(a, b, strict=True)))


def _unit(v: Vector, fallback: Vector) -> tuple[Vector, Number]:
    """Return the direction and length of v. The direction of a zero vector is `fallback`."""
    t = v.dot(v)
    none = less(t, _NONE)
    length = sqrt(select(none, 1.0, t))
    return _chosen(none, fallback, v * (1.0 / length)), select(none, 0.0, length)


# Exponential and logarithm ------------------------------------------------------------------------


def exponential(X: Screw | Velocity, amount: Number = 1.0) -> Rototranslation:
    """Return the displacement Q = exp(L phi) or exp(W t) (Legnani et al. 1996, part I, section 5).

    Parameters
    ----------
    X : Screw or Velocity
        Screw axis, or a constant velocity.
    amount : float, optional
        Angle phi (rad) for a screw, length (m) for a translation, or time t (s) for a velocity.
        Default: 1.

    Returns
    -------
    Q : Rototranslation
        Displacement, expressed in the frame of X.

    Raises
    ------
    ArgumentError
        If X is not a screw or a velocity, or if `amount` is not a number.
    InputError
        If `amount` is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import homogeneous as hm
    >>> np.asarray(hm.exponential(hm.joint_screw("helical", pitch=0.1), np.pi / 2)).round(3)
    array([[ 0.   , -1.   ,  0.   ,  0.   ],
           [ 1.   ,  0.   ,  0.   ,  0.   ],
           [ 0.   ,  0.   ,  1.   ,  0.157],
           [ 0.   ,  0.   ,  0.   ,  1.   ]])
    """
    typed("X", X, Screw, Velocity)
    k = number("amount", amount)
    w, v = X.w * k, X.v * k
    R = General(rotations.matrix_from_vector(w))  # do not round small entries to zero
    return Rototranslation(Rotation((R,)), rotations.translation_of_screw(w, v))


def logarithm(Q: Rototranslation) -> Velocity:
    """Return the constant velocity that produces a displacement in unit time.

    Parameters
    ----------
    Q : Rototranslation
        Displacement.

    Returns
    -------
    W : Velocity
        Velocity (rad/s, m/s). The rotation angle is at most pi.

    Raises
    ------
    ArgumentError
        If Q is not a Rototranslation.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> W = hm.velocity([0.0, 0.0, 0.5], [0.1, 0.0, 0.0])
    >>> hm.six_numbers(hm.logarithm(hm.exponential(W))).round(9) + 0.0
    array([0. , 0. , 0.5, 0.1, 0. , 0. ])
    """
    typed("Q", Q, Rototranslation)
    w = rotations.vector_from_matrix(Q.R.matrix())
    return Velocity(w, rotations.screw_of_translation(w, Q.t))


# Screw axes ---------------------------------------------------------------------------------------


class ScrewAxis(NamedTuple):
    """Axis of a screw: unit direction, point nearest to the origin (m), and pitch (m/rad).

    The pitch is infinite for a translation.
    """

    direction: np.ndarray
    point: np.ndarray
    pitch: Number


class Displacement(NamedTuple):
    """Screw motion: rotation by an angle in [0, pi] about an axis, and travel (m) along the axis.

    `axis` is a unit vector, and `point` (m) is the point on the axis nearest to the origin. For a
    pure translation, the angle and the point are zero. For a zero displacement, the axis is z.
    """

    axis: np.ndarray
    point: np.ndarray
    angle: Number
    travel: Number
    pitch: Number


def screw_from_axis(axis: Array, point: Array = ORIGIN, pitch: Number = 0.0) -> Screw:
    """Return the screw axis L = [u~ b; 0 0] with b = p x u + pitch u.

    Parameters
    ----------
    axis : array_like, shape (3,)
        Direction of the axis, which is normalized to the unit vector u.
    point : array_like, shape (3,), optional
        Point p on the axis (m). Default: the origin.
    pitch : float, optional
        Pitch (m/rad). Use math.inf for a translation. Default: 0.

    Returns
    -------
    L : Screw
        Screw axis.

    Raises
    ------
    ArgumentError
        If `pitch` or an entry of an array is not a number.
    InputError
        If an array does not have shape (3,) or is not finite, if `axis` is zero, or if `pitch` is
        NaN.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> hm.six_numbers(hm.screw_from_axis([0, 0, 1], point=[1, 0, 0], pitch=0.1))
    array([ 0. ,  0. ,  1. ,  0. , -1. ,  0.1])
    """
    u, _ = _unit(matrices.direction("axis", axis), Vector.zero())
    p = vector("point", point)
    if type(pitch) is not Scalar and pitch in (math.inf, -math.inf):
        return Screw(Vector.zero(), u * math.copysign(1.0, pitch))
    return Screw(u, p.cross(u) + u * number("pitch", pitch))


def axis_of_screw(L: Screw) -> ScrewAxis:
    """Return the direction, point and pitch of a screw (inverse of `screw_from_axis`).

    Parameters
    ----------
    L : Screw
        Screw axis.

    Returns
    -------
    axis : ScrewAxis
        Unit direction, point nearest to the origin (m), and pitch (m/rad), which is infinite for a
        translation.

    Raises
    ------
    ArgumentError
        If L is not a screw.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> hm.axis_of_screw(hm.screw_from_axis([0, 0, 1], point=[1, 0, 0], pitch=0.1)).point
    array([1., 0., 0.])
    """
    typed("L", L, Screw)
    translates = less(L.w.dot(L.w), _NONE)
    u, _ = _unit(L.w, _unit(L.v, _Z)[0])
    point = _chosen(translates, Vector.zero(), u.cross(L.v))
    return ScrewAxis(array(u), array(point), select(translates, math.inf, u.dot(L.v)))


def screw_of_velocity(W: Velocity) -> tuple[Screw, Number]:
    """Return the instantaneous screw axis L and the rate of a body with velocity W = L rate.

    See Legnani et al. 1996, part I, section 5.

    Parameters
    ----------
    W : Velocity
        Velocity of a body.

    Returns
    -------
    L : Screw
        Screw axis.
    rate : float
        Norm of w (rad/s), or norm of v (m/s) if w is zero.

    Raises
    ------
    InputError
        If W is zero, because a body at rest has no screw axis.
    ArgumentError
        If W is not a velocity.

    Notes
    -----
    In a compiled program, both results are zero for a body at rest.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> L, rate = hm.screw_of_velocity(hm.velocity([0.0, 0.0, 2.0], [1.0, 0.0, 0.0]))
    >>> hm.axis_of_screw(L).point, float(rate)
    (array([0. , 0.5, 0. ]), 2.0)
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
    """Return the screw motion of a displacement (Chasles' theorem).

    Parameters
    ----------
    Q : Rototranslation
        Displacement.
    tolerance : float, optional
        Angle (rad) below which Q is treated as a pure translation.

    Returns
    -------
    motion : Displacement
        Axis, point (m), angle in [0, pi] (rad), travel (m) and pitch (m/rad).

    Raises
    ------
    ArgumentError
        If Q is not a Rototranslation.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> Q = hm.rototranslation_from_axis([0, 0, 1], 0.5, point=[1, 0, 0], travel=0.2)
    >>> motion = hm.screw_motion(Q)
    >>> motion.point.round(9) + 0.0, round(float(motion.travel), 9)
    (array([1., 0., 0.]), 0.2)
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
    """Return the displacement Q for a rotation about an axis and a translation along it.

    Parameters
    ----------
    axis : array_like, shape (3,)
        Direction of the axis, of any nonzero length.
    angle : float
        Angle (rad).
    point : array_like, shape (3,), optional
        Point on the axis (m). Default: the origin.
    travel : float, optional
        Translation along the axis (m). Default: 0.

    Returns
    -------
    Q : Rototranslation
        Displacement.

    Raises
    ------
    ArgumentError
        If `angle`, `travel` or an entry of an array is not a number.
    InputError
        If an array does not have shape (3,), if `axis` is zero, or if a number is not finite.

    Notes
    -----
    The translation t = (1 - R) p + travel u (Legnani et al. 1996, part I, section 2.3) is computed
    as an exponential, because (1 - R) p loses digits if the axis is distant and the angle is small.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import homogeneous as hm
    >>> np.asarray(hm.rototranslation_from_axis([0, 0, 1], np.pi, point=[1, 0, 0]))[:3, 3].round(9)
    array([2., 0., 0.])
    """
    u, _ = _unit(matrices.direction("axis", axis), Vector.zero())
    p, phi, d = vector("point", point), number("angle", angle), number("travel", travel)
    return exponential(Velocity(u * phi, p.cross(u) * phi + u * d))


# Lines --------------------------------------------------------------------------------------------


def plucker_from_line(point: Array, axis: Array) -> np.ndarray:
    """Return the Plucker coordinates (u, p x u) of a line.

    Parameters
    ----------
    point : array_like, shape (3,)
        Point on the line (m).
    axis : array_like, shape (3,)
        Direction of the line, of any nonzero length.

    Returns
    -------
    coordinates : ndarray, shape (6,)
        Unit direction u, followed by p x u (m).

    Raises
    ------
    ArgumentError
        If an entry of an array is not a number.
    InputError
        If an array does not have shape (3,) or is not finite, or if `axis` is zero.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> hm.plucker_from_line([1, 0, 0], [0, 0, 2])
    array([ 0.,  0.,  1.,  0., -1.,  0.])
    """
    return array(list(screw_from_axis(axis, point)))


def line_from_plucker(coordinates: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return a point on a line, and its direction, from the Plucker coordinates.

    Parameters
    ----------
    coordinates : array_like, shape (6,)
        Plucker coordinates (u, p x u). The length of u is arbitrary.

    Returns
    -------
    point : ndarray, shape (3,)
        Point on the line nearest to the origin (m).
    axis : ndarray, shape (3,)
        Unit direction.

    Raises
    ------
    InputError
        If `coordinates` does not have shape (6,) or is not finite, if u is zero, or if u and p x u
        are not perpendicular.
    ArgumentError
        If a coordinate is not a number.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> hm.line_from_plucker([0, 0, 2, 0, -2, 0])
    (array([1., 0., 0.]), array([0., 0., 1.]))
    """
    six = vector("coordinates", coordinates, 6).entries
    u, m = Vector(six[:3]), Vector(six[3:])
    scaled = matrices.direction("coordinates", u)
    sizes = scaled.dot(scaled), m.dot(m), scaled.dot(m)
    if not any(type(x) is Scalar for x in sizes):
        uu, mm, um = sizes
        if um * um > 1e-18 * uu * mm:
            problem = "in Plucker coordinates (u, m), u and m must be perpendicular"
            raise InputError("E-MATH-021", problem)
    return array(u.cross(m) * (1.0 / u.dot(u))), array(_unit(u, _Z)[0])


# Velocities and accelerations ---------------------------------------------------------------------


def velocity(w: Array, v: Array) -> Velocity:
    """Return the velocity matrix W from the angular velocity and the velocity of the pole.

    Parameters
    ----------
    w : array_like, shape (3,)
        Angular velocity (rad/s).
    v : array_like, shape (3,)
        Velocity (m/s) of the pole, which is the point of the body at the origin.

    Returns
    -------
    W : Velocity
        Velocity matrix.

    Raises
    ------
    ArgumentError
        If an entry of an array is not a number.
    InputError
        If an array does not have shape (3,), or is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import homogeneous as hm
    >>> np.asarray(hm.velocity([0.0, 0.0, 2.0], [1.0, 0.0, 0.0]))
    array([[ 0., -2.,  0.,  1.],
           [ 2.,  0.,  0.,  0.],
           [ 0.,  0.,  0.,  0.],
           [ 0.,  0.,  0.,  0.]])
    """
    return Velocity(vector("w", w), vector("v", v))


def acceleration(W: Velocity, wd: Array, a: Array) -> Acceleration:
    """Return the acceleration matrix H from the velocity and the accelerations of a body.

    Parameters
    ----------
    W : Velocity
        Velocity of the body.
    wd : array_like, shape (3,)
        Angular acceleration (rad/s2).
    a : array_like, shape (3,)
        Acceleration (m/s2) of the pole, which is the point of the body at the origin.

    Returns
    -------
    H : Acceleration
        Acceleration matrix, [wd~ + w~ w~, a; 0 0].

    Raises
    ------
    ArgumentError
        If W is not a velocity, or if an entry of an array is not a number.
    InputError
        If an array does not have shape (3,), or is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import homogeneous as hm
    >>> H = hm.acceleration(hm.joint_velocity("revolute", 2.0), [0.0, 0.0, 1.0], [0.0, 0.0, 0.0])
    >>> np.asarray(H)
    array([[-4., -1.,  0.,  0.],
           [ 1., -4.,  0.,  0.],
           [ 0.,  0.,  0.,  0.],
           [ 0.,  0.,  0.,  0.]])
    """
    typed("W", W, Velocity)
    return Acceleration(W.w, vector("wd", wd), vector("a", a))


def acceleration_from_array(A: Array, W: Velocity) -> Acceleration:
    """Return the acceleration matrix H from its 4x4 array and the velocity of the body.

    Parameters
    ----------
    A : array_like, shape (4, 4)
        Entries of H, which do not determine the sign of the angular velocity.
    W : Velocity
        Velocity of the body, in the same frame.

    Returns
    -------
    H : Acceleration
        Acceleration matrix.

    Raises
    ------
    InputError
        If A does not have shape (4, 4), or is not an acceleration matrix of a body with velocity W.
    ArgumentError
        If W is not a velocity, or if an entry of A is not a number.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import homogeneous as hm
    >>> W = hm.joint_velocity("revolute", 2.0)
    >>> H = hm.joint_acceleration("revolute", 2.0, 1.0)
    >>> hm.angular_part(hm.acceleration_from_array(np.asarray(H), W))
    array([0., 0., 1.])
    """
    typed("W", W, Velocity)
    rows = matrices.matrix("A", A)
    block, last = Matrix(tuple(row[:3] for row in rows.rows[:3])), Vector(rows.T.rows[3][:3])
    read = homogeneous.Block(block, last)
    H = Acceleration(W.w, homogeneous.angular(read), homogeneous.linear(read))
    form = "of type Acceleration ([wd~ + w~ w~, a; 0 0 0 0], where w is the angular part of W)"
    matrices.has_form("A", rows, H.matrix(), form)
    return H


def joint_screw(kind: str, pitch: Number = 0.0) -> Screw:
    """Return the screw axis L of a joint in its frame, with z along the joint axis.

    See Legnani et al. 1996, Eq II.1.

    Parameters
    ----------
    kind : {"revolute", "prismatic", "helical"}
        Joint type.
    pitch : float, optional
        Pitch of a helical joint (m/rad).

    Returns
    -------
    L : Screw
        Screw axis.

    Raises
    ------
    InputError
        If `kind` is unknown, if `pitch` is not finite, or if a pitch is passed for a joint that is
        not helical.
    ArgumentError
        If `pitch` is not a number.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> hm.six_numbers(hm.joint_screw("prismatic"))
    array([0., 0., 0., 0., 0., 1.])
    """
    p = number("pitch", pitch)
    pitches = {"revolute": 0.0, "prismatic": math.inf, "helical": p}
    if kind not in pitches:
        raise InputError("E-MATH-015", f"unknown joint kind {kind!r}", one_of(kind, pitches))
    if kind != "helical" and (type(p) is Scalar or p != 0.0):
        raise InputError(
            "E-MATH-016",
            f"a {kind} joint has no pitch",
            "use kind='helical', or omit the pitch",
        )
    return screw_from_axis((0.0, 0.0, 1.0), pitch=pitches[kind])


def joint_velocity(kind: str, qd: Number, *, pitch: Number = 0.0) -> Velocity:
    """Return the velocity W = L qd of a joint, expressed in the joint frame.

    Parameters
    ----------
    kind : {"revolute", "prismatic", "helical"}
        Joint type.
    qd : float
        Joint velocity (rad/s or m/s).
    pitch : float, optional
        Pitch of a helical joint (m/rad).

    Returns
    -------
    W : Velocity
        Velocity matrix.

    Raises
    ------
    ArgumentError
        If `qd` or `pitch` is not a number.
    InputError
        If `kind` is unknown, if a number is not finite, or if a pitch is passed for a joint that is
        not helical.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> hm.six_numbers(hm.joint_velocity("revolute", 2.0))
    array([0., 0., 2., 0., 0., 0.])
    """
    return joint_screw(kind, pitch).velocity(number("qd", qd))


def joint_acceleration(kind: str, qd: Number, qdd: Number, *, pitch: Number = 0.0) -> Acceleration:
    """Return the acceleration H = L^2 qd^2 + L qdd of a joint, expressed in the joint frame.

    Parameters
    ----------
    kind : {"revolute", "prismatic", "helical"}
        Joint type.
    qd : float
        Joint velocity (rad/s or m/s).
    qdd : float
        Joint acceleration (rad/s2 or m/s2).
    pitch : float, optional
        Pitch of a helical joint (m/rad).

    Returns
    -------
    H : Acceleration
        Acceleration matrix.

    Raises
    ------
    ArgumentError
        If `qd`, `qdd` or `pitch` is not a number.
    InputError
        If `kind` is unknown, if a number is not finite, or if a pitch is passed for a joint that is
        not helical.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import homogeneous as hm
    >>> np.asarray(hm.joint_acceleration("revolute", 2.0, 0.5))
    array([[-4. , -0.5,  0. ,  0. ],
           [ 0.5, -4. ,  0. ,  0. ],
           [ 0. ,  0. ,  0. ,  0. ],
           [ 0. ,  0. ,  0. ,  0. ]])
    """
    return joint_screw(kind, pitch).acceleration(number("qd", qd), number("qdd", qdd))


def change_reference(X: AnyFramed, M: Array) -> AnyFramed:
    """Transform a matrix from the second frame of M to the first frame.

    Parameters
    ----------
    X : typed matrix
        Rototranslation, velocity, acceleration, screw, inertia, momentum or action in the second
        frame.
    M : Position or array_like, shape (4, 4)
        Position of the second frame in the first.

    Returns
    -------
    X : typed matrix
        The same quantity in the first frame.

    Raises
    ------
    ArgumentError
        If M is a typed matrix other than Position, or if X is not a typed matrix.
    InputError
        If M does not have shape (4, 4), or is not a pose matrix.

    Notes
    -----
    The result is M X M^-1 for Q, W, H and L (SPACELIB's trasf_mami), and M X M' for J, Gamma and
    Phi (trasf_mamt). `M.to_second` is the inverse transformation.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> M = hm.position_from_axis_angle([0, 0, 1], 0.0, origin=[1, 0, 0])
    >>> hm.six_numbers(hm.change_reference(hm.joint_velocity("revolute", 2.0), M))
    array([ 0.,  0.,  2.,  0., -2.,  0.])
    """
    return position("M", M).to_first(X)


def compose_velocities(*velocities: Velocity) -> Velocity:
    """Return the sum of velocities in the same frame: W_ik = W_ij + W_jk + ...

    See Legnani et al. 1996, Eq I.10.

    Parameters
    ----------
    *velocities : Velocity
        Relative velocities of consecutive bodies.

    Returns
    -------
    W : Velocity
        Sum of the velocities.

    Raises
    ------
    ArgumentError
        If an argument is not a velocity.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> W = hm.joint_velocity("revolute", 2.0)
    >>> hm.six_numbers(hm.compose_velocities(W, W))
    array([0., 0., 4., 0., 0., 0.])
    """
    return sum(velocities, start=Velocity.zero())


def compose_accelerations(
    H_ij: Acceleration, W_ij: Velocity, H_jk: Acceleration, W_jk: Velocity
) -> Acceleration:
    """Return H_ik = H_ij + H_jk + 2 W_ij W_jk (Coriolis theorem).

    See Legnani et al. 1996, Eq I.11. All matrices are expressed in the same frame.

    Parameters
    ----------
    H_ij, W_ij : Acceleration, Velocity
        Motion of body j relative to body i.
    H_jk, W_jk : Acceleration, Velocity
        Motion of body k relative to body j.

    Returns
    -------
    H : Acceleration
        Acceleration of body k relative to body i.

    Raises
    ------
    ArgumentError
        If an argument does not have the documented type.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> W, H = hm.joint_velocity("revolute", 2.0), hm.joint_acceleration("revolute", 2.0, 0.0)
    >>> slide = hm.velocity([0.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    >>> hm.linear_part(hm.compose_accelerations(H, W, hm.Acceleration.zero(), slide))
    array([0., 4., 0.])
    """
    for name, H, W in (("ij", H_ij, W_ij), ("jk", H_jk, W_jk)):
        typed(f"H_{name}", H, Acceleration)
        typed(f"W_{name}", W, Velocity)
    return H_ij.after(W_ij, H_jk, W_jk)
