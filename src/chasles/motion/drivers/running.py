"""Time loop: step sizes, events within steps, and recorded states."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from chasles.errors import ArgumentError, InputError, NotFiniteError, StateError
from chasles.mechanisms import LoopError
from chasles.motion.contract import Array
from chasles.motion.records import End, Event, Occurrence
from chasles.motion.steps.system import State, Taken

HALVINGS = 52
"""Number of bisections that locate an event in a step to within rounding error."""

REPEATED = 1000
"""Maximum number of events that may interrupt one step."""

Begin = Callable[[State], State]
"""Function begin(at) that returns a valid initial state near `at`, for example by closing loops."""

Step = Callable[[State, float], Taken]
"""Function step(at, goal) that takes a step from the state `at` to the time `goal` (s)."""

Changed = tuple[list[Occurrence], State]
"""List of contact events, and the state after them."""


# Data kept between steps ------------------------------------------------------------------------

Memory = Mapping[str, np.ndarray]
"""Data stored for resuming a simulation. The names (keys) are unique among all components."""


class Remembering:
    """Simulation component that keeps data between steps, in addition to time and state.

    `numbers` contains the names of the attributes that hold these data.
    """

    numbers: ClassVar[tuple[str, ...]] = ()

    def memory(self) -> dict[str, np.ndarray]:
        """Return the data, besides time and state, that the next step depends on."""
        return {name: np.array(getattr(self, name)) for name in self.numbers}

    def recall(self, memory: Memory) -> None:
        """Restore the data that `memory` returned."""
        for name in self.numbers:
            setattr(self, name, memory[name].item())


def remembered(parts: Iterable[Remembering]) -> dict[str, np.ndarray]:
    """Return the data that all components of a simulation need to resume."""
    return {name: array for part in parts for name, array in part.memory().items()}


def resumed(resume: Any) -> End:
    """Check the argument `resume` and return it."""
    if not isinstance(resume, End):
        problem = f"`resume` must be the end of a Trajectory, not {resume!r:.60}"
        raise ArgumentError("E-MOTION-050", problem, part="simulate")
    if resume.over:
        problem = f"the motion already ended at t = {resume.t:.6g} s"
        raise InputError("E-MOTION-051", problem, part="simulate: resume")
    return resume


def other_motion(code: str) -> InputError:
    """Return the error for a `resume` argument that belongs to another motion."""
    remedy = "use the same arguments as for the interrupted motion"
    problem = "`resume` belongs to another motion"
    return InputError(code, problem, remedy, part="simulate")


# Step sizes -------------------------------------------------------------------------------------


class Pace(Remembering):
    """Base class of steppers, which choose the step size and take the next step.

    The attribute `due` is True if the contact mode changes at the end of the last step.
    """

    due = False

    def __call__(self, at: State, most: float = math.inf) -> Taken:
        """Take the next step, of at most `most` seconds."""
        raise NotImplementedError

    def changed(self, at: State) -> Changed:
        """Return the contact events in a state, and the state from which the motion continues.

        This method is called at the start of a motion, after an event, and if `due` is True. By
        default, there are no contact events.
        """
        return [], at


@dataclass
class Even(Pace):
    """Steps that end at equally spaced times; an interrupted step is completed by a shorter one."""

    numbers = ("done",)
    step: Step
    start: float
    whole: float
    steps: int
    done: int = 0

    def __call__(self, at: State, most: float = math.inf) -> Taken:
        while self._next <= at.t:
            self.done += 1
        return self.step(at, min(self._next, at.t + most))

    @property
    def _next(self) -> float:
        goal = self.start + self.whole * (self.done + 1) / self.steps
        last = self.done + 1 == self.steps  # despite rounding, end no earlier than planned
        return max(goal, self.start + self.whole) if last else goal


@dataclass
class Controlled(Pace):
    """Adaptive steps, in which the error of (d, qd) is at most atol + rtol |(d, qd)|.

    The displacement d of a step is defined as in `integrate`, so rtol is relative to the distance
    moved. The next step size is computed from the error and its order, `power` (Hairer, Norsett
    and Wanner 1993, section II.4).
    """

    numbers = ("h",)
    step: Step
    end: float
    longest: float
    rtol: float
    atol: float
    power: int
    h: float

    def __call__(self, at: State, most: float = math.inf) -> Taken:
        """Take the next step; repeat it with a smaller step size while its error is too large."""
        t, largest = at.t, 5.0
        while True:
            h = min(self.h, self.longest, most)
            goal = self.end if t + 1.01 * h >= self.end else t + h
            if goal - t <= 1e-14 * max(1.0, abs(t)):
                problem = f"the step size became too small at t = {t:.6g} s"
                remedy = (
                    "increase `rtol` and `atol`, use integrator='sdirk2', "
                    "or smooth the joint torques"
                )
                raise NotFiniteError("E-MOTION-056", problem, remedy, part="simulate")
            taken = self.step(at, goal)
            assert taken.error is not None
            allowed = self.atol + self.rtol * np.maximum(*np.abs(taken.ends))
            error = float(np.max(np.abs(taken.error) / allowed, initial=0.0))
            factor = 0.9 * error ** (-1.0 / self.power) if error else largest
            self.h = (goal - t) * min(largest, max(0.2, factor))
            if error <= 1.0:
                return taken
            largest = 1.0


# Events -----------------------------------------------------------------------------------------


def checked_events(events: Event | Sequence[Event], q: np.ndarray) -> tuple[Event, ...]:
    """Return the given events as a tuple; raise an error if one is invalid or q is a batch."""
    given = (events,) if isinstance(events, Event) else tuple(events)
    for event in given:
        if not isinstance(event, Event):
            problem = f"`events` must be chasles.Event(function), not {event!r:.60}"
            raise ArgumentError("E-MOTION-043", problem, part="simulate")
    if given and q.ndim > 1:
        problem = f"events need a single state, not a batch of shape {q.shape[:-1]}"
        raise InputError("E-MOTION-044", problem, "simulate the states one by one", part="simulate")
    return given


def _occurred(
    events: Sequence[Event], at: State, step: Taken
) -> tuple[list[Occurrence], Event | None]:
    """Return the events in a step in order of time, and the event that interrupts the step.

    The second result is None without an interruption. Events after an interruption are omitted.
    """
    found = []
    for event in events:
        before, after = event.value(*at), event.value(*step.last)
        if (before > 0.0 >= after and event.direction < 1) or (
            before < 0.0 <= after and event.direction > -1
        ):
            found.append((_located(event, step, before), event))
    happened = []
    for part, event in sorted(found, key=lambda pair: pair[0]):
        happened.append(Occurrence(event.name, *step.at(part)))
        if event.interrupts:
            return happened, event
    return happened, None


def _located(event: Event, step: Taken, before: float) -> float:
    """Return the time of an event as a fraction of the step, found by bisection.

    The returned time is just before the event function changes sign. A motion that reverses at the
    event therefore does not trigger the event again.
    """
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if event.value(*step.at(middle)) * before > 0.0:
            low = middle
        else:
            high = middle
    return low


# Time loop --------------------------------------------------------------------------------------


class Keep(Remembering):
    """Recorded states: one per `every` steps, or at given times.

    Attributes
    ----------
    others : list
        Results of the function `beside(state)` for the recorded states, such as contact forces.
    steps : int
        Number of steps taken.
    repeated : int
        Number of events since the last complete step.
    left : int
        Number of given times that are not recorded yet.
    """

    numbers = ("steps", "repeated", "left")

    def __init__(
        self, start: float, end: float, every: int, times: Array, beside: Callable[..., Any]
    ) -> None:
        self._times = None if times is None else _checked_times(times, start, end)
        self.steps, self.repeated, self.left = 0, 0, len(self._times or ())
        self._every, self._beside = every, beside
        self._kept: list[State] = []
        self.others: list[Any] = []

    @property
    def _next(self) -> float:
        """Next time at which to record a state, or infinity if none is left."""
        return self._times[-self.left] if self._times and self.left else math.inf

    def now(self, at: State) -> None:
        """Record a state at the start, at the end or at an event, unless it is already recorded."""
        new = not self._kept or self._kept[-1] is not at
        if new if self._times is None else self._next == at.t:
            self._keep(at)

    def step(self, t: float, step: Taken, reached: float) -> None:
        """Record states in a step that began at time t and ended at the time `reached`."""
        self.steps += 1
        goal = step.last.t
        if self._times is None and self.steps % self._every == 0 and reached == goal:
            self._keep(step.last)
        while (time := self._next) <= reached:
            at = step.last if time == goal else step.at((time - t) / (goal - t))
            self._keep(at._replace(t=time))

    def repeat(self, event: str | None, goal: float) -> None:
        """Count successive events within a step, and raise an error if there are too many."""
        self.repeated = self.repeated + 1 if event else 0
        if self.repeated > REPEATED:
            problem = f"event {event!r} occurred {REPEATED} times before t = {goal:.6g} s"
            remedy = "set small velocities to zero in `then`, or end the motion (terminal=True)"
            raise StateError("E-MOTION-061", problem, remedy, part="simulate")

    def _keep(self, at: State) -> None:
        self._kept.append(at)
        self.others.append(self._beside(at))
        self.left -= self._times is not None

    def states(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return times (n,), positions (..., n, nq) and velocities (..., n, nv)."""
        t = np.array([at.t for at in self._kept])
        if not self._kept:
            return t, q[..., None, :][..., :0, :], qd[..., None, :][..., :0, :]
        q, qd = (np.stack([at[k] for at in self._kept], axis=-2) for k in (1, 2))
        return t, q, qd


