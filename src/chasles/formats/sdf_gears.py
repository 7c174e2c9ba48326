"""Gearbox joints of SDF files: couplings between the angles of two other joints."""

import math
from collections.abc import Iterable, Iterator

from chasles.formats.sdf_document import Document, number
from chasles.formats.sdf_ends import direction, end
from chasles.formats.sdf_frames import WORLD, Node, relative
from chasles.model import CouplingData, JointData, gear

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
        ratio = number(node.part, "gearbox_ratio", 1.0)
        if ratio == 0.0:
            problem = "gearbox_ratio is 0"
            raise node.part.error("E-SDF-028", problem, "give the ratio, or fix its child")
        first, sense = _angle(node, "parent", "axis", turning)
        second, other = _angle(node, "child", "axis2", turning)
        yield gear(node.name, second, {first: -ratio * sense * other}, where=node.part.where)


def _angle(node: Node, tag: str, axis: str, turning: Turning) -> tuple[str, float]:
    """The joint that turns an end of a gearbox against its reference, and 1 or -1 for its sense."""
    link, reference = (_name(end(node, x)) for x in (tag, REFERENCE))
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


def _name(link: Node | None) -> str:
    return WORLD if link is None else link.name
