"""What a motion leaves: states at times, events, contacts, and where it can be gone on with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


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
