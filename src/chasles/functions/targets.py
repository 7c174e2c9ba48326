"""Inverse-kinematics targets for a frame or the center of mass.

Each kind of target returns errors (angles in rad and lengths in m, in world axes) and the matrix
that maps joint velocities to the rates at which the errors decrease. The parameters of a target are
inputs of the compiled program, which therefore does not depend on their values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from chasles.errors import InputError
from chasles.expr import Arena, Number, Program, less, select, sqrt
from chasles.functions.programs import Derivative, program
from chasles.functions.target_numbers import FARTHEST, PART, joined, pose, rotation, sized, unit
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import (
    vector_from_matrix,
    vector_from_quaternion,
)
from chasles.model import Model
from chasles.model.given import a_name, some_numbers

Rows = list[list[Number]]
"""A matrix of expressions, as a list of rows."""

Each = float | Sequence[float] | np.ndarray
"""Weight or tolerance: one value for all errors of a target, or an array (see `Target`)."""

CENTER = "center of mass"
"""Key for a `CenterOfMass` target, in place of a frame name."""


class Posture:
    """Frame poses and Jacobians, in world axes, of a robot in a symbolic configuration q.

    `programs` is a cache of traced programs, which several `Posture` objects can share.
    """

    def __init__(
        self,
        model: Model,
        q: Sequence[Number],
        arena: Arena,
        programs: dict[tuple[str, str], Program] | None = None,
    ) -> None:
        self.model, self._q, self._arena = model, q, arena
        self._programs = {} if programs is None else programs
        self._known: dict[tuple[str, str], list[Number]] = {}

    def _found(self, function: str, **options: Any) -> list[Number]:
        key = (function, str(options))
        if key not in self._known:
            if key not in self._programs:
                self._programs[key] = program(self.model, function, **options)
            self._known[key] = self._programs[key].applied({"q": self._q}, self._arena)[0]
        return self._known[key]

    def pose(self, frame: str) -> tuple[Matrix, Vector]:
        """Return the rotation R and the position p of a frame."""
        T = self._found("forward_kinematics", frame=frame)
        R = Matrix(tuple(tuple(T[4 * r : 4 * r + 3]) for r in range(3)))
        return R, Vector(tuple(T[4 * r + 3] for r in range(3)))

    def jacobian(self, frame: str) -> tuple[Rows, Rows]:
        """Return the angular Jacobian of a frame and the linear Jacobian of its origin."""
        J = self._rows(self._found("jacobian", frame=frame), 6)
        return J[:3], J[3:]

    def center(self) -> Vector:
        """Return the position of the center of mass."""
        return Vector(tuple(self._found("center_of_mass")))

    def center_jacobian(self) -> Rows:
        """Return the Jacobian of the center of mass."""
        by_q = Derivative("jacobian", ("q",))
        return self._rows(self._found("center_of_mass", derivative=by_q), 3)

    def closure(self) -> tuple[list[Number], Rows]:
        """Return the loop residual and its Jacobian."""
        residual = self._found("loop_residual")
        return residual, self._rows(self._found("loop_matrix"), len(residual))

    def _rows(self, entries: Sequence[Number], count: int) -> Rows:
        n = self.model.nv
        return [list(entries[n * r : n * (r + 1)]) for r in range(count)]


# Kinds of targets -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Target:
    """Common fields of all targets.

    `weight` sets the relative weight of errors if not all targets can be met, with angles in rad
    and lengths relative to the size of the robot. Errors with weight 0 are ignored; at least one
    weight must be positive. `tolerance` is the maximum error of a solution in rad and m (default:
    1e-6 for both). Each of these fields is one value for all errors, two values for angles and
    lengths, or one value for each error. The angular errors about the world axes precede the
    position errors along the world axes. To pass different values for each problem of a batch, use
    a NumPy array (..., n) with at least two axes, where n is 1, 2 or the number of errors.
    """

    weight: Each = field(default=1.0, kw_only=True)
    tolerance: Each = field(default=1e-6, kw_only=True)

    angles: ClassVar[int] = 0
    """Number of angular components of the target's error, which precede its position components."""
    lengths: ClassVar[int] = 0
    """Number of position components of the target's error."""
    size: ClassVar[int] = 0
    """Number of parameters (scalars) that define the target."""

    @property
    def key(self) -> tuple[Any, ...]:
        """Values that determine the program, for use as a cache key."""
        return (type(self).__name__,)

    def numbers(self) -> np.ndarray:
        """Return the parameters (..., size) that define the target, after checking them.

        Returns
        -------
        ndarray, shape (..., size)
            Parameters that define the target.

        Raises
        ------
        InputError
            If an array has the wrong shape or is not finite, if a direction or a quaternion is
            zero, or if a matrix is not a rotation matrix or a pose matrix.
        ArgumentError
            If an array does not contain real numbers.

        Examples
        --------
        >>> from chasles.targets import Position
        >>> Position([0.1, 0.2, 0.3]).numbers()
        array([0.1, 0.2, 0.3])
        """
        raise NotImplementedError

    def each(self, name: str) -> np.ndarray:
        """Return the weight or tolerance of each error.

        The tolerance is infinite for errors with weight 0.

        Parameters
        ----------
        name : str
            "weight" or "tolerance".

        Returns
        -------
        ndarray, shape (..., errors)
            One value per error, angles first. Tolerances are in rad and m.

        Raises
        ------
        InputError
            If the weight or tolerance is not finite and non-negative, or if its number of values is
            not 1, 2 or the number of errors.
        ArgumentError
            If the weight or tolerance is not a real number or an array of real numbers.

        Examples
        --------
        >>> from chasles.targets import Position
        >>> Position([0.1, 0.2, 0.3], tolerance=1e-3).each('tolerance')
        array([0.001, 0.001, 0.001])
        """
        given, count = getattr(self, name), self.angles + self.lengths
        value = np.asarray(some_numbers(name, given, PART), float)
        fine = bool(((value >= 0.0) & (value < np.inf)).all())
        if not fine or value.shape not in ((), (1,), (2,), (count,)):
            problem = (
                f"{name} of a target must be 1, 2 or {count} finite non-negative values, "
                f"not {given}"
            )
            remedy = "pass one value, two values (angles, lengths), or one value per error"
            raise InputError("E-CALL-373", problem, remedy, part=PART)
        if value.shape != (count,):
            value = np.repeat(np.broadcast_to(value, 2), (self.angles, self.lengths))
        return np.where(self.each("weight") > 0.0, value, np.inf) if name == "tolerance" else value

    def movers(self, model: Model, frame: str) -> set[int]:
        """Return the bodies whose joints affect the errors.

        Parameters
        ----------
        model : Model
            Model of the robot.
        frame : str
            Name of the frame to which the target applies.

        Returns
        -------
        set of int
            Indices of bodies.

        Raises
        ------
        ModelError
            If there is no frame with this name.

        Examples
        --------
        >>> import chasles
        >>> model = chasles.robots.planar(3).model
        >>> chasles.targets.Position([1.0, 0.0, 0.0]).movers(model, "link2")
        {0, 1}
        """
        return set(model.support(model.frame(frame).body))

    def reached(self, at: Posture, frame: str) -> list[Number]:
        """Return the parameters for which a posture meets the target, or [] if they are not unique.

        Parameters
        ----------
        at : Posture
            Poses and Jacobians of the robot in a configuration.
        frame : str
            Name of the frame to which the target applies.

        Returns
        -------
        list of Number
            Parameters, as returned by `numbers`.

        Examples
        --------
        >>> from chasles.targets import Position, Target
        >>> Position.reached is not Target.reached
        True
        """
        raise NotImplementedError

    def errors(self, at: Posture, frame: str, goal: Sequence[Number]) -> tuple[list[Number], Rows]:
        """Return the errors, angles first, and the negative of their Jacobian.

        Parameters
        ----------
        at : Posture
            Poses and Jacobians of the robot in a configuration.
        frame : str
            Name of the frame to which the target applies.
        goal : sequence of Number
            Parameters that define the target, as returned by `numbers`.

        Returns
        -------
        errors : list of Number
            Errors (rad, m).
        rows : sequence
            One row of the negative Jacobian for each error.

        Examples
        --------
        >>> from chasles.targets import Position, Target
        >>> Position.errors is not Target.errors
        True
        """
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Position(Target):
    """Target that places the origin of a frame at a point (..., 3) in the world (m)."""

    point: Any

    lengths: ClassVar[int] = 3
    size: ClassVar[int] = 3

    def numbers(self) -> np.ndarray:
        return sized("a position", self.point, 3, most=FARTHEST)

    def reached(self, at: Posture, frame: str) -> list[Number]:
        return list(at.pose(frame)[1])

    def errors(self, at: Posture, frame: str, goal: Sequence[Number]) -> tuple[list[Number], Rows]:
        p = at.pose(frame)[1]
        return [goal[k] - p[k] for k in range(3)], at.jacobian(frame)[1]


