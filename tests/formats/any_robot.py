"""Random mechanisms that cover everything a description can contain.

A seed chooses the `FEATURES` of a mechanism, so that every format can represent some mechanisms.
"""

import math
import random
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from support import direct

import chasles
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import matrix_from_rpy, matrix_from_vector
from chasles.mathematics.spatial import RigidInertia, Transform, inverted
from chasles.model import (
    JOINTS,
    ROLES,
    SHAPES,
    CouplingData,
    Description,
    FrameData,
    JointData,
    Limits,
    LinkData,
    LoopData,
    Mimic,
    RotorData,
    ShapeData,
    coupling,
    gear,
)
from chasles.model.build import _make_joint, compose, natural_axes
from chasles.model.description import freedom_names
from chasles.model.joints import LOOP_JOINTS
from chasles.robots._solids import points

FEATURES = (
    *("types", "several", "screws", "balls", "planar", "odd types", "reversed", "offsets"),
    *("floating", "free elsewhere", "on the world", "fixed links", "massless", "without mass"),
    *("limits", "half limits", "resistance", "armature", "rotors", "mimic"),
    *("loops", "loops of hinges", "loops of any type", "closed elsewhere", "independent"),
    *("gears", "differentials", "polynomials", "products", "frames", "shapes", "names", "gravity"),
)
"""Features of a mechanism in addition to revolute, prismatic and fixed joints in a tree."""

KINDS = {
    "several": ("universal", "cylindrical", "yaw_pitch_roll"),
    "screws": ("helical", "rack_and_pinion"),
    "balls": ("spherical",),
    "planar": ("planar",),
    "free elsewhere": ("free",),
    "odd types": ("sphere_in_cylinder", "rolling"),
}
"""Joint types that features add."""

ODD = (
    *(
        "a b",
        " lead",
        "trail ",
        'say "x"',
        "it's",
        "<a&b>",
        "]]>",
        "é→ß",
        "机器人",
        "π\u0301",
        "🤖",
    ),
    *("tab\tx", "line\nx", "x\r", "a::b", "__x__", "world", "a.b", "a[0]", "a[1]", "x/y", "#"),
    *("=", "back\\slash", "{}", "%s", "&amp;", "\x7f", "\u00a0", "joint", "link", "0", "-1", "nan"),
    *("a.fixed", "root_joint", "a.slide", "__model__", "\u2028", "true", "a.axis"),
)
"""Names with special characters, or with a special meaning in some format."""


class Sample(NamedTuple):
    """Random mechanism; `closed` is a position at which its loops and couplings are satisfied."""

    source: Description
    closed: np.ndarray
    features: frozenset[str]


def any_robot(seed: int, features: Collection[str] | None = None) -> Sample:
    """Return a random mechanism with the given features, or with features chosen by the seed."""
    rng = random.Random(seed)
    while True:
        chance = rng.choice((0.08, 0.2, 0.4, 0.8))
        chosen = [x for x in FEATURES if rng.random() < chance]
        maker = _Maker(rng, frozenset(chosen if features is None else features))
        maker.tree(rng.randint(2, 6))
        sample = maker.finished()
        try:
            chasles.Robot(sample.source)
        except ValueError:  # a joint moves no inertia, or coordinates are not independent
            continue
        return sample


