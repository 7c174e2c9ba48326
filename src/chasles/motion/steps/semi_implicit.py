"""Semi-implicit Euler: velocities first, then positions by the new ones."""

from typing import Any

import numpy as np

from chasles.motion.steps.local import Local
from chasles.motion.steps.system import ONE, Advanced, System


def semi_implicit(system: System, h: Any, y: Any) -> Advanced:
    """qd1 = qd + h qdd and q1 = integrate(q, h qd1): first order."""
    return Advanced(system.led(system.moved(y, h, ONE, [system.first(y)]), h))


def semi_implicit_mixed(local: Local, h: float, y: np.ndarray) -> Advanced:
    """The same with the linear velocity of free joints along the axes of their parent.

    Then u1 = u + h udot, where u = R v and udot = R (vdot + w x v), x1 = x + h u1, and the rotation
    goes on by itself: what MuJoCo's Euler does, whose velocities of a free joint are (u, w).
    """
    robot, q, n = local.robot, local.position, local.freedoms(y)
    rates = local.first(y)
    qd, qdd = local.velocity(y), local.velocity(rates)
    speed = qd + h * qdd
    d, moves = h * speed, []
    for i, slot in robot.model.velocity_slices.items():
        if robot.model.bodies[i].joint.floating:
            turn = slice(slot.start, slot.start + 3)
            shift = slice(slot.start + 3, slot.stop)
            place = robot.model.position_slices[i].start
            R = slice(place, place + 4)
            change = qdd[..., shift] + np.cross(qd[..., turn], qd[..., shift])
            u = turned(q[..., R], qd[..., shift] + h * change)
            d[..., shift] = 0.0
            moves.append((R, slice(place + 4, place + 7), shift, u))
    there = robot.integrate(q, d)
    for R, x, shift, u in moves:
        there[..., x] += h * u
        speed[..., shift] = turned(there[..., R] * [1.0, -1.0, -1.0, -1.0], u)
    last = y + h * rates
    last[..., :n], last[..., n : 2 * n] = robot.difference(q, there), speed
    last[..., last.shape[-1] - len(local.path) :] = there[..., local.path]
    return Advanced(last)


def turned(quaternion: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Vectors (..., 3) turned by quaternions (w, x, y, z) of any length."""
    w, u = quaternion[..., :1], quaternion[..., 1:]
    across = np.cross(u, v)
    length = np.sum(quaternion * quaternion, axis=-1, keepdims=True)
    moved: np.ndarray = v + (2.0 / length) * (w * across + np.cross(u, across))
    return moved
