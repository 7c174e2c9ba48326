"""A joint of an SDF file: the links that it stands between, and the direction of its axes."""

from chasles.formats.sdf_document import content, truth
from chasles.formats.sdf_frames import MODEL, WORLD, Node, relative
from chasles.formats.xml_part import Part
from chasles.mathematics.linear import Vector


def end(node: Node, tag: str) -> Node | None:
    """The link at an end of a joint, by its own name or that of a frame on it; None: the world."""
    assert node.scope is not None, "joints stand in a model or a world"
    part = node.part.need(tag)
    name = content(part)
    if not name:
        raise part.error("E-SDF-023", f"there is no name in <{tag}>", "give that of a link")
    return None if name == WORLD else node.scope.find(name, part).carrier


def direction(node: Node, axis: Part) -> Vector:
    """The unit vector of an `<axis>` or `<axis2>`, in the joint's frame."""
    assert node.scope is not None, "joints stand in a model or a world"
    xyz = axis.find("xyz")
    given = Vector.of(0.0, 0.0, 1.0) if xyz is None else axis.unit(vector(xyz))
    named = "" if xyz is None else xyz.element.get("expressed_in", "")
    if node.scope.version <= 4 or truth(axis.find("use_parent_model_frame"), False):
        named = named or MODEL
    return relative(node.scope.find(named, axis), node).R @ given if named else given


def vector(part: Part) -> Vector:
    """The three numbers in an element."""
    return Vector(tuple(map(float, part.numerals(part.tag, content(part), 3))))
