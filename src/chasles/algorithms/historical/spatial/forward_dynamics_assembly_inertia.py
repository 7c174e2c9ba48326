"""Joint accelerations for given forces, by assembly with inertias and what joints forbid."""

from chasles.mathematics.linear import invert_symmetric
from chasles.mathematics.spatial import ArticulatedInertia, Force, InverseInertia, Motion
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def forward_dynamics_assembly_inertia(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """I^A = I_1 + T W T' with W = (T' I_2^-1 T)^-1 (Featherstone 2008, table 7.2, variant 2).

    T are the forces that a joint transmits, instead of the motions S that it allows.
    """
    X, c, T, Ta, Phi, W, z, f, qdd = {}, {}, {}, {}, {}, {}, {}, {}, {}
    v, a = {WORLD: Motion.zero()}, {WORLD: -model.gravity}
    IA, pA = {WORLD: ArticulatedInertia.zero()}, {WORLD: Force.zero()}
    for i, p, joint, I in model.outward():
        X[i], T[i], Ta[i] = joint.transform(q[i]), joint.constraint(q[i]), joint.active(q[i])
        vJ = joint.subspace(q[i]) @ qd[i]
        v[i] = X[i] @ v[p] + vJ
        c[i] = joint.bias(q[i], qd[i]) + v[i].cross(vJ)
        IA[i] = ArticulatedInertia.of(I)
        pA[i] = v[i].cross(I @ v[i]) - f_ext[i]
    for i, p, joint, _ in model.inward():
        Phi[i] = InverseInertia.of_articulated(IA[i])
        W[i] = invert_symmetric(T[i].T @ (Phi[i] @ T[i]))
        f[i] = Ta[i] @ (tau[i] - joint.resistance(qd[i]))
        z[i] = T[i].T @ (c[i] - Phi[i] @ (f[i] - pA[i]))
        F = X[i].T @ T[i]
        IA[p] = IA[p].without(F, F @ -W[i])
        pA[p] += X[i].T @ f[i] + F @ (W[i] @ z[i])
    for i, p, *_ in model.outward():
        carried = X[i] @ a[p]
        f[i] += T[i] @ (W[i] @ (z[i] + T[i].T @ carried))
        a[i] = Phi[i] @ (f[i] - pA[i])
        qdd[i] = Ta[i].T @ (a[i] - carried - c[i])
    return qdd
