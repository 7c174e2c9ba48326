"""Convert 6-vectors, quaternions and poses to and from the conventions of other libraries."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.errors import InputError
from chasles.functions.doors import numbers
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import matrix_by
from chasles.names import one_of
from chasles.robot import Array

REFERENCE_FRAMES = {
    "LOCAL": {"axes": "frame", "at": "frame"},
    "WORLD": {"axes": "world", "at": "world"},
    "LOCAL_WORLD_ALIGNED": {"axes": "world", "at": "frame"},
}
"""Values of `axes` and `at` for each of Pinocchio's reference frames."""


def reference_frame(word: Any) -> dict[str, str]:
    """Return the options `axes` and `at` for one of Pinocchio's reference frames.

    Parameters
    ----------
    word : str or pinocchio.ReferenceFrame
        "LOCAL", "WORLD" or "LOCAL_WORLD_ALIGNED", or a member of pinocchio.ReferenceFrame.

    Returns
    -------
    options : dict
        Keyword arguments for functions that take a frame.

    Raises
    ------
    InputError
        If the reference frame is unknown.

    Examples
    --------
    >>> import chasles
    >>> chasles.conventions.reference_frame("LOCAL")
    {'axes': 'frame', 'at': 'frame'}
    """
    if str(word) not in REFERENCE_FRAMES:
        problem = f"unknown reference frame {str(word)!r}"
        raise InputError("E-CONVENTION-006", problem, one_of(str(word), REFERENCE_FRAMES))
    return dict(REFERENCE_FRAMES[str(word)])


def swap(value: Array, *, axis: int = -1) -> np.ndarray:
    """Swap the angular and linear parts of 6-vectors.

    Parameters
    ----------
    value : array_like
        6-vectors, with components along `axis`.
    axis : int, optional
        Axis of the six components. Default: the last.

    Returns
    -------
    value : ndarray
        Array of the same shape, with the two parts swapped.

    Raises
    ------
    InputError
        If the axis does not have six entries.

    Notes
    -----
    The linear part comes first in Pinocchio, in the ROS messages geometry_msgs/Twist and Wrench,
    and in MuJoCo's xfrc_applied. The angular part comes first in chasles, in Drake, and in MuJoCo's
    other 6-vectors.

    Examples
    --------
    >>> import chasles
    >>> chasles.conventions.swap([1, 2, 3, 4, 5, 6])
    array([4, 5, 6, 1, 2, 3])
    """
    array = np.asarray(value)
    if not -array.ndim <= axis < array.ndim or array.shape[axis] != 6:
        raise InputError(
            "E-CONVENTION-007", f"a 6-vector must have 6 entries; the array has shape {array.shape}"
        )
    return np.roll(array, 3, axis)


def scalar_last(quaternion: Array) -> np.ndarray:
    """Convert quaternions (w, x, y, z) to (x, y, z, w), for Pinocchio, ROS and SciPy.

    Parameters
    ----------
    quaternion : array_like, shape (..., 4)
        Quaternions, scalar first.

    Returns
    -------
    quaternion : ndarray, shape (..., 4)
        Quaternions, scalar last.

    Raises
    ------
    InputError
        If `quaternion` does not have shape (..., 4).
    ArgumentError
        If `quaternion` is not an array of real numbers.

    Examples
    --------
    >>> import chasles
    >>> chasles.conventions.scalar_last([1.0, 0.0, 0.0, 0.0])
    array([0., 0., 0., 1.])
    """
    return np.roll(numbers("a quaternion", quaternion, 4), -1, axis=-1)


def scalar_first(quaternion: Array) -> np.ndarray:
    """Convert quaternions (x, y, z, w) to (w, x, y, z), for chasles, MuJoCo and Drake.

    Parameters
    ----------
    quaternion : array_like, shape (..., 4)
        Quaternions, scalar last.

    Returns
    -------
    quaternion : ndarray, shape (..., 4)
        Quaternions, scalar first.

    Raises
    ------
    InputError
        If `quaternion` does not have shape (..., 4).
    ArgumentError
        If `quaternion` is not an array of real numbers.

    Examples
    --------
    >>> import chasles
    >>> chasles.conventions.scalar_first([0.0, 0.0, 0.0, 1.0])
    array([1., 0., 0., 0.])
    """
    return np.roll(numbers("a quaternion", quaternion, 4), 1, axis=-1)


def to_pose(T: Array) -> tuple[np.ndarray, np.ndarray]:
    """Convert homogeneous matrices to positions and quaternions (x, y, z, w), as in ROS.

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Poses.

    Returns
    -------
    position : ndarray, shape (..., 3)
        Positions (m).
    quaternion : ndarray, shape (..., 4)
        Unit quaternions, scalar last, with w >= 0.

    Raises
    ------
    InputError
        If the last axis of T does not have four entries.
    ArgumentError
        If T is not an array of real numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import chasles
    >>> chasles.conventions.to_pose(np.eye(4))
    (array([0., 0., 0.]), array([0., 0., 0., 1.]))
    """
    T = numbers("a pose", T, 4)
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = np.moveaxis(T[..., :3, :3], (-2, -1), (0, 1))
    products = stacked(  # rows of 4 q q' are parallel to q; the longest is the most accurate
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
    """Convert positions and quaternions (x, y, z, w) to homogeneous matrices.

    Parameters
    ----------
    position : array_like, shape (..., 3)
        Positions (m).
    quaternion : array_like, shape (..., 4)
        Quaternions of any nonzero norm, scalar last.

    Returns
    -------
    T : ndarray, shape (..., 4, 4)
        Poses.

    Raises
    ------
    InputError
        If an array does not have the documented shape, or if a quaternion is zero.
    ArgumentError
        If an argument is not an array of real numbers.

    Examples
    --------
    >>> import chasles
    >>> chasles.conventions.from_pose([1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 1.0])
    array([[1., 0., 0., 1.],
           [0., 1., 0., 2.],
           [0., 0., 1., 3.],
           [0., 0., 0., 1.]])
    """
    p, turn = numbers("a position", position, 3), unit("a pose", scalar_first(quaternion))
    T = np.zeros((*np.broadcast_shapes(p.shape[:-1], turn.shape[:-1]), 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = matrix(turn), p, 1.0
    return T


def unit(what: str, quaternion: np.ndarray) -> np.ndarray:
    """Normalize quaternions of any nonzero norm."""
    size = np.max(np.abs(quaternion), axis=-1, keepdims=True)
    if not np.all(size):
        problem = f"the quaternion of {what} is zero"
        raise InputError("E-CONVENTION-008", problem, "give a nonzero quaternion")
    scaled = quaternion / size  # avoid overflow in the norm
    return scaled / np.linalg.norm(scaled, axis=-1, keepdims=True)


def matrix(quaternion: np.ndarray) -> np.ndarray:
    """Convert nonzero quaternions (w, x, y, z) to rotation matrices (..., 3, 3)."""
    scaled = quaternion / np.max(np.abs(quaternion), axis=-1, keepdims=True)
    entries: Any = tuple(np.moveaxis(scaled, -1, 0))
    k: Any = 2.0 / np.sum(scaled * scaled, axis=-1)
    return stacked(matrix_by(Vector(entries), k).rows)


def stacked(rows: Sequence[Sequence[Any]]) -> np.ndarray:
    """Stack nested sequences of arrays, each of shape (...), into matrices (..., rows, columns)."""
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
