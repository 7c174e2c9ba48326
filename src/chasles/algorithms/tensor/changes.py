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

    freedom: (z, 0) of a revolute joint, (0, z) of a prismatic one. zd2: twice what a step along it
    adds to angular velocity. by_q: what that step adds to accelerations, in the book's terms
    (Omega z, sdd x z) or (0, Omega z); slid: of its second part, what the step does not merely turn
    with the body, 0 or Omega z. by_qd: half of what a change of velocity adds, (w x z, 0) or
    (0, w x z).
    """

    freedom: Motion
    zd2: Vector
    by_q: Motion
    slid: Vector
    by_qd: Motion

    def seen_from(self, s: Vector, sd: Vector) -> "Change":
        """Of a link beyond, whose origin is at s from this one and moves against it with sd."""
        z, zdd, half = self.freedom.angular, self.by_q.angular, self.by_qd.angular
        further = zdd.cross(s) + self.zd2.cross(sd)
        return Change(
            Motion(z, self.freedom.linear + z.cross(s)),
            self.zd2,
            Motion(zdd, self.by_q.linear + further),
            self.slid + further,
            Motion(half, self.by_qd.linear + half.cross(s) + z.cross(sd)),
        )


def changes(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, moving: Chain
) -> dict[int, tuple[Change, ...]]:
    """Of every joint, one change for each freedom; zd_j and zdd_j of (7.3.1-4) for any joint."""
    found = {}
    for i, _, joint, _ in model.outward():
        S, sdd, zeta = moving.S[i], moving.sdd[i], moving.zeta[i]
        vJ, aJ = S @ qd[i], S @ qdd[i] + joint.bias(q[i], qd[i])
        slopes = joint.slopes(q[i], qd[i], qdd[i])
        rates = (slopes.velocity, slopes.acceleration, slopes.bias)
        columns = zip(S.columns, *(rate.columns for rate in rates), strict=True)
        at = (moving.Omega[i], sdd, zeta, vJ, aJ)
        found[i] = tuple(_change(*at, *column) for column in columns)  # (7.3.18g, 7.3.18k)
    return found


def _change(
    Omega: AngularAcceleration,
    sdd: Vector,
    zeta: Vector,
    vJ: Motion,
    aJ: Motion,
    s: Motion,
    N: Motion,
    K: Motion,
    C: Motion,
) -> Change:
    """Of a freedom s of a joint that moves with vJ and aJ; N, K, C as in `Slopes`.

    The parent alone turns with w - vJ; what it makes of a vector x that the joint carries is
    Omega x - aJ x x - (2 w - vJ) x (vJ x x), which is Omega x where the joint turns about x.
    """
    z, x, turning, sliding = s.angular, s.linear, vJ.angular, vJ.linear
    wp = Omega.w - turning
    both, carried = Omega.w + wp, wp.cross(z)
    zd = carried + N.angular
    zdd = Omega @ z - aJ.angular.cross(z) + both.cross(N.angular - turning.cross(z)) + K.angular
    slid = Omega @ x - aJ.angular.cross(x) + both.cross(N.linear - turning.cross(x)) + K.linear
    slid = slid + (carried + zd).cross(sliding) - zeta.cross(z)
    joint = Motion(turning.cross(z), z.cross(sliding) + turning.cross(x)) + C
    by_qd = Motion(carried, wp.cross(x)) + joint * 0.5
    return Change(s, zd * 2.0, Motion(zdd, slid + sdd.cross(z)), slid, by_qd)
