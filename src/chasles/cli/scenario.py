"""Scenarios for `chasles simulate`, read from a TOML file or from flags.

Only the keys `format = "scenario"` and `robot` are required. Units are SI units and radians.

- top level: robot (an absolute path, a path relative to the scenario's folder, or the name of a
  built-in or installed robot); floating, mimic, snap, strict, arguments (as in `chasles.load`);
  duration, dt, integrator, rtol, atol, every, dissipation, limits (as in `chasles.simulate`);
  contacts ("file" for the shapes and planes in the robot's file, or "none"); ground ({kind =
  "rigid", ...}: contact law between the plane z = 0 and all collision shapes in the file). By
  default, contacts is "file" if the robot's file has a ground plane but no loops or couplings, and
  the scenario does not set the integrator.
- [start]: q and qd, each as a list of all coordinates or as {joint = number}. By default q is the
  neutral position, or the first position of a reference motion; random (a seed) sets q to a random
  configuration, and keyframe (a name) sets q, qd, controls and activations. The dependent
  coordinates of closed loops are computed from the independent coordinates. A floating base without
  a given position is raised if it would penetrate a plane of `ground` or [[contact]].
- [control]: law ("pd", "gravity", "computed-torque", "actuators" or "none"), stiffness, damping
  (a scalar, or one value per degree of freedom), target (like q; by default the initial position)
  or follow (the file of a reference motion), feedforward. With the law "pd", scalars do not apply
  to free joints, such as a floating base. The law "actuators" takes ctrl (constant
  controls) and act (initial activations), each as a list of all values or as {actuator = number}.
- [disturbance]: effort (standard deviation of random joint torques, in N m or N: a scalar, or one
  value per degree of freedom), hold (duration of each torque, in s), seed.
- [[contact]]: body and surface, {kind = ..., frame = ...} with the parameters of the shape; law,
  {kind = ...} with the parameters of the law. `KINDS` lists all kinds.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any

from chasles import contact
from chasles.cli.scenario_fields import (
    ACTUATED,
    ACTUATORS,
    CONTACT,
    CONTROLS,
    DEFAULTS,
    KINDS,
    OLD_GAINS,
    TABLES,
    TOP,
    VALUES,
    flag,
)
from chasles.errors import InputError, ModelError
from chasles.formats import is_name
from chasles.formats.toml_file import TomlFile, word
from chasles.model.dh_fields import Field, checked
from chasles.names import one_of, suggest
from chasles.robots import ROBOTS
from chasles.writing import store


@dataclass(frozen=True)
class Scenario:
    """Validated values of a scenario.

    `top` contains the top-level values, `tables` the tables listed in `TABLES`, and `contacts` the
    `[[contact]]` tables. `placed(error, *path)` returns the error with the location (a line of the
    file, or a flag) of the value at `path`.
    """

    top: dict[str, Any]
    tables: dict[str, dict[str, Any]]
    contacts: tuple[dict[str, Any], ...]
    placed: Callable[..., Any]

    def error(self, code: str, problem: str, remedy: str, *path: str | int) -> ModelError:
        """Return an error with the location of the invalid value."""
        return self.placed(ModelError(code, problem, remedy), *path)

    @contextmanager
    def blamed(self, *path: str | int) -> Iterator[None]:
        """Add the location of a value to errors raised in the body of the `with` statement."""
        try:
            yield
        except InputError as error:
            raise self.placed(error.at(problem=error.fault), *path) from None

    def text(self, folder: Path) -> str:
        """Return the scenario as TOML text, with the robot's path relative to `folder`."""
        robot = Path(self.top["robot"])
        if os.path.exists(robot):
            robot = Path(os.path.relpath(robot, folder))
        lines = ["# Scenario for chasles simulate; SI units, rad", 'format = "scenario"']
        lines += _lines(TOP, self.top | {"robot": robot.as_posix()})
        for name, known in TABLES.items():
            if self.tables[name]:
                lines += ["", f"[{name}]", *_lines(known, self.tables[name])]
        for row in self.contacts:
            lines += ["", "[[contact]]", *_lines(CONTACT, row)]
        return "\n".join(lines) + "\n"

    def digest(self) -> str:
        """Return the SHA-256 digest of the scenario without the robot, which has its own digest."""
        text = replace(self, top=self.top | {"robot": ""}).text(Path())
        return hashlib.sha256(text.encode()).hexdigest()

    def write(self, path: Path) -> None:
        """Write the scenario to a file atomically."""
        store(path, self.text(Path(path).absolute().parent))


def _lines(known: Mapping[str, Field], values: Mapping[str, Any]) -> list[str]:
    written = {key: values[key] for key in known if key in values}
    return [f"{key} = {x if type(x) is int else word(x)}" for key, x in written.items()]


# Reading ---------------------------------------------------------------------------------------


def is_scenario(target: str) -> bool:
    """Return True if a command's argument is the path of a scenario file."""
    if Path(target).suffix.lower() != ".toml" or not os.path.isfile(target):
        return False
    return TomlFile(target, snap=False).data.get("format") == "scenario"


