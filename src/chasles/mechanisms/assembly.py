"""Positions that close loops, from those of the independent freedoms."""

import math
from typing import Any

import numpy as np

from chasles.functions.doors import leading_shape
from chasles.mechanisms.closing import CLOSED, REGULAR, Loops
from chasles.mechanisms.openness import at_index, how_open
from chasles.mechanisms.reports import ImpossiblePosition, LoopError

STEP = 0.1
"""The farthest that a freedom of loops moves at once (rad, m): the others find their way back."""


def assemble(loops: Loops, y: Any, guess: Any) -> np.ndarray:
    """Positions that close the loops."""
    if loops.time.ndim:
        return _at_each_time(loops, y, guess)
    loops.check_moves(y, loops.independent)
    y = loops.array("assemble", "y", y, len(loops.independent))
    if guess is None:
        starts = list(loops.references)
    else:
        starts = [loops.array("assemble", "guess", guess, loops.model.nq)]
    nq, n = loops.model.nq, y.shape[-1]
    lead = leading_shape("assemble", y=y, guess=starts[0])
    flat = np.broadcast_to(y, (*lead, n)).reshape(math.prod(lead), n)
    moved = loops.columns.copy()
    moved[loops.independent] = 0.0
    q, residual = np.empty((len(flat), nq)), np.zeros((len(flat), len(loops.rows)))
    left = np.arange(len(flat))
    for start in starts:
        begin = np.broadcast_to(start, (*lead, nq)).reshape(len(flat), nq)[left]
        found = loops.solve(_placed(loops, flat[left], begin), moved)
        q[left], residual[left] = found.q, found.residual
        left = left[~(found.size <= CLOSED)]
        if not len(left):
            break
    if len(left):
        more = "" if len(left) == 1 else f" (and at {len(left) - 1} others)"
        problem = (
            f"impossible position{at_index(left[0], lead)}{more}: "
            f"{how_open(loops.model, residual[left[0]])}{_given(loops, flat[left[0]])}"
        )
        remedy = "the position is out of reach, or the guess too far from it"
        raise ImpossiblePosition("E-LOOP-001", problem, remedy, part=f"robot {loops.model.name!r}")
    loops.check_regular(loops.matrix(q.reshape(*lead, nq)))
    return q.reshape(*lead, nq)


def coordinates(loops: Loops, q: np.ndarray) -> np.ndarray:
    """The independent freedoms as `assemble` takes them, for staying at q (nq,)."""
    places = [loops.places[k] for k in loops.independent]
    return np.array([0.0 if place is None else float(q[place]) for place in places])


def closed(loops: Loops, q: Any, qd: Any, *, anywhere: bool) -> tuple[np.ndarray, np.ndarray]:
    """A state that has the independent coordinates and rates of q and qd, loops closed.

    anywhere: on any branch, not the one near q.
    """
    found = assemble(loops, coordinates(loops, q), None if anywhere else q)
    return found, loops.complete(found, qd[loops.independent], None, REGULAR)


def near(loops: Loops, q: np.ndarray) -> np.ndarray:
    """A closed position near q, or where else a few tries find the loops closed."""
    for shift in (0.0, 0.5, -0.5, 1.0):
        try:
            return assemble(loops, coordinates(loops, q) + shift, None)
        except LoopError as error:
            last = error
    raise last


def towards(loops: Loops, q: np.ndarray, target: np.ndarray, k: int) -> np.ndarray:
    """The closed position in which the independent freedom k is as in a target.

    The others follow from where they are, in small steps, so that the mechanism stays on its
    branch.
    """
    n, away = list(loops.independent).index(k), loops.function("difference")
    count = max(1, math.ceil(abs(away(q, target)[k]) / STEP))
    for part in range(count):
        y = coordinates(loops, q)
        y[n] += away(q, target)[k] / (count - part)
        q = assemble(loops, y, q)
    return q


def _at_each_time(loops: Loops, y: Any, guess: Any) -> np.ndarray:
    """`assemble` for every one of several times."""
    given = {"y": np.asarray(y, dtype=float)}
    given |= {} if guess is None else {"guess": np.asarray(guess, dtype=float)}
    lead = leading_shape("assemble", t=loops.time[..., None], **given)
    times = np.broadcast_to(loops.time, lead)
    states = [np.broadcast_to(a, (*lead, a.shape[-1])) for a in given.values()]
    found = [
        assemble(loops.at(times[k]), *(a[k] for a in states), *[None] * (guess is None))
        for k in np.ndindex(lead)
    ]
    return np.array(found).reshape(*lead, loops.model.nq)


def _placed(loops: Loops, y: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """The guess with the independent freedoms at y, or moved by y where q has no such entry."""
    q, step = guess.copy(), np.zeros((len(y), loops.model.nv))
    for entry, k in zip(y.T, loops.independent, strict=True):
        place = loops.places[k]
        if place is None:
            step[:, k] = entry
        else:
            q[:, place] = entry
    return loops.function("integrate")(q, step)


def _given(loops: Loops, y: np.ndarray) -> str:
    """What a position was asked for with."""
    pairs = zip(loops.independent, y, strict=True)
    given = [f"{loops.freedoms[k]} = {value:.12g}" for k, value in pairs]
    given += [f"t = {float(loops.time):.12g} s"] if loops.model.timed else []
    return f" with {', '.join(given)}" if given else ""
