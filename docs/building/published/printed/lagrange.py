"""Lagrangian formulations of section 5.2 as printed; every entry of every matrix is counted.

Matrices are dense, so zeros and ones are counted like any other number. A product under a trace is
computed completely, and a matrix is computed again in each equation that contains it. The sums of
Eq 5.2.10 and the sum over j start from zero. Only products with the initial conditions W_0 = 1,
Wd_0 = Wdd_0 = 0 and A_{n+1} = 0 are left out. With these rules, the numbers of additions agree with
the table.
"""

from collections.abc import Sequence
from itertools import product as pairs

from building.published.printed.counting import (
    Link,
    Live,
    Number,
    Rows,
    Sheet,
    dot,
    product,
)
from building.published.printed.newton_euler import G, State

Table = list[list[Number]]


def add(*tables: Rows) -> Table:
    first, *rest = ([list(row) for row in table] for table in tables)
    for table in rest:
        both = zip(first, table, strict=True)
        first = [[a + b for a, b in zip(*rows, strict=True)] for rows in both]
    return first


def times(table: Rows, factor: Number) -> Table:
    return [[entry * factor for entry in row] for row in table]


def transposed(table: Rows) -> Table:
    return [list(row) for row in zip(*table, strict=True)]


def applied(table: Rows, v: Sequence[Number]) -> list[Number]:
    return [dot(row, v) for row in table]


def trace_of_product(A: Rows, B: Rows) -> Number:
    """Return tr(A B), with the complete product."""
    whole = product(A, B)
    total = whole[0][0]
    for k in range(1, len(whole)):
        total = total + whole[k][k]
    return total


def placed(link: Link, q: float, sheet: Sheet, *, size: int) -> tuple[Table, Table, Table]:
    """Return A, dA/dq and d2A/dq2 of size 4 (Eq 2.3.2) or 3 (Eq 2.3.3)."""
    turn = link.turn(q, Sheet())
    c, s, ca, sa = (float(x) for x in (turn.c, turn.s, turn.ca, turn.sa))
    found = []
    for cos, sin, once in ((c, s, 1.0), (-s, c, 0.0), (-c, -s, 0.0)):
        rows = [
            [cos, -sin, 0.0, once * link.a],
            [ca * sin, ca * cos, -sa * once, once * float(link.s[1])],
            [sa * sin, sa * cos, ca * once, once * float(link.s[2])],
            [0.0, 0.0, 0.0, once],
        ]
        found.append([[sheet.live(x) for x in row[:size]] for row in rows[:size]])
    return found[0], found[1], found[2]  # type: ignore[return-value]


def pseudo_inertia(link: Link, sheet: Sheet) -> Table:
    """Return J of Eq 5.2.3: second and first moments about the link's origin, and its mass."""
    half, r = 0.5 * sum(link.I[k][k] for k in range(3)), (*link.r, 1.0)
    J = [[link.m * a * b for b in r] for a in r]
    for i, j in pairs(range(3), repeat=2):
        J[i][j] += half * (i == j) - link.I[i][j]
    return [[sheet.live(x) for x in row] for row in J]


class Chain:
    """Matrices W, Wd, Wdd of all links (Eq 5.2.10, 5.2.12 or 5.2.15)."""

    def __init__(self, links: Sequence[Link], x: State, sheet: Sheet, *, size: int) -> None:
        self.A, self.dA, self.ddA = zip(
            *(placed(k, q, sheet, size=size) for k, q in zip(links, x.q, strict=True)), strict=True
        )
        self.W: list[Table] = []
        self.Wd: list[Table] = []
        self.Wdd: list[Table] = []
        self.sheet = sheet
        none = [[sheet.live(0.0)] * size for _ in range(size)]
        for i, (A, dA, ddA) in enumerate(zip(self.A, self.dA, self.ddA, strict=True)):
            qd, qdd = sheet.live(x.qd[i]), sheet.live(x.qdd[i])
            sheet.equation = "W"
            self.W.append(product(self.W[i - 1], A) if i else A)
            sheet.equation = "Wd"
            once = times(product(self.W[i - 1], dA) if i else dA, qd)
            self.Wd.append(add(none, product(self.Wd[i - 1], A) if i else none, once))
            sheet.equation = "Wdd"
            both = times(product(self.Wd[i - 1], dA) if i else none, qd * sheet.live(2.0))
            twice = times(product(self.W[i - 1], ddA) if i else ddA, qd * qd)
            more = times(product(self.W[i - 1], dA) if i else dA, qdd)
            first = product(self.Wdd[i - 1], A) if i else none
            self.Wdd.append(add(none, first, both, twice, more))

    def own(self, i: int) -> Table:
        """Return dW_i/dq_i = W_{i-1} dA_i/dq_i."""
        return product(self.W[i - 1], self.dA[i]) if i else self.dA[0]


