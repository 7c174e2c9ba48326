"""MJCF equalities, written: loops, mimic joints, gears and polynomials."""

from collections.abc import Mapping
from dataclasses import replace

from lxml import etree

from chasles.formats.refusals import refusal
from chasles.formats.xml_document import added, words
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import quaternion_from_matrix
from chasles.mathematics.spatial import Transform
from chasles.model import CouplingData, Description, LoopData
from chasles.model.build import compose
from chasles.model.couplings import linear
from chasles.model.graph import unused_name
from chasles.model.joints import spelled, spelling
from chasles.model.polynomials import terms

_STIFF = {"weld": {"torquescale": "100"}}
"""What makes an equality stiff: MuJoCo softens the turn of a weld by inertias of the bodies alone,
often a hundred times too much."""

_POWERS = 4
"""The highest that an equality between two joints has."""

_ELSE = "save it as .toml"

Bodies = Mapping[str | None, etree._Element]


def add_equalities(root: etree._Element, source: Description, bodies: Bodies) -> None:
    """Add loops (with sites on the bodies, by link), mimic joints and couplings to a model."""
    tendons = added(root, "tendon")
    equalities = added(root, "equality")
    taken = {link.name for link in source.links} | {frame.name for frame in source.frames}
    ties = {part.name for part in (*source.joints, *source.loops)}
    ties |= {data.name for data in source.couplings}
    for loop in source.loops:
        for each in _points(loop, ties):
            _loop(equalities, source, each, bodies, taken)
    for joint in source.joints:
        if joint.mimic is not None:
            c = (joint.mimic.offset, joint.mimic.multiplier, 0.0, 0.0, 0.0)
            _joints(equalities, joint.name, joint.mimic.joint, c)
    for data in source.couplings:
        found = linear(data)
        if found is not None:
            _tendon(tendons, equalities, data, *found)
        else:
            _polynomial(equalities, data)
    for empty in (tendons, equalities):
        if not len(empty):
            root.remove(empty)


def _loop(
    equalities: etree._Element,
    source: Description,
    loop: LoopData,
    bodies: Bodies,
    taken: set[str],
) -> None:
    """An equality of two sites; those of bodies hold what they are at the start, closed or not."""
    if not (tag := spelling(loop.kind, "MJCF equality")):
        remedy = f"{_ELSE}, or close it by a spherical or revolute joint, or a weld"
        raise refusal("E-MJCF-014", f"loop {loop.name!r}", f"is {loop.kind}", "MJCF", remedy)
    sites = []
    for end, link, pose in (("a", loop.parent, loop.pose), ("b", loop.child, loop.child_pose)):
        known = (f.name for f in source.frames if f.link == link and f.pose == pose)
        name = next(known, None)
        if name is None:
            name = unused_name(f"{loop.name}.{end}", taken)
            added(bodies[link], "site", name=name, **placed(pose))
        sites.append(name)
    stiff = _STIFF.get(tag, {})
    added(equalities, tag, name=loop.name, site1=sites[0], site2=sites[1], **stiff)


def _points(loop: LoopData, taken: set[str]) -> list[LoopData]:
    """A hinge that closes a loop as two points of its axis that stay together; others as they are.

    One of the six equations of two points is of no use: their distance is the same on both links.
    """
    if not loop.traits.hinge:
        return [loop]
    ball = replace(loop, kind=spelled("MJCF equality")["connect"])
    along = Transform.from_pose(Matrix.identity(), loop.axis)  # 1 m
    second = replace(
        ball,
        name=unused_name(f"{loop.name}.axis", taken),
        pose=compose(along, loop.pose),
        child_pose=compose(along, loop.child_pose),
    )
    return [ball, second]


def _joints(
    equalities: etree._Element, follower: str, leader: str, c: tuple[float, ...], **name: str
) -> None:
    """follower = c0 + c1 leader + c2 leader^2 + ..."""
    added(equalities, "joint", **name, joint1=follower, joint2=leader, polycoef=words(c))


def _tendon(
    tendons: etree._Element,
    equalities: etree._Element,
    data: CouplingData,
    slopes: list[float],
    constant: float,
) -> None:
    """A sum that is constant: the length of a fixed tendon. (One of joints would be a mimic.)"""
    tendon = added(tendons, "fixed", name=data.name)
    for freedom, slope in zip(data.freedoms, slopes, strict=True):
        added(tendon, "joint", joint=freedom, coef=words([slope]))
    c = words((-constant, 0.0, 0.0, 0.0, 0.0))
    added(equalities, "tendon", name=data.name, tendon1=data.name, polycoef=c)


def _polynomial(equalities: etree._Element, data: CouplingData) -> None:
    """One coordinate as a polynomial of another."""
    found = terms(data) or {}
    for k, follower in enumerate(data.freedoms):
        own = tuple(int(i == k) for i in range(len(data.freedoms)))
        others = {powers: x for powers, x in found.items() if powers != own}
        if own in found and len(own) == 2 and not any(powers[k] for powers in others):
            c = [0.0] * (_POWERS + 1)
            if all(powers[1 - k] <= _POWERS for powers in others):
                for powers, factor in others.items():
                    c[powers[1 - k]] = -factor / found[own]
                _joints(equalities, follower, data.freedoms[1 - k], tuple(c), name=data.name)
                return
    problem = f"is no polynomial of one coordinate that gives another, with powers up to {_POWERS}"
    remedy = f"{_ELSE}, if it is some polynomial"
    raise refusal("E-MJCF-015", f"coupling {data.name!r}", problem, "MJCF", remedy)


def placed(pose: Transform) -> dict[str, str]:
    """Attributes of a frame in another."""
    found = {"pos": words(pose.r)} if pose.r != Vector.zero() else {}
    if Matrix.identity() != pose.R:
        found["quat"] = words(quaternion_from_matrix(pose.R))
    return found
