"""Joint accelerations for given forces."""

from chasles.mathematics.linear import solve_symmetric
from chasles.mathematics.spatial import ArticulatedInertia, Force, Motion
from chasles.model.joints import diagonal
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def forward_dynamics(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Articulated bodies (Featherstone 2008, table 7.1)."""
    X, S, c, U, D, u = {}, {}, {}, {}, {}, {}
    v, a, qdd = {WORLD: Motion.zero()}, {WORLD: -model.gravity}, {}
    IA, pA = {WORLD: ArticulatedInertia.zero()}, {WORLD: Force.zero()}
    for i, p, joint, I in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        vJ = S[i] @ qd[i]
        v[i] = X[i] @ v[p] + vJ
        c[i] = joint.bias(q[i], qd[i]) + v[i].cross(vJ)
        IA[i] = ArticulatedInertia.of(I)
        pA[i] = v[i].cross(I @ v[i]) - f_ext[i]
    for i, p, joint, _ in model.inward():
        U[i] = IA[i] @ S[i]
        D[i] = S[i].T @ U[i] + diagonal(joint.armature)
        u[i] = tau[i] - joint.resistance(qd[i]) - S[i].T @ pA[i]
        K = U[i].over(D[i])
        Ia = IA[i].without(U[i], K)
        IA[p] += X[i].T @ Ia
        pA[p] += X[i].T @ (pA[i] + Ia @ c[i] + K @ u[i])
    for i, p, *_ in model.outward():
        a[i] = X[i] @ a[p] + c[i]
        qdd[i] = solve_symmetric(D[i], u[i] - U[i].T @ a[i])
        a[i] += S[i] @ qdd[i]
    return qdd