def _checked_times(times: Array, start: float, end: float) -> list[float]:
    given = np.asarray(times, dtype=float)
    if given.ndim != 1 or not given.size or not np.all(np.diff(given) > 0.0):
        problem = "`times` must be an array of increasing numbers"
        raise InputError("E-MOTION-062", problem, part="simulate")
    if not (start <= given[0] and given[-1] <= end):
        asked = f"{given[0]:.6g} to {given[-1]:.6g} s"
        problem = f"`times` must be between {start:.6g} and {end:.6g} s, but range from {asked}"
        raise InputError("E-MOTION-063", problem, part="simulate")
    return [float(time) for time in given]


def run(
    pace: Pace,
    begin: Begin,
    events: Sequence[Event],
    keep: Keep,
    at: State,
    end: float,
    progress: bool,
    steps: int | None = None,
) -> tuple[list[Occurrence], End]:
    """Take at most `steps` steps, until the time `end` or a terminal event.

    Return the events that occurred, and the `End` of the motion.
    """
    happened, taken, stopped = [], 0, False
    with _bar(progress, at.t, end) as show:
        while at.t < end and taken != steps and not stopped:
            taken += 1
            try:
                step = pace(at)
                found, event = _occurred(events, at, step)
            except LoopError as error:
                raise error.within(f"simulate: after t = {at.t:.6g} s") from None
            happened += found
            before, at = at.t, State(*found[-1][1:]) if event else step.last
            keep.step(before, step, at.t)
            show(at.t)
            stopped = event is not None and event.stops
            due = pace.due and event is None
            again = event.name if event and not stopped else "contact" if due else None
            keep.repeat(again, step.last.t)
            if event is None and not due:
                continue
            keep.now(at)
            if event is None or event.then is not None:
                at = begin(State(at.t, *event.after(*at)) if event else at)
                found, at = pace.changed(at)
                happened += found
                keep.now(at)
    over = stopped or at.t >= end
    if over:
        keep.now(at)
    return happened, End(*at, over, {})


