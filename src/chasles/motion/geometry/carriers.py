"""How a frame carries the points of a shape, as arrays: places, velocities, and back again."""

import math
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import InputError
from chasles.motion.contract import Machine

Array = Any
Place = tuple[float, float, float]

NEXT, LAST = [1, 2, 0], [2, 0, 1]
"""The axis after each, and the one after that."""


def check_places(shape: Any, *names: str) -> None:
    """Three finite numbers each, as a tuple, whatever they were given as."""
    for name in names:
        given = getattr(shape, name)
        try:
            found = tuple(map(float, given))
        except (TypeError, ValueError):
            found = ()
        if len(found) != 3 or not all(map(math.isfinite, found)):
            problem = f"{name} must be three finite numbers, not {given!r:.60}"
            raise InputError("E-CONTACT-001", problem, part=type(shape).__name__)
        object.__setattr__(shape, name, found)


class Carrier(NamedTuple):
    """How a frame moves: rotation, place, angular velocity and velocity, in the world."""

    R: np.ndarray
    o: np.ndarray
    w: np.ndarray
    v: np.ndarray

    def point(self, at: Array) -> tuple[np.ndarray, np.ndarray]:
        """A point of the frame in the world, and its velocity."""
        r = self.turned(np.array(at))
        return self.o + r, self.v + cross(self.w, r)

    def turned(self, direction: np.ndarray) -> np.ndarray:
        """A direction of the frame in the world."""
        out: np.ndarray = (self.R @ direction[..., None])[..., 0]
        return out

    def velocity(self, place: np.ndarray) -> np.ndarray:
        """The velocity of the body's point that is at a place of the world."""
        rate: np.ndarray = self.v + cross(self.w, place - self.o)
        return rate

    def back(self, direction: np.ndarray) -> np.ndarray:
        """A direction of the world in the frame."""
        out: np.ndarray = (np.swapaxes(self.R, -1, -2) @ direction[..., None])[..., 0]
        return out

    def seen(self, c: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A point of the world in the frame, and its velocity there."""
        return self.back(c - self.o), self.back(v - self.velocity(c))


def carrier(robot: Machine, q: Array, qd: Array, frame: str | None) -> Carrier:
    """How a frame of the robot moves; None is the world."""
    if frame is None:
        return Carrier(np.eye(3), *np.zeros((3, 3)))
    pose = robot.forward_kinematics(q, frame=frame)
    velocity = robot.frame_velocity(q, qd, frame=frame)
    return Carrier(pose[..., :3, :3], pose[..., :3, 3], velocity[..., :3], velocity[..., 3:])


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a x b (..., 3); NumPy's own takes five times as long for a few vectors."""
    turned: np.ndarray = a[..., NEXT] * b[..., LAST] - a[..., LAST] * b[..., NEXT]
    return turned


def across(n: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v (..., 3) without its part along unit vectors n (..., 3)."""
    rest: np.ndarray = v - n * np.sum(n * v, axis=-1, keepdims=True)
    return rest


def unit(r: np.ndarray, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Length (...), direction (..., 3) and the direction's rate, of a vector with a rate."""
    length = np.linalg.norm(r, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):  # of no length, no direction: NaN
        n = r / length[..., None]
        return length, n, across(n, rate) / length[..., None]
