"""Mass matrices and forward dynamics of chapter 6 as printed, with operation counts.

Each function for the mass matrix returns the entries d[j, i] with j <= i. Links are numbered from
0.
"""

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np

from building.published.printed.counting import (
    Link,
    Number,
    Rows,
    Sheet,
    Symmetric,
    Turn,
    Vector,
    apply,
    cross,
    dot,
    live,
    live_symmetric,
    minus,
    plus,
    scaled,
    symmetric,
    symmetric_product,
    tensor,
    times,
    together,
    turned,
    without,
)
from building.published.printed.newton_euler import State, augmented

Entries = dict[tuple[int, int], Number]


def algorithm_6_2(links: Sequence[Link], x: State, sheet: Sheet) -> Entries:
    """Return the mass matrix by generalized and augmented links (table 6.1)."""
    body, last = augmented(links), len(links) - 1
    A = [link.turn(q, sheet) for link, q in zip(links, x.q, strict=True)]
    sheet.equation = "6.3.29b"
    s = [
        (times(turn.c, link.a), -times(turn.s, link.a), sheet.live(link.d))
        for turn, link in zip(A[1:], links[1:], strict=True)
    ]
    U, E = body.u[last], symmetric(body.K[last])
    d: Entries = {}
    for i in range(last, 0, -1):
        f, eta = live(sheet, (-U[1], U[0], 0)), live(sheet, (E[4], E[5], E[2]))
        d[i, i] = E[2]
        _inward(A, s, i, (f, eta), d, sheet, ("6.3.30a", "6.3.30b"))
        sheet.equation = "6.3.29c"
        inside = without(E, symmetric_product(s[i - 1], live(sheet, U)))
        if i == 1:
            d[0, 0] = A[1].last(inside) + body.K[0][2][2]
            break
        E = together(A[i].symmetric(inside, A[i].double()), symmetric(body.K[i - 1]))
        sheet.equation = "6.3.29a"
        U = plus(body.u[i - 1], A[i].out(live(sheet, U)))
    return d


def _inward(
    A: Sequence[Turn],
    s: Sequence[Vector],
    i: int,
    wrench: tuple[Vector, Vector],
    d: Entries,
    sheet: Sheet,
    equations: tuple[str, str],
) -> None:
    """Pass the force and moment of joint i to all previous joints (Eq 6.3.30).

    Only one entry is computed for the first joint.
    """
    f, eta = wrench
    for j in range(i - 1, -1, -1):
        sheet.equation = equations[1]
        shifted = plus(cross(s[j], f), eta)
        if j == 0:
            d[0, i] = dot(A[1].third, shifted)
            return
        eta = A[j + 1].out(shifted)
        sheet.equation = equations[0]
        f = A[j + 1].out(f)
        d[j, i] = eta[2]


def algorithm_6_1(links: Sequence[Link], x: State, sheet: Sheet) -> Entries:
    """Return the mass matrix by Walker and Orin's composite bodies.

    Inertias are about the centers of mass. A pair of joints takes 24 products and 14 sums: the
    offset is computed along the axes of link j+1, with two products as in (6.3.29b).
    """
    A = [link.turn(q, sheet) for link, q in zip(links, x.q, strict=True)]
    d: Entries = {}
    mbar, E = 0.0, None
    R: Vector = (0.0, 0.0, 0.0)
    for i in range(len(links) - 1, -1, -1):
        link, own = links[i], symmetric(tensor(links[i].I))
        if E is None:
            mbar, R, E = link.m, live(sheet, link.r), live_symmetric(sheet, own)
        else:
            sheet.equation = "6.2.8b"
            seen = plus(links[i + 1].s, A[i + 1].out(R))
            whole = link.m + mbar
            near = (link.m * link.r[0], link.m * link.r[1], link.m * link.r[2])
            R = scaled(plus(near, scaled(seen, mbar)), 1.0 / whole)
            sheet.equation = "6.2.8c"
            parts = [_about(link.m, plus(link.r, minus(R))), _about(mbar, plus(seen, minus(R)))]
            E = together(own, *parts, A[i + 1].symmetric(E, A[i + 1].double()))
            mbar = whole
        sheet.equation = "6.2.8d"
        F = scaled((-R[1], R[0], 0), mbar)
        sheet.equation = "6.2.8g"
        f, eta = F, plus((E[4], E[5], E[2]), cross(R, F))
        d[i, i] = eta[2]
        for j in range(i - 1, -1, -1):
            turn, link, f = A[j + 1], links[j + 1], live(sheet, f)
            sheet.equation = "6.2.9b"
            s = (times(turn.c, link.a), -times(turn.s, link.a), sheet.live(link.d))
            eta = turn.out(plus(live(sheet, eta), cross(s, f)))
            sheet.equation = "6.2.9a"
            f = turn.out(f)
            d[j, i] = eta[2]
    return d


