"""How two bodies move where they touch by features that vary: the near ones of all pairs."""

import numpy as np

from chasles.motion.contact.dynamics import contact_axes
from chasles.motion.contact.pairs import Pair
from chasles.motion.contact.rigid import touch
from chasles.motion.contract import Machine
from chasles.motion.geometry.carriers import carrier
from chasles.motion.geometry.kinematics import NEAR, Moves
from chasles.motion.geometry.meetings import Meeting


class Varying:
    """The pairs of features of two bodies, as points of contact of a robot in one state."""

    def __init__(self, robot: Machine, pair: Pair, features: Meeting) -> None:
        self._robot, self._frames, self._features = robot, pair.frames, features
        self.size = features.size

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray, held: np.ndarray) -> Moves:
        """Where they are at a time, and how those move that touch or are held (size,).

        The gap of features that are not those nearest to each other is infinite.
        """
        robot = self._robot.at(t)
        over, under = (carrier(robot, q, qd, frame) for frame in self._frames)
        gap, room = self._features.gaps(over, under)
        gap = np.where(held | (room >= 0.0), gap, np.inf)
        axes, J = np.zeros((self.size, 3, 3)), np.zeros((self.size, 3, robot.nv))
        velocity, bias = np.zeros((2, self.size, 3))
        which = np.flatnonzero(held | (gap <= NEAR))
        if which.size:
            found = self._features.contacts(which, over, under)
            there, E = touch(robot, q, qd, found), contact_axes(found.normal)
            moved = there.velocity[..., None], there.J, there.bias[..., None]
            axes[which], (v, J[which], b) = E, (E @ part for part in moved)
            velocity[which], bias[which] = v[..., 0], b[..., 0]
            bias[which, 2] += np.sum(found.normal_rate * there.velocity, axis=-1)
        return Moves(gap, axes, velocity, J, bias, room)