def _gravity(sheet: Sheet, size: int) -> list[Live]:
    return [sheet.live(x) for x in (0.0, 0.0, -G, 0.0)[:size]]


def algorithm_5_1(links: Sequence[Link], x: State, sheet: Sheet) -> list[Number]:
    """Return joint torques by Hollerbach's recursion with 4x4 matrices."""
    chain, g, last = Chain(links, x, sheet, size=4), _gravity(sheet, 4), len(links) - 1
    tau: list[Number] = []
    D: Table = []
    c: list[Number] = []
    for i in range(last, -1, -1):
        link = links[i]
        r = [sheet.live(e) for e in (*link.r, 1.0)]
        sheet.equation = "5.2.13a"
        JW = product(pseudo_inertia(link, sheet), transposed(chain.Wdd[i]))
        D = add(JW, product(chain.A[i + 1], D)) if i < last else JW
        sheet.equation = "5.2.13b"
        m: list[Number] = [e * link.m for e in r]
        carried = applied(chain.A[i + 1], c) if i < last else []
        c = [a + b for a, b in zip(m, carried, strict=True)] if carried else m
        sheet.equation = "5.2.13c"
        moving = chain.own(i)
        tau.append(trace_of_product(moving, D) - dot(g, applied(moving, c)))
    return tau[::-1]


def algorithm_5_2(links: Sequence[Link], x: State, sheet: Sheet) -> list[Number]:
    """Return joint torques by Hollerbach's recursion with 3x3 matrices.

    The potential energy is that of appendix A.
    """
    chain, g, last = Chain(links, x, sheet, size=3), _gravity(sheet, 3), len(links) - 1
    s = [[sheet.live(float(e)) for e in link.s] for link in links]
    zero: list[Number] = [sheet.live(0.0)] * 3
    sdd = [zero]
    sheet.equation = "5.2.15d"
    for i in range(1, last + 1):
        moved = applied(chain.Wdd[i - 1], s[i])
        sdd.append([a + b for a, b in zip(sdd[-1], moved, strict=True)])
    tau: list[Number] = []
    D: Table = []
    c: list[Number] = []
    e: list[Number] = []
    beyond = 0.0
    for i in range(last, -1, -1):
        link, n = links[i], [sheet.live(links[i].m * r) for r in links[i].r]
        J = [row[:3] for row in pseudo_inertia(link, sheet)[:3]]
        sheet.equation = "5.2.16b"
        own = add([[a * b for b in sdd[i]] for a in n], product(J, transposed(chain.Wdd[i])))
        if i < last:
            shifted = [[a * b for b in e] for a in s[i + 1]]
            D = add(product(chain.A[i + 1], D), shifted, own)
        else:
            D = own
        sheet.equation = "5.2.16a"
        F = [a * link.m + b for a, b in zip(sdd[i], applied(chain.Wdd[i], n), strict=True)]
        e = [a + b for a, b in zip(e, F, strict=True)] if e else F
        sheet.equation = "5.2.16c"
        far = links[i + 1].s if i < last else (0.0, 0.0, 0.0)
        near: list[Number] = [
            sheet.live(float(a) + beyond * float(b)) for a, b in zip(n, far, strict=True)
        ]
        carried = applied(chain.A[i + 1], c) if i < last else []
        c = [a + b for a, b in zip(near, carried, strict=True)] if carried else near
        sheet.equation = "5.2.16d"
        moving = chain.own(i)
        tau.append(trace_of_product(moving, D) - dot(g, applied(moving, c)))
        beyond += link.m
    return tau[::-1]


