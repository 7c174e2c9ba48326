"""An MJCF file being read: its compiled numbers, names and places; and equalities, also written.

MuJoCo's compiler runs in a process of its own. Equalities are loops, mimic joints, joints that are
held, and couplings.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lxml import etree

from chasles.errors import ModelError
from chasles.expr import Number
from chasles.formats.files import load, words
from chasles.formats.walled import Tool
from chasles.formats.writable import refusal
from chasles.formats.xml_file import added, parse
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import matrix_from_quaternion, quaternion_from_matrix
from chasles.mathematics.spatial import Transform
from chasles.model import CouplingData, Description, LoopData, Mimic, coupling
from chasles.model.build import compose
from chasles.model.couplings import linear, terms
from chasles.model.description import spelled, spelling
from chasles.model.graph import taken_names, unused_name

MUJOCO = Tool(
    "MuJoCo's compiler", "mujoco", "mjcf", "mjcf_child.py", seconds=10.0, memory=4 * 2**30
)
"""Most models of gymnasium and dm_control take less than a second and 0.2 GB; dm_control's fruit
fly 4 s, and its rodent, which asks for room for many contacts, 3.2 GB."""

MAX_PARTS = 20_000
"""Bodies, joints, sites, equalities and shapes of a model; a few lines of `replicate` can make
millions."""

_LINE = re.compile(r"line(?: number)?[ =](\d+)", re.IGNORECASE)

_PLACES = {
    ".//body": "body",
    "worldbody//joint": "joint",
    "worldbody//freejoint": "joint",
    "worldbody//site": "site",
    "equality/*": "equality",
}
"""Where a file has the parts of each kind."""


@dataclass
class Source:
    """A file being read.

    numbers: those of the compiled model, by their names in mjModel. model: the file's name for the
    whole, "" if it has none. lines: of parts in the file, by kind and name. bodies, joints: names
    of all, those without one by MuJoCo's number: body3, joint0.
    """

    file: str
    numbers: dict[str, Any]
    model: str
    lines: dict[tuple[str, str], Any]
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.links, self.ties = set(self["body"]), {*self["joint"], *self["equality"]}
        self.bodies = [name or self.link(f"body{i}") for i, name in enumerate(self["body"])]
        self.joints = [name or self.tie(f"joint{k}") for k, name in enumerate(self["joint"])]

    def __getitem__(self, name: str) -> Any:
        return self.numbers[name]

    def link(self, wanted: str) -> str:
        """A name that no other link or frame has."""
        return unused_name(wanted, self.links)

    def tie(self, wanted: str) -> str:
        """A name that no other joint, loop or coupling has."""
        return unused_name(wanted, self.ties)

    def where(self, kind: str, k: int) -> str:
        """ "file:line", or the file alone where it has no such name (includes, replicas)."""
        line = self.lines.get((kind, self[kind][k]))
        return self.file if line is None else f"{self.file}:{line}"

    def reference(self, j: int) -> float:
        """The coordinate of a hinge or slide with which its body stands where the file has it."""
        scalar = self["jnt_type"][j] in ("hinge", "slide")
        return self["qpos0"][self["jnt_qposadr"][j]] if scalar else 0.0


def opened(file: str) -> Source:
    """The file, parsed (for names and lines) and compiled (for everything else)."""
    root = parse(file, load(file))
    if root.tag != "mujoco":
        remedy = "an MJCF file is a <mujoco>"
        remedy = "a URDF file ends in .urdf" if root.tag == "robot" else remedy
        problem = f"the document is a <{root.tag}>"
        raise ModelError("E-MJCF-007", problem, remedy, file=f"{file}:{root.sourceline}")
    return Source(file, compiled(file), root.get("model", ""), _lines(root))


def _lines(root: etree._Element) -> dict[tuple[str, str], Any]:
    return {
        (kind, element.get("name", "")): element.sourceline
        for path, kind in _PLACES.items()
        for element in root.iterfind(path)
        if element.get("name")
    }


def pose(
    position: Sequence[float], quaternion: Sequence[float] = (1.0, 0.0, 0.0, 0.0)
) -> Transform:
    """Pose of a frame in another, from MuJoCo's numbers."""
    R = matrix_from_quaternion(Vector(tuple(quaternion)))
    return Transform.from_pose(R, Vector(tuple(position)))


