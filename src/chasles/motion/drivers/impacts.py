"""Impulses at all points that touch together: at once by restitution, or in turn by other laws."""

from collections.abc import Sequence

import numpy as np

from chasles.errors import ConvergenceError
from chasles.motion.contact.pairs import Rigid
from chasles.motion.laws.friction import coulomb

SETTLED, ROUNDS = 1e-12, 10_000
"""Impacts one after the other end where none approaches by this part of the first speed, and so
many are too many."""


def impulses(laws: Sequence[Rigid], W: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Those (3k,) at k points that touch, along their axes of contact, in N s.

    W (3k, 3k): what impulses change velocities v (k, 3) by. By restitution alone all act at once:
    Newton's law and Coulomb's, for the velocities after the impact (Moreau 1988). By laws of one
    point they act in turn, where it closes fastest.
    """
    in_turn = any(law.impact is not None for law in laws)
    return (_in_turn if in_turn else _at_once)(laws, W, v)


def _at_once(laws: Sequence[Rigid], W: np.ndarray, v: np.ndarray) -> np.ndarray:
    c, mu, e = v.copy(), *np.transpose([(law.friction, law.restitution) for law in laws])
    c[:, 2] += e * np.minimum(v[:, 2], 0.0)
    return coulomb(W, c.ravel(), mu).ravel()


def _in_turn(laws: Sequence[Rigid], W: np.ndarray, v: np.ndarray) -> np.ndarray:
    now, total = v.copy(), np.zeros_like(v)
    blocks = W.reshape(len(v), 3, len(v), 3)
    least = SETTLED * np.min(v[:, 2])
    for _ in range(ROUNDS):
        k = int(np.argmin(now[:, 2]))
        if now[k, 2] >= least:
            return total.ravel()
        impulse = laws[k].impact_law.impulse(blocks[k, :, k], now[k])
        total[k] += impulse
        now += blocks[:, :, k] @ impulse
    problem = f"impacts in turn do not end within {ROUNDS}"
    raise ConvergenceError("E-MOTION-045", problem, "give restitution= instead of impact=")
