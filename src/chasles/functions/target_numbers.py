"""Check the parameters of inverse-kinematics targets."""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from chasles.errors import InputError
from chasles.functions.doors import leading_shape
from chasles.model.given import some_numbers

PART = "inverse_kinematics"
"""Function name shown in error messages."""


FARTHEST = 1e100
"""Maximum absolute coordinate of a point (m), chosen so that squared distances do not overflow."""

_SLIP = 1e-5
"""Tolerance for the deviation of a rotation matrix from orthonormal, right-handed rows."""


def sized(what: str, value: Any, *shape: int, most: float = sys.float_info.max) -> np.ndarray:
    """Return an array of finite values after checking its shape.

    `shape` is the shape of the last axes. `most` is the largest allowed absolute value.
    """
    array = some_numbers(what, value, PART).astype(float)
    if array.shape[max(array.ndim - len(shape), 0) :] != shape:
        problem = f"{what} must have shape (..., {', '.join(map(str, shape))}), not {array.shape}"
        remedy = ""
        if shape == (4, 4) and array.shape[-1:] == (3,):
            remedy = "for a position without orientation, use chasles.targets.Position(point)"
        elif shape == (4, 4):
            remedy = "give a matrix, or (position, quaternion) with the quaternion as w, x, y, z"
        elif shape == (3,) and array.shape[-2:] == (4, 4):
            remedy = "pass the last column of the pose: T[..., :3, 3]"
        raise InputError("E-CALL-360", problem, remedy, part=PART)
    if not (np.abs(array) <= most).all():
        last = tuple(range(array.ndim - len(shape), array.ndim))
        at = _index(~(np.abs(array) <= most).all(axis=last))
        problem = f"the entries of {what}{at} must be finite and at most {most:.3g} in magnitude"
        raise InputError("E-CALL-361", problem, part=PART)
    return array


def _index(wrong: np.ndarray | np.bool_) -> str:
    """Return the text " at index ..." for the first True entry; "" if `wrong` is a single value."""
    places = np.argwhere(wrong)
    if not wrong.ndim or not len(places):
        return ""
    place = tuple(int(k) for k in places[0])
    return f" at index {place[0] if len(place) == 1 else place}"


def unit(what: str, value: Any) -> np.ndarray:
    """Check direction vectors (..., 3), and return them with unit length."""
    array = sized(what, value, 3)
    none = ~array.any(axis=-1)
    if none.any():
        problem = f"{what}{_index(none)} has zero length"
        raise InputError("E-CALL-362", problem, "pass a nonzero vector", part=PART)
    return _normalized(array)


def _normalized(vectors: np.ndarray) -> np.ndarray:
    """Return unit vectors; very long or short vectors cause neither overflow nor underflow."""
    scaled = vectors / np.abs(vectors).max(axis=-1, keepdims=True)
    return np.asarray(scaled / np.linalg.norm(scaled, axis=-1, keepdims=True))


def rotation(what: str, value: Any) -> np.ndarray:
    """Return row-major rotation matrices (..., 9) from matrices or quaternions."""
    array = some_numbers(what, value, PART).astype(float)
    if array.shape[-2:] == (4, 4) and _are_poses(array):
        problem = f"the rotation of {what} is a 4x4 pose matrix"
        raise InputError("E-CALL-367", problem, "pass only the rotation: T[..., :3, :3]", part=PART)
    if array.shape[-1:] == (4,):
        q = sized(what, array, 4)
        none = ~q.any(axis=-1)
        if none.any():
            problem = f"the quaternion of {what}{_index(none)} is zero"
            raise InputError("E-CALL-363", problem, "use (1, 0, 0, 0) for the identity", part=PART)
        w, x, y, z = np.moveaxis(_normalized(q), -1, 0)
        rows = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)]
        rows += [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)]
        rows += [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
        return np.stack(rows, axis=-1)
    if array.shape[-2:] != (3, 3):
        problem = (
            f"the rotation of {what} must be a quaternion (..., 4) or a matrix (..., 3, 3), "
            f"not an array of shape {array.shape}"
        )
        raise InputError("E-CALL-366", problem, "pass a quaternion (w, x, y, z)", part=PART)
    R = sized(what, array, 3, 3, most=FARTHEST)
    if max(e.max(initial=0.0) for e in _slips(R)) > _SLIP:
        wrong = (np.max(list(_slips(R)), axis=0) > _SLIP).reshape(R.shape[:-2])
        remedy = "use a right-handed matrix with orthonormal columns"
        problem = f"the rotation of {what}{_index(wrong)} is not a rotation matrix"
        raise InputError("E-CALL-364", problem, remedy, part=PART)
    return R.reshape(*R.shape[:-2], 9)


def _are_poses(T: np.ndarray) -> bool:
    """Return True if 4x4 arrays are pose matrices, or False if the rows may be quaternions."""
    last = T[..., 3, :] == (0.0, 0.0, 0.0, 1.0)
    return bool(T.size and last.all() and max(e.max() for e in _slips(T[..., :3, :3])) <= _SLIP)


def _slips(R: np.ndarray) -> Iterator[np.ndarray]:
    """Yield six arrays (n,) of errors, which are zero for rotation matrices."""
    a, b, c = np.ascontiguousarray(np.moveaxis(R.reshape(-1, 9), 0, -1)).reshape(3, 3, -1)
    yield np.abs((a * a).sum(0) - 1.0)
    yield np.abs((b * b).sum(0) - 1.0)
    yield np.abs((a * b).sum(0))
    for i, j, k in ((1, 2, 0), (2, 0, 1), (0, 1, 2)):
        yield np.abs(a[i] * b[j] - a[j] * b[i] - c[k])


def pose(what: str, value: Any) -> np.ndarray:
    """Return poses (..., 12): row-major rotation, then position."""
    if _is_pair(value):
        place, turn = value
        return joined(
            rotation(what, turn), sized(f"the position of {what}", place, 3, most=FARTHEST)
        )
    T = sized(what, value, 4, 4, most=FARTHEST)
    last = T[..., 3, :] == (0.0, 0.0, 0.0, 1.0)
    if not last.all():
        at = _index(~last.all(axis=-1))
        problem = f"the last row of {what}{at} must be (0, 0, 0, 1)"
        raise InputError("E-CALL-365", problem, part=PART)
    return joined(rotation(what, T[..., :3, :3]), T[..., :3, 3])


def _is_pair(value: Any) -> bool:
    """Return True for a tuple (position, rotation) or a list [position, quaternion]."""
    if isinstance(value, list) and len(value) == 2:
        return [len(x) if isinstance(x, list | tuple) else 0 for x in value] == [3, 4]
    return isinstance(value, tuple) and len(value) == 2


def joined(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Concatenate arrays along the last axis, after broadcasting their leading shapes."""
    lead = leading_shape(PART, first=a, second=b)
    return np.concatenate([np.broadcast_to(x, (*lead, x.shape[-1])) for x in (a, b)], axis=-1)
