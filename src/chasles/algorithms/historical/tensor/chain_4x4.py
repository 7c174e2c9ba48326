"""Positions of all bodies and their second rates, as homogeneous matrices."""

from typing import NamedTuple

from chasles.algorithms.homogeneous.chain import along, screws
from chasles.mathematics import homogeneous
from chasles.mathematics.linear import Matrix
from chasles.model.model import WORLD, Model
from chasles.model.spaces import Position, Velocity


class Chain4x4(NamedTuple):
    """A takes homogeneous coordinates of a body to its parent, W to the base frame.

    L has the joint's screws in the frame of its body, so that dA/dq is A L: the book's A Q for
    turning and sliding, and right for every other joint. Wdd is the second rate of W.
    """

    A: dict[int, Matrix]
    L: dict[int, tuple[homogeneous.Screw, ...]]
    W: dict[int, Matrix]
    Wdd: dict[int, Matrix]


def chain_4x4(model: Model, q: Position, qd: Velocity, qdd: Velocity) -> Chain4x4:
    """W = W_p A, with its first two rates (Balafoutis and Patel 1991, Eq 5.2.10)."""
    W, zero, A, L = {WORLD: Matrix.identity(4)}, Matrix.zero(4, 4), {}, {}
    Wd, Wdd = {WORLD: zero}, {WORLD: zero}
    for i, p, joint, _ in model.outward():
        A[i] = homogeneous.Position.of(joint.transform(q[i])).matrix()  # (2.3.2)
        L[i] = screws(joint, q[i])
        bias = homogeneous.Velocity.of(joint.bias(q[i], qd[i]))
        V, Vd = along(L[i], qd[i]).matrix(), (along(L[i], qdd[i]) + bias).matrix()
        moved = Wd[p] @ A[i]  # (5.2.10b, 5.2.12b)
        W[i] = W[p] @ A[i]  # (5.2.10a, 5.2.12a)
        Wd[i] = moved + W[i] @ V  # (5.2.10b, 5.2.12b)
        Wdd[i] = Wdd[p] @ A[i] + moved @ V * 2.0 + W[i] @ (V @ V + Vd)  # (5.2.10c, 5.2.12c)
    return Chain4x4(A, L, W, Wdd)
