"""The table of targets; one row and one module to add one."""

import importlib
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from fuzz.target import Case, Target


def _of(name: str, function: str = "make") -> Callable[[], Case]:
    """What a module of this package prepares, loaded on use."""
    return lambda: getattr(importlib.import_module(f"fuzz.targets.{name}"), function)()


def _itself() -> Case:
    """Crashes, hangs and errors, to see that each is noticed."""

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
        "Functions of Robot: shapes, types, layouts, objects, out=, options.",
        _of("doors"),
        limit=90.0,
        checked=True,
        calls=20,
        brief=5,
        folder=False,
    ),
    "entry": Target(
        "The fast entry alone: argument lists drawn from things that are used over and over.",
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
        "Sensors, actuators, tendons: arrays, forces, controls, sensors of any parts.",
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
        "identify and with_parameters: measurements, names and numbers of any kind.",
        _of("identifying"),
        limit=60.0,
        brief=60,
        folder=False,
    ),
    "learning": Target(
        "Environments for learning: tasks, counts, actions, masks, seeds.",
        _of("learning"),
        limit=60.0,
        brief=40,
        folder=False,
    ),
    "editing": Target(
        "Robots changed and asked: lock, attach, gravity, parameters, names.",
        _of("editing"),
        limit=60.0,
        brief=120,
        folder=False,
    ),
    "readers": Target(
        "Robot files of formats that are read in this process: URDF, SDF, TOML, DAT, xacro.",
        _of("files", "readers"),
        calls=20,
        brief=10,
    ),
    "walls": Target(
        "Robot files whose readers have a process of their own: MJCF, xacro.",
        _of("files", "walls"),
        limit=60.0,
        calls=5,
        brief=4,
    ),
    "cache": Target("Damaged entries of the cache.", _of("entries"), brief=100),
    "motions": Target("Scenarios, runs and motion files.", _of("motions"), limit=60.0),
    "commands": Target("Arguments of the commands.", _of("commands"), limit=90.0),
    "self": Target("The fuzzer itself: it must find a crash, a hang, an error.", _itself, 0.5),
}
