"""The same mechanism in fewer joint types, for files that know few: joints in series."""

from collections.abc import Callable
from dataclasses import replace

from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import RigidInertia, Transform, inverted
from chasles.model.build import compose, natural_axes
from chasles.model.description import Description, JointData, LinkData, Mimic, freedom_names
from chasles.model.graph import unused_name


def in_series(source: Description, keep: str = "") -> Description:
    """The mechanism with joints of one freedom for all types that are such joints in series.

    Coordinates, velocities and forces are the same, in the same order. Of joint "j" with several
    freedoms come the joints "j[0]", "j[1]", ..., as `robot.independent` names them; a screw or
    pinion "j" stays a turn "j", and "j.slide" follows it. Links between them are massless.
    Reversed axes become opposite ones. keep: a file format, whose own types stay as they are
    unless reversed.
    """
    links, joints = list(source.links), []
    taken, names = taken_names(source)
    for joint in source.joints:
        if joint.traits.series and (joint.reversed or keep not in joint.traits.names):
            parts = _parts(joint, names)
            between = [_between(joint, part.name, taken) for part in parts[:-1]]
            links += between
            joints += _linked(joint, parts, [link.name for link in between])
        elif joint.reversed and joint.traits.flips:
            joints.append(replace(joint, axis=-joint.axis, reversed=False))
        else:
            joints.append(joint)
    return replace(source, links=tuple(links), joints=tuple(joints))


def taken_names(source: Description) -> tuple[set[str], set[str]]:
    """Names of links and frames; names of joints, loops and couplings."""
    places = {link.name for link in source.links} | {frame.name for frame in source.frames}
    ties = {joint.name for joint in (*source.joints, *source.loops)}
    return places, ties | {data.name for data in source.couplings}


def _parts(joint: JointData, taken: set[str]) -> list[JointData]:
    """The joints in series, in the order of the tree; not yet linked."""
    axes, series = natural_axes(joint).rows, joint.traits.series
    names = iter(freedom_names(joint.name, sum(not part.ratio for part in series)))
    parts = []
    for part in series:
        own = replace(joint, kind=part.kind, axis=Vector(axes[part.axis]), second_axis=None)
        own = replace(own, pitch=0.0, radius=0.0, reversed=False)
        if joint.reversed:
            own = replace(own, axis=-own.axis)
        if part.ratio:
            name = unused_name(f"{joint.name}.slide", taken)
            parts.append(
                JointData(
                    *(name, own.kind, None, "", Transform.identity(), own.axis),
                    mimic=Mimic(joint.name, getattr(joint, part.ratio)),
                    where=joint.where,
                )
            )
        else:
            parts.append(replace(own, name=next(names)))
    return parts[::-1] if joint.reversed else parts


def _linked(whole: JointData, parts: list[JointData], between: list[str]) -> list[JointData]:
    """The joints one after the other, from the parent of the whole joint to its child.

    In the order of the freedoms, whichever way round the joints are.
    """
    none = Transform.identity()
    parents, children = [whole.parent, *between], [*between, whole.child]
    linked = [
        replace(part, parent=parent, child=child, pose=none, child_pose=none)
        for part, parent, child in zip(parts, parents, children, strict=True)
    ]
    linked[0] = replace(linked[0], pose=whole.pose)
    linked[-1] = replace(linked[-1], child_pose=whole.child_pose)
    return linked[::-1] if whole.reversed else linked


def _between(joint: JointData, name: str, taken: set[str]) -> LinkData:
    """A massless link that a part of a joint carries."""
    link = unused_name(f"{joint.child}.{name}", taken)
    return LinkData(link, RigidInertia.zero(), joint.where, massless=True)


def at_children(source: Description, apart: Callable[[JointData], bool]) -> Description:
    """The mechanism with the frames of joints where their child links have theirs.

    apart: which joints need it. Such a joint carries a massless link "child.joint" at its frame, on
    which the child is fixed.
    """
    links, joints = list(source.links), []
    taken, names = taken_names(source)
    for joint in source.joints:
        if not apart(joint):
            joints.append(joint)
            continue
        back = inverted(joint.child_pose)
        moved = replace(joint, child_pose=Transform.identity())
        if joint.kind == "fixed":
            joints.append(replace(moved, pose=compose(back, joint.pose)))
            continue
        link = _between(joint, joint.name, taken)
        links.append(link)
        held = unused_name(f"{joint.name}.fixed", names)
        joints.append(replace(moved, child=link.name))
        joints.append(JointData(held, "fixed", link.name, joint.child, back, where=joint.where))
    return replace(source, links=tuple(links), joints=tuple(joints))
