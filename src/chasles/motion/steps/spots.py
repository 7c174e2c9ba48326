"""Frames of bodies in the world, and points where two shapes may touch."""

from typing import Any, NamedTuple

import numpy as np

from chasles.expr import Number
from chasles.motion.geometry.closed_forms import applied

FAR = 1e3
"""Gap (m) of an inactive contact slot (a potential contact point)."""


class Placed(NamedTuple):
    """Pose of a frame in the world: axes R (3, 3), as columns, and origin o (3,)."""

    R: np.ndarray
    o: np.ndarray

    def out(self, at: Any) -> np.ndarray:
        """Transform a point from the frame to the world."""
        return self.o + applied(self.R, np.asarray(at))

    def into(self, at: np.ndarray) -> np.ndarray:
        """Transform a point from the world to the frame."""
        return applied(self.R.T, at - self.o)


class Spot(NamedTuple):
    """Potential contact point (3,), normal (3,) from the second shape to the first, and gap (m)."""

    point: np.ndarray
    normal: np.ndarray
    gap: Number
