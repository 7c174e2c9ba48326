"""Steps on soft ground, with a watch (`contact/watch.py`) that detects excessive step sizes."""

import math

import numpy as np

from chasles.motion.contact import watch as watching
from chasles.motion.drivers.contacts import Surfaces
from chasles.motion.drivers.running import Memory, Pace
from chasles.motion.steps.system import State, Taken


class Watched(Pace):
    """Steps of another pace, with a watch of the contacts; lead: batch shape."""

    def __init__(self, pace: Pace, soft: Surfaces, lead: tuple[int, ...]) -> None:
        self._pace, self._soft = pace, soft
        self._watch = np.zeros((*lead, watching.size(len(soft.contacts.laws))))
        self._steps = 0

    def __call__(self, at: State, most: float = math.inf) -> Taken:
        taken = self._pace(at, most)
        velocities, normal = self._soft.moving(at.q, at.qd)
        points = range(normal.shape[-1])
        after = watching.watched(
            np.moveaxis(self._watch, -1, 0),
            [np.moveaxis(velocities[..., k, :], -1, 0) for k in points],
            [normal[..., k] for k in points],
            taken.last.t - at.t,
        )
        self._watch = np.stack(np.broadcast_arrays(*after), -1)
        self._steps += 1
        return taken

    @property
    def unstable(self) -> np.ndarray:
        """First unstable step of each member, or -1 if there is none."""
        return np.asarray(watching.first_unstable(self._watch, self._steps))

    def memory(self) -> dict[str, np.ndarray]:
        return {"watch": self._watch, "watched steps": np.array(self._steps)}

    def recall(self, memory: Memory) -> None:
        self._watch, self._steps = memory["watch"].copy(), memory["watched steps"].item()
