"""Flags of `chasles simulate` as the values of a scenario."""

from collections.abc import Mapping, Sequence
from typing import Any

from chasles.errors import ModelError


def values(
    top: Mapping[str, Any],
    *,
    start: Mapping[str, Any],
    control: Mapping[str, Any],
    disturbance: str | None,
    feet: Sequence[str],
    ground: str | None,
) -> dict[str, Any]:
    """The values that flags give, as `scenario.with_flags` takes them; those not given are None."""
    tables: dict[str, dict[str, Any]] = {
        "start": {
            "q": coordinates("--q", start["q"]),
            "qd": coordinates("--qd", start["qd"]),
            "random": start["random"],
        },
        "control": {
            "law": control["law"],
            "stiffness": gains("--stiffness", control["stiffness"]),
            "damping": gains("--damping", control["damping"]),
            "target": coordinates("--target", control["target"]),
        },
        "disturbance": {} if disturbance is None else _disturbance(disturbance),
    }
    found = {key: value for key, value in top.items() if value is not None}
    for name, table in tables.items():
        said = {key: value for key, value in table.items() if value is not None}
        found |= {name: said} if said else {}
    return found | ({"contact": contacts(feet, ground or "")} if feet or ground else {})


def coordinates(flag: str, given: Sequence[str] | None) -> Any:
    """All numbers with commas between them, or JOINT=NUMBERS, each flag one joint."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return numbers(flag, given[0])
    found = {}
    for text in given:
        joint, equals, values = text.rpartition("=")
        if not equals:
            problem = f"{text!r} names no joint"
            raise ModelError("E-CLI-013", problem, "give JOINT=NUMBERS, or all numbers", part=flag)
        found[joint] = gains(flag, values)
    return found


def numbers(flag: str, text: str) -> list[float]:
    """Numbers with commas between them."""
    return [_number(flag, word) for word in text.split(",")]


def gains(flag: str, text: str | None) -> float | list[float] | None:
    """One number, or several with commas between them."""
    if text is None:
        return None
    found = numbers(flag, text)
    return found[0] if len(found) == 1 else found


def _disturbance(text: str) -> dict[str, Any]:
    """effort=NUMBER,hold=NUMBER,seed=NUMBER."""
    found = _pairs("--disturbance", text.split(","))
    if "seed" in found and found["seed"] == int(found["seed"]):
        found["seed"] = int(found["seed"])
    return found


def contacts(feet: Sequence[str], ground: str) -> list[dict[str, Any]]:
    """Feet, FRAME or FRAME:RADIUS, on the plane z = 0 under the law LAW,KEY=NUMBER,..."""
    if not feet or not ground:
        problem = "--foot says what touches the ground, --ground by which law"
        raise ModelError("E-CLI-014", problem, "give both")
    kind, *rest = ground.split(",")
    law = {"kind": kind, **_pairs("--ground", rest)}
    rows = []
    for foot in feet:
        frame, colon, radius = foot.rpartition(":")
        body = (
            {"kind": "sphere", "frame": frame, "radius": _number("--foot", radius)}
            if colon
            else {"kind": "point", "frame": foot}
        )
        rows.append({"body": body, "surface": {"kind": "plane"}, "law": law})
    return rows


def _pairs(flag: str, words: Sequence[str]) -> dict[str, Any]:
    """KEY=NUMBER each; friction.stiffness=NUMBER is a number of the table `friction`."""
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ModelError("E-CLI-015", f"{word!r} is no KEY=NUMBER", part=flag)
        table, dot, inner = key.partition(".")
        if dot:
            found.setdefault(table, {})[inner] = _number(flag, value)
        else:
            found[key] = _number(flag, value)
    return found


def _number(flag: str, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        remedy = "write numbers like 0.1 or 2e-3"
        raise ModelError("E-CLI-016", f"{word!r} is no number", remedy, part=flag) from None
