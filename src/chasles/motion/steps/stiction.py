"""Dry friction of joints: steps that end at exact rest where friction can hold a joint.

Friction is -f sign(qd) while a joint moves, and anything within f while it rests. A step is taken
in a mode, in which nothing jumps: joints that move keep the sign of their friction, joints at rest
are held by a force of constraint. At its end impulses P correct the friction of the mode:

    v = v1 + M^-1 P,   low <= P <= high
    v >= 0 where P = low,   v <= 0 where P = high,   v = 0 where P is between them

A joint whose velocity would change its sign after a part theta of the step has friction within f
for the rest of it, and so has a joint that is held. low and high are the differences to the
friction of the mode that this allows. A joint with P between them is at rest, exactly. The next
mode follows from the velocities alone, so nothing has to be remembered between steps. Impulses
never add energy, since each opposes the velocity that it stops (Moreau 1988; Stewart 2000).

Times of stops are right to second order. Everything but the complementarity problem is written in
operations that arrays of floats and symbols share.
"""

from typing import Any, NamedTuple

import numpy as np

from chasles.mathematics.linear import Vector, factor_ltdl, multiply_symmetric, solve_ltdl
from chasles.model import Model
from chasles.motion.geometry.closed_forms import absolute, less, maximum, select
from chasles.motion.steps.system import Advance, Advanced, System

PASSES = 5
"""Passes of pivoting at most, when traced into a program, which cannot test for convergence. Of
1259 stops of a chain of six bodies, in steps of 10 ms, one needs a fifth.
"""


def dry_friction(model: Model) -> np.ndarray:
    """The largest dry friction along each velocity, (nv,), in N m or N.

    That of a joint that mimics another acts on the other through its ratio.
    """
    found = np.zeros(model.nv)
    for i, body in enumerate(model.bodies):
        for owner, first, ratio in model.shares(i):
            start = model.velocity_slices[owner].start + first
            friction = np.array([float(f) for f in body.joint.friction])
            found[start : start + len(friction)] += abs(ratio) * friction
    return found


class Mode(NamedTuple):
    """sign (..., nv): of the velocities. held (..., nv): 1 of joints that rest, else 0."""

    sign: np.ndarray
    held: np.ndarray

    @staticmethod
    def of(v: np.ndarray, friction: np.ndarray) -> "Mode":
        """The mode of a step that begins with velocities v."""
        sign = less(0.0, v) - less(v, 0.0)
        return Mode(sign, less(0.0, friction) * (1.0 - sign * sign))


class Ending(NamedTuple):
    """The end of a step: velocities v1, and impulses from low to high that joints may have.

    free: 1 of joints that rest or came to rest, else 0. rest: the time for which they did.
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
        """The end of a step of h seconds from v0; holding: the forces on joints that are held."""
        crossed = less(0.0, friction) * less(v0 * v1, 0.0)
        late = -crossed * v1 / select(crossed, v0 - v1, 1.0)  # 1 - theta
        rest = h * (mode.held + late)
        acting = select(mode.held, holding, -friction * mode.sign)
        low, high = (-friction - acting) * rest, (friction - acting) * rest
        return Ending(v1, low, high, mode.held + crossed, rest)

    def step(self, h: Any, v0: np.ndarray, d: np.ndarray, v: np.ndarray, P: np.ndarray) -> Any:
        """d with what impulses P change: v0 falls to zero, and from there becomes v."""
        own = 0.5 * (h * v0 + self.rest * (v - v0))
        late: Any = 0.0
        for time, impulse in zip(np.moveaxis(self.rest, -1, 0), np.moveaxis(P, -1, 0), strict=True):
            late = maximum(late, select(less(0.0, absolute(impulse)), time, 0.0))
        late = np.asarray(late)[..., None]
        return select(self.free, own, d + 0.5 * late * (v - self.v1))


class Sticking:
    """The step of another method, with dry friction of joints; friction (nv,): in N m or N."""

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
        """A step from y whose end the impulses changed to `last`."""
        return Advanced(last)

    def speed(self, system: System, h: Any, y: np.ndarray) -> np.ndarray:
        """Velocities after h seconds."""
        return system.velocity(y)

    def holding(self, system: System, y: np.ndarray) -> np.ndarray:
        """Forces (..., nv) on the joints that are held, at the beginning."""
        raise NotImplementedError

    def ended(
        self, system: System, h: Any, y: np.ndarray, end: Ending
    ) -> tuple[np.ndarray, np.ndarray]:
        """Velocities after impulses, and these."""
        raise NotImplementedError


# On symbols --------------------------------------------------------------------------------------


class Pivoted(Sticking):
    """The same for one state, all of it straight-line code: `solve` and the passes of pivoting."""

    _start: tuple[np.ndarray, np.ndarray] | None = None
    """The mass matrix and the forces on held joints, where the step begins."""

    def solve(self, M: np.ndarray, force: np.ndarray) -> np.ndarray:
        """qdd of M qdd = force + friction in the mode."""
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
    """x of M x = b but x = b where fixed is 1; M without the columns of these."""
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
    """v and P of an end, by block principal pivoting (Judice and Pires 1994): all joints that are
    wrong change together; joints: how many there may be, which decides the number of passes.
    """
    v1, low, high, free, _ = end
    side = np.zeros(len(v1), dtype=object)  # -1 at the low bound, 1 at the high one, 0 at rest
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
