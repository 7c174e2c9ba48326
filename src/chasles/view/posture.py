"""Where a robot stands: a start to look at, a freedom moved while loops stay closed, its bodies."""

import math
from typing import NamedTuple

import numpy as np

from chasles.algorithms.spatial.kinematics import body_transforms
from chasles.mathematics.linear import Vector
from chasles.model import Model
from chasles.model.description import freedom_names
from chasles.robot import Robot


class Freedom(NamedTuple):
    """A velocity coordinate: its name, the bounds that it is moved in, and its unit.

    endless: an angle without limits, of which whole turns do not count.
    """

    name: str
    lower: float
    upper: float
    unit: str
    endless: bool = False

    def shown(self, value: float) -> float:
        """A value as a slider between the bounds can show it."""
        if self.endless:
            value = math.remainder(value, 2.0 * math.pi)
        return min(max(value, self.lower), self.upper)


def freedoms(robot: Robot) -> list[Freedom]:
    """One for each velocity coordinate, in order.

    Between the limits of its joint; without any, within half a turn, or one metre, of neutral.
    """
    found = []
    for joint in robot.joints:
        body = robot.model.bodies[robot.model.mover(joint)]
        limits, nv = body.data.limits, body.joint.nv
        bounded = nv == 1 and math.isfinite(limits.upper - limits.lower)
        S = body.joint.subspace(body.joint.neutral())
        for k, name in enumerate(freedom_names(joint, nv)):
            angle = any((S @ Vector(tuple(float(n == k) for n in range(nv)))).angular)
            span = math.pi if angle else 1.0
            lower, upper = sorted((limits.lower, limits.upper)) if bounded else (-span, span)
            unit, upper = "rad" if angle else "m", max(upper, lower + 1e-6)
            found.append(Freedom(name, lower, upper, unit, angle and not bounded))
    return found


def start(robot: Robot) -> np.ndarray:
    """A configuration to begin with: neutral, within limits, loops closed."""
    v = np.zeros(robot.nv)
    inside = np.clip(v, *np.array([f[1:3] for f in freedoms(robot)]).reshape(-1, 2).T)
    return robot.mechanism.near(robot.integrate(robot.neutral(), inside))


def displacement(robot: Robot, q: np.ndarray) -> np.ndarray:
    """How far each freedom is from neutral: (nv,); the coordinate itself where a joint has one."""
    return robot.difference(robot.neutral(), q)


def moved(robot: Robot, q: np.ndarray, k: int, value: float) -> np.ndarray:
    """The configuration in which freedom k is at `value`, and the others where they were.

    Of a robot with loops k is one of its independent freedoms, and the dependent ones follow from
    where they are, in small steps, so that the mechanism stays on its branch. Raises
    `chasles.LoopError` where it cannot go there.
    """
    v = displacement(robot, q)
    v[k] = value
    return robot.mechanism.towards(q, robot.integrate(robot.neutral(), v), k)


def poses(model: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of all bodies in the world: rotations (n, 3, 3) and positions (n, 3)."""
    found = body_transforms(model, model.positions(q.tolist()))
    R = [found[i].R.rows for i in range(len(model.bodies))]
    p = [tuple(found[i].r) for i in range(len(model.bodies))]
    return np.array(R, dtype=float).reshape(-1, 3, 3), np.array(p, dtype=float).reshape(-1, 3)
