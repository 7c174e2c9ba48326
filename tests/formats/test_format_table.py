"""Each writer does what the table in docs/formats.md states about its format.

A cell with text means that the mechanism reads back unchanged, or, with "left out", unchanged
except for what a note states. An empty cell means that the writer refuses the mechanism. Each row
has a mechanism for each of its variants.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from any_robot import Sample
from trips import in_process, trip

import chasles
from chasles.expr import sin
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import matrix_from_vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import (
    JOINTS,
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
from chasles.model.joints import LOOP_JOINTS, Revolute
from chasles.robots._solids import box

PAGE = Path(__file__).resolve().parents[2] / "docs" / "formats.md"
LEFT_OUT = ("ignored", "not store", "not written")
"""Words that mark notes about omitted parts."""

NONE = Transform.identity()
POSE = Transform.from_pose(matrix_from_vector(Vector.of(0.3, -0.5, 0.9)), Vector.of(0.1, 0.2, 0.3))
BODY = box(2.0, (0.1, 0.2, 0.3), Vector.of(0.1, 0.0, 0.0))
Mechanisms = Iterator[Description | Sample]


def arm(*kinds: str, **numbers: object) -> Description:
    """Return a serial arm with oblique joint axes; `numbers` are parameters of the last joint."""
    names = [f"link{k}" for k in range(len(kinds) + 1)]
    joints = [
        JointData(f"joint{k}", kind, names[k], names[k + 1], POSE, Vector.of(0.6, 0.0, 0.8))
        for k, kind in enumerate(kinds)
    ]
    joints[-1] = replace(joints[-1], **numbers)  # type: ignore[arg-type]
    return Description("arm", tuple(LinkData(name, BODY) for name in names), tuple(joints))


def of(*kinds: str, **numbers: object) -> Callable[[], Mechanisms]:
    """Return a function that yields an arm for each type of the last joint."""

    def made() -> Mechanisms:
        for kind in kinds:
            size = {"pitch": 0.1} if kind == "helical" else {}
            size |= {"radius": 0.2} if kind in JOINTS and "radius" in JOINTS[kind].data else {}
            yield arm("revolute", kind, **size, **numbers)

    return made


def floating(parent: str | None, pose: Transform) -> Callable[[], Mechanisms]:
    """Return a function that yields a link floating relative to the world or to another link."""

    def made() -> Mechanisms:
        source = arm("revolute", "revolute")
        links = (*source.links, LinkData("bird", BODY))
        joints = (
            JointData("root_joint", "free", parent, "bird", pose),
            JointData("wing", "revolute", "bird" if parent is None else None, "link0"),
            *source.joints,
        )
        yield replace(source, links=links, joints=joints)

    return made


def closed(*kinds: str, at: float = 0.0) -> Callable[[], Mechanisms]:
    """Return a function that yields an arm of seven joints with one loop for each type.

    The loop is closed if all joint angles are `at` (rad).
    """

    def made() -> Mechanisms:
        plain = chasles.Robot(arm(*["revolute"] * 7))
        q = np.full(7, at)
        T = plain.forward_kinematics(q, frame="link7")
        R, place = T[:3, :3].tolist(), Vector(tuple(T[:3, 3].tolist()))
        pose = Transform.from_pose(matrix(R), place)
        for kind in kinds:
            loop = LoopData("loop", kind, None, "link7", pose, pitch=0.1, radius=0.2)
            yield Sample(replace(plain.model.source, loops=(loop,)), q, frozenset())

    return made


def matrix(rows: list[list[float]]) -> chasles.mathematics.linear.Matrix:
    return chasles.mathematics.linear.Matrix(tuple(map(tuple, rows)))


def through_free() -> Mechanisms:
    """Yield a floating link with a spherical loop joint to the world."""
    (source,) = floating(None, NONE)()
    assert isinstance(source, Description)
    loop = LoopData("loop", "spherical", None, "bird")
    yield replace(source, loops=(loop,))


def turned() -> Mechanisms:
    """Yield an arm with a rotor driven by two of its joints."""
    source = arm("revolute", "revolute", "prismatic")
    rotor = RotorData("rotor", ("joint0", "joint2"), (2.0, -0.5), 0.3)
    yield replace(source, rotors=(rotor,))


def tied(*made: CouplingData) -> Callable[[], Mechanisms]:
    """Return a function that yields an arm for each coupling, with a position where it holds."""

    def each() -> Mechanisms:
        source, q = arm("revolute", "revolute", "revolute"), np.array([0.0, 0.1, 0.05])
        for data in made:
            yield Sample(replace(source, couplings=(data,)), q, frozenset())

    return each


def choosing() -> Mechanisms:
    """Yield an arm of seven joints, four of them independent, with a loop of three equations."""
    for sample in closed("spherical")():
        assert isinstance(sample, Sample)
        freedoms = tuple(f"joint{k}" for k in range(4))
        yield sample._replace(source=replace(sample.source, independent=freedoms))


def shaped(*kinds: str) -> Callable[[], Mechanisms]:
    sizes = {"box": (1.0, 2.0, 3.0), "sphere": (1.0,), "ellipsoid": (1.0, 2.0, 3.0)}

    def made() -> Mechanisms:
        for kind in kinds:
            for role in ("visual", "collision"):
                shape = ShapeData("link1", kind, sizes.get(kind, (0.5, 2.0)), POSE, role=role)
                yield replace(arm("revolute"), shapes=(shape,))

    return made


def with_link(link: LinkData, *, carried: int) -> Callable[[], Mechanisms]:
    """Return a function that yields an arm whose middle link is `link`, with `carried` children."""

    def made() -> Mechanisms:
        source = arm("revolute", "prismatic")
        more = [f"tip{k}" for k in range(1, carried)]
        yield replace(
            source,
            links=(source.links[0], link, source.links[2], *(LinkData(x, BODY) for x in more)),
            joints=(*source.joints, *(JointData(f"to {x}", "revolute", "link1", x) for x in more)),
        )

    return made


def one(source: Description) -> Callable[[], Mechanisms]:
    return lambda: iter((source,))


BOUNDED = ("revolute", "continuous", "prismatic", "universal", "helical")
ROUND = Limits(-1.0, 1.0, 2.0, 3.0)
FLAT = RigidInertia(1.0, Vector.zero(), Symmetric(1.0, 1.0, 3.0, 0.0, 0.0, 0.0))
EMPTY = LinkData("link1", RigidInertia.zero())
ROWS: dict[str, Callable[[], Mechanisms]] = {
    "revolute, prismatic, fixed": of("revolute", "continuous", "prismatic", "fixed"),
    "universal, cylindrical, yaw-pitch-roll": of("universal", "cylindrical", "yaw_pitch_roll"),
    "helical, rack and pinion": of("helical", "rack_and_pinion"),
    "spherical": of("spherical"),
    "planar": of("planar"),
    "free, relative to the world's origin": floating(None, NONE),
    "free, relative to another frame in the world": floating(None, POSE),
    "free, relative to a moving link": floating("link2", NONE),
    "sphere in cylinder, rolling": of("sphere_in_cylinder", "rolling"),
    "reversed joints, types of the first three rows": of(
        *("revolute", "continuous", "prismatic", "universal", "cylindrical", "yaw_pitch_roll"),
        *("helical", "rack_and_pinion"),
        reversed=True,
    ),
    "reversed joints, other types": of("spherical", "planar", "sphere_in_cylinder", reversed=True),
    "joint frame that differs from the child link's frame": of(
        "revolute", "helical", child_pose=POSE
    ),
    "position and effort limits": of(*BOUNDED, limits=Limits(-1.0, 2.0, effort=3.0)),
    "velocity limits": of("revolute", limits=Limits(velocity=3.0)),
    "limits of spherical joints": of("spherical", limits=Limits(upper=1.0)),
    "damping, friction": of("revolute", "universal", "helical", damping=0.2, friction=0.3),
    "armature": of("revolute", "universal", "helical", armature=0.1),
    "rotor inertia driven by several joints": turned,
    "mimic": of("revolute", mimic=Mimic("joint0", 2.0, 0.1)),
    "loops closed by spherical joints": closed("spherical"),
    "loops closed by revolute joints": closed("revolute", "continuous"),
    "loops closed by welds": closed("fixed"),
    "loops closed by prismatic, universal, helical joints": closed(
        "prismatic", "universal", "helical"
    ),
    "loops closed by other joints": closed(
        *(
            kind
            for kind in LOOP_JOINTS
            if kind not in ("fixed", "spherical", "universal", "free") and LOOP_JOINTS[kind].nv != 1
        )
    ),
    "loops that are open at zero coordinates": closed("spherical", at=0.3),
    "loops through free joints": through_free,
    "gears between two revolute joints of one link": tied(gear("g", "joint1", {"joint2": 2.0})),
    "other gears, differentials": tied(
        gear("g", "joint1", {"joint0": 2.0}, 0.1),
        gear("g", "joint1", {"joint0": 2.0, "joint2": 0.5}, 0.075),
    ),
    "couplings: polynomials in one coordinate, up to degree 4": tied(
        coupling("c", ["joint0", "joint1"], lambda a, b: a - 0.1 * b - b * b * b * b + 0.0101)
    ),
    "couplings: other polynomials": tied(
        coupling("c", ["joint0", "joint1"], lambda a, b: a * b + 0.1 * a)
    ),
    "other couplings": tied(coupling("c", ["joint0", "joint1"], lambda a, b: a * sin(b))),
    "frames": one(replace(arm("revolute"), frames=(FrameData("eye", "link1", POSE),))),
    "boxes, spheres, cylinders": shaped("box", "sphere", "cylinder"),
    "capsules": shaped("capsule"),
    "ellipsoids": shaped("ellipsoid"),
    "gravity other than (0, 0, -9.81)": one(
        replace(arm("revolute"), gravity=Vector.of(1.0, 2.0, 3.0))
    ),
    "physically impossible inertias": with_link(LinkData("link1", FLAT), carried=1),
    "links without inertia between two joints": with_link(EMPTY, carried=1),
    "other moving links without inertia": with_link(EMPTY, carried=2),
    "choice of independent coordinates": choosing,
    "kinematics only": one(replace(arm("revolute"), massless=True)),
    "user-defined joints": of("custom", custom=Revolute()),
}
"""Mechanisms for each row."""


def started(source: Description) -> Sample:
    return Sample(source, chasles.Robot(source).neutral(), frozenset())


def table() -> dict[str, dict[str, str]]:
    """Return the cells by row and suffix."""
    lines = PAGE.read_text("utf-8").split("## Features by format")[1].split("\n## ")[0].split("\n")
    rows = [[x.strip() for x in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
    suffixes = [name.split("`")[1] for name in rows[0][1:]]
    return {first: dict(zip(suffixes, rest, strict=True)) for first, *rest in rows[2:]}


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco")
    monkeypatch.setattr("chasles.formats.mjcf_source.compiled", in_process)


def test_the_table_has_every_row() -> None:
    assert list(table()) == list(ROWS)


@pytest.mark.parametrize("row", ROWS)
def test_the_table_is_true(row: str, tmp_path: Path) -> None:
    for suffix, cell in table()[row].items():
        for made in ROWS[row]():
            sample = made if isinstance(made, Sample) else started(made)
            found = trip(sample, tmp_path / f"a{suffix}")
            assert found.wrong == (), suffix
            assert bool(found.refused) == (cell == ""), (suffix, found.refused)
            noted = [x for x in found.notes if any(word in x for word in LEFT_OUT)]
            assert bool(noted) == ("left out" in cell), (suffix, noted)
