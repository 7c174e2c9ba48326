"""Events: where a function of the state changes its sign, found within the step."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chasles.errors import ArgumentError, InputError
from chasles.motion.records import Occurrence
from chasles.motion.steps.local import Taken

HALVINGS = 52
"""Of the step: to rounding, whatever its length."""


@dataclass(frozen=True)
class Event:
    """Where function(t, q, qd), a number, goes through zero.

    direction: only upward (1), only downward (-1), or both (0). then: what the event does, as an
    impact does: a function (t, q, qd) -> (q, qd) of the state from which the motion goes on.
    terminal: the motion ends there; by default if it does nothing.

    It is looked for between the ends of each step, so dt must be short enough that the function
    does not change its sign twice within one. From a value of zero it does not change its sign.
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
        """Whether it ends the motion."""
        return self.then is None if self.terminal is None else self.terminal

    @property
    def interrupts(self) -> bool:
        """Whether the step ends there."""
        return self.stops or self.then is not None

    def value(self, t: float, q: np.ndarray, qd: np.ndarray) -> float:
        """The function's, checked."""
        found = np.asarray(self.function(t, q, qd), dtype=float)
        if found.size != 1 or not math.isfinite(found.item()):
            problem = f"event {self.name!r} gave {found!r:.60} at t = {t:.6g} s"
            raise InputError("E-MOTION-041", problem, "return one finite number", part="simulate")
        return found.item()

    def after(self, t: float, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state that it leaves, checked."""
        assert self.then is not None
        try:
            first, second = (np.array(part, dtype=float) for part in self.then(t, q, qd))
        except (TypeError, ValueError):
            first = second = np.empty(())
        if (
            first.shape != q.shape
            or second.shape != qd.shape
            or not (np.isfinite(first).all() and np.isfinite(second).all())
        ):
            problem = (
                f"what event {self.name!r} does at t = {t:.6g} s must give (q, qd), finite numbers "
                f"of shapes {q.shape} and {qd.shape}"
            )
            raise InputError("E-MOTION-042", problem, part="simulate")
        return first, second


def checked_events(events: Event | Sequence[Event], q: np.ndarray) -> tuple[Event, ...]:
    """The events of a motion from q, which is one state."""
    given = (events,) if isinstance(events, Event) else tuple(events)
    for event in given:
        if not isinstance(event, Event):
            problem = f"events must be chasles.Event(function), not {event!r:.60}"
            raise ArgumentError("E-MOTION-043", problem, part="simulate")
    if given and q.ndim > 1:
        problem = (
            f"events are of one state, not of a batch {q.shape[:-1]}, whose members would meet "
            "them at different times"
        )
        raise InputError("E-MOTION-044", problem, "simulate them one by one", part="simulate")
    return given


def occurred(
    events: Sequence[Event], t: float, goal: float, q: np.ndarray, qd: np.ndarray, step: Taken
) -> tuple[list[Occurrence], Event | None]:
    """What happens in a step from t to goal, in order, and the event that interrupts it, if any.

    Whatever comes after that one does not happen: the step is gone back to it.
    """
    found = []
    for event in events:
        before, after = event.value(t, q, qd), event.value(goal, step.q, step.qd)
        if (before > 0.0 >= after and event.direction < 1) or (
            before < 0.0 <= after and event.direction > -1
        ):
            part = _located(event, t, goal - t, step, before)
            found.append((part, event))
    found.sort(key=lambda pair: pair[0])
    happened = []
    for part, event in found:
        state = step.at(part) if part else (q, qd)
        happened.append(Occurrence(event.name, t + part * (goal - t), *state))
        if event.interrupts:
            return happened, event
    return happened, None


def _located(event: Event, t: float, h: float, step: Taken, before: float) -> float:
    """The last part of the step at which the function still has its sign, by halving.

    On that side a motion that turns back there, as a ball does, begins with the right sign.
    """
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if event.value(t + middle * h, *step.at(middle)) * before > 0.0:
            low = middle
        else:
            high = middle
    return low
