"""The accelerations of frames for each unit wrench on them, joint by joint toward the root."""

from itertools import combinations_with_replacement, product

from chasles.algorithms.spatial.forward_kinematics import body_transforms
from chasles.algorithms.spatial.viewpoint import At, Axes, Viewpoint
from chasles.expr import Number
from chasles.mathematics.linear import Matrix, invert_symmetric
from chasles.mathematics.spatial import ArticulatedInertia, Force, Motion, Motions
from chasles.model.joints import diagonal
from chasles.model.model import WORLD, Frame, Handles, Model, each_of
from chasles.model.spaces import Position, SpatialMatrix


def operational_inertia_inverse_propagation(
    model: Model, q: Position, *, frame: Handles, axes: Axes = "world", at: At = "frame"
) -> SpatialMatrix:
    """The sum of u' D^-1 u over the joints that support the frame, or both of any two.

    u = S' f is what a joint feels of the wrench f; it gives way and passes f - U D^-1 u on, with
    the U and D of articulated bodies (Featherstone 2008, section 7.2.2; Kreutz-Delgado, Jain,
    Rodriguez 1992).
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
    """The wrenches of unit components at the frame, in coordinates of its body.

    Power is the same in both: a component does the work of the body's motion as it is seen there.
    """
    X = body_transforms(model, q)[frame.body]
    view = Viewpoint.of(frame.placement @ X, axes, at)
    units = Motions(tuple(Motion.of(*(float(j == k) for j in range(6))) for k in range(6)))
    seen = [tuple(view.turned(m)) for m in view.from_body(X, units).columns]
    return [Force.of(*(m[k] for m in seen)) for k in range(6)]
