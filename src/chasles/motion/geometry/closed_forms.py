"""Points, spheres, capsules, boxes, planes and ground surfaces, and their nearest points.

A contact is computed between a ball and a surface. Points, spheres, the ends of capsules and the
corners of boxes are balls; the radius of a point or corner is zero. Planes, ground surfaces
z = height(x, y), spheres, capsules and boxes are surfaces. A surface computes, in its frame, the
distance and normal to the moving center of a ball. From these values, `kinematics.py` derives the
motion of the contact for any motion of the two frames. Lengths are in m; centers and ends are in
the shape's frame. The attribute `frame` is a frame of the robot, or None for the world.

All computations use operations that arrays of floats and arrays of symbols both support.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from numbers import Real
from typing import Any, Protocol

import numpy as np

from chasles import backends, expr
from chasles.backends.arrays import call
from chasles.errors import InputError, said
from chasles.expr import RULES, Arena, Number, Program, Scalar, Variable, is_number, jacobian
from chasles.model.ranges import LARGEST

Value = Any
"""Float, array of floats, or symbol, as accepted and returned by contact laws and shapes."""
Place = tuple[float, float, float]
Nearest = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Distance (...) of a moving point from a surface, unit normal (..., 3), and rate of the normal."""

ROUNDING = 1e-14
STEPS = 50
"""Maximum number of Newton iterations for the nearest point on a ground surface."""
TRACED = 4
"""Number of Newton iterations in a compiled program, which cannot test for convergence. The
iterations start below the center of a ball and converge quadratically. For slopes up to 1, four
iterations converge to within rounding error."""


# Operations on numbers, symbols and arrays ------------------------------------------------------


def _on_any(on_arrays: Callable[..., Value], on_numbers: Callable[..., Value]) -> Any:
    """Return an operation that accepts floats, symbols, and arrays of floats or symbols."""

    def operation(*arguments: Value) -> Value:
        kinds = {a.dtype.kind for a in arguments if isinstance(a, np.ndarray | np.generic)}
        if not kinds:
            return on_numbers(*arguments)
        if "O" in kinds or Scalar in map(type, arguments):
            return np.frompyfunc(on_numbers, len(arguments), 1)(*arguments)
        return on_arrays(*arguments)

    return operation


maximum = _on_any(np.maximum, expr.maximum)
minimum = _on_any(np.minimum, expr.minimum)
absolute = _on_any(np.abs, expr.absolute)
sqrt = _on_any(np.sqrt, expr.sqrt)
less = _on_any(lambda a, b: 1.0 * np.less(a, b), expr.less)
less_equal = _on_any(lambda a, b: 1.0 * np.less_equal(a, b), expr.less_equal)
select = _on_any(lambda c, a, b: np.where(np.not_equal(c, 0.0), a, b), expr.select)


