"""Methods of `Robot` with valid arguments in every form, and with invalid arguments."""

import inspect
import random
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from support import tree

import chasles
from chasles.algorithms import FUNCTIONS
from fuzz.target import Case, allowed
from fuzz.targets import TARGETS
from fuzz.values import COUNTS, EMPTY, KEYWORDS, SAME, TEXTS, hostile, out_of, thing

ROBOTS = {
    "planar": lambda: chasles.robots.planar(2),
    "puma560": chasles.robots.puma560,
    "floating": lambda: tree(2, 4, floating=True),
    "four_bar": chasles.robots.four_bar,
    "locked": lambda: chasles.robots.planar(1).lock({"joint1": 0.3}),
}
LEADS: list[tuple[int, ...]] = [(), (), (), (1,), (2,), (7,), (8,), (9,), (65,), (2, 3), (0,)]

GOOD: dict[str, tuple[Any, ...]] = {
    "axes": ("world", "frame"),
    "at": ("frame", "world", (0.1, 0.2, 0.3)),
    "kind": ("classical", "spatial", "proper"),
    "order": (1, 2),
    "dissipation": (False, True),
    "packed": (False, True),
}
"""Valid values of options."""


class Door(NamedTuple):
    """A method of a robot: its name, its arguments, its options and the required options."""

    robot: chasles.Robot
    name: str
    arguments: tuple[str, ...]
    options: tuple[str, ...]
    needed: dict[str, Any]


@cache
def robot(name: str) -> chasles.Robot:
    return ROBOTS[name]()


@cache
def door(which: str, name: str) -> Door | None:
    """Return a method of a robot, or None if the robot does not support it with plain arrays."""
    found = robot(which)
    given = inspect.signature(getattr(chasles.Robot, name)).parameters.values()
    plain = [p.name for p in given if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"]
    options = tuple(p.name for p in given if p.kind is p.KEYWORD_ONLY)
    needed: dict[str, Any] = {}
    if "frame" in options:
        needed["frame"] = found.frames[-1]
    if "known" in options:
        needed["known"] = found.moving_joints[:1]
    if "frames" in options:
        needed["frames"] = [found.frames[-1]]
    try:
        arrays = [good(found, p, (), np.random.default_rng(0)) for p in plain]
        getattr(found, name)(*arrays, **needed)
    except Exception as error:
        if not allowed(error):
            raise
        return None
    return Door(found, name, tuple(plain), options, needed)


def good(found: chasles.Robot, name: str, lead: tuple[int, ...], rng: Any) -> np.ndarray:
    """Return a valid array for an argument: a configuration that closes the loops, or rates."""
    if name in ("q", "q0", "q1"):
        return np.asarray(found.random(rng, size=lead))
    return rng.normal(size=(*lead, found.nv))


def make() -> Case:
    return case


def case(rng: random.Random, folder: Path) -> None:
    """Call one method several times, with valid and with hostile arguments."""
    which, name = rng.choice(list(ROBOTS)), rng.choice(list(FUNCTIONS))
    if not hasattr(chasles.Robot, name):
        return
    found = door(which, name)
    if found is None:
        return
    for _ in range(TARGETS["doors"].calls):
        if rng.random() < 0.5:
            same(rng, found)
        else:
            odd(rng, found)


def same(rng: random.Random, found: Door) -> None:
    """Check a call with valid arrays in any form against the Python path with plain arrays.

    The results must be bitwise identical.
    """
    lead, draw = rng.choice(LEADS), np.random.default_rng(rng.randrange(2**32))
    plain = [good(found.robot, p, lead, draw) for p in found.arguments]
    named = dict(found.needed)
    for option in found.options:
        if option in GOOD and rng.random() < 0.15:
            named[option] = rng.choice(GOOD[option])
    function = getattr(found.robot, found.name)
    try:
        expected = getattr(type(found.robot), found.name)(found.robot, *plain, **named)
    except chasles.ChaslesError:
        return  # the options are not compatible
    forms = [rng.choice(list(SAME) if a.size else EMPTY) for a in plain]
    given = [SAME[form](a) for form, a in zip(forms, plain, strict=True)]
    if "out" in found.options and rng.random() < 0.3 and isinstance(expected, np.ndarray):
        named["out"] = np.full(expected.shape, 7.0)
    if rng.random() < 0.2:
        named["threads"] = rng.choice((1, 2, 3, None))
    answer = function(*given, **named)
    several = isinstance(expected, tuple)
    for a, b in zip(*((x if several else (x,)) for x in (answer, expected)), strict=True):
        assert np.array_equal(a, b, equal_nan=True), f"{found.name} {lead} {forms} {named}"
    if rng.random() < 0.02 and not several:
        other = chasles.compile(found.robot, found.name, backend="numpy", **_options(named))
        near = np.asarray(other(*plain))
        scale = float(np.max(np.abs(near), initial=1.0))
        assert np.allclose(answer, near, rtol=1e-9, atol=1e-9 * scale, equal_nan=True), found.name


def _options(named: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in named.items() if k not in ("out", "threads")}


def odd(rng: random.Random, found: Door) -> None:
    """Call a method with hostile arguments, which must give a result or an allowed error."""
    lead, draw = rng.choice(LEADS), np.random.default_rng(rng.randrange(2**32))
    plain = [good(found.robot, p, lead, draw) for p in found.arguments]
    given: list[Any] = [hostile(rng, a) if rng.random() < 0.5 else a for a in plain]
    named = dict(found.needed)
    turn = rng.random()
    if turn < 0.1:
        given = given[:-1] if given and turn < 0.05 else [*given, thing(rng)]
    for option in (*found.options, *KEYWORDS):
        if rng.random() < 0.08:
            named[option] = option_value(rng, found, option, lead, given)
    try:
        getattr(found.robot, found.name)(*given, **named)
    except Exception as error:
        if not allowed(error):
            raise


def option_value(
    rng: random.Random, found: Door, option: str, lead: tuple[int, ...], given: list[Any]
) -> Any:
    """Return a valid or hostile value for an option."""
    if option == "out":
        tail = rng.choice([(found.robot.nv,), (6,), (), (found.robot.nv,) * 2, (4, 4)])
        return out_of(rng, (*lead, *tail), given)
    if option == "threads":
        return rng.choice(COUNTS)
    if option == "method" and rng.random() < 0.3:
        return rng.choice([m.name for m in FUNCTIONS[found.name]])
    if option == "f_ext":
        frame = rng.choice((*found.robot.frames, *TEXTS[:4]))
        wrench = hostile(rng, np.ones((*lead, 6))) if rng.random() < 0.6 else np.ones(6)
        return rng.choice(({frame: wrench}, {}, wrench, [frame], {None: wrench}))
    if option in GOOD and rng.random() < 0.5:
        return rng.choice(GOOD[option])
    return thing(rng)
