"""Mass-matrix and forward-dynamics methods from Balafoutis and Patel (1991), section 6.2."""

from chasles.algorithms.spatial.dynamics import accelerations, net_forces
from chasles.algorithms.tensor.dynamics import (
    augmented_tensor,
    bias_forces_augmented_tensor,
    columns,
)
from chasles.expr import Number, less, select, sqrt
from chasles.mathematics.linear import (
    Matrix,
    Vector,
    diagonal,
    factor_ltl,
    orthogonalize,
    solve_ltdl,
)
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Force, Forces, Motion, Motions, RigidInertia, Transform
from chasles.mathematics.tensor import Center
from chasles.model.model import WORLD, Model
from chasles.model.spaces import (
    ABSENT,
    Blocks,
    Effort,
    InertiaMatrix,
    Position,
    Velocity,
    Wrenches,
    stack,
    unstack,
)


def mass_matrix_unit_acceleration(model: Model, q: Position) -> InertiaMatrix:
    """Compute each column of the mass matrix as the generalized forces for a unit acceleration.

    Velocities and gravity are zero. This is Walker and Orin's first method (1982; Balafoutis and
    Patel 1991, Eq 6.2.4). Forces are computed by algorithm 5.7.
    """
    still, rest = model.weightless(), model.at_rest()
    M = Blocks()
    for i, _, joint, _ in model.outward():
        units = map(Vector, Matrix.identity(joint.nv).rows)
        columns = [augmented_tensor(still, q, rest, rest | {i: unit}) for unit in units]
        for j in model.support(i):
            M[i, j] = Matrix(tuple(tau[j].entries for tau in columns))
            M[j, i] = M[i, j].T
    return M


def mass_matrix_composite_3x3(model: Model, q: Position) -> InertiaMatrix:
    """Compute the mass matrix by Walker and Orin's third method (1982).

    See Balafoutis and Patel 1991, algorithm 6.1. mbar, R and E are the mass, center of mass, and
    inertia about the center of mass of the composite body beyond a joint. f and N are the force,
    and the moment about the center of mass, for a unit acceleration of the joint.
    """
    X = {i: joint.transform(q[i]) for i, _, joint, _ in model.outward()}
    S = {i: joint.subspace(q[i]) for i, _, joint, _ in model.outward()}
    parts = {i: [Center.of(I)] for i, _, _, I in model.outward()} | {WORLD: []}
    F = {}
    for i, p, *_ in model.inward():
        whole = Center.together(parts[i])  # (6.2.8a, 6.2.8b, 6.2.8c)
        mbar, R, E = whole.m, whole.r, whole.I
        forces = []
        for l in S[i].columns:
            f, N = (l.angular.cross(R) + l.linear) * mbar, E @ l.angular  # (6.2.8d, 6.2.8e)
            forces.append(Force(N + R.cross(f), f))  # (6.2.8f, 6.2.8g)
        F[i] = Forces(tuple(forces))
        A, s = X[i].E.T, X[i].r
        parts[p].append(Center(mbar, s + A @ R, A @ E))  # (6.2.8b, 6.2.8c)
    return columns(model, X, S, F)


def mass_matrix_orthogonal_complement(model: Model, q: Position) -> InertiaMatrix:
    """Compute the mass matrix D = T' M T (Angeles and Ma 1988).

    See Balafoutis and Patel 1991, Eq 6.2.10-14. T contains the twists of all bodies for unit joint
    velocities (`centered_twists`). M contains their inertias about the centers of mass, and is
    block diagonal: rotational inertia and mass.
    """
    D, twists = Blocks(), centered_twists(model, q)
    for k, _, joint, I in model.outward():
        body, T = Center.of(I), twists[k]
        M = RigidInertia(body.m, Vector.zero(), body.I)
        for i, left in T.items():
            momenta = M @ left  # (6.2.13)
            for j in (j for j in T if j <= i):
                block = momenta.T @ T[j]  # (6.2.15)
                D[i, j] = D[i, j] + block if (i, j) in D else block  # (6.2.15)
        D[k, k] += diagonal(joint.armature)
    return D | {(j, i): block.T for (i, j), block in D.items() if i != j}


def mass_matrix_factored_complement(model: Model, q: Position) -> InertiaMatrix:
    """Compute the mass matrix D = P' P with P = N T and M = N' N.

    See Angeles and Ma 1988; Balafoutis and Patel 1991, Eq 6.2.15.

    N is constant and triangular, and contains a triangular factor of each body's inertia and the
    square root of its mass.
    """
    D, twists = Blocks(), centered_twists(model, q)
    for k, _, joint, I in model.outward():
        body = Center.of(I)
        N, root = Matrix(tuple(map(tuple, factor_ltl(body.I.matrix().rows)))), sqrt(body.m)
        P = {
            i: Matrix(tuple((*(N @ l.angular), *(l.linear * root)) for l in T.columns))
            for i, T in twists[k].items()
        }  # (6.2.15)
        for i, j in ((i, j) for i in P for j in P if j <= i):
            block = P[i] @ P[j].T  # (6.2.15)
            D[i, j] = D[i, j] + block if (i, j) in D else block  # (6.2.15)
        D[k, k] += diagonal(joint.armature)
    return D | {(j, i): block.T for (i, j), block in D.items() if i != j}


