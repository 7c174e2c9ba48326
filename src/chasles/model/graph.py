"""Build spanning trees (Featherstone 2008, section 4.1) and split compound joints."""

import heapq
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import fields, replace
from typing import NamedTuple

from chasles.errors import ArgumentError, ModelError
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import RigidInertia, Transform, inverted
from chasles.model.build import compose, natural_axes
from chasles.model.description import (
    CouplingData,
    Description,
    FrameData,
    JointData,
    LinkData,
    LoopData,
    Mimic,
    faulty,
    freedom_names,
)
from chasles.model.joints.contract import Part
from chasles.names import suggest

FREE = "root_joint"
"""Name of the free joint of a robot that is loaded with floating=True."""


def from_graph(
    name: str,
    links: Sequence[LinkData],
    joints: Sequence[JointData],
    *,
    base: str | None = None,
    loops: Sequence[str] = (),
    actuated: Sequence[str] = (),
    frames: Sequence[FrameData] = (),
    couplings: Sequence[CouplingData] = (),
    gravity: Vector = Description.gravity,
) -> Description:
    """Create a mechanism from links and joints that may form loops.

    Each joint connects two links, or the world (parent None) and a link. The joint frame has the
    pose `pose` in the parent and `child_pose` in the child. `base` is the link that is fixed to the
    world, if any. `loops` contains the names of joints that close loops, and `actuated` the names
    of actuated joints.

    Further loop joints are chosen if needed. The tree includes as many joints that need coordinates
    as possible, and is as shallow as possible. A joint needs coordinates if it is actuated, coupled
    or part of a mimic relation, or if it has armature, damping, friction or a spring.

    Links that are not connected to the base or the world get a free joint, which a note reports.
    Tree joints keep their order and coordinates. If the child link of a joint is closer to the base
    than its parent link, parent and child are exchanged.
    """
    by_name = _checked(name, links, joints, base, loops, actuated)
    wanted = {*actuated, *_coupled(joints, couplings), *(j.name for j in joints if j.resists)}
    tree, notes = _tree(links, joints, base, set(loops), wanted)
    chosen = {joint.name: joint for joint in tree}
    in_tree = set(chosen)
    ordered = [chosen.pop(joint) for joint in by_name if joint in chosen]
    closing = [joint for joint in by_name.values() if joint.name not in in_tree]
    notes += [
        f"joint {joint.name!r} closes a loop in which every joint needs "
        "coordinates, but it cannot have any"
        for joint in closing
        if joint.name in wanted
    ]
    return Description(
        name,
        tuple(links),
        (*ordered, *chosen.values()),
        tuple(frames),
        gravity,
        tuple(notes),
        loops=tuple(LoopData(**{f.name: getattr(x, f.name) for f in fields(x)}) for x in closing),
        couplings=tuple(couplings),
    )


def _checked(
    name: str,
    links: Sequence[LinkData],
    joints: Sequence[JointData],
    base: str | None,
    loops: Sequence[str],
    actuated: Sequence[str],
) -> dict[str, JointData]:
    """Check that all named links and joints exist, and return the joints by name."""
    for what, names in (("loops", loops), ("actuated", actuated)):
        if isinstance(names, str):
            problem = f"{what} must be a sequence of joint names"
            raise ArgumentError("E-MODEL-027", problem, f"give [{names!r}]", part="from_graph")
    known = {link.name: link for link in links}
    by_name = {joint.name: joint for joint in joints}
    if len(by_name) < len(joints):
        problem = "two joints have the same name"
        raise ModelError("E-MODEL-028", problem, "rename one of them", part=f"robot {name!r}")
    if base is not None and base not in known:
        problem = f"base link {base!r} does not exist"
        raise ModelError("E-MODEL-029", problem, suggest(base, known), part=f"robot {name!r}")
    for joint in joints:
        for link in (joint.parent, joint.child):
            if link is not None and link not in known:
                problem = f"link {link!r} does not exist"
                raise faulty("E-MODEL-030", joint, problem, suggest(link, known))
        if joint.parent == joint.child:
            raise faulty(
                "E-MODEL-031", joint, "it connects a link to itself", "name two different links"
            )
    for chosen in (*loops, *actuated):
        if chosen not in by_name:
            problem, remedy = f"joint {chosen!r} does not exist", suggest(chosen, by_name)
            raise ModelError("E-MODEL-032", problem, remedy, part=f"robot {name!r}")
    return by_name


