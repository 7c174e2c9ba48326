"""Joint accelerations for given forces, by assembly with inverse inertias."""

from chasles.mathematics.linear import invert_symmetric
from chasles.mathematics.spatial import Force, InverseInertia, Motion
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def forward_dynamics_assembly_inverse(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Phi^A = Phi_1 - Phi_1 T W T' Phi_1 with W = (T' (Phi_1 + Phi_2) T)^-1.

    Featherstone 2008, table 7.2, variant 1, from the tips to the root: Phi_1 is what has been put
    together of the parent so far, Phi_2 all of the child, lam the forces that the joint transmits.
    The world is a body with Phi = 0.
    """
    X, c, T, Ta, F, U, W, z, qdd = {}, {}, {}, {}, {}, {}, {}, {}, {}
    v, a, f = {WORLD: Motion.zero()}, {WORLD: -model.gravity}, {WORLD: Force.zero()}
    Phi, b = {WORLD: InverseInertia.zero()}, {WORLD: -model.gravity}
    for i, p, joint, I in model.outward():
        X[i], T[i], Ta[i] = joint.transform(q[i]), joint.constraint(q[i]), joint.active(q[i])
        vJ = joint.subspace(q[i]) @ qd[i]
        v[i] = X[i] @ v[p] + vJ
        c[i] = joint.bias(q[i], qd[i]) + v[i].cross(vJ)
        Phi[i] = InverseInertia.of(I)
        b[i] = Phi[i] @ (f_ext[i] - v[i].cross(I @ v[i]))
    for i, p, joint, _ in model.inward():
        f[i] = Ta[i] @ (tau[i] - joint.resistance(qd[i]))
        F[i] = X[i].T @ T[i]
        U[i] = Phi[p] @ F[i]
        W[i] = invert_symmetric(F[i].T @ U[i] + T[i].T @ (Phi[i] @ T[i]))
        b[p] -= Phi[p] @ (X[i].T @ f[i])
        z[i] = T[i].T @ (c[i] + X[i] @ b[p] - b[i] - Phi[i] @ f[i])
        Phi[p] = Phi[p].without(U[i], U[i] @ W[i])
        b[p] -= U[i] @ (W[i] @ z[i])
    for i, p, *_ in model.outward():
        f[i] += T[i] @ (W[i] @ (z[i] + U[i].T @ f[p]))
        f[p] -= X[i].T @ f[i]
        a[i] = Phi[i] @ f[i] + b[i]
        qdd[i] = Ta[i].T @ (a[i] - X[i] @ a[p] - c[i])
    return qdd
