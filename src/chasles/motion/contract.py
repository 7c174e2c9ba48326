"""A robot as motion sees it."""

from typing import Any, Protocol

import numpy as np

from chasles.mechanisms import Mechanism
from chasles.model import Model

Array = Any
"""An array of NumPy, or anything that NumPy can make one of; of CuPy where that is said."""


class Machine(Protocol):
    """A model and the mechanism that evaluates it: the interface of a robot that motion needs."""

    model: Model
    mechanism: Mechanism


def read_only(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Views for a user's function: writing into one is an error, and changes no motion."""
    views = tuple(array.view() for array in arrays)
    for view in views:
        view.flags.writeable = False
    return views
