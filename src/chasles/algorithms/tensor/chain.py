"""How all bodies turn and accelerate, in their own frames."""

from typing import NamedTuple

from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Motions, Transform
from chasles.mathematics.tensor import AngularAcceleration
from chasles.model.model import WORLD, Model
from chasles.model.spaces import Position, Velocity


class Chain(NamedTuple):
    """Of every body, in its own axes: what steps 1 and 2 of the book's recursions make.

    X, S: the joint's transform and subspace. Omega: the angular acceleration tensor. zeta: what the
    joint's sliding adds to the acceleration of the origin. sdd: that acceleration less gravity.
    """

    X: dict[int, Transform]
    S: dict[int, Motions]
    Omega: dict[int, AngularAcceleration]
    zeta: dict[int, Vector]
    sdd: dict[int, Vector]


def chain(model: Model, q: Position, qd: Velocity, qdd: Velocity) -> Chain:
    """Omega_k = wd~ + w~ w~ and sdd_k = A'(sdd_i + Omega_i s) + zeta_k (5.3.7, 5.3.45)."""
    X, S, zeta = {}, {}, {}
    Omega, sdd = {WORLD: AngularAcceleration.zero()}, {WORLD: -model.gravity_vector}
    for i, p, joint, _ in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        E, s = X[i].E, X[i].r
        vJ, aJ = S[i] @ qd[i], S[i] @ qdd[i] + joint.bias(q[i], qd[i])
        carried = E @ Omega[p].w  # (5.3.45a)
        w = carried + vJ.angular  # (5.3.45a)
        wd = E @ Omega[p].wd + carried.cross(vJ.angular) + aJ.angular  # (5.3.45b)
        Omega[i] = AngularAcceleration(w, wd)  # (5.3.45c)
        zeta[i] = (w + carried).cross(vJ.linear) + aJ.linear  # (5.3.45d)
        sdd[i] = E @ (sdd[p] + Omega[p] @ s) + zeta[i]  # (5.3.45e)
    return Chain(X, S, Omega, zeta, sdd)
