"""Closed-form dynamics with generalized links (Eq 5.2.17 to 5.2.20), along each link's axes."""

from collections.abc import Sequence

from building.published.printed.counting import (
    Link,
    Number,
    Sheet,
    Symmetric,
    Vector,
    Z,
    cross,
    dot,
    plus,
    scaled,
    symmetric,
    symmetric_product,
    times,
    together,
    without,
)
from building.published.printed.newton_euler import G, State, augmented


def vukobratovic(links: Sequence[Link], x: State, sheet: Sheet) -> list[Number]:
    """Return tau = D qdd + qd C qd + G (Vukobratovic, Li and Kircanski), with all symbols of C."""
    n = len(links)
    A = [link.turn(q, sheet) for link, q in zip(links, x.q, strict=True)]
    qd, qdd = ([sheet.live(v) for v in rates] for rates in (x.qd, x.qdd))
    U, E = _generalized(links, x, sheet)
    tau: list[Number] = [0] * n
    z: list[Vector] = []
    s: list[Vector] = []
    g: Vector = (0, 0, -G)
    for i in range(n):
        sheet.equation = "z, s"
        step = (links[i].a * A[i].c, -(links[i].a * A[i].s), links[i].d)
        s = [*(plus(A[i].back(v), step) for v in s[:-1]), *([step] if i else []), (0, 0, 0)]
        z = [*(A[i].back(v) for v in z[:-1]), *([A[i].third] if i else []), Z]
        y = [cross(a, b) for a, b in zip(z, s, strict=True)]
        sheet.equation = "5.2.19c"
        g = A[i].back(g) if i else scaled(A[0].third, -G)
        tau[i] = tau[i] - (times(U[i][0], g[1]) - times(U[i][1], g[0]))
        sheet.equation = "5.2.19a"
        for j in range(i + 1):
            d = dot((E[i][4], E[i][5], E[i][2]), z[j])
            d = d + (times(U[i][0], y[j][1]) - times(U[i][1], y[j][0]))
            tau[j] = tau[j] + d * qdd[i]
            tau[i] = tau[i] + d * qdd[j] if j < i else tau[i]
        c = _symbols(U[i], E[i], z, y, sheet)
        sheet.equation = "C of 5.2.17"
        for j in range(i):
            inner = _sum([c[j][k] * qd[k] for k in range(j)])
            whole = _sum([inner, *(c[j][k] * qd[k] for k in range(j + 1, i))]) * 2
            own = c[j][j] * qd[j]
            tau[j] = tau[j] + (whole + own * 2 + c[j][i] * qd[i]) * qd[i]
            tau[i] = tau[i] - (inner * 2 + own) * qd[j]
    return tau


def _sum(terms: Sequence[Number]) -> Number:
    total: Number = 0
    for term in terms:
        total = total + term
    return total


def _generalized(
    links: Sequence[Link], x: State, sheet: Sheet
) -> tuple[list[Vector], list[Symmetric]]:
    """Return U and E of Eq 5.2.20, with the constants of each link combined."""
    body, n = augmented(links), len(links)
    U, E = list(body.u), [symmetric(K) for K in body.K]
    for i in range(n - 2, -1, -1):
        turn, link = links[i + 1].turn(x.q[i + 1], sheet), links[i + 1]
        sheet.equation = "5.2.20a"
        step = (link.a * turn.c, -(link.a * turn.s), link.d)
        inside = without(E[i + 1], symmetric_product(step, U[i + 1]))
        E[i] = together(turn.symmetric(inside, turn.double()), E[i])
        sheet.equation = "5.2.20b"
        U[i] = plus(U[i], turn.out(U[i + 1]))
    return U, E


def _symbols(
    U: Vector, E: Symmetric, z: Sequence[Vector], y: Sequence[Vector], sheet: Sheet
) -> list[list[Number]]:
    """Return c_ik(j) of Eq 5.2.19b for all j < i and k <= i, with z_i = (0, 0, 1).

    Each symbol is z_j . a_k + y_j . b_k, with y_j = z_j x s_ji, a_k = z x (E - tr E/2) z_k and
    b_k = z_k x (z x U). The first two entries of b_k are -U_x and -U_y times the z component of
    z_k. The third entry is the scalar product of the x and y components of z_k and U. A symbol
    takes 4 products and 3 sums.
    """
    xx, yy, zz, xy, xz, yz = E
    sheet.equation = "5.2.19b"
    half = (xx + yy + zz) * 0.5
    sx, sy = (xx - half, xy, xz), (xy, yy - half, yz)
    a = [(-dot(sy, v), dot(sx, v)) for v in z]
    along = [times(v[0], U[0]) + times(v[1], U[1]) for v in z]
    across = [times(v[0], U[0]) + times(v[1], U[1]) for v in y]
    return [
        [
            dot(z[j][:2], a[k]) - times(z[k][2], across[j]) + times(y[j][2], along[k])
            for k in range(len(z))
        ]
        for j in range(len(z) - 1)
    ]