@contextmanager
def _bar(progress: bool, start: float, end: float) -> Iterator[Callable[[float], None]]:
    """Yield a function that updates the progress bar, if one is requested."""
    if not progress:
        yield lambda t: None
        return
    from rich.progress import Progress

    with Progress() as bar:
        task = bar.add_task("simulate", total=end - start)
        yield lambda t: bar.update(task, completed=t - start)


def seen(event: Event, n: int) -> Event:
    """Adapt an event to states with values appended to q; the event's functions receive q[:n]."""

    def function(t: float, q: np.ndarray, qd: np.ndarray) -> float:
        return event.function(t, q[:n], qd)

    def then(t: float, q: np.ndarray, qd: np.ndarray) -> tuple[Any, Any]:
        assert event.then is not None
        after, speed = event.then(t, q[:n], qd)
        return np.concatenate([np.asarray(after, dtype=float), q[n:]]), speed

    return replace(event, function=function, then=None if event.then is None else then)


def check_resolution(start: float, dt: float, function: str) -> None:
    """Raise an error if dt is too small to change the time at `start`."""
    if start + dt == start:
        problem = f"a step of {dt:g} s is too small to change the time {start:g} s"
        remedy = "start closer to 0 (start=), or increase `dt`"
        raise InputError("E-MOTION-122", problem, remedy, part=function)
