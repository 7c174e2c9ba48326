"""Simulations in machine code and in Python: counts, shapes, controls, contacts, options."""

import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from support import tree

import chasles
from chasles import contact
from chasles.motion.steps.traced import STEPS
from fuzz.guarded import guarded
from fuzz.target import Case, allowed
from fuzz.values import COUNTS, NUMBERS, TEXTS, hostile, passive, thing

ROBOTS = {
    "planar": lambda: chasles.robots.planar(2),
    "puma560": chasles.robots.puma560,
    "floating": lambda: tree(2, 4, floating=True),
}
MOST = 40
"""Maximum number of steps of a valid motion, which keeps the compile time small."""

LEADS: list[tuple[int, ...]] = [(), (), (1,), (2,), (5,), (9,), (64,), (65,), (130,), (2, 3), (0,)]


@cache
def robot(name: str) -> chasles.Robot:
    return ROBOTS[name]()


def make() -> Case:
    return case


def case(rng: random.Random, folder: Path) -> None:
    """Run one motion: a valid one with an oracle, or one with hostile arguments."""
    name = rng.choice(list(ROBOTS))
    draw = np.random.default_rng(rng.randrange(2**32))
    turn = rng.random()
    if turn < 0.4:
        agree(rng, robot(name), draw)
    elif turn < 0.5:
        back(rng, robot(name), draw)
    else:
        odd(rng, robot(name), draw)


def _start(found: chasles.Robot, lead: tuple[int, ...], draw: Any) -> tuple[np.ndarray, np.ndarray]:
    q = np.asarray(found.random(draw, size=lead))
    return q, draw.normal(size=(*lead, found.nv))


def _control(q: Any, qd: Any) -> Any:
    return [-2.0 * a for a in qd]


def agree(rng: random.Random, found: chasles.Robot, draw: Any) -> None:
    """Check a batch against the motion of a single state with all steps recorded.

    The records must be bitwise identical.
    """
    lead, steps = rng.choice(LEADS), rng.randint(1, MOST)
    every, end = rng.randint(1, steps + 3), rng.random() < 0.5
    q, qd = (guarded(a, end=end) for a in _start(found, lead, draw))
    options: dict[str, Any] = {"dt": 1e-3, "steps": steps}
    options["integrator"] = rng.choice(("semi-implicit", "semi-implicit", "rk4", "euler"))
    turn = rng.random()
    tau: Any = None
    if turn < 0.3:
        tau = guarded(draw.normal(size=found.nv), end=end)
    elif turn < 0.6:
        tau = guarded(draw.normal(size=(rng.choice((1, steps)), found.nv)), end=end)
    elif turn < 0.8:
        tau = guarded(draw.normal(size=(*lead, rng.choice((1, steps)), found.nv)), end=end)
    threads = rng.choice((None, 1, 2, 3))
    try:
        whole = found.rollout(q, qd, tau, every=every, threads=threads, **options)
    except Exception as error:
        if not allowed(error):
            raise
        return
    if 0 in lead:
        return
    k = tuple(rng.randrange(n) for n in lead)
    own = tau if tau is None or np.ndim(tau) < 3 else tau[k]
    one = found.rollout(q[k], qd[k], own, every=1, **options)
    kept = [*range(0, steps, every), steps]
    for a, b in ((whole.q, one.q), (whole.qd, one.qd)):
        assert np.array_equal(a[k], b[kept], equal_nan=True), f"{lead} {steps} {every} {threads}"


