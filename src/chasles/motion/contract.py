"""Interface of a robot that the simulation requires."""

from typing import Any, Protocol

import numpy as np

from chasles.mechanisms import Mechanism
from chasles.model import Model

Array = Any
"""A NumPy array or any array_like; a CuPy array where documented."""


class Machine(Protocol):
    """Robot with a model, and the mechanism that evaluates the model."""

    model: Model
    mechanism: Mechanism


def read_only(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return read-only views of arrays for a user's function."""
    views = tuple(array.view() for array in arrays)
    for view in views:
        view.flags.writeable = False
    return views
