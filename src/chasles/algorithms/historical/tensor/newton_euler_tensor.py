"""Joint forces for given accelerations, by angular acceleration tensors."""

from chasles.algorithms.tensor.chain import chain
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force
from chasles.mathematics.tensor import Center, euler_from_inertia
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def newton_euler_tensor(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Newton and Euler about the centres of mass (Balafoutis and Patel 1991, algorithm 5.6).

    f, eta: force and moment that a joint transmits, in the axes and about the origin of its body.
    """
    X, S, Omega, _, sdd = chain(model, q, qd, qdd)
    f, eta, tau = {WORLD: Vector.zero()}, {WORLD: Vector.zero()}, {}
    for i, _, _, I in model.outward():
        body = Center.of(I)
        rdd = Omega[i] @ body.r + sdd[i]  # (5.3.7e)
        F = rdd * body.m  # (5.3.7f)
        M = Omega[i].moment(euler_from_inertia(body.I))  # (5.3.7g)
        f[i] = F - f_ext[i].force  # (5.3.8a)
        eta[i] = M + body.r.cross(F) - f_ext[i].moment  # (5.3.8b)
    for i, p, joint, _ in model.inward():
        tau[i] = S[i].T @ Force(eta[i], f[i]) + joint.rotor(qdd[i]) + joint.resistance(qd[i])
        A, s = X[i].E.T, X[i].r
        g = A @ f[i]  # (5.3.8a)
        f[p] += g  # (5.3.8a)
        eta[p] += s.cross(g) + A @ eta[i]  # (5.3.8b)
    return tau
