"""Mechanism files preserve or report every field of a description, including new fields."""

import math
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support import raises
from test_mechanism_file import flat, same

import chasles
from chasles import formats
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import matrix_from_vector
from chasles.mathematics.spatial import Transform
from chasles.model import (
    Description,
    FrameData,
    JointData,
    Limits,
    LinkData,
    LoopData,
    Mimic,
    RotorData,
    ShapeData,
    StretchData,
    coupling,
    description,
    gear,
    machine,
    motion,
    rolling,
)
from chasles.model.description import Precision
from chasles.model.joints import Revolute
from chasles.model.machine import ActuatorData, BoxData, FluidData, KeyframeData
from chasles.robots._solids import box

POSE = Transform.from_pose(matrix_from_vector(Vector.of(0.1, -0.2, 0.3)), Vector.of(1.0, 2.0, 3.0))
X, Y = Vector.of(1.0, 0.0, 0.0), Vector.of(0.0, 1.0, 0.0)
NUMBERS: dict[str, Any] = {
    "axis": X,
    "second_axis": Y,
    "pitch": 0.1,
    "limits": Limits(-1.0, 2.0, 3.0, 4.0),
    "armature": 0.5,
    "damping": 0.6,
    "friction": 0.7,
    "radius": 0.8,
    "reversed": True,
    "child_pose": POSE,
    "stiffness": 0.9,
    "rest": (0.1, 0.2),
    "start": (0.3, 0.4),
    "forces": (-1.0, 2.0),
    "lifted": True,
}
TENDON = (0.1, 0.2, (0.3, 0.4), 0.5, (-1.0, 1.0), (-2.0, 3.0), 0.6)
"""Offset, stiffness, rest, damping, forces, limits and friction."""

