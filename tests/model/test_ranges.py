"""Check the table of ranges wherever values enter: files, lint, robots, edits, contact laws."""

import contextlib
import dataclasses
import math
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from readers_here import readers_here
from support import raises

import chasles
from chasles import contact, formats
from chasles.errors import ChaslesError
from chasles.lint import lint
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import (
    CouplingData,
    Description,
    FrameData,
    JointData,
    Limits,
    LinkData,
    LoopData,
    Mimic,
    RollingData,
    RotorData,
    ShapeData,
    StretchData,
    gear,
    rolling,
)
from chasles.model.machine import ActuatorData, BoxData, FluidData
from chasles.model.ranges import RANGES
from chasles.motion import controllers

DESCRIBED = [
    key for key in RANGES if key[0].islower() and not key.startswith(("gear", "rolling", "contact"))
]
NOT_FINITE = (math.nan, math.inf, -math.inf, 1e200)


def body(mass: float = 1.25) -> RigidInertia:
    return RigidInertia.from_center(mass, Vector.of(0.0, 0.0, 0.1), Symmetric(1, 2, 2.5, 0, 0, 0))


SENTINELS = {
    "link.mass": "1.25",
    "joint.armature": "0.375",
    "joint.damping": "0.6875",
    "joint.friction": "0.4375",
    "limits.lower": "-1.1875",
    "limits.upper": "1.3125",
    "limits.velocity": "17.5",
    "limits.effort": "36.5",
    "mimic.multiplier": "2.125",
    "mimic.offset": "0.21875",
    "robot.gravity": "-9.8125",
}
"""Numbers that occur only once in a file, by parameter."""


def machine(suffix: str) -> Description:
    """Return two joints, the second of which mimics the first.

    Parameters that the format supports have the values of SENTINELS.
    """
    number = {key: float(text) for key, text in SENTINELS.items()}
    limits = Limits(*(number[f"limits.{name}"] for name in Limits.__match_args__))
    tall = suffix in (".toml", ".xml")
    joint = JointData(
        "first",
        "revolute",
        None,
        "a",
        limits=limits if suffix != ".xml" else dataclasses.replace(limits, velocity=math.inf),
        armature=number["joint.armature"] if tall else 0.0,
        damping=number["joint.damping"],
        friction=number["joint.friction"],
    )
    mimic = Mimic("first", number["mimic.multiplier"], number["mimic.offset"])
    second = JointData("second", "continuous", "a", "b", mimic=mimic)
    g = number["robot.gravity"] if suffix != ".urdf" else -9.81
    links = LinkData("a", body()), LinkData("b", body(3.0))
    return Description("m", links, (joint, second), gravity=Vector.of(0.0, 0.0, g))


@pytest.fixture(autouse=True)
def _here() -> Iterator[None]:
    with readers_here(mujoco=True):
        yield


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Content of the machine's file in every format."""
    folder, found = tmp_path_factory.mktemp("ranges"), {}
    for suffix in FILES:
        chasles.save(chasles.Robot(machine(suffix)), folder / f"m{suffix}")
        found[suffix] = (folder / f"m{suffix}").read_text()
    return found


FILES = (".urdf", ".sdf", ".toml", ".xml")
CASES = [
    (suffix, key)
    for suffix in FILES
    for key in SENTINELS
    if not (suffix == ".urdf" and key in ("joint.armature", "robot.gravity"))
    and not (suffix == ".sdf" and key == "joint.armature")
    and not (suffix == ".xml" and key in ("limits.velocity", "limits.effort"))
]


def test_every_number_of_a_mechanism_has_a_row() -> None:
    """Every numeric field of a description has a row in the table of ranges."""
    owners = {
        "link": LinkData,
        "joint": JointData,
        "limits": Limits,
        "mimic": Mimic,
        "frame": FrameData,
        "robot": Description,
        "rotor": RotorData,
        "actuator": ActuatorData,
    }
    rest = {
        "link": {"center", "mass", "inertia"},
        "rotor": {"path", "rest", "forces"},
        "joint": {"forces"},
        "actuator": {"gain", "bias", "controls", "forces", "activations"},
        "robot": {"density", "viscosity", "wind", "boxes"},  # of the fluid
    }
    for part, kind in owners.items():
        hints = typing.get_type_hints(kind)
        measured = {f.name for f in dataclasses.fields(kind) if _measured(hints[f.name])}
        rows = {key.partition(".")[2] for key in RANGES if key.startswith(f"{part}.")}
        assert measured | rest.get(part, set()) == rows, part
    parts = {*owners.values(), LoopData, CouplingData, RollingData, ShapeData}
    public = {x for x in vars(chasles.model).values() if dataclasses.is_dataclass(x)}
    data = {x for x in public if isinstance(x, type) and x.__module__.endswith(".description")}
    assert data <= parts


