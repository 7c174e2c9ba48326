"""Arms from the literature. Parameters and sources are in the .toml files of this package."""

import math
import tomllib
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np

from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform
from chasles.model import JOINTS, Description, ShapeData
from chasles.model.build import compose
from chasles.model.denavit_hartenberg import DHRow, dh_chain
from chasles.model.machine import KeyframeData
from chasles.robots._solids import MOTOR, SHELL, standing

_UP = Vector.of(0.0, 0.0, 1.0)


def puma560() -> Description:
    """Return the Unimation PUMA 560: six revolute joints, standard Denavit-Hartenberg frames.

    Returns
    -------
    robot : Robot
        The arm, nq = nv = 6. At q = 0 the upper arm points along x and the forearm points up.

    Notes
    -----
    Inertial parameters are from Armstrong, Khatib and Burdick (1986); frames and motors are from
    Corke and Armstrong-Helouvry (1994). The base frame is at the shoulder. Frame "tool", also named
    "dh6", is at the center of the wrist. Armature (rotor inertia), damping and friction of the
    motors are reflected through the gears.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.puma560()
    >>> robot.gravity_forces(robot.neutral()).round(3) + 0.0
    array([ 0.   , 37.484,  0.249,  0.   ,  0.   ,  0.   ])
    """
    return _read("puma560")


def stanford_arm() -> Description:
    """Return the Stanford (Scheinman) arm: R R P R R R, standard Denavit-Hartenberg frames.

    Returns
    -------
    robot : Robot
        The arm, nq = nv = 6. q[2] is the distance (m) from the shoulder to the wrist along the
        boom.

    Notes
    -----
    Frames are from Legnani et al. (1996), part II, section 4, and inertial parameters from Paul
    (1981). q[2] includes the constant offset d4 along the boom, so the boom coordinate of Legnani
    et al. is q[2] - d4. The base frame is at the shoulder, frame "dh6" at the wrist, and frame
    "tool" between the fingertips. In keyframe "home", the boom is horizontal.

    Examples
    --------
    >>> import chasles
    >>> chasles.robots.stanford_arm().joints
    ('joint1', 'joint2', 'joint3', 'joint4', 'joint5', 'joint6')
    """
    return _read("stanford_arm")


def microbot() -> Description:
    """Return the five-axis RRRRP arm of Mitra's paper on joint motion (docs/mitra.md).

    Returns
    -------
    robot : Robot
        The arm, nq = nv = 5. Frame "tool" is frame 6 in Mitra's paper, and frame "P" is at
        (0, 0, 64 mm) in frame "tool".

    Notes
    -----
    The arm is similar to Uicker's Microbot. In the Denavit-Hartenberg table of Mitra's paper, theta
    in the first four rows and s in the fifth row are values of the joint variables, not offsets.
    The examples in the paper use q = (30, 60, -30, 0 degrees, 0.097 m). The paper does not give
    masses and inertias, so plausible values are used.

    Examples
    --------
    >>> import chasles
    >>> chasles.robots.microbot().joints
    ('joint1', 'joint2', 'joint3', 'joint4', 'joint5')
    """
    return _read("microbot")


def _read(name: str) -> Description:
    """Return the arm defined in the data file `<name>.toml`; comments there explain the keys."""
    text = resources.files("chasles.robots").joinpath(f"{name}.toml").read_text("utf-8")
    data = tomllib.loads(text)
    rows = [_row(joint, data["inertia_about"]) for joint in data["joint"]]
    tips = {tip: Transform(Rotation(), Vector(tuple(p))) for tip, p in data["tips"].items()}
    arm = dh_chain(name, rows, data["convention"], tips=tips, notes=tuple(data["notes"]))
    frames = {frame.link: frame.pose for frame in reversed(arm.frames)}
    keys = tuple(
        KeyframeData(name, tuple(zip(places, zip(places.values()), strict=True)))
        for name, places in data.get("keyframe", {}).items()
    )
    shapes = tuple(_shape(row, frames) for row in data["shape"])
    return replace(arm, shapes=shapes, keyframes=keys)


def _shape(row: dict[str, Any], frames: dict[str, Transform]) -> ShapeData:
    """Create a box from two corners, or a cylinder or capsule from its end points.

    The points are given in the link's Denavit-Hartenberg frame.
    """
    kind, start, end = row["kind"], np.array(row["from"]), np.array(row["to"])
    span = end - start
    length = float(np.linalg.norm(span))
    size = tuple(map(float, np.abs(span))) if kind == "box" else (row["radius"], length)
    axis = _UP if kind == "box" else Vector(tuple(map(float, span / length)))
    pose = standing(axis, Vector(tuple(map(float, 0.5 * (start + end)))))
    placed = compose(pose, frames.get(row["link"], Transform.identity()))
    color = MOTOR if row.get("dark", False) else SHELL
    return ShapeData(row["link"], kind, size, placed, color=color)


def _row(joint: dict[str, Any], inertia_about: str) -> DHRow:
    gear = abs(joint.get("gear", 1.0))
    unit = math.radians if JOINTS[joint["kind"]].units == ("rad",) else float
    theta, alpha = math.radians(joint["theta"]), math.radians(joint["alpha"])
    same = {key: joint[key] for key in ("kind", "mass", "center", "inertia")}
    return DHRow(
        *(theta, joint["d"], joint["a"], alpha),
        **same,
        inertia_about=inertia_about,
        limits=[unit(x) for x in joint.get("limits", (-math.inf, math.inf))],
        effort=joint.get("effort", math.inf),
        armature=gear * gear * joint.get("rotor_inertia", 0.0),
        damping=gear * gear * joint.get("rotor_damping", 0.0),
        friction=gear * math.fsum(joint.get("rotor_friction", (0.0, 0.0))) / 2.0,
    )
