"""Robot interface that the simulation requires."""

from typing import Any, Protocol

import numpy as np

from chasles.mechanisms import Mechanism
from chasles.model import Model

Array = Any
"""NumPy array or array_like; some functions also accept CuPy arrays."""


class Machine(Protocol):
    """Protocol for robots: a model, and a mechanism that evaluates the robot's functions."""

    model: Model
    mechanism: Mechanism


def read_only(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return read-only views of arrays for a user's function."""
    views = tuple(array.view() for array in arrays)
    for view in views:
        view.flags.writeable = False
    return views
