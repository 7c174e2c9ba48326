"""URDF files, written: trees of links and joints that every reader of the format knows."""

import math
import os

from lxml import etree

from chasles.formats.files import store
from chasles.formats.refusals import check_writable, refusal
from chasles.formats.urdf import UNBOUNDED
from chasles.formats.urdf_writer_shapes import add_origin, add_shapes
from chasles.formats.xml_document import added, begun, printed, words
from chasles.mathematics.spatial import RigidInertia
from chasles.model import Description, JointData, Limits, LinkData
from chasles.model.graph import unused_name
from chasles.model.joints import as_bounded, spelling, traits
from chasles.model.series import at_children, in_series

_ELSE = "save it as .toml or .xml"


def write(description: Description, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a tree with all digits; read back, it moves the same, in the same coordinates.

    Joints of several freedoms and screws are written as joints in series (`model.series`), frames
    as links on fixed joints; where joints hang on the world, so does a link "world". Refused: what
    URDF cannot say (loops, couplings, armature, other joints, other gravity).
    """
    notes = check_writable(description, "URDF")
    _check(description)
    source = at_children(in_series(description), lambda joint: not joint.child_pose.is_identity)
    root = begun("robot", name=description.name)
    taken = {link.name for link in source.links} | {frame.name for frame in source.frames}
    world = unused_name("world", taken)
    if any(joint.parent is None for joint in source.joints):
        added(root, "link", name=world)
    for link in source.links:
        _link(root, link)
    for joint in source.joints:
        _joint(root, joint, world)
    names = {joint.name for joint in source.joints}
    for frame in source.frames:
        added(root, "link", name=frame.name)
        held = unused_name(f"{frame.name}.fixed", names)
        _joint(root, JointData(held, "fixed", frame.link, frame.name, frame.pose), world)
    left = add_shapes(root, description)
    store(path, printed(root))
    return (*notes, *left)


def _check(description: Description) -> None:
    """Nothing is there that the format cannot say."""
    for what, parts in (("loop", description.loops), ("coupling", description.couplings)):
        for part in parts:
            raise refusal("E-URDF-007", f"{what} {part.name!r}", "closes a tree", "URDF", _ELSE)
    if description.gravity != Description.gravity:
        x, y, z = description.gravity
        problem = "is not (0, 0, -9.81)"
        remedy = f"{_ELSE}, or take robot.with_gravity((0, 0, -9.81))"
        raise refusal("E-URDF-008", f"gravity ({x:g}, {y:g}, {z:g})", problem, "URDF", remedy)
    for joint in in_series(description).joints:
        if "URDF" not in joint.traits.names or (joint.reversed and joint.kind != "fixed"):
            what = "reversed " if joint.reversed else ""
            problem = f"is {what}{joint.kind}"
            raise refusal("E-URDF-009", f"joint {joint.name!r}", problem, "URDF", _ELSE)
        if joint.armature and joint.kind != "fixed":
            raise refusal("E-URDF-010", f"joint {joint.name!r}", "has an armature", "URDF", _ELSE)


def _link(root: etree._Element, link: LinkData) -> None:
    element = added(root, "link", name=link.name)
    if link.inertia == RigidInertia.zero():
        return
    mass, center, inertia = link.inertia.about_center()
    inertial = added(element, "inertial")
    added(inertial, "origin", xyz=words(center), rpy="0 0 0")
    added(inertial, "mass", value=words([mass]))
    entries = zip(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), inertia, strict=True)
    added(inertial, "inertia", **{key: words([x]) for key, x in entries})


def _joint(root: etree._Element, joint: JointData, world: str) -> None:
    limits = joint.limits
    unbounded = (limits.lower, limits.upper) == (-math.inf, math.inf)
    kind = as_bounded(joint.kind, not unbounded)
    element = added(root, "joint", name=joint.name, type=spelling(kind, "URDF"))
    add_origin(element, joint.pose)
    added(element, "parent", link=world if joint.parent is None else joint.parent)
    added(element, "child", link=joint.child)
    if kind == "fixed":
        return
    if joint.traits.along:
        added(element, "axis", xyz=words(joint.axis))
    bounds = traits(kind).bounds
    if bounds == "needed" or limits != Limits():
        _limit(element, limits, bounded=bounds != "none")
    if joint.damping or joint.friction:
        dynamics = {"damping": joint.damping, "friction": joint.friction}
        added(element, "dynamics", **{key: words([x]) for key, x in dynamics.items()})
    if joint.mimic is not None:
        ratio, offset = words([joint.mimic.multiplier]), words([joint.mimic.offset])
        added(element, "mimic", joint=joint.mimic.joint, multiplier=ratio, offset=offset)


def _limit(element: etree._Element, limits: Limits, *, bounded: bool) -> None:
    """All that readers ask for, the largest number where there is no limit."""
    given = {"effort": limits.effort, "velocity": limits.velocity}
    if bounded:
        given = {"lower": limits.lower, "upper": limits.upper} | given
    numbers = {key: max(-UNBOUNDED, min(x, UNBOUNDED)) for key, x in given.items()}
    added(element, "limit", **{key: words([x]) for key, x in numbers.items()})