def waters(links: Sequence[Link], x: State, sheet: Sheet) -> list[Number]:
    """Return joint torques by Eq 5.2.9.

    For each pair of links, dW_j/dq_i is computed, and then a trace and the moment of the weight.
    """
    chain, g, n = Chain(links, x, sheet, size=4), _gravity(sheet, 4), len(links)
    tau: list[Number] = []
    for i in range(n):
        sheet.equation = "5.2.9"
        moving = chain.own(i)
        total: Number = sheet.live(0.0)
        for j in range(i, n):
            moving = product(moving, chain.A[j]) if j > i else moving
            J, r = pseudo_inertia(links[j], sheet), [sheet.live(e) for e in (*links[j].r, 1.0)]
            inertia = trace_of_product(product(moving, J), transposed(chain.Wdd[j]))
            term = inertia - dot(g, applied(moving, r)) * links[j].m
            total = total + term
        tau.append(total)
    return tau


def uicker_kahn(links: Sequence[Link], x: State, sheet: Sheet) -> list[Number]:
    """Return joint torques by Eq 5.2.7, with the traces of each term computed separately.

    dW J is computed again in each trace. The inertia matrix is symmetric, so a trace is computed
    only for k <= i, but used twice. The terms of inertia, velocity and weight have the equations
    "D", "C" and "G of 5.2.7".
    """
    n, g = len(links), _gravity(sheet, 4)
    A = [placed(k, q, sheet, size=4) for k, q in zip(links, x.q, strict=True)]
    qd, qdd = ([sheet.live(v) for v in rates] for rates in (x.qd, x.qdd))
    tau: list[Number] = [sheet.live(0.0) for _ in links]
    derived = Derivatives()
    for j in range(n):
        sheet.equation = "dW of 5.2.7"
        once, twice = derived.advance(*A[j])
        J, r = pseudo_inertia(links[j], sheet), [sheet.live(e) for e in (*links[j].r, 1.0)]
        for i in range(j + 1):
            sheet.equation = "D of 5.2.7"
            for k in range(i + 1):
                inertia = trace_of_product(product(once[i], J), transposed(once[k]))
                tau[i] = tau[i] + inertia * qdd[k]
                if k < i:
                    tau[k] = tau[k] + inertia * qdd[i]
            sheet.equation = "C of 5.2.7"
            for k, l in pairs(range(j + 1), repeat=2):
                second = transposed(twice[min(k, l), max(k, l)])
                force = trace_of_product(product(once[i], J), second)
                tau[i] = tau[i] + force * qd[k] * qd[l]
            sheet.equation = "G of 5.2.7"
            tau[i] = tau[i] - dot(g, applied(once[i], r)) * links[j].m
    return tau


class Derivatives:
    """First and second derivatives of W_j, from matrices from each link i to link j.

    A derivative with respect to q_k is W_{k-1} dA_k, times the matrix from link k to link j. For
    link j of the book, there are j - 1 new matrices between links, j first derivatives and
    j (j + 1)/2 second derivatives, and each is one product. Two products with W_0 = 1 are left out.
    """

    def __init__(self) -> None:
        self.between: list[Table] = []
        self.once: list[Table] = []
        self.twice: dict[tuple[int, int], Table] = {}
        self.before: list[Table] = []

    def advance(
        self, A: Table, dA: Table, ddA: Table
    ) -> tuple[list[Table], dict[tuple[int, int], Table]]:
        """Return the derivatives of the next W_j with respect to q_k, and q_k and q_l, k <= l."""
        j, W = len(self.between), self.between[0] if self.between else None
        self.between = [*(product(M, A) for M in self.between), A]
        for k, first in enumerate(self.before):
            self.twice[k, j] = product(first, dA)
        self.twice[j, j] = product(W, ddA) if W else ddA
        self.once.append(product(W, dA) if W else dA)
        self.before = [self._moved(M, k) for k, M in enumerate(self.once)]
        return self.before, {(k, l): self._moved(M, l) for (k, l), M in self.twice.items()}

    def _moved(self, M: Table, k: int) -> Table:
        return product(M, self.between[k + 1]) if k + 1 < len(self.between) else M
