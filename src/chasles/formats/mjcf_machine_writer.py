"""Write springs, tendons, actuators, keyframes and fluid properties to an MJCF model."""

import math
from collections.abc import Mapping, Sequence

from lxml import etree

from chasles.formats.files import words
from chasles.formats.mjcf_equalities import placed
from chasles.formats.writable import refusal, single_rest
from chasles.formats.xml_file import added, each
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import matrix_from_quaternion
from chasles.mathematics.spatial import Transform
from chasles.model import Description, JointData, RotorData
from chasles.model.description import spelling
from chasles.model.graph import unused_name
from chasles.model.machine import UNBOUNDED, ActuatorData, Interval, KeyframeData

_ELSE = "save the robot as .toml"

Bodies = Mapping[str | None, etree._Element]


def spring(joint: JointData) -> dict[str, str]:
    """Return MJCF attributes for a joint's spring, force range and gravity compensation."""
    found = {}
    if joint.stiffness:
        found["stiffness"] = words([joint.stiffness])
        at_start = joint.traits.floating and joint.rest == joint.start  # MuJoCo's default rest pose
        if not at_start and (rest := single_rest(joint, "MJCF")):
            found["springref"] = words([rest])
    if joint.forces != UNBOUNDED:
        found["actuatorfrcrange"] = _ends(joint, joint.forces)
    if joint.lifted:
        found["actuatorgravcomp"] = "true"
    return found


def start_of(joint: JointData) -> Transform:
    """Return the initial pose of the body that a free joint moves."""
    if not joint.start:
        return Transform.identity()
    R = matrix_from_quaternion(Vector(joint.start[:4]))
    return Transform.from_pose(R, Vector(joint.start[4:]))


def _ends(part: JointData | RotorData | ActuatorData, interval: Interval) -> str:
    if not all(map(math.isfinite, interval)):
        problem = f"has the one-sided range {interval[0]:g} to {interval[1]:g}"
        raise refusal("E-MJCF-400", part, problem, _ELSE)
    return words(interval)


def add_fluid(option: etree._Element, source: Description) -> None:
    """Write the fluid's density, viscosity and wind.

    The boxes on which the fluid acts are not written; MuJoCo computes them from the inertias.
    """
    if (flow := source.fluid) is not None:
        option.set("density", words([flow.density]))
        option.set("viscosity", words([flow.viscosity]))
        if any(flow.wind):
            option.set("wind", words(flow.wind))


def add_tendons(root: etree._Element, source: Description, bodies: Bodies) -> None:
    """Write tendons; each straight segment of a spatial tendon is a separate pulley branch."""
    tendons = root.find("tendon")
    tendons = added(root, "tendon") if tendons is None else tendons
    named, taken = {joint.name for joint in source.joints}, {frame.name for frame in source.frames}
    for rotor in source.rotors:
        if not rotor.path and not named.issuperset(rotor.freedoms):
            raise refusal("E-MJCF-220", rotor, "acts on a ball or free joint", _ELSE)
        given = _tendon(source, rotor)
        if not rotor.path:
            tendon = added(tendons, "fixed", name=rotor.name, **given)
            for freedom, ratio in zip(rotor.freedoms, rotor.ratios, strict=True):
                added(tendon, "joint", joint=freedom, coef=words([ratio]))
            continue
        tendon = added(tendons, "spatial", name=rotor.name, **given)
        for a, r, b, s, factor in rotor.path:
            added(tendon, "pulley", divisor=words([1.0 / factor]))
            for link, point in ((a, r), (b, s)):
                name = unused_name(f"{rotor.name}.site", taken)
                place = placed(Transform(Transform.identity().E, point))
                added(bodies[link], "site", name=name, **place)
                added(tendon, "site", site=name)
    if not len(tendons):
        root.remove(tendons)


def _tendon(source: Description, rotor: RotorData) -> dict[str, str]:
    """Return MJCF attributes for a tendon; its offset is subtracted from rest length and limits."""
    numbers = {"armature": rotor.armature, "damping": rotor.damping, "stiffness": rotor.stiffness}
    numbers |= {"frictionloss": rotor.friction}
    found = each({key: x for key, x in numbers.items() if x})
    if rotor.stiffness:
        lower, upper = (x - rotor.offset for x in rotor.rest)
        if lower == -1.0:
            problem = "has a spring with rest length -1 (a special value in MuJoCo)"
            raise refusal("E-MJCF-401", rotor, problem, _ELSE)
        found["springlength"] = words([lower, upper])
    if rotor.limits != UNBOUNDED:
        lower, upper = (x - rotor.offset for x in rotor.limits)
        found["range"] = _ends(rotor, (lower, upper))
    if rotor.forces != UNBOUNDED:
        found["actuatorfrcrange"] = _ends(rotor, rotor.forces)
    by_length = (x for x in source.actuators if x.kind == "tendon" and x.target == rotor.name)
    if rotor.offset and any(x.gain[1] or x.bias[1] for x in by_length):
        problem = "has a length offset and an actuator with length-dependent force"
        raise refusal("E-MJCF-402", rotor, problem, _ELSE)
    return found


