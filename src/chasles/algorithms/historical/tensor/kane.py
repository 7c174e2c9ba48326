"""Joint forces for given accelerations, by Kane's equations."""

from chasles.algorithms.tensor.chain import chain
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force
from chasles.mathematics.tensor import Center
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def kane(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Kane's equations by recursion (Angeles, Ma, Rojas 1989; Balafoutis and Patel 1991, 5.2.36).

    The freedoms of a joint are the partial velocities, at its origin, of all bodies beyond it. N
    and R, the moment and force that move these (less what acts on them), are gathered link by link,
    in link axes. Centres accelerate by the tensor Omega; Euler's equation is that of vectors.
    """
    X, S, Omega, _, sdd = chain(model, q, qd, qdd)
    R, N, tau = {WORLD: Vector.zero()}, {WORLD: Vector.zero()}, {}
    for i, _, _, I in model.outward():
        body, w, wd = Center.of(I), Omega[i].w, Omega[i].wd
        F = (Omega[i] @ body.r + sdd[i]) * body.m  # (5.2.21)
        M = body.I @ wd + w.cross(body.I @ w)  # (5.2.22)
        R[i] = F - f_ext[i].force  # (5.2.37)
        N[i] = M + body.r.cross(F) - f_ext[i].moment  # (5.2.36)
    for i, p, joint, _ in model.inward():
        tau[i] = S[i].T @ Force(N[i], R[i])  # (5.2.36, 5.2.37)
        tau[i] += joint.rotor(qdd[i]) + joint.resistance(qd[i])
        passed = X[i].E.T @ R[i]  # (5.2.37)
        R[p] += passed  # (5.2.37)
        N[p] += X[i].r.cross(passed) + X[i].E.T @ N[i]  # (5.2.36)
    return tau