def _measured(hint: Any) -> bool:
    kinds = {hint, *typing.get_args(hint)}
    return bool(kinds & {float, Vector, Transform, RigidInertia})


LAWS: dict[str, Callable[..., Any]] = {
    "SoftSurface": lambda **x: contact.SoftSurface(**{"stiffness": 1.0, "damping": 1.0} | x),
    "StandardSolid": lambda **x: contact.StandardSolid(
        **{"series": 1.0, "stiffness": 1.0, "damping": 1.0} | x
    ),
    "HuntCrossley": lambda **x: contact.HuntCrossley(**{"stiffness": 1.0, "damping": 1.0} | x),
    "AzadFeatherstone": lambda **x: contact.AzadFeatherstone(
        **{"stiffness": 1.0, "damping": 1.0} | x
    ),
    "SoftFriction": lambda **x: contact.SoftFriction(
        **{"coefficient": 1.0, "stiffness": 1.0, "damping": 1.0} | x
    ),
    "Rigid": contact.Rigid,
    "Compliant": lambda **x: contact.Compliant(**{"stiffness": 1.0} | x),
    "Moreau": lambda **x: contact.Moreau(**{"restitution": 0.5} | x),
    "Newton": lambda **x: contact.Newton(**{"restitution": 0.5} | x),
    "Poisson": lambda **x: contact.Poisson(**{"restitution": 0.5, "friction": 0.5} | x),
    "Stronge": lambda **x: contact.Stronge(**{"restitution": 0.5, "friction": 0.5} | x),
    "Sticking": contact.Sticking,
    "PDControl": lambda **x: controllers.PDControl(
        **{"stiffness": 1.0, "damping": 1.0, "target": 0.0} | x
    ),
    "GravityCompensation": controllers.GravityCompensation,
    "ComputedTorque": lambda **x: controllers.ComputedTorque(
        **{"stiffness": 1.0, "damping": 1.0, "target": 0.0} | x
    ),
    "gear": lambda ratio=1.0, offset=0.0: gear("g", "b", {"a": ratio}, offset),
    "rolling": lambda radius: rolling("r", "wheel", "b", radius=radius),
}


def test_every_number_of_a_law_has_a_row() -> None:
    known = {key.partition(".")[0] for key in RANGES if key not in DESCRIBED}
    assert known == {*LAWS, "contact_points"}
    public = [getattr(contact, name) for name in dir(contact)] + [*vars(controllers).values()]
    for kind in (x for x in public if isinstance(x, type) and dataclasses.is_dataclass(x)):
        rows = {key.partition(".")[2] for key in RANGES if key.startswith(f"{kind.__name__}.")}
        numbers = {
            f.name for f in dataclasses.fields(kind) if f.type in (float, "float", Any, "Array")
        }
        lawlike = any(word in kind.__module__ for word in (".laws.", ".pairs", ".controllers"))
        if lawlike and not kind.__name__.startswith("_"):
            assert numbers <= rows, kind


@pytest.mark.parametrize("key", [key for key in RANGES if key.partition(".")[0] in LAWS])
def test_laws_and_controllers_refuse_numbers_outside(key: str) -> None:
    kind, _, name = key.partition(".")
    row = RANGES[key]
    wrong: list[Any] = [*NOT_FINITE, "stiff", None]
    wrong += [row.least - 1.0] if math.isfinite(row.least) else []
    wrong += [row.most + 1.0] if math.isfinite(row.most) else []
    wrong += [0.0] if row.positive else []
    for value in wrong:
        with pytest.raises(ChaslesError):
            LAWS[kind](**{name: value})


