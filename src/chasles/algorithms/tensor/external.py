"""What external forces ask of the joints, for equations of motion that have no forces of links."""

from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force
from chasles.model.model import WORLD, Model
from chasles.model.spaces import Position, Wrenches


def external_efforts(model: Model, q: Position, f_ext: Wrenches) -> dict[int, Vector]:
    """J'F of every joint: the external forces on all bodies beyond it, along its freedoms."""
    f, tau = {WORLD: Force.zero()}, {}
    for i, *_ in model.outward():
        f[i] = f_ext[i]
    for i, p, joint, _ in model.inward():
        tau[i] = joint.subspace(q[i]).T @ f[i]
        f[p] += joint.transform(q[i]).T @ f[i]
    return tau
