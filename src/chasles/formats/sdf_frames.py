"""SDF's frames: names in the scopes of models, poses in one another, and the links they are on.

Every link, joint, model and `<frame>` has a frame (sdformat.org, "Pose frame semantics"): its pose
is given in some other one, and it moves with the link that it is attached to.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from chasles.formats.xml_part import Part
from chasles.mathematics.spatial import Transform, inverted
from chasles.model.build import compose
from chasles.model.model import suggest

MODEL, WORLD = "__model__", "world"
"""The format's names for a model's own frame and for the world's."""


@dataclass(eq=False)
class Node:
    """A frame. name: in the whole file, `model::part` where models are nested.

    scope: where it stands, and names that it uses are looked up; None for the world. given: its
    pose in the frame `base`. on: the frame it is attached to. inside: of a model, its own names.
    placement: of a model, the frame within that `given` places; "" for its own. static: never
    moves.
    """

    part: Part
    kind: str
    name: str
    scope: "Scope | None" = None
    given: Transform = field(default_factory=Transform.identity)
    base: str = ""
    on: str = ""
    inside: "Scope | None" = None
    placement: str = ""
    static: bool = False

    @property
    def above(self) -> "Node | None":
        """The frame that its pose is in; None for the world, which is in none."""
        return None if self.scope is None else self.scope.find(self.base, self.part)

    @cached_property
    def pose(self) -> Transform:
        """In the frame above."""
        if not self.placement:
            return self.given
        assert self.inside is not None, "only models are placed by a frame within"
        node, placed = self.inside.find(self.placement, self.part), Transform.identity()
        for step in self._way(node, lambda x: x.above if x is not self else None):
            if step is not self:
                placed = compose(placed, step.pose)
        return compose(inverted(placed), self.given)

    @property
    def carrier(self) -> "Node | None":
        """The link that it moves with; None for the world."""
        end = self._way(self, lambda node: node._attached())[-1]
        return end if end.kind == "link" else None

    def _attached(self) -> "Node | None":
        """The frame that it is attached to."""
        if self.kind == "link" or self.scope is None:
            return None
        if self.inside is not None:
            return self.inside.canonical(self.on, self.part)
        return self.scope.find(self.on, self.part)

    def _way(self, first: "Node", next_of: "Callable[[Node], Node | None]") -> "list[Node]":
        """From frame to frame until there is no next."""
        way = {first: None}
        node = next_of(first)
        while node is not None:
            if node in way:
                problem = f"its frame is defined by itself, through {node.name!r}"
                raise self.part.error("E-SDF-024", problem, "name another one")
            way[node] = None
            node = next_of(node)
        return list(way)


@dataclass(eq=False)
class Scope:
    """The names of a model or world. version: 9 of a file in SDF 1.9. origin: its own frame.

    into: the scope that its parts are merged into.
    """

    version: int
    origin: Node
    nodes: dict[str, Node] = field(default_factory=dict)
    into: "Scope | None" = None

    @property
    def prefix(self) -> str:
        """What stands before names of its parts in the whole file."""
        if self.into is not None:
            return self.into.prefix
        return f"{self.origin.name}::" if self.origin.name else ""

    def add(self, node: Node, name: str) -> Node:
        """A part of this scope; until version 1.6 a joint could have the name of a link."""
        if self.into is not None:
            self.into.add(node, name)
        other = self.nodes.setdefault(name, node)
        if other is not node and (self.version >= 7 or other.kind == node.kind):
            problem = f"{other.part.where} has a {other.kind} of the same name"
            raise node.part.error("E-SDF-025", problem, "rename one of them")
        if other.kind == "joint":
            self.nodes[name] = node
        return node

    def find(self, name: str, part: Part) -> Node:
        """The frame of a name as the file writes it here: part, or model::part."""
        if name in ("", MODEL):
            return self.origin
        if name in self.nodes:
            return self.nodes[name]
        model, _, rest = name.partition("::")
        inside = self.nodes[model].inside if model in self.nodes else None
        if rest and inside is not None:
            return inside.find(rest, part)
        raise part.error("E-SDF-026", f"there is no frame {name!r} here", suggest(name, self.nodes))

    def canonical(self, name: str, part: Part) -> Node | None:
        """The link, or the model, that a model's own frame is attached to: the first, or named."""
        if name:
            return self.find(name, part)
        links = [node for node in self.nodes.values() if node.kind == "link"]
        models = [node for node in self.nodes.values() if node.kind == "model"]
        return next(iter(links + models), None)


def relative(a: Node, b: Node) -> Transform:
    """The pose of one frame in another: from both up to where they meet, so that a long file takes
    no longer for each joint, and no digits are lost by way of the world."""
    sides = {a: Transform.identity()}, {b: Transform.identity()}
    ends, meet = [a, b], a if a is b else None
    while meet is None:
        for i, (mine, others) in enumerate((sides, sides[::-1])):
            above = ends[i].above
            if above is None or meet is not None:
                continue
            if above in mine:
                problem = f"its pose is relative to itself, through {above.name!r}"
                raise ends[i].part.error("E-SDF-027", problem, "name another frame")
            mine[above] = compose(mine[ends[i]], ends[i].pose)
            ends[i] = above
            if above in others:
                meet = above
    return compose(sides[0][meet], inverted(sides[1][meet]))
