"""What another library says of a robot, in its own coordinates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class Answers:
    """At one state there: poses (4, 4) and Jacobians (6, nv) of links, world axes, angular first.

    inertias: ten numbers for each moving link and all that is fixed to it, in the link's frame:
    mass, first moment, inertia about the frame's origin (xx, yy, zz, xy, xz, yz). bias_forces: with
    gravity, without damping. loops: how far its loops are from closed, empty if it has none; None
    if the library does not say.
    """

    poses: Mapping[str, np.ndarray]
    inertias: Mapping[str, np.ndarray]
    jacobians: Mapping[str, np.ndarray]
    mass_matrix: np.ndarray
    gravity_forces: np.ndarray
    bias_forces: np.ndarray
    loops: np.ndarray | None


class Peer(Protocol):
    """A robot in another library: joints that move, in its order, and gravity in m/s2.

    circles: the joints whose angle has two coordinates there, its cosine and sine.
    """

    library: str
    joints: tuple[str, ...]
    circles: tuple[str, ...]
    gravity: np.ndarray
    nv: int

    def answers(self, x: np.ndarray, v: np.ndarray) -> Answers:
        """Everything that is compared, at a position and velocity there."""
        ...


def ten(mass: float, center: np.ndarray, about_center: np.ndarray) -> np.ndarray:
    """A body's ten numbers about the origin, from those about its centre of mass."""
    about_origin = about_center + mass * (center @ center * np.eye(3) - np.outer(center, center))
    return moments(mass, mass * center, about_origin)


def moments(mass: float, first: np.ndarray, I: np.ndarray) -> np.ndarray:
    """A body's ten numbers, from its first moment and inertia about the origin."""
    return np.array([mass, *first, I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])
