"""Valid ranges for the parameters of robots, contacts and controllers.

All public functions and readers check these ranges. A number that is not finite always raises an
error. A finite number outside its range raises an error in Python; in a file, it is replaced by the
value in the table, and a note reports both numbers. Long because the table and the functions that
apply it to mechanisms and files belong together.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple, TypeVar

import numpy as np

from chasles.errors import ModelError
from chasles.expr import Number, Scalar
from chasles.mathematics.spatial import Transform
from chasles.model.description import (
    Description,
    JointData,
    Limits,
    LinkData,
    Mimic,
    Named,
    faulty,
    part_of,
)
from chasles.model.machine import ActuatorData, FluidData, RotorData
from chasles.model.shapes import ShapeData

LARGEST = 1e100
"""Largest allowed absolute value. Above it, products of lengths and masses may overflow."""


class Range(NamedTuple):
    """Valid range of a number, from `least` to `most`. If `positive`, `least` is excluded.

    unit: unit of the number, or "" if it has no unit or the unit depends on the joint. endless:
    True if infinity is allowed, which means no limit. taken: replacement for a negative number in a
    file, or None. lint: the check of `chasles lint` that reports a number outside the range.
    several: True if an array is allowed.
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
        """Phrase that describes the valid entries of an array, for messages."""
        if self.most < math.inf:
            return f"numbers from {self.least:g} to {self.most:g}"
        if self.least < 0.0:
            return "finite numbers, or inf" if self.endless else "finite numbers"
        return "positive numbers" if self.positive else "numbers that are not negative"

    def fits(self, x: Any) -> bool:
        """Return True if a number is in the range."""
        if not (self.least < x if self.positive else self.least <= x) or not x <= self.most:
            return False
        return abs(x) <= LARGEST or (self.endless and abs(x) == math.inf)

    def holds(self, value: Any) -> bool:
        """Return True if a number, or every entry of an array, is in the range."""
        try:
            entries = np.asarray(value, dtype=float)
        except (TypeError, ValueError, OverflowError):
            return False
        single = isinstance(value, Real) or (isinstance(value, np.ndarray) and not value.ndim)
        fits = single if not self.several else not isinstance(value, str)
        return fits and all(map(self.fits, np.ravel(entries).tolist()))


_ANY = Range()
_LOSS: dict[str, Any] = {"least": 0.0, "taken": 0.0, "lint": "negative"}
_BOUND: dict[str, Any] = {"endless": True, "lint": "limit-inverted"}
_MOST: dict[str, Any] = {"least": 0.0, "endless": True, "taken": math.inf, "lint": "powerless"}
_COEFFICIENT, _RESTITUTION = Range("", 0.0), Range("", 0.0, 1.0)
_COEFFICIENTS, _RESTITUTIONS = (x._replace(several=True) for x in (_COEFFICIENT, _RESTITUTION))

