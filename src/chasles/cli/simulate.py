"""Implementation of `chasles simulate`: build a scenario from flags, and simulate it in chunks."""

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chasles.cli.manifest import SCENARIO
from chasles.cli.recording import Recording
from chasles.cli.scenario import Scenario, is_scenario, read, with_flags
from chasles.cli.scene import Scene, made
from chasles.cli.wording import is_lossy, outside_limits
from chasles.errors import ChaslesError, InputError, ModelError
from chasles.model import WORLD
from chasles.model.notes import grouped
from chasles.motion.contact.points import lifted
from chasles.rollouts import Trajectory

PIECE = 100
"""Number of steps between updates of the progress bar and checks for signals."""

MOST_NOTES = 3
"""Maximum number of printed notes from checks of the model."""

MOST_NAMED = 5
"""Maximum number of links named in a note."""

PENETRATES = "E-MOTION-059"
"""Code of the error for bodies that penetrate each other in the initial state."""

EXPLODED = 1e3
"""Maximum plausible ratio of the change in total energy to the energy of the motion.

The energy of the motion is the initial kinetic energy plus the range of the potential energy.
"""

ROUNDING = 1e-9
"""Bound on the rounding errors of the potential energy, relative to its value."""


@dataclass(frozen=True)
class Task:
    """A simulation to run, and its output folder.

    Attributes
    ----------
    target
        A robot, a scenario file, or "" to continue the simulation in the folder.
    given
        Values of flags, which override the scenario.
    save
        Wall-clock time (s) between part files.
    table
        Table to write all states to; None for no table.
    trust
        Allow a xacro file to run Python.
    """

    target: str
    given: Mapping[str, Any]
    folder: Path
    resume: bool = False
    overwrite: bool = False
    save: float = 5.0
    table: Path | None = None
    trust: bool = False

    def scenario(self) -> Scenario:
        """Return the scenario to simulate."""
        if self.target and not is_scenario(self.target):
            return with_flags(None, {"robot": self.target, **self.given})
        if not self.target and not self.resume:
            problem = "give a robot or a scenario to simulate"
            raise ModelError("E-CLI-038", problem, "try: chasles simulate puma560")
        if not self.target and not (self.folder / SCENARIO).is_file():
            problem = "the folder has no simulation to continue"
            raise ModelError("E-CLI-039", problem, file=self.folder)
        return with_flags(read(self.target or self.folder / SCENARIO), self.given)

    def inputs(self, scenario: Scenario) -> list[str]:
        """Return the paths of the input files: the scenario and the robot."""
        return [name for name in (self.target, scenario.top["robot"]) if Path(name).is_file()]

    def recording(self, told: Callable[[str], object] = lambda words: None) -> Recording:
        """Prepare the output folder for a new or resumed simulation.

        `told` is called with a description of each step that may take long.
        """
        if self.resume and self.overwrite:
            problem = "--resume and --overwrite cannot be combined"
            raise ModelError(
                "E-CLI-040", problem, "use --resume to continue, or --overwrite to start again"
            )
        scene = made(self.scenario(), trust=self.trust)
        if scene.stepped:
            told(f"compiling the step for {scene.pairs} contact pairs")
        first = _first(scene)  # check the scenario before any file is written
        recording = Recording(self.folder, scene)
        if self.resume:
            recording.go_on()
        else:
            recording.begin(overwrite=self.overwrite, inputs=self.inputs(scene.scenario))
            recording.notes += _notes(scene, first)
        return recording


def _first(scene: Scene) -> Trajectory:
    """Simulate the first step; on initial penetration, raise an error with a remedy."""
    try:
        return scene.simulate(1)
    except InputError as error:
        if error.code != PENETRATES:
            raise
        ways = [remedy for _, remedy in _sunken(scene)]
        raise error.at(remedy="; ".join(ways) or error.remedy) from None


