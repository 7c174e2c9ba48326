"""Closed-form derivatives of generalized forces, computed entry by entry."""

from chasles.algorithms.spatial.derivatives import add_load_slopes, load_efforts
from chasles.algorithms.spatial.kinematics import body_transforms
from chasles.algorithms.tensor.dynamics import augmented, chain, transmitted
from chasles.algorithms.tensor.sensitivities import Change, changes, generalized
from chasles.mathematics.linear import Matrix, Vector, diagonal
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Force, Motion, Transform
from chasles.mathematics.tensor import GeneralizedLink
from chasles.model.model import WORLD, Model
from chasles.model.spaces import Blocks, JointMatrix, Loads, Position, Velocity


def sensitivities_closed_form(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Loads = ()
) -> tuple[JointMatrix, JointMatrix, JointMatrix]:
    """Return the partial derivatives D0, V0 and P0 in d tau = D0 d qdd + V0 d qd + P0 d q.

    See Balafoutis and Patel 1991, Eq 7.3.1-4. All quantities are in base axes. The subtree of i
    moves with joint i and with every joint j between the base and i. Row i contains the change in
    the subtree's force at joint i due to joint j. Column i contains the change in the subtree's
    force at joint j due to joint i. s and sd are the position and velocity of the joint origin o_i
    relative to o_j. The book covers chains of revolute joints. Other joint types add terms for the
    motion of the origin.
    """
    moving = chain(model, q, qd, qdd)
    X0, links, own = body_transforms(model, q), augmented(model, moving.X), {}
    Udd, eta = transmitted(model, moving, links)
    F = {i: Force(eta[i], moving.sdd[i] * links[i].m + Udd[i]) for i in moving.X}
    carried, sd = generalized(model, moving, links, qd)
    od = {WORLD: Vector.zero()}
    D, V, P = Blocks(), Blocks(), Blocks()
    steps = changes(model, q, qd, qdd, moving)
    for i, p, joint, _ in model.outward():
        A = X0[i].E.T
        od[i] = od[p] + X0[p].E.T @ sd[i]
        own[i] = [_turned(A, change) for change in steps[i]]
        m, U, Ud, E, L = carried[i]
        link = GeneralizedLink(m, A @ U, A @ Ud, A @ E, A @ L)
        transmits = Force(A @ F[i].moment, A @ F[i].force)
        rows, C, H, G = [], [], [], []
        for z, zd2, by_q, _, by_qd in own[i]:
            rows.append(link.force(z.angular, Vector.zero(), z.linear))
            C.append(link.L.T @ z.angular - link.Ud.cross(z.linear))
            H.append(link.force(by_qd.angular, z.angular, by_qd.linear) * 2.0)
            G.append(link.force(by_q.angular, zd2, by_q.linear) + z.cross(transmits))
        for j in (i, *model.support(p)):
            s = X0[i].r - X0[j].r
            passed = Transform(Rotation(), s).T
            seen = [change.seen_from(s, od[i] - od[j]) for change in own[j]]
            V[j, i], P[j, i] = (
                Matrix(tuple(tuple((passed @ f).dot(z) for f in forces) for z, *_ in own[j]))
                for forces in (H, G)
            )
            D[i, j] = Matrix(tuple(tuple(f.dot(z) for z, *_ in seen) for f in rows))
            V[i, j], P[i, j] = (
                Matrix(
                    tuple(
                        tuple(f.dot(motion) - c.dot(turn) for motion, turn in terms)
                        for f, c in zip(rows, C, strict=True)
                    )
                )
                for terms in (
                    [(change.by_qd * 2.0, change.freedom.angular * 2.0) for change in seen],
                    [(change.by_q, change.zd2) for change in seen],
                )
            )
            D[j, i] = D[i, j].T
        D[i, i] += diagonal(joint.armature)
        V[i, i] += joint.resistance_slopes(qd[i])
        slopes = joint.slopes(q[i], qd[i], qdd[i]).subspace
        P[i, i] += Matrix(tuple(tuple(dS.T @ F[i]) for dS in slopes)).T
    for place, slope in load_efforts(model, q, f_ext)[1].items():
        P[place] -= slope
    add_load_slopes(model, P, V)
    return D, V, P


def _turned(A: Rotation, change: Change) -> Change:
    freedom, by_q, by_qd = (
        Motion(A @ m.angular, A @ m.linear) for m in (change.freedom, change.by_q, change.by_qd)
    )
    return Change(freedom, A @ change.zd2, by_q, A @ change.slid, by_qd)
