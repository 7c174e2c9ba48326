"""The classical Runge-Kutta method of fourth order, on the configuration space."""

from collections.abc import Callable

import numpy as np

Placed = tuple[np.ndarray, np.ndarray, np.ndarray]
"""A position, its velocity, and the rate of the step that leads to it."""

Place = Callable[[float, np.ndarray, np.ndarray, np.ndarray], Placed]
"""place(t, q, d, v): the position integrate(q, d) at time t, its velocity, and the rate of d."""

Accelerate = Callable[[float, np.ndarray, np.ndarray], np.ndarray]
"""accelerate(t, q, qd): qdd."""


def runge_kutta(
    place: Place, accelerate: Accelerate, t: float, h: float, q: np.ndarray, qd: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """q and qd after a step of h seconds from time t (Munthe-Kaas 1998).

    Positions are written as steps d from q along `integrate`, which are vectors, so that the
    method of vectors applies to (d, qd); `place` brings them back to the configuration space.
    """
    rate, qdd = qd, accelerate(t, q, qd)
    d, v = rate, qdd
    for part, weight in ((0.5, 2.0), (0.5, 2.0), (1.0, 1.0)):
        s = part * h
        there, speed, rate = place(t + s, q, s * rate, qd + s * qdd)
        qdd = accelerate(t + s, there, speed)
        d, v = d + weight * rate, v + weight * qdd
    there, speed, _ = place(t + h, q, (h / 6.0) * d, qd + (h / 6.0) * v)
    return there, speed
