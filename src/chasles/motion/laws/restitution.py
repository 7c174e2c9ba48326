"""Laws of impact at one point: the impulse from the velocity before and the point's inertia.

A law has `impulse(W, zeta)`. W (..., 3, 3): the inverse inertia of the contact point, which turns
impulses into changes of velocity (1/kg); zeta (..., 3): its velocity before, of the one body
relative to the other (m/s); both in contact axes: tangent, tangent, normal. The impulse (..., 3) is
the one on that body (N s). Points that do not approach, zeta_z >= 0, get none. `derivatives` are
those of the impulse.

| law | ends the impact where | friction |
|---|---|---|
| `Newton` | the normal velocity is -e times the one before | Coulomb's, or none |
| `Sticking` | the same | whatever stops the slip |
| `Poisson` | the normal impulse is 1 + e times the one of compression | Coulomb's |
| `Stronge` | the normal work of expansion is e^2 times that of compression | Coulomb's |

Coefficients are numbers or arrays (...).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from chasles.errors import ArgumentError, InputError
from chasles.functions.doors import numbers
from chasles.motion.laws.slip import Quantity, Slip, applied

Array = Any

DIFFERENCE = 1e-6
"""Relative step of central differences: truncation and rounding both near 1e-10."""


SINGULAR = 1e-12
"""Eigenvalues of W up to this part of the largest are of directions that a point cannot move in."""


@runtime_checkable
class ImpactLaw(Protocol):
    """What gives the impulse at one point."""

    def impulse(self, W: Array, zeta: Array) -> np.ndarray:
        """lambda (..., 3), in N s."""

    def derivatives(self, W: Array, zeta: Array) -> tuple[np.ndarray, np.ndarray]:
        """Those of lambda by W (..., 3, 3, 3), for changes that keep it symmetric, and by zeta."""


def check_law(what: str, law: Any) -> None:
    """Refuse what gives no impulses."""
    if not isinstance(law, ImpactLaw):
        raise ArgumentError(
            "E-CONTACT-060",
            f"{what} must be a law of impact, such as Newton(...) or Stronge(...), not {law!r:.60}",
        )


@dataclass(frozen=True)
class Sticking:
    """Slip is stopped by the end of the impact (Featherstone 2008, Eq 11.66 to 11.72).

    restitution: e, from 0 to 1. lambda = -W^-1 (1 + E) zeta with E = diag(0, 0, e): no tangential
    or torsional restitution, and no bound on friction. At e > 0 it can create energy where tangents
    and normal are coupled.
    """

    restitution: Array

    def __post_init__(self) -> None:
        _checked_restitution(self)

    def impulse(self, W: Array, zeta: Array) -> np.ndarray:
        """lambda (..., 3), in N s."""
        W, zeta, e = _arrays(self, W, zeta)
        wanted = zeta * np.stack([np.ones_like(e), np.ones_like(e), 1.0 + e], axis=-1)
        wanted = np.where(zeta[..., 2:] < 0.0, wanted, 0.0)
        impulse = -applied(np.linalg.pinv(W, rcond=SINGULAR, hermitian=True), wanted)
        missing = np.abs(applied(W, impulse) + wanted)
        if np.any(missing > 1e-9 * np.max(np.abs(wanted), axis=-1, initial=0.0, keepdims=True)):
            problem = (
                "the point has too few freedoms to stop its slip and to rebound as restitution says"
            )
            remedy = "use restitution 0, or a law with Coulomb's friction"
            raise InputError("E-CONTACT-061", problem, remedy, part="Sticking")
        return impulse

    def derivatives(self, W: Array, zeta: Array) -> tuple[np.ndarray, np.ndarray]:
        """Those of lambda by W (..., 3, 3, 3) and by zeta (..., 3, 3)."""
        W, zeta, e = _arrays(self, W, zeta)
        back = np.linalg.pinv(W, rcond=SINGULAR, hermitian=True)
        by_W = -back[..., :, :, None] * self.impulse(W, zeta)[..., None, None, :]
        by_zeta = (
            -back * np.stack([np.ones_like(e), np.ones_like(e), 1.0 + e], axis=-1)[..., None, :]
        )
        hits = zeta[..., 2] < 0.0
        return (
            np.where(hits[..., None, None, None], by_W, 0.0),
            np.where(hits[..., None, None], by_zeta, 0.0),
        )


@dataclass(frozen=True)
class Newton:
    """The normal velocity is turned round, e times as large (Featherstone 2008, Eq 11.65).

    restitution: e, from 0 to 1. friction: Coulomb's coefficient; 0 is the book's law,
    lambda_z = -(1 + e) zeta_z / W_zz. With friction it can create energy where slip turns back
    (Kane and Levinson 1985): a warning, not a recommendation.
    """

    restitution: Array
    friction: Array = 0.0

    def __post_init__(self) -> None:
        _checked_restitution(self)

    def impulse(self, W: Array, zeta: Array) -> np.ndarray:
        """lambda (..., 3), in N s."""
        return _slipping(self, W, zeta, "velocity", lambda e, pc, work, before: -e * before)

    def derivatives(self, W: Array, zeta: Array) -> tuple[np.ndarray, np.ndarray]:
        """Those of lambda by W (..., 3, 3, 3) and by zeta (..., 3, 3); by differences if mu > 0."""
        if np.any(np.asarray(self.friction) > 0.0):
            return _differences(self, W, zeta)
        W, zeta, e = _arrays(self, W, zeta)
        by_W, by_zeta = np.zeros((*zeta.shape, 3, 3)), np.zeros((*zeta.shape, 3))
        hits = zeta[..., 2] < 0.0
        slope = -(1.0 + e) / W[..., 2, 2]
        by_zeta[..., 2, 2] = np.where(hits, slope, 0.0)
        by_W[..., 2, 2, 2] = np.where(hits, -slope * zeta[..., 2] / W[..., 2, 2], 0.0)
        return by_W, by_zeta


@dataclass(frozen=True)
class Poisson:
    """Expansion gives back e times the normal impulse of compression, under Coulomb's friction.

    restitution: e, from 0 to 1. friction: mu. Compression ends where the normal velocity is zero.
    Slip may stop, stick, or turn back on the way; where it does, the work that the normal impulse
    gives back is not e^2 of what it took, and e = 1 is not free of loss (Stronge 1990).
    """

    restitution: Array
    friction: Array

    def __post_init__(self) -> None:
        _checked_restitution(self)

    def impulse(self, W: Array, zeta: Array) -> np.ndarray:
        """lambda (..., 3), in N s."""
        return _slipping(self, W, zeta, "impulse", lambda e, pc, work, before: (1.0 + e) * pc)

    def derivatives(self, W: Array, zeta: Array) -> tuple[np.ndarray, np.ndarray]:
        """Those of lambda by W (..., 3, 3, 3) and by zeta (..., 3, 3), by central differences."""
        return _differences(self, W, zeta)


@dataclass(frozen=True)
class Stronge:
    """Expansion gives back e^2 of the work that compression took, under Coulomb's friction.

    restitution: e, from 0 to 1. friction: mu. The work is that of the normal impulse, so that the
    loss by impact and the loss by friction are apart and neither is negative: energy is never
    created (Stronge 1990; 2000, *Impact Mechanics*). Without friction, and wherever slip does not
    change its kind, it is Newton's and Poisson's law.
    """

    restitution: Array
    friction: Array

    def __post_init__(self) -> None:
        _checked_restitution(self)

    def impulse(self, W: Array, zeta: Array) -> np.ndarray:
        """lambda (..., 3), in N s."""
        return _slipping(self, W, zeta, "work", lambda e, pc, work, before: (1.0 - e * e) * work)

    def derivatives(self, W: Array, zeta: Array) -> tuple[np.ndarray, np.ndarray]:
        """Those of lambda by W (..., 3, 3, 3) and by zeta (..., 3, 3), by central differences."""
        return _differences(self, W, zeta)


Goal = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Where expansion ends: of e, impulse and work of compression, and normal velocity before."""


