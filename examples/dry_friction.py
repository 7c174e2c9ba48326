"""Dry friction in joints: a block on a spring, and a PUMA 560 that comes to rest.

The amplitude of the block decreases by 2 f/k in each half-period, until the block stops at a
position where |k q| <= f. The PUMA starts with 1 rad/s in every joint, and has the damping and
friction of its motors. With a file name as argument, draws the figure.
"""

import sys
from typing import IO, Any

import numpy as np

import chasles
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.model import Description, JointData, LinkData

MASS, K, F = 2.0, 40.0, 0.7  # kg, N/m, N


def block() -> chasles.Robot:
    solid = RigidInertia.from_center(MASS, Vector.zero(3), Symmetric(0.1, 0.1, 0.1, 0.0, 0.0, 0.0))
    links = (LinkData("rail", solid), LinkData("block", solid))
    axis = Vector.of(1.0, 0.0, 0.0)
    joint = JointData("slide", "prismatic", "rail", "block", axis=axis, friction=F)
    return chasles.Robot(Description("block", links, (joint,)))


def spring(t: Any, q: Any, qd: Any) -> list[Any]:
    return [-K * q[0]]


def draw(slid: Any, stopped: Any, picture: str | IO[bytes]) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4), layout="constrained")
    left.axhspan(-1e3 * F / K, 1e3 * F / K, color="0.9", label="|k q| ≤ f")
    left.plot(slid.t, 1e3 * slid.q[:, 0], color="tab:blue")
    left.set(xlabel="time, s", ylabel="position, mm", title="block on a spring")
    left.legend()
    right.plot(stopped.t, stopped.qd, label=[f"joint {k + 1}" for k in range(6)])
    right.set(xlabel="time, s", ylabel="velocity, rad/s", title="PUMA 560")
    right.legend(ncols=2)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(picture, dpi=100)
    plt.close(figure)


def main(picture: Any = None) -> None:
    slid = block().simulate([0.2], [0.0], duration=5.0, tau=spring, dissipation=True)
    print(f"block at rest at q = {1e3 * slid.q[-1, 0]:.4f} mm, qd = {slid.qd[-1, 0]} m/s")
    puma = chasles.robots.puma560()
    stopped = puma.simulate(np.zeros(6), np.ones(6), duration=2.5, dissipation=True)
    last = stopped.t[np.flatnonzero(stopped.qd.any(-1))[-1] + 1]
    print(f"PUMA 560 at rest from {last:.3f} s, qd = {np.max(np.abs(stopped.qd[-1]))} rad/s")
    if picture is not None:
        draw(slid, stopped, picture)


if __name__ == "__main__":
    main(picture=sys.argv[1] if len(sys.argv) > 1 else None)
