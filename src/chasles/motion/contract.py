"""A robot as motion sees it."""

from typing import Any, Protocol

from chasles.mechanisms import Mechanism
from chasles.model import Model

Array = Any
"""An array of NumPy, or anything that NumPy can make one of; of CuPy where that is said."""


class Machine(Protocol):
    """A model, and the mechanism that answers for it: all that is asked of a robot."""

    model: Model
    mechanism: Mechanism