def test_contact_points_refuse_coefficients_outside() -> None:
    robot = chasles.robots.planar(2)
    q, touch = np.zeros(2), (contact.Point("link2"), contact.Plane())
    for name in ("friction", "torsion"):
        for value in (*NOT_FINITE, -1.0, "rough", None):
            with raises("E-CONTACT-052"):
                contact.contact_points(robot, q, q, *touch, **{"friction": 1.0, name: value})


# Robots and edits --------------------------------------------------------------------------------


def changed(key: str, x: Any) -> Description:
    """Return the machine with another value of a parameter."""
    source = machine(".toml")
    link, joint = source.links[0], source.joints[0]
    part, _, name = key.partition(".")
    frames: tuple[FrameData, ...] = ()
    if part == "link":
        m, h, I = link.inertia.m, link.inertia.h, link.inertia.I
        inertia = {
            "mass": RigidInertia(x, h, I),
            "center": RigidInertia(m, Vector.of(x, 0.0, 0.0), I),
            "inertia": RigidInertia(m, h, Symmetric(1.0, 1.0, 1.0, x, 0.0, 0.0)),
        }
        link = (
            dataclasses.replace(link, lifted=x)
            if name == "lifted"
            else dataclasses.replace(link, inertia=inertia[name])
        )
    elif part == "limits":
        joint = dataclasses.replace(joint, limits=dataclasses.replace(joint.limits, **{name: x}))
    elif part == "mimic":
        mimic = dataclasses.replace(Mimic("second"), **{name: x})
        joint = dataclasses.replace(joint, mimic=mimic)
    elif part == "joint":
        value: Any = x
        if name.endswith("pose"):
            value = Transform.from_pose(Matrix.identity(), Vector.of(x, 0.0, 0.0))
        elif name.endswith("axis"):
            value = Vector.of(x, 0.0, 0.0)
        elif name in ("rest", "start"):
            value = (x,)
        elif name == "forces":
            value = (x, 1.0)
        joint = dataclasses.replace(joint, **{name: value})
    elif part == "rotor":
        path = (StretchData("a", Vector.of(0.0, 0.0, 0.0), "b", Vector.of(x, 0.0, 0.0)),)
        rotor = RotorData("rotor", ("first",), (1.0,), 1.0)
        wrong = {"ratios": (x,), "path": path, "rest": (x, 1.0), "forces": (x, 1.0)}
        rotor = dataclasses.replace(rotor, **{name: wrong.get(name, x)})
        source = dataclasses.replace(source, rotors=(rotor,))
    elif part == "actuator":
        several = {"gear": (x,), "gain": (1.0, x, 1.0), "bias": (1.0, x, 1.0)}
        several |= dict.fromkeys(("controls", "forces", "activations"), (x, 1.0))
        motor = ActuatorData("motor", "joint", "first")
        motor = dataclasses.replace(motor, **{name: several.get(name, x)})
        source = dataclasses.replace(source, actuators=(motor,))
    elif part == "robot" and name != "gravity":
        box = BoxData("a", Transform.identity(), (0.1, 0.2, x if name == "boxes" else 0.3))
        fluid = FluidData(1.0, 1.0, Vector.of(0.0, 0.0, 1.0), (box,))
        value = {"boxes": (box,), "wind": Vector.of(0.0, x, 0.0)}.get(name, x)
        source = dataclasses.replace(source, fluid=dataclasses.replace(fluid, **{name: value}))
    elif part == "shape":
        ball = ShapeData("a", "sphere", (0.1,), friction=(1.0, x, 0.0))
        source = dataclasses.replace(source, shapes=(ball,))
    elif part == "frame":
        pose = Transform.from_pose(Matrix.identity(), Vector.of(x, 0.0, 0.0))
        frames = (FrameData("tool", "a", pose),)
    else:
        source = dataclasses.replace(source, **{name: Vector.of(0.0, x, 0.0)})
    links, joints = (link, *source.links[1:]), (joint, *source.joints[1:])
    return dataclasses.replace(source, links=links, joints=joints, frames=frames)


