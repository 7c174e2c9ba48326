"""Passes that simplify a model before tracing, so that the traced program is shorter.

Each pass is a function that returns a changed model, and has an entry in `PASSES`. All passes
except "frictionless" preserve the equation of motion. `programs.py` selects the passes to apply;
`robot.explain` prints the number of operations that each pass saves.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from chasles.expr import Number, Scalar
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import Plane, Rotation, about
from chasles.mathematics.spatial import RigidInertia, Transform, inverted
from chasles.model.build import compose
from chasles.model.joints import Revolute, Z
from chasles.model.model import WORLD, Body, Frame, Model


def _symbolic(*numbers: Number) -> bool:
    return any(isinstance(x, Scalar) for x in numbers)


# Frames -------------------------------------------------------------------------------------------
#
# The frame of a body with a joint about or along z may be shifted along z and rotated about z.
# Origins are shifted along the joint axes so that more offsets between them are zero. Frames of
# leaf bodies are rotated so that their centers of mass are in the plane x = 0 or y = 0.

_ROUNDING = 1e-15
_ENTRY, _DEPTH, _FORCE = 10, 1, 18
"""Approximate numbers of operations in a Newton-Euler recursion.

`_ENTRY` operations are needed for each nonzero entry of an offset between body frames, and `_DEPTH`
more if this is the z entry. `_FORCE` operations are needed to compute a joint's force in addition
to its moment.
"""


def sparse_frames(model: Model) -> Model:
    """Move body frames so that algorithms need fewer operations."""
    d = _slides(model)
    angles = [_angle(body, bool(model.children[i])) for i, body in enumerate(model.bodies)]
    moves = [Transform(about(2, angle), Z * d[i]) for i, angle in enumerate(angles)]
    bodies = []
    for i, p, joint, I in model.outward():
        placement = Transform(joint.placement.E, _offset(model, i, d[p], d[i]))
        joint = replace(joint, placement=placement)
        if isinstance(joint, Revolute):
            joint = replace(joint, offset=joint.offset + angles[i])
        inertia = _turned(moves[i] @ I, angles[i])
        bodies.append(replace(model.bodies[i], joint=joint, inertia=inertia))

    def seen(frame: Frame) -> Frame:
        i = frame.body
        if i == WORLD or d[i] == angles[i] == 0.0:
            return frame
        return replace(frame, placement=compose(frame.placement, inverted(moves[i])))

    frames = {name: seen(frame) for name, frame in model.frames.items()}
    loops = tuple(
        replace(loop, predecessor=seen(loop.predecessor), successor=seen(loop.successor))
        for loop in model.loops
    )
    return replace(model, bodies=tuple(bodies), frames=frames, loops=loops)


def _slides(model: Model) -> dict[int, float]:
    """Choose the shift of each body frame along its z axis, from the base to the leaf bodies.

    Among shifts with equal operation counts, the shift that moves offsets toward the leaf bodies is
    chosen. Shifts are limited to twice the longest offset; otherwise, they could grow without bound
    along skew axes.
    """
    offsets = [body.joint.placement.r for body in model.bodies]
    farthest = 2.0 * max((math.sqrt(r.dot(r)) for r in offsets if not _symbolic(*r)), default=0.0)
    d, forced = {WORLD: 0.0}, {WORLD: False}
    for i, p, *_ in model.outward():
        options = [shift for shift in _options(model, i, d[p]) if abs(shift) <= farthest]
        d[i] = min(options, key=lambda shift: _cost(model, i, d[p], shift, forced[p]))
        forced[i] = _price(model, i, _offset(model, i, d[p], d[i]), forced[p])[1]
    return d


def _options(model: Model, i: int, carried: float) -> list[float]:
    """Return candidate shifts of a frame along z: 0, and those that make an offset entry zero."""
    joint = model.bodies[i].joint
    z, r = joint.placement.E.T @ Z, joint.placement.r - Z * carried
    beyond = [model.bodies[c].joint.placement.r[2] for c in model.children[i]]
    if not joint.flips or _symbolic(*z, *r, *beyond):
        return [0.0]
    met = [-b / a for a, b in zip(z, r, strict=True) if abs(a) > 0.1]
    return [0.0, *met, *beyond]


def _cost(model: Model, i: int, carried: float, shift: float, forced: bool) -> tuple[int, int]:
    """Return the cost of shifting the frame of body i along z.

    The cost is the operation count for the offsets from the parent and to the children, and (to
    break ties) the number of nonzero entries in the offset from the parent.
    """
    here = _offset(model, i, carried, shift)
    total, needed = _price(model, i, here, forced)
    for c in model.children[i]:
        total += _price(model, c, _offset(model, c, shift, 0.0), needed)[0]
    return total, _count(here)


def _price(model: Model, i: int, r: Vector, forced: bool) -> tuple[int, bool]:
    """Return the number of operations due to the offset r of body i from its parent.

    The second result is True if the force on the body must be computed.
    """
    p, slides = model.bodies[i].parent, not model.bodies[i].joint.pivots
    if p == WORLD:
        return 0, slides
    if _on_fixed_axis(model, p):
        r = Vector.of(r[0], r[1], 0.0)
    needed = forced or slides or _count(r) > 0
    return _ENTRY * _count(r) + _DEPTH * (r[2] != 0.0) + _FORCE * needed, needed


def _on_fixed_axis(model: Model, i: int) -> bool:
    """Return True if body i rotates about an axis that is fixed in the base."""
    return model.bodies[i].parent == WORLD and isinstance(model.bodies[i].joint, Revolute)


def _count(r: Vector) -> int:
    return sum(x != 0.0 for x in r)


def _offset(model: Model, i: int, carried: float, shift: float) -> Vector:
    """Return the position of body i's frame in its parent's frame after both have been shifted."""
    placement = model.bodies[i].joint.placement
    if carried == shift == 0.0:
        return placement.r
    parts = zip(placement.r, Z * -carried, placement.E.T @ Z * shift, strict=True)
    return Vector(tuple(_sum(*part) for part in parts))


def _sum(a: Number, b: Number, c: Number) -> Number:
    """Return a + b + c, or zero if the sum is only rounding error."""
    total = a + b + c
    if isinstance(total, Scalar):
        return total
    return total if abs(total) > _ROUNDING * (abs(a) + abs(b) + abs(c)) else 0.0


def _angle(body: Body, carries: bool) -> float:
    """Return the angle about z from the x axis to the center of mass or to a principal axis.

    The angle is zero if a rotation would not save operations.
    """
    (x, y, _), I = body.inertia.h, body.inertia.I
    if carries or not isinstance(body.joint, Revolute) or _symbolic(x, y, *I):
        return 0.0
    if x != 0.0 or y != 0.0:
        return math.atan2(y, x) if x != 0.0 and y != 0.0 else 0.0
    return 0.5 * math.atan2(-2.0 * I.xy, I.yy - I.xx) if I.xy != 0.0 else 0.0


def _turned(inertia: RigidInertia, angle: float) -> RigidInertia:
    """Set to exactly zero the inertia entries that a rotation has eliminated."""
    x, y, z = inertia.h
    if angle == 0.0:
        return inertia
    if x == y == 0.0:
        return replace(inertia, I=replace(inertia.I, xy=0.0))
    return replace(inertia, h=Vector.of(x, 0.0, z))


# Inertias: dynamic equivalence (Featherstone 2008, section 9.7) -----------------------------------

_FLAT = 1e-14
"""Relative tolerance for I_zz = I_xx + I_yy, which allows for a few rounding errors."""

Choice = Callable[[Symmetric], Number]
"""Function that returns a moment of inertia k; diag(k, k, 0) is moved to the parent body."""


def by_moments(I: Symmetric) -> Number:
    """Return the value k (see `Choice`) for which I_yy becomes zero.

    Algorithms that use moments of inertia then need fewer operations.
    """
    return I.yy


def by_products(I: Symmetric) -> Number:
    """Return the value k (see `Choice`) for which the integral of z^2 dm becomes zero.

    Algorithms that use 4x4 matrices then need fewer operations.
    """
    return 0.5 * (I.xx + I.yy - I.zz)


def equivalent(model: Model, choice: Choice = by_moments) -> Model:
    """Return a model with the same equation of motion and more zeros in its inertias.

    From the leaf bodies to the root, the part of a body's inertia that does not affect its joint is
    moved to the parent. Generalized forces and accelerations stay the same. Reactions, momentum,
    energy and center of mass change, so the result is valid only for the equation of motion. Bodies
    may have zero or negative mass.
    """
    inertia = {i: I for i, _, _, I in model.outward()}
    for i, p, joint, _ in model.inward():
        I = inertia[i].I
        moved = joint.transferable(inertia[i], I.xx if is_round(inertia[i]) else choice(I))
        inertia[i] = _flattened(inertia[i] - moved)
        if p != WORLD:
            inertia[p] = inertia[p] + joint.placement.T @ moved
    bodies = (replace(body, inertia=inertia[i]) for i, body in enumerate(model.bodies))
    return replace(model, bodies=tuple(bodies))


def is_round(inertia: RigidInertia) -> bool:
    """Return True if rotation about the z axis does not change the inertia."""
    (x, y, _), I = inertia.h, inertia.I
    if _symbolic(x, y, *I):
        return False
    return x == y == I.xy == I.xz == I.yz == 0.0 and I.xx == I.yy


def _flattened(inertia: RigidInertia) -> RigidInertia:
    """Make I_zz = I_xx + I_yy exact if it holds to within rounding error.

    The integral of z^2 dm is then exactly zero.
    """
    I = inertia.I
    if _symbolic(*I) or not math.isclose(I.xx + I.yy, I.zz, rel_tol=_FLAT):
        return inertia
    rest = I.zz - I.xx
    if I.yy != 0.0 and I.xx + rest == I.zz:  # keep I_zz: the joint torque depends on it
        return replace(inertia, I=replace(I, yy=rest))
    return replace(inertia, I=replace(I, zz=I.xx + I.yy))


# Rotors: bodies with rotational symmetry about their joint axis -----------------------------------


@dataclass(frozen=True)
class Rotor(Revolute):
    """A revolute joint whose body frame does not rotate with the body."""

    def motion(self, q: Vector) -> Transform:
        return Transform(Rotation((Plane(2, 1.0, 0.0),)), Vector.zero())


def still_rotors(model: Model) -> Model:
    """Return a model in which the frames of axisymmetric leaf bodies do not rotate.

    The equation of motion is the same. Named frames and loops are omitted, because they may rotate
    with these bodies.
    """
    bodies = list(model.bodies)
    for i, _, joint, inertia in model.outward():
        if isinstance(joint, Revolute) and not model.children[i] and is_round(inertia):
            parts = joint.placement, joint.armature, joint.damping, joint.friction
            bodies[i] = replace(bodies[i], joint=Rotor(*parts, load=joint.load))
    return replace(model, bodies=tuple(bodies), frames={}, loops=())


# Units --------------------------------------------------------------------------------------------


def natural_units(model: Model) -> Model:
    """Change the unit of length to the most frequent offset between axes.

    Masses are multiplied by the square of the unit, so that moments and angular accelerations are
    unchanged. The change of units is valid only if all joints are rotational and neither forces nor
    positions are computed. Frames and loops are omitted.
    """
    lengths = Counter(_offsets(model))
    if not lengths or not all(body.joint.pivots for body in model.bodies):
        return model
    [(unit, _)] = lengths.most_common(1)
    bodies = []
    for body in model.bodies:
        X, I = body.joint.placement, body.inertia
        joint = replace(body.joint, placement=Transform(X.E, Vector(tuple(x / unit for x in X.r))))
        inertia = RigidInertia(I.m * unit * unit, I.h * unit, I.I)
        bodies.append(replace(body, joint=joint, inertia=inertia))
    gravity = model.gravity_vector * (1.0 / unit)
    return replace(model, bodies=tuple(bodies), gravity_vector=gravity, frames={}, loops=())


def _offsets(model: Model) -> Iterator[Number]:
    """Yield the absolute values of the nonzero coordinates of each body frame in its parent."""
    for body in model.bodies:
        if body.parent != WORLD:
            count = 2 if _on_fixed_axis(model, body.parent) else 3
            offset = body.joint.placement.r.entries[:count]
            yield from (abs(x) for x in offset if not isinstance(x, Scalar) and x != 0.0)


# Parallel axes ------------------------------------------------------------------------------------
#
# Several parallel joints rotate a body by the sum of their angles relative to its carrier, which is
# the body before the first of these joints. If the carrier rotates about an axis that is fixed in
# the base, its angular velocity has one component, or two components after rotation by the sum of
# angles. A rotation by the sum takes fewer operations than a rotation at each joint. The carrier of
# any other body is its parent.


class Turn(NamedTuple):
    """Motion of a body relative to its carrier, due to parallel joints.

    `carrier` is the body before the first of the parallel joints, `joints` contains the bodies of
    these joints, and `X` is the transform from the carrier to the body. `axis` is the common axis,
    or zero if the carrier is the parent.
    """

    carrier: int
    joints: tuple[int, ...]
    X: Transform
    axis: Vector


def summed_angles(model: Model) -> Model:
    """Return a model in which bodies on parallel axes rotate by the sum of the joint angles.

    The function sets the field `carriers`, from which `turns` computes the motion of the bodies.
    """
    carriers: dict[int, int] = {}
    for i, p, *_ in model.outward():
        if p != WORLD and _turns_on(model, i, carrier := carriers.get(p, model.bodies[p].parent)):
            carriers[i] = carrier
    return replace(model, carriers=carriers)


def _turns_on(model: Model, i: int, carrier: int) -> bool:
    """Return True if the angle of joint i can be added to the angle of the joint before it.

    Both joints must be revolute, with parallel axes. The carrier (the body before them) must be the
    world, or rotate about an axis that is fixed in the base.
    """
    body = model.bodies[i]
    return (
        isinstance(body.joint, Revolute)
        and isinstance(model.bodies[body.parent].joint, Revolute)
        and body.joint.placement.E.matrix().rows[2] == (0.0, 0.0, 1.0)
        and (carrier == WORLD or _on_fixed_axis(model, carrier))
    )


def turns(model: Model, q: Mapping[int, Vector]) -> dict[int, Turn]:
    """Return each body's motion relative to its carrier (`Model.carriers`), or to its parent."""
    found: dict[int, Turn] = {}
    for i, p, joint, _ in model.outward():
        X = joint.transform(q[i])
        found[i] = Turn(p, (i,), X, Vector.zero())
        if i in model.carriers:
            carrier, joints, before, _ = found[p]
            (*first, turned), R = before.E.factors, joint.placement.E.matrix()
            (own,) = joint.motion(q[i]).E.factors
            assert isinstance(turned, Plane)
            assert isinstance(own, Plane)
            summed = turned.then(Plane(2, R[0, 0], R[0, 1])).then(own)
            whole = Transform(Rotation((*first, summed)), before.locate(X.r))
            found[i] = Turn(carrier, (*joints, i), whole, Z)
    return found


