"""Positions, velocities and accelerations of all bodies, in the base frame."""

from typing import NamedTuple

from chasles.mathematics.homogeneous import Acceleration, Inertia, Position, Screw, Velocity
from chasles.mathematics.linear import Vector
from chasles.model import spaces
from chasles.model.joints import Joint
from chasles.model.model import WORLD, Model


class Chain(NamedTuple):
    """The matrices M, L (one for each freedom), W, H and J of every body, all in the base frame.

    H is less gravity: the base is taken to accelerate upward.
    """

    M: dict[int, Position]
    L: dict[int, tuple[Screw, ...]]
    W: dict[int, Velocity]
    H: dict[int, Acceleration]
    J: dict[int, Inertia]


def chain(model: Model, q: spaces.Position, qd: spaces.Velocity, qdd: spaces.Velocity) -> Chain:
    """M0h = M0p Mph, W0h = W0p + Wph, H0h = H0p + Hph + 2 W0p Wph (part II, section 2.1)."""
    M, L, J = {WORLD: Position.identity()}, {}, {}
    W, H = {WORLD: Velocity.zero()}, {WORLD: Acceleration.uniform(-model.gravity_vector)}
    for i, p, joint, I in model.outward():
        M[i] = M[p] @ Position.of(joint.transform(q[i]))
        L[i] = tuple(M[i].to_first(l) for l in screws(joint, q[i]))
        moving, rate = along(L[i], qd[i]), along(L[i], qdd[i])
        rate += M[i].to_first(Velocity.of(joint.bias(q[i], qd[i])))
        W[i] = W[p] + moving
        H[i] = H[p].after(W[p], Acceleration.of(moving, rate), moving)
        J[i] = M[i].to_first(Inertia.of(I))
    return Chain(M, L, W, H, J)


def screws(joint: Joint, q: Vector) -> tuple[Screw, ...]:
    """L of each freedom of a joint, in the frame of the body that it carries."""
    return tuple(map(Screw.of, joint.subspace(q).columns))


def along(screws: tuple[Screw, ...], rates: Vector) -> Velocity:
    """W = L qd, summed over the freedoms of a joint."""
    total = Velocity.zero()
    for l, rate in zip(screws, rates, strict=True):
        total = total + l.velocity(rate)
    return total
