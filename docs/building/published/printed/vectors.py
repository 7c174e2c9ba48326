"""Algorithms 5.3 and 5.4 as printed: Newton-Euler recursions with vectors of 3 and 6 entries.

Links are numbered from 0, as in `newton_euler`, and all joints are revolute. As in table 5.1, the
first link is treated separately, and zeros of its vectors are not used for the second link.
"""

from collections.abc import Sequence

from building.published.printed.counting import (
    Link,
    Number,
    Sheet,
    Tensor,
    Turn,
    Vector,
    apply,
    cross,
    live,
    plus,
    scaled,
    tensor,
    times,
    turned,
)
from building.published.printed.newton_euler import G, State

Pair = tuple[Vector, Vector]
"""Angular and linear part of a motion, or moment about the origin and force."""


def algorithm_5_3(links: Sequence[Link], x: State, sheet: Sheet) -> list[Number]:
    """Return joint torques by Eq 5.2.21 to 5.2.24, with moments about the origins."""
    last, tau = len(links) - 1, []
    A = [link.turn(q, sheet) for link, q in zip(links, x.q, strict=True)]
    forces: list[tuple[Vector, Vector]] = []
    w: Vector = (0, 0, 0)
    wd: Vector = (0, 0, 0)
    sdd: Vector = (0, 0, 0)
    for i, link in enumerate(links):
        qd, qdd = sheet.live(x.qd[i]), sheet.live(x.qdd[i])
        carried, about = A[i].back(w), plus(cross(wd, link.s), cross(w, cross(w, link.s)))
        turning = A[i].back(wd)
        sdd = A[i].back(plus(sdd, about)) if i else scaled(A[0].third, sheet.live(G))
        w = (carried[0], carried[1], carried[2] + qd)
        wd = (
            turning[0] + times(carried[1], qd),
            turning[1] - times(carried[0], qd),
            turning[2] + qdd,
        )
        rdd = plus(sdd, cross(wd, link.r), cross(w, cross(w, link.r)))
        I = tensor(link.I)
        moment = plus(apply(I, wd), cross(w, apply(I, w)))
        forces.append((scaled(rdd, link.m), moment))
        w, wd = live(sheet, w), live(sheet, wd)
    f: Vector = (0, 0, 0)
    eta: Vector = (0, 0, 0)
    for i in range(last, -1, -1):
        (F, M), r = forces[i], links[i].r
        own = plus(M, cross(r, F))
        if i == last:
            f, eta = F, own
        else:
            g = A[i + 1].out(f)
            f, eta = plus(g, F), plus(own, cross(links[i + 1].s, g), A[i + 1].out(eta))
        tau.append(eta[2])
    return tau[::-1]


def algorithm_5_4(
    links: Sequence[Link], x: State, sheet: Sheet, *, bias: bool = False
) -> list[Number]:
    """Return joint torques by Eq 5.2.25 to 5.2.30, with spatial vectors.

    Each transform is a screw along x followed by a screw along z. If `bias`, joint accelerations
    are zero.
    """
    last, tau = len(links) - 1, []
    A = [link.turn(q, sheet) for link, q in zip(links, x.q, strict=True)]
    forces: list[Pair] = []
    v: Pair = ((0, 0, 0), (0, 0, 0))
    a: Pair = ((0, 0, 0), (0, 0, sheet.live(G)))
    for i, link in enumerate(links):
        qd, qdd = sheet.live(x.qd[i]), 0 if bias else sheet.live(x.qdd[i])
        v, a = _back(link, A[i], v), _back(link, A[i], a)
        (wx, wy, wz), linear = v
        v = ((wx, wy, wz + qd), linear)
        turning, moving = (_crossed(u, t, qd) for u, t in zip(a, v, strict=True))
        a = ((turning[0], turning[1], turning[2] + qdd), moving)
        (N, F), (n, f) = _inertia(link, v), _inertia(link, a)
        forces.append((plus(n, cross(v[0], N), cross(v[1], F)), plus(f, cross(v[0], F))))
        v, a = _full(sheet, v), _full(sheet, a)
    carried: Pair = ((0, 0, 0), (0, 0, 0))
    for i in range(last, -1, -1):
        if i < last:
            carried = _out(links[i + 1], A[i + 1], carried)
        carried = (plus(forces[i][0], carried[0]), plus(forces[i][1], carried[1]))
        tau.append(carried[0][2])
    return tau[::-1]


def _crossed(u: Vector, v: Vector, qd: Number) -> Vector:
    """Return u + v x z qd."""
    return u[0] + times(v[1], qd), u[1] - times(v[0], qd), u[2]


def _full(sheet: Sheet, m: Pair) -> Pair:
    """Return a pair with live entries, so that its zeros are not used for the second link."""
    return live(sheet, m[0]), live(sheet, m[1])


def _inertia(link: Link, m: Pair) -> Pair:
    """Return I^ m, where inertia about the origin, first moment and mass are known in advance."""
    h = tuple(link.m * r for r in link.r)
    square = sum(r * r for r in link.r)
    about: Tensor = tensor(
        [
            [link.I[i][j] + link.m * ((i == j) * square - link.r[i] * link.r[j]) for j in range(3)]
            for i in range(3)
        ]
    )
    w, v = m
    first: Vector = (h[0], h[1], h[2])
    return plus(apply(about, w), cross(first, v)), plus(scaled(v, link.m), cross(w, first))


def _screw(u: Pair, k: int, length: float, c: Number, s: Number) -> Pair:
    """Transform a motion or a force by a screw: a translation along axis k and a rotation about it.

    The translation changes the second part of the pair: the linear part of a motion, or the moment
    of a force.
    """
    i, j = (k + 1) % 3, (k + 2) % 3
    first, second = list(u[0]), list(u[1])
    second[i] = second[i] + times(length, first[j])
    second[j] = second[j] - times(length, first[i])
    for part in (first, second):
        part[i], part[j] = turned(part[i], part[j], c, -s)
    return (first[0], first[1], first[2]), (second[0], second[1], second[2])


def _back(link: Link, turn: Turn, m: Pair) -> Pair:
    """Return a motion in the axes and about the origin of the next link."""
    return _screw(_screw(m, 0, link.a, turn.ca, turn.sa), 2, link.d, turn.c, turn.s)


def _out(link: Link, turn: Turn, f: Pair) -> Pair:
    """Return a moment and a force in the axes and about the origin of the previous link."""
    force, moment = f[1], f[0]
    for k, length, c, sine in ((2, -link.d, turn.c, -turn.s), (0, -link.a, turn.ca, -turn.sa)):
        force, moment = _screw((force, moment), k, length, c, sine)
    return moment, force
