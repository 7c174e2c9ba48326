"""Contact simulation by time stepping: states, times, shapes, pairs, controls, batches."""

import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import chasles
from chasles import contact
from fuzz import CORPUS
from fuzz.target import Case, allowed
from fuzz.values import COUNTS, NUMBERS, TEXTS, hostile, passive, thing

LEADS: list[tuple[int, ...]] = [(), (), (1,), (2,), (5,), (9,), (65,), (2, 3), (0,)]
MOST = 20
"""Maximum number of steps of a motion."""

ROBOTS = {
    "machine": lambda: chasles.load(CORPUS / "small" / "machine.toml"),
    "puma560": chasles.robots.puma560,
    "planar": lambda: chasles.robots.planar(2),
    "four_bar": chasles.robots.four_bar,
}


@cache
def robot(name: str) -> chasles.Robot:
    return ROBOTS[name]()


def make() -> Case:
    return case


def case(rng: random.Random, folder: Path) -> None:
    """Run one motion: a valid one with checks, or one with hostile arguments."""
    draw = np.random.default_rng(rng.randrange(2**32))
    try:
        if rng.random() < 0.4:
            agree(rng, robot(rng.choice(("machine", "puma560", "planar"))), draw)
        else:
            odd(rng, robot(rng.choice(list(ROBOTS))), draw)
    except Exception as error:
        if not allowed(error):
            raise


def start(found: chasles.Robot, lead: tuple[int, ...], draw: Any) -> list[np.ndarray]:
    """Return positions and velocities, with a floating base below, near or above the ground."""
    q = np.asarray(found.random(draw, size=lead))
    if found.nq != found.nv and len(found.independent) == found.nv:  # a floating base
        q[..., 6] = draw.uniform(-0.2, 1.0, size=lead)
    return [q, draw.normal(size=(*lead, found.nv))]


def agree(rng: random.Random, found: chasles.Robot, draw: Any) -> None:
    """Check that a batch is finite, and bitwise identical to the motion of a single state."""
    lead, steps = rng.choice(LEADS), rng.randint(1, MOST)
    q, qd = start(found, lead, draw)
    dt = rng.choice((1e-4, 1e-3, 2e-3, 5e-3))
    options: dict[str, Any] = {"dt": dt, "duration": dt * steps, "contacts": "file"}
    options["integrator"] = "time-stepping"
    if rng.random() < 0.3:
        options["tau"] = draw.normal(size=found.nv)
    if rng.random() < 0.3:
        options["every"] = rng.randint(1, steps + 2)
    whole = found.simulate(q, qd, threads=rng.choice((None, 1, 2, 3)), **options)
    assert whole.compiled
    assert whole.q.shape[:-2] == lead
    assert np.all(np.isfinite(whole.q))
    assert np.all(np.isfinite(whole.qd))
    if 0 in lead or not lead:
        return
    k = tuple(rng.randrange(n) for n in lead)
    one = found.simulate(q[k], qd[k], **options)
    assert np.array_equal(whole.q[k], one.q), f"{lead} {steps} {options}"
    assert np.array_equal(whole.qd[k], one.qd)


def _number(rng: random.Random) -> Any:
    return rng.choice(NUMBERS)


def shape(rng: random.Random, found: chasles.Robot) -> Any:
    """Return a shape of any kind and size, on any frame."""
    frame = rng.choice((*found.frames, *found.frames, None, *TEXTS))
    size = tuple(rng.choice((0.1, 0.2, 0.3, _number(rng))) for _ in range(3))
    some: tuple[Any, ...] = (
        lambda: contact.Sphere(frame, size[0]),
        lambda: contact.Box(frame, size),
        lambda: contact.Capsule(frame, size[0], size[1]),
        lambda: contact.Cylinder(frame, size[0], size[1]),
        lambda: contact.Point(frame, size),
        lambda: contact.Plane(None, size),
        contact.Plane,
    )
    return rng.choice(some)() if rng.random() < 0.95 else thing(rng)


def contacts(rng: random.Random, found: chasles.Robot) -> Any:
    """Return contact pairs with odd shapes and laws, or any value."""
    turn = rng.random()
    if turn < 0.5:
        return "file"
    if turn < 0.6:
        return rng.choice((thing(rng), [thing(rng)], [], ()))
    odd = rng.random() < 0.3
    law = contact.Rigid(_number(rng)) if odd else contact.Rigid(rng.choice((0.0, 0.5, 1e6)))
    pair = contact.Pair(shape(rng, found), shape(rng, found), law)
    return [pair] * rng.choice((1, 1, 2))


def odd(rng: random.Random, found: chasles.Robot, draw: Any) -> None:
    """Simulate with hostile arguments, which must give a motion or an allowed error."""
    lead = rng.choice(LEADS)
    given = [hostile(rng, a) if rng.random() < 0.2 else a for a in start(found, lead, draw)]
    named: dict[str, Any] = {"dt": 2e-3, "duration": 0.01, "contacts": contacts(rng, found)}
    if named["contacts"] != "file" or rng.random() < 0.5:
        named["integrator"] = "time-stepping"
    odds = {
        "dt": lambda: _number(rng),
        "duration": lambda: rng.choice((*NUMBERS, 0.004, 0.0041)),
        "steps": lambda: rng.choice([c for c in COUNTS if not _long(c)]),
        "every": lambda: rng.choice(COUNTS),
        "threads": lambda: rng.choice(COUNTS),
        "start": lambda: _number(rng),
        "limits": lambda: rng.choice((True, False, thing(rng))),
        "dissipation": lambda: rng.choice((True, False, thing(rng))),
        "control": lambda: rng.choice((lambda t, q, qd: [-v for v in qd], lambda t, q, qd: -qd)),
        "tau": lambda: passive(hostile(rng, np.ones((*lead, found.nv)))),
        "parameters": lambda: hostile(rng, np.ones(2)),
        "sensors": lambda: rng.choice((True, *TEXTS)),
        "noise": lambda: rng.choice(COUNTS),
        "times": lambda: hostile(rng, np.array([0.0, 0.004, 0.01])),
        "compiled": lambda: rng.choice((True, False, None, thing(rng))),
        "f_ext": lambda: rng.choice(({found.frames[-1]: np.ones(6)}, thing(rng))),
    }
    for name in rng.sample(list(odds), rng.choice((0, 1, 1, 2, 3))):
        named[name] = odds[name]()
    if _steps(named) > 1e4:
        named["duration"] = named["dt"] if isinstance(named["dt"], float) else 0.0
    found.simulate(*given, **named)


def _steps(named: dict[str, Any]) -> float:
    """Return the requested number of steps, or 0 if chasles rejects the request."""
    try:
        count = float(named["duration"]) / float(named["dt"])
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        return 0.0
    return 0.0 if count > 1e12 else count  # chasles rejects larger numbers


def _long(count: Any) -> bool:
    """Return True if the number of steps is too large for the time or memory of a case."""
    try:
        return 10**5 < int(count) <= 2**53
    except (TypeError, ValueError, OverflowError):
        return False
