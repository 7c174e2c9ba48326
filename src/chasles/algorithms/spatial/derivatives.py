"""Derivatives of inverse and forward dynamics, and linearized models."""

from dataclasses import replace
from itertools import pairwise

from chasles.algorithms.spatial.dynamics import (
    gravity_forces,
    mass_matrix,
    net_forces,
    tree_mass_matrix,
)
from chasles.mathematics.linear import Matrix, Vector, factor_ltdl, solve_ltdl
from chasles.mathematics.products import InverseFactors, beside
from chasles.mathematics.spatial import (
    CoriolisInertia,
    Force,
    Forces,
    Motion,
    Motions,
    RigidInertia,
    Transform,
)
from chasles.model.model import WORLD, Model
from chasles.model.spaces import (
    Blocks,
    Effort,
    InputMatrix,
    JointMatrix,
    Loads,
    Position,
    StateMatrix,
    TreeMatrix,
    Velocity,
    assemble,
    unstack,
)


def load_efforts(model: Model, q: Position, loads: Loads) -> tuple[Effort, JointMatrix]:
    """Return the generalized forces J'f of external loads, and their derivatives with respect to q.

    The derivatives are in the tangent space. J contains the motion subspaces in coordinates of the
    body on which the force f acts. When joint j moves this body by J_j, f changes as its `Load`
    specifies. In body coordinates, the subspaces of joints between the base and j move in the
    opposite direction: -(J_j x J_i).f = J_i.(J_j x f).
    """
    rest, tau = model.at_rest(), model.at_rest()
    K = Blocks()

    def add(i: int, j: int, block: Matrix) -> None:
        K[i, j] = K[i, j] + block if (i, j) in K else block

    for load in loads:
        X, f, beyond = Transform.identity(), load.f, list[tuple[int, Motions]]()
        for i in model.support(load.body):
            joint = model.bodies[i].joint
            J = X @ joint.subspace(q[i])
            slopes = joint.slopes(q[i], rest[i], rest[i]).subspace
            tau[i] += J.T @ f
            changes = Forces(tuple(load.change(d) for d in J.columns))
            add(i, i, J.T @ changes + Matrix(tuple(tuple((X @ dS).T @ f) for dS in slopes)).T)
            for j, Jj in beyond:
                stay = tuple(load.change(d) + d.cross(f) for d in Jj.columns)
                add(i, j, J.T @ Forces(stay))
                add(j, i, Jj.T @ changes)
            beyond.append((i, J))
            X = X @ joint.transform(q[i])
    return tau, K


