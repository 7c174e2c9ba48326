"""Dry joint friction in a time step, which brings joints exactly to rest.

Friction is -f sign(qd) while a joint moves, and between -f and f while it rests. A step is taken in
a mode without discontinuities: moving joints keep the sign of their friction, and joints at rest
are held by a constraint force. At the end of the step, impulses P correct the friction of the mode:

    v = v1 + M^-1 P,   low <= P <= high
    v >= 0 where P = low,   v <= 0 where P = high,   v = 0 where low < P < high

If the velocity of a joint would change its sign after a fraction theta of the step, friction is
between -f and f for the remainder of the step, as for a held joint. `low` and `high` bound the
resulting difference from the friction of the mode. A joint with P strictly between `low` and `high`
is exactly at rest. The velocities alone determine the next mode, so no data are kept between steps.
Impulses never add energy, because each impulse opposes the velocity that it stops (Moreau 1988;
Stewart 2000).

Stop times are accurate to second order. Everything except the complementarity problem uses
operations that arrays of floats and arrays of symbols both support.
"""

from typing import Any, NamedTuple

import numpy as np

from chasles.errors import ModelError
from chasles.mathematics.linear import Vector, factor_ltdl, multiply_symmetric, solve_ltdl
from chasles.model import Model
from chasles.motion.geometry.closed_forms import absolute, less, maximum, select
from chasles.motion.steps.system import Advance, Advanced, System

PASSES = 5
"""Maximum number of pivoting passes in a compiled step, which cannot test for convergence. In a
test with a chain of six bodies and steps of 10 ms, joints come to rest 1259 times, and only one of
these cases needs a fifth pass.
"""


def check_tendons(model: Model) -> None:
    """Raise an error if tendons have dry friction, which only time stepping supports."""
    rubbed = [data.name for data in model.source.rotors if data.friction]
    if rubbed:
        problem = f"this integrator does not support dry friction in tendons ({rubbed[0]!r})"
        remedy = "use integrator='time-stepping', or omit `dissipation`"
        raise ModelError("E-MOTION-147", problem, remedy, part="simulate")


class Mode(NamedTuple):
    """Dry-friction mode of the joints in a step: direction of motion, or at rest.

    Attributes
    ----------
    sign : array, shape (..., nv)
        Sign of the velocities.
    held : array, shape (..., nv)
        1 for joints at rest, else 0.
    """

    sign: np.ndarray
    held: np.ndarray

    @staticmethod
    def of(v: np.ndarray, friction: np.ndarray) -> "Mode":
        """Return the friction mode of a step that begins with velocities v."""
        sign = less(0.0, v) - less(v, 0.0)
        return Mode(sign, less(0.0, friction) * (1.0 - sign * sign))


class Ending(NamedTuple):
    """End of a step in a friction mode, before the friction impulses are applied.

    Attributes
    ----------
    v1 : np.ndarray
        Velocities at the end of the step.
    low, high : np.ndarray
        Bounds on the friction impulses of the joints.
    free : np.ndarray
        1 for joints that rest or may come to rest in the step, else 0.
    rest : np.ndarray
        Time (s) for which these joints rest in the step.
    """

    v1: np.ndarray
    low: np.ndarray
    high: np.ndarray
    free: np.ndarray
    rest: np.ndarray

    @staticmethod
    def of(
        h: Any, v0: np.ndarray, v1: np.ndarray, mode: Mode, friction: np.ndarray, holding: Any
    ) -> "Ending":
        """Create an `Ending` for a step of h seconds that changes the velocities from v0 to v1.

        `holding` contains the friction forces that keep joints at rest.
        """
        crossed = less(0.0, friction) * less(v0 * v1, 0.0)
        # Fraction of the step that remains when the velocity reaches zero.
        late = -crossed * v1 / select(crossed, v0 - v1, 1.0)
        rest = h * (mode.held + late)
        acting = select(mode.held, holding, -friction * mode.sign)
        low, high = (-friction - acting) * rest, (friction - acting) * rest
        return Ending(v1, low, high, mode.held + crossed, rest)

    def step(self, h: Any, v0: np.ndarray, d: np.ndarray, v: np.ndarray, P: np.ndarray) -> Any:
        """Return the displacement in the step: d, corrected for the friction impulses P.

        v is the velocity at the end of the step. If a joint comes to rest, its velocity is assumed
        to change linearly from v0 to zero, and then from zero to v.
        """
        own = 0.5 * (h * v0 + self.rest * (v - v0))
        late: Any = 0.0
        for time, impulse in zip(np.moveaxis(self.rest, -1, 0), np.moveaxis(P, -1, 0), strict=True):
            late = maximum(late, select(less(0.0, absolute(impulse)), time, 0.0))
        late = np.asarray(late)[..., None]
        return select(self.free, own, d + 0.5 * late * (v - self.v1))


