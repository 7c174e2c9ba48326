"""Dynamic equivalence: fewer inertia parameters for the same motion (Featherstone 2008, 9.7)."""

import math
from collections.abc import Callable
from dataclasses import replace

from chasles.expr import Number, Scalar
from chasles.mathematics.linear import Symmetric
from chasles.mathematics.spatial import RigidInertia
from chasles.model.model import WORLD, Model

_ROUNDING = 1e-14
"""Relative: a few rounded sums and differences of moments."""

Choice = Callable[[Symmetric], Number]
"""How much of a rotational inertia about z to move: any amount k of diag(k, k, 0) may go."""


def by_moments(I: Symmetric) -> Number:
    """So that the moment I_yy vanishes, for algorithms that use moments of inertia."""
    return I.yy


def by_products(I: Symmetric) -> Number:
    """So that the integral of z z dm vanishes, for those that use x x' dm (4x4 matrices)."""
    return 0.5 * (I.xx + I.yy - I.zz)


def equivalent(model: Model, choice: Choice = by_moments) -> Model:
    """A model with the same equation of motion and more zeros among its inertias.

    From the tips inward, the part of a body's inertia that its joint does not feel moves to the
    parent. Joint forces and accelerations stay the same; reactions, momentum, energy and centre of
    mass do not, so only the equation of motion may be computed from it. Bodies may come out with
    zero or negative mass.
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
    """Whether an inertia stays the same when it turns about z."""
    x, y, _ = inertia.h
    I = inertia.I
    if any(isinstance(number, Scalar) for number in (x, y, *I)):
        return False
    return x == y == I.xy == I.xz == I.yz == 0.0 and I.xx == I.yy


def _flattened(inertia: RigidInertia) -> RigidInertia:
    """With I_zz = I_xx + I_yy exact where it holds to rounding: then no z z dm is left at all."""
    I = inertia.I
    if any(isinstance(x, Scalar) for x in I):
        return inertia
    if not math.isclose(I.xx + I.yy, I.zz, rel_tol=_ROUNDING):
        return inertia
    rest = I.zz - I.xx
    if I.yy != 0.0 and I.xx + rest == I.zz:  # keep I_zz, which the joint feels
        return replace(inertia, I=replace(I, yy=rest))
    return replace(inertia, I=replace(I, zz=I.xx + I.yy))
