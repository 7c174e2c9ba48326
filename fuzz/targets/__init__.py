"""Table of the fuzz targets. A new target needs a module and a row in the table."""

import importlib
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from fuzz.target import Case, Target


def _of(name: str, function: str = "make") -> Callable[[], Case]:
    """Return a function that prepares the cases of a module, which is imported on use."""
    return lambda: getattr(importlib.import_module(f"fuzz.targets.{name}"), function)()


def _itself() -> Case:
    """Return cases that crash, hang or raise errors, to test that each is detected."""

    def case(rng: random.Random, folder: Path) -> None:
        turn = rng.randrange(8)
        (folder / "input").write_text(str(turn))
        if turn == 0:
            os.abort()
        if turn == 1:
            time.sleep(1000.0)
        if turn == 2:
            raise ValueError("a foreign error")
        time.sleep(0.001)

    return case


TARGETS: dict[str, Target] = {
    "doors": Target(
        "Methods of Robot: shapes, types, layouts, objects, out=, options.",
        _of("doors"),
        limit=90.0,
        checked=True,
        calls=20,
        brief=5,
        folder=False,
    ),
    "entry": Target(
        "The fast entry: random argument lists from a fixed set of objects.",
        _of("entry"),
        limit=60.0,
        checked=True,
        calls=1000,
        brief=1,
        folder=False,
    ),
    "drivers": Target(
        "rollout, simulate, rollout_pullback: counts, shapes, controls, contacts.",
        _of("drivers"),
        limit=90.0,
        checked=True,
        brief=8,
        folder=False,
    ),
    "reaching": Target(
        "inverse_kinematics: targets, guesses, weights, options, batches, interrupts.",
        _of("reaching"),
        limit=90.0,
        checked=True,
        brief=12,
        folder=False,
    ),
    "sensing": Target(
        "Sensors, actuators, tendons: arrays, forces, controls, sensor definitions.",
        _of("sensing"),
        limit=90.0,
        checked=True,
        brief=40,
        folder=False,
    ),
    "stepping": Target(
        "Contact by time stepping: states, times, shapes, controls, batches.",
        _of("stepping"),
        limit=90.0,
        checked=True,
        brief=12,
        folder=False,
    ),
    "identifying": Target(
        "identify and with_parameters: measurements, names, values.",
        _of("identifying"),
        limit=60.0,
        brief=60,
        folder=False,
    ),
    "learning": Target(
        "Reinforcement-learning environments: tasks, counts, actions, masks, seeds.",
        _of("learning"),
        limit=60.0,
        brief=40,
        folder=False,
    ),
    "editing": Target(
        "Methods that modify or query robots: lock, attach, gravity, parameters, names.",
        _of("editing"),
        limit=60.0,
        brief=120,
        folder=False,
    ),
    "readers": Target(
        "Robot files read in the same process: URDF, SDF, TOML, DAT, xacro.",
        _of("files", "readers"),
        calls=20,
        brief=10,
    ),
    "walls": Target(
        "Robot files read in a separate process: MJCF, xacro.",
        _of("files", "walls"),
        limit=60.0,
        calls=5,
        brief=4,
    ),
    "cache": Target("Damaged cache entries.", _of("entries"), brief=100),
    "motions": Target("Scenarios, runs and motion files.", _of("motions"), limit=60.0),
    "commands": Target("Command-line arguments.", _of("commands"), limit=90.0),
    "self": Target("Test of the fuzzer: it must detect crashes, hangs and errors.", _itself, 0.5),
}
