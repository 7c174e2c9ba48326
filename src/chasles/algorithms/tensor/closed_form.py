"""Closed-form equations of motion: mass matrix, Christoffel symbols and gravity forces."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement, product
from typing import NamedTuple

from chasles.algorithms.spatial.kinematics import body_transforms
from chasles.expr import Number
from chasles.mathematics.linear import Matrix, Vector, diagonal
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Force, Motion, RigidInertia, Transform
from chasles.mathematics.tensor import euler_from_inertia
from chasles.model.joints import Joint
from chasles.model.model import WORLD, Model
from chasles.model.spaces import (
    ABSENT,
    Effort,
    Freedom,
    FreedomMatrix,
    Position,
    Symbols,
    Velocity,
    Wrenches,
)

Form = tuple[FreedomMatrix, Symbols, Effort]
"""Mass matrix D, Christoffel symbols C and gravity forces G."""


def vukobratovic(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Compute the generalized forces D qdd + qd C qd + G with generalized links.

    See Balafoutis and Patel 1991, Eq 5.2.19-20.
    """
    return efforts(model, q, qd, qdd, f_ext, closed_form_vukobratovic(model, q))


def closed_form_vukobratovic(model: Model, q: Position) -> Form:
    """Return the mass matrix D, Christoffel symbols C and gravity forces G of generalized links.

    See Balafoutis and Patel 1991, Eq 5.2.19-20. The book covers chains of revolute joints. Here,
    each degree of freedom has an angular direction z and a linear direction v. v is zero for a
    rotation, and z is zero for a translation. For other motions, both can be nonzero. Unlike in
    the book, G uses the composite center of mass and is the generalized force that balances
    gravity.
    """
    links, S, bend = _generalized(model, q)  # (5.2.20a, 5.2.20b)
    own, g = freedoms(model), model.gravity_vector
    f = {
        (b, c): _carried(links[i], S[i, b], S[i, c])
        for i, path in paths(model)
        for c in own[i]
        for b in path
    }  # (5.2.19b)

    def symbol(a: Freedom, b: Freedom, c: Freedom) -> Number:
        """Return the integral of (z_a x r + v_a) . z_b x (z_c x r + v_c) dm.

        b must belong to the same joint as c, or to a joint between the base and c.
        """
        if a == c:
            return 0.0
        return S[c.i, a].dot(f[b, c]) if a.i <= c.i else -S[a.i, c].dot(f[b, a])  # (5.2.19b)

    D, C = rotors(model), {}
    for b, c in pairs(model):
        D[b, c] += S[c.i, b].dot(links[c.i] @ S[c.i, c])  # (5.2.19a)
        D[c, b] = D[b, c]
    for a, b, c in triples(model):
        C[a, b, c] = symbol(a, b, c)
        if b.i == c.i:
            i, both = max(a.i, c.i), (C[a, b, c] + symbol(a, c, b)) * 0.5  # (5.2.19b)
            C[a, b, c] = both + bend[i, b, c].dot(links[i] @ S[i, a])  # (5.2.19b)
        C[a, c, b] = C[a, b, c]
    C |= turning(model, C)
    weight = {i: Force(links[i].h.cross(g), g * links[i].m) for i in own}  # (5.2.19c)
    G = {i: -Vector(tuple(S[i, a].dot(weight[i]) for a in own[i])) for i in own}  # (5.2.19c)
    return D, C, G


def _carried(link: RigidInertia, b: Motion, c: Motion) -> Force:
    """Return the inertia force of a link whose points r have accelerations z_b x (z_c x r + v_c).

    (z_c, v_c) is the motion `c`, and z_b is the angular part of `b`. See Balafoutis and Patel 1991,
    Eq 5.2.19b.
    """
    z, w, v = b.angular, c.angular, c.linear
    eta = (euler_from_inertia(link.I) @ z).cross(w) + link.h.cross(z.cross(v))
    return Force(eta, z.cross(w.cross(link.h) + v * link.m))


class _Generalized(NamedTuple):
    """Generalized links, i.e. composite bodies, in base axes and relative to the link origin.

    S[i, a] is the motion of link i due to degree of freedom a, at the link origin. bend[i, a, b] is
    (dS_a/dq_b + dS_b/dq_a) / 2 for two degrees of freedom of one joint (`bends`), at the same
    origin.
    """

    links: dict[int, RigidInertia]
    S: dict[tuple[int, Freedom], Motion]
    bend: dict[tuple[int, Freedom, Freedom], Motion]


def _generalized(model: Model, q: Position) -> _Generalized:
    """Compute the generalized links (Balafoutis and Patel 1991, Eq 5.2.20).

    The recursion is U_p += U + mbar s and E_p += E - s~ U~ - U~ s~ - mbar s~ s~ for each link.
    """
    links, S, bend = found = _Generalized({WORLD: RigidInertia.zero()}, {}, {})
    X0, own = body_transforms(model, q), freedoms(model)
    for i, p, joint, I in model.outward():
        turn, changes = Transform(X0[i].E, Vector.zero()), bends(joint, q[i])
        links[i], columns = turn.T @ I, joint.subspace(q[i]).columns
        for a in own[i]:
            S[i, a] = turn.inverse() @ columns[a.k]
            bend |= {(i, a, b): turn.inverse() @ changes[a.k][b.k] for b in own[i]}
        for j in model.support(p):
            shift = Transform(Rotation(), X0[i].r - X0[j].r)
            for a in own[j]:
                S[i, a] = shift @ S[j, a]
                bend |= {(i, a, b): shift @ bend[j, a, b] for b in own[j]}
    for i, p, *_ in model.inward():
        links[p] += Transform(Rotation(), X0[i].r - X0[p].r).T @ links[i]
    return found