def _about(m: float, x: Vector) -> Symmetric:
    """Return m (x.x 1 - x x')."""
    y = scaled(x, m)
    xx, yy, zz = (times(a, b) for a, b in zip(x, y, strict=True))
    return yy + zz, xx + zz, xx + yy, -(x[0] * y[1]), -(x[0] * y[2]), -(x[1] * y[2])


def angeles_ma(links: Sequence[Link], x: State, sheet: Sheet) -> Entries:
    """Return D = P'P with P = N T and M = N'N (Eq 6.2.10 to 6.2.15).

    For link k and joint i, T contains the pair (z_i, z_i x r_ik) along the axes of link k. N is
    known in advance: it contains the triangular root of the inertia about the center of mass, and
    the square root of the mass.
    """
    A = [link.turn(q, sheet) for link, q in zip(links, x.q, strict=True)]
    d: Entries = {}
    T: list[tuple[Vector, Vector]] = []
    for k, link in enumerate(links):
        sheet.equation = "6.2.14"
        if k:
            inner = plus(link.s, minus(links[k - 1].r))
            step = plus(A[k].back(inner), link.r)
            moved = [(A[k].back(z), A[k].back(v)) for z, v in T]
            T = [(z, plus(v, cross(z, step))) for z, v in moved]
        T.append(((0, 0, 1), (-link.r[1], link.r[0], 0)))
        sheet.equation = "6.2.15"
        N, root = tensor(_root(link.I)), sqrt(link.m)
        P = [(*apply(N, z), *scaled(v, root)) for z, v in T]
        for i, right in enumerate(P):
            for j, left in enumerate(P[: i + 1]):
                entry = dot(left, right)
                d[j, i] = d[j, i] + entry if (j, i) in d else entry
    return d


def _root(inertia: Rows) -> Rows:
    """Return the upper triangular N of I = N'N, with structural zeros."""
    N = np.linalg.cholesky(np.array(inertia, dtype=float)).T
    return [[float(N[i, j]) if j >= i else 0 for j in range(3)] for i in range(3)]


