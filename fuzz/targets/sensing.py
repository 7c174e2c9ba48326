"""Sensors, actuators and tendons: odd motions, forces, controls and sensor definitions."""

import math
import random
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import chasles
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Transform
from chasles.mechanisms.sensing import ContactForce
from chasles.model import SENSORS, NoiseData, SensorData, Surface
from fuzz import CORPUS
from fuzz.target import Case, allowed
from fuzz.values import COUNTS, EMPTY, NUMBERS, SAME, TEXTS, hostile, thing

LEADS: list[tuple[int, ...]] = [(), (), (), (1,), (2,), (9,), (65,), (2, 3), (0,)]

FINITE = (0.0, -0.0, 1e-3, 1.0, -1.0, 1e-300, 5e-324, 1e300, -1.7e308)


def _puma() -> chasles.Robot:
    """Return an arm with one sensor of each kind that the arm supports."""
    robot = chasles.robots.puma560()
    for kind, row in SENSORS.items():
        if row.on not in ("frame", "link", "joint", ""):
            continue
        on = robot.bodies[-1] if row.on == "link" else "tool"
        try:
            robot = robot.with_sensors(SensorData(kind, kind, on, joint=robot.joints[1]))
        except chasles.ChaslesError:
            continue  # this kind needs more data than its frame or joint
    return robot


ROBOTS = {
    "machine": lambda: chasles.load(CORPUS / "small" / "machine.xml"),
    "puma560": _puma,
    "four_bar": lambda: chasles.robots.four_bar().with_sensors(
        SensorData("force", "force", chasles.robots.four_bar().frames[-1])
    ),
    "planar": lambda: chasles.robots.planar(2),
}


@cache
def robot(name: str) -> chasles.Robot:
    return ROBOTS[name]()


def make() -> Case:
    return case


def case(rng: random.Random, folder: Path) -> None:
    """Run one call: a valid one with checks, one with odd arguments, or an odd sensor."""
    found, turn = robot(rng.choice(list(ROBOTS))), rng.random()
    draw = np.random.default_rng(rng.randrange(2**32))
    try:
        if turn < 0.3:
            agree(rng, found, draw)
        elif turn < 0.55:
            odd_sense(rng, found, draw)
        elif turn < 0.75:
            odd_actuate(rng, found, draw)
        else:
            odd_sensor(rng, found, draw)
    except Exception as error:
        if not allowed(error):
            raise


def motion(found: chasles.Robot, lead: tuple[int, ...], draw: Any) -> list[np.ndarray]:
    """Return positions, velocities and accelerations."""
    q = np.asarray(found.random(draw, size=lead))
    return [q, *draw.normal(size=(2, *lead, found.nv))]


def drive(found: chasles.Robot, lead: tuple[int, ...], draw: Any) -> list[np.ndarray]:
    """Return controls and activations."""
    sizes = len(found.actuators), len(found.actuators.active)
    return [draw.normal(size=(*lead, n)) for n in sizes]


def agree(rng: random.Random, found: chasles.Robot, draw: Any) -> None:
    """Check valid arrays in any form against plain arrays, and a batch against a single state.

    The results must be bitwise identical.
    """
    lead = rng.choice(LEADS)
    arrays, controls = motion(found, lead, draw), drive(found, lead, draw)
    given = [SAME[rng.choice(list(SAME) if a.size else EMPTY)](a) for a in arrays]
    k = tuple(rng.randrange(n) for n in lead) if 0 not in lead else None
    if rng.random() < 0.5:
        values = found.sense(*given, ctrl=controls[0], act=controls[1], t=0.5)
        same = found.sense(*arrays, ctrl=controls[0], act=controls[1], t=0.5)
        assert list(values) == list(found.sensors)
        for name, value in values.items():
            assert value.shape == (*lead, found.sensor(name).traits.size), name
            assert np.array_equal(value, same[name], equal_nan=True), name
        if k is not None:
            one = found.sense(*(a[k] for a in arrays), ctrl=controls[0][k], act=controls[1][k])
            for name in set(values) - {"time", "clock"}:
                assert np.array_equal(values[name][k], one[name], equal_nan=True), name
    elif found.actuators:
        tau = found.actuate(given[0], given[1], *controls)
        assert tau.shape == (*lead, found.nv)
        if k is not None:
            one = found.actuate(*(a[k] for a in (*arrays[:2], *controls)))
            assert np.array_equal(tau[k], one)
            low, high = found.actuators.controls.T
            inside = found.actuate(*arrays[:2], np.clip(controls[0], low, high), controls[1])
            assert np.array_equal(tau, inside), "controls are clamped to their ranges"


def forces(rng: random.Random, found: chasles.Robot, lead: tuple[int, ...]) -> Any:
    """Return external forces as wrenches or contacts, which may be invalid."""
    frame = rng.choice((*found.frames, *TEXTS))
    turn = rng.random()
    if turn < 0.3:
        return {str(frame): hostile(rng, np.ones((*lead, 6)))}
    if turn < 0.8:
        parts = [hostile(rng, np.ones(3)) if rng.random() < 0.4 else np.ones(3) for _ in range(4)]
        link = rng.choice((*found.bodies, frame))
        contact = ContactForce(link, *parts[: rng.randint(2, 4)])
        return [contact] * rng.choice((0, 1, 3))
    return rng.choice((thing(rng), [thing(rng)], {}, ()))