@contextmanager
def _own_code() -> Iterator[None]:
    """Replace the general error code for invalid values with the code for scenarios."""
    try:
        yield
    except ModelError as error:
        if error.code != "E-DH-006":
            raise
        told = ModelError("E-SCENARIO-019", error.problem, error.remedy)
        raise told.at(part=error.part, file=error.place) from None


@_own_code()
def read(path: str | os.PathLike[str]) -> Scenario:
    """Read a scenario from a file."""
    source = TomlFile(path, snap=False)
    if source.data.get("format") != "scenario":
        problem = "this file is not a scenario"
        raise source.error("E-SCENARIO-001", problem, 'add format = "scenario"', "format")
    if "units" in source.data:
        problem = "scenarios use SI units and radians"
        raise source.error("E-SCENARIO-002", problem, "omit 'units'", "units")
    top = source.top(TOP, {**TABLES, "contact": CONTACT})
    if "robot" not in top:
        problem = "the scenario does not name a robot"
        raise source.error("E-SCENARIO-003", problem, "give robot = ...", "format")
    beside = Path(path).parent / top["robot"]
    named = top["robot"].partition(":")[0] in ROBOTS or is_name(top["robot"])
    if os.path.exists(beside) or not named:
        top["robot"] = str(beside)
    tables = {name: source.table(name, known) for name, known in TABLES.items()}
    return _consistent(top, tables, source.rows("contact", CONTACT), source.placed)


@_own_code()
def with_flags(base: Scenario | None, given: Mapping[str, Any]) -> Scenario:
    """Return a scenario with values from flags, which override the values of `base`.

    `given` contains the values of the flags, structured like a scenario file. If a flag sets q,
    random or keyframe, the file's values of all three are ignored. Contacts from flags replace the
    file's contacts.
    """
    top, tables, rows = (base.top, base.tables, list(base.contacts)) if base else ({}, {}, [])
    used: set[tuple[str | int, ...]] = {(n, key) for n in TABLES for key in given.get(n, {})}
    used |= {(key,) for key in given if key in TOP or key == "contact"}
    # If a table is defined by flags alone, its errors name the flag instead of the file.
    used |= {(n,) for n in TABLES if n in given and not tables.get(n)}

    def placed(error: ModelError, *path: str | int) -> Any:
        if base is None or {path[:1], path[:2]} & used:
            return error.at(part=flag(*path), file=None)
        return base.placed(error, *path)

    def value(known: dict[str, Field], key: str, raw: Any, *path: str) -> Any:
        try:
            return checked(known, key, raw)
        except ModelError as error:
            raise error.within(flag(*path)) from None

    merged = {}
    for name, known in TABLES.items():
        new = {k: value(known, k, raw, name, k) for k, raw in given.get(name, {}).items()}
        old = tables.get(name, {})
        anew = name == "start" and {"q", "random", "keyframe"} & set(new)
        merged[name] = {k: x for k, x in old.items() if not anew or k == "qd"} | new
    replaced = {"ground", "contact"} & set(given)
    top = {k: x for k, x in top.items() if k != "ground" or not replaced}
    top |= {k: value(TOP, k, raw, k) for k, raw in given.items() if k in TOP}
    return _consistent(top, merged, given.get("contact", [] if replaced else rows), placed)


def _consistent(
    top: dict[str, Any],
    tables: dict[str, dict[str, Any]],
    rows: list[dict[str, Any]],
    placed: Callable[..., Any],
) -> Scenario:
    """Return a scenario after checking its contacts and the consistency of its values."""
    made = Scenario(DEFAULTS | top, tables, (), placed)
    control, disturbance = tables["control"], tables["disturbance"]
    if control:
        _check_control(made, control)
    if "keyframe" in tables["start"] and "random" in tables["start"]:
        problem, remedy = "`keyframe` and `random` cannot be combined", "omit one of them"
        raise made.error("E-SCENARIO-033", problem, remedy, "start", "keyframe")
    if disturbance and control.get("law") == ACTUATORS:
        problem = f"a disturbance cannot be combined with law {ACTUATORS!r}"
        raise made.error("E-SCENARIO-034", problem, "omit one of them", "disturbance")
    if disturbance and set(disturbance) != set(TABLES["disturbance"]):
        lacking = ", ".join(key for key in TABLES["disturbance"] if key not in disturbance)
        raise made.error("E-SCENARIO-004", f"the disturbance lacks {lacking}", "", "disturbance")
    _check_ground(made, rows)
    return replace(made, contacts=tuple(_checked_row(made, i, row) for i, row in enumerate(rows)))


def _check_ground(made: Scenario, rows: list[dict[str, Any]]) -> None:
    """Raise an error if the ground is not rigid or is combined with other contacts."""
    if "ground" not in made.top:
        return
    if rows or "contacts" in made.top:
        problem = "`ground` cannot be combined with other contact settings"
        raise made.error("E-SCENARIO-038", problem, "remove one of them", "ground")
    with made.blamed("ground"):
        law = checked_table("law", made.top["ground"])
    if law["kind"] != "rigid":
        problem = f"law {law['kind']!r} requires contact frames, but none were given"
        remedy = "name the frames with --foot FRAME:RADIUS or [[contact]] tables, or use 'rigid'"
        raise made.error("E-SCENARIO-039", problem, remedy, "ground")


