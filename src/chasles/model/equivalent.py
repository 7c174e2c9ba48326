"""Dynamic equivalence: fewer inertia parameters for the same motion (Featherstone 2008, 9.7)."""

from collections.abc import Callable
from dataclasses import replace

from chasles.expr import Number
from chasles.mathematics.linear import Symmetric
from chasles.model.model import WORLD, Model

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
        moved = joint.transferable(inertia[i], choice(inertia[i].I))
        inertia[i] = inertia[i] - moved
        if p != WORLD:
            inertia[p] = inertia[p] + joint.placement.T @ moved
    bodies = (replace(body, inertia=inertia[i]) for i, body in enumerate(model.bodies))
    return replace(model, bodies=tuple(bodies))
