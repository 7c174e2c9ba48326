"""The joint-space inertia matrix, by composite bodies about their centres of mass."""

from chasles.algorithms.tensor.columns import columns
from chasles.mathematics.spatial import Force, Forces
from chasles.mathematics.tensor import Center
from chasles.model.model import WORLD, Model
from chasles.model.spaces import JointMatrix, Position


def mass_matrix_composite_3x3(model: Model, q: Position) -> JointMatrix:
    """Walker and Orin's third method (1982; Balafoutis and Patel 1991, algorithm 6.1).

    mbar, R, E: mass, centre and inertia about the centre of all bodies beyond a joint, frozen into
    one. f and N: the force, and the moment about that centre, for unit acceleration of a freedom.
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