def odd_sense(rng: random.Random, found: chasles.Robot, draw: Any) -> None:
    """Call `sense` with odd arrays and options."""
    lead = rng.choice(LEADS)
    given = [hostile(rng, a) if rng.random() < 0.2 else a for a in motion(found, lead, draw)]
    ctrl, act = drive(found, lead, draw)
    odds = {
        "forces": lambda: forces(rng, found, lead),
        "sensors": lambda: rng.choice(
            (*found.sensors, found.sensors, found.sensors * 2, [], *TEXTS, [thing(rng)])
        ),
        "ctrl": lambda: hostile(rng, ctrl),
        "act": lambda: hostile(rng, act),
        "multipliers": lambda: hostile(rng, np.ones((*lead, 3))),
        "t": lambda: rng.choice((*NUMBERS, np.ones(lead), np.ones(3))),
        "noise": lambda: rng.choice((0, 2**40, draw, *COUNTS)),
        "threads": lambda: rng.choice(COUNTS),
    }
    named = {name: odds[name]() for name in rng.sample(list(odds), rng.choice((0, 1, 1, 2, 3)))}
    for name, value in found.sense(*given, **named).items():
        assert value.shape[-1] == found.sensor(name).traits.size


def odd_actuate(rng: random.Random, found: chasles.Robot, draw: Any) -> None:
    """Call functions of actuators, springs and sensors with odd arguments."""
    lead = rng.choice(LEADS)
    given: list[Any] = [*motion(found, lead, draw)[:2], *drive(found, lead, draw)]
    given = [hostile(rng, a) if rng.random() < 0.3 else a for a in given]
    verb = rng.choice(("actuate", "activation_rate", "spring_forces", "sensor", "without_sensors"))
    if verb in ("sensor", "without_sensors"):
        getattr(found, verb)(rng.choice((*found.sensors, *TEXTS)))
        return
    count = 1 if verb == "spring_forces" else rng.choice((4, 4, 3, 2, 5))
    named: dict[str, Any] = {}
    if rng.random() < 0.2:
        named[rng.choice(("out", "threads", "x"))] = thing(rng)
    got = getattr(found, verb)(*[*given, thing(rng)][:count], **named)
    size = len(found.actuators.active) if verb == "activation_rate" else found.nv
    assert got.shape[-1:] == (size,)


def _number(rng: random.Random) -> Any:
    return rng.choice(NUMBERS if rng.random() < 0.5 else FINITE)


def _surface(rng: random.Random, found: chasles.Robot) -> Any:
    """Return a shape of any kind, size and pose."""
    kind = rng.choice(
        ("sphere", "capsule", "ellipsoid", "cylinder", "box", "plane", "mesh", *TEXTS)
    )
    size = tuple(_number(rng) for _ in range(rng.choice((0, 1, 2, 3, 3, 4))))
    counts = [rng.choice((9, 9, 9, 3, 0)) for _ in range(rng.choice((0, 0, 1, 3)))]
    triangles = tuple(tuple(_number(rng) for _ in range(count)) for count in counts)
    frame = rng.choice((*found.frames, *TEXTS))
    return rng.choice((Surface(frame, kind, size, _pose(rng), triangles), thing(rng)))


def _pose(rng: random.Random) -> Any:
    if rng.random() < 0.6:
        return Transform.identity()
    if rng.random() < 0.3:
        return thing(rng)
    x, y, z = (rng.choice((*FINITE, math.nan, math.inf)) for _ in range(3))
    return Transform(Transform.identity().E, Vector.of(x, y, z))


def odd_sensor(rng: random.Random, found: chasles.Robot, draw: Any) -> None:
    """Add a sensor with odd parts, which must be rejected or give values of the expected size."""
    odds: dict[str, Any] = {
        "name": lambda: rng.choice(TEXTS),
        "kind": lambda: rng.choice(TEXTS),
        "frame": lambda: rng.choice(TEXTS),
        "pose": lambda: _pose(rng),
        "reference": lambda: rng.choice((*found.frames, *TEXTS)),
        "reference_pose": lambda: _pose(rng),
        "joint": lambda: rng.choice((*found.joints, *found.actuators, *TEXTS)),
        "cutoff": lambda: _number(rng),
        "noise": lambda: rng.choice((_noise(rng), thing(rng))),
        "numbers": lambda: rng.choice(
            (tuple(_number(rng) for _ in range(rng.randrange(5))), thing(rng))
        ),
        "zone": lambda: _surface(rng, found),
        "seen": lambda: rng.choice((tuple(_surface(rng, found) for _ in range(2)), thing(rng))),
    }
    kind = rng.choice(list(SENSORS))
    named: dict[str, Any] = {"frame": rng.choice(found.frames), "joint": rng.choice(found.joints)}
    for name in rng.sample(list(odds), rng.choice((0, 1, 1, 2, 3))):
        named[name] = odds[name]()
    sensor = SensorData(**{"name": "own", "kind": kind, **named})
    made = found.with_sensors(*[sensor, thing(rng)][: rng.choice((1, 1, 1, 2))])
    assert sensor.name in made.sensors
    if rng.random() < 0.1:  # compiles a new function each time
        noise = rng.choice((None, 1))
        value = made.sense(*motion(made, (2,), draw), sensors=[sensor.name], noise=noise)
        assert value[sensor.name].shape == (2, sensor.traits.size)


def _several(rng: random.Random) -> tuple[Any, ...]:
    return tuple(_number(rng) for _ in range(rng.randrange(5)))


def _noise(rng: random.Random) -> NoiseData:
    names = [f.name for f in fields(NoiseData)]
    odd: dict[str, Any] = {n: _number(rng) for n in names if rng.random() < 0.4}
    if "offset" in odd:
        odd["offset"] = _several(rng)
    return NoiseData(**odd)
