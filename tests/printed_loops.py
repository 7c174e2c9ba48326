"""A planar four-bar with tilted axes, written with few digits in every format that has loops.

The motion without tilt is known in closed form, computed here independently of the library.
"""

import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

import chasles
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import matrix_from_quaternion
from chasles.mathematics.spatial import Transform
from chasles.model import Description, JointData
from chasles.model.build import compose

Joint = TypeVar("Joint", bound=JointData)

GROUND, CRANK, COUPLER, ROCKER = 0.4, 0.1, 0.35, 0.3
MASSES = {"crank": 0.2, "coupler": 0.5, "rocker": 0.4}
GYRATION = 0.02
"""Radius of gyration of each bar about any axis through its center, in m."""

GRAVITY = np.array([0.0, 0.0, -9.81])
START = 0.7
"""Angle of the crank from the ground, in rad, at which all coordinates are zero."""


def _plane() -> np.ndarray:
    """Return two axes of the plane and its normal as columns (3, 3), with arbitrary directions."""
    rng = np.random.default_rng(7)
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return np.asarray(Q * np.linalg.det(Q))


PLANE = _plane()


# Closed form --------------------------------------------------------------------------------------


def angles(theta: float) -> np.ndarray:
    """Return the angles of crank, coupler and rocker from the ground, on one branch."""
    b = CRANK * np.exp(1j * theta)
    d = GROUND - b
    reach, toward = abs(d), np.angle(d)
    bend = np.arccos((reach**2 + COUPLER**2 - ROCKER**2) / (2.0 * reach * COUPLER))
    coupler = toward + bend
    rocker = np.angle(b + COUPLER * np.exp(1j * coupler) - GROUND)
    return np.array([theta, coupler, rocker])


def coordinates(y: float) -> np.ndarray:
    """Return q = (crank, coupler, rocker) after the crank has turned by y from the start."""
    change = np.unwrap(np.stack([angles(START), angles(START + y)]), axis=0)
    crank, coupler, rocker = change[1] - change[0]
    return np.array([crank, coupler - crank, rocker])


def centers(y: float) -> np.ndarray:
    """Return the centers of the three bars in the world frame, (3, 3)."""
    crank, coupler, rocker = np.exp(1j * angles(START + y))
    b = CRANK * crank
    points = (0.5 * b, b + 0.5 * COUPLER * coupler, GROUND + 0.5 * ROCKER * rocker)
    return np.array([[p.real, p.imag, 0.0] for p in points]) @ PLANE.T


def inertia(y: float, h: float = 1e-4) -> float:
    """Return J of the kinetic energy J yd^2 / 2, by finite differences of the closed form."""
    m = np.array(list(MASSES.values()))
    steps = (-2, -1, 1, 2)
    factors = np.array([1.0, -8.0, 8.0, -1.0]) / (12.0 * h)
    v = sum(f * centers(y + k * h) for f, k in zip(factors, steps, strict=True))
    first = angles(START + y)
    turns = [np.unwrap([first, angles(START + y + k * h)], axis=0)[1] for k in steps]
    w = factors @ np.array(turns)
    return float(m @ (np.sum(v * v, axis=1) + GYRATION**2 * w * w))


def potential(y: float) -> float:
    """Return the potential energy in J."""
    return float(-np.array(list(MASSES.values())) @ (centers(y) @ GRAVITY))


def acceleration(y: float, yd: float, tau: float, h: float = 1e-3) -> float:
    """Return ydd for a torque at the crank, from Lagrange's equation."""
    steps, factors = (-2, -1, 1, 2), np.array([1.0, -8.0, 8.0, -1.0]) / (12.0 * h)
    dJ, dV = (
        sum(f * of(y + k * h) for f, k in zip(factors, steps, strict=True))
        for of in (inertia, potential)
    )
    return float((tau - dV - 0.5 * dJ * yd * yd) / inertia(y))


