"""Serial arms of the data files beside this one."""

import math
import tomllib
from importlib import resources
from typing import Any

from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform
from chasles.model import JOINTS, Description
from chasles.model.denavit_hartenberg import DHRow, dh_chain


def read(name: str) -> Description:
    """The arm of the data file `<name>.toml` of this package, which says what its keys mean."""
    text = resources.files("chasles.robots").joinpath(f"{name}.toml").read_text("utf-8")
    data = tomllib.loads(text)
    rows = [_row(joint, data["inertia_about"]) for joint in data["joint"]]
    tips = {tip: Transform(Rotation(), Vector(tuple(p))) for tip, p in data["tips"].items()}
    return dh_chain(name, rows, data["convention"], tips=tips, notes=tuple(data["notes"]))


def _row(joint: dict[str, Any], inertia_about: str) -> DHRow:
    gear = abs(joint.get("gear", 1.0))
    unit = math.radians if JOINTS[joint["kind"]].units == ("rad",) else float
    return DHRow(
        math.radians(joint["theta"]),
        joint["d"],
        joint["a"],
        math.radians(joint["alpha"]),
        joint["kind"],
        mass=joint["mass"],
        center=joint["center"],
        inertia=joint["inertia"],
        inertia_about=inertia_about,
        limits=[unit(x) for x in joint.get("limits", (-math.inf, math.inf))],
        effort=joint.get("effort", math.inf),
        armature=gear * gear * joint.get("rotor_inertia", 0.0),
        damping=gear * gear * joint.get("rotor_damping", 0.0),
        friction=gear * math.fsum(joint.get("rotor_friction", (0.0, 0.0))) / 2.0,
    )
