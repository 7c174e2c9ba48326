"""Gearbox joints of SDF files, read and written: couplings of the angles of two other joints."""

import math
from collections.abc import Iterable, Iterator

from lxml import etree

from chasles.formats.files import words
from chasles.formats.sdf_document import Document
from chasles.formats.sdf_frames import WORLD, Node, direction, end, relative
from chasles.formats.writable import refusal
from chasles.formats.xml_file import add_texts, added
from chasles.model import CouplingData, Description, JointData, gear
from chasles.model.couplings import linear

KIND = "gearbox"
"""The format's name for such a joint."""

REFERENCE = "gearbox_reference_body"

_PARALLEL = 1e-9

Turning = dict[frozenset[str], list[tuple[Node, JointData]]]
"""Revolute joints, by the two links that they connect."""


def gears(document: Document, joints: Iterable[JointData]) -> Iterator[CouplingData]:
    """theta2 = -gearbox_ratio theta1, as sdformat.org/spec says of each gearbox.

    theta1 is the angle of its parent about its `<axis>`, theta2 that of its child about `<axis2>`,
    both against its `gearbox_reference_body`: so they are coordinates of joints with these links.
    """
    nodes = {node.name: node for node in document.of("joint")}
    turning: Turning = {}
    for joint in joints:
        if joint.traits.hinge and joint.name in nodes:
            ends = frozenset((joint.parent or WORLD, joint.child))
            turning.setdefault(ends, []).append((nodes[joint.name], joint))
    for node in nodes.values():
        if node.part.text("type") != KIND or node.static:
            continue
        ratio = node.part.number("gearbox_ratio", 1.0)
        if ratio == 0.0:
            problem = "gearbox_ratio is 0"
            raise node.part.error("E-SDF-028", problem, "give the ratio, or fix its child")
        first, sense = _angle(node, "parent", "axis", turning)
        second, other = _angle(node, "child", "axis2", turning)
        yield gear(node.name, second, {first: -ratio * sense * other}, where=node.part.where)


def _angle(node: Node, tag: str, axis: str, turning: Turning) -> tuple[str, float]:
    """The joint that turns an end of a gearbox against its reference, and 1 or -1 for its sense."""
    ends = (end(node, x) for x in (tag, REFERENCE))
    link, reference = (WORLD if x is None else x.name for x in ends)
    wanted = direction(node, node.part.need(axis))
    for place, joint in turning.get(frozenset((link, reference)), ()):
        along = float((relative(place, node).R @ joint.axis).dot(wanted))
        if abs(along) > 1.0 - _PARALLEL:
            return joint.name, math.copysign(1.0, along if joint.child == link else -along)
    problem = (
        f"no revolute joint along its <{axis}> connects its <{tag}> {link!r} with its "
        f"<{REFERENCE}> {reference!r}"
    )
    raise node.part.error("E-SDF-029", problem, "add one")


# Writing ---------------------------------------------------------------------------------------


def add_gears(model: etree._Element, source: Description) -> None:
    """Write a gearbox for each coupling; refuse what is no ratio of two turns from one link.

    From a q + b p = 0: with angles s q and t p against the shared link, t p = -(s t a/b) s q.
    """
    joints = {joint.name: joint for joint in source.joints}
    for data in source.couplings:
        slopes, constant = linear(data) or ([], 0.0)
        pair = [joints[name] for name in data.freedoms if name in joints]
        shared = _shared(pair)
        if constant or len(slopes) != 2 or shared is None:
            problem = "is no ratio of two revolute joints on one link"
            raise refusal("E-SDF-040", data, problem, "save it as .toml or .xml")
        first, second = zip(pair, slopes, strict=True)
        if first[1] == 1.0:  # the child follows, with this factor, as it is read back
            first, second = second, first
        if _end(second[0], shared)[0] == WORLD:
            first, second = second, first
        (parent, s), (child, t) = (_end(joint, shared) for joint, _ in (first, second))
        ratio = words([s * t * first[1] / second[1]])
        element = added(model, "joint", name=data.name, type=KIND)
        add_texts(element, parent=parent, child=child, gearbox_ratio=ratio, **{REFERENCE: shared})
        for tag, (joint, _) in (("axis", first), ("axis2", second)):
            added(added(element, tag), "xyz", expressed_in=joint.name).text = words(joint.axis)


def _shared(pair: list[JointData]) -> str | None:
    """The link that both joints have, or the world."""
    if len(pair) != 2 or not all(joint.traits.hinge for joint in pair):
        return None
    first, second = ({joint.parent or WORLD, joint.child} for joint in pair)
    return next(iter(first & second), None)


def _end(joint: JointData, shared: str) -> tuple[str, float]:
    """The other link of a joint, and the sense in which its coordinate turns that."""
    return (joint.child, 1.0) if shared != joint.child else (joint.parent or WORLD, -1.0)
