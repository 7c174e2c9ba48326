"""Table of valid ranges for the parameters of robots, contacts and controllers.

Public functions and file readers check these ranges (`model.given`). A number outside its range
raises an error, with two exceptions. A file reader replaces a negative number by `Range.taken`, if
the table defines it, and adds a note. A negative mass is accepted with a note.
"""

import math
from typing import Any, NamedTuple

LARGEST = 1e100
"""Largest allowed absolute value, above which products of lengths and masses may overflow."""


class Range(NamedTuple):
    """Valid range of a number, from `least` to `most`. If `positive`, `least` is excluded.

    Attributes
    ----------
    unit
        Unit of the number, or "" if it has no unit or the unit depends on the joint.
    endless
        True if infinity is allowed, which means no limit.
    taken
        Replacement for a negative number in a file, or None.
    lint
        The check of `chasles lint` that reports a number outside the range.
    several
        True if an array is allowed.
    """

    unit: str = ""
    least: float = -math.inf
    most: float = math.inf
    positive: bool = False
    endless: bool = False
    taken: float | None = None
    lint: str = "refused"
    several: bool = False

    @property
    def wanted(self) -> str:
        """Phrase that describes the valid numbers, for messages."""
        if self.most < math.inf:
            return f"a number from {self.least:g} to {self.most:g}"
        kind = "positive" if self.positive else "zero or a positive"
        given = "a finite number" if self.least < 0.0 else f"{kind} number"
        given = f"a {given}" if given.startswith("positive") else given
        return f"{given}, or inf" if self.endless else given

    @property
    def all_wanted(self) -> str:
        """Description of the valid entries of an array, for error messages."""
        if self.most < math.inf:
            return f"numbers from {self.least:g} to {self.most:g}"
        if self.least < 0.0:
            return "finite numbers, or inf" if self.endless else "finite numbers"
        return "positive numbers" if self.positive else "numbers that are not negative"


ANY = Range()
"""Range of all finite numbers."""

_LOSS: dict[str, Any] = {"least": 0.0, "taken": 0.0, "lint": "negative"}
_BOUND: dict[str, Any] = {"endless": True, "lint": "limit-inverted"}
_MOST: dict[str, Any] = {"least": 0.0, "endless": True, "taken": math.inf, "lint": "powerless"}
_COEFFICIENT, _RESTITUTION = Range("", 0.0), Range("", 0.0, 1.0)
_COEFFICIENTS, _RESTITUTIONS = (x._replace(several=True) for x in (_COEFFICIENT, _RESTITUTION))

