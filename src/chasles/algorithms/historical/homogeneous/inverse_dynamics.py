"""Joint forces for given accelerations, with everything in the base frame."""

from chasles.algorithms.homogeneous.chain import chain
from chasles.mathematics.homogeneous import Action, action
from chasles.mathematics.linear import Vector
from chasles.model import spaces
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT


def inverse_dynamics(
    model: Model,
    q: spaces.Position,
    qd: spaces.Velocity,
    qdd: spaces.Velocity,
    f_ext: spaces.Wrenches = ABSENT,
) -> spaces.Effort:
    """Phi = skew(H J) of every body; a joint carries those of all bodies beyond it (section 2.3).

    Its force is the pseudo scalar product of that action with its screw.
    """
    M, L, _, H, J = chain(model, q, qd, qdd)
    Phi, tau = {WORLD: Action.zero()}, {}
    for i, *_ in model.outward():
        Phi[i] = action(H[i], J[i]) - M[i].to_first(Action.of(f_ext[i]))
    for i, p, joint, _ in model.inward():
        tau[i] = Vector(tuple(Phi[i].pseudo(l) for l in L[i]))
        tau[i] += joint.rotor(qdd[i]) + joint.resistance(qd[i])
        Phi[p] += Phi[i]
    return tau
