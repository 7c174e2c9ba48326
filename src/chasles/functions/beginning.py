"""Program that searches for a closed-form inverse-kinematics solution within the joint limits.

The closed form of a redundant arm requires the position of one joint, called the redundant joint.
Each step of the search tries a different position of this joint. The search ends when a solution is
within the limits, or after `MOST` steps.
"""

import math
from collections.abc import Sequence

import numpy as np

from chasles.expr import (
    RULES,
    Arena,
    Number,
    Program,
    Variable,
    atan2,
    less_equal,
    maximum,
    minimum,
    select,
)
from chasles.functions.branches import TURN, Arm, Form, solutions
from chasles.functions.chains import Joint, Move, Slide

STATUS, COST, COUNT, PART, MEMORY = range(5)
"""Indices and size (MEMORY) of the array `memory`, which stores the state of the search.

- STATUS: 0 (running), 1 (posture found) or 2 (abandoned).
- COST: squared error in the iterative search; always 0 in this search.
- COUNT: number of steps.
- PART: next position of the redundant joint, as a fraction of its range.
"""

MOST = 12
"""Maximum number of positions of the redundant joint to try."""

GOLDEN = 0.5 * (5.0**0.5 - 1.0)
"""Spacing of successive positions of the redundant joint, relative to its range.

The spacing is the reciprocal of the golden ratio. Positions wrap around at the end of the range,
and cover it evenly.
"""


def beginning(
    chain: Arm, form: Form, limits: Sequence[np.ndarray], given: tuple[float, float], nq: int
) -> Program:
    """Return the program for one search step.

    The program maps q (nq), the search state `memory` and a goal (12) to the next q and memory.
    `limits` contains the lower and upper limits of the joints in the chain, and `given` contains
    the range of the redundant joint. Coordinates outside the chain do not change. Limits are
    checked with cosines and sines, so angles are computed only for the selected branch.
    """
    arena = Arena(RULES)
    sizes = (("q", nq), ("memory", MEMORY), ("goal", 12))
    inputs = [Variable(name, (n,)) for name, n in sizes]
    q, memory, goal = ([arena.input(v.name, k) for k in range(v.size)] for v in inputs)
    position = given[0] + (given[1] - given[0]) * memory[PART]
    found: Number = 0.0
    chosen: dict[int, list[Number]] = {}
    for branch in reversed(solutions(chain, form, goal, position)):
        flag: Number = 1.0
        for joint, move in branch:
            flag = flag * _inside(move, *_range(joint, limits, chain.size)) * move.real
        for joint, move in branch:
            new = [move.t] if isinstance(move, Slide) else [move.c, move.s]
            pairs = zip(new, chosen.get(joint.number, new), strict=True)
            chosen[joint.number] = [select(flag, a, b) for a, b in pairs]
        found = select(flag, 1.0, found)
    after = list(q)
    for joint in chain.joints:
        value = position
        if joint.number in chosen:
            bounds = _range(joint, limits, chain.size)
            value = _position(joint, chosen[joint.number], *bounds, chain.size)
        place = chain.columns[joint.number]
        after[place] = select(found, value, q[place])
    tried, part = memory[COUNT] + 1.0, memory[PART] + GOLDEN
    late = 1.0 if form.given is None else less_equal(float(MOST), tried)
    status = select(found, 1.0, select(late, 2.0, 0.0))
    kept = [status, 0.0, tried, select(less_equal(1.0, part), part - 1.0, part)]
    outputs = [(Variable("q", (nq,)), after), (Variable("memory", (MEMORY,)), kept)]
    return Program.from_outputs("beginning", inputs, outputs)


def _range(joint: Joint, limits: Sequence[np.ndarray], size: float) -> tuple[float, float]:
    """Return the limits of a joint, in rad or as multiples of the length `size`.

    The range of a revolute joint is reduced to at most one turn.
    """
    low, high = (float(a[joint.number]) for a in limits)
    if joint.slides:
        return low / size, high / size
    if high - low > TURN:
        middle = max(low + math.pi, min(0.0, high - math.pi))
        return middle - math.pi, middle + math.pi
    return low, high


def _inside(move: Move, low: float, high: float) -> Number:
    """Return 1 if a joint position is within its limits, modulo full turns, else 0."""
    if isinstance(move, Slide):
        return less_equal(low, move.t) * less_equal(move.t, high)
    if high - low >= TURN:
        return 1.0
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    return less_equal(math.cos(half), move.c * math.cos(middle) + move.s * math.sin(middle))


def _position(joint: Joint, move: Sequence[Number], low: float, high: float, size: float) -> Number:
    """Convert `move`, which is (cosine, sine) or (displacement,), to a position within limits."""
    if joint.slides:
        return maximum(low, minimum(move[0], high)) * size
    middle, (c, s) = 0.5 * (low + high), move
    along, across = math.cos(middle), math.sin(middle)
    angle = middle + atan2(s * along - c * across, c * along + s * across)
    return maximum(low, minimum(angle, high))
