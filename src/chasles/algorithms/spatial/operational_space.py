"""Operational-space inertia and velocity (Featherstone 2008, chapters 7 and 9)."""

from itertools import combinations_with_replacement, product

from chasles.algorithms.spatial.dynamics import tree_mass_matrix
from chasles.algorithms.spatial.kinematics import At, Axes, Viewpoint, body_transforms, jacobian
from chasles.expr import Number
from chasles.mathematics.linear import (
    Matrix,
    Vector,
    diagonal,
    factor_ltdl,
    invert_symmetric,
    solve_ltdl,
    symmetric_products,
)
from chasles.mathematics.spatial import (
    ArticulatedInertia,
    Force,
    Motion,
    Motions,
    RigidInertia,
    Transform,
)
from chasles.model.model import WORLD, Frame, Handles, Model, each_of
from chasles.model.spaces import Jacobian, Position, SpatialMatrix, stack


def operational_inertia_inverse(
    model: Model, q: Position, *, frame: Handles, axes: Axes = "world", at: At = "frame"
) -> SpatialMatrix:
    """Compute the inverse operational-space inertia J M^-1 J' by factoring the mass matrix M.

    See Featherstone 2008, Eq 7.5 to 7.14. For several frames, J contains the Jacobians of all
    frames.
    """
    rows = [row for one in each_of(frame) for row in _rows(model, q, one, axes, at)]
    tau = [stack(model.efforts(row), model.in_tree_order) for row in rows]
    L, D = factor_ltdl(tree_mass_matrix(model, q).rows)
    return symmetric_products(tau, [solve_ltdl(L, D, forces) for forces in tau])


def _rows(model: Model, q: Position, frame: Frame, axes: Axes, at: At) -> list[dict[int, Vector]]:
    """Return the six rows of a frame's Jacobian.

    Each row is a dictionary that maps each body to the entries for its joint.
    """
    J = jacobian(model, q, frame=frame, axes=axes, at=at)
    return [
        {i: Vector(tuple(tuple(m)[k] for m in S.columns)) for i, S in J.items()} for k in range(6)
    ]


def operational_inertia_inverse_propagation(
    model: Model, q: Position, *, frame: Handles, axes: Axes = "world", at: At = "frame"
) -> SpatialMatrix:
    """Compute the inverse operational-space inertia by propagating unit wrenches to the base.

    The result is Phi = J M^-1 J'. A unit wrench f starts at each frame. Each joint between a frame
    and the base adds u' D^-1 u to Phi, where u = S' f. The wrench transmitted to the parent is
    f - U D^-1 u, with U and D as in the articulated-body algorithm (Featherstone 2008, section
    7.2.2; Kreutz-Delgado, Jain, Rodriguez 1992).
    """
    X, S, U, W = {}, {}, {}, {}
    IA = {WORLD: ArticulatedInertia.zero()}
    for i, _, joint, I in model.outward():
        X[i], S[i], IA[i] = joint.transform(q[i]), joint.subspace(q[i]), ArticulatedInertia.of(I)
    for i, p, joint, _ in model.inward():
        U[i] = IA[i] @ S[i]
        W[i] = invert_symmetric(S[i].T @ U[i] + diagonal(joint.armature))
        IA[p] += X[i].T @ IA[i].without(U[i], U[i] @ W[i])
    f: dict[int, dict[int, Force]] = {i: {} for i in IA}
    for one in each_of(frame):
        known = sum(map(len, f.values()))
        f[one.body] |= enumerate(_unit_wrenches(model, q, one, axes, at), start=known)
    n = range(sum(map(len, f.values())))
    Phi: dict[tuple[int, int], Number] = dict.fromkeys(product(n, n), 0.0)
    for i, p, *_ in model.inward():
        u = {r: S[i].T @ wrench for r, wrench in f[i].items()}
        y = {r: W[i] @ feel for r, feel in u.items()}
        for r, c in combinations_with_replacement(sorted(u), 2):
            Phi[r, c] = Phi[c, r] = Phi[r, c] + u[r].dot(y[c])
        f[p] |= {r: X[i].T @ (wrench - U[i] @ y[r]) for r, wrench in f[i].items()}
    return Matrix(tuple(tuple(Phi[r, c] for c in n) for r in n))


def _unit_wrenches(model: Model, q: Position, frame: Frame, axes: Axes, at: At) -> list[Force]:
    """Return the six unit wrenches at the frame, in the coordinates of its body.

    Wrench k is dual to component k of the frame motion in the selected axes: its power equals that
    component for every motion of the body.
    """
    X = body_transforms(model, q)[frame.body]
    view = Viewpoint.of(frame.placement @ X, axes, at)
    units = Motions(tuple(Motion.of(*(float(j == k) for j in range(6))) for k in range(6)))
    seen = [tuple(view.turned(m)) for m in view.from_body(X, units).columns]
    return [Force.of(*(m[k] for m in seen)) for k in range(6)]


def generalized_jacobian(
    model: Model, q: Position, *, frame: Frame, axes: Axes = "world", at: At = "frame"
) -> Jacobian:
    """Return the Jacobian J_i - J_0 I_0^-1 F_i at zero momentum (Featherstone 2008, example 9.4).

    In base coordinates, I_0 and F map the velocities of the base and the joints to the momentum I_0
    v_0 + F qd. If the base is fixed, the result is the ordinary Jacobian.
    """
    b, X, S = model.base, {}, {WORLD: Motions(())}
    Xb, Ic, J = {b: Transform.identity()}, {WORLD: RigidInertia.zero()}, {WORLD: Motions(())}
    for i, _, joint, I in model.outward():
        X[i], S[i], Ic[i] = joint.transform(q[i]), joint.subspace(q[i]), I
        J[i] = Motions((Motion.zero(),) * joint.nv)
    J |= jacobian(model, q, frame=frame, axes=axes, at=at)
    for i, p, *_ in model.inward():
        Ic[p] += X[i].T @ Ic[i]
    recoil = -invert_symmetric(S[b].T @ (Ic[b] @ S[b]))
    result = {}
    for i, p, *_ in (step for step in model.outward() if step[0] != b):
        Xb[i] = X[i] @ Xb[p]
        F = Xb[i].T @ (Ic[i] @ S[i])
        result[i] = J[i] + Motions(tuple(J[b] @ (recoil @ (S[b].T @ f)) for f in F.columns))
    return result