def _checked_row(made: Scenario, i: int, row: Mapping[str, Any]) -> dict[str, Any]:
    """Check the shapes and the contact law in a [[contact]] table, and return them."""
    values = {}
    for key in KINDS:
        if key not in row:
            remedy = f"give {key} = {{kind = ...}}"
            raise made.error("E-SCENARIO-005", f"the contact has no {key}", remedy, "contact", i)
        with made.blamed("contact", i, key):
            values[key] = checked_table(key, row[key])
    return values


GAINS = "--stiffness 100 --damping 20"
EXAMPLE = f"--control computed-torque {GAINS}"
"""Example of controller options in error messages: a controller that holds a position."""


def _check_control(made: Scenario, control: Mapping[str, Any]) -> None:
    """Raise an error if a control law is missing, or has missing or unknown parameters."""
    if "law" not in control:
        remedy = f"give one of {', '.join(CONTROLS)} with its gains, for example: {EXAMPLE}"
        raise made.error("E-SCENARIO-006", "the control has no law", remedy, "control", "law")
    law = control["law"]
    known = {field.name for field in fields(CONTROLS[law])} if law in CONTROLS else set()
    known |= set(ACTUATED) if law == ACTUATORS else set()
    for key in control:
        name = "target" if key == "follow" else OLD_GAINS.get(key, key)
        if key != "law" and name not in known:
            problem = f"{key} is not a parameter of law {law!r}"
            raise made.error("E-SCENARIO-007", problem, "", "control", key)
    if "target" in control and "follow" in control:
        problem, remedy = "`target` and `follow` cannot be combined", "omit one of them"
        raise made.error("E-SCENARIO-032", problem, remedy, "control", "follow")
    needed = [key for key in OLD_GAINS.values() if key in known and law != "gravity"]
    given = {OLD_GAINS.get(key, key) for key in control}
    for key in needed:
        if key not in given:
            problem = f"law {law!r} needs {' and '.join(needed)}"
            remedy = f"give both gains, for example {GAINS}"
            raise made.error("E-SCENARIO-008", problem, remedy, "control", "law")


# Contacts --------------------------------------------------------------------------------------


def checked_table(what: str, given: Any) -> dict[str, Any]:
    """Check the table of a contact's body, surface or law, and convert its values."""
    if not isinstance(given, Mapping):
        problem = f"{what} is not a table: {given!r:.40}"
        raise ModelError("E-SCENARIO-014", problem, "give a table such as {kind = ..., ...}")
    rest, known = dict(given), KINDS[what]
    kind = rest.pop("kind", None)
    if not isinstance(kind, str) or kind not in known:
        problem = f"unknown kind {kind!r:.40}"
        raise ModelError("E-SCENARIO-015", problem, one_of(kind, known), part=what)
    friction = {}
    if what == "law" and known[kind] is not contact.Rigid and "friction" in rest:
        friction = {"friction": _numbers(contact.SoftFriction, "friction", rest.pop("friction"))}
    table = {"kind": kind} | _numbers(known[kind], f"{what} {kind!r}", rest) | friction
    _made(what, table)  # raises an error if a value is invalid
    return table


def _numbers(cls: Any, what: str, given: Any) -> dict[str, Any]:
    """Check a table of values for the fields of the class `cls`, and convert the values."""
    if not isinstance(given, Mapping):
        raise ModelError(
            "E-SCENARIO-016",
            f"{what} is not a table: {given!r:.40}",
            "give an inline table in braces",
        )
    known = {f.name: VALUES[f.type] for f in fields(cls) if f.type in VALUES}
    for key in given:
        if key not in known:
            problem = f"unknown key {key!r}"
            raise ModelError("E-SCENARIO-017", problem, suggest(key, known), part=what)
    for field in fields(cls):
        if field.default is MISSING and field.name not in given and field.name != "frame":
            remedy = f"give {known[field.name].wanted}"
            raise ModelError("E-SCENARIO-018", f"the table has no {field.name}", remedy, part=what)
    try:
        return {key: checked(known, key, x) for key, x in given.items()}
    except ModelError as error:
        raise error.within(what) from None


def _made(what: str, table: Mapping[str, Any]) -> Any:
    """Build a contact law or a shape (by default fixed in the world) from a table."""
    rest = {key: x for key, x in table.items() if key != "kind"}
    cls = KINDS[what][table["kind"]]
    if what != "law":
        return cls(**{"frame": None} | rest)
    if cls is contact.Rigid:
        return cls(**rest)
    friction = rest.pop("friction", None)
    return contact.SoftContact(
        cls(**rest), None if friction is None else contact.SoftFriction(**friction)
    )


def pair(row: Mapping[str, Any]) -> contact.Pair:
    """Build a contact pair from a validated `[[contact]]` table."""
    return contact.Pair(**{what: _made(what, row[what]) for what in KINDS})
