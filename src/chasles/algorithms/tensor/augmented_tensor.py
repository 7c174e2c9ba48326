"""Joint forces for given accelerations, by tensors of augmented links."""

from chasles.algorithms.tensor.chain import chain
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force
from chasles.mathematics.tensor import euler_from_inertia
from chasles.model.augmented import augmented
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def augmented_tensor(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """No force of a link is ever formed (Balafoutis and Patel 1991, algorithm 5.7).

    Udd: second rate of the first moment of all bodies beyond a joint about the joint's origin (and
    less the external forces on them); mbar sdd + Udd is the force that the joint transmits, eta the
    moment. Several bodies may follow one, and slide on it: each adds its own terms.
    """
    X, S, Omega, zeta, sdd = chain(model, q, qd, qdd)
    links = augmented(model, X)
    Udd, eta, tau = {WORLD: Vector.zero()}, {WORLD: Vector.zero()}, {}
    for i, *_ in model.outward():
        u, Khat = links[i].h, euler_from_inertia(links[i].I)
        Udd[i] = Omega[i] @ u - f_ext[i].force
        eta[i] = Omega[i].moment(Khat) + u.cross(sdd[i]) - f_ext[i].moment
    for i, p, joint, _ in model.inward():
        mbar = links[i].m
        tau[i] = S[i].T @ Force(eta[i], sdd[i] * mbar + Udd[i])
        tau[i] += joint.rotor(qdd[i]) + joint.resistance(qd[i])
        A, s = X[i].E.T, X[i].r
        t = A @ (Udd[i] + zeta[i] * mbar)
        Udd[p] += t
        eta[p] += s.cross(t) + A @ eta[i]
    return tau