def freedoms(model: Model) -> dict[int, tuple[Freedom, ...]]:
    """Return the degrees of freedom of each body's joint, by body index."""
    return {i: tuple(Freedom(i, k) for k in range(joint.nv)) for i, _, joint, _ in model.outward()}


def paths(model: Model) -> Iterator[tuple[int, list[Freedom]]]:
    """Yield each body with all degrees of freedom that move it, in order from body to base."""
    own = freedoms(model)
    for i in own:
        yield i, [a for j in model.support(i) for a in own[j]]


def pairs(model: Model) -> Iterator[tuple[Freedom, Freedom]]:
    """Yield all pairs (b, c) of degrees of freedom that move the same body, each pair once.

    c belongs to the same joint as b or to a joint farther from the base.
    """
    for i, path in paths(model):
        yield from ((b, c) for c, b in combinations_with_replacement(path, 2) if c.i == i)


def triples(model: Model) -> Iterator[tuple[Freedom, Freedom, Freedom]]:
    """Yield all triples of degrees of freedom a, b and c that move the same body.

    As in `pairs`, c belongs to the same joint as b or to a joint farther from the base.
    """
    for i, path in paths(model):
        for c, b in combinations_with_replacement(path, 2):
            yield from ((a, b, c) for a in path if i in (a.i, c.i))


def bends(joint: Joint, q: Vector) -> list[list[Motion]]:
    """Return (dS_l/dq_k + dS_k/dq_l) / 2 for all columns k and l of a joint's motion subspace S.

    The result is zero if S is constant.
    """
    rest, n = Vector.zero(joint.nv), range(joint.nv)
    slopes = [dS.columns for dS in joint.slopes(q, rest, rest).subspace]
    return [[(slopes[k][l] + slopes[l][k]) * 0.5 for l in n] for k in n]


def rotors(model: Model) -> defaultdict[tuple[Freedom, Freedom], Number]:
    """Return the diagonal matrix that armature adds to the mass matrix D."""
    D = defaultdict[tuple[Freedom, Freedom], Number](float)
    for i, own in freedoms(model).items():
        D |= {(a, a): model.parts[i].joint.armature[a.k] for a in own}
    return D


def turning(model: Model, C: Symbols) -> dict[tuple[Freedom, Freedom, Freedom], Number]:
    """Return the Christoffel symbols that armature affects, with the armature terms added."""
    found = {}
    for i, _, joint, _ in model.outward():
        units = [Vector(unit) for unit in Matrix.identity(joint.nv).rows]
        slopes = [joint.resistance_slopes(unit) - diagonal(joint.damping) for unit in units]
        for a, b, c in product(freedoms(model)[i], repeat=3):
            if half := slopes[b.k][a.k, c.k] * 0.5:
                found[a, b, c] = C.get((a, b, c), 0.0) + half
    return found


def by_joint(model: Model, numbers: Mapping[Freedom, Number]) -> dict[int, Vector]:
    """Group values of degrees of freedom into one vector per joint."""
    return {i: Vector(tuple(numbers[a] for a in own)) for i, own in freedoms(model).items()}


def efforts(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches, form: Form
) -> dict[int, Vector]:
    """Return the generalized forces tau_a = sum of D_ab qdd_b + sum of C_bc(a) qd_b qd_c + G_a.

    See Balafoutis and Patel 1991, Eq 5.2.17. Dissipation, passive loads and external forces are
    included.
    """
    D, C, G = form
    total = defaultdict[Freedom, Number](float)
    for (a, b), d in D.items():
        total[a] += d * qdd[b.i][b.k]  # (D of 5.2.17)
    for (a, b, c), symbol in C.items():
        total[a] += symbol * (qd[b.i][b.k] * qd[c.i][c.k])  # (C of 5.2.17)
    tau, external = by_joint(model, total), external_efforts(model, q, f_ext)
    return {
        i: tau[i] + G[i] + joint.losses(qd[i]) + joint.load - external[i]
        for i, _, joint, _ in model.outward()
    }  # (G of 5.2.17)


def external_efforts(model: Model, q: Position, f_ext: Wrenches) -> dict[int, Vector]:
    """Return J'F, the generalized forces of the external wrenches on the bodies."""
    f, tau = {WORLD: Force.zero()}, {}
    for i, *_ in model.outward():
        f[i] = f_ext[i]
    for i, p, joint, _ in model.inward():
        tau[i] = joint.subspace(q[i]).T @ f[i]
        f[p] += joint.transform(q[i]).T @ f[i]
    return tau
