"""Base parameters: the combinations of inertia parameters that joint forces depend on."""

from dataclasses import dataclass

import numpy as np


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


def base_parameters(stack: np.ndarray, tolerance: float) -> BaseParameters:
    """From regressors of many states, (rows, k): QR with column pivoting (Gautier 1991).

    Columns are compared after each is divided by its own length; those that are nothing but
    rounding beside the longest one are zero.
    """
    lengths: np.ndarray = np.linalg.norm(stack, axis=0)
    lengths[lengths <= tolerance * lengths.max(initial=0.0)] = np.inf
    R = np.linalg.qr(stack / lengths).R
    left, kept, shares = R.copy(), [], []
    for _ in range(min(R.shape)):
        new = np.linalg.norm(left, axis=0)
        k = int(np.argmax(new))
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
        columns, combination, tolerance, min(shares, default=np.inf), float(dropped)
    )
