"""The loop in time: steps, what happens within them, and what is kept."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np

from chasles.errors import InputError, StateError
from chasles.mechanisms import LoopError
from chasles.motion.contract import Array
from chasles.motion.drivers.events import Event, occurred
from chasles.motion.records import Memory, Occurrence
from chasles.motion.steps.local import Taken

REPEATED = 1000
"""So many events that each begin the motion anew may stop one step; more have no end."""

Begin = Callable[[float, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""begin(t, q, qd): the state that a motion can begin with."""


class Changes(Protocol):
    """What changes the motion besides events: contacts that come and go."""

    due: bool

    def changed(
        self, t: float, q: np.ndarray, qd: np.ndarray
    ) -> tuple[list[Occurrence], np.ndarray, np.ndarray]:
        """What happened, and the state from which the motion goes on."""


class Untouched:
    """No contacts that come and go: nothing changes."""

    due = False

    def changed(
        self, t: float, q: np.ndarray, qd: np.ndarray
    ) -> tuple[list[Occurrence], np.ndarray, np.ndarray]:
        """Nothing happened."""
        return [], q, qd


class Keep:
    """The states that are kept: one of so many steps, or those at given times.

    beside: what is kept of each state besides, a function of (t, q, qd), in `others`.
    """

    def __init__(
        self,
        start: float,
        whole: float,
        every: int,
        times: Array,
        beside: Callable[..., Any] = lambda t, q, qd: None,
    ) -> None:
        self._every, self._count, self._beside = every, 0, beside
        self._kept: list[tuple[float, np.ndarray, np.ndarray]] = []
        self.others: list[Any] = []
        self._times = None if times is None else _checked_times(times, start, start + whole)

    def now(self, t: float, q: np.ndarray, qd: np.ndarray) -> None:
        """The state at which the motion begins or ends, or an event is: kept once."""
        if self._times is None:
            if not self._kept or self._kept[-1][1] is not q or self._kept[-1][2] is not qd:
                self._keep(t, q, qd)
        elif self._times[:1] == [t]:
            self._keep(self._times.pop(0), q, qd)

    def step(self, t: float, goal: float, reached: float, step: Taken) -> None:
        """What to keep of a step from t to goal, of which only the part until `reached` is gone."""
        self._count += 1
        if self._times is None:
            if self._count % self._every == 0 and reached == goal:
                self._keep(goal, step.q, step.qd)
            return
        while self._times and self._times[0] <= reached:
            time = self._times.pop(0)
            state = (step.q, step.qd) if time == goal else step.at((time - t) / (goal - t))
            self._keep(time, *state)

    def _keep(self, t: float, q: np.ndarray, qd: np.ndarray) -> None:
        self._kept.append((t, q, qd))
        self.others.append(self._beside(t, q, qd))

    def states(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times (n,), positions (..., n, nq), velocities (..., n, nv); q and qd say the shapes."""
        axis = q.ndim - 1
        t = np.array([t for t, _, _ in self._kept])
        if not self._kept:
            return t, np.expand_dims(q, axis)[..., :0, :], np.expand_dims(qd, axis)[..., :0, :]
        _, positions, velocities = zip(*self._kept, strict=True)
        return t, np.stack(positions, axis), np.stack(velocities, axis)

    def memory(self) -> dict[str, np.ndarray]:
        """How many steps there were, and how many times are left."""
        return {"steps": np.array(self._count), "left": np.array(len(self._times or ()))}

    def recall(self, memory: Memory) -> None:
        """Go on counting, with the times that are left."""
        self._count = int(memory["steps"])
        if self._times is not None:
            del self._times[: len(self._times) - int(memory["left"])]


class Repeats:
    """How often the motion began anew, once after the other, before a step came to its end."""

    def __init__(self) -> None:
        self._count = 0

    def step(self, event: str | None, goal: float) -> None:
        """A step to goal, or to an event before it: too many of these have no end."""
        self._count = self._count + 1 if event else 0
        if event and self._count > REPEATED:
            problem = (
                f"event {event!r} came {REPEATED} times before t = {goal:.6g} s and has no end"
            )
            remedy = "let it come to rest, or stop there (terminal=True)"
            raise StateError("E-MOTION-061", problem, remedy, part="simulate")

    def memory(self) -> dict[str, np.ndarray]:
        """How many."""
        return {"repeated": np.array(self._count)}

    def recall(self, memory: Memory) -> None:
        """Go on counting."""
        self._count = int(memory["repeated"])


def _checked_times(times: Array, start: float, end: float) -> list[float]:
    given = np.asarray(times, dtype=float)
    if given.ndim != 1 or not given.size or not np.all(np.diff(given) > 0.0):
        problem = "times must be increasing numbers (n,), one or more"
        raise InputError("E-MOTION-062", problem, part="simulate")
    if not (start <= given[0] and given[-1] <= end):
        problem = (
            f"times must be between {start:.6g} and {end:.6g} s, not from {given[0]:.6g} to "
            f"{given[-1]:.6g} s"
        )
        raise InputError("E-MOTION-063", problem, part="simulate")
    return [float(time) for time in given]


class Ran(NamedTuple):
    """What happened, and the time and state at which steps stopped; over: there are no more."""

    happened: list[Occurrence]
    t: float
    q: np.ndarray
    qd: np.ndarray
    over: bool


def run(
    pace: Callable[[float, np.ndarray, np.ndarray], tuple[float, Taken]],
    begin: Begin,
    changes: Changes,
    events: Sequence[Event],
    keep: Keep,
    repeats: Repeats,
    span: tuple[float, float],
    q: np.ndarray,
    qd: np.ndarray,
    progress: bool,
    steps: int | None = None,
) -> Ran:
    """Steps over a span of time, or until an event that ends them, or `steps` of them."""
    (t, end), happened, taken, stopped = span, [], 0, False
    with _bar(progress, span) as show:
        while t < end and taken != steps and not stopped:
            taken += 1
            with _said_when(t):
                goal, step = pace(t, q, qd)
                found, event = occurred(events, t, goal, q, qd, step)
            happened += found
            before, (t, q, qd) = t, found[-1][1:] if event else (goal, step.q, step.qd)
            keep.step(before, goal, t, step)
            show(t)
            stopped = event is not None and event.stops
            due = changes.due and event is None
            repeats.step(event.name if event and not stopped else "contact" if due else None, goal)
            if event is None and not due:
                continue
            keep.now(t, q, qd)
            if event is None or event.then is not None:
                q, qd = begin(t, *(event.after(t, q, qd) if event else (q, qd)))
                found, q, qd = changes.changed(t, q, qd)
                happened += found
                keep.now(t, q, qd)
    over = stopped or t >= end
    if over:
        keep.now(t, q, qd)
    return Ran(happened, t, q, qd, over)


@contextmanager
def _said_when(t: float) -> Iterator[None]:
    """What goes wrong in a step says when."""
    try:
        yield
    except LoopError as error:
        raise error.within(f"simulate: after t = {t:.6g} s") from None


@contextmanager
def _bar(progress: bool, span: tuple[float, float]) -> Iterator[Callable[[float], None]]:
    """A function that shows how far the time is, where a bar is asked for."""
    if not progress:
        yield lambda t: None
        return
    from rich.progress import Progress

    with Progress() as bar:
        task = bar.add_task("simulate", total=span[1] - span[0])
        yield lambda t: bar.update(task, completed=t - span[0])
