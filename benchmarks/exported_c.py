"""Time exported C code for one state at a time and in batches, and compare it with Pinocchio.

The exported function is called once per state, by a loop in another C file. There are two kinds of
states: random states, and a smooth motion sampled at 1 kHz, as in a controller. For random states,
the processor cannot predict the branches of the C library's sine function.
"""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import chasles
from benchmarks import pinocchio_peer
from benchmarks.compare import SNAP_AMPLIFICATION, TOLERANCE, Effort, Timed, checked
from benchmarks.robots import CASES, chasles_robot, pinocchio_model, snapped_angle
from benchmarks.routes import Route
from benchmarks.states import States
from benchmarks.targets import EXPORTED_C

COMPILER, FLAGS = "gcc", ("-O3", "-march=native")
ROBOT, FUNCTION = "panda", "inverse_dynamics"

LOOP = f"""
#include "{ROBOT}.h"
void each(size_t count, const double *q, const double *qd, const double *qdd, double *tau)
{{
    for (size_t k = 0U; k < count; ++k) {{
        {ROBOT}_{FUNCTION}(&q[k * 7U], &qd[k * 7U], &qdd[k * 7U], &tau[k * 7U]);
    }}
}}
"""


@dataclass(frozen=True)
class Section:
    """Measurements of all routes for one kind of states."""

    states: str
    routes: tuple[Timed, ...]

    def ratio(self, label: str) -> float:
        """Return the speed of a route relative to Pinocchio's own loop."""
        times = {route.label: route.minimum for route in self.routes}
        return times["rneaInParallel"] / times[label]


def measure(effort: Effort, progress: Callable[[str], None] = lambda _: None) -> list[Section]:
    """Time all routes alternately. Raise WrongAnswer if results differ."""
    if shutil.which(COMPILER) is None:
        raise FileNotFoundError(f"{COMPILER} is not installed; install it to measure exported C")
    robot, model = chasles_robot(CASES[ROBOT]), pinocchio_model(CASES[ROBOT])
    tolerance = TOLERANCE + SNAP_AMPLIFICATION * snapped_angle(CASES[ROBOT])
    found = []
    with tempfile.TemporaryDirectory() as folder:
        built = {
            label: _library(robot, Path(folder) / label, own_sine=label == "own sine")
            for label in ("libm", "own sine")
        }
        for kind, states in (
            ("random", States.draw(robot, effort.batch)),
            ("a smooth motion", _motion(robot, effort.batch)),
        ):
            progress(f"{CASES[ROBOT].title}: exported C, {kind}")
            theirs = pinocchio_peer.coordinates(robot, model, states)
            peers = pinocchio_peer.routes(model, FUNCTION, states, theirs, CASES[ROBOT].tip)
            truth = peers[0].answers()
            routes = [peer for peer in peers if peer.whole]
            routes += [_route(library.each, label, states) for label, library in built.items()]
            batch = getattr(built["libm"], f"{ROBOT}_{FUNCTION}_batch")
            routes.append(_route(batch, "batch", states))
            timed = checked(CASES[ROBOT].title, FUNCTION, routes, truth, tolerance, effort)
            found.append(Section(kind, timed))
    return found


def _library(robot: chasles.Robot, folder: Path, *, own_sine: bool) -> ctypes.CDLL:
    """Compile the exported function and the loop separately, and load the library."""
    chasles.export(robot, FUNCTION, folder, prefix=ROBOT, own_sine=own_sine)
    (folder / "loop.c").write_text(LOOP)
    for name in (ROBOT, "loop"):
        files = [folder / f"{name}.c", "-o", folder / f"{name}.o"]
        subprocess.run([COMPILER, *FLAGS, "-fPIC", "-c", *files], check=True)
    objects = [folder / f"{ROBOT}.o", folder / "loop.o", "-o", folder / "all.so", "-lm"]
    subprocess.run([COMPILER, "-shared", *objects], check=True)
    return ctypes.CDLL(str(folder / "all.so"))


def _motion(robot: chasles.Robot, count: int) -> States:
    """Return a motion at 1 kHz: each joint oscillates about mid-range at its own frequency."""
    limits = [robot.joint(name).limits for name in robot.joints]
    low, high = (np.array([getattr(x, end) for x in limits]) for end in ("lower", "upper"))
    t, w = 1e-3 * np.arange(count)[:, None], np.linspace(1.0, 4.0, robot.nv)
    size = 0.4 * (high - low)
    q = (low + high) / 2.0 + size * np.sin(w * t)
    return States(q, size * w * np.cos(w * t), -size * w**2 * np.sin(w * t), np.zeros_like(q))


def _route(function: Callable[..., object], label: str, states: States) -> Route:
    inputs = states.inputs(FUNCTION)
    out = np.full_like(inputs[0], np.nan)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*inputs, out)]
    run = partial(function, ctypes.c_size_t(len(out)), *pointers)
    return Route("chasles", label, True, len(out), run, lambda: out)


def show(sections: list[Section], console: Console) -> None:
    """Print times per state, speeds relative to Pinocchio, and targets."""
    title = (
        f"{CASES[ROBOT].title}, {FUNCTION}: exported C, {COMPILER} {' '.join(FLAGS)}, one thread"
    )
    table = Table(title=title)
    for column in ("states", "route", "ns per state", "vs. rneaInParallel", "target", "error"):
        table.add_column(column, justify="left" if column in ("states", "route") else "right")
    for section in sections:
        for route in section.routes:
            target = EXPORTED_C.get(route.label)
            table.add_row(
                section.states,
                f"{route.library}: {route.label}",
                f"{route.minimum * 1e9:.1f}",
                f"{section.ratio(route.label):.2f}",
                "" if target is None else f"{target:g}",
                f"{route.error:.1e}",
            )
    console.print(table)
