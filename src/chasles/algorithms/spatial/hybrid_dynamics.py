"""Joint forces where accelerations are known, and accelerations where forces are."""

from chasles.mathematics.linear import invert_symmetric, solve_symmetric
from chasles.mathematics.spatial import ArticulatedInertia, Force, Motion
from chasles.model.joints import diagonal
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Mixed, Position, Velocity, Wrenches


def hybrid_dynamics(
    model: Model,
    q: Position,
    qd: Velocity,
    given: Mixed,
    f_ext: Wrenches = ABSENT,
    *,
    known: frozenset[int] = frozenset(),
) -> Mixed:
    """Articulated bodies, some with given acceleration (Featherstone 2008, tables 9.2 and 9.3).

    A joint of known acceleration has no freedom left: it passes on the whole inertia of its body,
    and its acceleration is part of the bias c.
    """
    X, S, c, U, D, u, found = {}, {}, {}, {}, {}, {}, {}
    v, a = {WORLD: Motion.zero()}, {WORLD: -model.gravity}
    IA, pA = {WORLD: ArticulatedInertia.zero()}, {WORLD: Force.zero()}
    for i, p, joint, I in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        vJ = S[i] @ qd[i]
        v[i] = X[i] @ v[p] + vJ
        c[i] = joint.bias(q[i], qd[i]) + v[i].cross(vJ)
        if i in known:
            c[i] += S[i] @ given[i]
        IA[i] = ArticulatedInertia.of(I)
        pA[i] = v[i].cross(I @ v[i]) - f_ext[i]
    for i, p, joint, _ in model.inward():
        Ia, pa = IA[i], pA[i]
        if i not in known:
            U[i] = IA[i] @ S[i]
            D[i] = S[i].T @ U[i] + diagonal(joint.armature)
            u[i] = given[i] - joint.resistance(qd[i]) - S[i].T @ pA[i]
            K = U[i] @ invert_symmetric(D[i])
            Ia, pa = IA[i].without(U[i], K), pA[i] + K @ u[i]
        IA[p] += X[i].T @ Ia
        pA[p] += X[i].T @ (pa + Ia @ c[i])
    for i, p, joint, _ in model.outward():
        a[i] = X[i] @ a[p] + c[i]
        if i in known:
            f = IA[i] @ a[i] + pA[i]
            found[i] = S[i].T @ f + joint.rotor(given[i]) + joint.resistance(qd[i])
        else:
            found[i] = solve_symmetric(D[i], u[i] - U[i].T @ a[i])
            a[i] += S[i] @ found[i]
    return found