# Files --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FourBar:
    """Parameters of a four-bar: tilt of its axes (rad) and number of digits in its file."""

    tilt: float
    digits: int = 17
    longer: float = 0.0
    """Length added to the rocker, but not to the other bars, in m."""

    @property
    def axes(self) -> np.ndarray:
        """Axes of crank, coupler, rocker and pin, (4, 3)."""
        rng = np.random.default_rng(3)
        lean = rng.normal(size=(4, 2))
        lean /= np.linalg.norm(lean, axis=1, keepdims=True)
        return np.column_stack([self.tilt * lean, np.ones(4)]) @ PLANE.T

    @property
    def points(self) -> np.ndarray:
        """Positions of the four pins A, B, C and D, (4, 3); A and D are on the ground."""
        crank, coupler, _ = np.exp(1j * angles(START))
        b = CRANK * crank
        points = (0.0, b, b + COUPLER * coupler, GROUND)
        return np.array([[np.real(p), np.imag(p), 0.0] for p in points]) @ PLANE.T

    def word(self, numbers: np.ndarray) -> str:
        return " ".join(f"{x:.{self.digits}g}" for x in np.atleast_1d(numbers))


def mjcf(bar: FourBar, kind: str) -> str:
    """Return an MJCF file.

    kind "connect" closes the loop by one point and "axis" by two points, given by sites. "weld"
    welds the coupler to a massless body that is pinned to the rocker.
    """
    (a, b, c, d), axes, w = bar.points, bar.axes, bar.word
    far = 0.1 * axes[3]
    out = (c - d) * (1.0 + bar.longer / ROCKER)

    def body(name: str, at: np.ndarray, axis: np.ndarray, end: np.ndarray, inner: str) -> str:
        moment = w(np.full(3, MASSES[name] * GYRATION**2))
        return (
            f'<body name="{name}" pos="{w(at)}"><joint name="{name}" axis="{w(axis)}"/>'
            f'<inertial pos="{w(0.5 * end)}" mass="{MASSES[name]}" diaginertia="{moment}"/>'
            f"{inner}</body>"
        )

    tip, top = (
        f'<site name="{x}1" pos="{w(p)}"/><site name="{x}2" pos="{w(p + far)}"/>'
        for x, p in (("c", c - b), ("r", out))
    )
    light = '<inertial pos="0 0 0" mass="1e-9" diaginertia="1e-12 1e-12 1e-12"/>'
    pin = f'<body name="pin" pos="{w(out)}"><joint name="pin" axis="{w(axes[3])}"/>{light}</body>'
    equality = {
        "connect": f'<connect name="loop" body1="coupler" body2="rocker" anchor="{w(c - b)}"/>',
        "axis": '<connect name="loop" site1="c1" site2="r1"/>'
        '<connect name="loop2" site1="c2" site2="r2"/>',
        "weld": '<weld name="loop" body1="coupler" body2="pin"/>',
    }[kind]
    coupler = body("coupler", b - a, axes[1], c - b, tip)
    rocker = body("rocker", d, axes[2], c - d, top + (pin if kind == "weld" else ""))
    return (
        '<mujoco model="bar"><compiler angle="radian" boundmass="0" boundinertia="0"/>'
        f"<worldbody>{body('crank', a, axes[0], b - a, coupler)}{rocker}</worldbody>"
        f"<equality>{equality}</equality></mujoco>"
    )


def sdf(bar: FourBar) -> str:
    """Return an SDF file; a fourth revolute joint, the pin, closes the loop.

    The origin of each link is at its first pin, and all frames are parallel to the world frame.
    """
    (a, b, c, d), axes, w = bar.points, bar.axes, bar.word
    ends = {"crank": (a, b), "coupler": (b, c), "rocker": (d, c)}
    text = ""
    for name, (p, end) in ends.items():
        moment = w(np.array([MASSES[name] * GYRATION**2]))
        text += (
            f'<link name="{name}_link"><pose>{w(p)} 0 0 0</pose><inertial>'
            f"<pose>{w(0.5 * (end - p))} 0 0 0</pose><mass>{MASSES[name]}</mass>"
            f"<inertia><ixx>{moment}</ixx><iyy>{moment}</iyy><izz>{moment}</izz></inertia></inertial></link>"
        )
    joints = (
        ("crank", "world", "crank_link", 0),
        ("coupler", "crank_link", "coupler_link", 1),
        ("rocker", "world", "rocker_link", 2),
        ("loop", "coupler_link", "rocker_link", 3),
    )
    for name, parent, child, k in joints:
        at = w(c - d) if name == "loop" else "0 0 0"
        text += (
            f'<joint name="{name}" type="revolute"><pose>{at} 0 0 0</pose><parent>{parent}</parent>'
            f"<child>{child}</child><axis><xyz>{w(axes[k])}</xyz></axis></joint>"
        )
    return f'<sdf version="1.8"><model name="bar">{text}</model></sdf>'


