"""Read tendons, actuators, keyframes and fluid properties from a compiled MJCF model."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chasles.formats.mjcf_source import Source, pose
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Transform
from chasles.model import FrameData, JointData
from chasles.model.description import some
from chasles.model.graph import unused_name
from chasles.model.machine import (
    UNBOUNDED,
    ActuatorData,
    BoxData,
    FluidData,
    Interval,
    KeyframeData,
    Named,
    RotorData,
    StretchData,
    Triple,
)

_BRANCHES = (
    "its armature couples joints of different branches; MuJoCo's mass matrix omits these entries"
)
"""Note about a tendon that has armature and spans several branches of the kinematic tree."""

_KINDS = {
    "joint": "joint",
    "jointinparent": "joint",
    "tendon": "tendon",
    "site": "site",
    "slidercrank": "crank",
}
"""`ActuatorData.kind` for each MuJoCo transmission type."""

_SIZES = {"free": (7, 6), "ball": (4, 3), "slide": (1, 1), "hinge": (1, 1)}
"""Numbers of position and velocity coordinates (nq, nv) for each MuJoCo joint type."""


def position(source: Source, k: int, q: Sequence[float]) -> tuple[float, ...]:
    """Return a joint's coordinates; for a free joint, the quaternion precedes the position."""
    start, kind = source["jnt_qposadr"][k], source["jnt_type"][k]
    found = tuple(q[start : start + _SIZES[kind][0]])
    return (*found[3:], *found[:3]) if kind == "free" else found


def _velocity(source: Source, k: int, q: Sequence[float], v: Sequence[float]) -> tuple[float, ...]:
    """Return a joint's velocity; for a free joint, in the body frame, angular part first."""
    start, kind = source["jnt_dofadr"][k], source["jnt_type"][k]
    found = tuple(v[start : start + _SIZES[kind][1]])
    if kind != "free":
        return found
    turn = pose((0.0, 0.0, 0.0), position(source, k, q)[:4]).E
    return (*found[3:], *(turn @ Vector(found[:3])))


def unsupported(source: Source) -> Iterator[str]:
    """Yield a message for each unsupported feature in the file."""
    for what, count in source["unsupported"].items():
        if count:
            yield f"{source.file}: {what} ({count}) are not supported and are ignored"
    reasons: dict[str, list[str]] = {}
    for name, row in zip(_names(source), source["actuators"], strict=True):
        if row["unsupported"]:
            reasons.setdefault(row["unsupported"], []).append(name)
    for reason, names in reasons.items():
        what = f"actuators ({len(names)}) exert no force, because {reason} is not supported"
        yield f"{source.file}: {what}: {some(names)}"
    yield from source.left_out


def fluid(source: Source) -> FluidData | None:
    """Return fluid properties, and the boxes that approximate the bodies.

    As in MuJoCo, each box has the same inertia as its body. Return None if there is no fluid.
    """
    if not (given := source["fluid"]):
        return None
    boxes = []
    for i, edges in enumerate(given["boxes"]):
        if edges:
            axes = pose(source["body_ipos"][i], source["body_iquat"][i])
            if source["body_sameframe"][i] == "body":
                axes = Transform.identity()
            boxes.append(BoxData(source.bodies[i], axes, tuple(edges)))
    wind = Vector(tuple(given["wind"]))
    return FluidData(given["density"], given["viscosity"], wind, tuple(boxes))


# Tendons ----------------------------------------------------------------------------------------


