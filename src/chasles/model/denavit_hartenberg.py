"""Serial arms from Denavit-Hartenberg tables.

Both conventions give a link the frame that its joint moves (z is the joint's axis):

- modified (proximal): T = Rx(alpha) Tx(a) Rz(theta) Tz(d) leads from link i-1 to link i, and the
  link's frame is the table's;
- standard (distal): T = Rz(theta) Tz(d) Tx(a) Rx(alpha); the table's frame i sits at the far end of
  link i, at Tx(a) Rx(alpha) in the link's own frame, and is the frame named `dh<i>`.

The extended form has one more length, b along y beside a along x: Tx(a) Ty(b) for Tx(a) (Legnani et
al. 1996, part II, fig. 6, which calls d s).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import Rotation, about
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model.build import compose
from chasles.model.description import Description, FrameData, JointData, Limits, LinkData

Convention = Literal["standard", "modified"]


@dataclass(frozen=True)
class Row:
    """One row of a table (m, rad): a joint, and the inertia of its link in the table's frame.

    The joint's coordinate is added to theta (revolute) or to d (prismatic). where: "file:line".
    """

    kind: str
    a: float
    alpha: float
    d: float
    theta: float
    inertia: RigidInertia
    limits: Limits = field(default_factory=Limits)
    armature: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    b: float = 0.0
    where: str = ""


def dh_chain(
    name: str,
    rows: Sequence[Row],
    convention: Convention,
    *,
    tips: Mapping[str, Vector],
    notes: tuple[str, ...] = (),
) -> Description:
    """The arm of a table: links base, link1, ..., joints joint1, ...

    tips: points in the last frame of the table; each becomes a frame with that frame's axes.
    """
    links, joints, frames = [LinkData("base", RigidInertia.zero())], [], []
    behind = Transform.identity()
    for i, row in enumerate(rows, start=1):
        X = _exact(Transform(about(0, row.alpha), Vector.of(row.a, row.b, 0.0)))
        Z = Transform(about(2, row.theta), Vector.of(0.0, 0.0, row.d))
        before, behind = (behind, X) if convention == "standard" else (X, Transform.identity())
        links.append(LinkData(f"link{i}", _swept(behind.T @ row.inertia), row.where))
        joints.append(
            JointData(
                f"joint{i}",
                row.kind,
                links[-2].name,
                links[-1].name,
                compose(Z, before),
                limits=row.limits,
                armature=row.armature,
                damping=row.damping,
                friction=row.friction,
                where=row.where,
            )
        )
        if convention == "standard":
            frames.append(FrameData(f"dh{i}", links[-1].name, behind))
    for tip, point in tips.items():
        frames.append(FrameData(tip, links[-1].name, compose(Transform(Rotation(), point), behind)))
    return Description(name, tuple(links), tuple(joints), tuple(frames), notes=notes)


def _exact(X: Transform) -> Transform:
    """The same with right angles exact."""
    return compose(X, Transform.identity())


def _swept(inertia: RigidInertia) -> RigidInertia:
    """The same without products that moving it left as rounding: a zero must stay one to fold."""
    floor = 1e-15 * max(map(abs, inertia.I))
    return replace(inertia, I=Symmetric(*(e if abs(e) > floor else 0.0 for e in inertia.I)))