def _slipping(law: Any, W: Array, zeta: Array, quantity: Quantity, goal: Goal) -> np.ndarray:
    """Compression until the normal velocity is zero, then expansion until a quantity is enough.

    Slip that turns can press bodies together again in expansion, which then lasts until they part.
    """
    W, zeta, e = _arrays(law, W, zeta)
    mu = np.broadcast_to(np.asarray(law.friction, dtype=float), e.shape)
    result = np.zeros_like(zeta)
    hits = zeta[..., 2] < 0.0
    slip, e = Slip(W[hits], zeta[hits], mu[hits]), e[hits]
    path = slip.follow(slip.start(), "velocity", np.zeros_like(e))
    end = goal(e, path[:, 2], path[:, 3], slip.zeta0[:, 2])
    path = slip.follow(path, quantity, end)
    late = np.flatnonzero(slip.measured(path, "velocity") < 0.0)
    path[late] = slip[late].follow(path[late], "velocity", np.zeros(len(late)))
    result[hits] = path[:, :3]
    return result


def _differences(law: ImpactLaw, W: Array, zeta: Array) -> tuple[np.ndarray, np.ndarray]:
    """Central differences, all in one call; both entries of a pair of W share its slope."""
    W, zeta, _ = _arrays(law, W, zeta)
    pairs = [(j, k) for j in range(3) for k in range(j, 3)]
    W_steps, zeta_steps = np.zeros((9, *W.shape)), np.zeros((9, *zeta.shape))
    for n in range(3):
        zeta_steps[n, ..., n] = DIFFERENCE * np.max(np.abs(zeta), axis=-1)
    for n, (j, k) in enumerate(pairs, start=3):
        W_steps[n, ..., j, k] = W_steps[n, ..., k, j] = DIFFERENCE * np.max(
            np.abs(W), axis=(-2, -1)
        )
    both = [W + sign * W_steps for sign in (1.0, -1.0)]
    moved = [zeta + sign * zeta_steps for sign in (1.0, -1.0)]
    up, down = law.impulse(np.stack(both), np.stack(moved))
    size = np.sum(np.abs(W_steps), axis=(-2, -1)) + np.sum(zeta_steps, axis=-1)
    slopes = (up - down) / (2.0 * np.where(size > 0.0, size, 1.0))[..., None]
    by_W, by_zeta = np.zeros((*zeta.shape, 3, 3)), np.moveaxis(slopes[:3], 0, -1)
    for n, (j, k) in enumerate(pairs, start=3):
        by_W[..., j, k] = by_W[..., k, j] = slopes[n]
    return by_W, by_zeta