@dataclass
class _Maker:
    """Builder of a random mechanism."""

    rng: random.Random
    has: frozenset[str]
    links: list[LinkData] = field(default_factory=list)
    joints: list[JointData] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def tree(self, count: int) -> None:
        """Add the links and joints of a tree."""
        rng = self.rng
        if "on the world" not in self.has and "floating" not in self.has:
            self.links.append(LinkData(self.name("base"), self.inertia()))
        for k in range(count):
            kind = self.kind()
            if k == 0 and "floating" in self.has:
                kind = "free"
            parent = rng.choice(self.links[-3:]).name if self.links else None
            if "on the world" in self.has and rng.random() < 0.3 and k:
                parent = None
            self.grow(kind, parent)
            if "fixed links" in self.has and rng.random() < 0.5:
                self.grow("fixed", self.links[-1].name)
                if rng.random() < 0.5:
                    self.links[-1] = replace(self.links[-1], inertia=RigidInertia.zero())
        if "massless" in self.has or "without mass" in self.has:
            self.empty_links()

    def grow(self, kind: str, parent: str | None) -> None:
        """Add a joint and its child link."""
        self.links.append(LinkData(self.name(f"link{len(self.links)}"), self.inertia()))
        joint = self.joint(JointData, self.name(f"joint{len(self.joints)}"), kind, parent)
        at_origin = parent is None and kind == "free" and "free elsewhere" not in self.has
        if at_origin:
            joint = replace(joint, pose=Transform.identity(), child_pose=Transform.identity())
        leaders = [j.name for j in self.joints if j.kind in JOINTS and JOINTS[j.kind].nv == 1]
        turns = kind in JOINTS and JOINTS[kind].nv == 1
        if "mimic" in self.has and turns and leaders and self.rng.random() < 0.5:
            ratio, offset = self.rng.uniform(-2.0, 2.0), self.rng.choice((0.0, 0.3))
            joint = replace(joint, mimic=Mimic(self.rng.choice(leaders), ratio, offset))
        self.joints.append(joint)

    def empty_links(self) -> None:
        """Remove the mass of some links that carry another link on a moving joint."""
        carried = {joint.parent: joint for joint in self.joints if joint.kind != "fixed"}
        for k, link in enumerate(self.links):
            if link.name in carried and self.rng.random() < 0.5:
                meant = "massless" in self.has
                self.links[k] = replace(link, inertia=RigidInertia.zero(), massless=meant)

    def kind(self) -> str:
        rng = self.rng
        kinds = [kind for feature, more in KINDS.items() if feature in self.has for kind in more]
        plain = ("revolute", "continuous", "prismatic")
        return rng.choice(kinds) if kinds and rng.random() < 0.5 else rng.choice(plain)

    def joint(self, made: type[JointData], name: str, kind: str, parent: str | None) -> JointData:
        """Return a joint to the last link, with random parameters for its type."""
        rng, has = self.rng, self.has
        joint = made(name, kind, parent, self.links[-1].name, self.pose(), self.axis())
        if kind in ("universal", "rack_and_pinion") and rng.random() < 0.5:
            other = joint.axis.cross(self.axis())
            size = math.sqrt(other.dot(other))
            if size > 0.1:
                joint = replace(joint, second_axis=other * (1.0 / size))
        if kind == "helical":
            joint = replace(joint, pitch=rng.uniform(0.02, 0.2) * rng.choice((-1, 1)))
        if kind in JOINTS and "radius" in JOINTS[kind].data:
            joint = replace(joint, radius=rng.uniform(0.05, 0.2))
        if "offsets" in has and rng.random() < 0.6:
            joint = replace(joint, child_pose=self.pose())
        if "reversed" in has and kind != "fixed" and rng.random() < 0.4:
            joint = replace(joint, reversed=True)
        if kind == "fixed" or made is LoopData:
            return joint
        if "limits" in has and rng.random() < 0.7:
            lower, upper = rng.uniform(-2, -1), rng.uniform(1, 2)
            bounds = [rng.choice((lower, -1.5708)), upper, rng.choice((3.0, 6.2832)), 87.0]
            if "half limits" in has:
                none = (-math.inf, math.inf, math.inf, math.inf)
                bounds = [y if rng.random() < 0.5 else x for x, y in zip(bounds, none, strict=True)]
            joint = replace(joint, limits=Limits(*bounds))
        if "resistance" in has and rng.random() < 0.6:
            joint = replace(joint, damping=rng.uniform(0, 1), friction=rng.choice((0.0, 0.3)))
        if "armature" in has and rng.random() < 0.6:
            joint = replace(joint, armature=rng.uniform(0.01, 0.1))
        return joint

    def finished(self) -> Sample:
        """Return the mechanism, with loops and couplings that are satisfied at some position."""
        rng, has = self.rng, self.has
        source = Description(self.name("robot"), tuple(self.links), tuple(self.joints))
        if "gravity" in has:
            source = replace(source, gravity=Vector.of(*(rng.uniform(-9, 9) for _ in range(3))))
        bare = chasles.Robot(replace(source, massless=True))
        at = bare.neutral()
        if "closed elsewhere" in has:
            at = direct(
                bare.model, "integrate", at, [rng.uniform(-0.9, 0.9) for _ in range(bare.nv)]
            )
        wanted: dict[str, tuple[str, ...]] = {
            "loops": ("spherical", "fixed"),
            "loops of hinges": ("revolute", "continuous"),
        }
        wanted["loops of any type"] = tuple(LOOP_JOINTS)
        kinds = [kind for feature, more in wanted.items() if feature in has for kind in more]
        loops = [self.loop(bare, at, rng.choice(kinds)) for _ in range(rng.randint(1, 2)) if kinds]
        source = replace(source, loops=tuple(x for x in loops if x is not None))
        source = replace(source, couplings=tuple(self.couplings(bare, at)))
        source = replace(source, rotors=tuple(self.rotors(bare)))
        if "frames" in has:
            frames = [
                FrameData(self.name(f"frame{k}"), rng.choice(self.links).name, self.pose())
                for k in range(rng.randint(1, 3))
            ]
            source = replace(source, frames=tuple(frames))
        if "shapes" in has:
            source = replace(source, shapes=tuple(self.shape() for _ in range(rng.randint(1, 6))))
        if "independent" in has and (source.loops or source.couplings):
            name = rng.choice(bare.joints)
            count = JOINTS[bare.joint(name).kind].nv
            source = replace(source, independent=freedom_names(name, count))
        return Sample(source, at, has)

    def loop(self, robot: chasles.Robot, at: np.ndarray, kind: str) -> LoopData | None:
        """Return a loop joint between two random links that is closed at a position."""
        rng = self.rng
        ends = [link.name for link in self.links]
        child = rng.choice(ends[1:])
        parent = rng.choice([end for end in [*ends, None] if end != child])
        data = self.joint(LoopData, self.name("loop"), kind, parent)
        assert isinstance(data, LoopData)
        data = replace(data, child=child, parent=parent)
        joint = _make_joint(data, Transform.identity())
        q = joint.neutral()
        if "closed elsewhere" in self.has:
            q = joint.integrate(q, Vector(tuple(rng.uniform(-0.7, 0.7) for _ in range(joint.nv))))
        E = natural_axes(data)
        turned = Transform.from_pose(E.T, Vector.zero())
        moved = compose(inverted(turned), compose(joint.motion(q), turned))
        first = compose(data.pose, _placed(robot, at, parent))
        second = compose(moved, first)
        return replace(data, child_pose=compose(second, inverted(_placed(robot, at, child))))

    def rotors(self, robot: chasles.Robot) -> list[RotorData]:
        """Return a rotor driven by up to three coordinates, or an empty list."""
        names = [
            freedom
            for body in robot.model.bodies
            for freedom in freedom_names(body.data.name, body.joint.nv)
        ]
        if "rotors" not in self.has or not names:
            return []
        chosen = tuple(self.rng.sample(names, min(len(names), 3)))
        ratios = tuple(self.rng.uniform(-2, 2) for _ in chosen)
        return [RotorData(self.name("rotor"), chosen, ratios, self.rng.uniform(0.1, 2.0))]

    def couplings(self, robot: chasles.Robot, at: np.ndarray) -> list[CouplingData]:
        """Return couplings of coordinates whose rates are velocities, satisfied at a position."""
        rng = self.rng
        values: dict[str, float] = {}
        for name in robot.joints:
            kind = JOINTS[robot.joint(name).kind]
            if kind.additive:
                names = freedom_names(name, kind.nv)
                values |= dict(zip(names, at[robot.position_slice(name)], strict=True))
        found: list[CouplingData] = []
        if len(values) < 3:
            return found
        first, second, third = rng.sample(sorted(values), 3)
        a, b, c = (float(values[x]) for x in (first, second, third))
        m, n = rng.uniform(-2, 2), rng.uniform(-2, 2)
        if "gears" in self.has:
            found.append(gear(self.name("gear"), first, {second: m}, a - m * b))
        if "differentials" in self.has:
            name = self.name("differential")
            found.append(gear(name, first, {second: m, third: n}, a - m * b - n * c))
        if "polynomials" in self.has:
            rest = a - m * b - n * b * b * b
            name = self.name("cam")
            found.append(
                coupling(name, [first, second], lambda x, y: x - m * y - n * y * y * y - rest)
            )
        if "products" in self.has:
            rest = a * b + m * c
            name = self.name("product")
            freedoms = [first, second, third]
            found.append(coupling(name, freedoms, lambda x, y, z: x * y + m * z - rest))
        return found

    def shape(self) -> ShapeData:
        rng = self.rng
        kind = rng.choice(tuple(SHAPES))
        size = tuple(rng.uniform(0.05, 0.3) for _ in range(SHAPES[kind]))
        color = tuple(rng.random() for _ in range(4)) if rng.random() < 0.7 else None
        role = rng.choice(ROLES)
        color = color if role == "visual" else None
        file = "package://none/mesh é.stl" if kind == "mesh" else ""
        return ShapeData(rng.choice(self.links).name, kind, size, self.pose(), file, color, role)

    # Values and names --------------------------------------------------------------------------

    def name(self, plain: str) -> str:
        """Return an unused name, from `ODD` if the mechanism has odd names."""
        found = plain
        while "names" in self.has and (found == plain or found in self.names):
            found = self.rng.choice(ODD) + self.rng.choice(("", "", str(len(self.names))))
        while found in self.names:
            found += "_"
        self.names.add(found)
        return found

    def axis(self) -> Vector:
        rng = self.rng
        if rng.random() < 0.4:
            return Vector.of(*rng.choice(((1.0, 0, 0), (0, -1.0, 0), (0, 0, 1.0), (0, 0, -1.0))))
        given = [rng.gauss(0.0, 1.0) for _ in range(3)]
        size = math.hypot(*given)
        return Vector(tuple(x / size for x in given))

    def pose(self) -> Transform:
        rng = self.rng
        place = Vector.of(*(rng.choice((0.0, rng.uniform(-0.4, 0.4))) for _ in range(3)))
        style = rng.random()
        R = matrix_from_rpy(0.0, 0.0, 0.0)
        if style < 0.3:
            R = matrix_from_rpy(*(math.pi / 2.0 * rng.randint(0, 3) for _ in range(3)))
        elif style < 0.75:
            R = matrix_from_vector(self.axis() * rng.uniform(-math.pi, math.pi))
        return compose(Transform.from_pose(R, place), Transform.identity())

    def inertia(self) -> RigidInertia:
        rng = self.rng
        masses = [rng.uniform(0.1, 0.6) for _ in range(6)]
        places = [Vector.of(*(rng.uniform(-0.2, 0.2) for _ in range(3))) for _ in masses]
        return points(masses, places)


def _placed(robot: chasles.Robot, at: np.ndarray, link: str | None) -> Transform:
    """Return the pose of a link in the world; None stands for the world."""
    if link is None:
        return Transform.identity()
    T = direct(robot.model, "forward_kinematics", at, frame=link)
    return Transform.from_pose(
        Matrix(tuple(map(tuple, T[:3, :3].tolist()))), Vector(tuple(T[:3, 3].tolist()))
    )
