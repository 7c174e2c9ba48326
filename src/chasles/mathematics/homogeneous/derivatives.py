"""Derivatives of homogeneous matrices with respect to time and joint coordinates.

The matrices are poses M, velocities W, inertias J and screws L. See Legnani et al. 1996, part II,
section 3.

Each function takes an argument X. If X is the velocity W of a body, the function returns the time
derivative of a quantity fixed to the body. If X is the screw L_m of joint m, the function returns
the derivative with respect to q_m: bodies after joint m move with the screw L_m, and bodies before
it are at rest. All quantities are expressed in frame 0.
"""

from collections.abc import Iterable

from chasles.expr import Number
from chasles.mathematics.homogeneous.frames import Block, Position
from chasles.mathematics.homogeneous.motions import Inertia, Screw, Velocity


def dM(X: Velocity | Screw, M: Position) -> Block:
    """Return the derivative of a position matrix: dM/dt = W M, or dM/dq_m = L_m M."""
    return X @ M


def dM_inverse(X: Velocity, M: Position) -> Block:
    """Return d(M^-1)/dt = -M^-1 W = -W_(1) M^-1.

    W_(1) is the velocity W, expressed in the second frame of M. See Legnani et al. 1996, part II,
    appendix, A1.
    """
    return -M.to_second(X) @ M.inverse()


def dL(X: Velocity | Screw, L: Screw) -> Velocity:
    """Return the derivative of a joint's screw L_i, which is the bracket of X and L_i.

    If X is the velocity W of the body before joint i, the result is dL_i/dt = W L_i - L_i W. If X
    is the screw L_m of a joint m < i, the result is dL_i/dq_m = L_m L_i - L_i L_m. See
    Legnani et al. 1996, part II, appendix, A2.
    """
    return X.bracket(L)


def dJ(X: Velocity | Screw, J: Inertia) -> Inertia:
    """Return dJ/dt = W J + J W' for a velocity W, or dJ/dq_m = L_m J + J L_m' for a screw L_m."""
    return J.carried(X)


def dW_dq(L: Screw, W: Velocity) -> Velocity:
    """Return dW_0h/dq_m = L_m W_mh - W_mh L_m for m <= h.

    W_mh is the velocity of body h relative to body m.
    """
    return L.bracket(W)


def dW_dt(chain: Iterable[tuple[Screw, Number, Number]]) -> Velocity:
    """Return dW_0h/dt for the last body h of a chain.

    `chain` contains a tuple (L_i, qd_i, qdd_i) for each joint i. dW_0h/dt is the sum of
    W_0,i-1 W_i - W_i W_0,i-1 + L_i qdd_i over all joints, with W_i = L_i qd_i.
    """
    W, rate = Velocity.zero(), Velocity.zero()
    for L, qd, qdd in chain:
        relative = L.velocity(qd)
        rate = rate + W.bracket(relative) + L.velocity(qdd)
        W = W + relative
    return rate
