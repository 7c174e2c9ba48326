"""Serial arms from Denavit-Hartenberg tables, and the data files that hold them.

Both conventions give a link the frame that its joint moves (z is the joint's axis):

- modified (proximal): T = Rx(alpha) Tx(a) Rz(theta) Tz(d) leads from link i-1 to link i, and the
  link's frame is the table's;
- standard (distal): T = Rz(theta) Tz(d) Tx(a) Rx(alpha); the table's frame i sits at the far end of
  link i, at Tx(a) Rx(alpha) in the link's own frame, and is the frame named `dh<i>`.
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, Literal

from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import Rotation, about
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import Description, FrameData, JointData, Limits, LinkData
from chasles.model.build import compose

Convention = Literal["standard", "modified"]


@dataclass(frozen=True)
class Row:
    """One row of a table (m, rad): a joint, and the inertia of its link in the table's frame.

    The joint's coordinate is added to theta (revolute) or to d (prismatic).
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
        X = _exact(Transform(about(0, row.alpha), Vector.of(row.a, 0.0, 0.0)))
        Z = Transform(about(2, row.theta), Vector.of(0.0, 0.0, row.d))
        before, behind = (behind, X) if convention == "standard" else (X, Transform.identity())
        links.append(LinkData(f"link{i}", _swept(behind.T @ row.inertia)))
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


def read(name: str) -> Description:
    """The arm of the data file `<name>.toml` of this package, which says what its keys mean."""
    text = resources.files("chasles.robots").joinpath(f"{name}.toml").read_text("utf-8")
    data = tomllib.loads(text)
    rows = [_row(joint, data["inertia_about"]) for joint in data["joint"]]
    tips = {tip: Vector(tuple(point)) for tip, point in data["tips"].items()}
    return dh_chain(name, rows, data["convention"], tips=tips, notes=tuple(data["notes"]))


def _row(joint: dict[str, Any], inertia_about: str) -> Row:
    gear = abs(joint.get("gear", 1.0))
    return Row(
        joint["kind"],
        joint["a"],
        math.radians(joint["alpha"]),
        joint["d"],
        math.radians(joint["theta"]),
        _inertia(joint, inertia_about),
        _limits(joint),
        armature=gear * gear * joint.get("rotor_inertia", 0.0),
        damping=gear * gear * joint.get("rotor_damping", 0.0),
        friction=gear * math.fsum(joint.get("rotor_friction", (0.0, 0.0))) / 2.0,
    )


def _inertia(joint: dict[str, Any], inertia_about: str) -> RigidInertia:
    m, c, I = joint["mass"], Vector(tuple(joint["center"])), Symmetric(*joint["inertia"])
    return (
        RigidInertia(m, c * m, I) if inertia_about == "frame" else RigidInertia.from_center(m, c, I)
    )


def _limits(joint: dict[str, Any]) -> Limits:
    unit = math.radians if joint["kind"] == "revolute" else float
    lower, upper = map(unit, joint.get("limits", (-math.inf, math.inf)))
    return Limits(lower, upper, effort=joint.get("effort", math.inf))
