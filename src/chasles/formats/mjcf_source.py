"""Provide the compiled arrays, names and line numbers of an MJCF file.

MuJoCo's compiler runs in a separate process.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from chasles.errors import ModelError
from chasles.formats.files import load
from chasles.formats.walled import Tool
from chasles.formats.xml_file import parse
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import (
    matrix_from_quaternion,
)
from chasles.mathematics.spatial import Transform
from chasles.model.graph import unused_name

MUJOCO = Tool(
    "MuJoCo's compiler", "mujoco", "mjcf", "mjcf_child.py", seconds=10.0, memory=4 * 2**30
)
"""MuJoCo's compiler, with limits on time and memory.

Most models in gymnasium and dm_control need less than 1 s and 0.2 GB. In dm_control, the fruit fly
model needs 4 s, and the rodent model, which reserves memory for many contacts, needs 3.2 GB.
"""

MAX_PARTS = 20_000
"""Maximum total number of bodies, joints, sites, equalities and shapes in a model.

A few lines with `replicate` can create millions of bodies.
"""

_LINE = re.compile(r"line(?: number)?[ =](\d+)", re.IGNORECASE)

_PLACES = {
    ".//body": "body",
    "worldbody//joint": "joint",
    "worldbody//freejoint": "joint",
    "worldbody//site": "site",
    "equality/*": "equality",
    "sensor/*": "sensor",
}
"""Kinds of MJCF elements, keyed by XPath."""


@dataclass
class Source:
    """An MJCF file that is being read.

    Attributes
    ----------
    numbers
        Arrays of the compiled model, keyed by mjModel field.
    model
        Name of the model, or "".
    lines
        Line numbers by kind of element and name.
    bodies, joints
        Names of all bodies and joints. Unnamed bodies and joints are named by MuJoCo's index, such
        as body3 or joint0.
    left_out
        Messages about unsupported elements.
    frames
        Frame names by site index.
    """

    file: str
    numbers: dict[str, Any]
    model: str
    lines: dict[tuple[str, str], Any]
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    frames: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.links, self.ties = set(self["body"]), {*self["joint"], *self["equality"]}
        self.bodies = [name or self.link(f"body{i}") for i, name in enumerate(self["body"])]
        self.joints = [name or self.tie(f"joint{k}") for k, name in enumerate(self["joint"])]

    def __getitem__(self, name: str) -> Any:
        return self.numbers[name]

    def link(self, wanted: str) -> str:
        """Return `wanted` as a link or frame name, with a suffix if the name is used."""
        return unused_name(wanted, self.links)

    def tie(self, wanted: str) -> str:
        """Return `wanted` as a joint, loop or coupling name, with a suffix if the name is used."""
        return unused_name(wanted, self.ties)

    def where(self, kind: str, k: int) -> str:
        """Return "file:line" for the k-th element of a kind, or the file if the line is unknown."""
        line = self.lines.get((kind, self[kind][k]))
        return self.file if line is None else f"{self.file}:{line}"

    def is_mocap(self, i: int) -> bool:
        """Return True if a body is a mocap body, or is fixed to a mocap body."""
        while i > 0 and self["body_mocapid"][i] < 0 and not self["body_jntnum"][i]:
            i = self["body_parentid"][i]
        return bool(self["body_mocapid"][i] >= 0)

    def tendon(self, t: int) -> dict[int, float] | None:
        """Return a fixed tendon's coefficients by joint index; None for a spatial tendon."""
        places = range(self["tendon_adr"][t], self["tendon_adr"][t] + self["tendon_num"][t])
        if any(self["wrap_type"][w] != "joint" for w in places):
            return None
        found: dict[int, float] = {}
        for w in places:
            j = self["wrap_objid"][w]
            found[j] = found.get(j, 0.0) + self["wrap_prm"][w]
        return found

    def reference(self, j: int) -> float:
        """Return the coordinate of a hinge or slide in the reference configuration (`ref`)."""
        scalar = self["jnt_type"][j] in ("hinge", "slide")
        return self["qpos0"][self["jnt_qposadr"][j]] if scalar else 0.0


def opened(file: str) -> Source:
    """Parse a file to find names and line numbers, and compile it with MuJoCo."""
    notes: list[str] = []
    root = parse(file, load(file), notes)
    if root.tag != "mujoco":
        remedy = "use <mujoco> as the root element of an MJCF file"
        remedy = "use the suffix .urdf for a URDF file" if root.tag == "robot" else remedy
        problem = f"the root element is <{root.tag}>, not <mujoco>"
        raise ModelError("E-MJCF-007", problem, remedy, file=f"{file}:{root.sourceline}")
    return Source(file, compiled(file), root.get("model", ""), _lines(root), notes)


def _lines(root: etree._Element) -> dict[tuple[str, str], Any]:
    return {
        (kind, element.get("name", "")): element.sourceline
        for path, kind in _PLACES.items()
        for element in root.iterfind(path)
        if element.get("name")
    }


def pose(
    position: Sequence[float], quaternion: Sequence[float] = (1.0, 0.0, 0.0, 0.0)
) -> Transform:
    """Convert a position and a quaternion from MuJoCo to a pose."""
    if not any(quaternion):
        raise ModelError("E-MJCF-380", "a quaternion is zero", "use (1, 0, 0, 0) for the identity")
    R = matrix_from_quaternion(Vector(tuple(quaternion)))
    return Transform.from_pose(R, Vector(tuple(position)))


def compiled(file: str) -> dict[str, Any]:
    """Compile a file with MuJoCo and return the arrays of the model (see `mjcf_child`)."""
    answer = MUJOCO.ask(file, str(MAX_PARTS))
    if "error" not in answer:
        return answer
    line = _LINE.search(answer["error"])
    what = "; ".join(part.strip() for part in answer["error"].strip().split("\n"))
    place = file if line is None else f"{file}:{line[1]}"
    remedy = "correct the MJCF file"
    raise ModelError("E-MJCF-002", what[:400], remedy, part=MUJOCO.name, file=place)