def _arrays(law: Any, W: Array, zeta: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """W, zeta and e with one leading shape, checked."""
    name = type(law).__name__
    W, zeta = np.asarray(W, dtype=float), numbers(f"{name}: zeta", zeta, 3)
    if W.shape[-2:] != (3, 3):
        problem = f"W must have shape (..., 3, 3), not {W.shape}"
        raise InputError("E-CONTACT-062", problem, part=name)
    if not (np.isfinite(W).all() and np.isfinite(zeta).all()):
        raise InputError("E-CONTACT-063", "W and zeta must be finite numbers", part=name)
    if np.any((W[..., 2, 2] <= 0.0) & (zeta[..., 2] < 0.0)):
        problem = "W must be positive along the normal of a point that approaches"
        raise InputError("E-CONTACT-064", problem, part=name)
    e = np.asarray(law.restitution, dtype=float)
    mu = np.asarray(getattr(law, "friction", 0.0), dtype=float)
    try:
        lead = np.broadcast_shapes(W.shape[:-2], zeta.shape[:-1], e.shape, mu.shape)
    except ValueError:
        problem = (
            f"leading shapes do not broadcast together: W {W.shape[:-2]}, zeta {zeta.shape[:-1]}, "
            f"restitution {e.shape}, friction {mu.shape}"
        )
        raise InputError("E-CONTACT-065", problem, part=name) from None
    wide = np.broadcast_to(W, (*lead, 3, 3))
    return wide, np.broadcast_to(zeta.astype(float), (*lead, 3)), np.broadcast_to(e, lead)


def _checked_restitution(law: Any) -> None:
    e = np.asarray(law.restitution, dtype=float)
    mu = np.asarray(getattr(law, "friction", 0.0), dtype=float)
    name = type(law).__name__
    if not np.all((e >= 0.0) & (e <= 1.0)):
        problem = f"restitution must be from 0 to 1, not {law.restitution!r}"
        raise InputError("E-CONTACT-066", problem, part=name)
    if not np.all((mu >= 0.0) & np.isfinite(mu)):
        problem = f"friction must be a finite number, zero or positive, not {law.friction!r}"
        raise InputError("E-CONTACT-067", problem, part=name)
