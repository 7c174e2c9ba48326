"""Where bodies are: positions M from joint constants, axes and angles, and displacements Q."""

import numpy as np

from chasles.errors import InputError
from chasles.expr import Number
from chasles.homogeneous.door import (
    ORIGIN,
    Array,
    array,
    direction,
    number,
    position,
    rotation,
    vector,
)
from chasles.mathematics import homogeneous
from chasles.mathematics.angles import (
    SEQUENCES,
    About,
    angles_from_matrix,
    rotation_from_angles,
)
from chasles.mathematics.homogeneous import Position, Rototranslation
from chasles.mathematics.linear import Matrix
from chasles.mathematics.rotations import (
    Rotation,
    axis_angle_from_quaternion,
    matrix_from_axis_angle,
    quaternion_from_matrix,
)


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
    q: Number = 0.0,
) -> Position:
    """M(i-1, i) of a joint by five constants (Legnani II, fig. 6), its coordinate added.

    R = Rz(theta) Rx(alpha), translation (a cos - b sin, a sin + b cos, s). q is added to theta
    (kind "revolute", SPACELIB's 0) or to s ("prismatic", SPACELIB's 1).
    """
    given = {"theta": theta, "s": s, "b": b, "a": a, "alpha": alpha, "q": q}
    checked = {name: number(name, x) for name, x in given.items()}
    coordinate = checked.pop("q")
    moved = {"revolute": "theta", "prismatic": "s"}
    if kind not in moved:
        raise InputError("E-MATH-017", f"kind must be 'revolute' or 'prismatic', not {kind!r}")
    checked[moved[kind]] += coordinate
    return homogeneous.position_from_extended_dh(**checked)


def position_from_axis_angle(axis: Array, angle: Number, origin: Array = ORIGIN) -> Position:
    """M of a frame that is turned by an angle about a direction, with its origin at a point."""
    R = matrix_from_axis_angle(direction("axis", axis), number("angle", angle))
    return Position(Rotation.of(R), vector("origin", origin))


def axis_angle_from_position(M: Array) -> tuple[np.ndarray, Number]:
    """The unit axis and the angle in [0, pi] of the rotation of M; z where the angle is zero."""
    q = quaternion_from_matrix(position("M", M).R.matrix())
    axis, angle = axis_angle_from_quaternion(q)
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
    """M of the frame with these unit axes and this origin (Mitra's AO_H)."""
    axes = Matrix((vector("x", x).entries, vector("y", y).entries, vector("z", z).entries))
    rotation("the axes", axes)
    return Position(Rotation.of(axes.T), vector("origin", origin))


def rototranslation(M01: Array, M02: Array) -> Rototranslation:
    """Q = M02 M01^-1, in frame 0: the displacement that takes frame 1 to frame 2 (Eq I.4)."""
    return Rototranslation.between(position("M01", M01), position("M02", M02))
