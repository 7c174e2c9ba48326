"""Joint forces for given accelerations, with everything in the frames of the links."""

from chasles.algorithms.homogeneous.chain import along, screws
from chasles.mathematics.homogeneous import (
    Acceleration,
    Action,
    Inertia,
    Position,
    Velocity,
    action,
)
from chasles.mathematics.linear import Vector
from chasles.model import spaces
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT


def inverse_dynamics_link(
    model: Model,
    q: spaces.Position,
    qd: spaces.Velocity,
    qdd: spaces.Velocity,
    f_ext: spaces.Wrenches = ABSENT,
) -> spaces.Effort:
    """The same equations by the rules for a change of frame: J and L stay constant (section 2.3).

    W and H go out from link to link, Phi comes back.
    """
    M, L, tau = {}, {}, {}
    W, H = {WORLD: Velocity.zero()}, {WORLD: Acceleration.uniform(-model.gravity_vector)}
    Phi = {WORLD: Action.zero()}
    for i, p, joint, I in model.outward():
        M[i], L[i] = Position.of(joint.transform(q[i])), screws(joint, q[i])
        moving = along(L[i], qd[i])
        rate = along(L[i], qdd[i]) + Velocity.of(joint.bias(q[i], qd[i]))
        carried = M[i].to_second(W[p])
        W[i] = carried + moving
        H[i] = M[i].to_second(H[p]).after(carried, Acceleration.of(moving, rate), moving)
        Phi[i] = action(H[i], Inertia.of(I)) - Action.of(f_ext[i])
    for i, p, joint, _ in model.inward():
        tau[i] = Vector(tuple(Phi[i].pseudo(l) for l in L[i]))
        tau[i] += joint.rotor(qdd[i]) + joint.resistance(qd[i])
        Phi[p] += M[i].to_first(Phi[i])
    return tau
