"""What a motion leaves: states at times, events, contacts, and what its next step depends on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from chasles.errors import ArgumentError, InputError


class Occurrence(NamedTuple):
    """An event that happened: its name, its time, and the state before it did anything."""

    name: str
    t: float
    q: np.ndarray
    qd: np.ndarray


class Touching(NamedTuple):
    """What happened at the points of contact of a trajectory, at its times.

    forces (..., n, points, 3): on the body, along the world's axes, in N. gaps (..., n, points): in
    m. states (..., n, states): of soft surfaces and of friction, those of each point in turn.
    """

    forces: np.ndarray
    gaps: np.ndarray
    states: np.ndarray


class End(NamedTuple):
    """Where a motion stopped, and all that its next step depends on: `simulate(resume=end)`.

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
    all steps were taken in machine code; why: what prevented that.
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


# Between steps ----------------------------------------------------------------------------------


Memory = Mapping[str, np.ndarray]
"""Arrays by name; no two parts of a motion use the same name."""


def other_motion(code: str) -> InputError:
    """The error of a state to resume from that belongs to another motion."""
    remedy = "give the arguments that the stopped one had"
    return InputError(code, "resume is of another motion", remedy, part="simulate")


class Remembering(Protocol):
    """A part of a motion whose next step depends on more than time and state."""

    def memory(self) -> dict[str, np.ndarray]:
        """Everything between steps that the next one depends on."""

    def recall(self, memory: Memory) -> None:
        """Go on from that, found among what other parts remember."""


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
