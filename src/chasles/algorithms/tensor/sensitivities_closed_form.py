"""Derivatives of joint forces in closed form, each entry by itself."""

from chasles.algorithms.spatial.forward_kinematics import body_transforms
from chasles.algorithms.spatial.load_efforts import load_efforts
from chasles.algorithms.tensor.changes import (
    Carried,
    Change,
    carried,
    column_entries,
    moving,
    responses,
    row_entries,
)
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Force, Motion, Transform
from chasles.model.joints import diagonal
from chasles.model.model import WORLD, Model
from chasles.model.spaces import JointMatrix, Loads, Position, Velocity


def sensitivities_closed_form(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Loads = ()
) -> tuple[JointMatrix, JointMatrix, JointMatrix]:
    """D0, V0, P0 of d tau = D0 d qdd + V0 d qd + P0 d q (Balafoutis and Patel 1991, Eq 7.3.1-4).

    Along base axes. Of joint i and a joint j inside it, the link of i with all that it carries
    feels both: rows i are its forces along i for changes of j as it sees them, columns i are its
    forces for changes of i as j sees them. s, sd: place and velocity of o_i seen from o_j. The book
    has revolute joints of a chain; other freedoms have terms of the origin's own motion.
    """
    motion = moving(model, q, qd, qdd)
    X0, links = body_transforms(model, q), carried(model, motion)
    o, od = {i: X.r for i, X in X0.items()}, {WORLD: Vector.zero()}
    for i, p, *_ in model.outward():
        od[i] = od[p] + X0[p].E.T @ links.sd[i]
    changes = {i: [_turned(X0[i].E.T, c) for c in own] for i, own in motion.changes.items()}
    turned = _along_base(links, X0)
    D: dict[tuple[int, int], Matrix] = {}
    V: dict[tuple[int, int], Matrix] = {}
    P: dict[tuple[int, int], Matrix] = {}
    for i, p, joint, _ in model.outward():
        rows, C, H, G = responses(turned, i, changes[i])
        D[i, i], V[i, i], P[i, i] = row_entries(rows, C, changes[i])
        for j in model.support(p):
            s, sd = o[i] - o[j], od[i] - od[j]
            seen, passed = [c.seen_from(s, sd) for c in changes[j]], Transform(Rotation(), s).T
            D[i, j], V[i, j], P[i, j] = row_entries(rows, C, seen)
            D[j, i] = D[i, j].T
            V[j, i] = column_entries([passed @ f for f in H], changes[j])
            P[j, i] = column_entries([passed @ f for f in G], changes[j])
        D[i, i] += diagonal(joint.armature)
        V[i, i] += diagonal(joint.damping)
        slopes = joint.slopes(q[i], qd[i], qdd[i]).subspace
        P[i, i] += Matrix(tuple(tuple(dS.T @ links.F[i]) for dS in slopes)).T
    for place, slope in load_efforts(model, q, f_ext)[1].items():
        P[place] -= slope
    return D, V, P


def _turned(A: Rotation, change: Change) -> Change:
    freedom, by_q, by_qd = (
        Motion(A @ m.angular, A @ m.linear) for m in (change.freedom, change.by_q, change.by_qd)
    )
    return Change(freedom, A @ change.zd, by_q, by_qd)


def _along_base(links: Carried, X0: dict[int, Transform]) -> Carried:
    """The same about the same origins."""
    A = {i: X.E.T for i, X in X0.items()}
    return links._replace(
        U={i: A[i] @ U for i, U in links.U.items()},
        Ud={i: A[i] @ Ud for i, Ud in links.Ud.items()},
        E={i: A[i] @ E for i, E in links.E.items()},
        L={i: A[i] @ L for i, L in links.L.items()},
        F={i: Force(A[i] @ F.moment, A[i] @ F.force) for i, F in links.F.items()},
    )