def featherstone(links: Sequence[Link], x: State, sheet: Sheet) -> Entries:
    """Return the mass matrix by composite bodies with spatial vectors.

    Each transform is a screw about z and a screw about x. Composite masses are computed while the
    arm moves, and inertias are rotated by the squares of sine and cosine. With these conventions,
    products and sums are as printed.
    """
    A = [link.turn(q, sheet) for link, q in zip(links, x.q, strict=True)]
    d: Entries = {}
    m: Number = 0.0
    I: Symmetric | None = None
    h: Vector = (0.0, 0.0, 0.0)
    for i in range(len(links) - 1, -1, -1):
        turn, link, own = A[min(i + 1, len(A) - 1)], links[min(i + 1, len(A) - 1)], links[i]
        first: Vector = (own.m * own.r[0], own.m * own.r[1], own.m * own.r[2])
        second = together(symmetric(tensor(own.I)), _about(own.m, own.r))
        if I is None:
            m, h, I = sheet.live(own.m), live(sheet, first), live_symmetric(sheet, second)
        else:
            sheet.equation = "X' I X"
            h, I = _screw(2, turn.c, turn.s, link.d, m, h, I)
            h, I = _screw(0, turn.ca, turn.sa, link.a, m, h, I)
            m, h, I = m + own.m, plus(h, first), together(I, second)
        f, eta = live(sheet, (-h[1], h[0], 0)), live(sheet, (I[4], I[5], I[2]))
        d[i, i] = eta[2]
        sheet.equation = "X' f"
        for j in range(i - 1, -1, -1):
            turn, link = A[j + 1], links[j + 1]
            for axis, c, s, step in ((2, turn.c, turn.s, link.d), (0, turn.ca, turn.sa, link.a)):
                f, eta = turned_about(axis, f, c, s), turned_about(axis, eta, c, s)
                u, v = (axis + 1) % 3, (axis + 2) % 3
                moved = list(eta)
                moved[u], moved[v] = eta[u] - f[v] * step, eta[v] + f[u] * step
                eta = (moved[0], moved[1], moved[2])
            d[j, i] = eta[2]
    return d


_PLACES = ((0, 3, 4), (3, 1, 5), (4, 5, 2))
"""Index of the entry of a row and a column in a symmetric tensor of six numbers."""


def _screw(
    axis: int, c: Number, s: Number, step: float, m: Number, h: Vector, I: Symmetric
) -> tuple[Vector, Symmetric]:
    """Return first and second moments of a mass after a screw transform.

    The screw consists of a rotation about an axis and a translation by `step` along it. A screw
    takes 22 products and 19 sums, or 19 and 17 if the angle is a constant.
    """
    u, v = (axis + 1) % 3, (axis + 2) % 3
    at = {name: _PLACES[i][j] for name, i, j in (("uu", u, u), ("vv", v, v), ("uv", u, v))}
    au, av = _PLACES[axis][u], _PLACES[axis][v]
    E = list(I)
    a, b, ab = I[at["uu"]], I[at["vv"]], I[at["uv"]]
    cc, ss, sc = times(c, c), times(s, s), times(s, c)
    mixed = times(sc * 2, ab)
    E[at["uu"]] = times(cc, a) + times(ss, b) - mixed
    E[at["vv"]] = times(ss, a) + times(cc, b) + mixed
    E[at["uv"]] = times(sc, a - b) + times(cc - ss, ab)
    E[au], E[av] = turned(I[au], I[av], c, s)
    g = list(turned_about(axis, h, c, s))
    moved = m * step
    more = (g[axis] * 2 + moved) * step
    E[at["uu"]], E[at["vv"]] = E[at["uu"]] + more, E[at["vv"]] + more
    E[au], E[av] = E[au] - g[u] * step, E[av] - g[v] * step
    g[axis] = g[axis] + moved
    return (g[0], g[1], g[2]), (E[0], E[1], E[2], E[3], E[4], E[5])


def turned_about(axis: int, w: Vector, c: Number, s: Number) -> Vector:
    """Return a vector rotated about an axis."""
    u, v = (axis + 1) % 3, (axis + 2) % 3
    found = list(w)
    found[u], found[v] = turned(w[u], w[v], c, s)
    return found[0], found[1], found[2]


def solve(D: Mapping[tuple[int, int], Number], b: Sequence[Number]) -> list[Number]:
    """Solve D x = b by D = L Dhat L'.

    Six joints take 86 products and quotients, and 65 sums.
    """
    n, L, y = len(b), dict(D), list(b)
    for k in range(n):
        for i in range(k + 1, n):
            factor = L[k, i] / L[k, k]
            for j in range(i, n):
                L[i, j] = L[i, j] - factor * L[k, j]
            y[i] = y[i] - factor * y[k]
            L[i, k] = factor
    found: list[Number] = [0.0] * n
    for k in range(n - 1, -1, -1):
        total = y[k] / L[k, k]
        for i in range(k + 1, n):
            total = total - L[i, k] * found[i]
        found[k] = total
    return found
