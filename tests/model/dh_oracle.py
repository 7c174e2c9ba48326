"""Denavit-Hartenberg arms in NumPy: products of 4x4 matrices, and energies by differences.

This module shares no code with the library.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

Row = dict[str, Any]


def turn(axis: int, angle: float) -> np.ndarray:
    T, (i, j) = np.eye(4), ((1, 2), (2, 0), (0, 1))[axis]
    T[i, i] = T[j, j] = np.cos(angle)
    T[j, i], T[i, j] = np.sin(angle), -np.sin(angle)
    return T


def shift(axis: int, length: float) -> np.ndarray:
    T = np.eye(4)
    T[axis, 3] = length
    return T


MOVES = {
    "revolute": lambda row, q: (q[0], 0.0),
    "prismatic": lambda row, q: (0.0, q[0]),
    "helical": lambda row, q: (q[0], row["pitch"] * q[0]),
    "cylindrical": lambda row, q: (q[0], q[1]),
}
"""Displacements that each joint type adds to theta and d."""


def link(row: Row, convention: str, q: Sequence[float]) -> np.ndarray:
    """Return A_i of a row: Rx Tx Rz Tz (modified) or Rz Tz Tx Rx (standard)."""
    turned, slid = MOVES[row.get("kind", "revolute")](row, q)
    theta, d = row["theta"] + turned, row["d"] + slid
    about_x = turn(0, row["alpha"]) @ shift(0, row["a"])
    about_z = turn(2, theta) @ shift(2, d)
    return about_x @ about_z if convention == "modified" else about_z @ about_x


def poses(
    rows: Sequence[Row], convention: str, q: Sequence[float], base: np.ndarray
) -> list[np.ndarray]:
    """Return the poses of frames 0 to n in the world."""
    T, rest = [base], list(q)
    for row in rows:
        count = 2 if row.get("kind") == "cylindrical" else 1
        T.append(T[-1] @ link(row, convention, rest[:count]))
        del rest[:count]
    assert not rest
    return T


def potential(rows: Sequence[Row], frames: Sequence[np.ndarray], gravity: np.ndarray) -> float:
    """Return the potential energy (J) of all centers of mass in the gravity field."""
    centers = [T @ [*row["center"], 1.0] for row, T in zip(rows, frames[1:], strict=True)]
    return -sum(row["mass"] * gravity @ c[:3] for row, c in zip(rows, centers, strict=True))


def kinetic(rows: Sequence[Row], convention: str, base: np.ndarray) -> Any:
    """Return a function (q, qd) for the kinetic energy, which differentiates poses numerically."""

    def energy(q: np.ndarray, qd: np.ndarray, h: float = 1e-6) -> float:
        before, here, after = (poses(rows, convention, q + s * h * qd, base) for s in (-1, 0, 1))
        total = 0.0
        for k, row in enumerate(rows, start=1):
            rate = (after[k] - before[k]) / (2.0 * h)
            spin = rate[:3, :3] @ here[k][:3, :3].T
            w = here[k][:3, :3].T @ [spin[2, 1], spin[0, 2], spin[1, 0]]
            v = (rate @ [*row["center"], 1.0])[:3]
            total += 0.5 * row["mass"] * v @ v + 0.5 * w @ row["inertia"] @ w
        return total

    return energy


def random_rows(kinds: str, seed: int) -> list[dict[str, Any]]:
    """Return random rows. Each link consists of point masses, so its inertia is consistent."""
    rng = np.random.default_rng(seed)
    rows = []
    for letter in kinds:
        masses, points = rng.uniform(0.2, 1.0, 6), rng.uniform(-0.3, 0.3, (6, 3))
        c = masses @ points / masses.sum()
        d = points - c
        J = np.einsum("k,kij->ij", masses, [x @ x * np.eye(3) - np.outer(x, x) for x in d])
        row = dict(zip(("theta", "d", "a", "alpha"), rng.uniform(-1.0, 1.0, 4), strict=True))
        kind = {"R": "revolute", "P": "prismatic", "H": "helical", "C": "cylindrical"}[letter]
        row |= {"pitch": float(rng.uniform(-0.3, 0.3))} if letter == "H" else {}
        rows.append(row | {"kind": kind, "mass": masses.sum(), "center": c, "inertia": J})
    return rows
