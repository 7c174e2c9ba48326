"""States of closed-loop mechanisms in motion, shared by several test files."""

from functools import cache

import numpy as np

import chasles

MECHANISMS: dict[str, tuple[float, ...]] = {
    "four_bar": (0.5,),
    "slider_crank": (0.7,),
    "triangle": (1.0, 0.3),
    "five_bar": (2.0, 0.9),
    "six_bar": (1.2,),
    "stewart": (0.0,) * 6,
    "delta": (0.2,) * 3,
}
"""Built-in robots with loops, with independent coordinates in the middle of their range."""

PLANAR = tuple(MECHANISMS)[:5]
"""Mechanisms with planar loops, in which some equations of revolute loop joints are redundant."""

SPREAD = 0.1
"""Maximum distance of states from the middle of the range, in rad or m."""


@cache
def mechanism(name: str) -> chasles.Robot:
    """Return a built-in robot with loops, built once."""
    robot: chasles.Robot = getattr(chasles.robots, name)()
    return robot


def motion(name: str, size: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions with closed loops, velocities that satisfy the loops, and joint torques."""
    robot, rng = mechanism(name), np.random.default_rng(seed)
    middle = np.array(MECHANISMS[name])
    around = middle + SPREAD * rng.uniform(-1.0, 1.0, (size, len(middle)))
    q = robot.assemble(around, guess=robot.assemble(middle))
    qd = robot.complete(q, rng.normal(size=around.shape))
    return q, qd, rng.normal(size=(size, robot.nv))


def constraint_forces(
    H: np.ndarray, h: np.ndarray, K: np.ndarray, k: np.ndarray, tau: np.ndarray
) -> np.ndarray:
    """Return qdd from one dense system by pseudo-inverse: H qdd - K' lam = tau - h, K qdd = k."""
    m, n = K.shape
    whole = np.block([[H, K.T], [K, np.zeros((m, m))]])
    return (np.linalg.pinv(whole, rcond=1e-11) @ np.concatenate([tau - h, k]))[:n]
