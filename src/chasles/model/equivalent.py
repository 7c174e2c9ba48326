"""Dynamic equivalence: fewer inertia parameters for the same motion (Featherstone 2008, 9.7)."""

from dataclasses import replace

from chasles.model.model import WORLD, Model


def equivalent(model: Model) -> Model:
    """A model with the same equation of motion and more zeros among its inertias.

    From the tips inward, the part of a body's inertia that its joint does not feel moves to the
    parent. Joint forces and accelerations stay the same; reactions, momentum, energy and centre of
    mass do not, so only the equation of motion may be computed from it. Bodies may come out with
    zero or negative mass.
    """
    inertia = {i: I for i, _, _, I in model.outward()}
    for i, p, joint, _ in model.inward():
        moved = joint.transferable(inertia[i])
        inertia[i] = inertia[i] - moved
        if p != WORLD:
            inertia[p] = inertia[p] + joint.placement.T @ moved
    bodies = (replace(body, inertia=inertia[i]) for i, body in enumerate(model.bodies))
    return replace(model, bodies=tuple(bodies))
