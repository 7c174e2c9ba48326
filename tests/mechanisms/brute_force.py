"""Find all postures by brute force: Newton's method from many starts, independent of chasles."""

from dataclasses import dataclass

import numpy as np

SAME = 1e-3
"""Difference (rad or m) below which two postures found by brute force count as one."""


@dataclass(frozen=True)
class Chain:
    """Serial chain in its home posture.

    `axes` (n, 3) contains the joint axes, `points` (n, 3) points on them, `home` the pose of the
    tool, and `slides` the indices of prismatic joints.
    """

    axes: np.ndarray
    points: np.ndarray
    home: np.ndarray
    slides: tuple[int, ...] = ()

    def forward(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return tool poses (..., 4, 4) and Jacobians (..., 6, n) at the world's origin."""
        T = np.broadcast_to(np.eye(4), (*q.shape[:-1], 4, 4))
        columns = []
        for k, (h, o) in enumerate(zip(self.axes, self.points, strict=True)):
            x, E = q[..., k, None, None], np.zeros((*q.shape[:-1], 4, 4))
            E[..., 3, 3] = 1.0
            w = T[..., :3, :3] @ h
            if k in self.slides:
                E[..., :3, :3], E[..., :3, 3] = np.eye(3), q[..., k, None] * h
                columns.append(np.concatenate([0.0 * w, w], axis=-1))
            else:
                K = np.cross(h, np.eye(3)).T
                R = np.eye(3) + np.sin(x) * K + (1.0 - np.cos(x)) * (K @ K)
                E[..., :3, :3], E[..., :3, 3] = R, o - R @ o
                place = T[..., :3, :3] @ o + T[..., :3, 3]
                columns.append(np.concatenate([w, np.cross(place, w)], axis=-1))
            T = T @ E
        return T @ self.home, np.stack(columns, axis=-1)

    def postures(self, goal: np.ndarray, starts: np.ndarray, steps: int = 40) -> np.ndarray:
        """Return distinct postures that reach a goal, from starts (m, n)."""
        q = starts.copy()
        for _ in range(steps):
            T, J = self.forward(q)
            e = _twist(goal, T)
            damped = 1e-3 * np.sum(e * e, axis=-1)[:, None, None] + 1e-14
            A = np.swapaxes(J, -1, -2) @ J + damped * np.eye(q.shape[1])
            d = np.linalg.solve(A, np.swapaxes(J, -1, -2) @ e[..., None])[..., 0]
            q += d / np.maximum(1.0, np.abs(d).max(axis=-1, keepdims=True))
        q = q[np.abs(self.forward(q)[0] - goal).max(axis=(-1, -2)) < 1e-9]
        found: list[np.ndarray] = []
        for x in q:
            if not found or self.apart(x, np.array(found)).min() > SAME:
                found.append(x)
        return np.array(found).reshape(-1, q.shape[1])

    def apart(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the largest joint difference, modulo full turns of revolute joints."""
        d = np.abs(a - b)
        turns = [k not in self.slides for k in range(len(self.axes))]
        wrapped = np.minimum(d % (2.0 * np.pi), 2.0 * np.pi - d % (2.0 * np.pi))
        return np.asarray(np.where(turns, wrapped, d).max(axis=-1))


def _twist(goal: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Return the twist from T to the goal: rotation vector, and velocity at the world's origin."""
    R = goal[:3, :3] @ np.swapaxes(T[..., :3, :3], -1, -2)
    odd = R - np.swapaxes(R, -1, -2)
    w = 0.5 * np.stack([odd[..., 2, 1], odd[..., 0, 2], odd[..., 1, 0]], axis=-1)
    sine = np.linalg.norm(w, axis=-1, keepdims=True)
    angle = np.arctan2(sine, 0.5 * (np.trace(R, axis1=-2, axis2=-1)[..., None] - 1.0))
    w = w * np.where(sine > 1e-9, angle / np.maximum(sine, 1e-12), 1.0)
    return np.concatenate([w, goal[:3, 3] - T[..., :3, 3] - np.cross(w, T[..., :3, 3])], axis=-1)
