"""Use robots of all kinds in one process for a long time: `python -m fuzz soak --minutes 60`.

In each round, one robot is loaded, modified, evaluated, simulated, saved, reloaded and deleted.
Each result is checked against an identity. Memory, mappings, threads and open files are sampled.
Their medians in the last third of the run must not exceed those in the middle third by more than
5 %.
"""

import contextlib
import faulthandler
import gc
import mmap
import os
import random
import signal
import statistics
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import mutations
import numpy as np
from typer.testing import CliRunner

import chasles
from chasles import robots
from chasles.cli import app
from fuzz import CORPUS

PATIENCE = 300.0
"""Time limit of a round in seconds; then the stacks of all threads are printed."""

EVERY = 10.0
"""Seconds between samples."""

GROWTH = 1.05
"""Maximum ratio of the median in the last third to the median in the middle third."""

MAKERS: tuple[Callable[[int], chasles.Robot], ...] = (
    lambda k: robots.planar(1 + k % 3),
    lambda k: robots.puma560(),
    lambda k: robots.stanford_arm(),
    lambda k: robots.four_bar(),
    lambda k: robots.random_tree(1 + k % 4, k % 50),
    lambda k: robots.random_tree(2, k % 50, floating=True),
)
"""Functions that create a robot without a file; k is the index of the round."""

FILES = tuple(path for path in sorted(CORPUS.glob("robots/*")) if path.stem != "delta")
"""Robot files of every format, without the delta robot, which would take most of the time."""


class Sample(NamedTuple):
    """Resources of the process: resident and anonymous memory in bytes, and counts."""

    seconds: float
    rounds: int
    resident: int
    anonymous: int
    mappings: int
    threads: int
    files: int

    def __str__(self) -> str:
        sizes = f"{self.resident / 2**20:.1f} MiB resident, {self.anonymous / 2**20:.1f} anonymous"
        counts = f"{self.mappings} mappings, {self.threads} threads, {self.files} files"
        return f"{self.seconds:.0f} s, {self.rounds} rounds: {sizes}, {counts}"


def sample(seconds: float, rounds: int) -> Sample:
    """Return the current resources of the process, after a garbage collection."""
    gc.collect()
    rollup = Path("/proc/self/smaps_rollup").read_text()
    anonymous = next(int(x.split()[1]) for x in rollup.splitlines() if x.startswith("Anonymous:"))
    return Sample(
        seconds,
        rounds,
        int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE,
        anonymous * 1024,
        Path("/proc/self/maps").read_text().count("\n"),
        len(os.listdir("/proc/self/task")),
        len(os.listdir("/proc/self/fd")),
    )


def growth(samples: list[Sample]) -> list[str]:
    """Return a line for each quantity that grew from the middle third to the last."""
    third = len(samples) // 3
    if third == 0:
        return []
    found = []
    for name in ("resident", "anonymous", "mappings", "threads", "files"):
        middle, last = (
            statistics.median(getattr(s, name) for s in part)
            for part in (samples[third:-third], samples[-third:])
        )
        if last > GROWTH * middle:
            found.append(f"{name}: {middle:.0f}, then {last:.0f} ({last / middle - 1.0:+.1%})")
    return found


def soak(seconds: float, first: int, tell: Callable[[str], object] = print) -> list[str]:
    """Run rounds for the given number of seconds; return a line per error."""
    begun, told, number, wrong = time.monotonic(), 0.0, first, list[str]()
    samples, done = list[Sample](), Counter[str]()
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(place)
        mutations.put(folder)
        while (now := time.monotonic() - begun) < seconds:
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            try:
                done += live(number, folder)
            except Exception as error:
                wrong.append(f"round {number}: {error!r:.500}")
                tell(wrong[-1])
            number += 1
            if now - told > min(EVERY, seconds / 9) or not samples:
                told = now
                samples.append(sample(now, number - first))
                tell(str(samples[-1]))
    faulthandler.cancel_dump_traceback_later()
    tell(f"{number - first} rounds: " + ", ".join(f"{n} {name}" for name, n in done.items()))
    return wrong + growth(samples)


def live(number: int, folder: Path) -> Counter[str]:
    """Create a robot and run a random selection of `STEPS` on it; return the steps taken."""
    rng = random.Random(f"soak:{number}")
    draw = np.random.default_rng(number)
    robot, done = _made(rng, number, folder), Counter[str](rounds=1)
    for name, step in STEPS.items():
        if rng.random() < 0.5:
            done[name] += bool(step(robot, rng, draw, folder))
    return done


def _made(rng: random.Random, number: int, folder: Path) -> chasles.Robot:
    """Return a robot from a file or a function.

    One robot in four has a random gravity, so that its code is not shared with other robots.
    """
    if rng.random() < 0.5:
        source = rng.choice(FILES)
        path = folder / source.name
        path.write_bytes(source.read_bytes())
        robot = chasles.load(path)
    else:
        robot = rng.choice(MAKERS)(number)
    if rng.random() < 0.25:
        robot = robot.with_gravity([0.0, 0.0, -1.0 - rng.random()])
    return robot


