"""The contract of a step: a motion near a position as a system of first order, and what it gives.

Integrators are written once against `System`. On arrays it is `Local`, on symbols `Traced`; the
drivers take the state after a step, and whatever happened within it, from there.
"""

from collections.abc import Callable
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple, Protocol

import numpy as np

from chasles.model import Model


class Weights(NamedTuple):
    """Weights of stages: as numbers, and as whole parts of a unit (1, 2, 2, 1 of a sixth)."""

    values: np.ndarray
    parts: tuple[float, ...]
    unit: float

    @classmethod
    def exact(cls, text: str) -> "Weights":
        """Weights from fractions written as text."""
        found = [Fraction(entry) for entry in text.split()]
        denominator = lcm(*(f.denominator for f in found))
        parts = tuple(float(f * denominator) for f in found)
        return cls(np.array([float(f) for f in found]), parts, 1.0 / denominator)

    @classmethod
    def of(cls, values: np.ndarray) -> "Weights":
        """Weights from numbers."""
        return cls(values, tuple(values), 1.0)


ONE = Weights.exact("1")


class System(Protocol):
    """y: the state as steps see it, beginning at zero distance from where the step begins."""

    t: float

    def stages(self, count: int, y: Any) -> Any:
        """Room for the rates of so many stages."""

    def first(self, y: Any) -> Any:
        """The rates of y at the beginning, where nothing has to be placed."""

    def rates(self, s: Any, y: Any) -> Any:
        """The rates of y, s seconds after the beginning."""

    def moved(self, y: Any, h: Any, weights: Weights, k: Any) -> Any:
        """y after h seconds with the weighted mean of the first rates in k."""

    def led(self, y: Any, h: Any) -> Any:
        """y with the step that its own velocity makes in h seconds."""


def path(model: Model) -> list[int]:
    """Entries of q that depend on the way, not on the step alone: where a sphere has rolled."""
    slots = model.position_slices.items()
    return [slot.start + k for i, slot in slots for k in model.bodies[i].joint.path]


class Advanced(NamedTuple):
    """y after a step; what it may be wrong by; y after any part of the step, from 0 to 1.

    error: none where the method does not estimate it. within: none where it has no interpolant of
    its own; Hermite's then serves.
    """

    y: Any
    error: np.ndarray | None = None
    within: Callable[[float], np.ndarray] | None = None


Advance = Callable[[Any, Any, Any], Advanced]
"""advance(system, h, y): a step of h seconds."""
