"""Events, and what a motion leaves: states at times, contacts, all that its next step needs."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import InputError
from chasles.motion.contract import read_only


@dataclass(frozen=True)
class Event:
    """An event: the zero crossing of function(t, q, qd).

    direction: only upward (1), only downward (-1), or both (0). then: what the event does, as an
    impact does: a function (t, q, qd) -> (q, qd) of the state from which the motion goes on.
    terminal: the motion ends there; by default if it does nothing. The function cannot write into
    its q and qd; `then` has copies, which it may change and return.

    It is detected between the ends of each step, so dt must be short enough that the function does
    not change its sign twice within one. From a value of zero it does not change its sign.
    """

    function: Callable[[float, np.ndarray, np.ndarray], float]
    direction: int = 0
    then: Callable[[float, np.ndarray, np.ndarray], tuple[Any, Any]] | None = None
    terminal: bool | None = None
    name: str = "event"

    def __post_init__(self) -> None:
        if self.direction not in (-1, 0, 1):
            problem = f"direction must be -1, 0 or 1, not {self.direction!r}"
            raise InputError("E-MOTION-040", problem, part=f"event {self.name!r}")

    @property
    def stops(self) -> bool:
        """Return True if it ends the motion."""
        return self.then is None if self.terminal is None else self.terminal

    @property
    def interrupts(self) -> bool:
        """Return True if the step ends there."""
        return self.stops or self.then is not None

    def value(self, t: float, q: np.ndarray, qd: np.ndarray) -> float:
        """The function's value, checked."""
        found = np.asarray(self.function(t, *read_only(q, qd)), dtype=float)
        if found.size != 1 or not math.isfinite(found.item()):
            problem = f"event {self.name!r} returned {found!r:.60} at t = {t:.6g} s"
            raise InputError("E-MOTION-041", problem, "return one finite number", part="simulate")
        return found.item()

    def after(self, t: float, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state that it leaves, checked."""
        assert self.then is not None
        try:
            state = [np.array(part, dtype=float) for part in self.then(t, q.copy(), qd.copy())]
        except (TypeError, ValueError, OverflowError):
            state = []
        fits = [part.shape for part in state] == [q.shape, qd.shape]
        if not fits or not all(np.isfinite(part).all() for part in state):
            problem = f"event {self.name!r} did not return a state (q, qd) at t = {t:.6g} s"
            remedy = f"return finite arrays of shapes {q.shape} and {qd.shape}"
            raise InputError("E-MOTION-042", problem, remedy, part="simulate")
        return state[0], state[1]


class Occurrence(NamedTuple):
    """An event that happened: its name, its time, and the state before it did anything."""

    name: str
    t: float
    q: np.ndarray
    qd: np.ndarray


class Touching(NamedTuple):
    """Record of the contact points of a trajectory, at its times.

    `forces` (..., n, points, 3) act on the body, along the world axes, in N. `gaps` (..., n,
    points) are in m. `states` (..., n, states) are those of soft surfaces and of friction, point
    after point.
    """

    forces: np.ndarray
    gaps: np.ndarray
    states: np.ndarray


class End(NamedTuple):
    """End of a partial motion, with everything that its next step depends on:
    `simulate(resume=end)`.

    t: in s. q, qd: the state; those of soft contacts stand behind q. over: the duration is over, or
    an event ended the motion. memory: what else the motion remembers between steps, as arrays by
    name (numbers of steps, the length of the next, independent coordinates of loops).
    """

    t: float
    q: np.ndarray
    qd: np.ndarray
    over: bool
    memory: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Trajectory:
    """States at times t (n,): q (..., n, nq) and qd (..., n, nv).

    rechosen: the times at which some member of the batch was given other independent coordinates,
    where loops are closed. events: those that happened, in order. touching: at points of
    contact, where `contacts` were given. end: where the motion stopped, to go on from. compiled:
    all steps were taken in machine code; why: what prevented that. unstable (...): with soft
    contacts, the step from which on velocities at contacts reverse from step to step, so that the
    motion is not that of the ground; -1 where there is none. iterations, unsolved (...): of
    integrator "time-stepping", the mean number of iterations of a step, and the number of steps
    that did not converge. sensors: {name: (..., n, size)}, where `sensors` were asked for.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    rechosen: tuple[float, ...] = ()
    events: tuple[Occurrence, ...] = ()
    touching: Touching | None = None
    end: End | None = None
    compiled: bool = False
    why: str = ""
    unstable: np.ndarray | None = None
    sensors: Mapping[str, np.ndarray] = field(default_factory=dict)
    iterations: np.ndarray | None = None
    unsolved: np.ndarray | None = None
