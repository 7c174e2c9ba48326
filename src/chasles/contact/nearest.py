"""The nearest point of a surface: what shapes share in finding it, on numbers, arrays and symbols.

Places and velocities are vectors whose entries are any of the three.
"""

from collections.abc import Callable, Sequence

import numpy as np

from chasles.contact.arithmetic import Value, scaled, sqrt
from chasles.mathematics.linear import Vector

Near = tuple[Value, Vector, Vector]
"""Of a moving point before a surface: distance, normal, and the normal's rate."""
Nearest = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The same as arrays: (...), (..., 3) and (..., 3)."""


def solved(
    gx: Value, gy: Value, above: Value, K: Sequence[Value], bx: Value, by: Value
) -> tuple[Value, Value]:
    """(1 + g g' - above K)^-1 b, in the plane: how the foot of a point over a ground moves."""
    xx, yy = 1.0 + gx * gx - above * K[0], 1.0 + gy * gy - above * K[3]
    xy = gx * gy - above * K[1]
    over = 1.0 / (xx * yy - xy * xy)
    return (yy * bx - xy * by) * over, (xx * by - xy * bx) * over


def from_point(r: Vector, v: Vector, radius: float) -> Near:
    """Before a ball around the origin: r is a place, v its rate. Of the centre it is NaN."""
    distance = sqrt(r.dot(r))
    over = 1.0 / distance
    n = scaled(r, over)
    return distance - radius, n, scaled(across(n, v), over)


def across(n: Vector, v: Vector) -> Vector:
    """v without its part along n."""
    return v - scaled(n, n.dot(v))


def of_arrays(near: Callable[..., Near], c: np.ndarray, v: np.ndarray) -> Nearest:
    """Distances, normals and their rates for arrays (..., 3) of places and velocities."""
    with np.errstate(divide="ignore", invalid="ignore"):  # coinciding centres: not a number
        distance, n, rate = near(columns(c), columns(v))
    shape = np.shape(c)
    return np.broadcast_to(distance, shape[:-1])[()], rows(n, shape), rows(rate, shape)


def columns(rows: np.ndarray) -> Vector:
    """Vectors (..., 3) as one vector with arrays (...) for its entries."""
    return Vector(tuple(np.asarray(rows)[..., k] for k in range(np.shape(rows)[-1])))


def rows(v: Vector, shape: tuple[int, ...]) -> np.ndarray:
    """The other way, broadcast to a shape (..., 3)."""
    return np.stack([np.broadcast_to(x, shape[:-1]) for x in v], axis=-1)
