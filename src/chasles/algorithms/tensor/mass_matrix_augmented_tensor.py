"""The joint-space inertia matrix, by tensors of augmented and generalised links."""

from chasles.algorithms.tensor.augmented import augmented
from chasles.algorithms.tensor.columns import columns
from chasles.mathematics.spatial import RigidInertia, shift_of_inertia
from chasles.model.model import Model
from chasles.model.spaces import JointMatrix, Position


def mass_matrix_augmented_tensor(model: Model, q: Position) -> JointMatrix:
    """The generalised link of a joint is all beyond it (Balafoutis and Patel 1991, algorithm 6.2).

    U, E: its first and second moment about the joint's origin. What the augmented links hold of
    them is constant where joints only turn. For unit acceleration of a freedom (w, v) it takes the
    force w x U + mbar v and the moment E w + U x v, of which the book leaves out the last.
    """
    X = {i: joint.transform(q[i]) for i, _, joint, _ in model.outward()}
    S = {i: joint.subspace(q[i]) for i, _, joint, _ in model.outward()}
    links = augmented(model, X)
    U, E = {i: link.h for i, link in links.items()}, {i: link.I for i, link in links.items()}
    F = {}
    for i, p, *_ in model.inward():
        F[i] = RigidInertia(links[i].m, U[i], E[i]) @ S[i]  # (6.3.29d, 6.3.29e)
        A, s = X[i].E.T, X[i].r
        turned = A @ U[i]  # (6.3.29a)
        U[p] += turned  # (6.3.29a)
        E[p] += A @ E[i] + shift_of_inertia(s, turned, turned)  # (6.3.29c)
    return columns(model, X, S, F)
