"""Robot parameters: `identify` with odd measurements, `with_parameters` with odd values."""

import math
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from support import tree

import chasles
from fuzz.target import Case, allowed
from fuzz.values import COUNTS, NUMBERS, TEXTS, hostile, thing

ROBOTS = {
    "planar": lambda: chasles.robots.planar(2),
    "puma560": chasles.robots.puma560,
    "floating": lambda: tree(2, 4, floating=True),
    "four_bar": chasles.robots.four_bar,
    "locked": lambda: chasles.robots.planar(1).lock({"joint1": 0.3}),
}
TERMS = ("inertia", "armature", "damping", "friction", "offset")
FIELDS = ("mass", "center", "inertia", "placement", "armature", "damping", "friction", "", "x")
SCALES = (1e-300, 1e-12, 1e-3, 1.0, 1.0, 1.0, 1e3, 1e12, 1e155, 1e300)


@cache
def robot(name: str) -> chasles.Robot:
    return ROBOTS[name]()


def make() -> Case:
    return case


def case(rng: random.Random, folder: Path) -> None:
    """Identify the parameters of a robot, or change them."""
    found = robot(rng.choice(list(ROBOTS)))
    draw = np.random.default_rng(rng.randrange(2**32))
    turn = rng.random()
    try:
        if turn < 0.15:
            known(rng, draw)
        elif turn < 0.55:
            odd(rng, found, draw)
        else:
            changed(rng, found)
    except Exception as error:
        if not allowed(error):
            raise


def known(rng: random.Random, draw: Any) -> None:
    """Check that identification from torques without noise predicts these torques."""
    arm = robot("planar")
    link = rng.choice(("link1", "link2"))
    truth = arm.with_parameters({f"{link}.mass": rng.uniform(0.5, 3.0)})
    q, qd, qdd = draw.normal(size=(3, rng.choice((40, 200)), 2))
    tau = truth.inverse_dynamics(q, qd, qdd)
    found = chasles.identify(arm, q=q, qd=qd, qdd=qdd, tau=tau, include=["inertia"])
    worst = found.validate(q, qd, qdd, tau, consistent=False)
    assert np.all(worst < 1e-6 * np.abs(tau).max()), worst


def measured(rng: random.Random, found: chasles.Robot, draw: Any) -> dict[str, Any]:
    """Return random motions and torques of any length and scale; some are at rest."""
    count = rng.choice((0, 1, 2, 5, 30, 30))
    q = np.asarray(found.random(draw, size=(count,)))
    qd, qdd, tau = draw.normal(size=(3, count, found.nv)) * rng.choice(SCALES)
    turn = rng.random()
    if turn < 0.1 and count:
        q[:], qd[:], qdd[:] = q[0], 0.0, 0.0
    if rng.random() < 0.3:
        tau = tau * rng.choice((0.0, *SCALES))
    return {"q": q, "qd": qd, "qdd": qdd, "tau": tau}


def odd(rng: random.Random, found: chasles.Robot, draw: Any) -> None:
    """Identify with hostile arguments, which must give a usable result or an allowed error."""
    given = measured(rng, found, draw)
    if rng.random() < 0.4:
        name = rng.choice(list(given))
        given[name] = hostile(rng, given[name])
    odds = {
        "include": lambda: rng.choice((rng.sample(TERMS, rng.randrange(6)), *TEXTS, thing(rng))),
        "f_ext": lambda: rng.choice(({found.frames[-1]: np.ones(6)}, thing(rng))),
        "actuated": lambda: rng.choice((found.joints[:1], found.joints, *TEXTS, thing(rng))),
        "loss": lambda: rng.choice(("huber", "squares", *TEXTS)),
        "prior": lambda: rng.choice(("pull-back", "entropic", *TEXTS)),
        "deviation": lambda: rng.choice(NUMBERS),
        "seed": lambda: rng.choice(COUNTS),
    }
    named = {name: odds[name]() for name in rng.sample(list(odds), rng.choice((0, 1, 1, 2)))}
    who: Any = thing(rng) if rng.random() < 0.02 else found
    result = chasles.identify(who, **given, **named)
    assert np.all(np.isfinite(result.vector)), "parameters are not finite"
    result.report()
    repr(result)
    again = found.with_parameters(result)
    assert math.isfinite(again.mass)
    others = measured(rng, found, draw)
    if rng.random() < 0.5:
        name = rng.choice(list(others))
        others[name] = hostile(rng, others[name])
    result.validate(*others.values(), consistent=rng.choice((True, False, thing(rng))))
    result.predict(*list(others.values())[:3])


def changed(rng: random.Random, found: chasles.Robot) -> None:
    """Change parameters with hostile names and values.

    The result must be an allowed error, or a robot with these values.
    """
    values: dict[Any, Any] = {}
    plain: dict[Any, Any] = {}
    for _ in range(rng.choice((1, 1, 2, 3))):
        part = rng.choice((*found.bodies, *found.joints, *TEXTS))
        name: Any = rng.choice((f"{part!s}.{rng.choice(FIELDS)}", "gravity", part, thing(rng)))
        try:
            right = found.parameter(name)
        except Exception as error:
            if not allowed(error):
                raise
            right = np.ones(())
        scaled = right * rng.choice((0.0, -1.0, 0.5, 1.0, 1.0, 2.0, 1e-300, 1e12, 1e155, 1e300))
        try:
            values[name] = rng.choice((scaled, scaled, hostile(rng, right), rng.choice(NUMBERS)))
            plain[name] = scaled if values[name] is scaled else None
        except TypeError:
            return  # the name cannot be a key
    given: Any = values if rng.random() < 0.95 else thing(rng)
    made = found.with_parameters(given)
    for name, value in plain.items() if given is values else ():
        if value is not None and (name == "gravity" or name.endswith((".mass", ".center"))):
            assert np.allclose(made.parameter(name), value, atol=1e-300, rtol=1e-12), name
    q = made.random(seed=0)
    if rng.random() < 0.05:  # compiles a new function each time
        made.bias_forces(q, np.zeros(made.nv))
