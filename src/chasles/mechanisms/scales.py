"""What makes the equations of loops and couplings dimensionless.

Lengths are divided by the size of their loop, which is the sum of the fixed distances around it.
"""

import math

import numpy as np

from chasles.mathematics.linear import Vector
from chasles.model import Coupling, Loop, Model
from chasles.model.spaces import freedom_units

_SAMPLES = 16


def row_scales(model: Model) -> np.ndarray:
    """Of the equations: 1 for rotations, 1/size for translations, 1/slope for couplings."""
    scales = []
    for loop in model.loops:
        T = loop.joint.constraint(loop.joint.neutral())
        scales += [1.0 / size(model, loop) if any(f.force) else 1.0 for f in T.columns]
    scales += [1.0 / _slope(model, coupling) for coupling in model.couplings]
    return np.array(scales)


def column_scales(model: Model) -> np.ndarray:
    """Of the freedoms: 1 for rotations, the largest loop's size for translations."""
    largest = max((size(model, loop) for loop in model.loops), default=1.0)
    return np.array(freedom_units(model, largest))


def size(model: Model, loop: Loop) -> float:
    """The sum of the fixed distances around a loop, in m; 1 where there are none."""
    steps = [model.bodies[i].joint.placement.r for i, _ in loop.path]
    steps += [loop.predecessor.placement.r, loop.successor.placement.r]
    return sum(math.sqrt(r.dot(r)) for r in steps) or 1.0


def _slope(model: Model, coupling: Coupling) -> float:
    """The steepest slope of a coupling near neutral, for one rad or m; 1 where it has none."""
    rng = np.random.default_rng(0)
    found = [0.0]
    for _ in range(_SAMPLES):
        near = {i: rng.uniform(-1.0, 1.0, model.bodies[i].joint.nv) for i in coupling.bodies}
        blocks = coupling.matrix({i: Vector(tuple(x.tolist())) for i, x in near.items()})
        found += [abs(entry) for block in blocks.values() for entry in block.rows[0]]
    return max(filter(math.isfinite, found)) or 1.0