WHOLE = Description(
    "whole",
    (
        LinkData("a", box(1.0, (0.1, 0.2, 0.3), X)),
        LinkData("b", box(2.0, (0.1, 0.2, 0.3), Y), massless=True, lifted=0.4),
    ),
    (
        JointData("first", "universal", None, "a", POSE, **NUMBERS),
        JointData("second", "helical", "a", "b", POSE, mimic=Mimic("first", 2.0, 0.3), **NUMBERS),
    ),
    (FrameData("eye", "b", POSE),),
    Vector.of(1.0, 2.0, 3.0),
    ("a.urdf:3: angle 1.5708 taken as pi/2", 'another "note"\n'),
    loops=(LoopData("pin", "rack_and_pinion", "a", "b", POSE, **NUMBERS),),
    independent=("first[0]",),
    massless=True,
    couplings=(
        gear("gear", "second", {"first[0]": 2.0}, 0.1),
        coupling("cam", ["first[1]", "second"], lambda a, b: a * a * b - 3.0),
        rolling("rim", "ball", "b", on="eye", radius=0.3, axis=(1.0, 0.0, 0.0), touching=True),
    ),
    rotors=(
        RotorData("rotor", ("first[0]", "second"), (2.0, -0.5), 0.3, "", (), *TENDON),
        RotorData("rope", (), (), path=(StretchData("a", X, "b", Y, 0.5),)),
    ),
    actuators=(
        ActuatorData("motor", "joint", "second", (2.0,), (1.0, 2.0, 3.0), (4.0, 5.0, 6.0)),
        ActuatorData(
            "jet",
            "site",
            "eye",
            (1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
            reference="a",
            in_parent=True,
            dynamics="filter",
            constant=0.2,
            rod=0.3,
            controls=(-1.0, math.inf),
            forces=(-2.0, 3.0),
            activations=(0.0, 1.0),
        ),
    ),
    keyframes=(
        KeyframeData(
            "key",
            (("first", (0.1, 0.2)),),
            (("first", (0.3, 0.4)),),
            (("motor", (0.5,)),),
            (("jet", (0.6,)),),
        ),
    ),
    fluid=FluidData(1.2, 0.1, X, (BoxData("a", POSE, (0.1, 0.2, 0.3)),)),
    excluded=(("a", "b"),),
    shapes=(
        ShapeData(
            "a",
            "mesh",
            (1.0, 2.0, 3.0),
            POSE,
            "a.stl",
            (0.1, 0.2, 0.3, 0.4),
            "collision",
            (1, 2),
            (0.1, 0.2, 0.3),
            4,
            2,
        ),
    ),
    planes=(ShapeData("a", "plane", (), POSE, role="collision", friction=(0.4, 0.5, 0.6)),),
    precision=Precision(5, 7, 2e-3),
)
"""Description in which every field differs from its default."""

MODULES = (description.__name__, machine.__name__)

OWN = {"where", "closure"}
"""Fields that belong to the file or to the library, not to the mechanism."""

REFUSED = {
    "custom": {"kind": "custom", "custom": Revolute()},
    "motion": {"motion": motion(lambda t: 2.0 * t)},
}
"""Fields that contain Python functions."""

CODES = {"custom": "E-FILE-032", "motion": "E-FILE-033"}


def default(field: Field[Any]) -> Any:
    """Return the default of a field, or MISSING if the field is required."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def parts(value: Any) -> Iterator[Any]:
    """Yield all dataclasses of `description` and `machine` in a value."""
    if isinstance(value, tuple):
        for entry in value:
            yield from parts(entry)
    elif is_dataclass(value) and type(value).__module__ in MODULES:
        yield value
        for field in fields(value):
            yield from parts(getattr(value, field.name))


def test_every_field_survives(tmp_path: Path) -> None:
    assert formats.write(WHOLE, tmp_path / "whole.toml") == ()
    again = formats.read(tmp_path / "whole.toml")
    for mine, theirs in zip(parts(WHOLE), parts(again), strict=True):
        assert type(mine) is type(theirs)
        for field in fields(mine):
            if field.name not in OWN:
                same(*(flat(getattr(x, field.name)) for x in (mine, theirs)))


@pytest.mark.parametrize("suffix", [".urdf", ".sdf", ".xml"])
def test_writers_note_the_planes_that_they_omit(suffix: str, tmp_path: Path) -> None:
    links = (LinkData("a", box(1.0, (0.1, 0.2, 0.3), X)),)
    joints = (JointData("hinge", "revolute", None, "a"),)
    arm = Description("arm", links, joints, planes=WHOLE.planes)
    note = "planes (1) are ignored"
    assert note in formats.write(arm, tmp_path / f"arm{suffix}")
    assert note not in formats.write(replace(arm, planes=()), tmp_path / f"bare{suffix}")


def test_the_sample_has_every_field() -> None:
    """The sample covers every field, so the test above would detect a lost field."""
    modules = [*vars(description).values(), *vars(machine).values()]
    kinds = [x for x in modules if is_dataclass(x) and isinstance(x, type)]
    known = {x for x in kinds if x.__module__ in MODULES}
    known -= {description.Closure}  # chosen by the library
    said = {
        (type(part), field.name)
        for part in parts(WHOLE)
        for field in fields(part)
        if flat(getattr(part, field.name)) != flat(default(field))
    }
    missing = {
        f"{kind.__name__}.{field.name}"
        for kind in known
        for field in fields(kind)
        if (kind, field.name) not in said and field.name not in OWN
    }
    loop = {f"LoopData.{name}" for name in ("mimic", *REFUSED)}  # not allowed in a loop
    own = {f"CouplingData.{name}" for name in ("rates", "frames")} | {"RollingData.rates"}
    own.add("Description.unsupported")  # describes the file that was read
    own.add("Description.sensors")  # omitted with a note
    own |= {"Description.paired", "Description.fields"}  # omitted with a note
    assert missing == loop | own | {f"JointData.{name}" for name in REFUSED}


def test_notes_name_files_without_folders(tmp_path: Path) -> None:
    """A file that is passed on to others does not reveal the folder of its original."""
    file = tmp_path / "secret" / "a.urdf"
    notes = (f"{file}:3: angle 1.5708 taken as pi/2", "a note")
    formats.write(replace(WHOLE, where=str(file), notes=notes), tmp_path / "a.toml")
    expected = ("a.urdf:3: angle 1.5708 taken as pi/2", "a note")
    assert formats.read(tmp_path / "a.toml").notes == expected


@pytest.mark.parametrize("field", REFUSED)
def test_functions_are_refused(field: str, tmp_path: Path) -> None:
    source = chasles.robots.planar(1).model.source
    joint = replace(source.joints[-1], **REFUSED[field])
    with raises(CODES[field], repr(joint.name)):
        formats.write(replace(source, joints=(joint,)), tmp_path / "no.toml")