def _coupled(joints: Sequence[JointData], couplings: Sequence[CouplingData]) -> set[str]:
    """Return the names of joints in mimic relations or couplings."""
    mimics = [joint for joint in joints if joint.mimic is not None]
    leaders = {joint.mimic.joint for joint in mimics if joint.mimic is not None}
    freedoms = (freedom for data in couplings for freedom in (*data.freedoms, *data.rates))
    named = {freedom.partition("[")[0] for freedom in freedoms}
    return named | leaders | {joint.name for joint in mimics}


def _tree(
    links: Sequence[LinkData],
    joints: Sequence[JointData],
    base: str | None,
    loops: set[str],
    wanted: set[str],
) -> tuple[list[JointData], list[str]]:
    """Return the joints of a spanning tree rooted at the world, and notes about the choice.

    Prim's algorithm adds the joints in `wanted` first, then the joints that keep the tree
    shallowest. Ties are resolved by the order in which the joints are given.
    """
    depth: dict[str | None, int] = {}
    tree: list[JointData] = []
    notes: list[str] = []
    border: list[tuple[bool, int, int, str | None]] = []
    taken = {joint.name for joint in joints}
    touching: dict[str | None, list[tuple[int, str | None]]] = {}
    for k, joint in enumerate(joints):
        if joint.name not in loops:
            touching.setdefault(joint.parent, []).append((k, joint.child))
            touching.setdefault(joint.child, []).append((k, joint.parent))

    def reach(link: str | None, deep: int) -> None:
        depth[link] = deep
        for k, far in touching.get(link, []):
            cost = deep + (joints[k].kind != "fixed")
            heapq.heappush(border, (joints[k].name not in wanted, cost, k, far))

    def grow() -> None:
        while border:
            _, deep, k, far = heapq.heappop(border)
            if far not in depth:
                tree.append(joints[k] if joints[k].child == far else _turned_round(joints[k]))
                reach(far, deep)

    if base is not None:
        tree.append(JointData(unused_name(f"{base}_base", taken), "fixed", None, base))
        reach(base, 0)
    reach(None, 0)
    grow()
    for link in (link.name for link in links):
        if link not in depth:
            added = JointData(unused_name(f"{link}_free", taken), "free", None, link)
            notes.append(f"link {link!r} is not connected; free joint {added.name!r} was added")
            tree.append(added)
            reach(link, 1)
            grow()
    return tree, notes


def on_free_joint(
    links: Sequence[LinkData], joints: tuple[JointData, ...]
) -> tuple[JointData, ...]:
    """Add a free joint "root_joint" before the other joints if there is a single root link."""
    children = {joint.child for joint in joints}
    roots = [link for link in links if link.name not in children]
    if len(roots) != 1:
        return joints
    name = unused_name(FREE, {joint.name for joint in joints})
    return (JointData(name, "free", None, roots[0].name, where=roots[0].where), *joints)


def unused_name(name: str, taken: set[str]) -> str:
    """Return the name, with a numeric suffix if it is in `taken`, and add it to `taken`."""
    names = itertools.chain([name], (f"{name}_{k}" for k in itertools.count(1)))
    found = next(name for name in names if name not in taken)
    taken.add(found)
    return found


def _turned_round(joint: JointData) -> JointData:
    """Exchange the parent and child of a joint (Featherstone 2008, section 4.1.3)."""
    assert joint.parent is not None, "start the tree at the world"
    axial = joint.traits.flips and not joint.reversed
    turned = replace(joint, parent=joint.child, child=joint.parent)
    turned = replace(turned, pose=joint.child_pose, child_pose=joint.pose)
    if axial:
        return replace(turned, axis=-joint.axis)
    return replace(turned, reversed=not joint.reversed and joint.kind != "fixed")


# Regular numberings ------------------------------------------------------------------------------


class Numbering(NamedTuple):
    """A regular numbering of a graph (Featherstone 2008, section 4.1.2).

    Attributes
    ----------
    bodies
        Names of the moving links.
    joints
        Names of the tree joints in the same order, followed by the loop joints.
    parents
        Index of each body's parent, or -1 for the base.
    predecessors, successors
        Indices of the bodies that each joint connects.
    """

    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    parents: tuple[int, ...]
    predecessors: tuple[int, ...]
    successors: tuple[int, ...]

    @property
    def loops(self) -> tuple[str, ...]:
        """Names of the loop joints, for the argument `loops` of `from_graph`."""
        return self.joints[len(self.bodies) :]


