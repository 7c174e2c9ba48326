"""The loop in time: steps of some length, events within them, and the states that are kept."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from chasles.errors import ArgumentError, InputError, NotFiniteError, StateError
from chasles.mechanisms import LoopError
from chasles.motion.contract import Array
from chasles.motion.records import End, Event, Occurrence
from chasles.motion.steps.system import Taken

HALVINGS = 52
"""Of the step, to find an event: to rounding, whatever its length."""

REPEATED = 1000
"""So many events that each begin the motion anew may stop one step; more have no end."""

Begin = Callable[[float, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""begin(t, q, qd): the state that a motion can begin with."""

Step = Callable[[float, float, np.ndarray, np.ndarray], Taken]
"""step(t, h, q, qd): a step of h seconds from time t."""

Changed = tuple[list[Occurrence], np.ndarray, np.ndarray]
"""What happened, and the state from which the motion goes on."""


# Between steps ----------------------------------------------------------------------------------

Memory = Mapping[str, np.ndarray]
"""Arrays by name; no two parts of a motion use the same name."""


class Remembering:
    """A part of a motion whose next step depends on more than time and state: on some numbers."""

    numbers: ClassVar[tuple[str, ...]] = ()

    def memory(self) -> dict[str, np.ndarray]:
        """Everything between steps that the next one depends on."""
        return {name: np.array(getattr(self, name)) for name in self.numbers}

    def recall(self, memory: Memory) -> None:
        """Go on from that, found among what other parts remember."""
        for name in self.numbers:
            setattr(self, name, memory[name].item())


def remembered(parts: Iterable[Remembering]) -> dict[str, np.ndarray]:
    """The memory of all parts of a motion."""
    return {name: array for part in parts for name, array in part.memory().items()}


def resumed(resume: Any) -> End:
    """The end to go on from, checked."""
    if not isinstance(resume, End):
        problem = f"resume must be the end of a Trajectory, not {resume!r:.60}"
        raise ArgumentError("E-MOTION-050", problem, part="simulate")
    if resume.over:
        problem = f"the motion is over at t = {resume.t:.6g} s"
        raise InputError("E-MOTION-051", problem, part="simulate: resume")
    return resume


def other_motion(code: str) -> InputError:
    """The error of a state to resume from that belongs to another motion."""
    remedy = "give the arguments that the stopped one had"
    return InputError(code, "resume is of another motion", remedy, part="simulate")


# The length of steps ----------------------------------------------------------------------------


class Pace(Remembering):
    """Steps one after the other; due: what ended the last one changes the motion."""

    due = False

    def __call__(
        self, t: float, q: np.ndarray, qd: np.ndarray, most: float = math.inf
    ) -> tuple[float, Taken]:
        """The time of the next state, at most so many seconds away, and the step there."""
        raise NotImplementedError

    def changed(self, t: float, q: np.ndarray, qd: np.ndarray) -> Changed:
        """What happens at the beginning, at events and where a change is due: nothing."""
        return [], q, qd


@dataclass
class Even(Pace):
    """Steps between equally spaced times; one that begins between them ends at the next."""

    numbers = ("done",)
    step: Step
    start: float
    whole: float
    steps: int
    done: int = 0

    def __call__(
        self, t: float, q: np.ndarray, qd: np.ndarray, most: float = math.inf
    ) -> tuple[float, Taken]:
        while self._next <= t:
            self.done += 1
        goal = min(self._next, t + most)
        return goal, self.step(t, goal - t, q, qd)

    @property
    def _next(self) -> float:
        goal = self.start + self.whole * (self.done + 1) / self.steps
        last = self.done + 1 == self.steps  # which rounding must not leave before the end
        return max(goal, self.start + self.whole) if last else goal


@dataclass
class Controlled(Pace):
    """Steps whose error, the largest of all entries of (d, qd) beside atol + rtol |(d, qd)|, is 1.

    d is the step from the last position along `integrate`, so that rtol is of how far it went. The
    next length follows from the error's power (Hairer, Norsett and Wanner 1993, section II.4).
    """

    numbers = ("h",)
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
        """As `Pace`; a step is tried again while its error is large."""
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


# Events -----------------------------------------------------------------------------------------


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


def _occurred(
    events: Sequence[Event], t: float, goal: float, q: np.ndarray, qd: np.ndarray, step: Taken
) -> tuple[list[Occurrence], Event | None]:
    """The events in a step from t to goal, in order, and the one that interrupts it, if any.

    Whatever comes after that one does not happen: the step is gone back to it.
    """
    found = []
    for event in events:
        before, after = event.value(t, q, qd), event.value(goal, step.q, step.qd)
        if (before > 0.0 >= after and event.direction < 1) or (
            before < 0.0 <= after and event.direction > -1
        ):
            found.append((_located(event, t, goal - t, step, before), event))
    happened = []
    for part, event in sorted(found, key=lambda pair: pair[0]):
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


