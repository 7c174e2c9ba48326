"""The equation of motion in closed form, by generalised links."""

from typing import NamedTuple

from chasles.algorithms.spatial.forward_kinematics import body_transforms
from chasles.algorithms.tensor.freedoms import (
    bends,
    by_joint,
    efforts,
    freedoms,
    pairs,
    rotors,
    triples,
)
from chasles.expr import Number
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Force, Motion, RigidInertia, Transform
from chasles.mathematics.tensor import euler_from_inertia
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


def vukobratovic(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """D qdd + qd C qd + G by generalised links (Balafoutis and Patel 1991, Eq 5.2.19-20)."""
    return efforts(model, q, qd, qdd, f_ext, closed_form_vukobratovic(model, q))


def closed_form_vukobratovic(model: Model, q: Position) -> tuple[FreedomMatrix, Symbols, Effort]:
    """D, C, G by mass, first moment and inertia of all bodies beyond a joint (Eq 5.2.19).

    The book has revolute joints of a chain. A freedom is (z, v) here: v is zero for turning, z for
    sliding, and every joint is made of such. G has the composite centre and the sign of a force
    against gravity, unlike in print.
    """
    o, S, links, bend = _generalised(model, q)

    def along(i: int, s: Motion, j: int, F: Force) -> Number:
        """Of a force F at the origin of j, on a freedom at that of i: z.eta + (z x s_ij + v).f."""
        return (Transform(Rotation(), o[j] - o[i]) @ s).dot(F)

    def inertia(i: int, s: Motion, j: int, t: Motion) -> Number:
        """What D is made of (5.2.19a): the outer joint's link takes both motions."""
        return along(i, s, j, links[j] @ t) if i <= j else along(j, t, i, links[i] @ s)

    def symbol(a: Freedom, b: Freedom, c: Freedom) -> Number:
        """The integral of (z_a x r + v_a) . z_b x (z_c x r + v_c) dm, b inside c (5.2.19b)."""
        if a.i > c.i:
            return -symbol(c, b, a)
        link, z, w, v = links[c.i], S[b].angular, S[c].angular, S[c].linear
        eta = (euler_from_inertia(link.I) @ z).cross(w) + link.h.cross(z.cross(v))
        return along(a.i, S[a], c.i, Force(eta, z.cross(w.cross(link.h) + v * link.m)))

    D, C, G = rotors(model), {}, {}
    for b, c in pairs(model):
        D[b, c] += inertia(b.i, S[b], c.i, S[c])
        D[c, b] = D[b, c]
    for a, b, c in triples(model):
        C[a, b, c] = symbol(a, b, c)
        if b.i == c.i:
            both = (C[a, b, c] + symbol(a, c, b)) * 0.5
            C[a, b, c] = both + inertia(a.i, S[a], b.i, bend[b, c])
        C[a, c, b] = C[a, b, c]
    for a, s in S.items():
        U, g = links[a.i].h, model.gravity_vector
        G[a] = -s.dot(Force(U.cross(g), g * links[a.i].m))
    return D, C, by_joint(model, G)


class _Generalised(NamedTuple):
    """Along base axes: origins o, freedoms S there, and links with all that they carry.

    bend[a, b]: how two freedoms of one joint change each other (`bends`).
    """

    o: dict[int, Vector]
    S: dict[Freedom, Motion]
    links: dict[int, RigidInertia]
    bend: dict[tuple[Freedom, Freedom], Motion]


def _generalised(model: Model, q: Position) -> _Generalised:
    """U_p += U + mbar s and E_p += E - s~ U~ - U~ s~ - mbar s~ s~ of each link (5.2.20)."""
    X0, own = body_transforms(model, q), freedoms(model)
    o, links = {i: X.r for i, X in X0.items()}, {WORLD: RigidInertia.zero()}
    S: dict[Freedom, Motion] = {}
    bend: dict[tuple[Freedom, Freedom], Motion] = {}
    for i, _, joint, I in model.outward():
        turn = Transform(X0[i].E, Vector.zero())
        links[i], changes = turn.T @ I, bends(joint, q[i])
        S |= dict(zip(own[i], (turn.inverse() @ joint.subspace(q[i])).columns, strict=True))
        bend |= {(a, b): turn.inverse() @ changes[a.k][b.k] for a in own[i] for b in own[i]}
    for i, p, *_ in model.inward():
        links[p] += Transform(Rotation(), o[i] - o[p]).T @ links[i]
    return _Generalised(o, S, links, bend)
