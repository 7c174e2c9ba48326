"""Check that a robot can be written to a file."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from chasles.errors import ModelError
from chasles.model import Description, JointData, Limits, LinkData, ShapeData
from chasles.model.description import Named, part_of, some
from chasles.model.given import admitted
from chasles.model.ranges import LARGEST


def writable(source: Description) -> tuple[Description, list[str]]:
    """Check that a mechanism can be saved, and return it as `load` would read it back.

    Also return notes on the values that `load` would change, such as negative damping.
    """
    _check_names("robot", [source])
    for what in ("link", "joint", "loop", "coupling", "rotor", "frame"):
        _check_names(what, getattr(source, f"{what}s"))
    for link in source.links:
        _check_inertia(link)
    for shape in source.shapes:
        _check_shape(shape)
    made = admitted(replace(source, notes=()))
    return replace(made, notes=source.notes), list(made.notes)


def _check_names(what: str, parts: Iterable[Any]) -> None:
    for name in (part.name for part in parts):
        if not name and what != "robot":
            raise ModelError("E-FILE-039", f"a {what} has an empty name", f"give the {what} a name")
        try:
            name.encode()
        except UnicodeEncodeError:
            problem = f"the name of {what} {name!r} cannot be encoded as UTF-8"
            raise ModelError("E-FILE-040", problem, "use another name") from None


def _check_inertia(link: LinkData) -> None:
    """Raise an error for NaN, values above `LARGEST`, or a first moment of a massless link."""
    m, h, I = float(link.inertia.m), link.inertia.h, link.inertia.I
    center = [float(x) / m if m else float(x) for x in h]
    if not m and any(h):
        problem = f"link {link.name!r} has a first moment of mass, but its mass is zero"
        raise ModelError("E-FILE-041", problem, "give the link a mass")
    if not all(abs(x) <= LARGEST for x in (m, *center, *h, *I)):  # True for NaN as well
        problem = (
            f"link {link.name!r}: mass, center of mass or inertia is NaN or exceeds {LARGEST:g}"
        )
        raise ModelError("E-FILE-042", problem, f"give finite values of at most {LARGEST:g}")


def _check_shape(shape: ShapeData) -> None:
    part = f"link {shape.link!r}: its {shape.kind}"
    if not all(map(math.isfinite, shape.size)) or (shape.kind != "mesh" and min(shape.size) <= 0.0):
        problem = f"{part} has the invalid size {tuple(shape.size)}"
        raise ModelError("E-FILE-043", problem, "give positive dimensions")
    if shape.color is not None and not all(0.0 <= x <= 1.0 for x in shape.color):
        problem = f"{part} has the invalid color {tuple(shape.color)}"
        raise ModelError("E-FILE-044", problem, "give color components from 0 to 1")


# Formats other than mechanism files ------------------------------------------------------------


def refusal(code: str, part: Named, problem: str, remedy: str, format: str = "") -> ModelError:
    """Return an error for a link, joint or other item that a format cannot represent."""
    problem = f"it {problem}, which {format or code.split('-')[1]} cannot represent"
    return ModelError(code, problem, remedy, part=part_of(part))


def check_writable(description: Description, format: str) -> list[str]:
    """Raise an error for features that a format cannot represent; return notes on omitted data."""
    if description.massless:
        raise refusal("E-FILE-031", description, "has no masses", "save the robot as .toml", format)
    for joint in description.joints:
        check_joint(joint, format)
    remedy = "save the robot as .toml or .xml"
    for rotor in description.rotors if format != "MJCF" else ():
        if rotor.armature or rotor.stiffness or rotor.damping:
            raise refusal("E-FILE-220", rotor, "is driven by several joints", remedy, format)
    for link in description.links if format != "MJCF" else ():
        if link.lifted:
            raise refusal("E-FILE-400", link, "has gravity compensation", remedy, format)
    if description.fluid is not None and format != "MJCF":
        raise refusal("E-FILE-401", description, "moves in a fluid", remedy, format)
    notes = []
    if format != "MJCF":
        left: dict[str, Sequence[object]] = {"keyframes": description.keyframes}
        if format != "URDF":
            left["actuators"] = description.actuators
        left["initial coordinates"] = [x for x in description.joints if any(x.start)]
        notes += [f"{format} does not store {what}; .toml does" for what, x in left.items() if x]
    if description.independent:
        choice = (
            f"the choice of {', '.join(map(repr, description.independent))} as "
            "independent coordinates"
        )
        notes.append(f"{format} does not store {choice}; .toml does")
    if any(shape.color and shape.role == "collision" for shape in description.shapes):
        notes.append(f"{format} does not store colors of collision shapes; .toml does")
    return notes


def check_joint(joint: JointData, format: str = "a file") -> None:
    """Raise an error for user-defined joint types and prescribed motions."""
    if joint.custom is not None:
        raise refusal(
            "E-FILE-032", joint, "has a user-defined type", "keep the robot in Python", format
        )
    if joint.motion is not None:
        remedy = (
            "save the robot without the prescribed motion, and apply it in Python with robot.drive"
        )
        raise refusal("E-FILE-033", joint, "has a prescribed motion", remedy, format)


def single_rest(joint: JointData, format: str) -> float:
    """Return the rest position of a joint's spring as a single number.

    For a joint with several coordinates, the rest position must be zero or the identity, and the
    result is 0.
    """
    if len(joint.rest) <= 1:
        return joint.rest[0] if joint.rest else 0.0
    if joint.rest in (_UNTURNED, (*_UNTURNED, 0.0, 0.0, 0.0)) or not any(joint.rest):
        return 0.0
    problem = "has several coordinates and a spring with a nonzero rest position"
    raise refusal("E-FILE-402", joint, problem, "save the robot as .toml", format)


_UNTURNED = (1.0, 0.0, 0.0, 0.0)


def lacking(joint: JointData) -> str:
    """Return a phrase about an unsupported joint, such as "is spherical"."""
    return f"is {'reversed ' if joint.reversed else ''}{joint.kind}"


def ball_limits(joints: Iterable[JointData]) -> list[str]:
    """Return a note if ball or free joints have limits, which the output file omits."""
    limited = [j.name for j in joints if "1" in j.traits.units and j.limits != Limits()]
    return [f"limits of ball and free joints are not written: {some(limited)}"] if limited else []
