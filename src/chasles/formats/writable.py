"""What no robot file can hold, whatever its format: found before anything is written."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import TypeVar

from chasles.errors import ModelError
from chasles.model import Description, JointData, Limits, LinkData, ShapeData
from chasles.model.dh_fields import LARGEST

Kind = TypeVar("Kind", bound=JointData)


def writable(source: Description) -> tuple[Description, list[str]]:
    """The mechanism without limits that are none; notes say which. An error names what is wrong."""
    for what, names in (
        ("robot", [source.name]),
        ("link", [link.name for link in source.links]),
        ("joint", [joint.name for joint in source.joints]),
        ("loop", [loop.name for loop in source.loops]),
        ("coupling", [data.name for data in source.couplings]),
        ("frame", [frame.name for frame in source.frames]),
    ):
        _check_names(what, names)
    for link in source.links:
        _check_inertia(link)
    for shape in source.shapes:
        _check_shape(shape)
    notes: list[str] = []
    joints = tuple(_bounded(joint, "joint", notes) for joint in source.joints)
    loops = tuple(_bounded(loop, "loop", notes) for loop in source.loops)
    return replace(source, joints=joints, loops=loops), notes


def _check_names(what: str, names: Iterable[str]) -> None:
    for name in names:
        if not name and what != "robot":
            raise ModelError("E-FILE-039", f"{what} {name!r} has no name", "give it one")
        try:
            name.encode()
        except UnicodeEncodeError:
            problem = f"{what} {name!r} has signs in its name that are no text"
            raise ModelError("E-FILE-040", problem, "give it another") from None


def _check_inertia(link: LinkData) -> None:
    """Files have centres of mass, so that a first moment needs a mass."""
    m, h, I = float(link.inertia.m), link.inertia.h, link.inertia.I
    center = [float(x) / m if m else float(x) for x in h]
    if not m and any(h):
        problem = f"link {link.name!r} has a first moment without mass"
        raise ModelError("E-FILE-041", problem, "give it a mass")
    if not all(abs(x) <= LARGEST for x in (m, *center, *h, *I)):  # nor is any of them NaN
        problem = f"link {link.name!r} has a mass, centre or inertia beyond {LARGEST:g}"
        raise ModelError("E-FILE-042", problem, "give true ones")


def _check_shape(shape: ShapeData) -> None:
    part = f"link {shape.link!r}: its {shape.kind}"
    if not all(map(math.isfinite, shape.size)) or (shape.kind != "mesh" and min(shape.size) <= 0.0):
        problem = f"{part} has size {tuple(shape.size)}"
        raise ModelError("E-FILE-043", problem, "give positive numbers")
    if shape.color is not None and not all(0.0 <= x <= 1.0 for x in shape.color):
        problem = f"{part} has color {tuple(shape.color)}"
        raise ModelError("E-FILE-044", problem, "give numbers from 0 to 1")


def _bounded(joint: Kind, what: str, notes: list[str]) -> Kind:
    """With no limit where there is a number that is none: beyond all, negative or not a number."""
    wrong = dict(_meaningless(joint.limits))
    if not wrong:
        return joint
    told = ", ".join(f"{bound} {getattr(joint.limits, bound):g}" for bound in wrong)
    notes.append(f"{what} {joint.name!r}: limits that are none are left out: {told}")
    return replace(joint, limits=replace(joint.limits, **wrong))


def _meaningless(limits: Limits) -> Iterator[tuple[str, float]]:
    """Bounds that are none, with the infinite ones that say so."""
    for bound in fields(Limits):
        x = getattr(limits, bound.name)
        negative = x < 0.0 and bound.name in ("velocity", "effort")
        if math.isnan(x) or negative or (math.isfinite(x) and abs(x) > LARGEST):
            yield bound.name, getattr(Limits(), bound.name)