def centered_twists(model: Model, q: Position) -> dict[int, dict[int, Motions]]:
    """Return T: the twists of each body for unit velocities of the joints that move it.

    See Balafoutis and Patel 1991, Eq 6.2.12 and 6.2.14. Twists are at the center of mass, in body
    axes.
    """
    T: dict[int, dict[int, Motions]] = {WORLD: {}}
    centered = {}
    for k, p, joint, I in model.outward():
        X, shift = joint.transform(q[k]), Transform(Rotation(), Center.of(I).r)
        T[k] = {i: X @ twists for i, twists in T[p].items()} | {k: joint.subspace(q[k])}  # (6.2.14)
        centered[k] = {i: shift @ twists for i, twists in T[k].items()}  # (6.2.12)
    return centered


def forward_dynamics_unit_acceleration(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Compute D from the generalized forces for unit accelerations, then solve D qdd = tau - b.

    This is Walker and Orin's second method (1982), which extends their first method: half of D is
    obtained by symmetry (Balafoutis and Patel 1991, Eq 6.2.4).
    """
    D = mass_matrix_unit_acceleration(model, q)
    return accelerations(model, D, bias_forces_augmented_tensor(model, q, qd, f_ext), tau)


def forward_dynamics_composite_3x3(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Compute D by Walker and Orin's third method (1982), then solve D qdd = tau - b.

    See Balafoutis and Patel 1991, algorithm 6.1.
    """
    D = mass_matrix_composite_3x3(model, q)
    return accelerations(model, D, bias_forces_augmented_tensor(model, q, qd, f_ext), tau)


def forward_dynamics_orthogonal_complement(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Solve P'x = tau - b (least norm), then P qdd = x (least squares), without forming P'P.

    This is Angeles and Ma's second method (1988; Balafoutis and Patel 1991, Eq 6.2.16-17). P = N T,
    where T contains the twists of all bodies and N'N is their inertia matrix M. The columns of P
    are orthogonalized from the last to the first: P = Q L and L'(Q'Q) L qdd = tau - b. N itself is
    not needed because only products p'p = t'M t occur, so massless bodies are allowed.
    """
    order = model.in_tree_order
    units = map(Vector, Matrix.identity(model.nv).rows)
    rates = [model.followed(unstack(model, unit, order)) for unit in units]
    T = [_rates(model, q, v) for v in rates]  # (6.2.14)
    L, D = orthogonalize(T, lambda t: _momenta(model, t))  # (6.2.15)
    b = bias_forces_augmented_tensor(model, q, qd, f_ext)
    return unstack(model, solve_ltdl(L, D, net_forces(model, b, tau)), order)  # (6.2.17a, 6.2.17b)


def _rates(model: Model, q: Position, qd: Velocity) -> Vector:
    """Return each body's twist at its center of mass, in body axes, followed by its joint's qd."""
    v, rows = {WORLD: Motion.zero()}, []
    for i, p, joint, I in model.outward():
        v[i] = joint.transform(q[i]) @ v[p] + joint.subspace(q[i]) @ qd[i]
        rows += [*(Transform(Rotation(), Center.of(I).r) @ v[i]), *qd[i]]
    return Vector(tuple(rows))


def _momenta(model: Model, t: Vector) -> Vector:
    """Return M t: for each body, its momentum about its center of mass and its rotor momentum."""
    rows, rest = [], t.entries
    for _, _, joint, I in model.outward():
        twist, qd, rest = rest[:6], rest[6 : 6 + joint.nv], rest[6 + joint.nv :]
        body = Center.of(I)
        M = RigidInertia(body.m, Vector.zero(), body.I)
        rows += [*(M @ Motion.of(*twist)), *joint.rotor(Vector(qd))]
    return Vector(tuple(rows))


_VANISHED = 1e-30
"""Squared residual, relative to its initial value, below which only rounding errors remain.

Further steps of the conjugate gradient method divide by 1 instead of p'Dp, which may be zero.
"""


def forward_dynamics_conjugate_gradient(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Solve D qdd = tau - b by conjugate gradients, with one step per degree of freedom.

    This is Walker and Orin's fourth method (1982; Balafoutis and Patel 1991, section 6.2). D is not
    formed: inverse dynamics at rest and without gravity maps accelerations p to D p. Each residual
    r is made conjugate to all previous directions. The usual short recurrence, which uses only the
    last direction, is equivalent only in exact arithmetic. With rounding errors, the short
    recurrence has an error of 1e-6 for an arm and 1e-2 for a tree after n steps.
    """
    order, rest = model.in_tree_order, model.at_rest()
    still = model.weightless()

    def product(p: Vector) -> Vector:
        qdd = model.followed(unstack(model, p, order))
        return stack(model.efforts(augmented_tensor(still, q, rest, qdd)), order)

    r = net_forces(model, bias_forces_augmented_tensor(model, q, qd, f_ext), tau)
    x, least = Vector.zero(len(r)), r.dot(r) * _VANISHED  # (6.2.16)
    past: list[tuple[Vector, Vector, Number]] = []
    for _ in r:
        p = r
        for e, De, c in past:
            p -= e * (p.dot(De) / c)  # (6.2.16)
        Dp = product(p)
        c = select(less(least, r.dot(r)), p.dot(Dp), 1.0)  # (6.2.16)
        step = p.dot(r) / c  # (6.2.16)
        x, r = x + p * step, r - Dp * step  # (6.2.16)
        past.append((p, Dp, c))
    return unstack(model, x, order)
