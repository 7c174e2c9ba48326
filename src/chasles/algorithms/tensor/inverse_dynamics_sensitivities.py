"""Derivatives of joint forces by the tensors of augmented links."""

from collections.abc import Sequence

from chasles.algorithms.spatial.load_efforts import load_efforts
from chasles.algorithms.tensor.augmented import augmented
from chasles.algorithms.tensor.augmented_tensor import transmitted
from chasles.algorithms.tensor.chain import chain
from chasles.algorithms.tensor.changes import Change, changes
from chasles.algorithms.tensor.generalised import generalised
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import Force
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
    moving = chain(model, q, qd, qdd)
    X, sdd, links = moving.X, moving.sdd, augmented(model, moving.X)
    steps = changes(model, q, qd, qdd, moving)
    Udd, eta = transmitted(model, moving, links)
    F = {i: Force(eta[i], sdd[i] * links[i].m + Udd[i]) for i in X}
    carried, sd = generalised(model, moving, links, qd)
    D: dict[tuple[int, int], Matrix] = {}
    V: dict[tuple[int, int], Matrix] = {}
    P: dict[tuple[int, int], Matrix] = {}
    for i, p, joint, _ in model.inward():
        link = carried[i]
        rows, C, H, G = [], [], [], []
        for S, zd2, by_q, slid, by_qd in steps[i]:
            z, x = S.angular, S.linear
            rows.append(link.force(z, Vector.zero(), x))  # (7.3.18e, 7.3.18h)
            C.append(link.L.T @ z - link.Ud.cross(x))  # (7.3.18i)
            H.append(link.force(by_qd.angular, z, by_qd.linear))  # (7.3.18f, 7.3.18j)
            held = S.cross(F[i]).moment + link.U.cross(sdd[i].cross(z))  # (7.3.18g, 7.3.18k)
            change = link.force(by_q.angular, zd2, slid)  # (7.3.18g, 7.3.18k)
            G.append(change + Force(held, z.cross(Udd[i])))  # (7.3.18g, 7.3.18k)
        D[i, i], V[i, i], P[i, i] = _rows(rows, C, steps[i])  # (7.3.18l, 7.3.18m, 7.3.18n)
        D[i, i] += diagonal(joint.armature)
        V[i, i] += diagonal(joint.damping)
        slopes = joint.slopes(q[i], qd[i], qdd[i]).subspace
        P[i, i] += Matrix(tuple(tuple(dS.T @ F[i]) for dS in slopes)).T
        child = i
        for j in model.support(p):
            rows = [X[child].T @ f for f in rows]  # (7.3.19a, 7.3.19d)
            H = [X[child].T @ f for f in H]  # (7.3.19b, 7.3.19f)
            G = [X[child].T @ f for f in G]  # (7.3.19c, 7.3.19g)
            both = zip(C, rows, strict=True)
            C = [X[child].E.T @ c - sd[child].cross(f.force) for c, f in both]  # (7.3.19e)
            D[i, j], V[i, j], P[i, j] = _rows(rows, C, steps[j])  # (7.3.19h, 7.3.19j, 7.3.19l)
            D[j, i] = D[i, j].T
            V[j, i] = _columns(H, steps[j]) * 2.0  # (7.3.19k)
            P[j, i] = _columns(G, steps[j])  # (7.3.19m)
            child = j
    for place, slope in load_efforts(model, q, f_ext)[1].items():
        P[place] -= slope
    return D, V, P


def _rows(
    rows: Sequence[Force], C: Sequence[Vector], changes: Sequence[Change]
) -> tuple[Matrix, Matrix, Matrix]:
    """d, v and p of steps of these rows: B.z, 2 (B w~ - C).z, (B Omega - 2 C w~ + f sdd~).z."""
    entries = [
        [
            (
                f.dot(S),
                (f.dot(by_qd) - c.dot(S.angular)) * 2.0,
                f.dot(by_q) - c.dot(zd2),
            )
            for S, zd2, by_q, _, by_qd in changes
        ]
        for f, c in zip(rows, C, strict=True)
    ]
    d, v, p = (Matrix(tuple(tuple(e[k] for e in row) for row in entries)) for k in range(3))
    return d, v, p


def _columns(forces: Sequence[Force], changes: Sequence[Change]) -> Matrix:
    """H.z or G.z, and -fh.z or -fb.z of a prismatic joint."""
    return Matrix(tuple(tuple(f.dot(change.freedom) for f in forces) for change in changes))
