"""Comparison of the equations of motion of two mechanisms."""

import numpy as np

from chasles.mechanisms.mechanism import Mechanism
from chasles.mechanisms.mobility import mobility
from chasles.mechanisms.reports import LoopError

STATES = 8


def equivalent(a: Mechanism, b: Mechanism, tolerance: float, rng: np.random.Generator) -> bool:
    """Return True if two mechanisms with the same joints have the same equation of motion."""
    if a.rows or b.rows:
        return _closed_alike(a, b, tolerance, rng)
    nv = a.model.nv
    q = a.caller("integrate")(a.neutral(), rng.uniform(-np.pi, np.pi, size=(STATES, nv)))
    qd, qdd = rng.normal(size=(2, STATES, nv))
    pairs = (
        [one.caller("inverse_dynamics")(q, qd, qdd), one.caller("mass_matrix")(q)] for one in (a, b)
    )
    return all(_near(x, y, tolerance) for x, y in zip(*pairs, strict=True))


def _closed_alike(a: Mechanism, b: Mechanism, tolerance: float, rng: np.random.Generator) -> bool:
    """Return True if the closed motions of two mechanisms agree; one may have no loops."""
    loops = (a if a.rows else b).closing
    q = loops.solve(loops.references, loops.columns).q
    tau = rng.normal(size=(len(q), a.model.nv))
    try:
        n, other = (int(mobility(one.loops, None, 1e-9)) for one in (a, b))
        if n != other:
            return False
        qd = a.closing.complete(q, rng.normal(size=(len(q), n)), None, 1e-9)
        x, y = (
            one.caller("forward_dynamics", method="fastest", dissipation=False)(q, qd, tau)
            for one in (a, b)
        )
    except LoopError:
        return False
    return _near(x, y, tolerance)


def _near(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    error, size = (np.max(np.abs(x), initial=0.0) for x in (a - b, a))
    return bool(error <= tolerance * size)
