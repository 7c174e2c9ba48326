"""Inverse dynamics of chapter 5 as printed, for revolute joints, with operation counts.

Links are numbered from 0, so link i of the book has index `i - 1`. Gravity acts along the z axis of
the base, and is represented by the acceleration (0, 0, g) of the base.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from building.published.printed.counting import (
    Link,
    Number,
    Sheet,
    Tensor,
    Turn,
    Vector,
    apply,
    cross,
    dot,
    live,
    plus,
    scaled,
    tensor,
)

G = 9.81


@dataclass(frozen=True)
class State:
    """Positions, velocities and accelerations of the joints."""

    q: Sequence[float]
    qd: Sequence[float]
    qdd: Sequence[float]


@dataclass(frozen=True)
class Augmented:
    """Constants mbar, u, K and Khat of each link, from step 1 of algorithms 5.7 and 6.2."""

    m: tuple[float, ...]
    u: tuple[Vector, ...]
    K: tuple[Tensor, ...]
    Khat: tuple[Tensor, ...]


def augmented(links: Sequence[Link]) -> Augmented:
    """Return the constants of augmented links (Eq 5.3.9 to 5.3.12 and 5.3.28)."""
    found: list[tuple[float, Vector, Tensor, Tensor]] = []
    beyond, s = 0.0, (0.0, 0.0, 0.0)
    for link in reversed(links):
        u = [link.m * r + beyond * x for r, x in zip(link.r, s, strict=True)]
        K = [
            [
                link.I[i][j] + link.m * _steiner(link.r, i, j) + beyond * _steiner(s, i, j)
                for j in range(3)
            ]
            for i in range(3)
        ]
        half = 0.5 * (K[0][0] + K[1][1] + K[2][2])
        Khat = [[half * (i == j) - K[i][j] for j in range(3)] for i in range(3)]
        beyond, s = beyond + link.m, tuple(map(float, link.s))  # type: ignore[assignment]
        found.append((beyond, (u[0], u[1], u[2]), tensor(K), tensor(Khat)))
    m, u_, K_, Khat_ = zip(*reversed(found), strict=True)
    return Augmented(m, u_, K_, Khat_)


def _steiner(r: Sequence[float], i: int, j: int) -> float:
    return (i == j) * sum(x * x for x in r) - r[i] * r[j]


def moment(Omega: Tensor, K: Tensor) -> Vector:
    """Return dual(Omega K - (Omega K)') for a symmetric K, with 15 products and 15 sums.

    See section 5.3.2.
    """
    (axx, axy, axz), (ayx, ayy, ayz), (azx, azy, azz) = Omega
    (kxx, kxy, kxz), (_, kyy, kyz), (_, _, kzz) = K
    return (
        azx * kxy + azy * kyy + (azz - ayy) * kyz - ayx * kxz - ayz * kzz,
        (axx - azz) * kxz + axy * kyz + axz * kzz - azx * kxx - azy * kxy,
        ayx * kxx + (ayy - axx) * kxy + ayz * kxz - axy * kyy - axz * kyz,
    )


def rate_tensor(w: Vector, wd: Vector) -> Tensor:
    """Return Omega = wd~ + w~ w~, with 6 products and 9 sums (section 5.3.2)."""
    xx, yy, zz = (x * x for x in w)
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    return (
        (-(yy + zz), xy - wd[2], xz + wd[1]),
        (xy + wd[2], -(xx + zz), yz - wd[0]),
        (xz - wd[1], yz + wd[0], -(xx + yy)),
    )


@dataclass
class Motion:
    """Rotation A, w, wd, Omega and sdd of each link, from step 2 of algorithms 5.6 and 5.7."""

    A: list[Turn]
    w: list[Vector]
    wd: list[Vector]
    Omega: list[Tensor]
    sdd: list[Vector]


def first_tensor(w: Vector, wd: Vector) -> Tensor:
    """Return Omega of the first link, which rotates only about z, with one product."""
    square = -(w[2] * w[2])
    return (square, -wd[2], 0), (wd[2], square, 0), (0, 0, 0)


def motion(
    links: Sequence[Link], x: State, sheet: Sheet, *, optimised: bool, weighed: bool = False
) -> Motion:
    """Compute Eq 5.3.45a to e, with the first link treated separately.

    If `optimised`, zeros of the first link are used for the second link. If `weighed`, the products
    of gravity with the third row of the first rotation are known.
    """
    rates = [(sheet.live(a), sheet.live(b)) for a, b in zip(x.qd, x.qdd, strict=True)]
    A = [link.turn(q, sheet) for link, q in zip(links, x.q, strict=True)]
    qd, qdd = rates[0]
    w: list[Vector] = [(0, 0, qd)]
    wd: list[Vector] = [(0, 0, qdd)]
    sheet.equation = "5.3.45c"
    Omega = [first_tensor(w[0], wd[0])]
    sheet.equation = "5.3.45e"
    row = A[0].third
    known = scaled((float(row[0]), float(row[1]), float(row[2])), G)
    sdd = [live(sheet, known if weighed else scaled(row, sheet.live(G)))]
    before = (w[0], wd[0], Omega[0]) if optimised else _full(sheet, w[0], wd[0], Omega[0])
    for i in range(1, len(links)):
        qd, qdd = rates[i]
        sheet.equation = "5.3.45a"
        carried = A[i].back(before[0])
        w.append((carried[0], carried[1], carried[2] + qd))
        sheet.equation = "5.3.45b"
        turned = scaled(A[i].third, before[1][2]) if optimised and i == 1 else A[i].back(before[1])
        wd.append((turned[0] + carried[1] * qd, turned[1] - carried[0] * qd, turned[2] + qdd))
        sheet.equation = "5.3.45c"
        Omega.append(rate_tensor(w[i], wd[i]))
        sheet.equation = "5.3.45e"
        sdd.append(A[i].back(plus(sdd[i - 1], apply(before[2], links[i].s))))
        before = w[i], wd[i], Omega[i]
    return Motion(A, w, wd, Omega, sdd)


def _full(sheet: Sheet, w: Vector, wd: Vector, Omega: Tensor) -> tuple[Vector, Vector, Tensor]:
    """Return tensors with live entries, so that zeros are not left out (table 5.1)."""
    x, y, z = (live(sheet, row) for row in Omega)
    return live(sheet, w), live(sheet, wd), (x, y, z)


def algorithm_5_7(
    links: Sequence[Link], x: State, sheet: Sheet, *, optimised: bool = True
) -> list[Number]:
    """Return joint torques by tensors and augmented links (table 5.2; if not optimised, 5.1)."""
    body = augmented(links)
    A, w, wd, Omega, sdd = vars(motion(links, x, sheet, optimised=optimised)).values()
    last = len(links) - 1
    sheet.equation = "5.3.45f"
    mu = [first_moment(wd[0], Omega[0], body.Khat[0], whole=not optimised)]
    mu += [moment(Omega[i], body.Khat[i]) for i in range(1, last + 1)]
    sheet.equation = "5.3.46a"
    Udd = apply(Omega[last], body.u[last]) if last else (0, 0, 0)
    sheet.equation = "5.3.46b"
    eta = plus(mu[last], cross(body.u[last], sdd[last]))
    tau = [eta[2]]
    full = _full(sheet, w[0], wd[0], Omega[0])[2]
    for i in range(last - 1, -1, -1):
        turn, s = A[i + 1], links[i + 1].s
        sheet.equation = "5.3.46a"
        t = turn.out(Udd)
        if optimised and i == 0:
            sheet.equation = "5.3.46b"
            own, carried = _third(body.u[0], sdd[0]), _third(s, t)
            tau.append(mu[0][2] + own + carried + dot(turn.third, eta))
            break
        Udd = plus(apply(Omega[i] if i else full, body.u[i]), t)
        sheet.equation = "5.3.46b"
        eta = plus(mu[i], cross(body.u[i], sdd[i]), cross(s, t), turn.out(eta))
        tau.append(eta[2])
    return tau[::-1]


def first_moment(wd: Vector, Omega: Tensor, K: Tensor, *, whole: bool) -> Vector:
    """Return mu of the first link, whose Omega has two independent entries.

    If not `whole`, compute only the third entry.
    """
    if not whole:
        return 0, 0, Omega[1][0] * K[0][0] - Omega[0][1] * K[1][1]
    square, spin = Omega[0][0], wd[2]
    trace = spin.sheet.live(float(K[0][0])) + K[1][1]  # type: ignore[union-attr]
    return (
        -(square * K[1][2] + spin * K[0][2]),
        square * K[0][2] - spin * K[1][2],
        spin * trace,
    )


def _third(u: Vector, v: Vector) -> Number:
    """Return z . (u x v)."""
    return u[0] * v[1] - u[1] * v[0]


def algorithm_5_6(links: Sequence[Link], x: State, sheet: Sheet) -> list[Number]:
    """Return joint torques by tensors, with the first and last links treated separately.

    The count is that of the row in table 5.3. Products with gravity are not counted, and rdd of the
    first link takes three sums, although one of the terms has a zero entry.
    """
    moving = motion(links, x, sheet, optimised=False, weighed=True)
    A, _, wd, Omega, sdd = vars(moving).values()
    last, tau = len(links) - 1, []
    f: Vector = (0, 0, 0)
    eta: Vector = (0, 0, 0)
    for i in range(last, -1, -1):
        link = links[i]
        sheet.equation = "5.3.7e"
        rdd = plus(live(sheet, apply(Omega[i], link.r)), sdd[i])
        sheet.equation = "5.3.7f"
        F = scaled(rdd, link.m)
        sheet.equation = "5.3.7g"
        J = _euler(link)
        M = moment(Omega[i], J) if i else first_moment(wd[0], Omega[0], J, whole=True)
        sheet.equation = "5.3.8b"
        own = plus(M, cross(link.r, F))
        if i == last:
            f, eta = F, own
        else:
            sheet.equation = "5.3.8a"
            g = A[i + 1].out(f)
            f = plus(g, F)
            sheet.equation = "5.3.8b"
            eta = plus(own, cross(links[i + 1].s, g), A[i + 1].out(eta))
        tau.append(eta[2])
    return tau[::-1]


def _euler(link: Link) -> Tensor:
    half = 0.5 * sum(link.I[k][k] for k in range(3))
    return tensor([[half * (i == j) - link.I[i][j] for j in range(3)] for i in range(3)])