# Table of passes ----------------------------------------------------------------------------------


class Pass(NamedTuple):
    """A function that simplifies a model, and a one-line description."""

    what: str
    apply: Callable[[Model], Model]


PASSES: dict[str, Pass] = {
    "frames": Pass("Shift and rotate body frames to make more offsets zero.", sparse_frames),
    "frictionless": Pass(
        "Remove damping and friction, unless dissipation=True.", Model.frictionless
    ),
    "moments": Pass(
        "Move inertia that does not affect a joint to the parent; I_yy becomes 0.",
        partial(equivalent, choice=by_moments),
    ),
    "products": Pass(
        "Move inertia that does not affect a joint to the parent; int z^2 dm becomes 0.",
        partial(equivalent, choice=by_products),
    ),
    "rotors": Pass(
        "Describe rotationally symmetric leaf bodies in axes that do not rotate.", still_rotors
    ),
    "units": Pass("Measure lengths in units of the most frequent offset.", natural_units),
    "parallel-axes": Pass(
        "Rotate bodies on parallel axes by the sum of the angles.", summed_angles
    ),
}
"""All passes, in the order in which they are applied."""


def applied(model: Model, passes: Iterable[str]) -> Model:
    """Apply the named passes to a model in the order of `PASSES`. Rotors are unchanged."""
    wanted, rotors, model = set(passes), model.rotors, model.bare()
    assert wanted <= PASSES.keys(), f"no pass {wanted - PASSES.keys()}"
    for name, each in PASSES.items():
        if name in wanted:
            model = each.apply(model)
    return replace(model, rotors=rotors)
