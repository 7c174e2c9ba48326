"""How links move and what they carry, and what each freedom changes of that, in link frames."""

from collections.abc import Sequence
from typing import NamedTuple

from chasles.expr import Number
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.spatial import Force, Motion, Transform, shift_of_inertia
from chasles.mathematics.tensor import euler_from_inertia, vect
from chasles.model.augmented import augmented
from chasles.model.model import WORLD, Model
from chasles.model.spaces import Position, Velocity


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

    def seen_from(self, s: Vector, sd: Vector) -> "Change":
        """Of a link beyond, whose origin is at s from this one and moves against it with sd."""
        z, zdd = self.freedom.angular, self.by_q.angular
        return Change(
            Motion(z, self.freedom.linear + z.cross(s)),
            self.zd,
            Motion(zdd, self.by_q.linear + zdd.cross(s) + self.zd.cross(sd) * 2.0),
            Motion(
                self.by_qd.angular,
                self.by_qd.linear + self.by_qd.angular.cross(s) + z.cross(sd) * 2.0,
            ),
        )


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

    def force(self, i: int, zdd: Vector, zd: Vector, xdd: Vector) -> Force:
        """What a change of its motion asks for: of the rates of rotation, and at its origin."""
        moment = self.E[i] @ zdd - (self.L[i] @ zd) * 2.0 + self.U[i].cross(xdd)
        turned = self.U[i].cross(zdd) + self.Ud[i].cross(zd) * 2.0
        return Force(moment, xdd * self.m[i] - turned)


def moving(model: Model, q: Position, qd: Velocity, qdd: Velocity) -> Moving:
    """Step 2 of algorithm 5.7 for any joint, and what each freedom changes."""
    zero = {WORLD: Vector.zero()}
    found = Moving({}, dict(zero), {WORLD: Matrix.zero()}, {}, dict(zero), dict(zero), {})
    X, w, Omega, a, slide, zeta, changes = found
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
    return found


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


def carried(model: Model, motion: Moving) -> Carried:
    """Step 1 of algorithm 7.1, (7.3.18a-d), on augmented links; U, E and the like add up inward."""
    X, w, Omega, a, slide, zeta, _ = motion
    m, U, Ud, Udd, E, L, eta, sd = {}, {}, {}, {}, {}, {}, {}, {}
    for i, link in augmented(model, X).items():
        m[i], U[i], E[i], Khat = link.m, link.h, link.I, euler_from_inertia(link.I).matrix()
        Ud[i], Udd[i] = w[i].cross(link.h), Omega[i] @ link.h
        L[i] = Matrix.skew(w[i]) @ Khat
        eta[i] = vect(Omega[i] @ Khat) * 2.0 + link.h.cross(a[i])
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


class Responses(NamedTuple):
    """Of one link, for each freedom of its joint, at the link's origin.

    rows, C: (B, f) and C of (7.3.18). H, G: the forces that changes of qd and of q ask for.
    """

    rows: list[Force]
    C: list[Vector]
    H: list[Force]
    G: list[Force]


def responses(links: Carried, i: int, changes: Sequence[Change]) -> Responses:
    """What link i, with all that it carries, makes of the changes of its own joint."""
    rows, C, H, G = found = Responses([], [], [], [])
    for S, zd, by_q, by_qd in changes:
        rows.append(links.force(i, S.angular, Vector.zero(), S.linear))
        C.append(links.L[i].T @ S.angular - links.Ud[i].cross(S.linear))
        H.append(links.force(i, by_qd.angular, S.angular, by_qd.linear))
        G.append(links.force(i, by_q.angular, zd, by_q.linear) + S.cross(links.F[i]))
    return found


def row_entries(
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


def column_entries(forces: Sequence[Force], changes: Sequence[Change]) -> Matrix:
    """H.z or G.z, and -fh.z or -fb.z of a prismatic joint."""
    return Matrix(tuple(tuple(f.dot(change.freedom) for f in forces) for change in changes))
