"""Paths of poses: straight lines and circular arcs, with blends between them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from chasles.errors import InputError

Via = np.ndarray | None
"""Position (3,) through which an arc passes, or None for a straight line."""


@dataclass(frozen=True)
class Route:
    """A path of poses.

    `pose` maps arc lengths (...), between 0 and `length`, to poses (..., 4, 4).
    """

    length: float
    pose: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Segment:
    """A line or an arc. `shift` maps arc lengths (...) to displacements (..., 3)."""

    length: float
    shift: Callable[[np.ndarray], np.ndarray]


def make_route(
    first: np.ndarray, goals: Sequence[np.ndarray], via: Sequence[Via], blend: float, part: str
) -> Route:
    """Return the path along lines and arcs from pose to pose, with blends at the corners.

    The length covered along each segment grows from 0 to its full length. In a blend, the speed
    along one segment decreases while the speed along the next increases, both smoothly, so
    accelerations are continuous. The displacements along the segments are added, and their
    rotations are composed. The blend starts `blend` before a corner and ends `blend` after it.
    """
    ends = np.array([first, *goals])
    turns = scipy.spatial.transform.Rotation.from_matrix(
        np.swapaxes(ends[:-1, :3, :3], -1, -2) @ ends[1:, :3, :3]
    ).as_rotvec()
    x = ends[:, :3, 3]
    segments = [
        _straight(x[k], x[k + 1], turns[k], k, part)
        if on is None
        else _circle(x[k], on, x[k + 1], part)
        for k, on in enumerate(via)
    ]
    far = np.array([each.length for each in segments])
    corners = np.concatenate([[0.0], np.cumsum(far)])
    half = np.minimum(blend, 0.5 * np.minimum(far[:-1], far[1:]))
    widths = np.concatenate([[0.0], half, [0.0]])

    def pose(s: np.ndarray) -> np.ndarray:
        begun = np.array([_begun(s - c, d) for c, d in zip(corners, widths, strict=True)])
        T = np.zeros((*np.shape(s), 4, 4))
        T[..., 3, 3] = 1.0
        p, R = x[0], first[:3, :3]
        for segment, w, covered in zip(segments, turns, begun[:-1] - begun[1:], strict=True):
            p = p + segment.shift(covered)
            step = scipy.spatial.transform.Rotation.from_rotvec(
                (covered / segment.length).reshape(-1, 1) * w
            ).as_matrix()
            R = R @ step.reshape(*np.shape(s), 3, 3)
        T[..., :3, 3], T[..., :3, :3] = p, R
        return T

    return Route(float(corners[-1]), pose)


def _begun(x: np.ndarray, half: float) -> np.ndarray:
    """Return max(x, 0), smoothed for x between -half and half."""
    if half == 0.0:
        return np.maximum(x, 0.0)
    t = np.clip(0.5 * (x + half) / half, 0.0, 1.0)
    return np.where(x > half, x, 2.0 * half * (t**6 - 3.0 * t**5 + 2.5 * t**4))


def _straight(a: np.ndarray, b: np.ndarray, w: np.ndarray, index: int, part: str) -> Segment:
    """Return the straight segment from a to b.

    If a and b coincide, the segment is a pure rotation, whose length is the angle |w| (rad).
    """
    way, far = b - a, float(np.linalg.norm(b - a))
    length = far if far > 1e-12 else float(np.linalg.norm(w))
    if length <= 1e-12:
        problem = f"point {index} coincides with the start or with the point before it"
        raise InputError("E-PATH-041", problem, "omit this point", part=part)
    return Segment(length, lambda s: (np.asarray(s) / length)[..., None] * way)


def _circle(a: np.ndarray, b: np.ndarray, c: np.ndarray, part: str) -> Segment:
    """Return the arc from a through b to c."""
    u, v = b - a, c - a
    n = np.cross(u, v)
    area = float(n @ n)
    if area <= 1e-20 * max(float(u @ u), float(v @ v)) ** 2:
        problem = "the three points are collinear"
        raise InputError("E-PATH-042", problem, "use a line, or move `via`", part=part)
    center = a + (np.cross(n, u) * (v @ v) + np.cross(v, n) * (u @ u)) / (2.0 * area)
    x = a - center
    y = np.cross(n / np.sqrt(area), x)
    angle = float(np.arctan2((c - center) @ y, (c - center) @ x)) % (2.0 * np.pi)
    radius = float(np.linalg.norm(x))

    def shift(s: np.ndarray) -> np.ndarray:
        turn = (np.asarray(s) / radius)[..., None]
        return np.asarray((np.cos(turn) - 1.0) * x + np.sin(turn) * y)

    return Segment(radius * angle, shift)
