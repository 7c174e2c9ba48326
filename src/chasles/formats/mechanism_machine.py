"""Read and write tendons, actuators, keyframes and fluid properties in mechanism files."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, fields
from typing import Any

from chasles.errors import ModelError
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import Transform
from chasles.model import Description, RotorData, StretchData
from chasles.model.dh_fields import FIELDS, Field, choice, number, numbers
from chasles.model.machine import (
    DYNAMICS,
    TRANSMISSIONS,
    ActuatorData,
    BoxData,
    FluidData,
    KeyframeData,
    Named,
)

Row = dict[str, Any]
"""Values of a TOML table by key; keys with the value None are not written."""

Rows = Iterable[tuple[Row, str]]
"""TOML tables, each with its "file:line"."""


def bound(value: Any) -> float:
    """Convert a limit to a float; infinite limits are allowed."""
    return float(value) if value in (-math.inf, math.inf) else number(value)


def bounds(value: Any) -> tuple[float, float]:
    """Convert a pair of lower and upper limits."""
    lower, upper = map(bound, value)
    return lower, upper


def _several(value: Any) -> tuple[float, ...]:
    if isinstance(value, str | bytes | dict):
        raise TypeError
    return tuple(map(number, value))


def _rest(value: Any) -> tuple[float, float]:
    lower, upper = _several(value) if len(value) == 2 else _several(value) * 2
    if lower > upper:
        raise ValueError
    return lower, upper


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _path(value: Any) -> tuple[StretchData, ...]:
    text, point = FIELDS["name"].convert, numbers(3)
    return tuple(
        StretchData(text(a), Vector(point(r)), text(b), Vector(point(s)), number(factor))
        for a, r, b, s, factor in value
    )


def _named(value: Any) -> Named:
    return tuple((FIELDS["name"].convert(name), _several(x)) for name, x in dict.items(value))


_RANGE = Field(bounds, "a lower and an upper limit")
_NUMBERS = Field(_several, "a list of finite numbers")
_THREE = Field(numbers(3), "three finite numbers")
_PARTS = Field(_named, "a table with a list of numbers for each joint or actuator")

JOINT_KEYS = ("stiffness", "rest", "start", "forces", "lifted")
"""Keys of [[joint]] tables that are fields of `JointData`."""

KEYS: dict[str, Field] = (
    dict.fromkeys(("forces", "controls", "activations"), _RANGE)
    | dict.fromkeys(("stiffness", "constant", "rod", "density", "viscosity"), FIELDS["theta"])
    | dict.fromkeys(("rest", "start", "gear"), _NUMBERS)
    | dict.fromkeys(("gain", "bias", "wind"), _THREE)
    | dict.fromkeys(("target", "reference"), FIELDS["name"])
    | dict.fromkeys(("in_parent", "lifted"), Field(_flag, "true or false"))
    | {
        "path": Field(_path, "a list of [link, point, link, point, factor]"),
        "dynamics": choice(*DYNAMICS),
        "edges": Field(numbers(3), "three positive numbers"),
    }
)
"""Value type of each key in the tables that this module reads."""

KINDS: dict[str, dict[str, Field]] = {
    "actuator": {"kind": choice(*TRANSMISSIONS, wanted="joint, tendon, site, crank or nothing")},
    "keyframe": dict.fromkeys(("positions", "velocities", "controls", "activations"), _PARTS),
    "link": {"lifted": FIELDS["theta"]},
    "rotor": {
        "rest": Field(_rest, "a list with one length, or with the shortest and the longest length")
    },
}
"""Value types for keys of specific tables; they take precedence over `KEYS`."""

_TENDON = ("offset", "stiffness", "rest", "damping", "forces", "limits", "friction")
_ACTUATOR = tuple(f.name for f in fields(ActuatorData) if f.name not in ("name", "kind", "where"))

TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "rotor": (("name",), ("ratios", "armature", "path", *_TENDON)),
    "actuator": (("name", "kind"), _ACTUATOR),
    "keyframe": (("name",), tuple(KINDS["keyframe"])),
    "fluid": (("density", "viscosity"), ("wind",)),
    "box": (("link", "edges"), ("position", "rpy", "rotation")),
}
"""Required and optional keys for each table."""


def rotors(rows: Rows) -> Iterator[RotorData]:
    """Convert [[rotor]] tables; each defines a tendon, or a rotor driven by several joints."""
    for row, where in rows:
        ratios = row.pop("ratios", {})
        given = row | {"freedoms": tuple(ratios), "ratios": tuple(ratios.values())}
        yield RotorData(**given, where=where)


def actuators(rows: Rows) -> tuple[ActuatorData, ...]:
    """Convert the [[actuator]] tables to actuators, in the order of the control inputs."""
    return tuple(ActuatorData(**row, where=where) for row, where in rows)


def keyframes(rows: Rows) -> tuple[KeyframeData, ...]:
    """Convert the [[keyframe]] tables to keyframes."""
    return tuple(KeyframeData(**row, where=where) for row, where in rows)


def fluid(rows: Rows, boxes: Rows, pose: Callable[[Row], Transform], file: str) -> FluidData | None:
    """Return the fluid, with the boxes that approximate the links; None if there is no fluid."""
    found = tuple(BoxData(row["link"], pose(row), row["edges"]) for row, _ in boxes)
    given = tuple(rows)
    if len(given) > 1 or (found and not given):
        problem = (
            f"expected one [[fluid]] table for {len(found)} [[box]] tables, but found {len(given)}"
        )
        raise ModelError("E-TOML-020", problem, "give one [[fluid]] table for all boxes", file=file)
    for row, _ in given:
        wind = Vector(row.get("wind", (0.0, 0.0, 0.0)))
        return FluidData(row["density"], row["viscosity"], wind, found)
    return None


# Writing ----------------------------------------------------------------------------------------


def tables(source: Description) -> Iterator[tuple[str, Iterable[Row]]]:
    """Yield the name and rows of each TOML table to be written."""
    yield "rotor", map(_rotor_row, source.rotors)
    yield (
        "actuator",
        ({"name": x.name, "kind": x.kind} | unusual(x, *_ACTUATOR) for x in source.actuators),
    )
    yield "keyframe", map(_key_row, source.keyframes)
    if source.fluid is not None:
        flow = source.fluid
        wind = flow.wind if any(flow.wind) else None
        yield "fluid", [{"density": flow.density, "viscosity": flow.viscosity, "wind": wind}]
        yield "box", map(_box_row, flow.boxes)


def unusual(part: Any, *keys: str) -> Row:
    """Return the values of the fields `keys` that differ from the default values."""
    usual = {f.name: f.default for f in fields(part) if f.default is not MISSING}
    return {key: getattr(part, key) for key in keys if getattr(part, key) != usual.get(key)}


def _rotor_row(rotor: RotorData) -> Row:
    ratios = dict(zip(rotor.freedoms, rotor.ratios, strict=True))
    path = [[a, r, b, s, factor] for a, r, b, s, factor in rotor.path]
    row = {"name": rotor.name, "ratios": ratios or None, "path": path or None}
    return row | unusual(rotor, "armature", *_TENDON)


def _key_row(key: KeyframeData) -> Row:
    parts = ("positions", "velocities", "controls", "activations")
    return {"name": key.name} | {part: dict(getattr(key, part)) or None for part in parts}


def _box_row(box: BoxData) -> Row:
    turned = Matrix.identity() != box.pose.R
    place = {"position": box.pose.r if any(box.pose.r) else None}
    return (
        {"link": box.link, "edges": box.size}
        | place
        | {"rotation": box.pose.R.rows if turned else None}
    )
