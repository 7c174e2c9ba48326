"""Configuration spaces for trajectories: vectors, robots with quaternions, rotations, poses.

A curve near an anchor a is integrate(a, y(t)), where y is a displacement vector. If displacements
are not additive, the velocity of the curve is v = phi(-ad(y)) y' with phi(x) = (e^x - 1) / x. The
matrix phi(-ad(y)) is the right Jacobian of the exponential (Iserles, Munthe-Kaas, Norsett and
Zanna, Acta Numerica 9, 2000, section 2.5).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Any

import numpy as np
import scipy

from chasles.mathematics.linear import Vector
from chasles.robot import Robot

MOST_TERMS = 80
"""Maximum number of terms in the series for the Jacobian of the exponential.

For a full turn, 40 terms suffice.
"""


@dataclass(frozen=True, eq=False)
class Space:
    """Configuration space with elements of a given shape and displacements of a given size.

    `integrate(a, y)` moves an element a by a displacement y. `difference(a, b)` returns the
    displacement from a to b. `brackets` has an entry for each joint whose displacements are not
    additive: the slice of its velocities, and the matrices -ad(e) for all unit vectors e, as an
    array (n, n, n).
    """

    shape: tuple[int, ...]
    size: int
    integrate: Callable[[Any, Any], Any]
    difference: Callable[[Any, Any], Any]
    brackets: tuple[tuple[slice, np.ndarray], ...] = ()

    def velocities(self, y: np.ndarray, rates: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the velocity and its derivatives (..., size) at y, given the rates y', y'', ..."""
        found = [np.array(rate) for rate in rates]
        for where, bracket in self.brackets:
            jet = [y[..., where], *(rate[..., where] for rate in rates)]
            for rate, inner in zip(found, _velocities(bracket, jet), strict=True):
                rate[..., where] = inner
        return found

    def rates(self, y: np.ndarray, velocities: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Invert `velocities`: return y', y'', ... (..., size) for the given velocities at y."""
        if not self.brackets:
            return [np.array(v) for v in velocities]
        unit = np.eye(self.size)
        columns = np.broadcast_to(y[..., None, :], (*y.shape[:-1], self.size, self.size))
        jacobian = np.swapaxes(
            self.velocities(columns, [np.broadcast_to(unit, columns.shape)])[0], -1, -2
        )
        found: list[np.ndarray] = []
        for v in velocities:
            known = self.velocities(y, [*found, np.zeros_like(y)])[-1]
            found.append(np.linalg.solve(jacobian, (v - known)[..., None])[..., 0])
        return found


def _velocities(bracket: np.ndarray, jet: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the velocity for exponential coordinates y, and the derivatives of this velocity.

    The velocity is the sum over k of (-ad(y))^k y' / (k + 1)!. `jet` contains y and its
    derivatives.
    """
    matrices = [np.einsum("ijk,...i->...jk", bracket, each) for each in jet[:-1]]
    term = list(jet[1:])
    total = [np.array(each) for each in term]
    for k in range(MOST_TERMS):
        term = [
            sum(comb(r, s) * (matrices[s] @ term[r - s][..., None])[..., 0] for s in range(r + 1))
            / (k + 2.0)
            for r in range(len(term))
        ]
        for whole, part in zip(total, term, strict=True):
            whole += part
        if all(
            np.abs(p).max(initial=0.0) <= 1e-17 * np.abs(w).max(initial=0.0)
            for w, p in zip(total, term, strict=True)
        ):
            break
    return total


def vectors(size: int) -> Space:
    """Return the vector space of dimension `size`, with displacements q1 - q0."""
    return Space((size,), size, lambda q, v: q + v, lambda q0, q1: q1 - q0)


def of_robot(robot: Robot) -> Space:
    """Return the configuration space of a robot."""
    found = []
    for i in robot.model.movers:
        joint, where = robot.model.bodies[i].joint, robot.model.velocity_slices[i]
        if not joint.additive:
            units = [Vector(tuple(map(float, row))) for row in np.eye(joint.nv)]
            found.append((where, np.array([_entries(joint.drift(unit)) for unit in units])))
    return Space((robot.nq,), robot.nv, robot.integrate, robot.difference, tuple(found))


def _entries(matrix: Any) -> np.ndarray:
    return np.array([[float(x) for x in row] for row in matrix.rows])


@cache
def rotations() -> Space:
    """Return the space of rotation matrices (3, 3), with rotation vectors (rad) in body axes."""

    def integrate(R: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.asarray(R @ _turn(w))

    def difference(R0: np.ndarray, R1: np.ndarray) -> np.ndarray:
        return _turned(np.swapaxes(R0, -1, -2) @ R1)

    return Space((3, 3), 3, integrate, difference, ((slice(0, 3), -_cross_tensor()),))


@cache
def poses() -> Space:
    """Return the space of poses (4, 4), with twists in body axes (angular, then linear)."""

    def integrate(T: np.ndarray, v: np.ndarray) -> np.ndarray:
        step = np.zeros((*np.shape(v)[:-1], 4, 4))
        step[..., :3, :3], step[..., 3, 3] = _turn(v[..., :3]), 1.0
        step[..., :3, 3] = (_screw(v[..., :3]) @ v[..., 3:, None])[..., 0]
        return np.asarray(T @ step)

    def difference(T0: np.ndarray, T1: np.ndarray) -> np.ndarray:
        back = np.swapaxes(T0[..., :3, :3], -1, -2)
        w = _turned(back @ T1[..., :3, :3])
        far = back @ (T1[..., :3, 3] - T0[..., :3, 3])[..., None]
        return np.concatenate([w, np.linalg.solve(_screw(w), far)[..., 0]], axis=-1)

    cross = _cross_tensor()
    bracket = np.zeros((6, 6, 6))
    bracket[:3, :3, :3] = bracket[:3, 3:, 3:] = bracket[3:, 3:, :3] = -cross
    return Space((4, 4), 6, integrate, difference, ((slice(0, 6), bracket),))


def _cross_tensor() -> np.ndarray:
    """Return the cross-product matrices (3, 3, 3) of the coordinate unit vectors."""
    return np.array([np.cross(unit, np.eye(3)).T for unit in np.eye(3)])


def _turn(w: np.ndarray) -> np.ndarray:
    flat = scipy.spatial.transform.Rotation.from_rotvec(np.reshape(w, (-1, 3))).as_matrix()
    return flat.reshape(*np.shape(w)[:-1], 3, 3)


def _turned(R: np.ndarray) -> np.ndarray:
    flat = scipy.spatial.transform.Rotation.from_matrix(np.reshape(R, (-1, 3, 3))).as_rotvec()
    return flat.reshape(*np.shape(R)[:-2], 3)


def _screw(w: np.ndarray) -> np.ndarray:
    """Return the matrix V: in unit time, a constant body twist (w, u) translates by V u."""
    angle = np.linalg.norm(w, axis=-1)[..., None, None]
    small = angle < 1e-3
    safe = np.where(small, 1.0, angle)
    first = np.where(small, 0.5 - angle**2 / 24.0, (1.0 - np.cos(safe)) / safe**2)
    second = np.where(small, 1.0 / 6.0 - angle**2 / 120.0, (safe - np.sin(safe)) / safe**3)
    K = np.einsum("ijk,...i->...jk", _cross_tensor(), w)
    return np.asarray(np.eye(3) + first * K + second * (K @ K))
