"""Derivatives of joint forces by the tensors of augmented links."""

from collections.abc import Sequence
from typing import NamedTuple

from chasles.algorithms.spatial.load_efforts import load_efforts
from chasles.expr import Number
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.spatial import Force, Motion, RigidInertia, Transform
from chasles.mathematics.spatial.inertia import shift_of_inertia
from chasles.model.joints import diagonal
from chasles.model.model import WORLD, Model
from chasles.model.spaces import JointMatrix, Loads, Position, Velocity


class Change(NamedTuple):
    """What one freedom of a joint does to its body: (of its rotation, of its origin), body axes.

    freedom: (z, 0) of a revolute joint, (0, z) of a prismatic one. zd: what a step along it adds to
    angular velocity. by_q: what that step adds to accelerations, in the book's terms (Omega z,
    sdd x z) or (0, Omega z). by_qd: what a change of velocity adds, 2 (w x z, 0) or 2 (0, w x z).
    """

    freedom: Motion
    zd: Vector
    by_q: Motion
    by_qd: Motion


class Moving(NamedTuple):
    """Of every link: X, w, Omega, a (of its origin, less gravity), and its freedoms' changes.

    slide, zeta: the joint's own part of the origin's velocity and acceleration.
    """

    X: dict[int, Transform]
    w: dict[int, Vector]
    Omega: dict[int, Matrix]
    a: dict[int, Vector]
    slide: dict[int, Vector]
    zeta: dict[int, Vector]
    changes: dict[int, tuple[Change, ...]]


class Carried(NamedTuple):
    """Of every link with all that it carries, in its own frame and about its origin.

    m mass; U first moment and Ud its rate; E inertia; L the tensor of (7.3.18d); F the moment eta
    and the force that the joint transmits; sd the rate of the link's place in its parent.
    """

    m: dict[int, Number]
    U: dict[int, Vector]
    Ud: dict[int, Vector]
    E: dict[int, Symmetric]
    L: dict[int, Matrix]
    F: dict[int, Force]
    sd: dict[int, Vector]


def inverse_dynamics_sensitivities(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Loads = ()
) -> tuple[JointMatrix, JointMatrix, JointMatrix]:
    """D0, V0, P0 of d tau = D0 d qdd + V0 d qd + P0 d q (Balafoutis and Patel 1991, algorithm 7.1).

    The book has revolute joints of a chain. Other freedoms differ in the first values of rows
    (B, f), C and of columns (H, -fh), (G, -fb) only, which then move inward as wrenches do; where
    links branch, what they carry adds up.
    """
    moving = _moving(model, q, qd, qdd)
    X, changes = moving.X, moving.changes
    m, U, Ud, E, L, F, sd = _carried(model, moving)
    D: dict[tuple[int, int], Matrix] = {}
    V: dict[tuple[int, int], Matrix] = {}
    P: dict[tuple[int, int], Matrix] = {}
    for i, p, joint, _ in model.inward():

        def inertia_force(zdd: Vector, zd: Vector, xdd: Vector, i: int = i) -> Force:
            """Of all that the link carries, for a change of its motion."""
            moment = E[i] @ zdd - (L[i] @ zd) * 2.0 + U[i].cross(xdd)
            return Force(moment, xdd * m[i] - U[i].cross(zdd) - Ud[i].cross(zd) * 2.0)

        rows, C, H, G = [], [], [], []
        for S, zd, by_q, by_qd in changes[i]:
            rows.append(inertia_force(S.angular, Vector.zero(), S.linear))
            C.append(L[i].T @ S.angular - Ud[i].cross(S.linear))
            H.append(inertia_force(by_qd.angular, S.angular, by_qd.linear))
            G.append(inertia_force(by_q.angular, zd, by_q.linear) + S.cross(F[i]))
        D[i, i], V[i, i], P[i, i] = _rows(rows, C, changes[i])
        D[i, i] += diagonal(joint.armature)
        V[i, i] += diagonal(joint.damping)
        slopes = joint.slopes(q[i], qd[i], qdd[i]).subspace
        P[i, i] += Matrix(tuple(tuple(dS.T @ F[i]) for dS in slopes)).T
        child = i
        for j in model.support(p):
            rows, H, G = ([X[child].T @ f for f in part] for part in (rows, H, G))
            C = [X[child].E.T @ c - sd[child].cross(f.force) for c, f in zip(C, rows, strict=True)]
            D[i, j], V[i, j], P[i, j] = _rows(rows, C, changes[j])
            D[j, i], V[j, i], P[j, i] = D[i, j].T, _columns(H, changes[j]), _columns(G, changes[j])
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
                f.dot(by_qd) - c.dot(S.angular) * 2.0,
                f.dot(by_q) - c.dot(zd) * 2.0,
            )
            for S, zd, by_q, by_qd in changes
        ]
        for f, c in zip(rows, C, strict=True)
    ]
    d, v, p = (Matrix(tuple(tuple(e[k] for e in row) for row in entries)) for k in range(3))
    return d, v, p


def _columns(forces: Sequence[Force], changes: Sequence[Change]) -> Matrix:
    """H.z or G.z, and -fh.z or -fb.z of a prismatic joint."""
    return Matrix(tuple(tuple(f.dot(change.freedom) for f in forces) for change in changes))