def applied(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return matrices (..., m, n) times vectors (..., n)."""
    product: np.ndarray = (matrix @ vector[..., None])[..., 0]
    return product


NEXT, LAST = [1, 2, 0], [2, 0, 1]
"""Cyclic permutations of the axis indices: the next axis, and the axis after it."""


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a x b (..., 3); for small arrays, this is five times as fast as `numpy.cross`."""
    turned: np.ndarray = a[..., NEXT] * b[..., LAST] - a[..., LAST] * b[..., NEXT]
    return turned


def across(n: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return v (..., 3) without its component along unit vectors n (..., 3)."""
    rest: np.ndarray = v - n * np.sum(n * v, axis=-1, keepdims=True)
    return rest


def unit(r: np.ndarray, rate: np.ndarray) -> Nearest:
    """Return lengths and directions of vectors r, and time derivatives of the directions.

    For a zero vector, direction and rate are NaN.
    """
    length = sqrt(np.sum(r * r, axis=-1, keepdims=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        over = 1.0 / length
        n = r * over
        return length[..., 0][()], n, across(n, rate) * over


def contact_axes(normal: np.ndarray) -> np.ndarray:
    """Return two tangents and the normal as rows (..., 3, 3), given unit normals.

    The vectors are the contact axes in Featherstone (2008), Eq 11.68. The tangents of (0, 0, 1) are
    along x and y. Tangents are discontinuous only where the normal is horizontal (Duff and others
    2017, *Building an orthonormal basis, revisited*).
    """
    x, y, z = (normal[..., k][()] for k in range(3))
    up = select(less(z, 0.0), -1.0, 1.0)
    a = -1.0 / (up + z)
    b = x * y * a
    first = np.stack([1.0 + up * x * x * a, up * b, -up * x], axis=-1)
    return np.stack([first, np.stack([b, up + y * y * a, -y], axis=-1), normal], axis=-2)


# Shapes ----------------------------------------------------------------------------------------


class _ClosedForm:
    """Surface on which the point nearest to a given point has a closed form."""

    def near(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Compute `nearest` for two arrays of equal shape, of floats or of symbols."""
        raise NotImplementedError

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Return distance, normal and rate of the normal at points c (..., 3) with velocities v.

        Parameters
        ----------
        c : ndarray, shape (..., 3)
            Points in the surface's frame (m).
        v : ndarray, shape (..., 3)
            Velocities of the points in this frame (m/s).

        Returns
        -------
        tuple of ndarray
            Distance (m, negative inside), unit normal (..., 3), and rate of the normal (1/s).

        Raises
        ------
        InputError
            If the surface is a Ground and no closest point is found, for example because the ground
            is too curved.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> distance, n, _ = contact.Plane().nearest(np.array([0.0, 0.0, 2.0]), np.zeros(3))
        >>> float(distance)
        2.0
        """
        with np.errstate(divide="ignore", invalid="ignore"):  # NaN if c is at the center
            return self.near(*np.broadcast_arrays(c, v))


def check_places(shape: Any, *names: str) -> None:
    """Convert the named attributes of a shape to tuples of three floats, or raise an error."""
    for name in names:
        given = getattr(shape, name)
        try:
            found = tuple(map(float, given))
        except (TypeError, ValueError, OverflowError):
            found = ()
        if len(found) != 3 or not all(abs(x) <= LARGEST for x in found):  # also excludes NaN
            needed = f"three numbers with absolute values of at most {LARGEST:g}"
            problem = f"{name} must be {needed}, not {given!r:.60}"
            raise InputError("E-CONTACT-001", problem, part=type(shape).__name__)
        object.__setattr__(shape, name, found)


def _check(what: str, *lengths: float) -> None:
    """Raise an error that names `what` if a length is too large or not positive."""
    if not all(isinstance(length, Real) and 0.0 < length <= LARGEST for length in lengths):
        given = ", ".join(f"{length!r:.60}" for length in lengths)
        problem = f"{what} must be positive and at most {LARGEST:g}, not {given}"
        raise InputError("E-CONTACT-028", problem)


@dataclass(frozen=True)
class Point:
    """Point at the coordinates `at` (m) in a frame."""

    frame: str | None
    at: Place = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        check_places(self, "at")

    def balls(self) -> list[tuple[Place, float]]:
        """Return the point as a ball of radius zero.

        Returns
        -------
        list of (center, radius)
            Center in the shape's frame and radius of each ball (m).

        Examples
        --------
        >>> from chasles import contact
        >>> contact.Point(None).balls()
        [((0.0, 0.0, 0.0), 0.0)]
        """
        return [(self.at, 0.0)]


@dataclass(frozen=True)
class Sphere(_ClosedForm):
    """Ball of radius `radius`, centered at `center`."""

    frame: str | None
    radius: float
    center: Place = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        check_places(self, "center")
        _check("Sphere: radius", self.radius)

    def balls(self) -> list[tuple[Place, float]]:
        """Return the sphere as a list of one ball.

        Returns
        -------
        list of (center, radius)
            Center in the shape's frame and radius of each ball (m).

        Examples
        --------
        >>> from chasles import contact
        >>> contact.Sphere(None, 0.2).balls()
        [((0.0, 0.0, 0.0), 0.2)]
        """
        return [(self.center, self.radius)]

    def near(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Return distance, normal and rate of the normal for the center of a ball.

        Parameters
        ----------
        c : ndarray, shape (3,)
            Center of a ball, in the shape's frame (m).
        v : ndarray, shape (3,)
            Velocity of the center, in the shape's frame (m/s).

        Returns
        -------
        tuple of ndarray
            Distance from the surface to the center (m, negative inside), unit normal (3,), and
            rate of the normal (1/s).

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> distance, n, _ = contact.Sphere(None, 0.5).near(np.array([0.0, 0.0, 2.0]), np.zeros(3))
        >>> float(distance), n.tolist()
        (1.5, [0.0, 0.0, 1.0])
        """
        return _around(self.radius, c - self.center, v)


@dataclass(frozen=True)
class Capsule(_ClosedForm):
    """All points within `radius` of the segment from `start` to `end`."""

    frame: str | None
    radius: float
    start: Place
    end: Place

    def __post_init__(self) -> None:
        check_places(self, "start", "end")
        _check("Capsule: radius", self.radius)
        _check("Capsule: the distance between its ends", math.dist(self.start, self.end))

    def balls(self) -> list[tuple[Place, float]]:
        """Return balls at the ends of the capsule.

        Returns
        -------
        list of (center, radius)
            Center in the shape's frame and radius of each ball (m).

        Examples
        --------
        >>> from chasles import contact
        >>> contact.Capsule(None, 0.1, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)).balls()
        [((0.0, 0.0, 0.0), 0.1), ((0.0, 0.0, 1.0), 0.1)]
        """
        return [(self.start, self.radius), (self.end, self.radius)]

    def near(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Return distance, normal and rate of the normal for the center of a ball.

        Parameters
        ----------
        c : ndarray, shape (3,)
            Center of a ball, in the shape's frame (m).
        v : ndarray, shape (3,)
            Velocity of the center, in the shape's frame (m/s).

        Returns
        -------
        tuple of ndarray
            Distance from the surface to the center (m, negative inside), unit normal (3,), and
            rate of the normal (1/s).

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> rod = contact.Capsule(None, 0.5, (-1.0, 0.0, 0.0), (1.0, 0.0, 0.0))
        >>> distance, n, _ = rod.near(np.array([0.0, 0.0, 2.0]), np.zeros(3))
        >>> float(distance), n.tolist()
        (1.5, [0.0, 0.0, 1.0])
        """
        along = np.subtract(self.end, self.start)
        return _around(self.radius, *from_segment(c, v, np.array(self.start), along))


@dataclass(frozen=True)
class Box(_ClosedForm):
    """Cuboid with edge lengths `size` along the axes of its frame."""

    frame: str | None
    size: Place
    center: Place = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        check_places(self, "size", "center")
        _check("Box: every edge", *self.size)

    def balls(self) -> list[tuple[Place, float]]:
        """Return the corners, as balls of radius zero.

        Returns
        -------
        list of (center, radius)
            Center in the shape's frame and radius of each ball (m).

        Examples
        --------
        >>> from chasles import contact
        >>> len(contact.Box(None, (1.0, 2.0, 3.0)).balls())
        8
        """
        (x, y, z), (a, b, c) = self.center, self.size
        return [
            ((x + 0.5 * a * sx, y + 0.5 * b * sy, z + 0.5 * c * sz), 0.0)
            for sx, sy, sz in product((-1.0, 1.0), repeat=3)
        ]

    def near(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Return distance, normal and rate of the normal for the center of a ball.

        The nearest point is on a face, an edge or a corner; for a center inside the box, it is on a
        face.

        Parameters
        ----------
        c : ndarray, shape (3,)
            Center of a ball, in the shape's frame (m).
        v : ndarray, shape (3,)
            Velocity of the center, in the shape's frame (m/s).

        Returns
        -------
        tuple of ndarray
            Distance from the surface to the center (m, negative inside), unit normal (3,), and
            rate of the normal (1/s).

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> cube = contact.Box(None, (1.0, 1.0, 1.0))
        >>> distance, n, _ = cube.near(np.array([0.0, 0.0, 2.0]), np.zeros(3))
        >>> float(distance), n.tolist()
        (1.5, [0.0, 0.0, 1.0])
        """
        c, half = c - self.center, 0.5 * np.array(self.size)
        depths = half - absolute(c)
        beyond = less(depths, 0.0)
        outside = maximum(maximum(beyond[..., :1], beyond[..., 1:2]), beyond[..., 2:])
        x, y, z = (depths[..., k : k + 1] for k in range(3))
        first = less_equal(x, y) * less_equal(x, z)
        second = (1.0 - first) * less_equal(y, z)
        faces = np.concatenate([first, second, (1.0 - first) * (1.0 - second)], axis=-1)
        normal = faces * select(less(c, 0.0), -1.0, 1.0)
        r = c - minimum(maximum(c, -half), half)
        distance, n, rate = unit(select(outside, r, normal), beyond * v)
        depth = minimum(minimum(x, y), z)
        return select(outside[..., 0][()], distance, -depth[..., 0][()]), n, rate


@dataclass(frozen=True)
class Plane(_ClosedForm):
    """Half-space below a plane through `point` with an upward `normal`."""

    frame: str | None = None
    normal: Place = (0.0, 0.0, 1.0)
    point: Place = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        check_places(self, "normal", "point")
        _check("Plane: the length of its normal", math.hypot(*self.normal))

    def near(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Return distance, normal and rate of the normal for the center of a ball.

        Parameters
        ----------
        c : ndarray, shape (3,)
            Center of a ball, in the shape's frame (m).
        v : ndarray, shape (3,)
            Velocity of the center, in the shape's frame (m/s).

        Returns
        -------
        tuple of ndarray
            Distance from the surface to the center (m, negative inside), unit normal (3,), and
            rate of the normal (1/s).

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> distance, n, _ = contact.Plane().near(np.array([0.0, 0.0, 2.0]), np.zeros(3))
        >>> float(distance), n.tolist()
        (2.0, [0.0, 0.0, 1.0])
        """
        n = np.array(self.normal) / math.hypot(*self.normal)
        return np.sum((c - self.point) * n, axis=-1), np.broadcast_to(n, c.shape), np.zeros(c.shape)


@dataclass(frozen=True)
class Ground(_ClosedForm):
    """Region below z = height(x, y), in the world or another frame.

    The function `height` must be smooth. `height` is called once, with symbols, and may use
    arithmetic and the functions of `chasles.expr`. The nearest point is found by Newton's method,
    starting below the center of the ball that touches the ground. Where the ground is concave, its
    radius of curvature must exceed the distance to that center. A compiled step uses four
    iterations (`TRACED`).
    """

    height: Callable[[Number, Number], Number]
    frame: str | None = None

    @cached_property
    def _programs(self) -> list[Program]:
        """Programs for the height at (x, y), its gradient and its Hessian."""
        arena, place = Arena(RULES), Variable("at", (2,))
        x, y = (arena.input("at", k) for k in range(2))
        try:
            height = self.height(x, y)
        except Exception as error:
            problem = f"height(x, y) failed when traced: {type(error).__name__}: {said(error)}"
            remedy = (
                "give `height` the arguments (x, y), "
                "and take sin, sqrt and other functions from chasles.expr"
            )
            raise InputError("E-CONTACT-025", problem, remedy, part="Ground") from error
        if not is_number(height):
            problem = f"`height` must return a number, not {height!r:.60}"
            raise InputError("E-CONTACT-026", problem, "return one number: z in m", part="Ground")
        program = Program.from_outputs("height", [place], [(Variable("height", ()), [height])])
        first = jacobian(program, ["at"])
        return [program, first, jacobian(first, ["at"])]

    @cached_property
    def _compiled(self) -> list[Any]:
        return [backends.compile(p) for p in self._programs]

    def _slopes(self, x: Value, y: Value) -> list[Value]:
        """Return the height h and its partial derivatives hx, hy, hxx, hxy, hyx, hyy."""
        arena = next((a.arena for a in (x, y) if isinstance(a, Scalar)), None)
        if arena is None:
            at = np.stack([x, y], axis=-1)
            h, g, K = (call(f, "height", (at,)) for f in self._compiled)
            return [h, g[..., 0], g[..., 1], *(K[..., i, j] for i in (0, 1) for j in (0, 1))]
        replayed = [(p, p.replay({"at": [x, y]}, arena)) for p in self._programs]
        return [values[r] for p, values in replayed for r in p.results[0]]

    def near(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Return distance, normal and rate of the normal for moving points.

        Parameters
        ----------
        c : ndarray, shape (..., 3)
            Positions in the ground's frame (m), as floats or symbols.
        v : ndarray, shape (..., 3)
            Velocities (m/s).

        Returns
        -------
        distance : ndarray, shape (...)
            Distance to the nearest point p = (x, y, height), where c - p is parallel to the normal
            (m).
        normal : ndarray, shape (..., 3)
            Unit normal of the ground at p, upwards.
        rate : ndarray, shape (..., 3)
            Rate of the normal (1/s).

        Raises
        ------
        InputError
            If no closest point is found, for example because the ground is too curved.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> slope = contact.Ground(lambda x, y: 0.75 * x)
        >>> distance, n, _ = slope.near(np.array([0.0, 0.0, 1.0]), np.zeros(3))
        >>> float(distance), n
        (0.8, array([-0.6, -0. ,  0.8]))
        """
        (cx, cy, cz), (vx, vy, vz) = ([a[..., k][()] for k in range(3)] for a in (c, v))
        x, y, traced = cx, cy, c.dtype == object
        for _ in range(TRACED if traced else STEPS):
            h, gx, gy, *K = self._slopes(x, y)
            above = cz - h
            dx, dy = _solved(gx, gy, above, K, cx - x + above * gx, cy - y + above * gy)
            x, y = x + dx, y + dy
            if not traced and np.all(
                maximum(absolute(dx), absolute(dy)) <= ROUNDING * (1.0 + absolute(x) + absolute(y))
            ):
                break
        else:
            if not traced:
                remedy = "use a ball with a radius less than the ground's radius of curvature"
                raise InputError(
                    "E-CONTACT-027", "no closest point was found", remedy, part="Ground"
                )
        h, gx, gy, *K = self._slopes(x, y)
        mx, my = _solved(gx, gy, cz - h, K, vx + vz * gx, vy + vz * gy)
        over = 1.0 / sqrt(1.0 + gx * gx + gy * gy)
        n = np.stack([-gx * over, -gy * over, over], axis=-1)
        bend = [-over * (K[0] * mx + K[1] * my), -over * (K[2] * mx + K[3] * my), 0.0 * over]
        away = np.stack([cx - x, cy - y, cz - h], axis=-1)
        return np.sum(n * away, axis=-1), n, across(n, np.stack(bend, axis=-1))


def _solved(
    gx: Value, gy: Value, above: Value, K: Sequence[Value], bx: Value, by: Value
) -> tuple[Value, Value]:
    """Return (1 + g g' - above K)^-1 b, with the gradient g and Hessian K of the ground's height.

    `above` is the vertical distance (m) from the ground to the ball's center.
    """
    xx, yy = 1.0 + gx * gx - above * K[0], 1.0 + gy * gy - above * K[3]
    xy = gx * gy - above * K[1]
    over = 1.0 / (xx * yy - xy * xy)
    return (yy * bx - xy * by) * over, (xx * by - xy * bx) * over


def _around(radius: float, r: np.ndarray, v: np.ndarray) -> Nearest:
    """Return distance, normal and rate of the normal at points r, for a ball at the origin."""
    distance, n, rate = unit(r, v)
    return distance - radius, n, rate


def from_segment(
    c: np.ndarray, v: np.ndarray, start: np.ndarray, along: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the shortest vectors (..., 3) from segments to moving points c, and their rates."""
    r, square = c - start, np.sum(along * along, axis=-1, keepdims=True)
    part, rate = (np.sum(x * along, axis=-1, keepdims=True) / square for x in (r, v))
    inside = less(0.0, part) * less(part, 1.0)
    follow = select(inside, rate, 0.0)
    return r - minimum(maximum(part, 0.0), 1.0) * along, v - follow * along


class Nearby(Protocol):
    """Interface of shapes that compute the distance of a point from the surface, and the normal."""

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Return distance, normal and rate of the normal at points c (..., 3) with velocities v.

        Parameters
        ----------
        c : ndarray, shape (..., 3)
            Points in the shape's frame (m).
        v : ndarray, shape (..., 3)
            Velocities of the points in this frame (m/s).

        Returns
        -------
        tuple of ndarray
            Distance (m, negative inside), unit normal (..., 3), and rate of the normal (1/s).

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> distance, n, _ = contact.Plane().nearest(np.array([0.0, 0.0, 2.0]), np.zeros(3))
        >>> float(distance)
        2.0
        """
