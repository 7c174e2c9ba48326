"""The right-hand side of the velocity equations of loops and couplings."""

from chasles.algorithms.homogeneous.loop_matrix import loop_matrix
from chasles.mathematics.linear import Vector
from chasles.model import spaces
from chasles.model.model import Model


def loop_rate(model: Model, q: spaces.Position) -> spaces.LoopVector:
    """b in A qd = b: zero, but where time moves a joint or a coupling (Featherstone 2008, 3.5).

    Then it is less the velocity that driven joints make around a loop, and -d phi/dt.
    """
    driven = model.undriven(1)
    drifts = [Vector.zero(loop.rows) for loop in model.loops]
    drifts += [coupling.drift(q) for coupling in model.couplings]
    return [
        -sum((A[i] @ driven[i] for i in A), drift)
        for A, drift in zip(loop_matrix(model, q), drifts, strict=True)
    ]
