"""Methods that modify or query a robot: names, values, joints, parameters."""

import inspect
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import chasles
from fuzz.target import Case, allowed
from fuzz.values import COUNTS, NUMBERS, TEXTS, hostile, thing

VERBS = (
    *("lock", "attach", "at_time", "with_gravity", "with_loops", "with_couplings", "subtree"),
    *("with_independent", "drive", "joint", "parameter", "position_slice", "velocity_slice"),
    *("random", "state", "complete", "assemble", "derivatives", "pullback", "function", "at"),
    *("packed_entries", "inertial_parameters", "base_parameters", "simplified", "is_equivalent"),
    *("constrained_dynamics", "explain"),
)
"""Methods of a robot that are not compiled functions."""


@cache
def robots() -> tuple[chasles.Robot, ...]:
    return (
        chasles.robots.planar(2),
        chasles.robots.puma560(),
        chasles.robots.four_bar(),
    )


def value(rng: random.Random, robot: chasles.Robot, name: str) -> Any:
    """Return a valid, nearly valid or hostile value for a parameter."""
    turn = rng.random()
    joint, frame = rng.choice(robot.joints or ("",)), rng.choice(robot.frames)
    if turn < 0.35:
        return rng.choice((joint, frame, *TEXTS))
    if turn < 0.55:
        some = rng.choice((*NUMBERS, *COUNTS))
        return rng.choice(({joint: some}, {frame: some}, [joint, frame], (joint,), some))
    if turn < 0.8:
        return hostile(rng, np.ones(rng.choice((robot.nq, robot.nv, 3, 6))))
    if turn < 0.85:
        return robot
    return thing(rng)


def make() -> Case:
    return case


def case(rng: random.Random, folder: Path) -> None:
    """Call one method, with arguments that match its signature."""
    robot = rng.choice(robots())
    verb = rng.choice([v for v in VERBS if hasattr(robot, v)])
    function = getattr(robot, verb)
    given: list[Any] = []
    named: dict[str, Any] = {}
    for p in inspect.signature(function).parameters.values():
        needed = p.default is p.empty
        if p.kind is p.VAR_POSITIONAL:
            given += [value(rng, robot, p.name) for _ in range(rng.randrange(3))]
        elif p.kind is p.VAR_KEYWORD:
            if rng.random() < 0.3:
                named[rng.choice(("frame", "axes", "x"))] = value(rng, robot, p.name)
        elif p.kind is p.KEYWORD_ONLY:
            if needed or rng.random() < 0.25:
                named[p.name] = value(rng, robot, p.name)
        elif needed or rng.random() < 0.4:
            given.append(value(rng, robot, p.name))
    if verb in ("derivatives", "pullback", "function", "explain") and given:
        given[0] = rng.choice(("inverse_dynamics", "mass_matrix", given[0]))
    try:
        found = function(*given, **named)
        if isinstance(found, chasles.Robot):
            asked(found)
    except Exception as error:
        if not allowed(error):
            raise


def asked(robot: chasles.Robot) -> None:
    """Evaluate basic properties of a robot."""
    _ = robot.name, robot.joints, robot.frames, robot.nq, robot.nv, robot.mass, repr(robot)
    q = robot.random(seed=0)
    assert np.shape(q) == (robot.nq,)
