"""Body frames in which the same mechanism takes fewer operations.

A joint about or along z leaves it open where on its axis the frame of its body stands, and at which
angle. Origins slide along their axes so that offsets between them vanish or meet; the frames of
last bodies turn so that their centres of mass lie in the plane y = 0. Coordinates, links and named
frames stay what they are.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from chasles.expr import Number, Scalar
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import about
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model.build import compose
from chasles.model.joints import Cylindrical, Helical, Prismatic, Revolute, Spherical, Z
from chasles.model.joints.reverse import inverted
from chasles.model.model import WORLD, Body, Frame, Model

_ROUNDING = 1e-15
_ENTRY, _DEPTH, _FORCE = 10, 1, 18
"""About how many operations of a Newton-Euler recursion go with an entry of an offset, with one
along z (another entry of Omega), and with a joint whose force, not its moment alone, is needed."""


def sparse_frames(model: Model) -> Model:
    """The same mechanism with the same coordinates; numbers that are symbols stay untouched."""
    d, angles = _slides(model), _angles(model)
    moves = {i: Transform(about(2, angles[i]), Z * d[i]) for i in range(len(model.bodies))}
    bodies = []
    for i, p, joint, I in model.outward():
        placement = Transform(joint.placement.E, _offset(model, i, d[p], d[i]))
        joint = replace(joint, placement=placement)
        if isinstance(joint, Revolute):
            joint = replace(joint, offset=joint.offset + angles[i])
        inertia = _turned(moves[i] @ I, angles[i])
        bodies.append(replace(model.bodies[i], joint=joint, inertia=inertia))

    def seen(frame: Frame) -> Frame:
        moved = frame.body != WORLD and (d[frame.body] != 0.0 or angles[frame.body] != 0.0)
        return _seen_from(moves[frame.body], frame) if moved else frame

    frames = {name: seen(frame) for name, frame in model.frames.items()}
    loops = tuple(
        replace(loop, predecessor=seen(loop.predecessor), successor=seen(loop.successor))
        for loop in model.loops
    )
    return replace(model, bodies=tuple(bodies), frames=frames, loops=loops)


def _seen_from(move: Transform, frame: Frame) -> Frame:
    """A frame of a body, from the body's new frame."""
    return replace(frame, placement=compose(frame.placement, inverted(move)))


# Where on its axis -----------------------------------------------------------------------------


def _slides(model: Model) -> dict[int, float]:
    """How far each origin goes along z, decided outward; offsets are pushed outward on a tie."""
    d, forced = {WORLD: 0.0}, {WORLD: False}
    farthest = 2.0 * _step(model)
    for i, p, *_ in model.outward():
        options = [shift for shift in _options(model, i, d[p]) if abs(shift) <= farthest]
        d[i] = min(options, key=lambda shift: _cost(model, i, d[p], shift, forced[p]))
        forced[i] = _price(model, i, _offset(model, i, d[p], d[i]), forced[p])[1]
    return d


def _step(model: Model) -> float:
    """The longest offset between two bodies.

    Origins slide no farther than twice that: along a chain of skew axes, where each offset takes up
    the slide of the one before, slides would grow without bound, and rounding with them.
    """
    offsets = [body.joint.placement.r for body in model.bodies]
    numbers = [r for r in offsets if not any(isinstance(x, Scalar) for x in r)]
    return max((math.sqrt(r.dot(r)) for r in numbers), default=0.0)


def _options(model: Model, i: int, carried: float) -> list[float]:
    """Nowhere, or to where an entry of the body's offset or of the next ones' vanishes."""
    joint = model.bodies[i].joint
    z, r = joint.placement.E.T @ Z, joint.placement.r - Z * carried
    beyond = [model.bodies[c].joint.placement.r[2] for c in model.children[i]]
    axial = isinstance(joint, Revolute | Prismatic | Helical | Cylindrical)
    if not axial or any(isinstance(x, Scalar) for x in (*z, *r, *beyond)):
        return [0.0]
    met = [-b / a for a, b in zip(z, r, strict=True) if abs(a) > 0.1]
    return [0.0, *met, *beyond]


def _cost(model: Model, i: int, carried: float, shift: float, forced: bool) -> tuple[int, int]:
    """Operations of the offsets that meet in body i; then the entries that its own has."""
    here = _offset(model, i, carried, shift)
    total, needed = _price(model, i, here, forced)
    for c in model.children[i]:
        total += _price(model, c, _offset(model, c, shift, 0.0), needed)[0]
    return total, _count(here)


def _price(model: Model, i: int, r: Vector, forced: bool) -> tuple[int, bool]:
    """Operations of the offset r of body i, and whether the bodies beyond need forces.

    They do not where all joints so far turn about one point, nor on an axis fixed in the base.
    """
    p = model.bodies[i].parent
    slides = not isinstance(model.bodies[i].joint, Revolute | Spherical)
    if p == WORLD:
        return 0, slides
    first = model.bodies[p]
    if first.parent == WORLD and isinstance(first.joint, Revolute):
        r = Vector.of(r[0], r[1], 0.0)
    needed = forced or slides or _count(r) > 0
    return _ENTRY * _count(r) + _DEPTH * (r[2] != 0.0) + _FORCE * needed, needed


def _count(r: Vector) -> int:
    return sum(x != 0.0 for x in r)


def _offset(model: Model, i: int, carried: float, shift: float) -> Vector:
    """Where the frame of body i stands in its parent's, after both have slid."""
    placement = model.bodies[i].joint.placement
    if carried == shift == 0.0:
        return placement.r
    parts = zip(placement.r, Z * -carried, placement.E.T @ Z * shift, strict=True)
    return Vector(tuple(_sum(*part) for part in parts))


def _sum(a: Number, b: Number, c: Number) -> Number:
    """a + b + c; zero where only rounding is left of numbers."""
    total = a + b + c
    if isinstance(total, Scalar):
        return total
    return total if abs(total) > _ROUNDING * (abs(a) + abs(b) + abs(c)) else 0.0


# At which angle --------------------------------------------------------------------------------


def _angles(model: Model) -> Mapping[int, float]:
    return {i: _angle(body, bool(model.children[i])) for i, body in enumerate(model.bodies)}


def _angle(body: Body, carries: bool) -> float:
    """The angle of the centre of mass about z, or else of a principal axis; zero if of no use."""
    (x, y, _), I = body.inertia.h, body.inertia.I
    if carries or not isinstance(body.joint, Revolute):
        return 0.0
    if any(isinstance(number, Scalar) for number in (x, y, *I)):
        return 0.0
    if x != 0.0 or y != 0.0:
        return math.atan2(y, x) if x != 0.0 and y != 0.0 else 0.0
    return 0.5 * math.atan2(-2.0 * I.xy, I.yy - I.xx) if I.xy != 0.0 else 0.0


def _turned(inertia: RigidInertia, angle: float) -> RigidInertia:
    """An inertia after its turn, with what the turn removes exactly zero."""
    if angle == 0.0:
        return inertia
    (x, y, z), I = inertia.h, inertia.I
    if x == y == 0.0:
        return replace(inertia, I=Symmetric(I.xx, I.yy, I.zz, 0.0, I.xz, I.yz))
    return replace(inertia, h=Vector.of(x, 0.0, z))