RANGES: dict[str, Range] = {
    "link.mass": Range("kg", 0.0, lint="negative-mass"),
    "link.center": Range("m"),
    "link.inertia": Range("kg m2", lint="not-positive"),
    "joint.pose": ANY,
    "joint.child_pose": ANY,
    "joint.axis": ANY,
    "joint.second_axis": ANY,
    "joint.pitch": Range("m/rad"),
    "joint.radius": Range("m"),
    "joint.armature": Range("kg m2 or kg", **_LOSS),
    "joint.damping": Range("N m s/rad or N s/m", **_LOSS),
    "joint.friction": Range("N m or N", **_LOSS),
    "joint.stiffness": Range("N m/rad or N/m"),
    "joint.rest": Range("rad or m"),
    "joint.start": Range("rad or m"),
    "joint.forces": Range("N m or N", endless=True),
    "limits.lower": Range("rad or m", **_BOUND),
    "limits.upper": Range("rad or m", **_BOUND),
    "limits.velocity": Range("rad/s or m/s", **_MOST),
    "limits.effort": Range("N m or N", **_MOST),
    "mimic.multiplier": ANY,
    "mimic.offset": Range("rad or m"),
    "frame.pose": ANY,
    "rotor.armature": Range("kg m2 or kg", **_LOSS),
    "rotor.ratios": ANY,
    "rotor.path": ANY,
    "rotor.offset": Range("rad or m"),
    "rotor.stiffness": Range("N m/rad or N/m"),
    "rotor.rest": Range("rad or m"),
    "rotor.damping": Range("N m s/rad or N s/m", **_LOSS),
    "rotor.forces": Range("N m or N", endless=True),
    "rotor.limits": Range("rad or m", endless=True),
    "rotor.friction": Range("N m or N", **_LOSS),
    "actuator.gear": ANY,
    "actuator.gain": ANY,
    "actuator.bias": ANY,
    "actuator.constant": Range("s", **_LOSS),
    "actuator.rod": Range("m", 0.0),
    "actuator.controls": Range(endless=True),
    "actuator.forces": Range("N m or N", endless=True),
    "actuator.activations": Range(endless=True),
    "link.lifted": ANY,
    "shape.friction": Range("1 or m", **_LOSS),
    "robot.density": Range("kg/m3", **_LOSS),
    "robot.viscosity": Range("Pa s", **_LOSS),
    "robot.wind": Range("m/s"),
    "robot.boxes": Range("m", 0.0),
    "robot.gravity": Range("m/s2"),
    "gear.ratio": ANY,
    "gear.offset": Range("rad or m"),
    "rolling.radius": Range("m", 0.0, positive=True),
    "SoftSurface.stiffness": Range("N/m", 0.0, positive=True),
    "SoftSurface.damping": Range("N s/m", 0.0, positive=True),
    "StandardSolid.series": Range("N/m", 0.0, positive=True),
    "StandardSolid.stiffness": Range("N/m", 0.0, positive=True),
    "StandardSolid.damping": Range("N s/m", 0.0, positive=True),
    "HuntCrossley.stiffness": Range("N/m^n", 0.0, positive=True),
    "HuntCrossley.damping": Range("s/m", 0.0),
    "HuntCrossley.exponent": Range("", 1.0, 10.0),
    "AzadFeatherstone.stiffness": Range("N/m^1.5", 0.0, positive=True),
    "AzadFeatherstone.damping": Range("N s/m^1.5", 0.0),
    "SoftFriction.coefficient": _COEFFICIENT,
    "SoftFriction.stiffness": Range("N/m", 0.0, positive=True),
    "SoftFriction.damping": Range("N s/m", 0.0, positive=True),
    "Rigid.friction": _COEFFICIENT,
    "Rigid.restitution": _RESTITUTION,
    "Rigid.torsion": Range("m", 0.0),
    "Rigid.rolling": Range("m", 0.0),
    "Compliant.stiffness": Range("N/m", 0.0, positive=True),
    "Compliant.relaxation": Range("s", 0.0),
    "Compliant.friction": _COEFFICIENT,
    "Compliant.torsion": Range("m", 0.0),
    "Compliant.rolling": Range("m", 0.0),
    "Moreau.friction": _COEFFICIENT,
    "Moreau.restitution": _RESTITUTION,
    "Newton.friction": _COEFFICIENTS,
    "Newton.restitution": _RESTITUTIONS,
    "Poisson.friction": _COEFFICIENTS,
    "Poisson.restitution": _RESTITUTIONS,
    "Stronge.friction": _COEFFICIENTS,
    "Stronge.restitution": _RESTITUTIONS,
    "Sticking.restitution": _RESTITUTIONS,
    "contact_points.friction": _COEFFICIENT,
    "contact_points.torsion": Range("m", 0.0),
    "PDControl.stiffness": Range("N m/rad or N/m", 0.0, several=True),
    "PDControl.damping": Range("N m s/rad or N s/m", 0.0, several=True),
    "PDControl.target": Range("rad or m", several=True),
    "PDControl.feedforward": Range("N m or N", several=True),
    "GravityCompensation.damping": Range("N m s/rad or N s/m", 0.0, several=True),
    "ComputedTorque.stiffness": Range("1/s2", 0.0, several=True),
    "ComputedTorque.damping": Range("1/s", 0.0, several=True),
    "ComputedTorque.target": Range("rad or m", several=True),
}
"""Valid ranges, keyed by "owner.field"; the owner is a kind of object, a class or a function.

Sizes of shapes are not in this table, because a shape with an invalid size is omitted with a note
instead of raising an error.
"""
