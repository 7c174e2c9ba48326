"""The loop in time: steps, what happens within them, and what is kept."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from chasles.loops import LoopError
from chasles.robot import Array
from chasles.rollouts import Occurrence
from chasles.simulate.events import Event, occurred
from chasles.simulate.local import Taken

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
    """No contacts: nothing changes."""

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

    def states(self) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
        """Times, positions, velocities."""
        t, q, qd = zip(*self._kept, strict=True)
        return np.array(t), list(q), list(qd)


def _checked_times(times: Array, start: float, end: float) -> list[float]:
    given = np.asarray(times, dtype=float)
    if given.ndim != 1 or not given.size or not np.all(np.diff(given) > 0.0):
        raise ValueError("simulate: times must be increasing numbers (n,), one or more")
    if not (start <= given[0] and given[-1] <= end):
        raise ValueError(
            f"simulate: times must be between {start:.6g} and {end:.6g} s, not from "
            f"{given[0]:.6g} to {given[-1]:.6g} s"
        )
    return [float(time) for time in given]


def run(
    pace: Callable[[float, np.ndarray, np.ndarray], tuple[float, Taken]],
    begin: Begin,
    changes: Changes,
    events: Sequence[Event],
    keep: Keep,
    span: tuple[float, float],
    q: np.ndarray,
    qd: np.ndarray,
    progress: bool,
) -> list[Occurrence]:
    """Steps over a span of time, or until an event that ends them; gives what happened."""
    t, end = span
    happened, q, qd = changes.changed(t, q, qd)
    repeated = 0
    keep.now(t, q, qd)
    with _bar(progress, span) as show:
        while t < end:
            with _said_when(t):
                goal, step = pace(t, q, qd)
                found, event = occurred(events, t, goal, q, qd, step)
            happened += found
            before, (t, q, qd) = t, found[-1][1:] if event else (goal, step.q, step.qd)
            keep.step(before, goal, t, step)
            show(t)
            repeated = repeated + 1 if event or changes.due else 0
            if event is None and not changes.due:
                continue
            keep.now(t, q, qd)
            if event is None or event.then is not None:
                q, qd = begin(t, *(event.after(t, q, qd) if event else (q, qd)))
                found, q, qd = changes.changed(t, q, qd)
                happened += found
                keep.now(t, q, qd)
            if event and event.stops:
                break
            if repeated > REPEATED:
                name = event.name if event else happened[-1].name
                raise RuntimeError(
                    f"simulate: event {name!r} came {REPEATED} times before t = {goal:.6g} s "
                    "and has no end; let it come to rest, or stop there (terminal=True)"
                )
    keep.now(t, q, qd)
    return happened


@contextmanager
def _said_when(t: float) -> Iterator[None]:
    """What goes wrong in a step says when."""
    try:
        yield
    except LoopError as error:
        raise type(error)(f"simulate: after t = {t:.6g} s: {error}") from None


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