@pytest.mark.parametrize("key", DESCRIBED)
def test_a_robot_refuses_numbers_outside(key: str) -> None:
    """Values outside their range are refused.

    A negative mass, which a dynamically equivalent robot may have, gets a note.
    """
    row = RANGES[key]
    wrong: list[Any] = [math.nan, "2", None] if key != "joint.second_axis" else [math.nan]
    wrong += [] if row.endless else NOT_FINITE[1:]
    wrong += [-1.0] if row.least == 0.0 and key != "link.mass" else []
    for value in wrong:
        with pytest.raises(ChaslesError) as caught:
            chasles.Robot(changed(key, value))
        assert caught.value.code in ("E-MODEL-041", "E-MODEL-054"), value
    if key == "link.mass":
        assert "negative" in str(chasles.Robot(changed(key, -1.0)).notes)


@pytest.mark.parametrize("suffix", FILES)
def test_saving_refuses_what_is_not_finite(suffix: str, tmp_path: Path) -> None:
    for key in DESCRIBED:
        with pytest.raises(ChaslesError):
            formats.write(changed(key, math.nan), tmp_path / f"m{suffix}")


def test_a_remedy_asks_for_numbers_of_the_range() -> None:
    """The remedy names the range, also for fields with several numbers."""
    with raises("E-MODEL-041", "give numbers that are not negative"):
        chasles.Robot(changed("robot.boxes", -1.0))
    with raises("E-MODEL-041", "give finite numbers"):
        chasles.Robot(changed("joint.axis", math.inf))
    with raises("E-MODEL-041", "give zero or a positive number"):
        chasles.Robot(changed("joint.damping", -1.0))


def test_integers_beyond_floats_are_outside() -> None:
    with raises("E-MODEL-041"):
        chasles.Robot(changed("joint.damping", 10**400))
    with raises("E-CONTACT-028"):
        chasles.contact.Sphere("a", 10**400)


def test_limits_in_the_wrong_order() -> None:
    with raises("E-MODEL-054", "'first'"):
        chasles.Robot(changed("limits.lower", 5.0))
    for key, value in (("limits.lower", math.inf), ("limits.upper", -math.inf)):
        with raises("E-MODEL-054"):
            chasles.Robot(changed(key, value))


@pytest.mark.parametrize("key", ["rotor.rest", "rotor.forces", "rotor.limits", "actuator.controls"])
def test_intervals_in_the_wrong_order(key: str) -> None:
    part, _, name = key.partition(".")
    rotor, motor = RotorData("r", ("first",), (1.0,)), ActuatorData("m", "joint", "first")
    changed = dataclasses.replace(rotor if part == "rotor" else motor, **{name: (2.0, 1.0)})
    with raises("E-MODEL-411", name, "2 to 1"):
        chasles.Robot(dataclasses.replace(machine(".toml"), **{f"{part}s": (changed,)}))


def test_edits_refuse_numbers_outside() -> None:
    robot = chasles.Robot(machine(".toml"))
    for mass in (*NOT_FINITE, -1.0, "heavy", None, (1.0, 2.0)):
        with raises("E-ROBOT-041|E-CALL-113|E-CALL-114"):
            robot.attach("b", mass=mass)
    for center in ((math.nan, 0.0, 0.0), "abc", (1.0, 2.0), None):
        with raises("E-ROBOT-007|E-CALL-113"):
            robot.attach("b", mass=1.0, center=center)
    with raises("E-ROBOT-042"):
        robot.attach("b", mass=1.0, inertia=-np.eye(3))
    for gravity in ((0.0, 0.0, math.inf), "down", None, (1.0,)):
        with raises("E-ROBOT-009|E-CALL-113"):
            robot.with_gravity(gravity)
    for q in (math.nan, "here", None, (1.0, 2.0)):
        with raises("E-ROBOT-006|E-CALL-113"):
            robot.lock({"first": q})
    with raises("E-MODEL-041"):
        robot.with_loops(LoopData("l", "fixed", None, "b", damping=-1.0))


# Files -------------------------------------------------------------------------------------------


def written(text: str, key: str, by: str, path: Path) -> Path:
    assert text.count(SENTINELS[key]) >= 1, key
    path.write_text(text.replace(SENTINELS[key], by))
    return path


@pytest.mark.parametrize(("suffix", "key"), CASES)
def test_files_refuse_what_is_not_finite(
    suffix: str, key: str, texts: dict[str, str], tmp_path: Path
) -> None:
    for word in ("nan", "inf", "-inf", "1e200") if suffix != ".xml" else ("nan", "inf"):
        path = written(texts[suffix], key, word, tmp_path / f"m{suffix}")
        if word == "nan" or not RANGES[key].endless:
            with pytest.raises(ChaslesError) as caught:
                chasles.load(path)
            assert caught.value.file == str(path), caught.value
            assert any(f.severity == "error" for f in lint(path)), word
            continue
        with contextlib.suppress(ChaslesError):  # URDF does not have inf
            found = chasles.load(path).joint("first").limits
            assert math.isinf(getattr(found, key.partition(".")[2])), word


