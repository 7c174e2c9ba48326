"""Inverse kinematics: odd targets, guesses, weights and options, batches, interrupts."""

import random
import signal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from support import tree

import chasles
from chasles import targets
from fuzz import CORPUS
from fuzz.target import Case, allowed
from fuzz.values import COUNTS, NUMBERS, SAME, TEXTS, hostile, thing

ROBOTS = {
    "planar": lambda: chasles.robots.planar(2),
    "puma560": chasles.robots.puma560,
    "floating": lambda: tree(2, 4, floating=True),
    "four_bar": chasles.robots.four_bar,
    "locked": lambda: chasles.robots.planar(1).lock({"joint1": 0.3}),
    "rolls": lambda: chasles.load(CORPUS / "small" / "rolls.toml"),
}
LEADS: list[tuple[int, ...]] = [(), (), (), (1,), (2,), (9,), (65,), (2, 3), (0,)]
MOST = 50
"""Maximum number of initial configurations per problem, which keeps the cases short."""


@cache
def robot(name: str) -> chasles.Robot:
    return ROBOTS[name]()


def make() -> Case:
    return case


def case(rng: random.Random, folder: Path) -> None:
    """Run one call: a valid one with checks, an interrupted one, or a hostile one."""
    found, turn = robot(rng.choice(list(ROBOTS))), rng.random()
    draw = np.random.default_rng(rng.randrange(2**32))
    if turn < 0.35:
        agree(rng, found, draw)
    elif turn < 0.4:
        interrupted(rng, found, draw)
    else:
        odd(rng, found, draw)


def _kinds(T: np.ndarray, center: np.ndarray, other: str) -> dict[str, Any]:
    """Return valid targets of each kind, from poses (..., 4, 4)."""
    return {
        "matrix": T,
        "pose": targets.Pose(T, weight=(1.0, 2.0), tolerance=1e-5),
        "position": targets.Position(T[..., :3, 3]),
        "orientation": targets.Orientation(T[..., :3, :3]),
        "axis": targets.Axis(T[..., :3, 2]),
        "look": targets.LookAt(T[..., :3, 3] + 2.0 * T[..., :3, 2]),
        "relative": targets.Relative(other, T),
        "center": targets.CenterOfMass(center),
    }


def _stated(
    rng: random.Random, found: chasles.Robot, lead: tuple[int, ...], draw: Any
) -> tuple[str, str, Any]:
    """Return a kind of target, its key, and a target that some configuration reaches."""
    frame, q = found.frames[-1], np.asarray(found.random(draw, size=lead))
    T = np.asarray(found.forward_kinematics(q, frame=frame))
    center = np.asarray(found.center_of_mass(q)) if found.nv else T[..., :3, 3]
    kinds = _kinds(T, center, found.frames[0])
    kind = rng.choice([name for name in kinds if name != "center" or found.nv])
    return kind, targets.CENTER if kind == "center" else frame, kinds[kind]


def agree(rng: random.Random, found: chasles.Robot, draw: Any) -> None:
    """Check that solutions reach their targets within the joint limits.

    The solution of a single problem must be bitwise identical to its solution in a batch.
    """
    lead = rng.choice((*LEADS, (3000,)) if rng.random() < 0.2 else LEADS)
    kind, key, target = _stated(rng, found, lead, draw)
    options: dict[str, Any] = {"tries": rng.randint(1, MOST), "seed": rng.choice((0, 1, 2**40))}
    if rng.random() < 0.3:
        options["guess"] = SAME["list"](np.asarray(found.random(draw)))
    if rng.random() < 0.2 and found.moving_joints:
        options["fixed"] = rng.choice(found.moving_joints)
    whole = found.inverse_kinematics({key: target}, threads=rng.choice((None, 1, 2)), **options)
    assert whole.q.shape == (*lead, found.nq)
    assert np.all(np.isfinite(whole.q))
    assert np.all((whole.q >= found.limits.lower) & (whole.q <= found.limits.upper)), "limits"
    q = whole.q[whole.solved]
    if kind in ("matrix", "pose", "position"):
        poses = target.pose if kind == "pose" else target
        points = target.point if kind == "position" else poses[..., :3, 3]
        near = found.forward_kinematics(q, frame=key)[..., :3, 3]
        assert np.allclose(near, points[whole.solved], atol=2e-5), "position"
        if kind != "position":
            turn = found.forward_kinematics(q, frame=key)[..., :3, :3]
            assert np.allclose(turn, poses[whole.solved][..., :3, :3], atol=2e-5), "orientation"
    if lead and 0 not in lead and kind == "matrix":
        k = tuple(rng.randrange(n) for n in lead)
        one = found.inverse_kinematics({key: target[k]}, **options)
        assert np.array_equal(one.q, whole.q[k]), f"{key} {lead} {options}"
        assert one.solved == whole.solved[k]