def regular_numberings(
    links: Sequence[LinkData], joints: Sequence[JointData], *, base: str | None = None
) -> Iterator[Numbering]:
    """Yield every regular numbering of a graph of links and joints.

    The arguments are the same as for `from_graph`, but every link must be connected. A numbering
    consists of a spanning tree, an order of its bodies with parents before children, and an order
    of the loop joints. The number of numberings can be very large.
    """
    arcs = _checked("graph", links, joints, base, (), ())
    ends: dict[str, tuple[str | None, str | None]] = {
        name: (None if x.parent == base else x.parent, None if x.child == base else x.child)
        for name, x in arcs.items()
    }
    count = sum(link.name != base for link in links)
    met: set[str | None] = {None}
    while more := {x for pair in ends.values() if met & {*pair} for x in pair} - met:
        met |= more
    apart = [link.name for link in links if link.name != base and link.name not in met]
    for name in apart:
        problem = f"link {name!r} is not connected to the base"
        raise ModelError("E-MODEL-340", problem, "add a free joint from the world to the link")
    yield from _grown(ends, count, {None: -1}, ())


def _grown(
    ends: dict[str, tuple[str | None, str | None]],
    count: int,
    numbers: dict[str | None, int],
    tree: tuple[str, ...],
) -> Iterator[Numbering]:
    """Yield every numbering that starts with the given bodies and tree joints."""
    if len(tree) == count:
        rest = [name for name in ends if name not in tree]
        bodies = tuple(name for name in numbers if name is not None)
        parents = tuple(min(numbers[a], numbers[b]) for a, b in (ends[name] for name in tree))
        for order in itertools.permutations(rest):
            all_joints = (*tree, *order)
            before, after = (tuple(numbers[ends[name][k]] for name in all_joints) for k in (0, 1))
            yield Numbering(bodies, all_joints, parents, before, after)
        return
    for name, (a, b) in ends.items():
        if (a in numbers) != (b in numbers):
            far = b if a in numbers else a
            yield from _grown(ends, count, {**numbers, far: len(tree)}, (*tree, name))


# Joints in series --------------------------------------------------------------------------------


def in_series(
    source: Description, keep: str = "", only: Collection[str] | None = None
) -> Description:
    """Replace compound joints by joints in series with one degree of freedom each.

    Coordinates, velocities and forces are the same, in the same order. A joint "j" with several
    degrees of freedom becomes the joints "j[0]", "j[1]", ..., as in `robot.independent`. A screw or
    pinion "j" becomes a rotation "j" and a translation "j.slide" that mimics the rotation. The
    links between the new joints are massless. The axes of a reversed joint change sign.

    If `keep` is the name of a file format, joint types that the format supports are kept unless the
    joint is reversed. `only` contains the names of the joints to replace (default: all). A joint
    in `only` may also have a `coordinate_series`, with other velocities.
    """
    links, joints = list(source.links), []
    taken, names = taken_names(source)
    for joint in source.joints:
        if only is not None and joint.name not in only:
            joints.append(joint)
        elif (series := joint.traits.series or (only and joint.traits.coordinate_series)) and (
            joint.reversed or keep not in joint.traits.names
        ):
            parts = _parts(joint, series, names)
            between = [_between(joint, part.name, taken) for part in parts[:-1]]
            links += between
            joints += _linked(joint, parts, [link.name for link in between])
        elif joint.reversed and joint.traits.flips:
            joints.append(replace(joint, axis=-joint.axis, reversed=False))
        else:
            joints.append(joint)
    return replace(source, links=tuple(links), joints=tuple(joints))


def taken_names(source: Description) -> tuple[set[str], set[str]]:
    """Return names of links and frames, and names of joints, loops, couplings and rotors."""
    places = {link.name for link in source.links} | {frame.name for frame in source.frames}
    ties = {joint.name for joint in (*source.joints, *source.loops)}
    ties |= {data.name for data in source.couplings}
    return places, ties | {rotor.name for rotor in source.rotors}


def _parts(joint: JointData, series: Sequence[Part], taken: set[str]) -> list[JointData]:
    """Return the simple joints that replace a compound joint; their links are set later."""
    axes, place = natural_axes(joint).rows, itertools.count()
    names = freedom_names(joint.name, sum(not part.ratio for part in series))
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
            k = next(place) if part.coordinate is None else part.coordinate
            at, begun = joint.rest[k : k + 1], joint.start[k : k + 1]
            parts.append(replace(own, name=names[k], rest=at, start=begun))
    return parts[::-1] if joint.reversed else parts


def _linked(whole: JointData, parts: list[JointData], between: list[str]) -> list[JointData]:
    """Connect joints in series to the parent and child of the compound joint that they replace."""
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
    """Create a massless link between two joints in series."""
    link = unused_name(f"{joint.child}.{name}", taken)
    return LinkData(link, RigidInertia.zero(), joint.where, massless=True)


def at_children(source: Description, apart: Callable[[JointData], bool]) -> Description:
    """Make joint frames coincide with the frames of their child links.

    A joint is converted if apart(joint) is True. The joint then moves a new massless link, to which
    the original child is fixed.
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
