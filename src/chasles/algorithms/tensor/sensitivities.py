"""Tensor-based derivatives of inverse dynamics (Balafoutis and Patel 1991, chapter 7)."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from chasles.algorithms.spatial.derivatives import add_load_slopes, load_efforts
from chasles.algorithms.tensor.dynamics import Chain, augmented, chain, transmitted
from chasles.mathematics.linear import Matrix, Vector, diagonal
from chasles.mathematics.spatial import Force, Motion, RigidInertia, shift_of_inertia
from chasles.mathematics.tensor import (
    AngularAcceleration,
    GeneralizedLink,
    dual,
    euler_from_inertia,
)
from chasles.model.model import WORLD, Model
from chasles.model.spaces import Blocks, JointMatrix, Loads, Position, Velocity


class Change(NamedTuple):
    """Effect of one degree of freedom on the motion of its body, in body axes.

    z is the joint axis. Omega, w and sdd are the angular acceleration tensor, angular velocity and
    acceleration of the origin of the body (`Chain`). Pairs are (effect on the rotation, effect on
    the origin).

    `freedom` is (z, 0) for a revolute joint and (0, z) for a prismatic joint. `zd2` is twice the
    change in angular velocity for a unit change in the coordinate. `by_q` is the corresponding
    change in acceleration, (Omega z, sdd x z) or (0, Omega z). `slid` is the second entry of `by_q`
    without the contribution of the body's rotation: 0 or Omega z. `by_qd` is half the change in
    acceleration for a unit change in velocity, (w x z, 0) or (0, w x z).
    """

    freedom: Motion
    zd2: Vector
    by_q: Motion
    slid: Vector
    by_qd: Motion

    def seen_from(self, s: Vector, sd: Vector) -> "Change":
        """Return the effect of this degree of freedom on the velocity and acceleration of a link.

        The effect is the change for a unit change in the coordinate or in the joint velocity (see
        `Change`). The link is farther from the base than this body. s and sd are the position and
        velocity of the link's origin relative to this body's origin.
        """
        z, zdd, half = self.freedom.angular, self.by_q.angular, self.by_qd.angular
        further = zdd.cross(s) + self.zd2.cross(sd)
        return Change(
            Motion(z, self.freedom.linear + z.cross(s)),
            self.zd2,
            Motion(zdd, self.by_q.linear + further),
            self.slid + further,
            Motion(half, self.by_qd.linear + half.cross(s) + z.cross(sd)),
        )


def changes(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, moving: Chain
) -> dict[int, tuple[Change, ...]]:
    """Return the effect of each joint degree of freedom on the motion of the joint's body.

    The results include the time derivatives zd_j and zdd_j of the joint axes (Balafoutis and Patel
    1991, Eq 7.3.1-4).
    """
    found = {}
    for i, _, joint, _ in model.outward():
        S, sdd, zeta = moving.S[i], moving.sdd[i], moving.zeta[i]
        vJ, aJ = S @ qd[i], S @ qdd[i] + joint.bias(q[i], qd[i])
        slopes = joint.slopes(q[i], qd[i], qdd[i])
        rates = (slopes.velocity, slopes.acceleration, slopes.bias)
        columns = zip(S.columns, *(rate.columns for rate in rates), strict=True)
        at = (moving.Omega[i], sdd, zeta, vJ, aJ)
        found[i] = tuple(_change(*at, *column) for column in columns)  # (7.3.18g, 7.3.18k)
    return found


def _change(
    Omega: AngularAcceleration, sdd: Vector, zeta: Vector, vJ: Motion, aJ: Motion, *column: Motion
) -> Change:
    """Return the effect of one joint degree of freedom on the motion of the joint's body.

    vJ and aJ are the velocity and acceleration of the joint. `column` contains the column s of the
    motion subspace, and the columns N, K and C of the fields `velocity`, `acceleration` and `bias`
    of `Slopes`.

    The angular velocity of the parent is w - vJ. The angular acceleration tensor of the parent maps
    a vector u to Omega u - aJ x u - (2 w - vJ) x (vJ x u). If the joint rotates about u, the result
    is Omega u.
    """
    s, N, K, C = column
    z, x, turning, sliding = s.angular, s.linear, vJ.angular, vJ.linear
    wp = Omega.w - turning
    both, carried = Omega.w + wp, wp.cross(z)
    zd = carried + N.angular
    zdd = Omega @ z - aJ.angular.cross(z) + both.cross(N.angular - turning.cross(z)) + K.angular
    slid = Omega @ x - aJ.angular.cross(x) + both.cross(N.linear - turning.cross(x)) + K.linear
    slid = slid + (carried + zd).cross(sliding) - zeta.cross(z)
    joint = Motion(turning.cross(z), z.cross(sliding) + turning.cross(x)) + C
    by_qd = Motion(carried, wp.cross(x)) + joint * 0.5
    return Change(s, zd * 2.0, Motion(zdd, slid + sdd.cross(z)), slid, by_qd)


def generalized(
    model: Model, moving: Chain, links: Mapping[int, RigidInertia], qd: Velocity
) -> tuple[dict[int, GeneralizedLink], dict[int, Vector]]:
    """Return the generalized link and the relative velocity sd of every body.

    See Balafoutis and Patel 1991, algorithm 7.1, step 1. A generalized link is the sum of the
    augmented links in a subtree, in link axes about the link origin. sd is the velocity of the
    link origin minus the velocity of the parent origin, in parent axes.
    """
    X, S, Omega = moving.X, moving.S, moving.Omega
    U, E = {i: link.h for i, link in links.items()}, {i: link.I for i, link in links.items()}
    Ud, L, sd = {WORLD: Vector.zero()}, {WORLD: Matrix.zero()}, {}
    for i, *_ in model.outward():
        Ud[i] = Omega[i].w.cross(U[i])  # (7.3.18b)
        L[i] = dual(Omega[i].w) @ euler_from_inertia(E[i]).matrix()  # (7.3.18d)
    for i, p, *_ in model.inward():
        A, s, slide = X[i].E.T, X[i].r, (S[i] @ qd[i]).linear
        sd[i] = Omega[p].w.cross(s) + A @ slide  # (sd of 7.3.18d)
        Up = A @ U[i]  # (7.3.18a)
        U[p] += Up  # (7.3.18a)
        Udp = A @ (Ud[i] + slide * links[i].m)  # (7.3.18b)
        Ud[p] += Udp  # (7.3.18b)
        E[p] += shift_of_inertia(s, Up, Up) + A @ E[i]  # (7.3.18c)
        L[p] += dual(s) @ dual(Udp) + dual(Up) @ dual(sd[i]) + A @ L[i]  # (7.3.18d)
    return {i: GeneralizedLink(links[i].m, U[i], Ud[i], E[i], L[i]) for i in X}, sd


def inverse_dynamics_sensitivities(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Loads = ()
) -> tuple[JointMatrix, JointMatrix, JointMatrix]:
    """Return the partial derivatives D0, V0 and P0 in d tau = D0 d qdd + V0 d qd + P0 d q.

    See Balafoutis and Patel 1991, algorithm 7.1. The rows (B, f) and C and the columns (H, -fh) and
    (G, -fb) are transmitted toward the base like wrenches. The book covers chains of revolute
    joints. For other joints, only the initial values of these rows and columns differ. The
    contributions from branches are summed.
    """
    moving = chain(model, q, qd, qdd)
    X, sdd, links = moving.X, moving.sdd, augmented(model, moving.X)
    steps = changes(model, q, qd, qdd, moving)
    Udd, eta = transmitted(model, moving, links)
    F = {i: Force(eta[i], sdd[i] * links[i].m + Udd[i]) for i in X}
    carried, sd = generalized(model, moving, links, qd)
    D, V, P = Blocks(), Blocks(), Blocks()
    for i, _, joint, _ in model.inward():
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
        V[i, i] += joint.resistance_slopes(qd[i])
        slopes = joint.slopes(q[i], qd[i], qdd[i]).subspace
        P[i, i] += Matrix(tuple(tuple(dS.T @ F[i]) for dS in slopes)).T
        for child, j in pairwise(model.support(i)):
            rows = [X[child].T @ f for f in rows]  # (7.3.19a, 7.3.19d)
            H = [X[child].T @ f for f in H]  # (7.3.19b, 7.3.19f)
            G = [X[child].T @ f for f in G]  # (7.3.19c, 7.3.19g)
            both = zip(C, rows, strict=True)
            C = [X[child].E.T @ c - sd[child].cross(f.force) for c, f in both]  # (7.3.19e)
            D[i, j], V[i, j], P[i, j] = _rows(rows, C, steps[j])  # (7.3.19h, 7.3.19j, 7.3.19l)
            D[j, i] = D[i, j].T
            V[j, i] = _columns(H, steps[j]) * 2.0  # (7.3.19k)
            P[j, i] = _columns(G, steps[j])  # (7.3.19m)
    for place, slope in load_efforts(model, q, f_ext)[1].items():
        P[place] -= slope
    add_load_slopes(model, P, V)
    return D, V, P


def _rows(
    rows: Sequence[Force], C: Sequence[Vector], changes: Sequence[Change]
) -> tuple[Matrix, Matrix, Matrix]:
    """Return blocks of D0, V0 and P0, with one row for each triple (B, f, C).

    The entries are B.z, 2 (B w~ - C).z and (B Omega - 2 C w~ + f sdd~).z, respectively. See
    Balafoutis and Patel 1991, Eq 7.3.19h, j and l.
    """
    entries = [
        [
            (f.dot(S), (f.dot(by_qd) - c.dot(S.angular)) * 2.0, f.dot(by_q) - c.dot(zd2))
            for S, zd2, by_q, _, by_qd in changes
        ]
        for f, c in zip(rows, C, strict=True)
    ]
    d, v, p = (Matrix(tuple(tuple(e[k] for e in row) for row in entries)) for k in range(3))
    return d, v, p


def _columns(forces: Sequence[Force], changes: Sequence[Change]) -> Matrix:
    """Return a block of V0 / 2 or P0, with one column for each wrench (H, -fh) or (G, -fb).

    The entries are H.z or G.z for a revolute joint, and -fh.z or -fb.z for a prismatic joint. See
    Balafoutis and Patel 1991, Eq 7.3.19k and m.
    """
    return Matrix(tuple(tuple(f.dot(change.freedom) for f in forces) for change in changes))