def compiled(file: str) -> dict[str, Any]:
    """The numbers of the model that MuJoCo makes of a file: those that `mjcf_child` gives."""
    answer = MUJOCO.ask(file, str(MAX_PARTS))
    if "error" not in answer:
        return answer
    line = _LINE.search(answer["error"])
    what = "; ".join(part.strip() for part in answer["error"].strip().split("\n"))
    place = file if line is None else f"{file}:{line[1]}"
    raise ModelError("E-MJCF-002", what[:400], "correct the file", part=MUJOCO.name, file=place)


# Equalities ------------------------------------------------------------------------------------

_LOOPS = spelled("MJCF equality")
"""The joint that each equality between two bodies is."""

_STIFF = {"weld": {"torquescale": "100"}}
"""What makes an equality stiff: MuJoCo softens the turn of a weld by inertias of the bodies alone,
often a hundred times too much."""

_POWERS = 4
"""The highest that an equality between two joints has."""

_ELSE = "save it as .toml"

Bodies = Mapping[str | None, etree._Element]


@dataclass
class Equalities:
    """Changes of a tree by equalities; followers and held joints by name."""

    loops: list[LoopData] = field(default_factory=list)
    couplings: list[CouplingData] = field(default_factory=list)
    followers: dict[str, Mimic] = field(default_factory=dict)
    held: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Equality:
    """An equality of a file, its k-th. ends: numbers of what it is between, -1 for nothing."""

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
    """All that are active; notes name the others."""
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
            problem = f"its type is {equality.kind}, which cannot be read"
            raise equality.error("E-MJCF-003", problem, "take it out")
    return found


def _active(source: Source) -> Iterator[_Equality]:
    for k, name in enumerate(source["equality"]):
        name, kind = name or source.tie(f"equality{k}"), str(source["eq_type"][k])
        ends, data = (source["eq_obj1id"][k], source["eq_obj2id"][k]), list(source["eq_data"][k])
        equality = _Equality(source, k, name, kind, ends, data, source.where("equality", k))
        if source["eq_active0"][k] and not source["equalities_disabled"]:
            yield equality
        else:
            source.notes.append(f"{equality.what} is not active and left out")


def _loop(equality: _Equality) -> LoopData:
    (parent, first), (child, second) = _frames(equality)
    joint = LoopData(equality.name, _LOOPS[equality.kind], parent, child, first)
    return replace(joint, child_pose=second, where=equality.where)


def _frames(equality: _Equality) -> list[tuple[str, Transform]]:
    """The links that it joins, and the frames on them that it brings together."""
    source, data = equality.source, equality.data
    if source["eq_objtype"][equality.k] == "site":
        owners = [source.bodies[source["site_bodyid"][s]] for s in equality.ends]
        places = [pose(source["site_pos"][s], source["site_quat"][s]) for s in equality.ends]
        return list(zip(owners, places, strict=True))
    first, second = (source.bodies[i] for i in equality.ends)
    if equality.kind == "connect":
        return [(first, pose(data[:3])), (second, pose(data[3:6]))]
    return [(first, pose(data[3:6], data[6:10])), (second, pose(data[:3]))]


def _of_joints(equality: _Equality, found: Equalities) -> None:
    """q1 - ref1 = c0 + c1 (q2 - ref2) + ...: joint 1 is held, follows joint 2, or is coupled."""
    source, (j1, j2), c = equality.source, equality.ends, equality.data
    joint, rest = source.joints[j1], source.reference(j1)
    if joint in found.followers or joint in found.held:
        problem = f"another one moves joint {joint!r} already"
        raise equality.error("E-MJCF-004", problem, "let each be joint1 of one equality")
    if j2 < 0:
        found.held[joint] = rest + c[0]
        source.notes.append(f"{equality.what} holds joint {joint!r} at {rest + c[0]:g}; now fixed")
    elif any(c[2:5]):
        found.couplings.append(_coupling(equality, {j1: 1.0}, {j2: 1.0}))
    else:
        offset = rest + c[0] - c[1] * source.reference(j2)
        found.followers[joint] = Mimic(source.joints[j2], c[1], offset)


