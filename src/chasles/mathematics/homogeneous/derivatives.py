"""Derivatives of M, W, J and L with respect to time and joint coordinates (Legnani II, section 3).

For time derivatives, quantities fixed to a body move with the body's velocity W. For derivatives
with respect to q_m, the bodies after joint m move with the joint's screw L_m, and the bodies before
it are at rest. The argument X of the functions is W or L_m. All quantities are in frame 0.
"""

from collections.abc import Iterable

from chasles.expr import Number
from chasles.mathematics.homogeneous.frames import Block, Position
from chasles.mathematics.homogeneous.motions import Inertia, Screw, Velocity


def dM(X: Velocity | Screw, M: Position) -> Block:
    """Return dM/dt = W M or dM/dq_m = L_m M."""
    return X @ M


def dM_inverse(X: Velocity, M: Position) -> Block:
    """Return d(M^-1)/dt = -M^-1 W = -W_(1) M^-1 with W_(1) in the second frame (appendix, A1)."""
    return -M.to_second(X) @ M.inverse()


def dL(X: Velocity | Screw, L: Screw) -> Velocity:
    """Return dL_i/dt = W L_i - L_i W, with the velocity W of the body before the joint (A2).

    For X = L_m, return dL_i/dq_m for m < i (appendix, A2).
    """
    return X.bracket(L)


def dJ(X: Velocity | Screw, J: Inertia) -> Inertia:
    """Return dJ/dt = W J + J W' or dJ/dq_m = L_m J + J L_m'."""
    return J.carried(X)


def dW_dq(L: Screw, W: Velocity) -> Velocity:
    """Return dW_0h/dq_m = L_m W_mh - W_mh L_m, with the velocity of h relative to m (m <= h)."""
    return L.bracket(W)


def dW_dt(chain: Iterable[tuple[Screw, Number, Number]]) -> Velocity:
    """Return dW_0h/dt of the last body of a chain, from (L_i, qd_i, qdd_i) of its joints.

    It is the sum over the joints of W_0,i-1 W_i - W_i W_0,i-1 + L_i qdd_i, with W_i = L_i qd_i.
    """
    W, rate = Velocity.zero(), Velocity.zero()
    for L, qd, qdd in chain:
        relative = L.velocity(qd)
        rate = rate + W.bracket(relative) + L.velocity(qdd)
        W = W + relative
    return rate