def _notes(scene: Scene, first: Trajectory) -> list[str]:
    """Return notes about the initial state and the contacts.

    `first` is the trajectory of the first step.
    """
    notes = _doubts(scene) + _shapeless(scene)
    outside = outside_limits(scene.robot, scene.q, "the initial state")
    notes += [f"{outside}; set another with --q"] if outside else []
    if scene.contacts == "file" and "contacts" not in scene.scenario.top:
        notes.append(
            "contacts, limits and damping from the file are active; --contacts none disables them"
        )
    ignored = is_lossy(scene.robot)
    if ignored and not (scene.scenario.top.get("dissipation") or first.unsolved is not None):
        notes.append("joint damping and friction are ignored; --dissipation includes them")
    for name, height in scene.raised.items():
        base = "the base" if len(scene.raised) == 1 else f"the link of joint {name!r}"
        notes.append(f"{base} was raised by {height:.3g} m to stand on the ground")
    return notes + [f"{problem}; {remedy}" for problem, remedy in _sunken(scene)]


def _doubts(scene: Scene) -> list[str]:
    """Return the notes from checks of the model, at most `MOST_NOTES`."""
    model = scene.robot.model
    found = grouped(model.notes[len(model.source.notes) :])  # omit notes from reading the file
    more = len(found) - MOST_NOTES
    rest = f"{more} more notes about the robot; `chasles info` shows them"
    return [*found[:MOST_NOTES], *([rest] if more > 0 else [])]


def _shapeless(scene: Scene) -> list[str]:
    """Return a note about moving links without shapes, if collision shapes define the contacts."""
    source, frames = scene.robot.model.source, scene.robot.model.frames
    if "ground" not in scene.scenario.top and scene.contacts != "file":
        return []
    shaped = {shape.link for shape in source.shapes if shape.collides}
    moving = [link for link in source.links if frames[link.name].body != WORLD]
    found = [repr(x.name) for x in moving if x.inertia.m and x.name not in shaped]
    if not found:
        return []
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return [f"links without collision shapes touch nothing: {', '.join(found[:MOST_NAMED])}{more}"]


def _sunken(scene: Scene) -> list[tuple[str, str]]:
    """Return a problem and a remedy for each part of the robot that starts in the ground.

    Parts attached to the world by joints other than a free joint are reported together.
    """
    robot, source = scene.robot, scene.robot.model.source
    found, fixed = [], 0.0
    for name, depth in scene.sunken().items():
        if not robot.joint(name).traits.floating:
            fixed = max(fixed, depth)
            continue
        q = lifted(robot.model, scene.q, name, depth)[robot.position_slice(name)]
        raised = ",".join(f"{x + 0.0:.4g}" for x in q)
        problem = f"the robot starts {depth:.4g} m deep in the ground"
        found.append((problem, f"raise it with --q {name}={raised}"))
    if fixed:
        problem = f"the base is fixed, and the robot starts {fixed:.4g} m deep in the ground"
        free = {link.name for link in source.links} - {joint.child for joint in source.joints}
        way = "free the base with --floating" if free else "choose another start with --q"
        found.append((problem, way))
    return found


def exploded(scene: Scene, kinetic: np.ndarray, potential: np.ndarray) -> list[str]:
    """Return a note if a motion gained energy that no force can have supplied.

    Without contacts, control, fluid or prescribed motions, all kinetic energy comes from the
    initial kinetic energy and from changes in potential energy.
    """
    model, controlled = scene.robot.model, scene.control is not None or scene.driven
    if controlled or scene.contacts or model.driven or model.source.fluid is not None:
        return []
    total = kinetic + potential
    change = np.max(np.abs(total - total[0]))
    scale = kinetic[0] + np.ptp(potential) + ROUNDING * np.max(np.abs(potential))
    if change <= EXPLODED * scale:
        return []
    return [f"the energy changed by {change:.2g} J, so the motion is wrong; reduce --dt"]


