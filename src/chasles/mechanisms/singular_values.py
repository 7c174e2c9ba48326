"""Closed-loop dynamics using an SVD, for states where the compiled equations lose accuracy.

In each function, `arrays` contains the arguments of the robot method with the same name, followed
by external wrenches.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.mechanisms.closing import Loops
from chasles.mechanisms.ranks import RANK, times
from chasles.mechanisms.reports import SingularPosition, at_index


def constrained_dynamics(
    loops: Loops, arrays: Sequence[np.ndarray], *, stabilization: float, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the joint accelerations qdd and the Lagrange multipliers of the loop constraints."""
    q, qd, tau, *forces = arrays
    f = tau - loops.function("bias_forces", **options)(q, qd, *forces)
    A, k = loops.raw_matrix(q), loops.function("loop_bias")(q, qd)
    if stabilization:
        a = 1.0 / stabilization
        slip = times(A, qd) - loops.function("loop_rate")(q)
        k = k - 2.0 * a * slip - a * a * loops.function("loop_residual")(q)
    H = loops.function("mass_matrix")(q)
    return _solved(loops, q, H, f, A, k, np.arange(loops.model.nv))


def hybrid_dynamics(
    loops: Loops, arrays: Sequence[np.ndarray], given: np.ndarray, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the unknown torques and accelerations in one array, and the loop residuals.

    The accelerations of the coordinates `given` are known, and their torques are unknown. The
    opposite holds for all other coordinates. The residual is A qdd - k, with the loop matrix A and
    the loop bias k.
    """
    q, qd, x, *forces = arrays
    free = np.delete(np.arange(loops.model.nv), given)
    h = loops.function("bias_forces", **options)(q, qd, *forces)
    H, A = loops.function("mass_matrix")(q), loops.raw_matrix(q)
    k = loops.function("loop_bias")(q, qd)
    lead = np.broadcast_shapes(h.shape[:-1], x.shape[:-1])
    qdd, tau = np.zeros((2, *lead, x.shape[-1]))
    qdd[..., given], tau[..., free] = x[..., given], x[..., free]
    f = (tau - h - times(H, qdd))[..., free]
    part = H[..., free[:, None], free]
    qdd[..., free], lam = _solved(loops, q, part, f, A, k - times(A, qdd), free)
    needed = times(H, qdd) + h - times(np.swapaxes(A, -1, -2), lam)
    held = np.isin(np.arange(loops.model.nv), given)
    return np.where(held, needed, qdd), times(A, qdd) - k


def actuator_forces(
    loops: Loops,
    arrays: Sequence[np.ndarray],
    independent: np.ndarray,
    actuated: np.ndarray,
    weights: Sequence[float],
    **options: Any,
) -> list[np.ndarray]:
    """Return the actuator forces with the smallest weighted sum of squares.

    The actuated degrees of freedom must include the independent ones.
    """
    G, _ = loops.carried(arrays[0], independent)
    tau = loops.function("inverse_dynamics", **options)(*arrays)
    gains, used = 1.0 / np.array(weights), G[..., actuated, :]
    N = np.swapaxes(used, -1, -2) @ (gains[:, None] * used)
    u = np.zeros_like(tau)
    x = np.linalg.solve(N, times(np.swapaxes(G, -1, -2), tau)[..., None])
    u[..., actuated] = gains * (used @ x)[..., 0]
    return [u]


def mass_matrix(loops: Loops, arrays: Sequence[np.ndarray], **options: Any) -> list[np.ndarray]:
    """Return the mass matrix of the independent coordinates."""
    (q,) = arrays
    G, _ = loops.carried(q, loops.independent)
    return [np.asarray(np.swapaxes(G, -1, -2) @ loops.function("mass_matrix")(q) @ G)]


def _solved(
    loops: Loops,
    q: np.ndarray,
    H: np.ndarray,
    f: np.ndarray,
    A: np.ndarray,
    k: np.ndarray,
    free: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the accelerations of the coordinates `free`, and the Lagrange multipliers.

    The accelerations satisfy the loop equations A qdd = k. `H` and `f` are the mass matrix and the
    generalized forces for the coordinates `free`; `H` may be singular. The
    solution uses orthonormal bases of the motions that the loops allow, and of the motions that the
    loops prevent.
    """
    rank = loops.rank(free)
    U, s, Vt = np.linalg.svd(loops.scaled(A)[..., free])
    if rank:
        _check_rank(loops, q, s, rank)
    V = loops.columns[free, None] * np.swapaxes(Vt, -1, -2)
    U, s, across, along = U[..., :rank], s[..., :rank], V[..., :rank], V[..., rank:]
    start = times(across, times(np.swapaxes(U, -1, -2), loops.rows * k) / s)
    ways = np.swapaxes(along, -1, -2)
    force = times(ways, f - times(H, start))
    qdd = start + (along @ np.linalg.solve(ways @ H @ along, force[..., None]))[..., 0]
    left = times(np.swapaxes(across, -1, -2), times(H, qdd) - f)
    return qdd, loops.rows * times(U, left / s)


def _check_rank(loops: Loops, q: np.ndarray, s: np.ndarray, rank: int) -> None:
    low = s[..., rank - 1] <= RANK * s[..., 0]
    if np.any(low):
        bad = int(np.flatnonzero(np.ravel(low))[0])
        loops.check_regular(loops.matrix(q))
        where = at_index(bad, s.shape[:-1])
        problem = f"singular configuration{where}, in which the robot gains degrees of freedom"
        raise SingularPosition(
            "E-LOOP-024", problem, "move away from the singularity", part=loops.part
        )