class Tendons:
    """Reader for tendons.

    `names` maps the MuJoCo index of each supported tendon to its name. `sites` contains the frames
    that are created for unnamed sites.
    """

    def __init__(self, source: Source, held: Mapping[str, float]) -> None:
        self.source, self.held = source, held
        self.names: dict[int, str] = {}
        self.sites: list[FrameData] = []
        self._used = {row["ends"][0] for row in source["actuators"] if row["trn"] == "tendon"}
        kinds = zip(source["sensor_objtype"], source["sensor_objid"], strict=True)
        self._used |= {t for kind, t in kinds if kind == "tendon"}

    def read(self, joints: list[JointData]) -> tuple[list[JointData], list[RotorData]]:
        """Return the joints, and all tendons that exert forces or have actuators or sensors.

        The armature of a single-joint tendon is added to its joint.
        """
        source, own, found = self.source, dict[str, float](), list[RotorData]()
        for t, name in enumerate(source["tendon"]):
            data = RotorData(
                "",
                (),
                (),
                source["armature"]["tendon"][t],
                source.file,
                stiffness=source["tendon_stiffness"][t],
                rest=tuple(source["tendon_lengthspring"][t]),
                damping=source["damping"]["tendon"][t],
                forces=tuple(source["tendon_actfrcrange"][t])
                if source["tendon_actfrclimited"][t]
                else UNBOUNDED,
                limits=_range(source["tendon_range"][t] if source["tendon_limited"][t] else None),
                friction=source["tendon_frictionloss"][t],
            )
            if not (_acts(data) or t in self._used):
                continue
            what, gears = f"{source.file}: tendon {name or t!r}", source.tendon(t)
            tendon = self._spatial(t, data, what) if gears is None else self._fixed(gears, data)
            if tendon is None:
                continue
            if len(tendon.freedoms) == 1 and tendon.armature:
                [joint], [ratio] = tendon.freedoms, tendon.ratios
                own[joint] = own.get(joint, 0.0) + ratio * ratio * tendon.armature
                tendon = replace(tendon, armature=0.0)
            if _acts(tendon) or t in self._used:
                if (
                    gears
                    and tendon.armature
                    and not self._on_one_path({source["jnt_bodyid"][j] for j in gears})
                ):
                    source.notes.append(f"{what}: {_BRANCHES}")
                self.names[t] = source.tie(name or f"tendon{t}")
                found.append(replace(tendon, name=self.names[t]))
        return [replace(x, armature=x.armature + own.get(x.name, 0.0)) for x in joints], found

    def _fixed(self, gears: dict[int, float], data: RotorData) -> RotorData | None:
        """Read a fixed tendon; joints fixed by equalities add a constant offset to its length."""
        source, offset = self.source, 0.0
        kept = {}
        for j, ratio in gears.items():
            if (name := source.joints[j]) in self.held:
                offset += ratio * self.held[name]
            else:
                kept[name] = ratio
        made = replace(data, freedoms=tuple(kept), ratios=tuple(kept.values()), offset=offset)
        return made if kept else None

    def _spatial(self, t: int, data: RotorData, what: str) -> RotorData | None:
        """Read a spatial tendon; return None if it wraps around an unsupported object."""
        source, start, factor = self.source, -1, 1.0
        path, bodies = list[StretchData](), set[int]()
        for w in range(source["tendon_adr"][t], source["tendon_adr"][t] + source["tendon_num"][t]):
            kind, site = source["wrap_type"][w], source["wrap_objid"][w]
            if kind not in ("site", "pulley"):
                source.left_out.append(
                    f"{what} and its actuators are ignored: it wraps around a {kind}, which "
                    "is not supported"
                )
                return None
            if kind == "pulley":
                start, factor = -1, 1.0 / source["wrap_prm"][w]
                continue
            if start >= 0:
                path.append(StretchData(*self._at(start), *self._at(site), factor))
            bodies.add(source["site_bodyid"][site])
            start = site
        if data.armature and not self._on_one_path(bodies):
            source.notes.append(f"{what}: {_BRANCHES}")
        return replace(data, path=tuple(path), where="") if path else None

    def _at(self, site: int) -> tuple[str, Vector]:
        """Return the link of a site and the site's position on it."""
        body = self.source["site_bodyid"][site]
        return self.source.bodies[body], Vector(tuple(self.source["site_pos"][site]))

    def _on_one_path(self, bodies: set[int]) -> bool:
        """Return True if all bodies lie on one path from the root."""
        last, path = max(bodies, default=0), {0}
        while last > 0:
            path.add(last)
            last = self.source["body_parentid"][last]
        return bodies <= path

    def frame(self, site: int) -> str:
        """Return the name of a site's frame; create a frame for an unnamed site."""
        source = self.source
        if name := source.frames.get(site, ""):
            return name
        source.frames[site] = source.link(f"site{site}")
        place = pose(source["site_pos"][site], source["site_quat"][site])
        link = source.bodies[source["site_bodyid"][site]]
        self.sites.append(FrameData(source.frames[site], link, place))
        return source.frames[site]


