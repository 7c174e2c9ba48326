"""Resolve the frames in SDF files: names, relative poses, and the links they move with.

Every link, joint, model and `<frame>` has a frame (sdformat.org, "Pose frame semantics"). The pose
of a frame is relative to another frame, and the frame moves with the link to which it is attached.
A joint specifies its links, and the frames of its axis directions, by frame name.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from chasles.formats.files import short
from chasles.formats.xml_file import Part
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import matrix_from_quaternion
from chasles.mathematics.spatial import Transform, inverted
from chasles.model.build import compose
from chasles.names import suggest

MODEL, WORLD = "__model__", "world"
"""SDF's names for the model frame and the world frame."""


@dataclass(eq=False)
class Node:
    """A frame in an SDF file.

    The fields `version`, `nodes`, `placement` and `into` are used only for models and the world.

    Attributes
    ----------
    name
        Unique name in the file, such as `model::name` in nested models.
    scope
        Model or world that contains the frame and in which names are looked up; None for the world.
    given
        Pose relative to the frame whose name is in the field `base`.
    on
        Name of the frame to which this frame is attached.
    static
        True if the frame never moves.
    version
        Minor SDF version of the file (9 for SDF 1.9).
    nodes
        Frames in the model by name.
    placement
        Name of the frame in the model that is placed at `given` ("" for the model frame).
    into
        Scope into which the model is merged.
    """

    part: Part
    kind: str
    name: str
    scope: "Node | None" = None
    given: Transform = field(default_factory=Transform.identity)
    base: str = ""
    on: str = ""
    static: bool = False
    version: int = 0
    nodes: "dict[str, Node]" = field(default_factory=dict)
    placement: str = ""
    into: "Node | None" = None

    def beside(self, name: str, part: Part) -> "Node":
        """Find a frame by name in the scope of this frame."""
        assert self.scope is not None, "all parts belong to a model or a world"
        return self.scope.find(name, part)

    @property
    def above(self) -> "Node | None":
        """Frame to which this frame's pose is relative; None for the world."""
        return None if self.scope is None else self.beside(self.base, self.part)

    @cached_property
    def pose(self) -> Transform:
        """Pose of this frame in its parent frame, `above`."""
        if not self.placement:
            return self.given
        node, placed = self.find(self.placement, self.part), Transform.identity()
        for step in self._way(node, lambda x: x.above if x is not self else None):
            if step is not self:
                placed = compose(placed, step.pose)
        return compose(inverted(placed), self.given)

    @property
    def carrier(self) -> "Node | None":
        """Link to which this frame is attached; None for the world."""
        end = self._way(self, lambda node: node._attached())[-1]
        return end if end.kind == "link" else None

    def _attached(self) -> "Node | None":
        """Return the frame to which this frame is attached.

        A model is attached to its canonical link or, by default, to its first link or model.
        """
        if self.kind == "link" or self.scope is None:
            return None
        if not self.version:
            return self.beside(self.on, self.part)
        if self.on:
            return self.find(self.on, self.part)
        kinds = {node.kind: node for node in reversed(self.nodes.values())}
        return kinds.get("link") or kinds.get("model")

    def _way(self, first: "Node", next_of: "Callable[[Node], Node | None]") -> "list[Node]":
        """Return the chain of frames that begins with `first`; raise an error for a cycle."""
        way = {first: None}
        node = next_of(first)
        while node is not None:
            if node in way:
                problem = f"the frame depends on itself through {node.name!r}"
                raise self.part.error("E-SDF-024", problem, "name another frame")
            way[node] = None
            node = next_of(node)
        return list(way)

    # Contents of a model or world --------------------------------------------------------------

    @property
    def prefix(self) -> str:
        """Prefix of all frame names in this model or world."""
        if self.into is not None:
            return self.into.prefix
        return f"{self.name}::" if self.name else ""

    def add(self, node: "Node", name: str) -> "Node":
        """Add a frame with a unique name; up to SDF 1.6, a joint and a link may share a name."""
        if self.into is not None:
            self.into.add(node, name)
        other = self.nodes.setdefault(name, node)
        if other is not node and (self.version >= 7 or other.kind == node.kind):
            problem = f"{other.part.where} has a {other.kind} with the same name"
            raise node.part.error("E-SDF-025", problem, "rename one of them")
        if other.kind == "joint":
            self.nodes[name] = node
        return node

    def find(self, name: str, part: Part) -> "Node":
        """Find a frame in this scope by its name, such as "arm" or "model::arm"."""
        if name in ("", MODEL):
            return self
        if name in self.nodes:
            return self.nodes[name]
        model, _, rest = name.partition("::")
        if rest and model in self.nodes and model != WORLD and self.nodes[model].version:
            return self.nodes[model].find(rest, part)
        raise part.error(
            "E-SDF-026", f"there is no frame {name!r} in this scope", suggest(name, self.nodes)
        )


