"""Base parameters: the combinations of inertia parameters that joint forces depend on."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from chasles.model import Model
from chasles.model.spaces import freedom_units, size

_POWERS = (0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0)
"""Of a length, in the units of a body's ten parameters: mass, first moment, inertia."""

_EQUAL = 1e-6
"""Columns whose new parts differ by a smaller share are equally good: the first one is kept, so
that rounding does not choose."""


@dataclass(frozen=True)
class BaseParameters:
    """Y p = Y[..., columns] @ (combination @ p) for every state, with as few columns as possible.

    columns: which columns of the regressor are kept, ascending (b,). combination: (b, k), how the
    kept parameters take up those of the columns left out. tolerance: a column was left out where
    less than this share of it was new; smallest_kept and largest_dropped: the shares on either side
    of it, which lie far apart if the choice is clear.
    """

    columns: np.ndarray
    combination: np.ndarray
    tolerance: float
    smallest_kept: float
    largest_dropped: float

    def __len__(self) -> int:
        return len(self.columns)

    def values(self, parameters: np.ndarray) -> np.ndarray:
        """The base parameters (..., b) of inertia parameters (..., k)."""
        return np.asarray(parameters) @ self.combination.T


class States(NamedTuple):
    """Steps from the neutral position, rates and accelerations, (count, nv) each."""

    steps: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray


def random_states(model: Model, count: int, rng: np.random.Generator) -> States:
    """Joints anywhere, so fast that inertia forces are about as large as weights.

    Lengths are drawn in units of the robot's size, times in those in which it would fall so far
    (seconds where nothing falls), so that robots that differ in size alone get the same motions.
    """
    length, weight = size(model), np.linalg.norm(list(model.gravity_vector))
    time = np.sqrt(length / weight) if weight else 1.0
    units = np.array(freedom_units(model, length))
    steps = rng.uniform(-np.pi, np.pi, size=(count, model.nv))
    qd, qdd = rng.normal(size=(2, count, model.nv))
    return States(units * steps, units / time * qd, 3.0 * units / time**2 * qdd)


def base_parameters(model: Model, regressors: np.ndarray, tolerance: float) -> BaseParameters:
    """From regressors of many states, (count, nv, k): QR with column pivoting (Gautier 1991).

    Rows are of work, whether their joint turns or slides. Columns are compared after each is
    divided by its own length; those that are nothing but rounding beside the longest one, with
    masses at the distance of the robot's size, are zero.
    """
    length = size(model)
    count, nv, k = regressors.shape
    work = regressors * np.array(freedom_units(model, length))[:, None]
    stack = work.reshape(count * nv, k)
    lengths: np.ndarray = np.linalg.norm(stack, axis=0)
    compared = lengths * np.tile(length ** np.array(_POWERS), k // len(_POWERS))
    lengths[compared <= tolerance * compared.max(initial=0.0)] = np.inf
    R = np.linalg.qr(stack / lengths).R
    left, kept, shares = R.copy(), [], []
    for _ in range(min(R.shape)):
        new = np.linalg.norm(left, axis=0)
        k = int(np.argmax(new >= (1.0 - _EQUAL) * new.max()))  # the first of the longest
        if new[k] <= tolerance:
            break
        unit = left[:, k] / new[k]
        left -= np.outer(unit, unit @ left)
        left[:, k] = 0.0
        kept.append(k)
        shares.append(float(new[k]))
    dropped = np.linalg.norm(left, axis=0).max(initial=0.0)
    columns = np.array(sorted(kept), dtype=int)
    shared = np.linalg.lstsq(R[:, columns], R, rcond=None)[0]
    shared = np.where(np.abs(shared) > tolerance, shared, 0.0)
    finite = np.where(np.isfinite(lengths), lengths, 0.0)
    combination = shared * finite / lengths[columns, None]
    combination[:, columns] = np.eye(len(columns))
    return BaseParameters(
        columns, combination, float(tolerance), min(shares, default=np.inf), float(dropped)
    )
