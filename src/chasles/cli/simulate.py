"""Implementation of `chasles simulate`: build a scenario from flags, and simulate it in chunks."""

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chasles.cli.manifest import SCENARIO
from chasles.cli.recording import Recording
from chasles.cli.scenario import Scenario, is_scenario, read, with_flags
from chasles.cli.scene import Scene, made
from chasles.cli.wording import outside_limits
from chasles.errors import ChaslesError, ModelError
from chasles.rollouts import Trajectory

PIECE = 100
"""Number of steps between updates of the progress bar and checks for signals."""

DEEP = 1e-3
"""Minimum initial ground penetration (m) for which a note is printed."""


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
        """Return the paths of the scenario and robot files."""
        return [name for name in (self.target, scenario.top["robot"]) if Path(name).is_file()]

    def recording(self) -> Recording:
        """Prepare the output folder for a new or resumed simulation."""
        if self.resume and self.overwrite:
            problem = "--resume and --overwrite cannot be combined"
            raise ModelError("E-CLI-040", problem, "give only one of them")
        scene = made(self.scenario(), trust=self.trust)
        first = scene.simulate(1)  # check the scenario before any file is written
        recording = Recording(self.folder, scene)
        if self.resume:
            recording.go_on()
        else:
            recording.begin(overwrite=self.overwrite, inputs=self.inputs(scene.scenario))
            recording.notes += _notes(scene, first)
        return recording


def _notes(scene: Scene, first: Trajectory) -> list[str]:
    """Return notes about the initial state and contacts. `first` is the first step's trajectory."""
    outside = outside_limits(scene.robot, scene.q, "the initial state")
    notes = [f"{outside}; set another with --q"] if outside else []
    if scene.contacts == "file" and "contacts" not in scene.scenario.top:
        notes.append(
            "contacts, limits and damping from the file are active; --contacts none disables them"
        )
    joints = [scene.robot.joint(name) for name in scene.robot.joints]
    ignored = any(joint.damping or joint.friction for joint in joints)
    if ignored and not (scene.scenario.top.get("dissipation") or first.unsolved is not None):
        notes.append("joint damping and friction are ignored; --dissipation includes them")
    return notes + _overlap(scene, first)


def _overlap(scene: Scene, first: Trajectory) -> list[str]:
    """Return a note if a floating robot initially penetrates the ground by `DEEP` or more."""
    met, model = first.touching, scene.robot.model
    floating = [b.data.name for b in model.bodies if b.joint.floating]
    depth = -float(met.gaps[0].min()) if met is not None and met.gaps.size else 0.0
    if depth < DEEP or not floating:
        return []
    q = scene.q[scene.robot.position_slice(floating[0])].copy()
    q[6] += depth
    raised = ",".join(f"{x + 0.0:.4g}" for x in q)
    return [
        f"the robot starts {depth:.4g} m deep in the ground; raise it with "
        f"--q {floating[0]}={raised}"
    ]


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
                "E-CLI-013", problem, "give JOINT=NUMBERS, or one number per coordinate", part=flag
            )
        found[joint] = gains(flag, values)
    return found


def gains(flag: str, text: str | None) -> float | list[float] | None:
    """Parse one number, or a list of comma-separated numbers."""
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

    `ground` is the contact law as LAW,KEY=NUMBER,... `feet` are the frames that can touch the
    ground, as FRAME[:RADIUS]. Without feet, all collision shapes in the robot's file can touch the
    ground.
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
    """Parse KEY=NUMBER pairs. A key such as friction.stiffness sets a value in a nested table."""
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ModelError("E-CLI-015", f"{word!r} is not of the form KEY=NUMBER", part=flag)
        table, _, inner = key.rpartition(".")
        (found.setdefault(table, {}) if table else found)[inner] = _number(flag, value)
    return found


def _numbers(flag: str, text: str) -> list[float]:
    return [_number(flag, word) for word in text.split(",")]


def _number(flag: str, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        remedy = "write numbers like 0.1 or 2e-3"
        raise ModelError("E-CLI-016", f"{word!r} is not a number", remedy, part=flag) from None