def add_actuators(root: etree._Element, source: Description) -> list[str]:
    """Write actuators; return a note on each actuator that exerts no force and is omitted."""
    actuators, notes = added(root, "actuator"), []
    for data in source.actuators:
        if not data.kind:
            notes.append(f"actuator {data.name!r} exerts no force and is not written")
            continue
        added(actuators, "general", name=data.name, **_actuator(data))
    if not len(actuators):
        root.remove(actuators)
    return notes


def _actuator(data: ActuatorData) -> dict[str, str]:
    ends = {
        "joint": {"jointinparent" if data.in_parent else "joint": data.target},
        "tendon": {"tendon": data.target},
        "site": {"site": data.target} | ({"refsite": data.reference} if data.reference else {}),
        "crank": {"cranksite": data.target, "slidersite": data.reference},
    }
    found = {**ends[data.kind], "gear": words(data.gear)}
    if data.kind == "crank":
        found["cranklength"] = words([data.rod])
    fixed = not any(data.gain[1:])
    found |= {"gaintype": "fixed" if fixed else "affine", "gainprm": words(data.gain)}
    found |= {"biastype": "affine" if any(data.bias) else "none", "biasprm": words(data.bias)}
    if data.active:
        found |= {"dyntype": data.dynamics, "dynprm": words([data.constant or 1.0])}
    for key, given in (("ctrl", data.controls), ("force", data.forces), ("act", data.activations)):
        if given != UNBOUNDED and (key != "act" or data.active):
            found |= {f"{key}limited": "true", f"{key}range": _ends(data, given)}
    return found


def add_keyframes(root: etree._Element, source: Description, order: Sequence[str]) -> list[str]:
    """Write keyframes; return a note if a keyframe for the initial coordinates is added.

    `order` contains the names of the written joints in MuJoCo's order. MuJoCo starts every joint
    except a free joint at zero. Other initial coordinates are therefore written as the keyframe
    "start".
    """
    joints = {joint.name: joint for joint in source.joints}
    keys, notes = list(source.keyframes), []
    moved = [x for x in source.joints if not x.traits.floating and _away(x) and x.name in order]
    if moved:
        keys.append(KeyframeData("start"))
        notes.append('the initial coordinates are stored in the keyframe "start"')
    if not keys:
        return notes
    element = added(root, "keyframe")
    for key in keys:
        positions, velocities = dict(key.positions), dict(key.velocities)
        q: list[float] = []
        v: list[float] = []
        for name in order:
            joint = joints[name]
            x = positions.get(name) or joint.start or tuple(_neutral(joint))
            u = velocities.get(name) or (0.0,) * joint.traits.nv
            floats = spelling(joint.kind, "MJCF") == "free"
            q += (*x[4:], *x[:4]) if floats else x
            turned = (
                start_of(JointData("", "free", None, "", start=tuple(x))).E.T if floats else None
            )
            v += (*(turned @ Vector(u[3:])), *u[:3]) if turned is not None else u
        given = {"qpos": words(q)} | ({"qvel": words(v)} if any(v) else {})
        written = [data for data in source.actuators if data.kind]
        for what, names, part in (
            ("ctrl", [data.name for data in written], key.controls),
            ("act", [data.name for data in written if data.active], key.activations),
        ):
            known = dict(part)
            if any(x for name in names for x in known.get(name, ())):
                given[what] = words([known.get(name, (0.0,))[0] for name in names])
        added(element, "key", name=key.name, **given)
    return notes


def _neutral(joint: JointData) -> tuple[float, ...]:
    """Return a joint's zero position: all coordinates are 0, but quaternions are (1, 0, 0, 0)."""
    return tuple(float(unit == "1" and k == 0) for k, unit in enumerate(joint.traits.units))


def _away(joint: JointData) -> bool:
    return bool(joint.start) and tuple(joint.start) != _neutral(joint)