RANGES: dict[str, Range] = {
    "link.mass": Range("kg", 0.0, lint="negative-mass"),
    "link.center": Range("m"),
    "link.inertia": Range("kg m2", lint="not-positive"),
    "joint.pose": _ANY,
    "joint.child_pose": _ANY,
    "joint.axis": _ANY,
    "joint.second_axis": _ANY,
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
    "mimic.multiplier": _ANY,
    "mimic.offset": Range("rad or m"),
    "frame.pose": _ANY,
    "rotor.armature": Range("kg m2 or kg", **_LOSS),
    "rotor.ratios": _ANY,
    "rotor.path": _ANY,
    "rotor.offset": Range("rad or m"),
    "rotor.stiffness": Range("N m/rad or N/m"),
    "rotor.rest": Range("rad or m"),
    "rotor.damping": Range("N m s/rad or N s/m", **_LOSS),
    "rotor.forces": Range("N m or N", endless=True),
    "rotor.limits": Range("rad or m", endless=True),
    "rotor.friction": Range("N m or N", **_LOSS),
    "actuator.gear": _ANY,
    "actuator.gain": _ANY,
    "actuator.bias": _ANY,
    "actuator.constant": Range("s", **_LOSS),
    "actuator.rod": Range("m", 0.0),
    "actuator.controls": Range(endless=True),
    "actuator.forces": Range("N m or N", endless=True),
    "actuator.activations": Range(endless=True),
    "link.lifted": _ANY,
    "shape.friction": Range("1 or m", **_LOSS),
    "robot.density": Range("kg/m3", **_LOSS),
    "robot.viscosity": Range("Pa s", **_LOSS),
    "robot.wind": Range("m/s"),
    "robot.boxes": Range("m", 0.0),
    "robot.gravity": Range("m/s2"),
    "gear.ratio": _ANY,
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
"""Ranges, keyed by "owner.field". The owner is a part, a class or a function.

Sizes of shapes are checked elsewhere: an invalid shape is omitted, because the motion does not
depend on it.
"""


def settle(owner: Any) -> str:
    """Return an error message for the first field of an object that is out of range, or "".

    Single numbers are converted to float, because traced programs compare and divide them.
    """
    for kind in type(owner).__mro__:
        for key, row in RANGES.items():
            part, _, name = key.partition(".")
            if part != kind.__name__:
                continue
            value = getattr(owner, name)
            if fault := value_fault(key, value):
                return fault
            if not row.several and type(value) is not float:
                object.__setattr__(owner, name, np.asarray(value, dtype=float).item())
    return ""


def value_fault(key: str, value: Any) -> str:
    """Return an error message for a value outside its range in `RANGES`, or "" if it is valid."""
    if not isinstance(value, bool) and RANGES[key].holds(value):
        return ""
    return f"{key.partition('.')[2]} must be {RANGES[key].wanted}, not {value!r:.60}"


# Mechanisms --------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """The numbers in one field of a part. `name` is the field's name in messages."""

    part: Named
    key: str
    name: str
    numbers: tuple[Any, ...]

    @property
    def place(self) -> str:
        """File and line of the part, or "" if it does not come from a file."""
        where: str = getattr(self.part, "where", "")
        return where

    @property
    def row(self) -> Range:
        return RANGES[self.key]

    @property
    def fits(self) -> bool:
        """Return True if all numbers are symbols or within their range."""
        return all(isinstance(x, Scalar) or _plain(x, self.row) for x in self.numbers)

    @property
    def finite(self) -> bool:
        """Return True if all numbers are symbols or finite, so that a file can be loaded."""
        return all(isinstance(x, Scalar) or _plain(x, _ANY) for x in self.numbers)


def _plain(x: Any, row: Range) -> bool:
    return isinstance(x, Real) and not isinstance(x, bool) and row.fits(x)


def entries(source: Description) -> Iterator[Entry]:
    """Yield the numbers of a mechanism, one entry per field."""
    yield Entry(source, "robot.gravity", "gravity", tuple(source.gravity))
    for link in source.links:
        yield from _link_entries(link)
    for joint in (*source.joints, *source.loops):
        yield from _joint_entries(joint)
    for rotor in source.rotors:
        yield from _fields(rotor, "rotor", _ROTOR)
        for _, start, _, end, factor in rotor.path:
            yield Entry(rotor, "rotor.path", "path", (*start, *end, factor))
    for actuator in source.actuators:
        yield from _fields(actuator, "actuator", _ACTUATOR)
    paired = (x for pair in source.paired for x in pair)
    for shape in (*source.shapes, *source.planes, *source.fields, *paired):
        yield _friction(source, shape)
    if source.fluid is not None:
        yield from _fluid_entries(source, source.fluid)
        for box in source.fluid.boxes:
            yield Entry(source, "robot.boxes", f"box of {box.link!r}", box.size)
    for frame in source.frames:
        yield Entry(frame, "frame.pose", "pose", _pose(frame.pose))


_JOINT = (
    *("pitch", "radius", "armature", "damping", "friction"),
    *("stiffness", "rest", "start", "forces"),
)
_ROTOR = (
    *("armature", "ratios", "offset", "stiffness", "damping"),
    *("rest", "forces", "limits", "friction"),
)
_ACTUATOR = ("gear", "gain", "bias", "constant", "rod", "controls", "forces", "activations")
_INTERVALS: dict[type, tuple[str, ...]] = {
    RotorData: ("rest", "forces", "limits"),
    ActuatorData: ("controls", "forces", "activations"),
}
"""Fields that have a lower and an upper limit."""


def _fields(part: Named, kind: str, names: Iterable[str]) -> Iterator[Entry]:
    """Yield an entry for each named field of a part."""
    for name in names:
        found = getattr(part, name)
        yield Entry(part, f"{kind}.{name}", name, found if isinstance(found, tuple) else (found,))


def _friction(source: Description, shape: ShapeData) -> Entry:
    name = f"friction of a shape on {shape.link!r}"
    return Entry(source, "shape.friction", name, shape.friction or ())


def _fluid_entries(source: Description, fluid: FluidData) -> Iterator[Entry]:
    for name in ("density", "viscosity", "wind"):
        numbers = getattr(fluid, name)
        given = tuple(numbers) if name == "wind" else (numbers,)
        yield Entry(source, f"robot.{name}", name, given)


def _link_entries(link: LinkData) -> Iterator[Entry]:
    yield Entry(link, "link.mass", "mass", (link.inertia.m,))
    yield Entry(link, "link.center", "mass times center", tuple(link.inertia.h))
    yield Entry(link, "link.inertia", "inertia", tuple(link.inertia.I))
    yield Entry(link, "link.lifted", "lifted", (link.lifted,))


def _joint_entries(joint: JointData) -> Iterator[Entry]:
    for name in ("pose", "child_pose"):
        yield Entry(joint, f"joint.{name}", name, _pose(getattr(joint, name)))
    for name in ("axis", "second_axis"):
        yield Entry(joint, f"joint.{name}", name, tuple(getattr(joint, name) or ()))
    yield from _fields(joint, "joint", _JOINT)
    for name in Limits.__match_args__:
        yield Entry(joint, f"limits.{name}", f"{name} limit", (getattr(joint.limits, name),))
    for name in Mimic.__match_args__[1:] if joint.mimic else ():
        yield Entry(joint, f"mimic.{name}", f"mimic {name}", (getattr(joint.mimic, name),))


def _pose(pose: Transform) -> tuple[Number, ...]:
    return (*pose.r, *(x for row in pose.R.rows for x in row))


def check_numbers(source: Description) -> None:
    """Raise an error for numbers outside their ranges, except negative masses.

    Negative masses are reported as notes, because a dynamically equivalent robot
    (`Robot.simplified`) may have them.
    """
    for entry in entries(source):
        if not entry.fits and not (entry.row.lint == "negative-mass" and entry.finite):
            raise _outside(entry)
    for joint in (*source.joints, *source.loops):
        if reversed_limits(joint):
            ends = f"lower limit {joint.limits.lower:g}, upper limit {joint.limits.upper:g}"
            raise faulty("E-MODEL-054", joint, f"no position satisfies {ends}", "swap the limits")
    bounded: tuple[RotorData | ActuatorData, ...] = (*source.rotors, *source.actuators)
    for part in bounded:
        for name in _INTERVALS[type(part)]:
            ends = getattr(part, name)
            if list(ends) != sorted(ends):
                problem = f"the {name} range is in the wrong order: {ends[0]:g} to {ends[-1]:g}"
                raise faulty("E-MODEL-411", part, problem, "swap the two numbers")


def _outside(entry: Entry) -> ModelError:
    wrong = next(x for x in entry.numbers if not isinstance(x, Scalar) and not _plain(x, entry.row))
    has = "is" if len(entry.numbers) == 1 else "has the entry"
    wanted = entry.row.wanted if len(entry.numbers) == 1 else entry.row.all_wanted
    problem = f"its {entry.name} {has} {wrong!r:.60}"
    return faulty("E-MODEL-041", entry.part, problem, f"give {wanted}")


def reversed_limits(joint: JointData) -> bool:
    """Return True if no position satisfies the limits of a joint."""
    lower, upper = joint.limits.lower, joint.limits.upper
    return lower > upper or lower == math.inf or upper == -math.inf


def outside(source: Description) -> Iterator[Entry]:
    """Return the fields whose numbers are finite but outside their ranges."""
    return (entry for entry in entries(source) if entry.finite and not entry.fits)


# Files -------------------------------------------------------------------------------------------

Kind = TypeVar("Kind", bound=JointData)
Acting = TypeVar("Acting", RotorData, ActuatorData)


def admitted(source: Description) -> Description:
    """Replace numbers outside their ranges in a mechanism from a file, and add notes.

    Negative numbers are replaced by `Range.taken`, and limits in the wrong order are exchanged.
    Numbers that are not finite raise an error.
    """
    notes: list[str] = []

    def joint_of(joint: Kind) -> Kind:
        return _admitted(joint, source, notes)

    def acting(part: Acting, kind: str, names: Iterable[str]) -> Acting:
        return replace(part, **_taken(_fields(part, kind, names), source, notes))

    def shape_of(shape: ShapeData) -> ShapeData:
        return replace(shape, **_taken([_friction(source, shape)], source, notes))

    fluid = source.fluid
    if fluid is not None:
        fluid = replace(fluid, **_taken(_fluid_entries(source, fluid), source, notes))
    made = replace(
        source,
        joints=tuple(map(joint_of, source.joints)),
        loops=tuple(map(joint_of, source.loops)),
        rotors=tuple(acting(x, "rotor", _ROTOR) for x in source.rotors),
        actuators=tuple(acting(x, "actuator", _ACTUATOR) for x in source.actuators),
        shapes=tuple(map(shape_of, source.shapes)),
        planes=tuple(map(shape_of, source.planes)),
        fields=tuple(replace(x, friction=shape_of(x).friction) for x in source.fields),
        paired=tuple((shape_of(a), shape_of(b)) for a, b in source.paired),
        fluid=fluid,
    )
    made = replace(made, notes=(*source.notes, *dict.fromkeys(notes)))
    check_numbers(made)
    return made


def _taken(found: Iterable[Entry], source: Description, notes: list[str]) -> dict[str, Any]:
    """Return replacements for fields with negative numbers, and add a note for each field."""
    changed: dict[str, Any] = {}
    for entry in found:
        taken = entry.row.taken
        wrong = [x for x in entry.numbers if x < 0.0] if taken is not None else []
        if wrong:
            what = f"{entry.name} {wrong[0]:g} is negative"
            notes.append(f"{_at(entry, source)}: {what}; taken as {'no limit' if taken else '0'}")
            read = tuple(taken if x < 0.0 else x for x in entry.numbers)
            changed[entry.key.partition(".")[2]] = read if len(read) > 1 else read[0]
    return changed


def _admitted(joint: Kind, source: Description, notes: list[str]) -> Kind:
    limits: dict[str, Any] = {name: _bounded(x) for name, x in vars(joint.limits).items()}
    joint = replace(joint, limits=Limits(**limits))
    changed = _taken(_joint_entries(joint), source, notes)
    limits |= {name: changed.pop(name) for name in limits if name in changed}
    at = _at(Entry(joint, "", "", ()), source)
    for name, wrong in (("lower", math.inf), ("upper", -math.inf)):
        if limits[name] == wrong:
            limits[name] = -wrong
            notes.append(f"{at}: {name} limit {wrong:g} is ignored; no limit is used")
    if limits["lower"] > limits["upper"]:
        limits["lower"], limits["upper"] = limits["upper"], limits["lower"]
        what = f"lower limit {limits['upper']:g} is above the upper limit {limits['lower']:g}"
        notes.append(f"{at}: {what}; exchanged")
    return replace(joint, limits=Limits(**limits), **changed)


def _bounded(x: float) -> float:
    """Return a limit, or infinity if it exceeds `LARGEST`."""
    return math.copysign(math.inf, x) if abs(x) > LARGEST else x


def _at(entry: Entry, source: Description) -> str:
    place, part = entry.place or source.where, part_of(entry.part)
    return f"{place}: {part}" if place else part