def relative(a: Node, b: Node) -> Transform:
    """Return the pose of frame a in frame b, computed through their nearest common ancestor.

    Unlike a product of world poses, this method loses no precision, and its time depends only on
    the number of frames between a and b.
    """
    sides = {a: Transform.identity()}, {b: Transform.identity()}
    ends, meet = [a, b], a if a is b else None
    while meet is None:
        for i, (mine, others) in enumerate((sides, sides[::-1])):
            above = ends[i].above
            if above is None or meet is not None:
                continue
            if above in mine:
                problem = f"the pose depends on itself through {above.name!r}"
                raise ends[i].part.error("E-SDF-027", problem, "name another frame")
            mine[above] = compose(mine[ends[i]], ends[i].pose)
            ends[i] = above
            if above in others:
                meet = above
    return compose(sides[0][meet], inverted(sides[1][meet]))


# Element values --------------------------------------------------------------------------------


def truth(part: Part, tag: str, default: bool) -> bool:
    """Return the boolean value of a child element."""
    text, child = part.content(tag).lower(), part.find(tag)
    if child is None or not text:
        return default
    if text not in ("true", "false", "1", "0"):
        raise child.error("E-SDF-009", f"{tag} is {short(text)}", "give true or false")
    return text in ("true", "1")


def is_set(part: Part, key: str) -> bool:
    """Return the boolean value of an attribute; a missing or invalid value is False."""
    text = part.element.get(key, "false").lower()
    if text not in ("true", "false", "1", "0"):
        part.note(f"{key} is {short(text)}, which is read as false; give true or false")
    return text in ("true", "1")


def placed(part: Part) -> tuple[Transform, str]:
    """Return the pose of an element, and the name of the frame to which it is relative."""
    pose, text = part.find("pose"), part.content("pose")
    if pose is None:
        return Transform.identity(), ""
    base = pose.element.get("relative_to") or pose.element.get("frame") or ""
    angles = pose.element.get("rotation_format", "euler_rpy")
    if angles == "quat_xyzw":
        x, y, z, *q = map(float, pose.numerals("pose", text or "0 0 0 0 0 0 1", 7))
        size = math.hypot(*q)
        if not 1e-9 < size < math.inf:
            raise pose.error(
                "E-SDF-010", "the quaternion of the pose has zero length", "give a unit quaternion"
            )
        x1, y1, z1, w1 = (entry / size for entry in q)
        R = matrix_from_quaternion(Vector.of(w1, x1, y1, z1))
        return Transform.from_pose(R, Vector.of(x, y, z)), base
    if angles != "euler_rpy":
        problem = f"unknown rotation_format {short(angles)}"
        raise pose.error("E-SDF-011", problem, "use euler_rpy or quat_xyzw")
    words = pose.numerals("pose", text or "0 0 0 0 0 0", 6)
    if is_set(pose, "degrees"):
        words[3:] = [repr(math.radians(float(word))) for word in words[3:]]
    return pose.placement(Vector(tuple(map(float, words[:3]))), words[3:]), base


def end(joint: Node, tag: str) -> Node | None:
    """Return the parent or child link of a joint; None for the world.

    The element contains the name of the link or of a frame that moves with the link.
    """
    part, name = joint.part.need(tag), joint.part.content(tag)
    if not name:
        raise part.error("E-SDF-023", f"<{tag}> does not contain a name", "give the name of a link")
    return None if name == WORLD else joint.beside(name, part).carrier


def direction(joint: Node, axis: Part) -> Vector:
    """Return the direction of `<axis>` or `<axis2>` in the joint frame as a unit vector."""
    assert joint.scope is not None, "joints belong to a model or a world"
    xyz = axis.find("xyz")
    given = Vector.of(0.0, 0.0, 1.0) if xyz is None else axis.axis()
    named = "" if xyz is None else xyz.element.get("expressed_in", "")
    if joint.scope.version <= 4 or truth(axis, "use_parent_model_frame", False):
        named = named or MODEL
    return relative(joint.beside(named, axis), joint).R @ given if named else given