def inverse_dynamics_derivatives(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Loads = ()
) -> tuple[JointMatrix, JointMatrix, JointMatrix]:
    """Return d tau/d q, d tau/d qd and d tau/d qdd = M (Singh, Russell, Wensing 2022).

    I is the composite inertia, B is twice the Coriolis inertia, and f is the force on a subtree. P
    and A are the rates of a motion subspace that moves with the parent: P = v_p x S and A = a_p x S
    + v_p x P. Changes in the subspace itself are added (`Slopes`, zero for most joints). The
    derivative with respect to q is in the tangent space (see `integrate`).
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
    dq, dqd = Blocks(), Blocks()
    for i, p, joint, _ in model.inward():
        IS, BS = I[i] @ S[i], B[i].transposed(S[i])
        byq = B[i] @ P[i] + I[i] @ A[i]
        byqd = B[i] @ S[i] + I[i] @ R[i]
        turned = Matrix(tuple(tuple(dS.T @ f[i]) for dS in slopes[i].subspace)).T
        dq[i, i] = S[i].T @ byq + turned
        dqd[i, i] = S[i].T @ byqd + joint.resistance_slopes(qd[i])
        I[p] += X[i].T @ I[i]
        B[p] += X[i].T @ B[i]
        f[p] += X[i].T @ f[i]
        byq = byq + Forces(tuple(s.cross(f[i]) for s in S[i].columns))
        for child, j in pairwise(model.support(i)):
            IS, BS, byq, byqd = (X[child].T @ F for F in (IS, BS, byq, byqd))
            dq[j, i], dqd[j, i] = S[j].T @ byq, S[j].T @ byqd
            dq[i, j] = BS.T @ P[j] + IS.T @ A[j]
            dqd[i, j] = BS.T @ S[j] + IS.T @ R[j]
    for place, slope in load_efforts(model, q, f_ext)[1].items():
        dq[place] -= slope
    add_load_slopes(model, dq, dqd)
    return dq, dqd, mass_matrix(model, q)


def add_load_slopes(model: Model, dq: Blocks, dqd: Blocks) -> None:
    """Add the derivatives of passive loads (springs, tendons, fluid etc.) to the given blocks.

    `dq` and `dqd` contain the derivatives of generalized forces with respect to q and qd.
    """
    for blocks, slopes in zip(
        (dq, dqd), model.load_slopes() if model.load_slopes else (), strict=False
    ):
        for place, slope in slopes.items():
            blocks[place] = blocks[place] + slope if place in blocks else slope


def inverse_dynamics_sensitivities(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Loads = ()
) -> tuple[JointMatrix, JointMatrix, JointMatrix]:
    """Return the partial derivatives D0, V0 and P0 in d tau = D0 d qdd + V0 d qd + P0 d q."""
    P0, V0, D0 = inverse_dynamics_derivatives(model, q, qd, qdd, f_ext)
    return D0, V0, P0


def inverse_dynamics_perturbation(
    model: Model,
    q: Position,
    qd: Velocity,
    qdd: Velocity,
    dq: Velocity,
    dqd: Velocity,
    dqdd: Velocity,
) -> Effort:
    """Return the change in joint torques due to small changes dq, dqd and dqdd in the motion.

    See Balafoutis and Patel 1991, section 7.2. A Newton-Euler recursion propagates the changes dv,
    da and df from link to link in O(n). s = S dq is the displacement of a joint. dq is a tangent
    vector (see `integrate`).
    """
    X, S, s, slopes, tau = {}, {}, {}, {}, {}
    v, a, f = {WORLD: Motion.zero()}, {WORLD: -model.gravity}, {WORLD: Force.zero()}
    dv, da, df = {WORLD: Motion.zero()}, {WORLD: Motion.zero()}, {WORLD: Force.zero()}
    for i, p, joint, I in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        slopes[i], s[i] = joint.slopes(q[i], qd[i], qdd[i]), S[i] @ dq[i]
        vp, ap, vJ = X[i] @ v[p], X[i] @ a[p], S[i] @ qd[i]
        v[i] = vp + vJ
        a[i] = ap + S[i] @ qdd[i] + joint.bias(q[i], qd[i]) + v[i].cross(vJ)
        dvJ = S[i] @ dqd[i] + slopes[i].velocity @ dq[i]
        dv[i] = X[i] @ dv[p] + vp.cross(s[i]) + dvJ
        da[i] = X[i] @ da[p] + ap.cross(s[i]) + S[i] @ dqdd[i] + slopes[i].acceleration @ dq[i]
        da[i] = da[i] + slopes[i].bias @ dqd[i] + dv[i].cross(vJ) + v[i].cross(dvJ)
        h = I @ v[i]
        f[i] = I @ a[i] + v[i].cross(h)
        df[i] = I @ da[i] + dv[i].cross(h) + v[i].cross(I @ dv[i])
    for i, p, joint, _ in model.inward():
        turned = Matrix(tuple(tuple(dS.T @ f[i]) for dS in slopes[i].subspace)).T
        tau[i] = S[i].T @ df[i] + turned @ dq[i] + joint.rotor(dqdd[i])
        tau[i] = tau[i] + joint.turning(qd[i]) @ dqd[i] + joint.turning(dqd[i]) @ qd[i]
        f[p] += X[i].T @ f[i]
        df[p] += X[i].T @ (df[i] + s[i].cross(f[i]))
    return tau


def forward_dynamics_derivatives(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Loads = ()
) -> tuple[TreeMatrix, TreeMatrix, TreeMatrix]:
    """Return d qdd/d q, d qdd/d qd and d qdd/d tau = M^-1.

    The first two results are -M^-1 times the derivatives of inverse dynamics at the resulting
    accelerations (Carpentier and Mansard 2018). M^-1 is computed from the sparse factors of M.
    """
    W, P, V = _acceleration_slopes(model, q, qd, tau, f_ext)
    return W @ P, W @ V, W.inverse


def _acceleration_slopes(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Loads
) -> tuple[InverseFactors, Matrix, Matrix]:
    """Return M^-1, and the derivatives of -ID(q, qd, qdd) with respect to q and qd at constant qdd.

    ID is the inverse dynamics. The accelerations qdd are computed from tau.
    """
    order = model.in_tree_order
    L, D = factor_ltdl(tree_mass_matrix(model, q).rows)
    f = net_forces(model, _bias_forces(model, q, qd, f_ext), tau)
    qdd = unstack(model, solve_ltdl(L, D, f), order)
    dq, dqd, _ = inverse_dynamics_derivatives(model, q, qd, model.followed(qdd, 2), f_ext)
    P, V = (Matrix(tuple(map(tuple, assemble(model, d, order)))) for d in (dq, dqd))
    return InverseFactors.of(L, D), -P, -V


def _bias_forces(model: Model, q: Position, qd: Velocity, f_ext: Loads) -> dict[int, Vector]:
    """Return the bias forces, with Coriolis forces computed from their derivatives.

    The bias forces include gravity, dissipation, Coriolis forces, passive and external loads, and
    the effect of prescribed motions. Coriolis forces are quadratic in qd, so they equal half of
    their derivative with respect to qd, times qd (Euler's theorem on homogeneous functions). The
    caller needs the same derivative, so computing the forces from it adds few operations.
    """
    g, h = gravity_forces(model, q), {}
    external, _ = load_efforts(model, q, f_ext)
    for i, _, joint, _ in model.outward():
        h[i] = g[i] - external[i] + joint.losses(qd[i]) + joint.load
    free = replace(model.frictionless(), load_slopes=None)
    _, C, _ = inverse_dynamics_derivatives(free, q, qd, model.at_rest())
    for (i, j), block in C.items():
        h[i] += (block @ qd[j]) * 0.5
    driven = model.undriven(2)
    for (i, j), block in mass_matrix(model, q).items():
        h[i] += block @ driven[j]
    return h


def linearize(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Loads = ()
) -> tuple[StateMatrix, InputMatrix]:
    """Return the state-space matrices A and B in xdot = A x + B u.

    See Balafoutis and Patel 1991, Eq 7.2.3. x is (dq, dqd), where dq is a tangent vector (see
    `integrate`). The top left block of A is therefore -ad(qd), which is zero for joints whose
    configuration space is a vector space.
    """
    W, P, V = _acceleration_slopes(model, q, qd, tau, f_ext)
    order = model.in_tree_order
    drift = assemble(model, {(i, i): model.bodies[i].joint.drift(qd[i]) for i in order}, order)
    one, zero = Matrix.identity(model.nv), Matrix.zero(model.nv, model.nv)
    above = beside(Matrix(tuple(map(tuple, drift))), one).rows
    return replace(W @ beside(P, V), above=above), replace(W.inverse, above=zero.rows)
