"""The coordinates of a tree, which no loop relates to each other."""

from copy import copy
from typing import Any

import numpy as np

from chasles.backends.arrays import check_tolerance
from chasles.mechanisms.closing import Loops


class Loose(Loops):
    """A tree's answers to the questions about loops: nothing has to be computed for them."""

    def at(self, time: np.ndarray) -> Loops:
        moved = copy(self)
        moved.time = time
        return moved

    @property
    def independent(self) -> np.ndarray:
        return np.arange(self.model.nv)

    def check_closed(self, function: str, q: np.ndarray, tolerance: float) -> None:
        check_tolerance(function, tolerance)

    def check_rates(self, function: str, q: Any, *rates: Any, tolerance: float) -> None:
        pass

    def directions(self, q: Any) -> np.ndarray:
        return np.eye(self.model.nv)

    def accelerated(self, q: Any, qd: np.ndarray, ydd: np.ndarray, tolerance: float) -> np.ndarray:
        return ydd

    def drift(self, q: Any, qd: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
        return np.zeros(self.model.nv)
