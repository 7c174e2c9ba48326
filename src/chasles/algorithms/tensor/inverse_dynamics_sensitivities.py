"""Derivatives of joint forces by the tensors of augmented links."""

from chasles.algorithms.spatial.load_efforts import load_efforts
from chasles.algorithms.tensor.changes import (
    carried,
    column_entries,
    moving,
    responses,
    row_entries,
)
from chasles.mathematics.linear import Matrix
from chasles.model.joints import diagonal
from chasles.model.model import Model
from chasles.model.spaces import JointMatrix, Loads, Position, Velocity


def inverse_dynamics_sensitivities(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Loads = ()
) -> tuple[JointMatrix, JointMatrix, JointMatrix]:
    """D0, V0, P0 of d tau = D0 d qdd + V0 d qd + P0 d q (Balafoutis and Patel 1991, algorithm 7.1).

    The book has revolute joints of a chain. Other freedoms differ in the first values of rows
    (B, f), C and of columns (H, -fh), (G, -fb) only, which then move inward as wrenches do; where
    links branch, what they carry adds up.
    """
    motion = moving(model, q, qd, qdd)
    X, changes, links = motion.X, motion.changes, carried(model, motion)
    D: dict[tuple[int, int], Matrix] = {}
    V: dict[tuple[int, int], Matrix] = {}
    P: dict[tuple[int, int], Matrix] = {}
    for i, p, joint, _ in model.inward():
        rows, C, H, G = responses(links, i, changes[i])
        D[i, i], V[i, i], P[i, i] = row_entries(rows, C, changes[i])
        D[i, i] += diagonal(joint.armature)
        V[i, i] += diagonal(joint.damping)
        slopes = joint.slopes(q[i], qd[i], qdd[i]).subspace
        P[i, i] += Matrix(tuple(tuple(dS.T @ links.F[i]) for dS in slopes)).T
        child = i
        for j in model.support(p):
            rows, H, G = ([X[child].T @ f for f in part] for part in (rows, H, G))
            C = [
                X[child].E.T @ c - links.sd[child].cross(f.force)
                for c, f in zip(C, rows, strict=True)
            ]
            D[i, j], V[i, j], P[i, j] = row_entries(rows, C, changes[j])
            D[j, i], V[j, i], P[j, i] = (
                D[i, j].T,
                column_entries(H, changes[j]),
                column_entries(G, changes[j]),
            )
            child = j
    for place, slope in load_efforts(model, q, f_ext)[1].items():
        P[place] -= slope
    return D, V, P