@pytest.mark.parametrize(("suffix", "key"), CASES)
def test_files_with_negative_numbers_load_with_a_note(
    suffix: str, key: str, texts: dict[str, str], tmp_path: Path
) -> None:
    row, name = RANGES[key], key.partition(".")[2]
    if row.least < 0.0:
        return
    path = written(texts[suffix], key, "-1.0", tmp_path / f"m{suffix}")
    if key == "link.mass" and suffix == ".xml":
        with raises("E-MJCF-002"):  # as in MuJoCo
            chasles.load(path)
        return
    robot = chasles.load(path)
    joint = robot.joint("first")
    found = {row.lint} & {f.check for f in lint(path)}
    if key == "link.mass":
        assert any("mass -1 kg is negative" in note for note in robot.notes)
        assert found
    else:
        value = getattr(joint.limits if key.startswith("limits") else joint, name)
        assert value == row.taken
        if not (suffix == ".sdf" and key.startswith("limits")):  # in SDF, -1 means no limit
            assert any("'first'" in note and "taken as" in note for note in robot.notes)
            assert found


@pytest.mark.parametrize("suffix", FILES[:3])
def test_files_with_limits_in_the_wrong_order(
    suffix: str, texts: dict[str, str], tmp_path: Path
) -> None:
    """Limits in the wrong order are swapped, with a note. MuJoCo refuses such files."""
    path = written(texts[suffix], "limits.lower", "3.0", tmp_path / f"m{suffix}")
    robot = chasles.load(path)
    assert (robot.limits.lower[0], robot.limits.upper[0]) == (1.3125, 3.0)
    assert any("swapped" in note and "'first'" in note for note in robot.notes)
    assert "limit-inverted" in {f.check for f in lint(path)}


MACHINE = """<mujoco><option density="{density}" viscosity="{viscosity}"/><worldbody>
<body name="a"><joint name="j" axis="0 1 0"/><geom name="g" size="0.1" friction="{friction}"/>
<site name="s" pos="0.1 0 0"/></body><site name="w"/>
<geom name="ground" type="plane" size="1 1 1" pos="0 0 -1"/></worldbody>
<contact><pair geom1="g" geom2="ground" friction="{pair} 1 0 0 0"/></contact>
<tendon><fixed name="t" damping="{damping}" frictionloss="{loss}">
<joint joint="j" coef="2"/></fixed>
<spatial name="p" stiffness="1" damping="{path}"><site site="w"/><site site="s"/></spatial></tendon>
<actuator><general name="m" joint="j" dyntype="filter" dynprm="{constant}"/></actuator></mujoco>"""
"""Tendons, an actuator, shapes and a fluid, for which MuJoCo accepts negative numbers."""
NEGATIVE = {
    "damping": "rotor 't': damping",
    "loss": "rotor 't': friction",
    "path": "rotor 'p': damping",
    "constant": "actuator 'm': constant",
    "friction": "robot 'm': friction of a shape on 'a'",
    "pair": "robot 'm': friction of a shape on 'a'",
    "density": "robot 'm': density",
    "viscosity": "robot 'm': viscosity",
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_negative_numbers_of_machines_are_zero(name: str, tmp_path: Path) -> None:
    path, found = tmp_path / "m.xml", []
    for number in ("0", "-1.5"):
        path.write_text(MACHINE.format(**dict.fromkeys(NEGATIVE, "1") | {name: number}))
        robot, negative = chasles.load(path), number != "0"
        wanted = f"{path}: {NEGATIVE[name]} -1.5 is negative; taken as 0"
        assert (wanted in robot.notes) == negative
        assert ("negative" in {f.check for f in lint(path)}) == negative
        chasles.save(robot, tmp_path / f"{number}.toml")
        lines = (tmp_path / f"{number}.toml").read_text().splitlines()
        found.append([line for line in lines if "taken as 0" not in line])
    assert found[0] == found[1]
