"""What a step of each joint's freedoms changes in the motion of its body."""

from typing import NamedTuple

from chasles.algorithms.tensor.chain import Chain
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Motion
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
    for i, p, joint, _ in model.outward():
        E, S = moving.X[i].E, moving.S[i]
        wp, wdp = E @ moving.Omega[p].w, E @ moving.Omega[p].wd
        ap = moving.sdd[i] - moving.zeta[i]
        vJ, w = S @ qd[i], moving.Omega[i].w
        slopes = joint.slopes(q[i], qd[i], qdd[i])
        found[i] = tuple(
            _change(s, wp, wdp, ap, w, vJ.linear, N, K, C)
            for s, N, K, C in zip(
                S.columns,
                slopes.velocity.columns,
                slopes.acceleration.columns,
                slopes.bias.columns,
                strict=True,
            )
        )
    return found


def _change(
    s: Motion,
    wp: Vector,
    wdp: Vector,
    ap: Vector,
    w: Vector,
    slide: Vector,
    N: Motion,
    K: Motion,
    C: Motion,
) -> Change:
    """Of a freedom s that the parent carries with wp, wdp, ap; N, K, C as in `Slopes`."""
    z, x, both = s.angular, s.linear, w + wp
    carried = wp.cross(z)
    zd = carried + N.angular
    zdd = wdp.cross(z) + wp.cross(carried) + both.cross(N.angular) + K.angular
    xdd = ap.cross(z) + (carried + zd).cross(slide) + wdp.cross(x) + wp.cross(wp.cross(x))
    xdd = xdd + both.cross(N.linear) + K.linear
    by_qd = Motion(both.cross(z), z.cross(slide) + both.cross(x)) + C
    return Change(s, zd, Motion(zdd, xdd), by_qd)
