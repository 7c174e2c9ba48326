"""Check and convert arguments, and check the numbers in a mechanism's description.

`model.ranges` defines the valid range of each number. A number in a file that is outside its range
is replaced, and a note reports it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple, TypeVar

import numpy as np

from chasles.errors import ArgumentError, InputError, ModelError
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
from chasles.model.ranges import ANY, LARGEST, RANGES, Range
from chasles.model.shapes import ShapeData


def a_name(what: str, value: Any, part: str = "") -> str:
    """Return the value if it is a string, or raise an error about the argument `what`."""
    if not isinstance(value, str):
        problem = f"{what} must be a name, not {type(value).__name__}"
        raise ArgumentError("E-CALL-110", problem, part=part)
    return value


def some_names(what: str, value: Any, part: str = "") -> list[str]:
    """Convert one name or a sequence of names to a list of names."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Iterable) or isinstance(value, np.ndarray | bytes):
        problem = f"{what} must be a list of names, not {type(value).__name__}"
        raise ArgumentError("E-CALL-111", problem, part=part)
    return [a_name(what, each, part) for each in value]


def a_mapping(what: str, value: Any, part: str = "") -> Mapping[str, Any]:
    """Return the value if it is a mapping with string keys, or raise an error."""
    if not isinstance(value, Mapping):
        problem = f"{what} must be a dictionary, not {type(value).__name__}"
        raise ArgumentError("E-CALL-112", problem, part=part)
    for key in value:
        a_name(f"a key of {what}", key, part)
    return value


def some_numbers(what: str, value: Any, part: str = "") -> np.ndarray:
    """Convert a value to an array of real numbers, keeping floating-point types."""
    try:
        found = np.asarray(value)
        if found.dtype.kind in "fiub" or (found.dtype == object and None not in found.ravel()):
            return found if found.dtype.kind == "f" else found.astype(float)
        problem = f"not {type(value).__name__} with dtype {found.dtype}"
    except (TypeError, ValueError, OverflowError) as error:
        problem = f"not {type(value).__name__}: {error}"
    has_q = isinstance(getattr(value, "q", None), np.ndarray)
    remedy = f"pass the attribute `q` of the {type(value).__name__}" if has_q else ""
    raise ArgumentError(
        "E-CALL-113", f"{what} must be real numbers, {problem:.200}", remedy, part=part
    )


def a_number(what: str, value: Any, part: str = "") -> float:
    """Convert a value to a single real number, or raise an error."""
    found = some_numbers(what, value, part)
    if found.ndim:
        problem = f"{what} must be one number, not an array of shape {found.shape}"
        raise ArgumentError("E-CALL-114", problem, part=part)
    return float(found)


def checked_step(dt: Any, what: str = "linearize: dt") -> float:
    """Convert a time step to float, and check that it is finite and positive."""
    try:
        step = float(dt)
    except (TypeError, ValueError, OverflowError):
        problem = f"{what} must be a number of seconds, not {dt!r}"
        raise ArgumentError("E-MATH-030", problem) from None
    if not (math.isfinite(step) and step > 0.0):
        raise InputError("E-MATH-031", f"{what} must be finite and positive, not {dt!r}")
    return step


def a_flag(what: str, value: Any, part: str = "") -> bool:
    """Convert an argument to bool, or raise an error if the argument has no truth value.

    For example, an array with several entries has no truth value.
    """
    try:
        return bool(value)
    except Exception:
        problem = f"{what} must be True or False, not {type(value).__name__}"
        raise ArgumentError("E-CALL-380", problem, part=part) from None


def is_finite(value: Any) -> bool:
    """Return True if the value is a single finite real number."""
    if type(value) is float:
        return math.isfinite(value)
    try:
        return math.isfinite(a_number("", value))
    except ArgumentError:
        return False


def a_generator(value: Any, part: str = "") -> np.random.Generator:
    """Return a NumPy generator from a generator or a seed."""
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError, OverflowError) as error:
        problem = f"`rng` must be a NumPy generator or a seed, not {type(value).__name__}: {error}"
        raise InputError("E-CALL-115", f"{problem:.200}", part=part) from None


UNHASHABLE = (TypeError, ValueError)
"""Exceptions that `hash` can raise (ValueError for a writable memoryview)."""


def check_hash(function: str, name: str, value: Any) -> None:
    """Raise an error if an option is not hashable and so cannot be a key of the program cache."""
    try:
        hash(value)
    except UNHASHABLE:
        problem = f"{name} must be hashable, not {type(value).__name__}"
        raise ArgumentError("E-CALL-116", problem, part=function) from None


# Ranges ------------------------------------------------------------------------------------------

_FEW_TURNS = 720.0
"""Largest limit that may be an angle in degrees. A joint with larger limits counts as unlimited."""


def like_degrees(lower: float, upper: float) -> bool:
    """Return True if the limits (rad) of a hinge look like degrees: integers above 4 pi."""
    return any(4.0 * math.pi < abs(x) <= _FEW_TURNS and x == int(x) for x in (lower, upper))


