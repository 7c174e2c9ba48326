"""The linear system that closed loops are near one of their motions, in independent coordinates."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.functions.programs import Derivative
from chasles.mathematics.linear import Vector
from chasles.mechanisms.closing import Loops
from chasles.model import Model

BY_MOTION = Derivative("jacobian", ("q", "qd"))


def linear_system(
    loops: Loops,
    motion: Sequence[np.ndarray],
    forces: Sequence[Any],
    *,
    threads: int | None,
    **options: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """A (..., 2n, 2n) and B (..., 2n, nv) of xdot = A x + B u.

    motion: q, qd, qdd, multipliers. x = (y, change of yd), where the step
    G y along `integrate` leads to a neighbouring closed position. With e the three parts of
    `loop_equations`, neighbouring motions have K dqd = -de3, K dqdd = -de2 and H dqdd - K' dlam +
    de1 = u; G' takes the multipliers out of the last.
    """
    q, qd, _, _ = motion
    slopes = loops.function("loop_equations", derivative=BY_MOTION, **options)
    e1_q, e1_v, e2_q, e2_v, e3_q, _ = slopes(*motion, *forces, threads=threads)
    H = loops.function("mass_matrix")(q, threads=threads)
    G, R = loops.carried(q, loops.independent)
    GT, n = np.swapaxes(G, -1, -2), len(loops.independent)
    turning = -R @ e3_q @ G  # of qd, where y changes and yd does not
    dq, dqd = np.block([G, 0.0 * G]), np.block([turning, G])
    dqdd = -R @ (e2_q @ dq + e2_v @ dqd)
    by_state = -GT @ (e1_q @ dq + e1_v @ dqd + H @ dqdd)
    below = np.linalg.solve(GT @ H @ G, np.block([by_state, GT]))
    drift = np.einsum("...k,kij->...ij", qd, _brackets(loops.model))[..., loops.independent, :] @ G
    above = np.block([drift, np.eye(n) + 0.0 * drift, 0.0 * GT])
    A, B = np.split(np.concatenate([above, below], axis=-2), [2 * n], axis=-1)
    return A, B


def _brackets(model: Model) -> np.ndarray:
    """Of each velocity coordinate, what it adds to -ad(qd), which is linear in qd: (nv, nv, nv)."""
    found = np.zeros((model.nv,) * 3)
    for i, where in model.velocity_slices.items():
        joint = model.bodies[i].joint
        for k, unit in enumerate(np.eye(joint.nv), start=where.start):
            found[k, where, where] = joint.drift(Vector(tuple(unit.tolist()))).rows
    return found
