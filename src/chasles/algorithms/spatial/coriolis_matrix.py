"""A Coriolis matrix."""

from chasles.mathematics.linear import Matrix
from chasles.mathematics.spatial import CoriolisInertia, Motion, RigidInertia
from chasles.model.model import WORLD, Model
from chasles.model.spaces import JointMatrix, Position, Velocity


def coriolis_matrix(model: Model, q: Position, qd: Velocity) -> JointMatrix:
    """C with C qd the Coriolis and centrifugal forces and dM/dt = C + C'.

    Composite inertias and composite Coriolis inertias (Echeandia and Wensing 2021).
    """
    X, S, Sdot, v = {}, {}, {}, {WORLD: Motion.zero()}
    I, B = {WORLD: RigidInertia.zero()}, {}
    for i, p, joint, inertia in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        v[i] = X[i] @ v[p] + S[i] @ qd[i]
        Sdot[i] = v[i].cross(S[i]) + joint.subspace_rate(q[i], qd[i])
        I[i], B[i] = inertia, CoriolisInertia.of(inertia, v[i])
    B[WORLD] = CoriolisInertia.of(I[WORLD], v[WORLD])
    C: dict[tuple[int, int], Matrix] = {}
    for i, p, *_ in model.inward():
        F, G, H = I[i] @ Sdot[i] + B[i] @ S[i], I[i] @ S[i], B[i].transposed(S[i])
        C[i, i] = S[i].T @ F
        I[p] += X[i].T @ I[i]
        B[p] += X[i].T @ B[i]
        child = i
        for j in model.support(p):
            F, G, H = X[child].T @ F, X[child].T @ G, X[child].T @ H
            C[j, i] = S[j].T @ F
            C[i, j] = G.T @ Sdot[j] + H.T @ S[j]
            child = j
    return C
