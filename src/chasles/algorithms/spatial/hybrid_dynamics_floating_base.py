"""The acceleration of a floating base and the joint forces, for given joint accelerations."""

from chasles.mathematics.linear import Vector, solve_symmetric
from chasles.mathematics.spatial import Motion
from chasles.model.joints import diagonal
from chasles.model.model import Model
from chasles.model.spaces import ABSENT, Mixed, Position, Velocity, Wrenches


def hybrid_dynamics_floating_base(
    model: Model,
    q: Position,
    qd: Velocity,
    given: Mixed,
    f_ext: Wrenches = ABSENT,
    *,
    known: frozenset[int] = frozenset(),
) -> Mixed:
    """Composite bodies on a base that no joint holds (Featherstone 2008, Eq 9.18 to 9.25, table
    9.6); all joints but the base's are known.

    f is first what each subtree would need with the base in free fall; the base then accelerates
    so that nothing is missing, and every subtree with it.
    """
    (b, _, root, I), *outward = model.outward()
    qdd = model.followed({i: given[i] for i in known} | {b: Vector.zero(root.nv)}, 2)
    X, S, tau = {}, {b: root.subspace(q[b])}, {}
    v, a, Ic = {b: S[b] @ qd[b]}, {b: Motion.zero()}, {b: I}
    f = {b: v[b].cross(I @ v[b]) - f_ext[b]}
    for i, p, joint, I in outward:
        X[i], S[i], Ic[i] = joint.transform(q[i]), joint.subspace(q[i]), I
        vJ = S[i] @ qd[i]
        v[i] = X[i] @ v[p] + vJ
        a[i] = X[i] @ a[p] + S[i] @ qdd[i] + joint.bias(q[i], qd[i]) + v[i].cross(vJ)
        f[i] = I @ a[i] + v[i].cross(I @ v[i]) - f_ext[i]
    for i, p, *_ in reversed(outward):
        Ic[p] += X[i].T @ Ic[i]
        f[p] += X[i].T @ f[i]
    g = Vector(tuple(root.transform(q[b]) @ model.gravity))
    D = S[b].T @ (Ic[b] @ S[b]) + diagonal(root.armature)
    u = given[b] - root.resistance(qd[b]) - root.rotor(g) - S[b].T @ f[b]
    beyond = solve_symmetric(D, u)
    a0 = {b: Motion.of(*beyond)}
    for i, p, joint, _ in outward:
        a0[i] = X[i] @ a0[p]
        tau[i] = S[i].T @ (Ic[i] @ a0[i] + f[i]) + joint.rotor(qdd[i]) + joint.resistance(qd[i])
    return model.efforts(tau) | {b: beyond + g}