def _compute(robot: chasles.Robot, rng: random.Random, draw: Any, folder: Path) -> bool:
    """Check that forward and inverse dynamics agree, in a batch and for one state."""
    if robot.loops:
        return False
    q, (qd, tau) = robot.random(draw, size=40), draw.normal(size=(2, 40, robot.nv))
    threads = rng.choice((None, 1, 2))
    qdd = robot.forward_dynamics(q, qd, tau, threads=threads)
    again = robot.inverse_dynamics(q, qd, qdd, threads=threads)
    scale = np.max(np.abs(robot.mass_matrix(q)) @ np.abs(qdd)[..., None], initial=1.0)
    assert np.allclose(again, tau, rtol=1e-6, atol=1e-6 * scale), "forward dynamics"
    one = robot.inverse_dynamics(q[3], qd[3], qdd[3])
    assert np.allclose(one, again[3], rtol=1e-9, atol=1e-9 * scale), "one state"
    return True


def _edit(robot: chasles.Robot, rng: random.Random, draw: Any, folder: Path) -> bool:
    """Check that locking a joint removes degrees of freedom and does not change the mass."""
    if robot.loops or not robot.nv:
        return False
    joint = rng.choice(robot.moving_joints)
    try:
        changed = robot.lock(joint)
    except chasles.ChaslesError:
        return False  # mimic joints follow this joint
    assert changed.nv < robot.nv
    assert np.isclose(changed.mass, robot.mass)
    return True


def _reach(robot: chasles.Robot, rng: random.Random, draw: Any, folder: Path) -> bool:
    """Check that a configuration reported as solved reaches its target."""
    frame = robot.frames[-1]
    T = robot.forward_kinematics(robot.random(draw), frame=frame)
    found = robot.inverse_kinematics({frame: T}, tries=20)
    assert np.all(np.isfinite(found.q))
    if found.solved:
        near = robot.forward_kinematics(found.q, frame=frame)
        assert np.allclose(near, T, atol=1e-3 * (1.0 + np.max(np.abs(T)))), "target not reached"
    return True


def _simulate(robot: chasles.Robot, rng: random.Random, draw: Any, folder: Path) -> bool:
    """Check that two simulations of the same motion are bitwise identical."""
    if robot.loops:
        return False
    q, qd = robot.random(draw), 0.1 * draw.normal(size=robot.nv)
    options: dict[str, Any] = {"dt": 1e-3, "steps": 20}
    options["integrator"] = rng.choice(("rk4", "semi-implicit", "euler"))
    first, second = (robot.simulate(q, qd, **options) for _ in range(2))
    assert np.array_equal(first.q, second.q, equal_nan=True)
    return True


def _save(robot: chasles.Robot, rng: random.Random, draw: Any, folder: Path) -> bool:
    """Check that a robot that was saved and reloaded has the same mass matrix."""
    path = folder / f"saved{rng.choice(('.urdf', '.sdf', '.toml', '.xml'))}"
    try:
        chasles.save(robot, path, overwrite=True)
    except chasles.ChaslesError:
        return False  # the format cannot represent the robot
    again = chasles.load(path)
    if not robot.loops and again.nq == robot.nq and again.joints == robot.joints:
        q = robot.random(draw)
        M = robot.mass_matrix(q)
        assert np.allclose(again.mass_matrix(q), M, rtol=1e-6, atol=1e-6 * np.max(M, initial=1.0))
    return True


def _refuse(robot: chasles.Robot, rng: random.Random, draw: Any, folder: Path) -> bool:
    """Call functions that raise an error; errors must not keep objects alive."""
    for wrong in (np.full(robot.nq + 1, 1.0), [[]], "q", np.full(robot.nq, np.nan)):
        with contextlib.suppress(chasles.ChaslesError):
            robot.mass_matrix(wrong)
    try:
        chasles.load(folder / "nothing.urdf")
    except chasles.ChaslesError:
        return True
    raise AssertionError("loading a missing file did not raise an error")


def _interrupt(robot: chasles.Robot, rng: random.Random, draw: Any, folder: Path) -> bool:
    """Check that a call works after an interrupt, with results identical to another thread's."""
    if threading.current_thread() is not threading.main_thread():
        return False
    q, armed = robot.random(draw, size=200), [True]

    def stop(*_: Any) -> None:
        if armed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        try:  # repeated, because Python ignores exceptions raised during finalization
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 2e-3), 0.1)
            while True:
                robot.mass_matrix(q, threads=2)
        finally:
            armed.clear()
    except KeyboardInterrupt:
        armed.clear()
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)
    results: list[np.ndarray] = []
    beside = threading.Thread(target=lambda: results.append(robot.mass_matrix(q, threads=2)))
    beside.start()
    beside.join()
    assert np.array_equal(results[0], robot.mass_matrix(q), equal_nan=True)
    return True


def _command(robot: chasles.Robot, rng: random.Random, draw: Any, folder: Path) -> bool:
    """Check that commands succeed."""
    if rng.random() > 0.1:
        return False
    words = rng.choice((["info", "planar:2"], ["cost", "planar:2", "-f", "mass_matrix"]))
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output[-500:]
    return True


STEPS = {
    "compute": _compute,
    "edit": _edit,
    "reach": _reach,
    "simulate": _simulate,
    "save": _save,
    "refuse": _refuse,
    "interrupt": _interrupt,
    "command": _command,
}
"""Steps that use a robot and check the results; a step that does not apply returns False."""
