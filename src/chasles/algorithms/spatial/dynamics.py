"""Inverse dynamics, the mass matrix and forward dynamics (Featherstone 2008, chapters 5 to 7)."""

from itertools import pairwise

from chasles.mathematics.linear import (
    Matrix,
    Vector,
    diagonal,
    factor_ltdl,
    factor_ltl,
    invert_symmetric,
    solve_ltdl,
    solve_symmetric,
)
from chasles.mathematics.products import InverseFactors
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import (
    ArticulatedInertia,
    CoriolisInertia,
    Force,
    Motion,
    Motions,
    RigidInertia,
    Transform,
)
from chasles.model.model import WORLD, Model
from chasles.model.spaces import (
    ABSENT,
    Blocks,
    Effort,
    InertiaMatrix,
    JointMatrix,
    Position,
    Reactions,
    TreeFactor,
    TreeMatrix,
    TreeVector,
    Velocity,
    Wrenches,
    assemble,
    stack,
    unstack,
)


def inverse_dynamics(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Run the Newton-Euler recursion in body coordinates (Featherstone 2008, table 5.1)."""
    f, S = transmitted_forces(model, q, qd, qdd, f_ext)
    return {
        i: S[i].T @ f[i] + joint.rotor(qdd[i]) + joint.resistance(qd[i])
        for i, _, joint, _ in model.outward()
    }


def transmitted_forces(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> tuple[dict[int, Force], dict[int, Motions]]:
    """Return the force that each joint exerts on its body, and the joint's motion subspace.

    Both are in body coordinates.
    """
    X, S = {}, {}
    v, a, f = {WORLD: Motion.zero()}, {WORLD: -model.gravity}, {WORLD: Force.zero()}
    for i, p, joint, I in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        vJ = S[i] @ qd[i]
        v[i] = X[i] @ v[p] + vJ
        a[i] = X[i] @ a[p] + S[i] @ qdd[i] + joint.bias(q[i], qd[i]) + v[i].cross(vJ)
        f[i] = I @ a[i] + v[i].cross(I @ v[i]) - f_ext[i]
    for i, p, *_ in model.inward():
        f[p] += X[i].T @ f[i]
    return f, S


def joint_reactions(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Reactions:
    """Return the force that each parent exerts on its child, in child axes.

    See Featherstone 2008, section 5.3.
    """
    f, _ = transmitted_forces(model, q, qd, qdd, f_ext)
    at_joint = {}
    for i, body in enumerate(model.bodies):
        on_link = model.frames[body.name].placement @ f[i]
        at_joint[i] = Transform(Rotation(), body.data.child_pose.r) @ on_link
    return at_joint


def newton_euler_vector(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Run the Newton-Euler recursion with classical accelerations.

    The recursion uses three-vectors (Luh, Walker, Paul 1980; Featherstone 2008, table 5.2). In body
    axes, w and wd are the angular velocity and acceleration, and a is the acceleration of the body
    origin minus gravity. Linear velocities are not needed. Bodies have a mass m, a first moment h
    and an inertia about the origin, so inertias regrouped by dynamic equivalence can be used.
    Numbers in comments refer to the equivalent equations in Balafoutis and Patel (1991), algorithm
    5.3.
    """
    X, S = {}, {}
    w, wd, a = {WORLD: Vector.zero()}, {WORLD: Vector.zero()}, {WORLD: -model.gravity_vector}
    f, n = {WORLD: Vector.zero()}, {WORLD: Vector.zero()}
    for i, p, joint, I in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        E, r = X[i].E, X[i].r
        vJ, aJ = S[i] @ qd[i], S[i] @ qdd[i] + joint.bias(q[i], qd[i])
        carried = E @ w[p]  # (5.2.23a)
        w[i] = carried + vJ.angular  # (5.2.23a)
        wd[i] = E @ wd[p] + aJ.angular + w[i].cross(vJ.angular)  # (5.2.23b)
        a[i] = (
            E @ (a[p] + _of_point(w[p], wd[p], r)) + aJ.linear + (w[i] + carried).cross(vJ.linear)
        )  # (5.2.23c)
        f[i] = a[i] * I.m + _of_point(w[i], wd[i], I.h) - f_ext[i].force  # (5.2.23d, 5.2.23e)
        turning = I.I @ wd[i] + w[i].cross(I.I @ w[i])  # (5.2.23f)
        n[i] = turning + I.h.cross(a[i]) - f_ext[i].moment  # (5.2.24b)
    tau = {}
    for i, p, joint, _ in model.inward():
        tau[i] = S[i].T @ Force(n[i], f[i])  # (5.2.24c)
        tau[i] += joint.rotor(qdd[i]) + joint.resistance(qd[i])
        passed = X[i].E.T @ f[i]  # (5.2.24a)
        f[p] += passed  # (5.2.24a)
        n[p] += X[i].E.T @ n[i] + X[i].r.cross(passed)  # (5.2.24b)
    return tau


def _of_point(w: Vector, wd: Vector, r: Vector) -> Vector:
    """Return the acceleration of the body point r relative to the body origin."""
    return wd.cross(r) + w.cross(w.cross(r))


def bias_forces(model: Model, q: Position, qd: Velocity, f_ext: Wrenches = ABSENT) -> Effort:
    """Return the bias forces h in tau = M qdd + h.

    h includes the Coriolis, centrifugal, gravity and external forces (Featherstone 2008, Eq 6.1).
    """
    return newton_euler_vector(model, q, qd, model.undriven(2), f_ext)


def gravity_forces(model: Model, q: Position) -> Effort:
    """Return the generalized forces that balance gravity (Featherstone 2008, Eq 5.12).

    The weight of all bodies beyond a joint is projected onto the motion subspace of the joint. Only
    the mass m and first moment h of each composite body are needed.
    """
    X, a, tau = {}, {WORLD: -model.gravity_vector}, {}
    m, h = {WORLD: 0.0}, {WORLD: Vector.zero()}
    for i, p, joint, I in model.outward():
        X[i] = joint.transform(q[i])
        a[i] = X[i].E @ a[p]
        m[i], h[i] = I.m, I.h
    for i, p, joint, _ in model.inward():
        tau[i] = joint.subspace(q[i]).T @ Force(h[i].cross(a[i]), a[i] * m[i])
        m[p] += m[i]
        h[p] += X[i].E.T @ h[i] + X[i].r * m[i]
    return tau


def coriolis_matrix(model: Model, q: Position, qd: Velocity) -> JointMatrix:
    """Return the Coriolis matrix C, with dM/dt = C + C'.

    C qd is the Coriolis and centrifugal force. The recursion propagates composite inertias and
    composite Coriolis inertias (Echeandia and Wensing 2021).
    """
    X, S, Sdot, v = {}, {}, {}, {WORLD: Motion.zero()}
    I, B = {WORLD: RigidInertia.zero()}, {}
    for i, p, joint, inertia in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        v[i] = X[i] @ v[p] + S[i] @ qd[i]
        Sdot[i] = v[i].cross(S[i]) + joint.subspace_rate(q[i], qd[i])
        I[i], B[i] = inertia, CoriolisInertia.of(inertia, v[i])
    B[WORLD] = CoriolisInertia.of(I[WORLD], v[WORLD])
    C = Blocks()
    for i, p, joint, _ in model.inward():
        F, G, H = I[i] @ Sdot[i] + B[i] @ S[i], I[i] @ S[i], B[i].transposed(S[i])
        C[i, i] = S[i].T @ F + joint.turning(qd[i])
        I[p] += X[i].T @ I[i]
        B[p] += X[i].T @ B[i]
        for child, j in pairwise(model.support(i)):
            F, G, H = X[child].T @ F, X[child].T @ G, X[child].T @ H
            C[j, i] = S[j].T @ F
            C[i, j] = G.T @ Sdot[j] + H.T @ S[j]
    return C


def mass_matrix(model: Model, q: Position) -> InertiaMatrix:
    """Compute the mass matrix by the composite-rigid-body algorithm (Featherstone 2008, table 6.2).

    Armature is added to the diagonal.
    """
    M = Blocks()
    I = {i: inertia for i, _, _, inertia in model.outward()} | {WORLD: RigidInertia.zero()}
    X = {i: joint.transform(q[i]) for i, _, joint, _ in model.outward()}
    S = {i: joint.subspace(q[i]) for i, _, joint, _ in model.outward()}
    for i, p, joint, _ in model.inward():
        F = I[i] @ S[i]
        M[i, i] = S[i].T @ F + diagonal(joint.armature)
        I[p] += X[i].T @ I[i]
        for child, j in pairwise(model.support(i)):
            F = X[child].T @ F
            M[i, j] = F.T @ S[j]
            M[j, i] = M[i, j].T
    return M


def tree_mass_matrix(model: Model, q: Position) -> Matrix:
    """Return the mass matrix in tree order, for which factorization causes no fill-in."""
    return Matrix(tuple(map(tuple, assemble(model, mass_matrix(model, q), model.in_tree_order))))


def ltdl_factors(model: Model, q: Position) -> tuple[TreeFactor, TreeVector]:
    """Return the sparse factors L and D of M = L' D L (Featherstone 2008, table 6.3)."""
    L, D = factor_ltdl(tree_mass_matrix(model, q).rows)
    return Matrix(tuple(map(tuple, L))), Vector(tuple(D))


def ltl_factor(model: Model, q: Position) -> TreeFactor:
    """Return the sparse factor L of M = L' L (Featherstone 2008, table 6.3)."""
    return Matrix(tuple(map(tuple, factor_ltl(tree_mass_matrix(model, q).rows))))


def mass_matrix_inverse(model: Model, q: Position) -> TreeMatrix:
    """Compute M^-1 = L^-1 D^-1 L^-T from the sparse factors (Featherstone 2008, section 6.5)."""
    return InverseFactors.of(*factor_ltdl(tree_mass_matrix(model, q).rows)).inverse


def accelerations(model: Model, M: JointMatrix, h: Effort, tau: Effort) -> dict[int, Vector]:
    """Return qdd for each joint, using the sparse factors of M (Featherstone 2008, chapter 6)."""
    order = model.in_tree_order
    L, D = factor_ltdl(assemble(model, M, order))  # (6.2.16)
    return unstack(model, solve_ltdl(L, D, net_forces(model, h, tau)), order)  # (6.2.16)


def net_forces(model: Model, h: Effort, tau: Effort) -> Vector:
    """Return the generalized forces tau - h as one vector, in tree order."""
    order = model.in_tree_order
    return stack(tau, order) - stack(model.efforts(h), order)  # (6.2.16)


def forward_dynamics(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Compute qdd by the articulated-body algorithm (Featherstone 2008, table 7.1).

    Bias accelerations c and bias forces pA are computed in the second pass, where they are used, so
    that only the velocities are kept between the first two passes.
    """
    X, S, vJ, c, U, D, u = {}, {}, {}, {}, {}, {}, {}
    v, a, qdd = {WORLD: Motion.zero()}, {WORLD: -model.gravity}, {}
    IA, pA = {WORLD: ArticulatedInertia.zero()}, {WORLD: Force.zero()}
    for i, p, joint, I in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        vJ[i] = S[i] @ qd[i]
        v[i] = X[i] @ v[p] + vJ[i]
        IA[i], pA[i] = ArticulatedInertia.of(I), Force.zero()
    for i, p, joint, I in model.inward():
        c[i] = joint.bias(q[i], qd[i]) + v[i].cross(vJ[i])
        pA[i] += v[i].cross(I @ v[i]) - f_ext[i]
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


def forward_dynamics_floating_base(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Compute qdd for a floating base by the articulated-body algorithm.

    See Featherstone 2008, table 9.4. Accelerations are relative to free fall, so gravity is added
    only to the base, at the end. Instead of U and u, the quantities K = U D^-1 and D^-1 u are kept
    for each joint, which needs fewer operations.
    """
    (b, _, root, I), *outward = model.outward()
    X, S, c, K, D, u, qdd = {}, {b: root.subspace(q[b])}, {}, {}, {}, {}, {}
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
        U = IA[i] @ S[i]
        D[i] = S[i].T @ U + diagonal(joint.armature)
        u[i] = solve_symmetric(D[i], tau[i] - joint.resistance(qd[i]) - S[i].T @ pA[i])
        K[i] = U @ invert_symmetric(D[i])
        Ia = IA[i].without(U, K[i])
        IA[p] += X[i].T @ Ia
        pA[p] += X[i].T @ (pA[i] + Ia @ c[i] + U @ u[i])
    g = Vector(tuple(root.transform(q[b]) @ model.gravity))
    D[b] = S[b].T @ (IA[b] @ S[b]) + diagonal(root.armature)
    u[b] = tau[b] - root.resistance(qd[b]) - root.rotor(g) - S[b].T @ pA[b]
    beyond = solve_symmetric(D[b], u[b])
    a = {b: Motion.of(*beyond)}
    for i, p, *_ in outward:
        a[i] = X[i] @ a[p] + c[i]
        qdd[i] = u[i] - K[i].T @ a[i]
        a[i] += S[i] @ qdd[i]
    return qdd | {b: beyond + g}
