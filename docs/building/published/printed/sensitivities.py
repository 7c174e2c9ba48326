"""Algorithm 7.1 as printed, for revolute joints, with operation counts.

In step 1, the results of algorithm 5.7 and the rates of the offsets are known. The transform after
the last link is a general one, to a link without mass.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from building.published.printed.counting import (
    Link,
    Number,
    Sheet,
    Symmetric,
    Tensor,
    Turn,
    Vector,
    apply,
    cross,
    dot,
    live,
    live_symmetric,
    minus,
    plus,
    product,
    skew_product,
    summed,
    symmetric,
    symmetric_product,
    tensor,
    tilde,
    together,
    without,
)
from building.published.printed.newton_euler import (
    Augmented,
    State,
    augmented,
    moment,
    motion,
)

Matrix = dict[tuple[int, int], Number]


@dataclass(frozen=True)
class Known:
    """Results of algorithm 5.7 for a link.

    `wz`, `Oz` and `az` are the third columns of w~, Omega and sdd~. `s` and `sd` are the offset of
    the next link and its rate, and `A` is the rotation of the next link.
    """

    w: Vector
    wz: Vector
    Oz: Vector
    az: Vector
    Udd: Vector
    eta: Vector
    A: Turn
    s: Vector
    sd: Vector


@dataclass(frozen=True)
class Rows:
    """Vectors that joint i passes inward in step 2."""

    f: Vector
    fh: Vector
    fb: Vector
    B: Vector
    C: Vector
    H: Vector
    G: Vector


def algorithm_7_1(links: Sequence[Link], x: State, sheet: Sheet) -> tuple[Matrix, Matrix, Matrix]:
    """Return D, V, P of d tau = D d qdd + V d qd + P d q (tables 7.1 and 7.2)."""
    body, known = augmented(links), before(links, x, sheet)
    zero = live(sheet, (0, 0, 0))
    U, Ud, E, L = zero, zero, live_symmetric(sheet, (0, 0, 0, 0, 0, 0)), (zero, zero, zero)
    D: Matrix = {}
    V: Matrix = {}
    P: Matrix = {}
    for i in range(len(links) - 1, 0, -1):
        k = known[i]
        sheet.equation = "7.3.18a"
        U1 = k.A.out(U)
        U = plus(body.u[i], U1)
        sheet.equation = "7.3.18b"
        Ud1 = k.A.out(Ud)
        Ud = plus(cross(k.w, body.u[i]), Ud1)
        sheet.equation = "7.3.18c"
        shift = symmetric_product(k.s, U1)
        E = without(together(symmetric(body.K[i]), k.A.symmetric(E, k.A.double())), shift)
        sheet.equation = "7.3.18d"
        inner = summed(skew_product(k.s, Ud1), skew_product(U1, k.sd))
        own = tensor(product(tilde(k.w), body.Khat[i]))
        L = summed(own, inner, k.A.tensor(L))
        rows = _step_1(k, U, Ud, E, L, sheet)
        D[i, i], V[i, i], P[i, i] = _entries(rows, k, sheet, ("7.3.18m", "7.3.18n"))
        _step_2(rows, known, i, sheet, (D, V, P))
    _first(body, known[0], (U, Ud, E, L), sheet, (D, V, P))
    return D, V, P


def _step_1(k: Known, U: Vector, Ud: Vector, E: Symmetric, L: Tensor, sheet: Sheet) -> Rows:
    """Return the vectors of Eq 7.3.18e to k."""
    T = _rows(E)
    sheet.equation = "7.3.18f"
    fh = plus(cross(U, k.wz), (Ud[1], -Ud[0], 0))
    sheet.equation = "7.3.18g"
    twice = _doubled(cross(Ud, k.wz))
    fb = plus(cross(U, k.Oz), twice, (k.Udd[1], -k.Udd[0], 0))
    sheet.equation = "7.3.18j"
    H = plus(apply(T, k.wz), minus((L[0][2], L[1][2], L[2][2])))
    sheet.equation = "7.3.18k"
    turned = minus(_doubled(apply(L, k.wz)))
    G = plus(apply(T, k.Oz), turned, cross(U, k.az), (-k.eta[1], k.eta[0], 0))
    return Rows((-U[1], U[0], 0), fh, fb, (E[4], E[5], E[2]), L[2], H, G)


def _entries(
    r: Rows, k: Known, sheet: Sheet, equations: tuple[str, str]
) -> tuple[Number, Number, Number]:
    """Return d, v and p of joint i for joint j (Eq 7.3.18l to n, 7.3.19h to l)."""
    sheet.equation = equations[0]
    v = (dot(r.B, k.wz) - r.C[2]) * 2
    sheet.equation = equations[1]
    p = dot(r.B, k.Oz) - dot(r.C, k.wz) * 2 + dot(r.f, k.az)
    return r.B[2], v, p


def _step_2(
    r: Rows, known: Sequence[Known], i: int, sheet: Sheet, found: tuple[Matrix, Matrix, Matrix]
) -> None:
    """Compute Eq 7.3.19 from joint i inward; C, H and G of the first joint have one entry."""
    D, V, P = found
    r = Rows(*(live(sheet, v) for v in vars(r).values()))
    for j in range(i - 1, -1, -1):
        k, whole = known[j], j > 0
        sheet.equation = "7.3.19a"
        f = k.A.out(r.f)
        sheet.equation = "7.3.19b"
        fh = k.A.out(r.fh)
        sheet.equation = "7.3.19c"
        fb = k.A.out(r.fb)
        sheet.equation = "7.3.19d"
        B = plus(k.A.out(r.B), cross(k.s, f))
        sheet.equation = "7.3.19e"
        C = _passed(r.C, f, k.sd, k.A, sheet, whole=whole)
        sheet.equation = "7.3.19f"
        H = _passed(r.H, fh, k.s, k.A, sheet, whole=whole)
        sheet.equation = "7.3.19g"
        G = _passed(r.G, fb, k.s, k.A, sheet, whole=whole)
        r = Rows(f, fh, fb, B, C, H, G)
        D[i, j], V[i, j], P[i, j] = _entries(r, k, sheet, ("7.3.19j", "7.3.19l"))
        D[j, i], P[j, i] = D[i, j], G[2]
        sheet.equation = "7.3.19k"
        V[j, i] = H[2] * 2


def _passed(v: Vector, f: Vector, s: Vector, A: Turn, sheet: Sheet, *, whole: bool) -> Vector:
    """Return A v + f x s; if not `whole`, compute only its last entry."""
    if whole:
        return plus(A.out(v), cross(f, s))
    last = dot(A.third, v) + (f[0] * s[1] - f[1] * s[0])
    return sheet.live(0), sheet.live(0), last


def _first(
    body: Augmented,
    k: Known,
    carried: tuple[Vector, Vector, Symmetric, Tensor],
    sheet: Sheet,
    found: tuple[Matrix, Matrix, Matrix],
) -> None:
    """Compute the entries of the first joint, which need only one entry of E and one of L.

    The third row of A is known, and has no zeros, as in table 7.1. In (7.3.18c), each factor 2 is a
    product; the printed 8 sums are the smallest possible number. The operations of "first joint"
    are not in the table: rotations of U and dU/dt, and p, which contains only the gravity term
    because the axis of the first joint is at rest.
    """
    U, Ud, E, L = carried
    sheet.equation = "first joint"
    U1, Ud1, row = k.A.out(U), k.A.out(Ud), live(sheet, k.A.third)
    sheet.equation = "7.3.18c"
    d = body.K[0][2][2] + _expanded(row, E) + 2.0 * (k.s[0] * U1[0] + k.s[1] * U1[1])
    sheet.equation = "7.3.18d"
    own = body.Khat[0][1][2] * k.w[0] - body.Khat[0][0][2] * k.w[1]
    inner = k.s[0] * Ud1[0] + k.s[1] * Ud1[1] + (k.sd[0] * U1[0] + k.sd[1] * U1[1])
    C = own + dot(row, apply(L, row)) - inner
    sheet.equation = "first joint"
    U = plus(body.u[0], U1)
    found[0][0, 0], found[1][0, 0] = d, -(C * 2)
    found[2][0, 0] = -(U[1] * k.az[0]) + U[0] * k.az[1]


def _expanded(v: Vector, S: Symmetric) -> Number:
    """Return v . S v as a sum over the six entries, with 15 products and 5 sums."""
    x, y, z = v
    mixed = (2.0 * (x * y), 2.0 * (x * z), 2.0 * (y * z))
    return dot((x * x, y * y, z * z, *mixed), S)


def _rows(S: Symmetric) -> Tensor:
    xx, yy, zz, xy, xz, yz = S
    return (xx, xy, xz), (xy, yy, yz), (xz, yz, zz)


def _doubled(v: Vector) -> Vector:
    return v[0] * 2, v[1] * 2, v[2] * 2


def before(links: Sequence[Link], x: State, sheet: Sheet) -> list[Known]:
    """Return the results of algorithm 5.7 as live numbers, with complete moments and forces.

    Operations of algorithm 5.7 are counted on a separate sheet.
    """
    other, body = Sheet(), augmented(links)
    m = motion(links, x, other, optimised=False)
    n = len(links)
    Udd: dict[int, Vector] = {}
    eta: dict[int, Vector] = {}
    zero: Vector = (0.0, 0.0, 0.0)
    s = [*(link.s for link in links[1:]), zero]
    for i in range(n - 1, -1, -1):
        t = m.A[i + 1].out(Udd[i + 1]) if i + 1 < n else zero
        turned = m.A[i + 1].out(eta[i + 1]) if i + 1 < n else zero
        Udd[i] = plus(apply(m.Omega[i], body.u[i]), t)
        mu = moment(m.Omega[i], body.Khat[i])
        eta[i] = plus(mu, cross(body.u[i], m.sdd[i]), cross(s[i], t), turned)
    tool = links[-1].turn(0.3, sheet)
    A = [*(link.turn(q, sheet) for link, q in zip(links[1:], x.q[1:], strict=True)), tool]

    def known(i: int) -> Known:
        w, a, O = m.w[i], m.sdd[i], m.Omega[i]
        Oz: Vector = (O[0][2], O[1][2], O[2][2])
        full = [live(sheet, v) for v in (w, Oz, Udd[i], eta[i], s[i], cross(w, s[i]))]
        wz, az = ((v[1], -v[0], 0) for v in (full[0], live(sheet, a)))
        return Known(full[0], wz, full[1], az, full[2], full[3], A[i], full[4], full[5])

    return [known(i) for i in range(n)]
