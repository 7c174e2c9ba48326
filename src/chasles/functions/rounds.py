"""Programs that compute distances between round shapes (spheres and capsules) and obstacles.

Round shapes are fixed to links. Obstacles are spheres, capsules, boxes and planes; the parameters
of obstacles, in world coordinates, are inputs of the programs.

A capsule is the set of all points whose distance from a segment is at most the radius. A sphere is
a capsule of length zero. The nearest points of two segments are computed as in Ericson (2005),
*Real-Time Collision Detection*, section 5.1.9, but without branches. The distance between round
shapes is the distance between their axes minus both radii. This distance is negative if the shapes
overlap.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

from chasles import backends
from chasles.backends.arrays import DeviceKernel, Kernel
from chasles.expr import (
    RULES,
    Arena,
    Number,
    Program,
    Variable,
    absolute,
    less,
    less_equal,
    maximum,
    minimum,
    select,
    sqrt,
)
from chasles.functions.programs import program
from chasles.functions.tracing import clock
from chasles.mathematics.linear import Matrix, Vector
from chasles.model import Model

Place = tuple[float, float, float]

PARALLEL = 1e-12
"""Squared sine of the angle between two segments below which they count as parallel."""

COINCIDENT = 1e-200
"""Squared distance (m^2) below which points count as coincident, and the normal is set to z."""

OBSTACLES = {"sphere": 4, "capsule": 7, "box": 15, "plane": 4}
"""Number of parameters for each kind of obstacle. Sphere: center and radius. Capsule: end points
and radius. Box: rotation matrix by rows, center and half-lengths. Plane: outward unit normal and
offset along it.
"""


class Round(NamedTuple):
    """Capsule fixed to a frame, or to the world if `frame` is None.

    Lengths are in m. A sphere has equal end points.
    """

    frame: str | None
    radius: float
    start: Place
    end: Place


class Segment(NamedTuple):
    """Capsule in world coordinates.

    `along` is the vector from `start` to the other end (None for a sphere), and `square` is the
    squared length of this vector.
    """

    start: Vector
    along: Vector | None
    square: Number
    radius: Number


class Box(NamedTuple):
    """Box with axes (columns of R), center, and half-lengths along the axes."""

    R: Matrix
    center: Vector
    half: Vector


class Plane(NamedTuple):
    """Half-space of all points whose dot product with the normal is less than `level` (m)."""

    normal: Vector
    level: Number


Solid = Segment | Box | Plane


class Nearest(NamedTuple):
    """Distance between two shapes, their nearest points, and the normal toward the second shape."""

    distance: Number
    first: Vector
    second: Vector
    normal: Vector


@dataclass(frozen=True)
class Rounds:
    """Distances between spheres or capsules of a model, and from these shapes to obstacles.

    `rounds` contains the spheres and capsules (round shapes) of the model, and `obstacles` the kind
    of each obstacle. Each entry of `groups` is a tuple of pairs (i, j): i is the index of a round
    shape, and j is the index of a round shape, or len(rounds) plus the index of an obstacle. The
    distance of a group is the smallest distance of its pairs.
    """

    model: Model
    rounds: tuple[Round, ...]
    obstacles: tuple[str, ...]
    groups: tuple[tuple[tuple[int, int], ...], ...]

    @cached_property
    def distances(self) -> Kernel:
        """Kernel for the smallest distance of each group of shape pairs.

        The inputs are q, the parameters of the obstacles and, if the model depends on time, t.
        """
        return self._compiled(nearest=False)

    @cached_property
    def nearest(self) -> Kernel:
        """Kernel for the distance, nearest points and normal of each group of shape pairs.

        The inputs are those of `distances`. The points of all groups have shape (groups, 2, 3), and
        the normals have shape (groups, 3).
        """
        return self._compiled(nearest=True)

    @cached_property
    def resident(self) -> Callable[[str, bool], DeviceKernel]:
        """Function that returns the GPU kernel of `nearest` or `distances` for a data type.

        The second argument is True for `nearest`.
        """

        @cache
        def made(dtype: str, nearest: bool) -> DeviceKernel:
            kernel = self._compiled("cuda", dtype, nearest=nearest)
            assert isinstance(kernel, DeviceKernel)
            return kernel

        return made

    def _compiled(
        self, backend: str = backends.USUAL, dtype: str = "float64", *, nearest: bool
    ) -> Kernel:
        own = any(joint.custom is not None for joint in self.model.source.joints)
        trace = self.nearest_program if nearest else self.distance_program
        known = (self.rounds, self.obstacles, self.groups, nearest)
        made = trace().hash if own else ""
        recipe = ("rounds", self.model.source, self.model.mimics, *known, made)
        found = backends.known(recipe, trace, backend, dtype)
        return found or backends.compile(trace(), backend, dtype, recipe)

    def distance_program(self) -> Program:
        """Return the program that computes the smallest distance of each group of pairs."""
        inputs, solids = self.traced()
        found = [_least(solids, pairs) for pairs in self.groups]
        output = (Variable("distance", (len(found),)), found)
        return Program.from_outputs("distance", inputs, [output])

    def nearest_program(self) -> Program:
        """Return the program that computes distances, nearest points and normals."""
        inputs, solids = self.traced()
        found = [_nearest(solids, pairs) for pairs in self.groups]
        n = len(found)
        points = [x for each in found for x in (*each.first, *each.second)]
        outputs: list[tuple[Variable, list[Number]]] = [
            (Variable("distance", (n,)), [each.distance for each in found]),
            (Variable("points", (n, 2, 3)), points),
            (Variable("normals", (n, 3)), [x for each in found for x in each.normal]),
        ]
        return Program.from_outputs("nearest", inputs, outputs)

    def traced(self) -> tuple[list[Variable], list[Solid]]:
        """Return the program inputs, and all robot and obstacle shapes in world coordinates."""
        arena = Arena(RULES)
        numbers = Variable("obstacles", (sum(OBSTACLES[kind] for kind in self.obstacles),))
        inputs = [Variable("q", (self.model.nq,)), numbers, *clock(self.model)]
        given = {v.name: [arena.input(v.name, k) for k in range(v.size)] for v in inputs}

        @cache
        def pose(frame: str) -> tuple[Matrix, Vector]:
            made = program(self.model, "forward_kinematics", frame=frame)
            T = made.applied({v.name: given[v.name] for v in made.inputs}, arena)[0]
            rows = tuple(tuple(T[4 * r : 4 * r + 3]) for r in range(3))
            return Matrix(rows), Vector(tuple(T[4 * r + 3] for r in range(3)))

        solids = obstacles(self.obstacles, given["obstacles"])
        return inputs, [*placed(self.rounds, pose), *solids]


def placed(
    rounds: Sequence[Round], pose: Callable[[str], tuple[Matrix, Vector]]
) -> Iterator[Segment]:
    """Yield round shapes in world coordinates; `pose` returns the axes and origin of a frame."""
    for frame, radius, start, end in rounds:
        way = [b - a for a, b in zip(start, end, strict=True)]
        square, along = sum(x * x for x in way), Vector(tuple(way))
        at = Vector(start)
        if frame is not None:
            R, p = pose(frame)
            at, along = R @ at + p, R @ along
        yield Segment(at, along if square else None, square, radius)


def obstacles(kinds: Sequence[str], numbers: Sequence[Number]) -> Iterator[Solid]:
    """Create obstacles of the given kinds; `numbers` contains the parameters of all obstacles."""
    for kind in kinds:
        n, numbers = numbers[: OBSTACLES[kind]], numbers[OBSTACLES[kind] :]
        if kind == "sphere":
            yield Segment(Vector(tuple(n[:3])), None, 0.0, n[3])
        elif kind == "capsule":
            along = Vector(tuple(n[3:6])) - Vector(tuple(n[:3]))
            yield Segment(Vector(tuple(n[:3])), along, along.dot(along), n[6])
        elif kind == "box":
            R = Matrix(tuple(tuple(n[3 * r : 3 * r + 3]) for r in range(3)))
            yield Box(R, Vector(tuple(n[9:12])), Vector(tuple(n[12:])))
        else:
            yield Plane(Vector(tuple(n[:3])), n[3])


# Distances between two shapes -------------------------------------------------------------------


def _least(solids: Sequence[Solid], pairs: Sequence[tuple[int, int]]) -> Number:
    """Return the smallest distance among all pairs.

    Pairs with equal sums of radii are compared by the squared distance between their axes, which
    saves square roots.
    """
    squares: dict[float, Number] = {}
    least: list[Number] = []
    for i, j in pairs:
        a, b = solids[i], solids[j]
        assert isinstance(a, Segment)
        if isinstance(b, Segment) and isinstance(a.radius, float) and isinstance(b.radius, float):
            x, y = axis_points(a, b)
            radii, square = a.radius + b.radius, (y - x).dot(y - x)
            squares[radii] = minimum(squares[radii], square) if radii in squares else square
        else:
            least.append(gap(a, b))
    least += [sqrt(square) - radii for radii, square in squares.items()]
    found = least[0]
    for other in least[1:]:
        found = minimum(found, other)
    return found


def _nearest(solids: Sequence[Solid], pairs: Sequence[tuple[int, int]]) -> Nearest:
    """Return the distance, points and normal of the nearest pair.

    Of several pairs with the same distance, the first is used.
    """
    found: Nearest | None = None
    for i, j in pairs:
        a, b = solids[i], solids[j]
        assert isinstance(a, Segment)
        other = nearest(a, b)
        if found is None:
            found = other
            continue
        closer = less(other.distance, found.distance)
        vectors = [
            Vector(tuple(select(closer, x, y) for x, y in zip(new, old, strict=True)))
            for new, old in zip(other[1:], found[1:], strict=True)
        ]
        found = Nearest(select(closer, other.distance, found.distance), *vectors)
    assert found is not None
    return found


def gap(a: Segment, b: Solid) -> Number:
    """Return the distance between a round shape and another shape."""
    if isinstance(b, Segment):
        x, y = axis_points(a, b)
        return sqrt((y - x).dot(y - x)) - (a.radius + b.radius)
    return nearest(a, b).distance


def nearest(a: Segment, b: Solid) -> Nearest:
    """Return the distance, nearest points and normal (toward b) for a round shape a and shape b."""
    if isinstance(b, Segment):
        return _round(a, b)
    return _box(a, b) if isinstance(b, Box) else _plane(a, b)


def _round(a: Segment, b: Segment) -> Nearest:
    x, y = axis_points(a, b)
    length, n = unit(y - x)
    return Nearest(length - (a.radius + b.radius), x + n * a.radius, y - n * b.radius, n)


def unit(r: Vector) -> tuple[Number, Vector]:
    """Return the length of a vector and its direction, which is z if the length is zero."""
    square = r.dot(r)
    none = less(square, COINCIDENT)
    length = sqrt(select(none, 1.0, square))
    over = 1.0 / length
    entries = (r[0] * over, r[1] * over, select(none, 1.0, r[2] * over))
    return select(none, 0.0, length), Vector(entries)


def axis_points(a: Segment, b: Segment) -> tuple[Vector, Vector]:
    """Return the nearest points of two segments, either of which may be a point."""
    r = a.start - b.start
    if a.along is None or b.along is None:
        ahead = a.start if a.along is None else _along(a, -a.along.dot(r) / a.square)
        behind = b.start if b.along is None else _along(b, b.along.dot(r) / b.square)
        return ahead, behind
    across, c, f = a.along.dot(b.along), a.along.dot(r), b.along.dot(r)
    turned = a.square * b.square - across * across
    flat = less(turned, PARALLEL * a.square * b.square)
    s = (across * f - c * b.square) / select(flat, 1.0, turned)
    s = select(flat, 0.0, _clamped(s))
    t = _clamped((across * s + f) / b.square)
    return _along(a, (across * t - c) / a.square), _along(b, t)


def _along(a: Segment, part: Number) -> Vector:
    assert a.along is not None
    return a.start + a.along * _clamped(part)


def _clamped(x: Number) -> Number:
    return maximum(0.0, minimum(1.0, x))


def _box(a: Segment, b: Box) -> Nearest:
    """Return the distance and nearest points for a sphere and a box.

    If the center is inside the box, the result refers to the nearest face.
    """
    assert a.along is None, "distances between capsules and boxes have no closed form here"
    c = b.R.T @ (a.start - b.center)
    depths = [h - absolute(x) for x, h in zip(c, b.half, strict=True)]
    r = Vector(tuple(x - maximum(-h, minimum(h, x)) for x, h in zip(c, b.half, strict=True)))
    inside = less_equal(r.dot(r), 0.0)
    x, y, z = depths
    first = less_equal(x, y) * less_equal(x, z)
    second = (1.0 - first) * less_equal(y, z)
    faces = (first, second, (1.0 - first) * (1.0 - second))
    signs = [select(less(k, 0.0), -1.0, 1.0) for k in c]
    length, away = unit(r)
    depth = minimum(minimum(x, y), z)
    out = b.R @ Vector(
        tuple(select(inside, f * s, w) for f, s, w in zip(faces, signs, away, strict=True))
    )
    far = select(inside, -depth, length)
    return Nearest(far - a.radius, a.start - out * a.radius, a.start - out * far, -out)


def _plane(a: Segment, b: Plane) -> Nearest:
    """Return the distance and nearest points for a round shape and a plane."""
    low, height = a.start, b.normal.dot(a.start)
    if a.along is not None:
        rise = b.normal.dot(a.along)
        falls = less(rise, 0.0)
        low, height = low + a.along * falls, height + rise * falls
    far = height - b.level
    return Nearest(far - a.radius, low - b.normal * a.radius, low - b.normal * far, -b.normal)
