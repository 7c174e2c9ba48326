"""Dry joint friction in simulations that run in Python, for trees, closed loops and batches."""

from collections.abc import Callable
from typing import Any

import numpy as np

from chasles.mechanisms import Mechanism
from chasles.motion.geometry.closed_forms import applied
from chasles.motion.solvers import boxed
from chasles.motion.steps.bodies import dry_friction
from chasles.motion.steps.stiction import Ending, Mode, Sticking
from chasles.motion.steps.system import (
    Accelerate,
    Advance,
    Advanced,
    Local,
    State,
    System,
    Taken,
    hermite,
)

ROUNDED = 1e-12
"""Relative tolerance for a sum of terms that cancel: a smaller sum counts as zero."""

DEPENDENT = 1e-10
"""Relative tolerance for eigenvalues: smaller eigenvalues count as zero. Zero eigenvalues occur if
loops couple joints."""


class Dry(Sticking):
    """Integrator step in which dry friction may hold joints.

    The total joint torques are `force` plus the torques that keep held joints at rest. The driver
    sets the attribute `free`, a function that returns accelerations without these holding torques.
    """

    free: Accelerate

    def __init__(self, mechanism: Mechanism, advance: Advance, shape: tuple[int, ...]) -> None:
        super().__init__(advance, dry_friction(mechanism.model))
        self._mechanism, model = mechanism, mechanism.model
        self._single = [
            (model.velocity_slices[i].start, slot.start)
            for i, slot in model.position_slices.items()
            if model.bodies[i].joint.nq == model.bodies[i].joint.nv == 1
        ]
        self.mode = Mode(np.zeros(shape), np.zeros(shape))
        self._first: np.ndarray | None = None
        self._missed, self._still = np.zeros(shape), np.zeros(shape, dtype=bool)

    def force(self, force: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        """Wrap the function `force`, so that dry friction has the signs of the current mode."""

        def forces(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
            return force(t, q, qd) + self.friction * (np.sign(qd) - self.mode.sign)

        return forces

    def accelerate(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return qdd in the current friction mode, followed by the rates of the appended states."""
        rates, held = self.free(t, q, qd), self.mode.held
        if not held.any():
            return rates
        (qdd, behind), B = np.split(rates, [len(self.friction)], -1), self._response(t, q)
        holding = self._stopping(B, held, qdd)
        self._see(B, holding)
        return np.concatenate([np.where(held, 0.0, _pushed(qdd, B, holding)), behind], -1)

    def _see(self, B: np.ndarray, holding: np.ndarray) -> None:
        """Store the torques that hold joints at the start of a step, and update the step's error.

        The torque that holds a joint may exceed the dry friction of the joint. If the joint were
        released, the excess would accelerate it. The error is the largest change in this
        acceleration during the step.
        """
        beyond = np.copysign(np.maximum(np.abs(holding) - self.friction, 0.0), holding)
        if self._first is None:
            self._first, self._beyond = holding, beyond
        missed = np.abs(beyond - self._beyond) * np.diagonal(B, axis1=-2, axis2=-1)
        self._missed = np.maximum(self._missed, missed)

    def holding(self, system: System, y: np.ndarray) -> np.ndarray:
        self._first, self._missed = None, np.zeros_like(self.mode.held)
        if not self.mode.held.any():
            return np.zeros_like(self.mode.held)
        self.accelerate(system.t, system.q, system.velocity(y))
        assert self._first is not None
        return self._first

    def speed(self, system: System, h: Any, y: np.ndarray) -> np.ndarray:
        assert isinstance(system, Local)
        return system.state(h, y)[1]

    def told(
        self, system: System, h: Any, y: np.ndarray, found: Advanced, last: np.ndarray, end: Ending
    ) -> Advanced:
        """Return the step with an error estimate and an interpolant that include dry friction.

        If the integrator estimates its error, two terms are added: the displacement due to
        impulses, and the velocity that a joint lost because friction held it for too long.
        """
        assert isinstance(system, Local)
        n, error = len(self.friction), found.error
        if error is not None:
            error = np.abs(error)
            error[..., :n] += np.abs(last - found.y)[..., :n]
            error[..., n : 2 * n] += h * self._missed
        smooth = found.within or hermite(system, h, y, found.y)
        v0, v, theta = system.velocity(y), system.velocity(last), h - end.rest

        def within(part: float) -> np.ndarray:
            here, t = smooth(part) + part**2 * (last - found.y), part * h
            left, gone = np.maximum(theta - t, 0.0), np.maximum(t - theta, 0.0)
            falls = v0 * left / np.where(theta > 0.0, theta, 1.0)
            grows = v * gone / np.where(end.rest > 0.0, end.rest, 1.0)
            moved = 0.5 * (theta * v0 - left * falls + gone * grows)
            own = np.concatenate([moved, falls + grows], -1)
            free = np.concatenate([end.free, end.free], -1)
            here[..., : 2 * n] = np.where(free, own, here[..., : 2 * n])
            return here

        return Advanced(last, error, within)

    def ended(
        self, system: System, h: Any, y: np.ndarray, end: Ending
    ) -> tuple[np.ndarray, np.ndarray]:
        assert isinstance(system, Local)
        v, P, rests = end.v1, np.zeros_like(end.v1), end.free != 0.0
        if np.any(rests & ((v != 0.0) | (end.low > 0.0) | (end.high < 0.0))):
            # The response matrix is evaluated at the end of the step for closed loops, and at the
            # beginning for trees, as in compiled steps.
            q = system.state(h, y)[0] if self._mechanism.rows else system.q
            B = self._response(system.t + h if self._mechanism.rows else system.t, q)
            P = self._stopping(B, end.free, v)
            wrong = np.any(rests & ((end.low > P) | (end.high < P)), axis=-1)
            for k in map(tuple, np.argwhere(wrong)):
                which = np.flatnonzero(rests[k])
                low, high = end.low[k][which], end.high[k][which]
                found = boxed(B[k][np.ix_(which, which)], v[k][which], low, high)
                P[k][which], rests[k][which] = found, (low < found) & (found < high)
            v = np.where(rests, 0.0, _pushed(v, B, P))
        self._still = rests
        return v, P

    def stilled(self, before: np.ndarray, taken: Taken) -> Taken:
        """Return the step with the drift of resting joints removed from its final q and qd.

        In closed loops, these joints are moved back to their positions in `before`, which is q at
        the start of the step. The corrections keep the loops closed.
        """
        t, q, qd = taken.last
        if self._mechanism.rows and self._still.any():
            B, n = self._response(t, q), self._mechanism.nq
            qd = qd + applied(B, self._stopping(B, self._still, qd))
            held = self._still & (self.mode.held != 0.0)
            off = self._mechanism.difference(before[..., :n], q[..., :n])
            there = self._mechanism.integrate(q[..., :n], applied(B, self._stopping(B, held, off)))
            for k, place in self._single:
                there[..., place] = np.where(held[..., k], before[..., place], there[..., place])
            q = np.concatenate([there, q[..., n:]], -1)
        qd = np.where(self._still, 0.0, qd) + 0.0  # avoid -0
        return taken._replace(last=State(t, q, qd))

    def _response(self, t: float, q: np.ndarray) -> np.ndarray:
        """Return the matrix (..., nv, nv) that maps joint impulses to changes of qd.

        For a tree, the matrix is M^-1. For closed loops, the matrix is N (N'M N)^-1 N', where the
        columns of N span the motions that the loops allow.
        """
        here, q = self._mechanism.at(t), q[..., : self._mechanism.nq]
        M = here.mass_matrix(q)
        if not self._mechanism.rows:
            return np.asarray(np.linalg.inv(M))
        n = len(self._mechanism.loops.independent)
        rows = np.linalg.svd(here.loop_matrix(q))[2]
        N = np.swapaxes(rows[..., rows.shape[-1] - n :, :], -1, -2)
        Nt = np.swapaxes(N, -1, -2)
        return np.asarray(N @ np.linalg.solve(Nt @ M @ N, Nt))

    def _stopping(self, B: np.ndarray, which: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the impulses P at selected joints that bring these joints to rest.

        The matrix B maps joint impulses to changes of qd. P satisfies (B P)_i = -v_i for each
        selected joint i, and is zero for other joints.
        """
        mask = which != 0.0
        A = np.where(mask[..., :, None] & mask[..., None, :], B, 0.0)
        scale = np.sqrt(np.where(mask, np.diagonal(B, axis1=-2, axis2=-1), 1.0))
        scale = np.where(scale > 0.0, 1.0 / np.where(scale > 0.0, scale, 1.0), 1.0)
        A = scale[..., :, None] * A * scale[..., None, :]
        b = np.where(mask, -scale * v, 0.0)
        if self._mechanism.rows:
            inverse = np.linalg.pinv(A, rcond=DEPENDENT, hermitian=True)
            return np.asarray(scale * applied(inverse, b))
        A = A + np.where(mask, 0.0, 1.0)[..., None] * np.eye(A.shape[-1])
        return np.asarray(scale * np.linalg.solve(A, b[..., None])[..., 0])


def _pushed(a: np.ndarray, B: np.ndarray, P: np.ndarray) -> np.ndarray:
    """Return a + B P, with entries set to zero if their terms cancel to within rounding error.

    The matrix B maps joint impulses P to changes of the velocities a, or joint torques P to changes
    of the accelerations a.
    """
    total, size = a + applied(B, P), np.abs(a) + applied(np.abs(B), np.abs(P))
    return np.where(np.abs(total) <= ROUNDED * size, 0.0, total)