def back(rng: random.Random, found: chasles.Robot, draw: Any) -> None:
    """Check the gradient along a batch of motions against the gradient for a single state."""
    lead, steps = rng.choice(LEADS), rng.randint(1, MOST)
    every = rng.randint(1, steps + 1)
    q, qd = _start(found, lead, draw)
    records = len([*range(0, steps, every), steps])
    covectors = [draw.normal(size=(*lead, records, found.nv)) for _ in range(2)]
    options: dict[str, Any] = {"dt": 1e-3, "steps": steps, "every": every}
    threads = rng.choice((None, 1, 2))
    try:
        got = found.rollout_pullback(q, qd, covectors=covectors, threads=threads, **options)
    except Exception as error:
        if not allowed(error):
            raise
        return
    assert got.q.shape == qd.shape
    if lead and 0 not in lead:
        k = tuple(rng.randrange(n) for n in lead)
        one = found.rollout_pullback(q[k], qd[k], covectors=[c[k] for c in covectors], **options)
        scale = 1.0 + float(np.max(np.abs(one.q)))
        assert np.allclose(got.q[k], one.q, rtol=1e-9, atol=1e-9 * scale)


def _contacts(rng: random.Random, found: chasles.Robot) -> Any:
    frame = rng.choice((*found.frames, "none", ""))
    laws = contact.SoftSurface(1e4, 1e2), contact.HuntCrossley(1e4, 1e2), contact.Rigid()
    return [contact.Pair(contact.Point(frame), contact.Plane(), rng.choice(laws))]


def odd(rng: random.Random, found: chasles.Robot, draw: Any) -> None:
    """Simulate with hostile arguments, which must give a motion or an allowed error."""
    lead = rng.choice(LEADS)
    given: list[Any] = list(_start(found, lead, draw))
    for k in range(2):
        if rng.random() < 0.25:
            given[k] = hostile(rng, given[k])
    verb = rng.choice(("rollout", "rollout", "simulate", "rollout_pullback"))
    named: dict[str, Any] = {"dt": 1e-3}
    if verb == "simulate":
        named["duration"] = 0.005
        named["integrator"] = rng.choice(("rk4", "semi-implicit", "dopri5"))
    else:
        named["steps"] = rng.randint(1, 5)
    if verb == "rollout_pullback":
        shape = (*lead, named["steps"] + 1, found.nv)
        named["covectors"] = rng.choice((np.ones((2, *shape)), [np.ones(shape), None], thing(rng)))
    odds = {
        "dt": lambda: rng.choice(NUMBERS),
        "steps": lambda: rng.choice([c for c in COUNTS if not _long(c)]),
        "every": lambda: rng.choice(COUNTS),
        "threads": lambda: rng.choice(COUNTS),
        "start": lambda: rng.choice(NUMBERS),
        "integrator": lambda: rng.choice((*STEPS, *TEXTS)),
        "dissipation": lambda: rng.choice((True, thing(rng))),
        "control": lambda: rng.choice((_control, lambda t, q, qd: -qd, passive(thing(rng)))),
        "tau": lambda: passive(hostile(rng, np.ones((*lead, found.nv)))),
        "parameters": lambda: hostile(rng, np.ones(2)),
        "contact_states": lambda: hostile(rng, np.ones(3)),
    }
    for name in rng.sample(list(odds), rng.choice((0, 1, 1, 2, 3))):
        named[name] = odds[name]()
    if named.get("integrator") == "dopri5":  # steps become tiny where dry friction changes sign
        named.pop("dissipation", None)
    if rng.random() < 0.05:
        try:
            named["contacts"] = _contacts(rng, found)
        except chasles.ChaslesError:
            return
    if verb == "simulate" and not isinstance(named["dt"], float | int | np.floating):
        named.pop("duration")
    if _small(named.get("dt")) and verb == "simulate":
        named["duration"] = 1e-9 if isinstance(named["dt"], float) else named["duration"]
    try:
        getattr(found, verb)(*given, **named)
    except Exception as error:
        if not allowed(error):
            raise


def _long(count: Any) -> bool:
    """Return True if the number of steps is too large for the time or memory of a case."""
    try:
        return 10**5 < int(count) <= 2**53
    except (TypeError, ValueError, OverflowError):
        return False


def _small(dt: Any) -> bool:
    try:
        return 0 < float(dt) < 1e-4
    except (TypeError, ValueError, OverflowError):
        return False
