"""Serial arms of the data files beside this one."""

import math
import tomllib
from importlib import resources
from typing import Any

from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.model import Description, Limits
from chasles.model.denavit_hartenberg import Row, dh_chain


def read(name: str) -> Description:
    """The arm of the data file `<name>.toml` of this package, which says what its keys mean."""
    text = resources.files("chasles.robots").joinpath(f"{name}.toml").read_text("utf-8")
    data = tomllib.loads(text)
    rows = [_row(joint, data["inertia_about"]) for joint in data["joint"]]
    tips = {tip: Vector(tuple(point)) for tip, point in data["tips"].items()}
    return dh_chain(name, rows, data["convention"], tips=tips, notes=tuple(data["notes"]))


def _row(joint: dict[str, Any], inertia_about: str) -> Row:
    gear = abs(joint.get("gear", 1.0))
    return Row(
        joint["kind"],
        joint["a"],
        math.radians(joint["alpha"]),
        joint["d"],
        math.radians(joint["theta"]),
        _inertia(joint, inertia_about),
        _limits(joint),
        armature=gear * gear * joint.get("rotor_inertia", 0.0),
        damping=gear * gear * joint.get("rotor_damping", 0.0),
        friction=gear * math.fsum(joint.get("rotor_friction", (0.0, 0.0))) / 2.0,
    )


def _inertia(joint: dict[str, Any], inertia_about: str) -> RigidInertia:
    m, c, I = joint["mass"], Vector(tuple(joint["center"])), Symmetric(*joint["inertia"])
    return (
        RigidInertia(m, c * m, I) if inertia_about == "frame" else RigidInertia.from_center(m, c, I)
    )


def _limits(joint: dict[str, Any]) -> Limits:
    unit = math.radians if joint["kind"] == "revolute" else float
    lower, upper = map(unit, joint.get("limits", (-math.inf, math.inf)))
    return Limits(lower, upper, effort=joint.get("effort", math.inf))
