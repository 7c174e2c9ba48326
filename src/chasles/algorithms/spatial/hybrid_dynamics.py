"""Hybrid dynamics, with known forces at some joints and known accelerations at other joints."""

from chasles.algorithms.spatial.dynamics import mass_matrix, newton_euler_vector
from chasles.mathematics.linear import (
    Vector,
    diagonal,
    factor_ltdl,
    invert_symmetric,
    solve_ltdl,
    solve_symmetric,
)
from chasles.mathematics.spatial import ArticulatedInertia, Force, Motion
from chasles.model.model import WORLD, Model
from chasles.model.spaces import (
    ABSENT,
    Known,
    Mixed,
    Position,
    Velocity,
    Wrenches,
    assemble,
    stack,
    unstack,
)


def hybrid_dynamics(
    model: Model, q: Position, qd: Velocity, given: Mixed, f_ext: Wrenches = ABSENT, *, known: Known
) -> Mixed:
    """Run the hybrid articulated-body algorithm (Featherstone 2008, tables 9.2 and 9.3).

    A joint with known acceleration transmits the full articulated inertia to its parent, and its
    acceleration is included in the bias c.
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


def hybrid_dynamics_mass_matrix(
    model: Model, q: Position, qd: Velocity, given: Mixed, f_ext: Wrenches = ABSENT, *, known: Known
) -> Mixed:
    """Compute hybrid dynamics with a block of the mass matrix (Featherstone 2008, Eq 9.1 to 9.4).

    Solve H11 qdd1 = tau1 - C'1, then compute tau2 = C'2 + H21 qdd1. Index 1 denotes joints with
    known forces, and index 2 denotes joints with known accelerations. C' are the generalized forces
    for the known accelerations if all unknown accelerations are zero. H21 qdd1 is computed by
    inverse dynamics, so only the block H11 of M is needed. The compiler removes unused entries, so
    the conditions in Featherstone 2008, table 9.1, are not needed. The sparse factors of H11 have
    no fill-in, so the reduced parent array is not needed.
    """
    free = [i for i in model.in_tree_order if i not in known]
    still = {i: Vector.zero(model.bodies[i].joint.nv) for i in model.movers}
    chosen = still | {i: given[i] for i in known}
    C = model.efforts(newton_euler_vector(model, q, qd, model.followed(chosen, 2), f_ext))
    H11 = assemble(model, mass_matrix(model, q), free)
    forces = stack(given, free) - stack(C, free)
    qdd = unstack(model, solve_ltdl(*factor_ltdl(H11), forces), free)
    moved = model.followed(still | qdd)
    weightless = model.weightless()
    added = model.efforts(newton_euler_vector(weightless, q, model.at_rest(), moved))
    return qdd | {i: C[i] + added[i] for i in known}


def hybrid_dynamics_floating_base(
    model: Model, q: Position, qd: Velocity, given: Mixed, f_ext: Wrenches = ABSENT, *, known: Known
) -> Mixed:
    """Compute the base acceleration and joint torques for known joint accelerations.

    See Featherstone 2008, Eq 9.18-9.25, table 9.6. First, f is computed as the force required by
    each subtree with the base in free fall. Then the base acceleration follows from the composite
    inertia of the whole robot, and every subtree accelerates with the base.
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