@dataclass(frozen=True, eq=False)
class Orientation(Target):
    """Target for the orientation of a frame in the world.

    `rotation` is a matrix (..., 3, 3) or a quaternion (..., 4).
    """

    rotation: Any

    angles: ClassVar[int] = 3
    size: ClassVar[int] = 9

    def numbers(self) -> np.ndarray:
        return rotation("an orientation", self.rotation)

    def reached(self, at: Posture, frame: str) -> list[Number]:
        return [x for row in at.pose(frame)[0].rows for x in row]

    def errors(self, at: Posture, frame: str, goal: Sequence[Number]) -> tuple[list[Number], Rows]:
        wanted = Matrix(tuple(tuple(goal[3 * r : 3 * r + 3]) for r in range(3)))
        turn = vector_from_matrix(wanted @ at.pose(frame)[0].T)
        return list(turn), at.jacobian(frame)[0]


@dataclass(frozen=True, eq=False)
class Pose(Target):
    """Target for the pose of a frame relative to the world.

    `pose` is a matrix (..., 4, 4) or a pair (position, quaternion).
    """

    pose: Any

    angles: ClassVar[int] = 3
    lengths: ClassVar[int] = 3
    size: ClassVar[int] = 12

    def numbers(self) -> np.ndarray:
        return pose("a pose", self.pose)

    def reached(self, at: Posture, frame: str) -> list[Number]:
        R, p = at.pose(frame)
        return [*(x for row in R.rows for x in row), *p]

    def errors(self, at: Posture, frame: str, goal: Sequence[Number]) -> tuple[list[Number], Rows]:
        turn, angular = Orientation(None).errors(at, frame, goal[:9])
        way, linear = Position(None).errors(at, frame, goal[9:])
        return turn + way, angular + linear


