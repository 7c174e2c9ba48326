"""Linear systems: actuators chosen, continuous time made discrete."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chasles.errors import ArgumentError, InputError

_PADE = tuple(
    math.factorial(26 - k)
    * math.factorial(13)
    / (math.factorial(26) * math.factorial(k) * math.factorial(13 - k))
    for k in range(14)
)
"""Coefficients of the numerator of the Pade approximant [13/13] of the exponential."""

_REACH = 5.371920351148152
"""Up to this 1-norm the approximant is exact to rounding (Higham 2005, table 2.3)."""


def exponential(matrix: np.ndarray) -> np.ndarray:
    """The exponential of square matrices (..., n, n): scaling and squaring (Higham 2005).

    Every matrix is scaled by its own power of two, so a result does not depend on its neighbours.
    """
    lead = matrix.shape[:-2]
    stack = np.asarray(matrix, dtype=float).reshape(math.prod(lead), *matrix.shape[-2:])
    norms = np.abs(stack).sum(axis=-2).max(axis=-1, initial=0.0)
    _, halvings = np.frexp(norms / _REACH)
    halvings = np.where(norms > _REACH, halvings, 0)
    result = np.full_like(stack, np.nan)
    for k in np.unique(halvings[np.isfinite(norms)]):
        chosen = np.isfinite(norms) & (halvings == k)
        power = _approximant(np.ldexp(stack[chosen], -k))
        for _ in range(k):
            power = power @ power
        result[chosen] = power
    return result.reshape(matrix.shape)


def _approximant(A: np.ndarray) -> np.ndarray:
    """(V - U)^-1 (V + U) with the odd and even parts U and V of the numerator."""
    b, one = _PADE, np.eye(A.shape[-1])
    A2 = A @ A
    A4 = A2 @ A2
    A6 = A2 @ A4
    U = A6 @ (b[13] * A6 + b[11] * A4 + b[9] * A2) + b[7] * A6 + b[5] * A4 + b[3] * A2 + b[1] * one
    V = A6 @ (b[12] * A6 + b[10] * A4 + b[8] * A2) + b[6] * A6 + b[4] * A4 + b[2] * A2 + b[0] * one
    U = A @ U
    return np.linalg.solve(V - U, V + U)


def discretized(A: np.ndarray, B: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """x after dt is A' x + B' u for an input u that is constant on the way: exactly.

    A' and B' are the upper blocks of the exponential of [[A, B], [0, 0]] dt (Van Loan 1978).
    """
    n, m = B.shape[-2:]
    whole = np.zeros((*A.shape[:-2], n + m, n + m))
    whole[..., :n, :n], whole[..., :n, n:] = A, B
    after = exponential(whole * dt)
    return after[..., :n, :n].astype(A.dtype), after[..., :n, n:].astype(B.dtype)


def checked_step(dt: Any, what: str = "linearize: dt") -> float:
    """A step of time: a finite positive number."""
    try:
        step = float(dt)
    except (TypeError, ValueError):
        problem = f"{what} must be a number of seconds, not {dt!r}"
        raise ArgumentError("E-MATH-030", problem) from None
    if not (math.isfinite(step) and step > 0.0):
        problem = f"{what} must be a finite positive number of seconds, not {dt!r}"
        raise InputError("E-MATH-031", problem)
    return step


def actuation_matrix(actuation: Any, nv: int, velocity_slice: Callable[[str], slice]) -> np.ndarray:
    """S (nv, m) with joint forces S u, from itself or from the names of the joints that are driven.

    A named joint has one input for each of its freedoms, in the order of the names.
    """
    if isinstance(actuation, str):
        problem = (
            f"actuation must be an array ({nv}, m) or a sequence of joint names, not the string "
            f"{actuation!r}"
        )
        raise ArgumentError("E-MATH-032", problem, f"give [{actuation!r}]", part="linearize")
    if isinstance(actuation, Sequence) and all(isinstance(name, str) for name in actuation):
        if len(set(actuation)) < len(actuation):
            problem = f"actuation names a joint twice: {list(actuation)}"
            raise InputError("E-MATH-033", problem, part="linearize")
        columns = [k for name in actuation for k in range(nv)[velocity_slice(name)]]
        return np.eye(nv)[:, columns]
    try:
        S = np.asarray(actuation, dtype=float)
    except (TypeError, ValueError):
        problem = (
            f"actuation must be an array ({nv}, m) or a sequence of joint names, not {actuation!r}"
        )
        raise ArgumentError("E-MATH-034", problem, part="linearize") from None
    if S.ndim != 2 or S.shape[0] != nv:
        problem = f"actuation must have shape ({nv}, m), not {S.shape}"
        raise InputError("E-MATH-035", problem, part="linearize")
    if not np.all(np.isfinite(S)):
        problem = "actuation has entries that are not finite"
        raise InputError("E-MATH-036", problem, part="linearize")
    return S
