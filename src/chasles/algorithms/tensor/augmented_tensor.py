"""Joint forces for given accelerations, by tensors of augmented links."""

from collections.abc import Mapping

from chasles.algorithms.tensor.augmented import augmented
from chasles.algorithms.tensor.chain import Chain, chain
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force, RigidInertia
from chasles.mathematics.tensor import euler_from_inertia
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def augmented_tensor(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """No force of a link is ever formed (Balafoutis and Patel 1991, algorithm 5.7)."""
    moving = chain(model, q, qd, qdd)
    links, sdd = augmented(model, moving.X), moving.sdd
    Udd, eta = transmitted(model, moving, links, f_ext)
    tau = {}
    for i, _, joint, _ in model.outward():
        F = Force(eta[i], sdd[i] * links[i].m + Udd[i])
        tau[i] = moving.S[i].T @ F + joint.rotor(qdd[i]) + joint.resistance(qd[i])  # (5.3.46c)
    return tau


def transmitted(
    model: Model, moving: Chain, links: Mapping[int, RigidInertia], f_ext: Wrenches = ABSENT
) -> tuple[dict[int, Vector], dict[int, Vector]]:
    """Udd and eta of each joint, in body axes and about the body's origin; links: augmented ones.

    Udd: second rate of the first moment of all bodies beyond the joint about its origin (and less
    the external forces on them); mbar sdd + Udd is the force that the joint transmits, eta the
    moment. Several bodies may follow one, and slide on it: each adds its own terms.
    """
    X, _, Omega, zeta, sdd = moving
    Udd, eta = {WORLD: Vector.zero()}, {WORLD: Vector.zero()}
    for i, *_ in model.outward():
        u, Khat = links[i].h, euler_from_inertia(links[i].I)
        mu = Omega[i].moment(Khat)  # (5.3.45f)
        Udd[i] = Omega[i] @ u - f_ext[i].force  # (5.3.46a)
        eta[i] = mu + u.cross(sdd[i]) - f_ext[i].moment  # (5.3.46b)
    for i, p, *_ in model.inward():
        A, s = X[i].E.T, X[i].r
        t = A @ (Udd[i] + zeta[i] * links[i].m)  # (5.3.46a)
        Udd[p] += t  # (5.3.46a)
        eta[p] += s.cross(t) + A @ eta[i]  # (5.3.46b)
    return Udd, eta
