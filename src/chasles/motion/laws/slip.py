"""Collisions with Coulomb friction: slip as a function of the growing normal impulse.

At one contact point, in (tangent, tangent, normal) axes, velocities are zeta = zeta0 + W lambda,
with W the inverse inertia of the point (1/kg) and lambda the accumulated impulse (N s). Friction
opposes slip: d lambda = (-mu s, 1) dp, where p is the normal impulse and s the current direction of
slip. After slip stops, the contact either sticks or slips again in the only direction that persists
(Keller 1986; Stronge 2000, *Impact Mechanics*, chapter 4).

Slip is integrated by the Runge-Kutta method of order 8 (Dormand and Prince), with dp/|slip| as the
time increment (called slip time), which makes the equations smooth. Once the slip direction has
settled, impulses and velocities are linear in p, and the remaining solution has a closed form. In
the plane, the entire solution has a closed form. All collisions of a batch are integrated together.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import scipy

from chasles import backends
from chasles.backends.arrays import call
from chasles.errors import NotFiniteError
from chasles.expr import RULES, Arena, Program, Variable
from chasles.motion.geometry.closed_forms import applied, sqrt

STEP = 0.3
"""Step size as a fraction of the time in which slip can stop or change direction. With this step
size, relative errors of impulses and velocities are about 1e-12."""

STEPS = 20_000
"""Maximum number of integration steps; a few tens are typical."""

SETTLED = 1e-13
"""Relative magnitude below which velocities and their time derivatives count as zero."""

HALVINGS = 60
"""Maximum number of bisections, sufficient to converge to within rounding error."""

EPS = 4.0 * float(np.finfo(float).eps)
"""Convergence tolerance for a step size, relative to the full step; four times machine epsilon."""

Quantity = Literal["impulse", "velocity", "work"]
"""Quantity that determines the end of a phase of the impact: normal impulse (N s), normal velocity
(m/s), or work of the normal impulse (J)."""


@dataclass(frozen=True)
class Slip:
    """Batch of n collisions with friction.

    The state of the integration, called `path`, has shape (n, 7): the impulse lambda, the work of
    its normal component (J), and the velocity zeta. The velocity is integrated as well, because a
    difference of large values would not be accurate enough to detect the end of slip.

    Attributes
    ----------
    W : array, shape (n, 3, 3)
        Inverse inertias of the contact points (1/kg).
    zeta0 : array, shape (n, 3)
        Velocities before the impact (m/s).
    mu : array, shape (n,)
        Friction coefficients.
    """

    W: np.ndarray
    zeta0: np.ndarray
    mu: np.ndarray

    def __getitem__(self, some: np.ndarray) -> "Slip":
        return Slip(self.W[some], self.zeta0[some], self.mu[some])

    def start(self) -> np.ndarray:
        """Return the initial state `path`: zero impulse and the velocities before the impact."""
        return np.column_stack([np.zeros((len(self.mu), 4)), self.zeta0])

    def measured(self, path: np.ndarray, quantity: Quantity) -> np.ndarray:
        """Return a quantity (n,) in the states `path` (n, 7): impulse, velocity or work.

        The impulse and the velocity are normal components; the work is that of the normal impulse.
        """
        return path[:, {"impulse": 2, "work": 3, "velocity": 6}[quantity]]

    def rate(self, path: np.ndarray) -> np.ndarray:
        """Return the derivative of the states `path` (n, 7) with respect to slip time.

        This derivative is d path/dp times the slip speed, where p is the normal impulse.
        """
        slip, normal = path[:, 4:6], path[:, 6]
        rate = np.empty_like(path)
        rate[:, :2] = -self.mu[:, None] * slip
        rate[:, 2] = size = sqrt(slip[:, 0] * slip[:, 0] + slip[:, 1] * slip[:, 1])
        rate[:, 3] = normal * size
        rate[:, 4:] = applied(self.W, rate[:, :3])
        return rate

    def follow(self, path: np.ndarray, quantity: Quantity, goal: np.ndarray) -> np.ndarray:
        """Integrate from the states `path` (n, 7) until `quantity` has increased to `goal`."""
        path = path.copy()
        bent = np.flatnonzero(self._bent(path))
        crossing = np.zeros(len(path), dtype=bool)
        h = STEP / self._pace()
        for _ in range(STEPS):
            if not bent.size:
                break
            here = self[bent]
            after = _stepped(here, path[bent], h[bent])
            past = here.measured(after, quantity) >= goal[bent]
            crossing[bent[past]] = True
            path[bent[~past]] = after[~past]
            bent = bent[~past]
            bent = bent[self[bent]._bent(path[bent])]
        else:
            problem = "during the impact, slip does not stop, and its direction does not converge"
            remedy = "check that W is an inverse inertia (positive definite)"
            raise NotFiniteError("E-CONTACT-079", problem, remedy, part="impact")
        if (some := np.flatnonzero(crossing)).size:
            path[some] = self[some]._reach(path[some], h[some], quantity, goal[some])
        if (some := np.flatnonzero(~crossing)).size:
            path[some] = self[some]._straight(path[some], quantity, goal[some])
        return path

    def _pace(self) -> np.ndarray:
        """Return a positive bound (1/kg) on the change in slip velocity per unit normal impulse."""
        pull = np.linalg.norm(self.W[:, :2, 2], axis=1) + 1e-3 * self.W[:, 2, 2]
        pace: np.ndarray = self.mu * np.trace(self.W[:, :2, :2], axis1=1, axis2=2) + pull
        return pace

    def _direction(self, path: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the slip speed (n,), the slip direction s (n, 2), and a derivative (n, 2).

        The derivative is that of the slip velocity with respect to the normal impulse.
        """
        slip = path[:, 4:6]
        size = np.linalg.norm(slip, axis=1)
        s = slip / np.where(size > 0.0, size, 1.0)[:, None]
        change = self.W[:, :2, 2] - self.mu[:, None] * applied(self.W[:, :2, :2], s)
        return size, s, change

    def _bent(self, path: np.ndarray) -> np.ndarray:
        """Return a mask (n,) of the collisions in which slip changes direction before it stops.

        Negligible changes of direction are ignored.
        """
        size, s, change = self._direction(path)
        turn = np.abs(s[:, 0] * change[:, 1] - s[:, 1] * change[:, 0])
        growth = np.sum(s * change, axis=1)
        part, scale = size / np.linalg.norm(self.zeta0, axis=1), self._pace()
        stopping = (turn <= -1e-3 * growth) & (turn * part <= SETTLED * scale)
        result: np.ndarray = ~(stopping | (part <= SETTLED) | (turn <= SETTLED * scale))
        return result

    def _reach(
        self, path: np.ndarray, h: np.ndarray, quantity: Quantity, goal: np.ndarray
    ) -> np.ndarray:
        """Take a step of size up to h that ends where a quantity reaches the value `goal`.

        Newton's method finds the step in a few iterations. If an iterate would leave the interval
        around the root, the interval is bisected.
        """
        low, high, step = np.zeros_like(h), h, 0.5 * h
        for _ in range(HALVINGS):
            end = _stepped(self, path, step)
            missing = goal - self.measured(end, quantity)
            low, high = np.where(missing > 0.0, step, low), np.where(missing > 0.0, high, step)
            with np.errstate(divide="ignore", invalid="ignore"):
                after = step + missing / self.measured(self.rate(end), quantity)
            after = np.where((after >= low) & (after <= high), after, 0.5 * (low + high))
            moved, step = np.abs(after - step), after
            if np.all(moved <= EPS * h):
                break
        # EPS * h is added so that rounding errors do not end the step before the goal.
        return _stepped(self, path, np.minimum(step + EPS * h, high))

    def _straight(self, path: np.ndarray, quantity: Quantity, goal: np.ndarray) -> np.ndarray:
        """Return the state where a quantity reaches its goal if the slip direction is constant."""
        size, s, change = self._direction(path)
        growth = np.sum(s * change, axis=1)
        first = np.linalg.norm(self.zeta0, axis=1)
        still = size <= SETTLED * first
        stop = np.where(growth < 0.0, size / np.where(growth < 0.0, -growth, 1.0), np.inf)
        sliding = np.column_stack([-self.mu[:, None] * s, np.ones_like(size)])
        dp = np.minimum(np.where(still, 0.0, stop), self._needed(path, sliding, quantity, goal))
        path = self._along(path, sliding, dp)
        held = self._held()
        left = np.where(still | (dp == stop), self._needed(path, held, quantity, goal), 0.0)
        return self._along(path, held, left)

    def _held(self) -> np.ndarray:
        """Return d lambda/dp (n, 3) after slip has stopped.

        If the friction that keeps slip at zero, -Wtt^-1 Wtz, is within mu, the contact sticks.
        Otherwise the contact slips in the direction s with Wtz - mu Wtt s = k s, where k > 0 is the
        only root of |(mu Wtt + k)^-1 Wtz| = 1.
        """
        Wtt, pull = self.W[:, :2, :2], self.W[:, :2, 2]
        sizes, axes = np.linalg.eigh(Wtt)
        part = applied(np.swapaxes(axes, 1, 2), pull)
        moves = sizes > SETTLED * np.trace(self.W, axis1=1, axis2=2)[:, None]
        part = np.where(moves, part, 0.0)  # zero in directions in which the point cannot move
        still = part / np.where(moves, sizes, 1.0)
        sticks = np.linalg.norm(still, axis=1) <= self.mu
        low, high = np.zeros(len(pull)), np.linalg.norm(pull, axis=1)
        stretched = self.mu[:, None] * sizes
        for _ in range(HALVINGS):
            k = 0.5 * (low + high)
            with np.errstate(divide="ignore", invalid="ignore"):
                short = np.linalg.norm(part / (stretched + k[:, None]), axis=1) < 1.0
            low, high = np.where(short, low, k), np.where(short, k, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            s = applied(axes, part / (stretched + high[:, None]))
        friction = np.where(sticks[:, None], -applied(axes, still), -self.mu[:, None] * s)
        return np.column_stack([friction, np.ones(len(pull))])

    def _along(self, path: np.ndarray, direction: np.ndarray, dp: np.ndarray) -> np.ndarray:
        """Return the state after an additional normal impulse dp.

        `direction` is the derivative d lambda/dp, which is constant.
        """
        change = applied(self.W, direction)
        work = (path[:, 6] + 0.5 * change[:, 2] * dp) * dp
        step = dp[:, None]
        return path + np.column_stack([direction * step, work, change * step])

    def _needed(
        self, path: np.ndarray, direction: np.ndarray, quantity: Quantity, goal: np.ndarray
    ) -> np.ndarray:
        """Return the normal impulse still needed for `quantity` to reach `goal`, or infinity."""
        normal, gain = path[:, 6], applied(self.W, direction)[:, 2]
        none, one = np.zeros_like(gain), np.ones_like(gain)
        a, b = {"impulse": (one, none), "velocity": (gain, none), "work": (normal, gain)}[quantity]
        missing = goal - self.measured(path, quantity)
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.sqrt(a * a + 2.0 * b * missing)
            dp = np.where(b == 0.0, missing / a, (root - a) / b)
        dp = np.where(missing <= 0.0, 0.0, dp)
        return np.where(dp >= 0.0, dp, np.inf)


def _stepped(slip: Slip, path: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Take one step of the eighth-order Dormand-Prince method with the compiled kernel."""
    after: np.ndarray = call(_compiled(), "impact", (slip.W, slip.mu, path, h))
    return after


@cache
def _compiled() -> Any:
    """Return the compiled kernel for one integration step of a collision."""
    arena = Arena(RULES)
    given = [Variable("W", (3, 3)), Variable("mu", ()), Variable("path", (7,)), Variable("h", ())]
    W, mu, path, h = (
        np.array([arena.input(v.name, k) for k in range(v.size)], dtype=object).reshape(1, *v.shape)
        for v in given
    )
    after = _step(Slip(W, path[:, 4:], mu), path, h)
    result = (Variable("after", (7,)), after.ravel().tolist())
    return backends.compile(Program.from_outputs("slip_step", given, [result]))


def _step(slip: Slip, path: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return the state after one Dormand-Prince step; arrays may contain symbols."""
    step, slopes = h[:, None], list[np.ndarray]()
    *stages, result = _stages()
    for row in stages:
        slopes.append(slip.rate(path + step * sum([a * slopes[k] for k, a in row])))
    return path + step * sum([b * slopes[k] for k, b in result])


@cache
def _stages() -> tuple[tuple[tuple[int, float], ...], ...]:
    """Return the nonzero Runge-Kutta coefficients (index, value) of each stage and of the step."""
    method = scipy.integrate.DOP853
    rows = (*method.A, method.B)
    return tuple(tuple((k, float(a)) for k, a in enumerate(row) if a) for row in rows)