@dataclass(frozen=True, eq=False)
class Relative(Target):
    """Target for the pose of a frame relative to another frame `to`.

    `pose` is a matrix (..., 4, 4) or a pair (position, quaternion).
    """

    to: str
    pose: Any

    angles: ClassVar[int] = 3
    lengths: ClassVar[int] = 3
    size: ClassVar[int] = 12

    @property
    def key(self) -> tuple[Any, ...]:
        return ("Relative", a_name("a frame", self.to))

    def numbers(self) -> np.ndarray:
        return pose("a relative pose", self.pose)

    def movers(self, model: Model, frame: str) -> set[int]:
        return super().movers(model, frame) ^ super().movers(model, self.to)

    def reached(self, at: Posture, frame: str) -> list[Number]:
        (R, p), (B, b) = at.pose(frame), at.pose(self.to)
        return [*(x for row in (B.T @ R).rows for x in row), *(B.T @ (p - b))]

    def errors(self, at: Posture, frame: str, goal: Sequence[Number]) -> tuple[list[Number], Rows]:
        # All quantities are in world axes. The target pose moves with the other frame.
        (R, p), (B, b) = at.pose(frame), at.pose(self.to)
        (w, v), (wb, vb) = at.jacobian(frame), at.jacobian(self.to)
        wanted = Matrix(tuple(tuple(goal[3 * r : 3 * r + 3]) for r in range(3)))
        turn = vector_from_matrix(B @ wanted @ R.T)
        way = b + B @ Vector(tuple(goal[9:])) - p
        carried = [  # Jacobian of the velocity of a point at p that is fixed to the other frame
            _plus(vb[k], _minus(_times(wb[i], (p - b)[j]), _times(wb[j], (p - b)[i])))
            for k, (i, j) in enumerate(((1, 2), (2, 0), (0, 1)))
        ]
        rows = [_minus(a, c) for a, c in zip(w + v, wb + carried, strict=True)]
        return [*turn, *way], rows


@dataclass(frozen=True, eq=False)
class Axis(Target):
    """Target that aligns an axis of a frame with a direction (..., 3) in the world.

    The frame may rotate about the axis. `axis` is a vector (..., 3) in the frame (default: z axis).
    """

    direction: Any
    axis: Any = (0.0, 0.0, 1.0)

    angles: ClassVar[int] = 3
    size: ClassVar[int] = 6

    def numbers(self) -> np.ndarray:
        return joined(unit("a direction", self.direction), unit("an axis", self.axis))

    def reached(self, at: Posture, frame: str) -> list[Number]:
        return []

    def errors(self, at: Posture, frame: str, goal: Sequence[Number]) -> tuple[list[Number], Rows]:
        a = at.pose(frame)[0] @ Vector(tuple(goal[3:]))
        return list(_turn(a, Vector(tuple(goal[:3])))), _across(at.jacobian(frame)[0], a)