def run(
    recording: Recording, progress: Callable[[float], None], stop: Callable[[], bool], save: float
) -> None:
    """Simulate to the end or until `stop()` is True; write a part file every `save` seconds."""
    pieces: list[Trajectory] = []
    end, saved = recording.end, time.monotonic()
    try:
        while not stop() and (end is None or not end.over):
            pieces.append(recording.scene.simulate(PIECE, end))
            end = pieces[-1].end
            assert end is not None
            progress(end.t)
            if time.monotonic() - saved >= save:
                recording.add(pieces)
                pieces, saved = [], time.monotonic()
    except ChaslesError as error:
        if pieces:
            recording.add(pieces)
        until = f", up to t = {end.t:.6g} s" if end else ""
        kept = f"the motion so far is in {recording.folder}{until}"
        kept += "; change the scenario and start again"
        raise error.at(remedy="; ".join(filter(None, (error.remedy, kept)))) from error
    if pieces:
        recording.add(pieces)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns True after Ctrl-C or SIGTERM.

    A second signal has its usual effect.
    """
    asked: list[int] = []
    before: dict[signal.Signals, Any] = {}

    def hear(number: int, frame: object) -> None:
        asked.append(number)
        for which, handler in before.items():
            signal.signal(which, handler)

    for which in (signal.SIGINT, signal.SIGTERM):
        before[which] = signal.signal(which, hear)
    try:
        yield lambda: bool(asked)
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)


# Flags ----------------------------------------------------------------------------------------


def said(values: Mapping[str, Any]) -> dict[str, Any]:
    """Drop None and empty values from the flags passed to `scenario.with_flags`."""
    found = {key: said(x) if isinstance(x, dict) else x for key, x in values.items()}
    return {key: x for key, x in found.items() if x is not None and x != {} and x != []}


def coordinates(flag: str, given: Sequence[str] | None) -> Any:
    """Parse NUMBERS into a list, or JOINT=NUMBERS flags into {joint: numbers}."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return _numbers(flag, given[0])
    found = {}
    for text in given:
        joint, equals, values = text.rpartition("=")
        if not equals:
            problem = f"{text!r} does not name a joint"
            raise ModelError(
                "E-CLI-013", problem, "give JOINT=NUMBERS, or one value per coordinate", part=flag
            )
        found[joint] = gains(flag, values)
    return found


def gains(flag: str, text: str | None) -> float | list[float] | None:
    """Parse one number, or a list of numbers separated by commas or spaces."""
    if text is None:
        return None
    found = _numbers(flag, text)
    return found[0] if len(found) == 1 else found


def disturbance(text: str | None) -> dict[str, Any]:
    """Parse effort=NUMBER,hold=NUMBER,seed=NUMBER into a dictionary."""
    found = {} if text is None else _pairs("--disturbance", text.split(","))
    if "seed" in found and found["seed"] == int(found["seed"]):
        found["seed"] = int(found["seed"])
    return found


def contacts(feet: Sequence[str], ground: str | None) -> dict[str, Any]:
    """Return the scenario values for contacts with the ground plane z = 0.

    `ground` is the contact law, in the form "LAW,KEY=NUMBER,...". `feet` are the frames that can
    touch the ground, each in the form "FRAME[:RADIUS]". Without feet, all collision shapes in the
    robot's file can touch the ground.
    """
    if not ground:
        if feet:
            problem = "--foot needs a contact law"
            raise ModelError("E-CLI-014", problem, "add --ground rigid,friction=0.8")
        return {}
    kind, *rest = ground.split(",")
    law = {"kind": kind, **_pairs("--ground", rest)}
    if not feet:
        return {"ground": law}
    rows = []
    for foot in feet:
        frame, colon, radius = foot.rpartition(":")
        body: dict[str, Any] = {"kind": "point", "frame": foot}
        if colon:
            body = {"kind": "sphere", "frame": frame, "radius": _number("--foot", radius)}
        rows.append({"body": body, "surface": {"kind": "plane"}, "law": law})
    return {"contact": rows}


def _pairs(flag: str, words: Sequence[str]) -> dict[str, Any]:
    """Parse KEY=NUMBER pairs; a key such as friction.stiffness sets a value in a nested table."""
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ModelError("E-CLI-015", f"{word!r} is not of the form KEY=NUMBER", part=flag)
        table, _, inner = key.rpartition(".")
        (found.setdefault(table, {}) if table else found)[inner] = _number(flag, value)
    return found


def _numbers(flag: str, text: str) -> list[float]:
    words = text.split(",") if "," in text else text.split()
    return [_number(flag, word) for word in words or [text]]


def _number(flag: str, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        remedy = "write numbers like 0.1 or 2e-3"
        raise ModelError("E-CLI-016", f"{word!r} is not a number", remedy, part=flag) from None
