"""Convert MJCF equalities to and from loops, mimic joints, fixed joints and couplings."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lxml import etree

from chasles.errors import ModelError
from chasles.expr import Number
from chasles.formats.files import words
from chasles.formats.mjcf_source import Source, pose
from chasles.formats.writable import refusal
from chasles.formats.xml_file import added
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import (
    Rotation,
    aligned_to_z,
    quaternion_from_matrix,
)
from chasles.mathematics.spatial import Transform
from chasles.model import CouplingData, Description, LoopData, Mimic, coupling
from chasles.model.build import compose
from chasles.model.couplings import linear, terms
from chasles.model.description import spelled, spelling
from chasles.model.graph import taken_names, unused_name

_LOOPS = spelled("MJCF equality")
"""Loop joint type for each type of equality between bodies."""

_STIFF = {"weld": {"torquescale": "100"}}
"""MJCF attributes that make an equality constraint stiffer, by type of constraint.

MuJoCo computes the rotational stiffness of a weld from the inertias of the two welded bodies only,
which often makes the weld a hundred times too soft.
"""

_POWERS = 4
"""Maximum degree of the polynomial in an equality between two joints."""

_ELSE = "save the robot as .toml"

_ROUNDED = 1e-12
"""Tolerance for comparing poses (m for positions, dimensionless for rotation matrices)."""

Bodies = Mapping[str | None, etree._Element]


@dataclass
class Equalities:
    """Loops, couplings, mimic joints and fixed joints that a file's equality constraints define.

    `followers` maps the name of each mimic joint to its mimic relation. `held` maps the name of
    each fixed joint to its constant coordinate.
    """

    loops: list[LoopData] = field(default_factory=list)
    couplings: list[CouplingData] = field(default_factory=list)
    followers: dict[str, Mimic] = field(default_factory=dict)
    held: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Equality:
    """Equality constraint number k of a file.

    `ends` contains the indices of the two constrained objects, or -1 for a missing object.
    """

    source: Source
    k: int
    name: str
    kind: str
    ends: tuple[int, int]
    data: list[float]
    where: str

    @property
    def what(self) -> str:
        return f"{self.where}: equality {self.name!r}"

    def error(self, code: str, problem: str, remedy: str) -> ModelError:
        part, remedy = f"equality {self.name!r}", f"{remedy}, or set active='false'"
        return ModelError(code, problem, remedy, part=part, file=self.where)


def equalities(source: Source) -> Equalities:
    """Convert all active equalities; add a note for each inactive equality."""
    found = Equalities()
    for equality in _active(source):
        if equality.kind in _LOOPS:
            found.loops.append(_loop(equality))
        elif equality.kind == "joint":
            _of_joints(equality, found)
        elif equality.kind == "tendon":
            sides = [_tendon(equality, t) for t in equality.ends]
            found.couplings.append(_coupling(equality, *sides))
        else:
            problem = f"equality constraints of type {equality.kind!r} are not supported"
            raise equality.error("E-MJCF-003", problem, "remove it from the file")
    return found


def _active(source: Source) -> Iterator[_Equality]:
    """Yield active equalities that involve no mocap body; add a note for each omitted equality."""
    for k, name in enumerate(source["equality"]):
        name, kind = name or source.tie(f"equality{k}"), str(source["eq_type"][k])
        ends, data = (source["eq_obj1id"][k], source["eq_obj2id"][k]), list(source["eq_data"][k])
        equality = _Equality(source, k, name, kind, ends, data, source.where("equality", k))
        if not source["eq_active0"][k] or source["equalities_disabled"]:
            source.notes.append(f"{equality.what} is inactive and is ignored")
        elif moved := next((i for i in _bodies(equality) if source.is_mocap(i)), 0):
            what = f"attaches a body to the mocap body {source.bodies[moved]!r}"
            source.notes.append(f"{equality.what} {what}; it is ignored")
        else:
            yield equality


def _bodies(equality: _Equality) -> list[int]:
    """Return the two bodies that an equality connects, or [] if it does not connect bodies."""
    if equality.kind not in _LOOPS:
        return []
    if equality.source["eq_objtype"][equality.k] == "site":
        return [equality.source["site_bodyid"][s] for s in equality.ends]
    return list(equality.ends)


def _loop(equality: _Equality) -> LoopData:
    """Return the loop joint for an equality between bodies, with z along a hinge if possible.

    Rotating both joint frames equally does not change the constraint. If z is parallel to the
    hinges, the equations of a planar loop separate into in-plane equations, which determine the
    motion, and redundant equations.
    """
    source, ends = equality.source, _frames(equality)
    axes = next(filter(None, (_hinge(source, *end) for end in reversed(ends))), Matrix.identity())
    turn = Transform(Rotation.of(axes), Vector.zero())
    (parent, first), (child, second) = ((source.bodies[i], compose(turn, at)) for i, at in ends)
    joint = LoopData(equality.name, _LOOPS[equality.kind], parent, child, first)
    return replace(joint, child_pose=second, where=equality.where)


def _hinge(source: Source, body: int, at: Transform) -> Matrix | None:
    """Return the rotation that aligns the z axis of `at` with the axis of the body's last hinge.

    If the body has no hinges, return None.
    """
    first, count = source["body_jntadr"][body], source["body_jntnum"][body]
    axes = [source["jnt_axis"][j] for j in range(first, first + count)
            if source["jnt_type"][j] == "hinge"]  # fmt: skip
    return aligned_to_z(at.E @ Vector(tuple(axes[-1]))) if axes else None


def _frames(equality: _Equality) -> list[tuple[int, Transform]]:
    """Return the two bodies of an equality and, on each, the frame that the equality aligns."""
    source, data = equality.source, equality.data
    if source["eq_objtype"][equality.k] == "site":
        owners = _bodies(equality)
        places = [pose(source["site_pos"][s], source["site_quat"][s]) for s in equality.ends]
        return list(zip(owners, places, strict=True))
    first, second = equality.ends
    if equality.kind == "connect":
        return [(first, pose(data[:3])), (second, pose(data[3:6]))]
    return [(first, pose(data[3:6], data[6:10])), (second, pose(data[:3]))]


def _of_joints(equality: _Equality, found: Equalities) -> None:
    """Convert the equality q1 - ref1 = c0 + c1 (q2 - ref2) + ...

    Joint 1 becomes a fixed joint or a mimic joint, or the equality becomes a coupling.
    """
    source, (j1, j2), c = equality.source, equality.ends, equality.data
    joint, rest = source.joints[j1], source.reference(j1)
    if joint in found.followers or joint in found.held:
        problem = f"another equality already determines joint {joint!r}"
        raise equality.error("E-MJCF-004", problem, "use each joint as joint1 of one equality only")
    if j2 < 0:
        found.held[joint] = rest + c[0]
        source.notes.append(
            f"{equality.what} holds joint {joint!r} at {rest + c[0]:g}; the joint is fixed"
        )
    elif any(c[2:5]):
        found.couplings.append(_coupling(equality, {j1: 1.0}, {j2: 1.0}))
    else:
        offset = rest + c[0] - c[1] * source.reference(j2)
        found.followers[joint] = Mimic(source.joints[j2], c[1], offset)


def _tendon(equality: _Equality, t: int) -> dict[int, float]:
    """Return the coefficients of fixed tendon t by joint; empty if there is no tendon (t < 0)."""
    gears = {} if t < 0 else equality.source.tendon(t)
    if gears is None:
        raise equality.error(
            "E-MJCF-005",
            "equality constraints on spatial tendons are not supported",
            "remove the equality from the file",
        )
    return gears


def _coupling(
    equality: _Equality, first: dict[int, float], second: dict[int, float]
) -> CouplingData:
    """Return the coupling x1 = c0 + ... + c4 x2^4, where each x is a sum of ratio * (q - ref)."""
    source, c = equality.source, equality.data
    joints = list(dict.fromkeys([*first, *second]))

    def residual(*q: Number) -> Number:
        moved = {j: x - source.reference(j) for j, x in zip(joints, q, strict=True)}
        x1, x2 = (sum(ratio * moved[j] for j, ratio in side.items()) for side in (first, second))
        return x1 - (c[0] + x2 * (c[1] + x2 * (c[2] + x2 * (c[3] + x2 * c[4]))))

    freedoms = [source.joints[j] for j in joints]
    try:
        return replace(coupling(equality.name, freedoms, residual), where=equality.where)
    except ModelError as error:
        raise equality.error("E-MJCF-006", error.message, "remove it from the file") from error


# Writing ---------------------------------------------------------------------------------------


def add_equalities(root: etree._Element, source: Description, bodies: Bodies) -> None:
    """Write loops, mimic joints and couplings; `bodies` maps link names to XML elements."""
    tendons = added(root, "tendon")
    equalities = added(root, "equality")
    taken, ties = taken_names(source)
    for loop in source.loops:
        for each in _points(loop, ties):
            _add_loop(equalities, source, each, bodies, taken)
    for joint in source.joints:
        if joint.mimic is not None:
            ends = {"joint1": joint.name, "joint2": joint.mimic.joint}
            c = words([joint.mimic.offset, joint.mimic.multiplier, 0.0, 0.0, 0.0])
            added(equalities, "joint", **ends, polycoef=c)
    named = {joint.name for joint in source.joints}
    for data in source.couplings:
        if not data.plain or not named.issuperset(data.freedoms):
            problem = "is not an equation between coordinates of one-DoF joints"
            raise refusal("E-MJCF-320", data, problem, _ELSE)
        found = linear(data)
        if found is None:
            added(equalities, "joint", name=data.name, **_polynomial(data))
            continue
        slopes, constant = found  # a linear coupling becomes a fixed tendon of constant length
        tendon = added(tendons, "fixed", name=data.name)
        for freedom, slope in zip(data.freedoms, slopes, strict=True):
            added(tendon, "joint", joint=freedom, coef=words([slope]))
        c = words([-constant, 0.0, 0.0, 0.0, 0.0])
        added(equalities, "tendon", name=data.name, tendon1=data.name, polycoef=c)
    for empty in (tendons, equalities):
        if not len(empty):
            root.remove(empty)


def _add_loop(
    equalities: etree._Element,
    source: Description,
    loop: LoopData,
    bodies: Bodies,
    taken: set[str],
) -> None:
    """Write a loop joint as an equality between two sites.

    MuJoCo assumes that an equality between bodies is satisfied in the initial configuration, which
    would be wrong for a loop that is initially open.
    """
    if not (tag := spelling(loop.kind, "MJCF equality")):
        remedy = f"{_ELSE}, or close the loop with a spherical joint, a revolute joint or a weld"
        raise refusal("E-MJCF-014", loop, f"is {loop.kind}", remedy)
    sites = _sites(source, loop)
    if not sites:
        ends_of = (("a", loop.parent, loop.pose), ("b", loop.child, loop.child_pose))
        for end, link, at in ends_of:
            known = (f.name for f in source.frames if f.link == link and f.pose == at)
            if (name := next(known, None)) is None:
                name = unused_name(f"{loop.name}.{end}", taken)
                added(bodies[link], "site", name=name, **placed(at))
            sites.append(name)
    ends = {"site1": sites[0], "site2": sites[1]}
    added(equalities, tag, name=loop.name, **ends, **_STIFF.get(tag, {}))


def _sites(source: Description, loop: LoopData) -> list[str]:
    """Return the names of two frames that can serve as the sites of a loop joint, or [].

    Each frame has the same origin as the joint frame on its link. The rotation between site and
    joint frame is the same on both links.
    """

    def near(link: str | None, at: Transform) -> list[tuple[str, Matrix]]:
        here = [f for f in source.frames if f.link == link]
        turns = [(f, at.E.matrix() @ f.pose.E.matrix().T) for f in here]
        return [(f.name, turn) for f, turn in turns if _same(f.pose.r, at.r)]

    for first, turn in near(loop.parent, loop.pose):
        for second, other in near(loop.child, loop.child_pose):
            if all(map(_same, turn.rows, other.rows)):
                return [first, second]
    return []


def _same(a: Iterable[Any], b: Iterable[Any]) -> bool:
    return all(abs(x - y) <= _ROUNDED for x, y in zip(a, b, strict=True))


def _points(loop: LoopData, taken: set[str]) -> list[LoopData]:
    """Replace a revolute loop joint by two ball joints on its axis; keep other joints unchanged."""
    if not loop.traits.hinge:
        return [loop]
    ball = replace(loop, kind=spelled("MJCF equality")["connect"])
    along = Transform.from_pose(Matrix.identity(), loop.axis)  # translation by 1 m along the axis
    pose, child_pose = (compose(along, place) for place in (loop.pose, loop.child_pose))
    name = unused_name(f"{loop.name}.axis", taken)
    return [ball, replace(ball, name=name, pose=pose, child_pose=child_pose)]


def _polynomial(data: CouplingData) -> dict[str, str]:
    """Return MJCF attributes that define one coordinate as a polynomial in another."""
    found = terms(data) or {}
    for k, follower in enumerate(data.freedoms):
        own = tuple(int(i == k) for i in range(len(data.freedoms)))
        others = {powers: x for powers, x in found.items() if powers != own}
        if own not in found or len(own) != 2 or any(powers[k] for powers in others):
            continue
        if all(powers[1 - k] <= _POWERS for powers in others):
            c = [0.0] * (_POWERS + 1)
            for powers, factor in others.items():
                c[powers[1 - k]] = -factor / found[own]
            return {"joint1": follower, "joint2": data.freedoms[1 - k], "polycoef": words(c)}
    problem = f"is more general than a degree-{_POWERS} polynomial q1 = p(q2)"
    raise refusal("E-MJCF-015", data, problem, f"{_ELSE}, if the coupling is a polynomial")


def placed(pose: Transform) -> dict[str, str]:
    """Return MJCF attributes for a pose; zero translations and rotations are omitted."""
    found = {"pos": words(pose.r)} if pose.r != Vector.zero() else {}
    if Matrix.identity() != pose.R:
        found["quat"] = words(quaternion_from_matrix(pose.R))
    return found