def toml(bar: FourBar) -> str:
    """Return a TOML file; the pin is a revolute loop joint with frames on coupler and rocker."""
    (a, b, c, d), axes = bar.points, bar.axes
    out = (c - d) * (1.0 + bar.longer / ROCKER)

    def w(numbers: np.ndarray) -> str:
        return f"[{bar.word(numbers).replace(' ', ', ')}]"

    text = 'format = "mechanism"\nname = "bar"\n'
    for name, end in (("crank", b - a), ("coupler", c - b), ("rocker", c - d)):
        moment = w(np.full(3, MASSES[name] * GYRATION**2))
        text += f'[[link]]\nname = "{name}"\nmass = {MASSES[name]}\n'
        text += f"center = {w(0.5 * end)}\ninertia = {moment}\n"
    rows = (("crank", "", a, 0), ("coupler", "crank", b - a, 1), ("rocker", "", d, 2))
    for name, parent, at, k in rows:
        text += f'[[joint]]\nname = "{name}"\nkind = "revolute"\nchild = "{name}"\n'
        text += f'parent = "{parent}"\n' if parent else ""
        text += f"position = {w(at)}\naxis = {w(axes[k])}\n"
    text += '[[loop]]\nname = "loop"\nkind = "revolute"\nparent = "coupler"\nchild = "rocker"\n'
    return text + f"position = {w(c - b)}\nchild_position = {w(out)}\naxis = {w(axes[3])}\n"


FORMATS = {
    "connect.xml": partial(mjcf, kind="connect"),
    "axis.xml": partial(mjcf, kind="axis"),
    "weld.xml": partial(mjcf, kind="weld"),
    "bar.sdf": sdf,
    "bar.toml": toml,
}
"""Functions that return the content of a file, by file name."""


def load(folder: Path, bar: FourBar, file: str, **options: object) -> chasles.Robot:
    """Write and load a file."""
    path = folder / file
    path.write_text(FORMATS[file](bar))
    robot: chasles.Robot = chasles.load(path, **options)  # type: ignore[arg-type]
    return robot


def rounded(text: str, digits: int) -> str:
    """Return a file with all decimal numbers rounded to `digits` significant digits."""
    head, mark, body = text.rpartition("?>")  # leave the version in the XML declaration
    pattern = r"(?<![\w.])-?\d+\.\d+(?:e[+-]?\d+)?(?![\w.])"
    return head + mark + re.sub(pattern, lambda found: f"{float(found.group()):.{digits}g}", body)


def shaken(source: Description, size: float, seed: int = 0) -> chasles.Robot:
    """Return a mechanism with joints displaced at random by at most `size`, in rad and m."""
    rng = np.random.default_rng(seed)

    def moved(joint: Joint) -> Joint:
        wx, wy, wz, *r = (size * rng.uniform(-1.0, 1.0, 6)).tolist()
        turn = matrix_from_quaternion(Vector.of(1.0, 0.5 * wx, 0.5 * wy, 0.5 * wz))
        return replace(joint, pose=compose(Transform.from_pose(turn, Vector(tuple(r))), joint.pose))

    joints, loops = (tuple(map(moved, row)) for row in (source.joints, source.loops))
    return chasles.Robot(replace(source, joints=joints, loops=loops))
