"""Closed-form inverse kinematics of arms with three intersecting or parallel axes.

The equation is E1(q1) ... E6(q6) = G, where Ei is the displacement by joint i, and G is the
displacement from the home pose to the goal. Closed forms exist if the last three axes intersect
(Pieper 1968), or if the second to fourth axes are parallel (Elias and Wen 2022). If the three axes
are elsewhere in a chain of six joints, the chain is reversed, or joints are moved from one end to
the other: E1 ... E6 = G is equivalent to E2 ... E6 E1' = G, where the axis of E1' is displaced by
G^-1.

A chain of seven joints has a closed form if the first three axes intersect and the last three axes
intersect. This form requires the arm angle, i.e. the rotation of the elbow about the line from
shoulder to wrist (Shimizu et al., IEEE Transactions on Robotics 24, 2008).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from chasles.expr import Number, less, maximum, select, sqrt
from chasles.functions.chains import Displacement, Joint, Move, Slide, meeting, parallel, square
from chasles.mathematics.linear import Vector
from chasles.mathematics.trigonometric import Angle, between, conic, line, quadratic

BESIDE, TINY = 1e-4, 1e-24
"""Numerical thresholds for the arm angle, which is the elbow's angle about the shoulder-wrist line.

The arm angle is measured from the first joint axis. If the squared sine of the angle between this
axis and the shoulder-wrist line is below `BESIDE`, the arm angle is measured from a vector normal
to the axis. Squared lengths that are used as divisors are increased to at least `TINY`.
"""

Branch = list[tuple[Joint, Move]]
"""Solution of an inverse-kinematics problem: all joints and their positions."""

Pair = tuple[Move, Move]


class Unsuited(Exception):
    """Exception raised if no closed form applies to the geometry of an arm."""


# Functions of the position of one joint ---------------------------------------------------------


class Affine(NamedTuple):
    """Function of a joint position: k0 + k1 c + k2 s (revolute) or k0 + k1 t (prismatic).

    c and s are the cosine and sine of the joint angle, and t is the displacement of a prismatic
    joint. The coefficients are all scalars or all vectors.
    """

    k: tuple[Number, ...]

    @property
    def slides(self) -> bool:
        return len(self.k) == 2

    def at(self, move: Move) -> Number:
        basis = (move.t,) if isinstance(move, Slide) else (move.c, move.s)
        total = self.k[0]
        for x, b in zip(self.k[1:], basis, strict=True):
            total = total + x * b
        return total

    def plus(self, constant: Number) -> "Affine":
        return Affine((self.k[0] + constant, *self.k[1:]))

    def scaled(self, factor: Number) -> "Affine":
        """Return the product with `factor`, where the function or `factor` must be scalar."""
        return Affine(tuple(factor * a for a in self.k))

    def join(self, other: "Affine") -> "Affine":
        """Return the sum of two functions."""
        return Affine(tuple(a + b for a, b in zip(self.k, other.k, strict=True)))

    def dot(self, v: Vector) -> "Affine":
        return Affine(tuple(a.dot(v) for a in self.k))

    def product(self, other: "Affine") -> list[Number]:
        """Return the coefficients of the (scalar) product with another function.

        The terms are 1, c, s, c^2, c s, s^2 (revolute) or 1, t, t^2 (prismatic).
        """
        n, times = range(len(self.k)), _times(self.k[0])
        pairs = [(i, j) for i in n for j in n[i:]]
        a, b = self.k, other.k
        return [times(a[i], b[j]) + (times(a[j], b[i]) if i != j else 0.0) for i, j in pairs]


def _times(kind: Number) -> Callable[[Number, Number], Number]:
    if isinstance(kind, Vector):
        return lambda a, b: a.dot(b)
    return lambda a, b: a * b


def moved(joint: Joint, x: Vector) -> Affine:
    """Return the point x displaced by a joint, as a function of the joint position."""
    if joint.slides:
        return Affine((x, joint.axis))
    away = x - joint.point
    along = joint.axis * joint.axis.dot(away)
    return Affine((joint.point + along, away - along, joint.axis.cross(away)))


def component(joint: Joint, e: Vector, v: Vector, *, back: bool = False) -> Affine:
    """Return e . (R v) as a function of the joint position, where R is the joint's rotation.

    If `back` is True, R is the inverse of this rotation.
    """
    along, across = e.dot(joint.axis) * joint.axis.dot(v), e.dot(joint.axis.cross(v))
    return Affine((along, e.dot(v) - along, -across if back else across))


def distance(x: Affine) -> list[Number]:
    """Return the coefficients of |x|^2, for a vector x that depends on a joint position."""
    terms = x.product(x)
    if x.slides:
        return terms
    # The coefficients of c^2 and s^2 are equal, and c^2 + s^2 = 1. The coefficient of c s is zero.
    return [terms[0] + terms[3], terms[1], terms[2]]


def zeros(terms: Sequence[Number], slides: bool) -> list[Move]:
    """Return the joint positions at which a function with the coefficients `terms` is zero."""
    if slides and len(terms) == 2:
        return [Slide(-terms[0] / terms[1])]
    if slides:
        return [Slide(*root) for root in quadratic(*terms)]
    if len(terms) == 3:
        return list(line(terms[1], terms[2], -terms[0]))
    return list(conic(terms))


def _less(terms: Sequence[Number], constant: Number) -> list[Number]:
    return [terms[0] - constant, *terms[1:]]


# Three joints that move a point to a goal --------------------------------------------------------


def positions(a: Joint, b: Joint, c: Joint, x: Vector, y: Vector) -> list[Branch]:
    """Return the positions of joints a, b, c that move point x to point y (up to four solutions).

    The equation is E_a E_b E_c x = y, where E_a is the displacement by joint a. If joint a is
    revolute, E_a changes neither the coordinate of the point E_b E_c x along the axis of joint a
    nor the distance of this point from a point on the axis. These two quantities give two equations
    for the other two joints. If joint a is prismatic, the equations follow from the two coordinates
    normal to its axis.
    """
    solve = {(0, 0): _turns, (0, 1): _turn_and_slide, (1, 0): _slide_and_turn, (1, 1): _slides}
    found: list[Branch] = []
    f = moved(c, x)
    for second, third in solve[a.slides, b.slides](a, b, f, y):
        end = b.shift(second, f.at(third))
        first: Move = a.angle(end - a.point, y - a.point)
        if a.slides:
            first = Slide(a.axis.dot(y - end))
        found.append([(a, first), (b, second), (c, third)])
    return found


def _turns(a: Joint, b: Joint, f: Affine, y: Vector) -> Iterator[Pair]:
    point = meeting((a, b))
    if point is not None:
        a, b = a.through(point), b.through(point)
    u, away, g = b.point - a.point, y - a.point, f.plus(-b.point)
    along = a.axis.dot(b.axis)
    z = g.dot(b.axis)
    # Let w be the component of E_b E_c x - b.point perpendicular to the axis of b. Then the
    # equations for w are a.axis . w = height and u . w = level.
    height = z.scaled(-along).plus(a.axis.dot(y - b.point))
    if point is not None:
        for third in zeros(_less(distance(g), away.dot(away)), f.slides):
            turned = component(b, a.axis, g.at(third))
            for second in zeros(_less(turned.k, a.axis.dot(away)), False):
                yield second, third
        return
    reach = (away.dot(away) - u.dot(u)) * 0.5
    if parallel(a, b):
        for third in zeros(height.k, f.slides):
            v = g.at(third)
            turned = component(b, u, v)
            for second in zeros(_less(turned.k, reach - v.dot(v) * 0.5), False):
                yield second, third
        return
    if f.slides:
        raise Unsuited
    level = Affine(tuple(-0.5 * k for k in distance(g))).plus(reach)
    level = level.join(z.scaled(-u.dot(b.axis)))
    height_of, level_of = u.cross(b.axis), b.axis.cross(a.axis)
    unit = 1.0 / b.axis.dot(a.axis.cross(u))
    w = height.scaled(height_of * unit).join(level.scaled(level_of * unit))
    flat = [*distance(g), 0.0, 0.0, 0.0]
    terms = [p + q - r for p, q, r in zip(w.product(w), z.product(z), flat, strict=True)]
    for third in zeros(terms, False):
        yield b.angle(g.at(third), w.at(third)), third


def _turn_and_slide(a: Joint, b: Joint, f: Affine, y: Vector) -> Iterator[Pair]:
    away, g = y - a.point, f.plus(-a.point)
    height = g.dot(a.axis).plus(-a.axis.dot(away))
    if square(a, b):
        for third in zeros(height.k, f.slides):
            v = g.at(third)
            for second in quadratic(v.dot(v) - away.dot(away), v.dot(b.axis) * 2.0, 1.0):
                yield Slide(*second), third
        return
    slide = height.scaled(-1.0 / a.axis.dot(b.axis))
    end = g.join(slide.scaled(b.axis))
    for third in zeros(_less(end.product(end), away.dot(away)), f.slides):
        yield Slide(slide.at(third)), third


def _slide_and_turn(a: Joint, b: Joint, f: Affine, y: Vector) -> Iterator[Pair]:
    away, g = y - b.point, f.plus(-b.point)
    z = g.dot(b.axis)
    height = z.scaled(-1.0).plus(b.axis.dot(away))
    if square(a, b):
        across = a.axis.cross(b.axis)
        for third in zeros(height.k, f.slides):
            turned = component(b, across, g.at(third))
            for second in zeros(_less(turned.k, across.dot(away)), False):
                yield second, third
        return
    slide = height.scaled(1.0 / a.axis.dot(b.axis))
    w = slide.scaled(-a.axis).join(z.scaled(-b.axis)).plus(away)
    flat = distance(g) if f.slides else [*distance(g), 0.0, 0.0, 0.0]
    terms = [p + q - r for p, q, r in zip(w.product(w), z.product(z), flat, strict=True)]
    for third in zeros(terms, f.slides):
        yield b.angle(g.at(third), w.at(third)), third


def _slides(a: Joint, b: Joint, f: Affine, y: Vector) -> Iterator[Pair]:
    normal = a.axis.cross(b.axis)
    across = normal.cross(a.axis)
    for third in zeros(f.dot(normal).plus(-normal.dot(y)).k, f.slides):
        yield Slide(across.dot(y - f.at(third)) / across.dot(b.axis)), third


# Closed forms -----------------------------------------------------------------------------------


def wrist(joints: Sequence[Joint], G: Displacement) -> list[Branch]:
    """Return the solutions for six joints with a spherical wrist.

    The last three axes intersect at the reference point of the fourth joint. The first three joints
    move this point to its goal. The last three joints set the orientation.
    """
    a, b, c, d, e, f = joints
    found = []
    for branch in positions(a, b, c, d.point, G.point(d.point)):
        axis, side = G.R @ f.axis, G.R @ f.side
        for joint, move in branch:
            axis, side = (joint.turn(move, v, back=True) for v in (axis, side))
        found += [[*branch, *rest] for rest in _rotations(d, e, f, axis, side)]
    return found


def _rotations(a: Joint, b: Joint, c: Joint, axis: Vector, side: Vector) -> Iterator[Branch]:
    """Yield the rotations of joints a, b and c that map c.axis to `axis` and c.side to `side`."""
    middle = component(b, a.axis, c.axis)
    for second in zeros(_less(middle.k, a.axis.dot(axis)), False):
        first = a.angle(b.turn(second, c.axis), axis)
        rest = b.turn(second, a.turn(first, side, back=True), back=True)
        yield [(a, first), (b, second), (c, c.angle(c.side, rest))]


def elbow(joints: Sequence[Joint], G: Displacement, angle: Angle) -> list[Branch]:
    """Return the solutions (up to eight) for seven joints and a given arm angle.

    The first three axes intersect at the reference point of the first joint (shoulder), and the
    last three at the reference point of the fifth joint (wrist). The fourth joint sets the distance
    between these points. The first three joints move the wrist to its goal and turn the elbow, i.e.
    the axis of the fourth joint, to the given arm angle.
    """
    a, b, c, d, e, f, g = joints
    found = []
    away = G.point(e.point) - a.point
    ahead, across, over = _frame(away, _reference(a, away))
    aside = across * angle.c + over * angle.s
    for fourth in zeros(_less(distance(moved(d, e.point).plus(-a.point)), away.dot(away)), False):
        frame = _frame(d.shift(fourth, e.point) - a.point, d.axis)
        goal = (ahead, aside, ahead.cross(aside))
        axis, side = (_carried(frame, goal, v) for v in (c.axis, c.side))
        for arm in _rotations(a, b, c, axis, side):
            branch = [*arm, (d, fourth)]
            axis, side = G.R @ g.axis, G.R @ g.side
            for joint, move in branch:
                axis, side = (joint.turn(move, v, back=True) for v in (axis, side))
            found += [[*branch, *rest] for rest in _rotations(e, f, g, axis, side)]
    return found


def arm_angle(joints: Sequence[Joint], moves: Sequence[Move]) -> Angle:
    """Return the rotation of the elbow about the shoulder-wrist line for given joint positions."""
    *arm, d = zip(joints[:4], moves[:4], strict=True)
    away, axis = joints[4].point, d[0].axis
    for joint, move in (d, *reversed(arm)):
        away = joint.shift(move, away)
    for joint, move in reversed(arm):
        axis = joint.turn(move, axis)
    away = away - joints[0].point
    _, across, over = _frame(away, _reference(joints[0], away))
    return between(axis.dot(across), axis.dot(over))


def _reference(a: Joint, away: Vector) -> Vector:
    """Return the reference direction for the arm angle.

    The direction is the axis of the first joint or, if this axis is nearly parallel to the line
    `away` from shoulder to wrist, a vector normal to this axis.
    """
    along = a.axis.dot(away)
    near = less(away.dot(away) * (1.0 - BESIDE), along * along)
    pairs = zip(a.side, a.axis, strict=True)
    return Vector(tuple(select(near, x, y) for x, y in pairs))


def _frame(ahead: Vector, other: Vector) -> tuple[Vector, Vector, Vector]:
    """Return orthonormal vectors: along `ahead`, toward `other`, and normal to both."""
    first = ahead * (1.0 / sqrt(maximum(ahead.dot(ahead), TINY)))
    aside = other - first * first.dot(other)
    second = aside * (1.0 / sqrt(maximum(aside.dot(aside), TINY)))
    return first, second, first.cross(second)


def _carried(frame: Sequence[Vector], goal: Sequence[Vector], v: Vector) -> Vector:
    """Return v rotated by the rotation that maps `frame` to `goal`."""
    total = Vector.zero()
    for old, new in zip(frame, goal, strict=True):
        total = total + new * old.dot(v)
    return total


def plane(joints: Sequence[Joint], G: Displacement) -> list[Branch]:
    """Return the solutions for six joints with parallel axes 2 to 4.

    Rotations about the three parallel axes change neither the direction of these axes nor the
    coordinate of a point along this direction. These two conditions give two equations for the
    first and fifth joints.
    """
    a, p, q, r, b, c = joints
    found = []
    for first, fifth in _outside(a, p, b, c, G):
        start, end = G.R.T @ a.turn(first, p.axis), b.turn(fifth, p.axis, back=True)
        sixth = c.angle(start, end)
        x = c.shift(sixth, b.shift(fifth, r.point, back=True), back=True)
        place = a.shift(first, G.point(x), back=True) - p.point
        side = c.turn(sixth, b.turn(fifth, r.side, back=True), back=True)
        side = a.turn(first, G.R @ side, back=True)
        u, v, away = (_flat(p, x) for x in (q.point - p.point, r.point - q.point, place))
        gap = (away.dot(away) - u.dot(u) - v.dot(v)) * 0.5
        for third in zeros(_less(component(q, u, v).k, gap), False):
            second = p.angle(u + q.turn(third, v), away)
            rest = q.turn(third, p.turn(second, side, back=True), back=True)
            inner = [(p, second), (q, third), (r, r.angle(r.side, rest))]
            found.append([(a, first), *inner, (b, fifth), (c, sixth)])
    return found


def _outside(a: Joint, p: Joint, b: Joint, c: Joint, G: Displacement) -> Iterator[Pair]:
    """Yield positions of joints 1 and 5 of an arm with parallel axes 2 to 4."""
    if any(joint.slides for joint in (a, b, c)):
        raise Unsuited
    h, point = p.axis, meeting((b, c))
    if point is not None:
        b, c = b.through(point), c.through(point)
    turning = component(b, h, c.axis)
    rising = component(b, h, c.point - b.point).plus(h.dot(b.point - a.point))
    turned = component(a, h, G.R @ c.axis, back=True)
    raised = component(a, h, G.point(c.point) - a.point, back=True)
    if point is not None:
        for first in zeros(_less(raised.k, rising.k[0]), False):
            for fifth in zeros(_less(turning.k, turned.at(first)), False):
                yield first, fifth
        return
    if parallel(b, c):
        for first in zeros(_less(turned.k, turning.k[0]), False):
            for fifth in zeros(_less(rising.k, raised.at(first)), False):
                yield first, fifth
        return
    (k, m, n), (s, t, u) = turning.k, rising.k
    unit = 1.0 / (m * u - n * t)
    known, high = turned.plus(-k), raised.plus(-s)
    cosine = known.scaled(u * unit).join(high.scaled(-n * unit))
    sine = high.scaled(m * unit).join(known.scaled(-t * unit))
    squares = zip(cosine.product(cosine), sine.product(sine), strict=True)
    for first in zeros(_less([x + y for x, y in squares], 1.0), False):
        yield first, between(cosine.at(first), sine.at(first))


def _flat(joint: Joint, v: Vector) -> Vector:
    """Return the component of a vector perpendicular to a joint axis."""
    return v - joint.axis * joint.axis.dot(v)
