"""MJCF equalities: loops, mimic joints, joints that are held, and couplings of coordinates."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from chasles.errors import ModelError
from chasles.expr import Number
from chasles.formats.mjcf_source import Source, pose
from chasles.mathematics.spatial import Transform
from chasles.model import CouplingData, LoopData, Mimic, coupling
from chasles.model.joints import spelled

_LOOPS = spelled("MJCF equality")
"""The joint that each equality between two bodies is."""


@dataclass
class Equalities:
    """What equalities make of a tree; followers and held joints by name."""

    loops: list[LoopData] = field(default_factory=list)
    couplings: list[CouplingData] = field(default_factory=list)
    followers: dict[str, Mimic] = field(default_factory=dict)
    held: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Equality:
    """An equality of a file, by its number. ends: numbers of what it is between, -1 for nothing."""

    source: Source
    k: int
    name: str

    @property
    def kind(self) -> str:
        return str(self.source["eq_type"][self.k])

    @property
    def ends(self) -> tuple[int, int]:
        return self.source["eq_obj1id"][self.k], self.source["eq_obj2id"][self.k]

    @property
    def data(self) -> list[float]:
        return list(self.source["eq_data"][self.k])

    @property
    def where(self) -> str:
        return self.source.where("equality", self.k)

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
            found.couplings.append(
                _coupling(equality, *(_tendon(equality, t) for t in equality.ends))
            )
        else:
            problem = f"its type is {equality.kind}, which cannot be read"
            raise equality.error("E-MJCF-003", problem, "take it out")
    return found


def _active(source: Source) -> Iterator[_Equality]:
    for k, name in enumerate(source["equality"]):
        equality = _Equality(source, k, name or source.tie(f"equality{k}"))
        if source["eq_active0"][k] and not source["equalities_disabled"]:
            yield equality
        else:
            source.notes.append(f"{equality.what} is not active and left out")


def _loop(equality: _Equality) -> LoopData:
    (parent, first), (child, second) = _frames(equality)
    return LoopData(
        *(equality.name, _LOOPS[equality.kind], parent, child, first),
        child_pose=second,
        where=equality.where,
    )


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
        problem = "it has a spatial tendon, which cannot be read"
        raise equality.error("E-MJCF-005", problem, "take it out")
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
