"""Accelerations of a floating base and of the joints on it, for given forces."""

from chasles.mathematics.linear import Vector, invert_symmetric, solve_symmetric
from chasles.mathematics.spatial import ArticulatedInertia, Motion
from chasles.model.joints import diagonal
from chasles.model.model import Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def forward_dynamics_floating_base(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Articulated bodies on a base that no joint holds (Featherstone 2008, table 9.4).

    Accelerations are those beyond free fall, so gravity is added to the base alone, at the end.
    """
    (b, _, root, I), *outward = model.outward()
    X, S, c, U, D, u, qdd = {}, {b: root.subspace(q[b])}, {}, {}, {}, {}, {}
    v = {b: S[b] @ qd[b]}
    IA, pA = {b: ArticulatedInertia.of(I)}, {b: v[b].cross(I @ v[b]) - f_ext[b]}
    for i, p, joint, I in outward:
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        vJ = S[i] @ qd[i]
        v[i] = X[i] @ v[p] + vJ
        c[i] = joint.bias(q[i], qd[i]) + v[i].cross(vJ)
        IA[i] = ArticulatedInertia.of(I)
        pA[i] = v[i].cross(I @ v[i]) - f_ext[i]
    for i, p, joint, _ in reversed(outward):
        U[i] = IA[i] @ S[i]
        D[i] = S[i].T @ U[i] + diagonal(joint.armature)
        u[i] = tau[i] - joint.resistance(qd[i]) - S[i].T @ pA[i]
        K = U[i] @ invert_symmetric(D[i])
        Ia = IA[i].without(U[i], K)
        IA[p] += X[i].T @ Ia
        pA[p] += X[i].T @ (pA[i] + Ia @ c[i] + K @ u[i])
    g = Vector(tuple(root.transform(q[b]) @ model.gravity))
    D[b] = S[b].T @ (IA[b] @ S[b]) + diagonal(root.armature)
    u[b] = tau[b] - root.resistance(qd[b]) - root.rotor(g) - S[b].T @ pA[b]
    beyond = solve_symmetric(D[b], u[b])
    a = {b: Motion.of(*beyond)}
    for i, p, *_ in outward:
        a[i] = X[i] @ a[p] + c[i]
        qdd[i] = solve_symmetric(D[i], u[i] - U[i].T @ a[i])
        a[i] += S[i] @ qdd[i]
    return qdd | {b: beyond + g}
