"""An MJCF file being read: its compiled numbers, the names of its parts, and where they stand."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from chasles.errors import ModelError
from chasles.formats.files import load
from chasles.formats.mjcf_compiler import compiled
from chasles.formats.xml_document import parse
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import matrix_from_quaternion
from chasles.mathematics.spatial import Transform
from chasles.model.graph import unused_name

_PLACES = {
    ".//body": "body",
    "worldbody//joint": "joint",
    "worldbody//freejoint": "joint",
    "worldbody//site": "site",
    "equality/*": "equality",
}
"""Where a file has the parts of each kind."""


@dataclass
class Source:
    """A file being read.

    numbers: those of the compiled model, by their names in mjModel. model: the file's name for the
    whole, "" if it has none. lines: of parts in the file, by kind and name. bodies, joints: names
    of all, those without one by MuJoCo's number: body3, joint0.
    """

    file: str
    numbers: dict[str, Any]
    model: str
    lines: dict[tuple[str, str], int]
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.links, self.ties = set(self["body"]), {*self["joint"], *self["equality"]}
        self.bodies = [name or self.link(f"body{i}") for i, name in enumerate(self["body"])]
        self.joints = [name or self.tie(f"joint{k}") for k, name in enumerate(self["joint"])]

    def __getitem__(self, name: str) -> Any:
        return self.numbers[name]

    def link(self, wanted: str) -> str:
        """A name that no other link or frame has."""
        return unused_name(wanted, self.links)

    def tie(self, wanted: str) -> str:
        """A name that no other joint, loop or coupling has."""
        return unused_name(wanted, self.ties)

    def where(self, kind: str, k: int) -> str:
        """ "file:line", or the file alone where it has no such name (includes, replicas)."""
        line = self.lines.get((kind, self[kind][k]))
        return self.file if line is None else f"{self.file}:{line}"

    def reference(self, j: int) -> float:
        """The coordinate of a hinge or slide with which its body stands where the file has it."""
        scalar = self["jnt_type"][j] in ("hinge", "slide")
        return self["qpos0"][self["jnt_qposadr"][j]] if scalar else 0.0


def opened(file: str) -> Source:
    """The file, parsed (for names and lines) and compiled (for everything else)."""
    root = parse(file, load(file))
    if root.tag != "mujoco":
        urdf = root.tag == "robot"
        remedy = "a URDF file ends in .urdf" if urdf else "an MJCF file is a <mujoco>"
        problem = f"the document is a <{root.tag}>"
        raise ModelError("E-MJCF-007", problem, remedy, file=f"{file}:{root.sourceline}")
    return Source(file, compiled(file), root.get("model", ""), _lines(root))


def _lines(root: etree._Element) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for path, kind in _PLACES.items():
        for element in root.iterfind(path):
            name, line = element.get("name"), element.sourceline
            if name and isinstance(line, int):
                found[kind, name] = line
    return found


def pose(
    position: Sequence[float], quaternion: Sequence[float] = (1.0, 0.0, 0.0, 0.0)
) -> Transform:
    """Of a frame in another, from MuJoCo's numbers."""
    R = matrix_from_quaternion(Vector(tuple(quaternion)))
    return Transform.from_pose(R, Vector(tuple(position)))