def _moving(model: Model, q: Position, qd: Velocity, qdd: Velocity) -> Moving:
    """Step 2 of algorithm 5.7 for any joint, and what each freedom changes."""
    zero = {WORLD: Vector.zero()}
    moving = Moving({}, dict(zero), {WORLD: Matrix.zero()}, {}, dict(zero), dict(zero), {})
    X, w, Omega, a, slide, zeta, changes = moving
    wd, a[WORLD] = dict(zero), -model.gravity_vector
    for i, p, joint, _ in model.outward():
        X[i], S = joint.transform(q[i]), joint.subspace(q[i])
        vJ, aJ = S @ qd[i], S @ qdd[i] + joint.bias(q[i], qd[i])
        wp, wdp = X[i].E @ w[p], X[i].E @ wd[p]
        ap = X[i].E @ (a[p] + Omega[p] @ X[i].r)
        w[i] = wp + vJ.angular
        wd[i] = wdp + aJ.angular + wp.cross(vJ.angular)
        Omega[i] = Matrix.skew(wd[i]) + Matrix.skew(w[i]) @ Matrix.skew(w[i])
        slide[i], zeta[i] = vJ.linear, aJ.linear + (w[i] + wp).cross(vJ.linear)
        a[i] = ap + zeta[i]
        slopes = joint.slopes(q[i], qd[i], qdd[i])
        changes[i] = tuple(
            _change(s, wp, wdp, ap, w[i], slide[i], N, K, C)
            for s, N, K, C in zip(
                S.columns,
                slopes.velocity.columns,
                slopes.acceleration.columns,
                slopes.bias.columns,
                strict=True,
            )
        )
    return moving


def _change(
    s: Motion,
    wp: Vector,
    wdp: Vector,
    ap: Vector,
    w: Vector,
    slide: Vector,
    N: Motion,
    K: Motion,
    C: Motion,
) -> Change:
    """Of a freedom s that the parent carries with wp, wdp, ap; N, K, C as in `Slopes`."""
    z, x, both = s.angular, s.linear, w + wp
    carried = wp.cross(z)
    zd = carried + N.angular
    zdd = wdp.cross(z) + wp.cross(carried) + both.cross(N.angular) + K.angular
    xdd = ap.cross(z) + (carried + zd).cross(slide) + wdp.cross(x) + wp.cross(wp.cross(x))
    xdd = xdd + both.cross(N.linear) + K.linear
    by_qd = Motion(both.cross(z), z.cross(slide) + both.cross(x)) + C
    return Change(s, zd, Motion(zdd, xdd), by_qd)


def _carried(model: Model, moving: Moving) -> Carried:
    """Step 1 of algorithm 7.1, (7.3.18a-d), on augmented links; U, E and the like add up inward."""
    X, w, Omega, a, slide, zeta, _ = moving
    m, u, K = _augmented(model, X)
    U, Ud, Udd, E, L, eta, sd = dict(u), {}, {}, dict(K), {}, {}, {}
    for i in m:
        Khat = _euler(K[i])
        Ud[i], Udd[i] = w[i].cross(u[i]), Omega[i] @ u[i]
        L[i] = Matrix.skew(w[i]) @ Khat
        eta[i] = _twice_vect(Omega[i] @ Khat) + u[i].cross(a[i])
    for i, p, *_ in model.inward():
        A, s = X[i].E.T, X[i].r
        sd[i] = w[p].cross(s) + A @ slide[i]
        Up, Udp = A @ U[i], A @ (Ud[i] + slide[i] * m[i])
        t = A @ (Udd[i] + zeta[i] * m[i])
        U[p], Ud[p], Udd[p] = U[p] + Up, Ud[p] + Udp, Udd[p] + t
        E[p] += shift_of_inertia(s, Up, Up) + A @ E[i]
        L[p] += Matrix.skew(s) @ Matrix.skew(Udp) + Matrix.skew(Up) @ Matrix.skew(sd[i]) + A @ L[i]
        eta[p] += s.cross(t) + A @ eta[i]
    F = {i: Force(eta[i], a[i] * m[i] + Udd[i]) for i in m}
    return Carried(m, U, Ud, E, L, F, sd)


def _augmented(
    model: Model, X: dict[int, Transform]
) -> tuple[dict[int, Number], dict[int, Vector], dict[int, Symmetric]]:
    """Step 1 of algorithm 5.7: links with the mass of what they carry at its first joint."""
    links = {i: I for i, _, _, I in model.outward()} | {WORLD: RigidInertia.zero()}
    m = {i: I.m for i, I in links.items()}
    u, K = {i: I.h for i, I in links.items()}, {i: I.I for i, I in links.items()}
    for i, p, *_ in model.inward():
        s = X[i].r
        m[p] += m[i]
        u[p] += s * m[i]
        K[p] += shift_of_inertia(s, Vector.zero(), s * m[i])
    return m, u, K


def _euler(K: Symmetric) -> Matrix:
    """tr(K) / 2 1 - K, the Euler tensor of an inertia tensor."""
    half = (K.xx + K.yy + K.zz) * 0.5
    return Matrix(
        (
            (half - K.xx, -K.xy, -K.xz),
            (-K.xy, half - K.yy, -K.yz),
            (-K.xz, -K.yz, half - K.zz),
        )
    )


def _twice_vect(A: Matrix) -> Vector:
    """The vector of A - A'."""
    return Vector.of(A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1])