def interrupted(rng: random.Random, found: chasles.Robot, draw: Any) -> None:
    """Check that a call after interrupts gives the same result as before."""
    T = found.forward_kinematics(found.random(draw, size=2000), frame=found.frames[-1])

    def call() -> np.ndarray:
        return found.inverse_kinematics({found.frames[-1]: T}, tries=4, threads=2).q

    expected, armed = call(), list[None]()

    def stop(*_: Any) -> None:
        if armed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    for _ in range(5):
        try:
            try:  # repeated, because Python ignores exceptions raised during finalization
                armed.append(None)
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 0.01), 0.1)
                while True:
                    call()
            finally:
                armed.clear()
        except KeyboardInterrupt:
            armed.clear()
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)
    assert np.array_equal(call(), expected)


def odd(rng: random.Random, found: chasles.Robot, draw: Any) -> None:
    """Solve with hostile arguments, which must give finite positions or an allowed error."""
    lead = rng.choice(LEADS)
    _, key, target = _stated(rng, found, lead, draw)
    named: dict[str, Any] = {"tries": rng.randint(1, 5)}
    odds = {
        "guess": lambda: hostile(rng, np.asarray(found.random(draw, size=rng.choice(LEADS)))),
        "near": lambda: hostile(rng, np.asarray(found.random(draw, size=lead))),
        "fixed": lambda: rng.choice((found.moving_joints, [found.frames[0]], *TEXTS)),
        "solutions": lambda: rng.choice(("all", "first", *TEXTS)),
        "count": lambda: rng.choice([c for c in COUNTS if not _many(c, 1000)]),
        "seed": lambda: rng.choice(COUNTS),
        "tries": lambda: rng.choice([c for c in COUNTS if not _many(c, MOST)]),
        "threads": lambda: rng.choice(COUNTS),
    }
    for name in rng.sample(list(odds), rng.choice((0, 1, 1, 2, 3))):
        named[name] = odds[name]()
    try:
        given: Any = {key: _target(rng, found, target) if rng.random() < 0.7 else target}
        if rng.random() < 0.3:
            other = rng.choice((*found.frames, targets.CENTER, "none", *TEXTS[:6]))
            given[other] = _target(rng, found, target)
        if rng.random() < 0.05:
            given = thing(rng)
        got = found.inverse_kinematics(given, **named)
    except Exception as error:
        if not allowed(error):
            raise
        return
    assert named.get("solutions") == "all" or np.all(np.isfinite(got.q)), "not a number"


def _target(rng: random.Random, found: chasles.Robot, good: Any) -> Any:
    """Return a target with odd values, weights or axes, a list of targets, or any value."""
    turn = rng.random()
    if turn < 0.1:
        return thing(rng)
    if turn < 0.2:
        return [good, good] if rng.random() < 0.5 else [good, thing(rng)]
    if turn < 0.4:
        return hostile(rng, np.eye(4))
    point = rng.choice((np.ones(3), np.full(3, rng.choice((1e300, -1e155, 1e-300, 5e-324, 0.0)))))
    value = hostile(rng, point) if rng.random() < 0.6 else point
    numbers = (*NUMBERS, (1.0, 2.0), [0.0, 0.0], (1.0,), (1, 2, 3), np.ones(2))
    odd = {name: rng.choice(numbers) for name in ("weight", "tolerance") if rng.random() < 0.3}
    quaternion = rng.choice((np.ones(4), np.full(4, 1e300), np.full(4, 1e-320), np.zeros(4)))
    kind = rng.choice(KINDS)
    if kind is targets.Relative:
        to = rng.choice((*found.frames, *TEXTS))
        return kind(to, rng.choice(((value, quaternion), np.eye(4))), **odd)
    if kind is targets.Pose:
        return kind(rng.choice(((value, quaternion), hostile(rng, np.eye(4)))), **odd)
    if kind is targets.Orientation:
        return kind(rng.choice((quaternion, hostile(rng, np.eye(3)))), **odd)
    if kind in (targets.Axis, targets.LookAt) and rng.random() < 0.5:
        odd["axis"] = hostile(rng, point)
    return kind(value, **odd)


KINDS: tuple[Any, ...] = (
    *(targets.Pose, targets.Relative, targets.Orientation, targets.Axis, targets.LookAt),
    *(targets.Position, targets.CenterOfMass),
)


def _many(count: Any, most: int) -> bool:
    """Return True if a count is too large for the time or memory of a case."""
    try:
        return most < int(count) <= 10**6
    except (TypeError, ValueError, OverflowError):
        return False
