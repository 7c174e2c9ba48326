"""Keys of scenario files, with their allowed values and command-line flags."""

from collections.abc import Callable, Mapping
from typing import Any

from chasles import contact
from chasles.model.dh_fields import Field, choice, number, numbers
from chasles.motion.drivers.stepping import TIME_STEPPING
from chasles.motion.geometry.closed_forms import Place
from chasles.rollouts import ComputedTorque, GravityCompensation, PDControl
from chasles.simulate import INTEGRATORS

CONTROLS: dict[str, Any] = {
    "pd": PDControl,
    "gravity": GravityCompensation,
    "computed-torque": ComputedTorque,
}
"""Controller classes by name."""

ACTUATORS = "actuators"
"""Name of the control law for constant actuator controls; `ACTUATED` lists its [control] keys."""

ACTUATED = ("ctrl", "act")

METHODS = (*INTEGRATORS, TIME_STEPPING)
"""Names of all integrators."""

LAWS = (*CONTROLS, ACTUATORS, "none")

_SOLIDS = {"sphere": contact.Sphere, "capsule": contact.Capsule, "box": contact.Box}

KINDS: dict[str, dict[str, type]] = {
    "body": {"point": contact.Point, **_SOLIDS, "cylinder": contact.Cylinder},
    "surface": {"plane": contact.Plane, **_SOLIDS},
    "law": {
        "rigid": contact.Rigid,
        "soft-surface": contact.SoftSurface,
        "standard-solid": contact.StandardSolid,
        "hunt-crossley": contact.HuntCrossley,
        "azad-featherstone": contact.AzadFeatherstone,
    },
}
"""Classes of shapes and contact laws, by key of a `[[contact]]` table and by `kind`.

Soft laws also take friction = {coefficient, stiffness, damping}.
"""

OLD_GAINS = {"kp": "stiffness", "kd": "damping"}
"""Gain names in older scenarios, mapped to the current names."""


def _positive(value: Any) -> float:
    if not (x := number(value)) > 0.0:
        raise ValueError
    return x


def _only(kind: type, suits: Callable[[Any], bool] = lambda value: True) -> Callable[[Any], Any]:
    """Return a converter that accepts values of one type, but only if `suits(value)` is True."""

    def convert(value: Any) -> Any:
        if type(value) is not kind or not suits(value):
            raise TypeError
        return value

    return convert


def _one_or_more(value: Any) -> float | tuple[float, ...]:
    return tuple(map(number, value)) if isinstance(value, list | tuple) else number(value)


def _coordinates(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {joint: _one_or_more(x) for joint, x in value.items()}
    return tuple(map(number, value))


_POSITIVE, _TRUTH = Field(_positive, "a positive number"), Field(_only(bool), "true or false")

_GAINS = Field(_one_or_more, "a finite number, or one per degree of freedom")

_COORDINATES = Field(_coordinates, "all numbers, or {joint = number}")

_SEED = Field(_only(int, lambda x: 0 <= x < 2**63), "a non-negative integer")

TOP = {
    "robot": Field(_only(str, bool), "a file or the name of a robot"),
    "floating": _TRUTH,
    "mimic": _TRUTH,
    "snap": _TRUTH,
    "strict": _TRUTH,
    "arguments": Field(
        _only(dict, lambda x: all(type(t) is str and t for t in x.values())),
        "{name = text} for a .xacro file",
    ),
    "duration": _POSITIVE,
    "dt": _POSITIVE,
    "integrator": choice(*METHODS),
    "rtol": _POSITIVE,
    "atol": _POSITIVE,
    "every": Field(_only(int, lambda x: 1 <= x < 2**63), "a positive integer"),
    "dissipation": _TRUTH,
    "limits": _TRUTH,
    "contacts": choice("file", "none"),
    "ground": Field(_only(dict), "{kind = 'rigid', ...}"),
}

TABLES = {
    "start": {
        "q": _COORDINATES,
        "qd": _COORDINATES,
        "random": _SEED,
        "keyframe": Field(_only(str, bool), "the name of a keyframe of the robot"),
    },
    "control": {
        "law": choice(*LAWS),
        **{key: _GAINS for names in OLD_GAINS.items() for key in reversed(names)},
        "target": _COORDINATES,
        "follow": Field(_only(str, bool), "the path of a motion file"),
        "feedforward": _GAINS,
        **dict.fromkeys(ACTUATED, Field(_coordinates, "all numbers, or {actuator = number}")),
    },
    "disturbance": {"effort": _GAINS, "hold": _POSITIVE, "seed": _SEED},
}

CONTACT = dict.fromkeys(KINDS, Field(_only(dict), "an inline table in braces"))

VALUES = {
    float: Field(number, "a finite number"),
    Place: Field(numbers(3), "three finite numbers"),
    str | None: Field(_only(str), "the name of a frame"),
}
"""Checks for the values of shape and contact-law fields, keyed by the type of the field.

A scenario cannot set fields of other types.
"""

DEFAULTS = {"duration": 1.0}
"""Default values of a scenario's top-level keys."""

FLAGS: dict[tuple[str | int, ...], str] = {
    ("robot",): "robot",
    ("control", "law"): "--control",
    ("contact",): "--foot",
    ("arguments",): "--argument",
}
"""Command-line arguments for scenario keys with a flag other than "--" plus the key."""


def flag(*path: str | int) -> str:
    """Return the flag for a scenario value, given its path of keys."""
    known = FLAGS.get(path) or FLAGS.get(path[:1])
    return known or (f"--{path[0]}" if path[0] == "disturbance" else f"--{path[-1]}")