# The loop ---------------------------------------------------------------------------------------


class Keep(Remembering):
    """The states that are kept: one of so many steps, or those at given times.

    beside: a function of (t, q, qd), whose value for each of them is kept in `others`. steps: how
    many there were. repeated: events since the last that came to its end. left: of given times.
    """

    numbers = ("steps", "repeated", "left")

    def __init__(
        self, start: float, end: float, every: int, times: Array, beside: Callable[..., Any]
    ) -> None:
        self._times = None if times is None else _checked_times(times, start, end)
        self.steps, self.repeated, self.left = 0, 0, len(self._times or ())
        self._every, self._beside = every, beside
        self._kept: list[tuple[float, np.ndarray, np.ndarray]] = []
        self.others: list[Any] = []

    @property
    def _next(self) -> float:
        """The next of given times."""
        return self._times[-self.left] if self._times and self.left else math.inf

    def now(self, t: float, q: np.ndarray, qd: np.ndarray) -> None:
        """The state at which the motion begins or ends, or an event is: kept once."""
        if self._times is None:
            if not self._kept or self._kept[-1][1] is not q or self._kept[-1][2] is not qd:
                self._keep(t, q, qd)
        elif self._next == t:
            self._keep(t, q, qd)

    def step(self, t: float, goal: float, reached: float, step: Taken) -> None:
        """What to keep of a step from t to goal, of which only the part until `reached` is gone."""
        self.steps += 1
        if self._times is None and self.steps % self._every == 0 and reached == goal:
            self._keep(goal, step.q, step.qd)
        while (time := self._next) <= reached:
            state = (step.q, step.qd) if time == goal else step.at((time - t) / (goal - t))
            self._keep(time, *state)

    def repeat(self, event: str | None, goal: float) -> None:
        """Count events before a step comes to its goal: too many of them have no end."""
        self.repeated = self.repeated + 1 if event else 0
        if self.repeated > REPEATED:
            problem = (
                f"event {event!r} came {REPEATED} times before t = {goal:.6g} s and has no end"
            )
            remedy = "let it come to rest, or stop there (terminal=True)"
            raise StateError("E-MOTION-061", problem, remedy, part="simulate")

    def _keep(self, t: float, q: np.ndarray, qd: np.ndarray) -> None:
        self._kept.append((t, q, qd))
        self.others.append(self._beside(t, q, qd))
        self.left -= self._times is not None

    def states(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times (n,), positions (..., n, nq), velocities (..., n, nv); q and qd say the shapes."""
        axis = q.ndim - 1
        t = np.array([t for t, _, _ in self._kept])
        if not self._kept:
            return t, np.expand_dims(q, axis)[..., :0, :], np.expand_dims(qd, axis)[..., :0, :]
        _, positions, velocities = zip(*self._kept, strict=True)
        return t, np.stack(positions, axis), np.stack(velocities, axis)


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


def run(
    pace: Pace,
    begin: Begin,
    events: Sequence[Event],
    keep: Keep,
    span: tuple[float, float],
    q: np.ndarray,
    qd: np.ndarray,
    progress: bool,
    steps: int | None = None,
) -> tuple[list[Occurrence], End]:
    """Steps over a span of time, or until an event that ends them, or `steps` of them.

    Returns what happened, and where the steps stopped, with nothing remembered.
    """
    (t, end), happened, taken, stopped = span, [], 0, False
    with _bar(progress, span) as show:
        while t < end and taken != steps and not stopped:
            taken += 1
            try:
                goal, step = pace(t, q, qd)
                found, event = _occurred(events, t, goal, q, qd, step)
            except LoopError as error:
                raise error.within(f"simulate: after t = {t:.6g} s") from None
            happened += found
            before, (t, q, qd) = t, found[-1][1:] if event else (goal, step.q, step.qd)
            keep.step(before, goal, t, step)
            show(t)
            stopped = event is not None and event.stops
            due = pace.due and event is None
            keep.repeat(event.name if event and not stopped else "contact" if due else None, goal)
            if event is None and not due:
                continue
            keep.now(t, q, qd)
            if event is None or event.then is not None:
                q, qd = begin(t, *(event.after(t, q, qd) if event else (q, qd)))
                found, q, qd = pace.changed(t, q, qd)
                happened += found
                keep.now(t, q, qd)
    over = stopped or t >= end
    if over:
        keep.now(t, q, qd)
    return happened, End(t, q, qd, over, {})


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