@dataclass(frozen=True, eq=False)
class LookAt(Target):
    """Target that points an axis of a frame from its origin to a point (..., 3) in the world.

    `axis` is a vector (..., 3) in the frame (default: z axis).
    """

    point: Any
    axis: Any = (0.0, 0.0, 1.0)

    angles: ClassVar[int] = 3
    size: ClassVar[int] = 6

    def numbers(self) -> np.ndarray:
        return joined(sized("a point", self.point, 3, most=FARTHEST), unit("an axis", self.axis))

    def reached(self, at: Posture, frame: str) -> list[Number]:
        return []

    def errors(self, at: Posture, frame: str, goal: Sequence[Number]) -> tuple[list[Number], Rows]:
        # If the frame origin moves at velocity v, the direction d from the origin to the point
        # rotates at the angular velocity -d x v / distance.
        R, p = at.pose(frame)
        w, v = at.jacobian(frame)
        a, way = R @ Vector(tuple(goal[3:])), Vector(tuple(goal[:3])) - p
        far = 1.0 / sqrt(way.dot(way))
        d = way * far
        turned = [
            _times(_minus(_times(v[j], d[i]), _times(v[i], d[j])), far)
            for i, j in ((1, 2), (2, 0), (0, 1))
        ]
        rows = [_plus(x, y) for x, y in zip(_across(w, a), turned, strict=True)]
        return list(_turn(a, d)), rows


@dataclass(frozen=True, eq=False)
class CenterOfMass(Target):
    """Target that places the robot's center of mass at a point (..., 3) in the world (m)."""

    point: Any

    lengths: ClassVar[int] = 3
    size: ClassVar[int] = 3

    def numbers(self) -> np.ndarray:
        return sized("a center of mass", self.point, 3, most=FARTHEST)

    def movers(self, model: Model, frame: str) -> set[int]:
        return set(range(len(model.bodies)))

    def reached(self, at: Posture, frame: str) -> list[Number]:
        return list(at.center())

    def errors(self, at: Posture, frame: str, goal: Sequence[Number]) -> tuple[list[Number], Rows]:
        place = at.center()
        return [goal[k] - place[k] for k in range(3)], at.center_jacobian()


def stated(value: Any) -> Sequence[Target]:
    """Return a frame's targets as a sequence. `value` is a target, a list of targets, or a pose."""
    if isinstance(value, Target):
        return (value,)
    if isinstance(value, list) and value and all(isinstance(each, Target) for each in value):
        return value
    return (Pose(value),)


def _turn(a: Vector, d: Vector) -> Vector:
    """Return the rotation vector of the shortest rotation from unit vector a to unit vector d.

    The vector is computed from the quaternion (1 + a.d, a x d). If a and d are opposite, the
    rotation is by pi about a vector normal to a.
    """
    c, s = 1.0 + a.dot(d), a.cross(d)
    normal = Vector((a[1] - a[2], a[2] - a[0], a[0] - a[1]))
    other = Vector((a[1], -a[0], 0.0))
    aligned = less(normal.dot(normal), 0.5)
    normal = Vector(tuple(select(aligned, x, y) for x, y in zip(other, normal, strict=True)))
    flat = less(c + s.dot(s), 1e-12)
    entries = [select(flat, x, y) for x, y in zip((0.0, *normal), (c, *s), strict=True)]
    return vector_from_quaternion(Vector(tuple(entries)))


def _across(w: Rows, a: Vector) -> Rows:
    """Remove the component along the unit vector a from each column of an angular Jacobian."""
    along = [sum((a[k] * w[k][i] for k in range(3)), 0.0) for i in range(len(w[0]))]
    return [[x - a[k] * y for x, y in zip(w[k], along, strict=True)] for k in range(3)]


def _plus(a: Sequence[Number], b: Sequence[Number]) -> list[Number]:
    return [x + y for x, y in zip(a, b, strict=True)]


def _minus(a: Sequence[Number], b: Sequence[Number]) -> list[Number]:
    return [x - y for x, y in zip(a, b, strict=True)]


def _times(a: Sequence[Number], k: Number) -> list[Number]:
    return [x * k for x in a]
