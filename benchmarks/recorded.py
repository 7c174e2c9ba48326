"""Create logs of a Panda with a finger: folders of identical files, of any total size."""

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import csv, parquet

import chasles
from benchmarks.robots import CASES, path_of
from chasles.identification.logs import column_names

STEP = 1e-3
"""Time (s) between consecutive states."""

DIGITS = 4
"""Number of decimal places in .csv files."""

NOISE = 0.01
"""Standard deviation of torque noise, relative to that of the torques."""


def robot_file() -> Path:
    """Return the path of the Panda's URDF file."""
    return path_of(CASES["panda"])


def panda() -> chasles.Robot:
    """Return the Panda as loaded by the commands, with eight degrees of freedom."""
    return chasles.load(robot_file())


def columns(robot: chasles.Robot, states: int, *, tau: bool) -> dict[str, np.ndarray]:
    """Return a motion (Fourier series) with exact derivatives and, if `tau`, noisy torques."""
    rng, t = np.random.default_rng(0), STEP * np.arange(states)
    w = 2.0 * np.pi * np.array([0.11, 0.23, 0.37, 0.53, 0.71])
    phase = np.outer(t, w)
    s, c = np.sin(phase), np.cos(phase)
    low, high = robot.limits.lower, robot.limits.upper
    a = 0.1 * (high - low) * rng.uniform(-1.0, 1.0, size=(len(w), robot.nv))
    q = 0.5 * (low + high) + s @ a
    qd, qdd = (c * w) @ a, -(s * w**2) @ a
    names, found = column_names(robot), {"t": t}
    arrays = {"q": q, "qd": qd, "qdd": qdd}
    if tau:
        torque = robot.inverse_dynamics(q, qd, qdd)
        arrays["tau"] = torque + NOISE * torque.std(axis=0) * rng.normal(size=torque.shape)
    for name, array in arrays.items():
        found |= dict(zip(names[name], array.T, strict=True))
    return found


def write(folder: Path, files: int, states: int, *, kind: str = "parquet", tau: bool) -> None:
    """Write a folder of logs with `states` rows each. All but the first are links to the first."""
    folder.mkdir(parents=True)
    first, table = folder / f"log-00000.{kind}", columns(panda(), states, tau=tau)
    if kind == "csv":
        table = {name: array.round(DIGITS) for name, array in table.items()}
        csv.write_csv(pyarrow.table(table), first)
    else:
        parquet.write_table(pyarrow.table(table), first, row_group_size=131_072)
    for k in range(1, files):
        os.link(first, folder / f"log-{k:05d}.{kind}")


def separate(folder: Path) -> None:
    """Replace links by copies, and remove all files from the page cache."""
    first, *others = sorted(folder.iterdir())
    for other in others:
        other.unlink()
        shutil.copyfile(first, other)
    for file in (first, *others):
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
