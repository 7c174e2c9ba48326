"""Legged robots with a floating base, designed for chasles: x forward, y left, z up.

Limbs are defined by tables for the left side, and the right side is the mirror image. Links are
uniform solids of plausible size and mass, with visual shapes. A dark cylinder shows the motor of
each joint. Trunk and feet also have collision shapes. At q = 0 all limbs hang straight down; in the
keyframe "standing", the feet touch the plane z = 0 below the hips.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import Description, FrameData, JointData, Limits, LinkData, ShapeData
from chasles.model.machine import KeyframeData
from chasles.robots import _solids
from chasles.robots._solids import MOTOR, ORIGIN, SHELL, mirrored, standing

_at = Vector.of
_X, _Y, _Z = _at(1.0, 0.0, 0.0), _at(0.0, 1.0, 0.0), _at(0.0, 0.0, 1.0)


class Solid(NamedTuple):
    """Inertia, shape kind, sizes (m), axis (0, 1 or 2) and center of a uniform solid."""

    inertia: RigidInertia
    kind: str
    size: tuple[float, ...]
    along: int
    center: Vector

    def mirrored(self) -> "Solid":
        """Return the mirror image in the plane y = 0."""
        x, y, z = self.center
        return self._replace(inertia=mirrored(self.inertia), center=_at(x, -y, z))

    def shape(self, link: str, color: tuple[float, float, float, float] = SHELL) -> ShapeData:
        """Return the visual shape of a link made of this solid."""
        pose = standing((_X, _Y, _Z)[self.along], self.center)
        return ShapeData(link, self.kind, self.size, pose, color=color)


class Part(NamedTuple):
    """A revolute joint and its child link, which is a uniform solid.

    `at` is the position of the joint on the parent link. Limits are in degrees and N m.
    """

    joint: str
    link: str
    at: Vector
    axis: Vector
    lower: float
    upper: float
    effort: float
    solid: Solid


def box(mass: float, size: tuple[float, float, float], center: Vector = ORIGIN) -> Solid:
    """Return a box; `size` contains the edge lengths (m) along x, y and z."""
    return Solid(_solids.box(mass, size, center), "box", size, 2, center)


def sphere(mass: float, radius: float, center: Vector = ORIGIN) -> Solid:
    """Return a sphere."""
    return Solid(_solids.sphere(mass, radius, center), "sphere", (radius,), 2, center)


def cylinder(
    mass: float, radius: float, length: float, along: int, center: Vector = ORIGIN
) -> Solid:
    """Return a circular cylinder whose axis has the index `along` (0: x, 1: y, 2: z)."""
    inertia = _solids.cylinder(mass, radius, length, along, center)
    return Solid(inertia, "cylinder", (radius, length), along, center)


def bone(mass: float, radius: float, length: float, depth: float) -> Solid:
    """Return a capsule along z, with its center `depth` below the joint."""
    center = _Z * -depth
    inertia = _solids.capsule(mass, radius, length, 2, center)
    return Solid(inertia, "capsule", (radius, length), 2, center)


# fmt: off
_LEG_OF_QUADRUPED = (
    Part("abduction", "hip", _at(0.19, 0.06, 0.0), _X, -40, 60, 24, cylinder(1.0, 0.045, 0.06, 1, _Y * 0.04)),  # noqa: E501
    Part("hip", "thigh", _Y * 0.085, _Y, -90, 200, 24, bone(1.1, 0.03, 0.15, 0.08)),
    Part("knee", "shank", _Z * -0.21, _Y, -155, -45, 36, bone(0.25, 0.012, 0.18, 0.1)),
)
_TRUNK = (
    Part("waist_yaw", "waist", _Z * 0.1, _Z, -60, 60, 150, cylinder(2.0, 0.07, 0.08, 2, _Z * 0.04)),
    Part("waist_pitch", "chest", _Z * 0.08, _Y, -20, 60, 200, box(17.0, (0.2, 0.32, 0.42), _Z * 0.24)),  # noqa: E501
)
_NECK = (
    Part("neck_yaw", "neck", _Z * 0.46, _Z, -80, 80, 20, cylinder(0.6, 0.04, 0.08, 2, _Z * 0.04)),
    Part("neck_pitch", "head", _Z * 0.08, _Y, -40, 40, 20, sphere(3.6, 0.11, _Z * 0.1)),
)
_LEG = (
    Part("hip_yaw", "hip", _at(0.0, 0.1, -0.09), _Z, -45, 45, 120, cylinder(1.2, 0.05, 0.08, 2)),
    Part("hip_roll", "groin", ORIGIN, _X, -20, 45, 180, cylinder(1.2, 0.05, 0.08, 0)),
    Part("hip_pitch", "thigh", ORIGIN, _Y, -120, 40, 220, bone(5.5, 0.065, 0.3, 0.18)),
    Part("knee", "shank", _Z * -0.38, _Y, 0, 150, 220, bone(3.0, 0.05, 0.3, 0.17)),
    Part("ankle_pitch", "ankle", _Z * -0.38, _Y, -70, 40, 120, cylinder(0.4, 0.03, 0.05, 1)),
    Part("ankle_roll", "foot", ORIGIN, _X, -25, 25, 60, box(1.0, (0.24, 0.1, 0.04), _at(0.04, 0.0, -0.06))),  # noqa: E501
)
_ARM = (
    Part("shoulder_pitch", "clavicle", _at(0.0, 0.2, 0.4), _Y, -180, 70, 80, cylinder(0.9, 0.045, 0.09, 1, _Y * 0.03)),  # noqa: E501
    Part("shoulder_roll", "shoulder", _Y * 0.05, _X, -20, 170, 80, cylinder(0.8, 0.045, 0.08, 2)),
    Part("shoulder_yaw", "upper_arm", _Z * -0.08, _Z, -90, 90, 60, bone(1.4, 0.045, 0.16, 0.1)),
    Part("elbow", "elbow", _Z * -0.2, _Y, -140, 0, 60, cylinder(0.5, 0.04, 0.06, 1)),
    Part("wrist_yaw", "forearm", _Z * -0.05, _Z, -90, 90, 30, bone(0.9, 0.035, 0.14, 0.09)),
    Part("wrist_roll", "wrist", _Z * -0.2, _X, -45, 45, 15, cylinder(0.2, 0.025, 0.04, 0)),
    Part("wrist_pitch", "palm", ORIGIN, _Y, -60, 60, 15, box(0.5, (0.04, 0.08, 0.16), _Z * -0.09)),
)
# fmt: on


def quadruped() -> Description:
    """Return an 18.6 kg quadruped with a floating base and four legs with three joints each.

    Returns
    -------
    robot : Robot
        The robot, nq = 19, nv = 18.

    Notes
    -----
    Each leg has the joints abduction (x axis), hip (y) and knee (y), in this order from the trunk.
    The legs are ordered front left, front right, rear left, rear right. The feet
    (`front_left_foot`, ...) are links fixed to the shanks. The trunk and the feet have collision
    shapes. In the keyframe "standing", the feet touch the plane z = 0. The knee limits exclude the
    neutral position.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.quadruped()
    >>> robot.nq, robot.nv
    (19, 18)
    >>> print(robot.keyframes["standing"].q[6].round(3))  # height of the base (m)
    0.367
    """
    trunk, toe = box(9.0, (0.40, 0.20, 0.12)), sphere(0.06, 0.02)
    links, shapes = [LinkData("trunk", trunk.inertia)], [trunk.shape("trunk")]
    joints = [JointData("floating_base", "free", None, "trunk")]
    feet, (first, *others) = list[str](), _LEG_OF_QUADRUPED
    for end, sign in (("front_", 1.0), ("rear_", -1.0)):
        x, y, z = first.at
        leg = [first._replace(at=_at(sign * x, y, z)), *others]
        for side in ("left_", "right_"):
            limb = _limb(end + side, "trunk", leg, right=side == "right_")
            shank, foot, ankle = (f"{end}{side}{part}" for part in ("shank", "foot", "ankle"))
            below = Transform(Rotation(), _Z * -0.21)
            links += [*limb.links, LinkData(foot, toe.inertia)]
            joints += [*limb.joints, JointData(ankle, "fixed", shank, foot, below)]
            shapes += [*limb.shapes, toe.shape(foot)]
            feet.append(foot)
    shapes += _touching(shapes, ["trunk", *feet])
    bend, (radius,) = 0.6, toe.size
    height = 0.42 * math.cos(bend) + radius  # the feet are below the hips
    key = _standing(joints, height, {"hip": bend, "knee": -2.0 * bend})
    return Description(
        "quadruped", tuple(links), tuple(joints), shapes=tuple(shapes), keyframes=(key,)
    )


def humanoid() -> Description:
    """Return a humanoid (67.2 kg, 1.86 m) with a floating base and thirty revolute joints.

    Returns
    -------
    robot : Robot
        The robot, nq = 37, nv = 36.

    Notes
    -----
    The order of the joints is waist (yaw, pitch), neck (yaw, pitch), left leg, right leg, left arm,
    right arm. Each leg has six joints (hip yaw, roll, pitch; knee; ankle pitch, roll). Each arm has
    seven joints (shoulder pitch, roll, yaw; elbow; wrist yaw, roll, pitch). Frames `left_sole`,
    `right_sole`, `left_hand`, `right_hand` and `eyes` are for contact, grasping and gaze. Pelvis,
    chest, head, hands and feet have collision shapes and can touch the environment. The feet can
    also touch each other; all other contacts between links are excluded. In the keyframe
    "standing", the soles touch the plane z = 0 and the knees are bent.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.humanoid()
    >>> robot.nq, robot.nv
    (37, 36)
    """
    pelvis = box(9.0, (0.18, 0.26, 0.16))
    links, shapes = [LinkData("pelvis", pelvis.inertia)], [pelvis.shape("pelvis")]
    joints = [JointData("floating_base", "free", None, "pelvis")]
    limbs = [_limb("", "pelvis", _TRUNK), _limb("", "chest", _NECK)]
    for root, parts in (("pelvis", _LEG), ("chest", _ARM)):
        limbs += [_limb("left_", root, parts), _limb("right_", root, parts, right=True)]
    for limb in limbs:
        links += limb.links
        joints += limb.joints
        shapes += limb.shapes
    frames = [_frame("eyes", "head", _at(0.09, 0.0, 0.12))]
    for side in ("left_", "right_"):
        frames.append(_frame(f"{side}sole", f"{side}foot", _Z * -0.08))
        frames.append(_frame(f"{side}hand", f"{side}palm", _Z * -0.1))
    feet = ("left_foot", "right_foot")
    touching = ("pelvis", "chest", "head", "left_palm", "right_palm", *feet)
    shapes += _touching(shapes, touching)
    bend = 0.3
    height = 0.76 * math.cos(bend) + 0.17  # the ankles are below the hips
    angles = {"hip_pitch": -bend, "knee": 2.0 * bend, "ankle_pitch": -bend}
    return Description(
        "humanoid",
        tuple(links),
        tuple(joints),
        tuple(frames),
        shapes=tuple(shapes),
        excluded=tuple(pair for pair in combinations(touching, 2) if pair != feet),
        keyframes=(_standing(joints, height, angles),),
    )


def _standing(
    joints: Sequence[JointData], height: float, angles: Mapping[str, float]
) -> KeyframeData:
    """Return the keyframe "standing" for a base height (m) and joint angles (rad) of each leg."""
    legs = (
        (joint.name, (angle,))
        for joint in joints
        for name, angle in angles.items()
        if joint.name.endswith(f"_{name}")
    )
    base = ("floating_base", (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, height))
    return KeyframeData("standing", (base, *legs))


def _touching(shapes: Sequence[ShapeData], links: Collection[str]) -> list[ShapeData]:
    """Return collision shapes for the given links: their visual shapes, except those of motors."""
    solid = (shape for shape in shapes if shape.link in links and shape.color == SHELL)
    return [replace(shape, color=None, role="collision") for shape in solid]


class Limb(NamedTuple):
    """The links, joints and visual shapes of a limb."""

    links: list[LinkData]
    joints: list[JointData]
    shapes: list[ShapeData]


def _limb(prefix: str, root: str, parts: Sequence[Part], *, right: bool = False) -> Limb:
    """Return a limb. A right limb is mirrored in the plane y = 0.

    Axes are not mirrored, so joint limits about x and z are reversed. Joint armature, damping and
    friction are proportional to the torque limit.
    """
    links, joints, shapes = limb = Limb([], [], [])
    for part in parts:
        at, solid, link = part.at, part.solid, prefix + part.link
        lower, upper = math.radians(part.lower), math.radians(part.upper)
        if right:
            at, solid = _at(at[0], -at[1], at[2]), solid.mirrored()
            lower, upper = (lower, upper) if part.axis == _Y else (-upper, -lower)
        ends = links[-1].name if links else root, link, Transform(Rotation(), at)
        torque = part.effort
        limits = Limits(lower, upper, effort=torque)
        joint = JointData(prefix + part.joint, "revolute", *ends, part.axis, limits=limits)
        joint = replace(joint, armature=2e-4 * torque, damping=2e-3 * torque)
        joints.append(replace(joint, friction=5e-3 * torque))
        links.append(LinkData(link, solid.inertia))
        shapes += _drawn(link, part, solid)
    return limb


def _drawn(link: str, part: Part, solid: Solid) -> list[ShapeData]:
    """Return the visual shapes of a link: its solid, and a cylinder for its motor.

    The motor's volume is proportional to its torque limit. If the link is a capsule along the joint
    axis, the motor is large enough to enclose it. A cylindrical link smaller than the motor has the
    motor's color, so that coincident surfaces have the same color.
    """
    radius = 0.0115 * part.effort ** (1.0 / 3.0)
    if solid.kind == "capsule" and part.axis == _Z:
        radius = max(radius, 1.15 * solid.size[0])
    housing = solid.kind == "cylinder" and solid.size[0] < radius
    pose = standing(part.axis, ORIGIN)
    motor = ShapeData(link, "cylinder", (radius, 1.8 * radius), pose, color=MOTOR)
    return [solid.shape(link, MOTOR if housing else SHELL), motor]


def _frame(name: str, link: str, at: Vector) -> FrameData:
    return FrameData(name, link, Transform(Rotation(), at))