def _acts(data: RotorData) -> bool:
    """Return True if a tendon has armature, stiffness, damping, friction or limits."""
    return bool(
        data.armature or data.stiffness or data.damping or data.friction or data.limits != UNBOUNDED
    )


# Actuators and keyframes ------------------------------------------------------------------------


def actuators(source: Source, tied: Tendons, held: Mapping[str, float]) -> tuple[ActuatorData, ...]:
    """Return all actuators in MuJoCo's order; unsupported actuators have an empty `kind`."""
    return tuple(
        _actuator(source, tied, held, row, name)
        for name, row in zip(_names(source), source["actuators"], strict=True)
    )


def _names(source: Source) -> list[str]:
    """Return the actuator names; unnamed actuators are numbered."""
    rows = source["actuators"]
    taken: set[str] = {row["name"] for row in rows}
    return [row["name"] or unused_name(f"actuator{k}", taken) for k, row in enumerate(rows)]


def _actuator(
    source: Source, tied: Tendons, held: Mapping[str, float], row: dict[str, Any], name: str
) -> ActuatorData:
    kind, (first, second) = _KINDS.get(str(row["trn"]), ""), row["ends"]
    dynamics = str(row["dyn"]).removesuffix("exact")
    none = ActuatorData(name, "", controls=_range(row["ctrl"]), where=source.file)
    if dynamics in ("integrator", "filter"):
        none = replace(none, dynamics=dynamics, constant=row["constant"])
    if row["unsupported"] or row["disabled"] or not kind:
        return none
    data = replace(
        none,
        kind=kind,
        gain=_triple(row["gain"], row["gainprm"]),
        bias=_triple(row["bias"], row["biasprm"]),
        forces=_range(row["force"]),
        activations=_range(row["act"]),
        gear=tuple(row["gear"][:1]),
    )
    if kind == "joint":
        if source.joints[first] in held:
            return none
        several = source["jnt_type"][first] in ("ball", "free")
        gear = tuple(row["gear"]) if several else data.gear
        in_parent = several and row["trn"] == "jointinparent"
        return replace(data, target=source.joints[first], gear=gear, in_parent=in_parent)
    if kind == "tendon":
        known = tied.names.get(first)
        return none if known is None else replace(data, target=known)
    data = replace(data, target=tied.frame(first))
    if second >= 0:
        data = replace(data, reference=tied.frame(second))
    return (
        replace(data, rod=row["rod"]) if kind == "crank" else replace(data, gear=tuple(row["gear"]))
    )


def _range(given: Sequence[float] | None) -> Interval:
    """Return a range as a tuple (lower, upper); None gives infinite limits."""
    lower, upper = UNBOUNDED if given is None else given
    return (lower, upper)


def _triple(kind: object, given: Sequence[float]) -> Triple:
    """Return the constant, length and velocity coefficients of an actuator's gain or bias."""
    a, b, c = given
    return {"none": (0.0, 0.0, 0.0), "fixed": (a, 0.0, 0.0)}.get(str(kind), (a, b, c))


def keyframes(source: Source, driven: Sequence[ActuatorData]) -> Iterator[KeyframeData]:
    """Yield the keyframes of the file; unnamed keyframes are numbered."""
    taken = set(source["key"])
    active = [data.name for data in driven if data.active]
    for k, name in enumerate(source["key"]):
        q, v = source["key_qpos"][k], source["key_qvel"][k]
        yield KeyframeData(
            name or unused_name(f"key{k}", taken),
            tuple((joint, position(source, j, q)) for j, joint in enumerate(source.joints)),
            tuple((joint, _velocity(source, j, q, v)) for j, joint in enumerate(source.joints)),
            _named([data.name for data in driven], source["key_ctrl"][k]),
            _named(active, source["key_act"][k]),
        )


def _named(names: Sequence[str], given: Sequence[float]) -> Named:
    """Pair names with values, omitting infinite values; return () if the lengths differ."""
    if len(names) != len(given):
        return ()
    return tuple((name, (x,)) for name, x in zip(names, given, strict=True) if math.isfinite(x))
