"""6-vectors, quaternions and poses in the conventions of other libraries."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.errors import InputError
from chasles.functions.doors import numbers
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import matrix_by
from chasles.robot import Array

REFERENCE_FRAMES = {
    "LOCAL": {"axes": "frame", "at": "frame"},
    "WORLD": {"axes": "world", "at": "world"},
    "LOCAL_WORLD_ALIGNED": {"axes": "world", "at": "frame"},
}
"""Pinocchio's one word for axes and point."""


def reference_frame(word: Any) -> dict[str, str]:
    """Return `axes=` and `at=` for a reference frame of Pinocchio: "LOCAL", pin.LOCAL and so on.

    `robot.frame_velocity(q, qd, frame="hand", **reference_frame("LOCAL"))`
    """
    if str(word) not in REFERENCE_FRAMES:
        known = ", ".join(REFERENCE_FRAMES)
        problem = f"unknown reference frame {str(word)!r}"
        raise InputError("E-CONVENTION-006", problem, f"known are {known}")
    return dict(REFERENCE_FRAMES[str(word)])


def swap(value: Array, *, axis: int = -1) -> np.ndarray:
    """Exchange the halves of 6-vectors: angular first to linear first, and back.

    Linear first: Pinocchio, geometry_msgs/Twist and Wrench, MuJoCo's xfrc_applied. Angular first:
    chasles, Drake, MuJoCo's other 6-vectors.
    """
    array = np.asarray(value)
    if not -array.ndim <= axis < array.ndim or array.shape[axis] != 6:
        raise InputError(
            "E-CONVENTION-007", f"a 6-vector must have 6 numbers, not shape {array.shape}"
        )
    return np.roll(array, 3, axis)


def scalar_last(quaternion: Array) -> np.ndarray:
    """Convert quaternions (w, x, y, z) to (x, y, z, w), for Pinocchio, ROS and SciPy."""
    return np.roll(numbers("a quaternion", quaternion, 4), -1, axis=-1)


def scalar_first(quaternion: Array) -> np.ndarray:
    """Convert quaternions (x, y, z, w) to (w, x, y, z), for chasles, MuJoCo and Drake."""
    return np.roll(numbers("a quaternion", quaternion, 4), 1, axis=-1)


def to_pose(T: Array) -> tuple[np.ndarray, np.ndarray]:
    """Convert homogeneous matrices (..., 4, 4) to positions and quaternions (x, y, z, w) of ROS.

    The quaternions have unit length and w >= 0.
    """
    T = numbers("a pose", T, 4)
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = np.moveaxis(T[..., :3, :3], (-2, -1), (0, 1))
    products = stacked(  # 4 q q': each row is the quaternion, the longest one the most exact
        [
            [1.0 + xx - yy - zz, xy + yx, zx + xz, zy - yz],
            [xy + yx, 1.0 - xx + yy - zz, yz + zy, xz - zx],
            [zx + xz, yz + zy, 1.0 - xx - yy + zz, yx - xy],
            [zy - yz, xz - zx, yx - xy, 1.0 + xx + yy + zz],
        ]
    )
    longest = np.argmax(np.einsum("...ii->...i", products), axis=-1)[..., None, None]
    turn = unit("a pose", np.take_along_axis(products, longest, axis=-2)[..., 0, :])
    return T[..., :3, 3].copy(), np.where(turn[..., 3:] < 0.0, -turn, turn)


def from_pose(position: Array, quaternion: Array) -> np.ndarray:
    """Return homogeneous matrices (..., 4, 4) of positions and quaternions (x, y, z, w)."""
    p, turn = numbers("a position", position, 3), unit("a pose", scalar_first(quaternion))
    T = np.zeros((*np.broadcast_shapes(p.shape[:-1], turn.shape[:-1]), 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = matrix(turn), p, 1.0
    return T


def unit(what: str, quaternion: np.ndarray) -> np.ndarray:
    """Normalize quaternions of any nonzero length."""
    size = np.max(np.abs(quaternion), axis=-1, keepdims=True)
    if not np.all(size):
        raise InputError("E-CONVENTION-008", f"the quaternion of {what} is zero")
    scaled = quaternion / size  # whose squares have a sum
    return scaled / np.linalg.norm(scaled, axis=-1, keepdims=True)


def matrix(quaternion: np.ndarray) -> np.ndarray:
    """Return rotation matrices (..., 3, 3) of nonzero quaternions (w, x, y, z)."""
    scaled = quaternion / np.max(np.abs(quaternion), axis=-1, keepdims=True)
    entries: Any = tuple(np.moveaxis(scaled, -1, 0))
    k: Any = 2.0 / np.sum(scaled * scaled, axis=-1)
    return stacked(matrix_by(Vector(entries), k).rows)


def stacked(rows: Sequence[Sequence[Any]]) -> np.ndarray:
    """Return matrices (..., rows, columns) from arrays (...)."""
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
