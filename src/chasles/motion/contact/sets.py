"""Contacts in time: the states of a one-sided constraint, and the sets that a simulator keeps.

The procedure of Featherstone 2008, table 11.1, as functions. A simulator integrates `held` (step 1)
and looks for `events` (2), goes back to the earliest (3), and then: at a gain it applies an
impulse, solves the problem of all that touches and takes its `new_sets` (4); at a geometric loss it
goes on `without` the contact (5); at a negative force it solves the problem again and takes its
`new_sets` (6). Contacts are numbered as in the problem.
"""

from collections.abc import Collection
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import scipy

from chasles.errors import InputError
from chasles.motion.contact.rigid import Motion, Problem

Array = Any

DEPENDENT = 1e-9
"""A normal is new where this part of it, or more, is outside the span of the others."""

ACTS = 1e-9
"""The part of the largest force (or separation acceleration without forces) that is not zero."""


class State(Enum):
    """What a constraint gap >= 0 does (Featherstone 2008, figure 11.4)."""

    APART = "1"
    """gap > 0: no force, nothing to do."""
    COLLIDING = "2a"
    """gap = 0 and closing: an impulse acts at this instant."""
    LEAVING = "2b"
    """gap = 0 and opening: as if apart."""
    TOUCHING = "3"
    """gap = 0 and staying so: a force may act."""


class Sets(NamedTuple):
    """Contacts by number: those that touch and stay, and those of them that are held.

    The normals of `active` contacts are a basis of those of `current` ones, and every contact with
    a force is active: as long as no force is negative, holding the active contacts is enough.
    """

    current: tuple[int, ...]
    active: tuple[int, ...]


class Event(NamedTuple):
    """Something that changes the sets: kind "gain", "loss" or "negative force", and the contact."""

    kind: str
    contact: int


def state(gap: float, gap_rate: float, *, distance: float = 1e-9, speed: float = 1e-9) -> State:
    """The state of a constraint; distance (m or rad) and speed (per s) that count as zero.

    A gap below -distance is penetration that is tolerated: it counts as zero.
    """
    if not (np.isfinite(gap) and np.isfinite(gap_rate)):
        problem = f"gap and gap_rate must be finite, not {gap} and {gap_rate}"
        raise InputError("E-CONTACT-074", problem, part="state")
    if gap > distance:
        return State.APART
    if abs(gap_rate) <= speed:
        return State.TOUCHING
    return State.COLLIDING if gap_rate < 0.0 else State.LEAVING


def new_sets(problem: Problem, motion: Motion) -> Sets:
    """The sets after a problem of touching contacts was solved (steps 4 and 6).

    Current are those that do not separate. Active are those with a force, and, where their normals
    do not span those of all current ones (a degenerate solution), others of no force with them.
    """
    still = motion.separation <= ACTS * max(np.max(np.abs(problem.d), initial=0.0), 1e-300)
    acting = motion.forces > ACTS * np.max(motion.forces, initial=0.0)
    return _spanning(problem, np.flatnonzero(still), np.flatnonzero(acting & still))


def without(problem: Problem, sets: Sets, lost: Collection[int]) -> Sets:
    """The sets after contacts ran off an edge (step 5); others are held in their place."""
    current, active = ([k for k in group if k not in lost] for group in sets)
    return _spanning(problem, np.array(current, dtype=int), np.array(active, dtype=int))


def _spanning(problem: Problem, current: np.ndarray, first: np.ndarray) -> Sets:
    """A basis of the normals of `current` contacts that takes the `first` ones first."""
    unit = problem.T / np.maximum(np.linalg.norm(problem.T, axis=0), 1e-300)
    others = np.setdiff1d(current, first)
    active = list(_independent(unit, first))
    basis = np.linalg.qr(unit[:, active])[0]
    rest = unit[:, others] - basis @ (basis.T @ unit[:, others])
    active += list(others[_independent(rest, np.arange(len(others)))])
    return Sets(tuple(map(int, current)), tuple(sorted(map(int, active))))


def _independent(columns: np.ndarray, which: np.ndarray) -> np.ndarray:
    """As many of the columns as are independent, the largest first."""
    if not len(which):
        return which
    _, R, order = scipy.linalg.qr(columns[:, which], mode="economic", pivoting=True)
    return which[order[: np.count_nonzero(np.abs(np.diagonal(R)) > DEPENDENT)]]


def held(problem: Problem, sets: Sets) -> Motion:
    """The motion with the active contacts held as if they could pull, all others ignored (step 1).

    The same as that of the whole problem as long as no force is negative.
    """
    active = list(sets.active)
    forces = np.zeros(len(problem.bias))
    forces[active] = np.linalg.solve(problem.M[np.ix_(active, active)], -problem.d[active])
    return problem.motion(forces)


def events(
    problem: Problem,
    qd: Array,
    sets: Sets,
    motion: Motion,
    *,
    distance: float = 1e-9,
    speed: float = 1e-9,
) -> list[Event]:
    """What has happened to the contacts of a problem, near or touching (step 2).

    A gain is a contact that is not current and collides; a loss is a current one that is farther
    than `distance`; a negative force is that of an active one. qd: rates of the problem's
    coordinates (n,).
    """
    rates = problem.T.T @ np.asarray(qd, dtype=float)
    least = -ACTS * np.max(np.abs(motion.forces), initial=0.0)
    found = []
    for k, (gap, rate) in enumerate(zip(problem.gap, rates, strict=True)):
        now = state(float(gap), float(rate), distance=distance, speed=speed)
        if k not in sets.current and now is State.COLLIDING:
            found.append(Event("gain", k))
        if k in sets.current and now is State.APART:
            found.append(Event("loss", k))
        if k in sets.active and motion.forces[k] < least:
            found.append(Event("negative force", k))
    return found