class Sticking:
    """Integrator step extended with dry joint friction.

    `friction` (nv,) contains the magnitudes of dry friction in N m or N.
    """

    mode: Mode

    def __init__(self, advance: Advance, friction: np.ndarray) -> None:
        self._advance, self.friction = advance, friction

    def __call__(self, system: System, h: Any, y: np.ndarray) -> Advanced:
        n, v0 = system.nv, system.velocity(y)
        self.mode = Mode.of(v0, self.friction)
        holding = self.holding(system, y)
        found = self._advance(system, h, y)
        v1 = self.speed(system, h, found.y)
        end = Ending.of(h, v0, v1, self.mode, self.friction, holding)
        v, P = self.ended(system, h, found.y, end)
        d = end.step(h, v0, found.y[..., :n], v, P)
        x = system.ways(d - found.y[..., :n])
        between = found.y[..., 2 * n : found.y.shape[-1] - x.shape[-1]]
        path = found.y[..., found.y.shape[-1] - x.shape[-1] :] + x
        last = np.concatenate([d, v, between, path], -1)
        return self.told(system, h, y, found, last, end)

    def told(
        self, system: System, h: Any, y: np.ndarray, found: Advanced, last: np.ndarray, end: Ending
    ) -> Advanced:
        """Return the result of a step that starts at y, including the friction impulses.

        `found` is the result of the integrator without friction impulses. `last` is y at the end of
        the step with friction impulses.
        """
        return Advanced(last)

    def speed(self, system: System, h: Any, y: np.ndarray) -> np.ndarray:
        """Extract the velocities from the state y at the end of a step of h seconds."""
        return system.velocity(y)

    def holding(self, system: System, y: np.ndarray) -> np.ndarray:
        """Return the constraint forces (..., nv) that hold joints at the start of the step."""
        raise NotImplementedError

    def ended(
        self, system: System, h: Any, y: np.ndarray, end: Ending
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the velocities at the end of the step, and the friction impulses there.

        The velocities include the effect of the friction impulses.
        """
        raise NotImplementedError


# Symbolic evaluation -----------------------------------------------------------------------------


class Pivoted(Sticking):
    """Integrator step with dry friction for a single state, as expressions without branches."""

    _start: tuple[np.ndarray, np.ndarray] | None = None
    """Mass matrix, and the forces that hold sticking joints, at the start of the step."""

    def solve(self, M: np.ndarray, force: np.ndarray) -> np.ndarray:
        """Solve M qdd = force + friction for qdd in the current friction mode."""
        held, force = self.mode.held, force - self.friction * self.mode.sign
        qdd = solved(M, select(held, 0.0, force), held)
        if self._start is None:
            self._start = M, held * (_times(M, qdd) - force)
        return qdd

    def holding(self, system: System, y: np.ndarray) -> np.ndarray:
        self._start = None
        system.first(y)
        assert self._start is not None
        return self._start[1]

    def ended(
        self, system: System, h: Any, y: np.ndarray, end: Ending
    ) -> tuple[np.ndarray, np.ndarray]:
        assert self._start is not None
        return pivoted(self._start[0], end, int(np.count_nonzero(self.friction)))


def solved(M: np.ndarray, b: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """Solve M x = b for the entries of x that are not fixed.

    Where `fixed` is 1, x = b, and the row and column of M are omitted.
    """
    n = len(b)
    A = [
        [M[i, j] * ((1.0 - fixed[i]) * (1.0 - fixed[j])) for j in range(i)]
        + [select(fixed[i], 1.0, M[i, i])]
        for i in range(n)
    ]
    square = [row + [0.0] * (n - len(row)) for row in A]
    found = solve_ltdl(*factor_ltdl(square), Vector(tuple(b))).entries
    return np.array(found, dtype=object)


def pivoted(M: np.ndarray, end: Ending, joints: int) -> tuple[np.ndarray, np.ndarray]:
    """Return velocities v and friction impulses P after a step, by block principal pivoting.

    In each pass, all joints that violate a condition change their state (at rest, or at a bound),
    as in Judice and Pires (1994). `joints` is the number of joints with friction, which determines
    the number of passes.
    """
    v1, low, high, free, _ = end
    side = np.zeros(len(v1), dtype=object)  # -1: at `low`, 1: at `high`, 0: at rest
    for last in range(min(2 * joints, PASSES) - 1, -1, -1):
        rests = free * (1.0 - side * side)
        given = select(rests, -v1, 0.0)
        bound = free * select(less(side, 0.0), low, select(less(0.0, side), high, 0.0))
        turned = _times(M, given)
        change = solved(M, select(rests, given, bound - turned), rests)
        v = select(rests, 0.0, v1 + change)
        P = select(rests, _times(M, change), bound)
        if last:
            beyond = less(high, P) - less(P, low)
            back = select(less(side * v, 0.0), side, 0.0)
            side = free * select(rests, beyond, back)
    return v, P


def _times(M: np.ndarray, x: np.ndarray) -> np.ndarray:
    product = multiply_symmetric(M.tolist(), Vector(tuple(x)))
    return np.array(product.entries, dtype=object)