def fits(row: Range, x: Any) -> bool:
    """Return True if a number is in a range."""
    if not (row.least < x if row.positive else row.least <= x) or not x <= row.most:
        return False
    return abs(x) <= LARGEST or (row.endless and abs(x) == math.inf)


def _holds(row: Range, value: Any) -> bool:
    """Return True if a number, or every entry of an array, is in a range."""
    try:
        entries = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        return False
    single = isinstance(value, Real) or (isinstance(value, np.ndarray) and not value.ndim)
    right = single if not row.several else not isinstance(value, str)
    return right and all(fits(row, x) for x in np.ravel(entries).tolist())


def settle(owner: Any) -> str:
    """Return an error message for the first out-of-range field of an object, or "".

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
    if not isinstance(value, bool) and _holds(RANGES[key], value):
        return ""
    return f"{key.partition('.')[2]} must be {RANGES[key].wanted}, not {value!r:.60}"


# Mechanisms --------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """Values of one numeric field of a link, joint or other described object (`part`).

    `key` is the field's key in `RANGES`, and `name` is its name in error messages.
    """

    part: Named
    key: str
    name: str
    numbers: tuple[Any, ...]

    @property
    def place(self) -> str:
        """File and line of the described object, or "" if it does not come from a file."""
        where: str = getattr(self.part, "where", "")
        return where

    @property
    def row(self) -> Range:
        return RANGES[self.key]

    @property
    def fits(self) -> bool:
        """Return True if all values are symbols or within the range of the field."""
        return all(isinstance(x, Scalar) or _plain(x, self.row) for x in self.numbers)

    @property
    def finite(self) -> bool:
        """Return True if all values are symbols or finite, as required for loading a file."""
        return all(isinstance(x, Scalar) or _plain(x, ANY) for x in self.numbers)


def _plain(x: Any, row: Range) -> bool:
    return isinstance(x, Real) and not isinstance(x, bool) and fits(row, x)


def entries(source: Description) -> Iterator[Entry]:
    """Yield an `Entry` for each numeric field in a description."""
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
"""Names of the fields that are (lower, upper) intervals, by class."""


def _fields(part: Named, kind: str, names: Iterable[str]) -> Iterator[Entry]:
    """Yield an `Entry` for each named field of a described object."""
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
    """Return True if no position satisfies a joint's limits."""
    lower, upper = joint.limits.lower, joint.limits.upper
    return lower > upper or lower == math.inf or upper == -math.inf


def outside(source: Description) -> Iterator[Entry]:
    """Return the numeric fields whose values are finite but outside their ranges."""
    return (entry for entry in entries(source) if entry.finite and not entry.fits)


# Files -------------------------------------------------------------------------------------------

Kind = TypeVar("Kind", bound=JointData)
Acting = TypeVar("Acting", RotorData, ActuatorData)


def admitted(source: Description) -> Description:
    """Replace numbers outside their ranges in a mechanism from a file, and add notes.

    Negative numbers are replaced by `Range.taken`, and limits in the wrong order are swapped.
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
    """Return replacements for negative numbers by field name, and add a note for each."""
    changed: dict[str, Any] = {}
    for entry in found:
        taken = entry.row.taken
        wrong = [x for x in entry.numbers if x < 0.0] if taken is not None else []
        if wrong:
            what = f"{entry.name} {wrong[0]:g} is negative; taken as {'no limit' if taken else '0'}"
            notes.append(f"{_at(entry.part, source)}: {what}")
            read = tuple(taken if x < 0.0 else x for x in entry.numbers)
            changed[entry.key.partition(".")[2]] = read if len(read) > 1 else read[0]
    return changed


def _admitted(joint: Kind, source: Description, notes: list[str]) -> Kind:
    limits: dict[str, Any] = {name: _bounded(x) for name, x in vars(joint.limits).items()}
    joint = replace(joint, limits=Limits(**limits))
    changed = _taken(_joint_entries(joint), source, notes)
    limits |= {name: changed.pop(name) for name in limits if name in changed}
    faults: list[str] = []
    for name, wrong in (("lower", math.inf), ("upper", -math.inf)):
        if limits[name] == wrong:
            limits[name] = -wrong
            faults.append(f"{name} limit {wrong:g} is ignored; no limit is used")
    if limits["lower"] > limits["upper"]:
        limits["lower"], limits["upper"] = limits["upper"], limits["lower"]
        what = f"lower limit {limits['upper']:g} is above the upper limit {limits['lower']:g}"
        faults.append(f"{what}; the limits are swapped")
    notes += [f"{_at(joint, source)}: {fault}" for fault in faults]
    return replace(joint, limits=Limits(**limits), **changed)


def _bounded(x: float) -> float:
    """Return a limit, or infinity if it exceeds `LARGEST`."""
    return math.copysign(math.inf, x) if abs(x) > LARGEST else x


def _at(part: Named, source: Description) -> str:
    place = getattr(part, "where", "") or source.where
    return f"{place}: {part_of(part)}" if place else part_of(part)
