"""What a step of each joint's freedoms changes in the motion of its body."""

from typing import NamedTuple

from chasles.algorithms.tensor.chain import Chain
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Motion
from chasles.mathematics.tensor import AngularAcceleration
from chasles.model.model import Model
from chasles.model.spaces import Position, Velocity


class Change(NamedTuple):
    """What one freedom of a joint does to its body: (of its rotation, of its origin), body axes.

    freedom: (z, 0) of a revolute joint, (0, z) of a prismatic one. zd: what a step along it adds to
    angular velocity. by_q: what that step adds to accelerations, in the book's terms (Omega z,
    sdd x z) or (0, Omega z). by_qd: what a change of velocity adds, 2 (w x z, 0) or 2 (0, w x z).
    """

    freedom: Motion
    zd: Vector
    by_q: Motion
    by_qd: Motion


def changes(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, moving: Chain
) -> dict[int, tuple[Change, ...]]:
    """Of every joint, one change for each freedom; zd_j and zdd_j of (7.3.1-4) for any joint."""
    found = {}
    for i, _, joint, _ in model.outward():
        S, Omega, ap = moving.S[i], moving.Omega[i], moving.sdd[i] - moving.zeta[i]
        vJ, aJ = S @ qd[i], S @ qdd[i] + joint.bias(q[i], qd[i])
        slopes = joint.slopes(q[i], qd[i], qdd[i])
        rates = (slopes.velocity, slopes.acceleration, slopes.bias)
        columns = zip(S.columns, *(rate.columns for rate in rates), strict=True)
        found[i] = tuple(_change(Omega, ap, vJ, aJ.angular, *c) for c in columns)  # (7.3.19k)
    return found


def _change(
    Omega: AngularAcceleration,
    ap: Vector,
    vJ: Motion,
    aJ: Vector,
    s: Motion,
    N: Motion,
    K: Motion,
    C: Motion,
) -> Change:
    """Of a freedom s whose joint moves with vJ and aJ on a parent of ap; N, K, C as in `Slopes`.

    The parent alone turns with w - vJ; what it makes of a vector x that the joint carries is
    Omega x - aJ x x - (2 w - vJ) x (vJ x x), which is Omega x where the joint turns about x.
    """
    z, x, w, turning = s.angular, s.linear, Omega.w, vJ.angular
    wp = w - turning
    both = w + wp
    carried = wp.cross(z)
    zd = carried + N.angular
    zdd = Omega @ z - aJ.cross(z) + both.cross(N.angular - turning.cross(z)) + K.angular
    xdd = Omega @ x - aJ.cross(x) + both.cross(N.linear - turning.cross(x)) + K.linear
    xdd = xdd + ap.cross(z) + (carried + zd).cross(vJ.linear)
    by_qd = Motion(both.cross(z), z.cross(vJ.linear) + both.cross(x)) + C
    return Change(s, zd, Motion(zdd, xdd), by_qd)
