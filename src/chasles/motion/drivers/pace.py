"""How long the steps are: all equal, or as the error of each allows."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chasles.errors import NotFiniteError
from chasles.functions.numeric import checked_step
from chasles.motion.options import Stepping
from chasles.motion.records import Memory
from chasles.motion.steps.integrators import Integrator
from chasles.motion.steps.local import Taken

Step = Callable[[float, float, np.ndarray, np.ndarray], Taken]
"""step(t, h, q, qd): a step of h seconds from time t."""

DT = 1e-3
"""The length of steps where none is given (s), and of the first where the error decides."""


@dataclass
class Even:
    """Steps between equally spaced times; one that begins between them ends at the next."""

    step: Step
    start: float
    whole: float
    steps: int
    done: int = 0

    def __call__(
        self, t: float, q: np.ndarray, qd: np.ndarray, most: float = math.inf
    ) -> tuple[float, Taken]:
        """The time of the next state, at most so many seconds away, and the step there."""
        while self._next <= t:
            self.done += 1
        goal = min(self._next, t + most)
        return goal, self.step(t, goal - t, q, qd)

    def memory(self) -> dict[str, np.ndarray]:
        """How many of the equally spaced times are behind."""
        return {"done": np.array(self.done)}

    def recall(self, memory: Memory) -> None:
        """Go on at the next of them."""
        self.done = int(memory["done"])

    @property
    def _next(self) -> float:
        goal = self.start + self.whole * (self.done + 1) / self.steps
        last = self.done + 1 == self.steps  # which rounding must not leave before the end
        return max(goal, self.start + self.whole) if last else goal


@dataclass
class Controlled:
    """Steps whose error, the largest of all entries of (d, qd) beside atol + rtol |(d, qd)|, is 1.

    d is the step from the last position along `integrate`, so that rtol is of how far it went. The
    next length follows from the error's power (Hairer, Norsett and Wanner 1993, section II.4).
    """

    step: Step
    end: float
    longest: float
    rtol: float
    atol: float
    power: int
    h: float

    def __call__(
        self, t: float, q: np.ndarray, qd: np.ndarray, most: float = math.inf
    ) -> tuple[float, Taken]:
        """The time of the next state, at most so many seconds away, and the step there.

        It is tried again while its error is large.
        """
        largest = 5.0
        while True:
            h = min(self.h, self.longest, most)
            goal = self.end if t + 1.01 * h >= self.end else t + h
            if goal - t <= 1e-14 * max(1.0, abs(t)):
                problem = f"no step is short enough at t = {t:.6g} s"
                remedy = "make rtol and atol larger, take 'sdirk2', or look at tau"
                raise NotFiniteError("E-MOTION-056", problem, remedy, part="simulate")
            taken = self.step(t, goal - t, q, qd)
            assert taken.error is not None
            allowed = self.atol + self.rtol * np.maximum(*np.abs(taken.ends))
            error = float(np.max(np.abs(taken.error) / allowed, initial=0.0))
            factor = 0.9 * error ** (-1.0 / self.power) if error else largest
            self.h = (goal - t) * min(largest, max(0.2, factor))
            if error <= 1.0:
                return goal, taken
            largest = 1.0

    def memory(self) -> dict[str, np.ndarray]:
        """The length of the next step."""
        return {"h": np.array(self.h)}

    def recall(self, memory: Memory) -> None:
        """Go on with it."""
        self.h = float(memory["h"])


Pace = Even | Controlled


def paced(step: Step, integrator: Integrator, start: float, whole: float, given: Stepping) -> Pace:
    """The steps of an integrator from `start` for `whole` seconds, none longer than dt."""
    longest = None if given.dt is None else checked_step(given.dt, "simulate: dt")
    if not integrator.adaptive:
        return Even(step, start, whole, step_count(whole, longest or DT))
    rtol, atol = (checked_step(getattr(given, n), f"simulate: {n}") for n in ("rtol", "atol"))
    end, first = start + whole, longest or DT
    return Controlled(step, end, longest or whole, rtol, atol, integrator.order, first)


def step_count(whole: float, longest: float) -> int:
    """How many equal steps, none longer than that, make so many seconds."""
    return max(math.ceil(whole / longest - 1e-9), 1)
