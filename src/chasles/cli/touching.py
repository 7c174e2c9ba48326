"""Contacts of a scenario: shapes and laws by name, made of tables of their numbers."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from chasles.contact import (
    AzadFeatherstone,
    Box,
    Capsule,
    Cylinder,
    HuntCrossley,
    Pair,
    Plane,
    Point,
    Rigid,
    SoftContact,
    SoftFriction,
    SoftSurface,
    Sphere,
)
from chasles.errors import ModelError
from chasles.model.dh_fields import Field, checked, number, numbers
from chasles.model.model import suggest
from chasles.motion.geometry.closed_forms import Place

KINDS: dict[str, dict[str, type]] = {
    "body": {
        "point": Point,
        "sphere": Sphere,
        "capsule": Capsule,
        "box": Box,
        "cylinder": Cylinder,
    },
    "surface": {"plane": Plane, "sphere": Sphere, "capsule": Capsule, "box": Box},
    "law": {
        "rigid": Rigid,
        "soft-surface": SoftSurface,
        "hunt-crossley": HuntCrossley,
        "azad-featherstone": AzadFeatherstone,
    },
}
"""Shapes and laws by name. Soft laws also take friction = {coefficient, stiffness, damping}."""


def _frame(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


VALUES = {
    float: Field(number, "a finite number"),
    Place: Field(numbers(3), "three finite numbers"),
    str | None: Field(_frame, "the name of a frame"),
}
"""What stands in a table for a field of a shape or a law, by its type; others cannot be said."""


def checked_table(what: str, given: Any) -> dict[str, Any]:
    """The checked table of a body, a surface or a law, with its numbers in their own form."""
    if not isinstance(given, Mapping):
        raise ModelError("E-SCENARIO-014", f"{what} is {given!r:.40}", "give {kind = ..., ...}")
    rest, known = dict(given), KINDS[what]
    kind = rest.pop("kind", None)
    if not isinstance(kind, str) or kind not in known:
        problem = f"kind is {kind!r:.40}"
        raise ModelError("E-SCENARIO-015", problem, f"give one of {', '.join(known)}", part=what)
    friction = {}
    if what == "law" and known[kind] is not Rigid and "friction" in rest:
        friction = {"friction": _numbers(SoftFriction, "friction", rest.pop("friction"))}
    table = {"kind": kind} | _numbers(known[kind], f"{what} {kind!r}", rest) | friction
    _made(what, table)  # its class checks what its fields together must be
    return table


def _numbers(cls: Any, what: str, given: Any) -> dict[str, Any]:
    """Values for the fields of a class, each checked."""
    if not isinstance(given, Mapping):
        raise ModelError("E-SCENARIO-016", f"{what} is {given!r:.40}", "give a table in braces")
    known = {f.name: VALUES[f.type] for f in fields(cls) if f.type in VALUES}
    for key in given:
        if key not in known:
            problem = f"unknown key {key!r}"
            raise ModelError("E-SCENARIO-017", problem, suggest(key, known), part=what)
    for field in fields(cls):
        if field.default is MISSING and field.name not in given and field.name != "frame":
            remedy = f"give {known[field.name].wanted}"
            raise ModelError("E-SCENARIO-018", f"it has no {field.name}", remedy, part=what)
    try:
        return {key: checked(known, key, x) for key, x in given.items()}
    except ModelError as error:
        raise error.within(what) from None


def _made(what: str, table: Mapping[str, Any]) -> Any:
    """The shape or law of a checked table; a frame that is not said is the world."""
    rest = {key: x for key, x in table.items() if key != "kind"}
    cls = KINDS[what][table["kind"]]
    if what != "law":
        return cls(**{"frame": None} | rest)
    if cls is Rigid:
        return cls(**rest)
    friction = rest.pop("friction", None)
    return SoftContact(cls(**rest), None if friction is None else SoftFriction(**friction))


def pair(row: Mapping[str, Any]) -> Pair:
    """The pair of a checked row."""
    return Pair(**{what: _made(what, row[what]) for what in KINDS})