def _tendon(equality: _Equality, t: int) -> dict[int, float]:
    """The joints of a fixed tendon, and how much each lengthens it; none for no tendon."""
    source = equality.source
    if t < 0:
        return {}
    places = range(source["tendon_adr"][t], source["tendon_adr"][t] + source["tendon_num"][t])
    if any(source["wrap_type"][w] != "joint" for w in places):
        raise equality.error("E-MJCF-005", "a spatial tendon cannot be read", "take it out")
    return {source["wrap_objid"][w]: source["wrap_prm"][w] for w in places}


def _coupling(
    equality: _Equality, first: dict[int, float], second: dict[int, float]
) -> CouplingData:
    """x1 = c0 + c1 x2 + ... + c4 x2^4, each x a sum over joints of ratio times (q - ref)."""
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
        raise equality.error("E-MJCF-006", error.message, "take it out") from error


# Writing ---------------------------------------------------------------------------------------


def add_equalities(root: etree._Element, source: Description, bodies: Bodies) -> None:
    """Add loops (with sites on the bodies, by link), mimic joints and couplings to a model."""
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
    for data in source.couplings:
        found = linear(data)
        if found is None:
            added(equalities, "joint", name=data.name, **_polynomial(data))
            continue
        slopes, constant = found  # of a sum that is the length of a fixed tendon
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
    """An equality of two sites; those of bodies hold what they are at the start, closed or not."""
    if not (tag := spelling(loop.kind, "MJCF equality")):
        remedy = f"{_ELSE}, or close it by a spherical or revolute joint, or a weld"
        raise refusal("E-MJCF-014", loop, f"is {loop.kind}", remedy)
    sites = []
    for end, link, at in (("a", loop.parent, loop.pose), ("b", loop.child, loop.child_pose)):
        known = (f.name for f in source.frames if f.link == link and f.pose == at)
        if (name := next(known, None)) is None:
            name = unused_name(f"{loop.name}.{end}", taken)
            added(bodies[link], "site", name=name, **placed(at))
        sites.append(name)
    ends = {"site1": sites[0], "site2": sites[1]}
    added(equalities, tag, name=loop.name, **ends, **_STIFF.get(tag, {}))


def _points(loop: LoopData, taken: set[str]) -> list[LoopData]:
    """A hinge that closes a loop as two points of its axis that stay together; others as they are.

    One of the six equations of two points is of no use: their distance is the same on both links.
    """
    if not loop.traits.hinge:
        return [loop]
    ball = replace(loop, kind=spelled("MJCF equality")["connect"])
    along = Transform.from_pose(Matrix.identity(), loop.axis)  # 1 m
    pose, child_pose = (compose(along, place) for place in (loop.pose, loop.child_pose))
    name = unused_name(f"{loop.name}.axis", taken)
    return [ball, replace(ball, name=name, pose=pose, child_pose=child_pose)]


def _polynomial(data: CouplingData) -> dict[str, str]:
    """One coordinate as a polynomial of another: the attributes of an equality."""
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
    problem = f"is no polynomial of one coordinate that gives another, with powers up to {_POWERS}"
    raise refusal("E-MJCF-015", data, problem, f"{_ELSE}, if it is some polynomial")


def placed(pose: Transform) -> dict[str, str]:
    """Attributes of a frame in another."""
    found = {"pos": words(pose.r)} if pose.r != Vector.zero() else {}
    if Matrix.identity() != pose.R:
        found["quat"] = words(quaternion_from_matrix(pose.R))
    return found
