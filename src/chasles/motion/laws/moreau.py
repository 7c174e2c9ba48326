"""Moreau's law of impact: several contacts at once, with friction, and never a gain of energy."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from chasles.errors import InputError
from chasles.motion.laws.friction import coulomb, coulomb_slopes
from chasles.motion.solvers.cones import Law

Array = Any


@dataclass(frozen=True)
class Moreau:
    """Coulomb's law for the mean velocity (after + e before)/(1 + e) of all contacts together.

    restitution: e, from 0 to 1, one for all. friction: mu, one for all. Each contact separates at
    least as fast as e says, and is pushed only if no faster, as by Newton's law; friction is within
    the cone, opposite to the mean slip, or stops it: then slip too is turned round, e times as
    large. The impulse works against the mean velocity, so that energy is never created:
    its gain is lambda.mean - (1 - e)/(1 + e) lambda'W lambda/2 (Moreau 1988; Glocker 2001). Without
    friction it is Newton's law, simultaneous. With friction it needs Clarabel (extra `contact`).
    """

    restitution: float
    friction: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.restitution <= 1.0:
            problem = f"restitution must be from 0 to 1, not {self.restitution!r}"
            raise InputError("E-CONTACT-038", problem, part="Moreau")
        if not (self.friction >= 0.0 and np.isfinite(self.friction)):
            problem = f"friction must be a finite number, zero or positive, not {self.friction!r}"
            raise InputError("E-CONTACT-039", problem, part="Moreau")

    def impulse(self, W: Array, zeta: Array) -> np.ndarray:
        """lambda (..., 3k) of k contacts that touch, in N s: W (..., 3k, 3k), zeta (..., 3k)."""
        W, zeta = _arrays(W, zeta)
        result = np.zeros_like(zeta)
        for place in np.ndindex(zeta.shape[:-1]):
            law = self._law(W[place], zeta[place])
            result[place] = coulomb(law.G, law.c, law.mu).ravel() if np.any(law.c) else 0.0
        return result

    def derivatives(self, W: Array, zeta: Array) -> tuple[np.ndarray, np.ndarray]:
        """Those of lambda by W (..., 3k, 3k, 3k) and by zeta (..., 3k, 3k)."""
        W, zeta = _arrays(W, zeta)
        wide = zeta.shape[-1]
        by_W, by_zeta = np.zeros((*W.shape, wide)), np.zeros_like(W)
        impulses = self.impulse(W, zeta)
        for place in np.ndindex(zeta.shape[:-1]):
            law = self._law(W[place], zeta[place])
            slopes = coulomb_slopes(law, impulses[place].reshape(-1, 3), np.eye(wide))
            by_zeta[place] = (1.0 + self.restitution) * slopes
            by_W[place] = slopes[:, :, None] * impulses[place]
        return by_W, by_zeta

    def _law(self, W: np.ndarray, zeta: np.ndarray) -> Law:
        """Coulomb's law with the mean velocity, times 1 + e, in the place of accelerations."""
        n = len(zeta) // 3
        symmetric = 0.5 * (W + W.T)
        c = (1.0 + self.restitution) * zeta
        return Law(symmetric, c, np.full(n, self.friction), np.zeros((n, 2)))


def _arrays(W: Array, zeta: Array) -> tuple[np.ndarray, np.ndarray]:
    """W and zeta with one leading shape, checked."""
    W, zeta = np.asarray(W, dtype=float), np.asarray(zeta, dtype=float)
    wide = zeta.shape[-1] if zeta.ndim else 0
    if wide % 3 or not wide or W.shape[-2:] != (wide, wide):
        problem = f"W {W.shape} and zeta {zeta.shape} must be (..., 3k, 3k) and (..., 3k)"
        raise InputError("E-CONTACT-040", problem, part="Moreau")
    if not (np.isfinite(W).all() and np.isfinite(zeta).all()):
        raise InputError("E-CONTACT-041", "W and zeta must be finite numbers", part="Moreau")
    lead = np.broadcast_shapes(W.shape[:-2], zeta.shape[:-1])
    return np.broadcast_to(W, (*lead, wide, wide)), np.broadcast_to(zeta, (*lead, wide))
