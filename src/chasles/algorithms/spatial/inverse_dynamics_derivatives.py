"""Derivatives of joint forces with respect to positions, velocities and accelerations."""

from chasles.algorithms.spatial.load_efforts import load_efforts
from chasles.algorithms.spatial.mass_matrix import mass_matrix
from chasles.mathematics.linear import Matrix
from chasles.mathematics.spatial import CoriolisInertia, Force, Forces, Motion, RigidInertia
from chasles.model.joints import diagonal
from chasles.model.model import WORLD, Model
from chasles.model.spaces import JointMatrix, Loads, Position, Velocity


def inverse_dynamics_derivatives(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Loads = ()
) -> tuple[JointMatrix, JointMatrix, JointMatrix]:
    """d tau / d q, d tau / d qd and d tau / d qdd = M (Singh, Russell, Wensing 2022).

    With composite inertias I, twice the Coriolis inertias B, and forces f of subtrees. P and A are
    the rates of a subspace that is carried by its parent: P = v_p x S, A = a_p x S + v_p x P, to
    which the changes of the subspace itself are added (`Slopes`, zero for most joints). The
    derivative with respect to q is along `integrate`.
    """
    X, S, P, A, R, slopes = {}, {}, {}, {}, {}, {}
    v, a, f = {WORLD: Motion.zero()}, {WORLD: -model.gravity}, {WORLD: Force.zero()}
    I, B = {WORLD: RigidInertia.zero()}, {}
    B[WORLD] = CoriolisInertia.of(I[WORLD], v[WORLD])
    for i, p, joint, inertia in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        vp, ap, vJ = X[i] @ v[p], X[i] @ a[p], S[i] @ qd[i]
        v[i] = vp + vJ
        a[i] = ap + S[i] @ qdd[i] + joint.bias(q[i], qd[i]) + v[i].cross(vJ)
        slopes[i] = joint.slopes(q[i], qd[i], qdd[i])
        N = slopes[i].velocity
        P[i] = vp.cross(S[i])
        A[i] = ap.cross(S[i]) + vp.cross(P[i]) + (v[i] + vp).cross(N) + slopes[i].acceleration
        R[i] = P[i] + v[i].cross(S[i]) + slopes[i].bias
        P[i] = P[i] + N
        I[i], B[i] = inertia, CoriolisInertia.of(inertia, v[i] * 2.0)
        f[i] = inertia @ a[i] + v[i].cross(inertia @ v[i])
    dq: dict[tuple[int, int], Matrix] = {}
    dqd: dict[tuple[int, int], Matrix] = {}
    for i, p, joint, _ in model.inward():
        IS, BS = I[i] @ S[i], B[i].transposed(S[i])
        byq = B[i] @ P[i] + I[i] @ A[i]
        byqd = B[i] @ S[i] + I[i] @ R[i]
        turned = Matrix(tuple(tuple(dS.T @ f[i]) for dS in slopes[i].subspace)).T
        dq[i, i] = S[i].T @ byq + turned
        dqd[i, i] = S[i].T @ byqd + diagonal(joint.damping)
        I[p] += X[i].T @ I[i]
        B[p] += X[i].T @ B[i]
        f[p] += X[i].T @ f[i]
        byq = byq + Forces(tuple(s.cross(f[i]) for s in S[i].columns))
        child = i
        for j in model.support(p):
            IS, BS, byq, byqd = (X[child].T @ F for F in (IS, BS, byq, byqd))
            dq[j, i], dqd[j, i] = S[j].T @ byq, S[j].T @ byqd
            dq[i, j] = BS.T @ P[j] + IS.T @ A[j]
            dqd[i, j] = BS.T @ S[j] + IS.T @ R[j]
            child = j
    for place, slope in load_efforts(model, q, f_ext)[1].items():
        dq[place] -= slope
    return dq, dqd, mass_matrix(model, q)
