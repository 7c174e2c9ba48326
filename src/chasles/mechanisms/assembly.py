"""Closed positions: from the independent freedoms, and coordinates that suit a position."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from chasles.functions.doors import leading_shape
from chasles.functions.made import Functions
from chasles.mechanisms.closing import CLOSED, Loops
from chasles.mechanisms.equations import choose
from chasles.mechanisms.reports import ImpossiblePosition, at_index, finite, how_open
from chasles.model.description import Closure


def assemble(loops: Loops, y: Any, guess: Any) -> np.ndarray:
    """Positions that close the loops."""
    if loops.time.ndim:
        return _at_each_time(loops, y, guess)
    loops.check_moves(y, loops.independent)
    what = f" ({loops.names(loops.independent)})"
    y = finite("assemble", "y", y, len(loops.independent), what)
    starts = loops.references
    if guess is not None:
        starts = finite("assemble", "guess", guess, loops.model.nq)[None]
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
        raise ImpossiblePosition("E-LOOP-001", problem, remedy, part=loops.part)
    loops.check_regular(loops.matrix(q.reshape(*lead, nq)))
    return q.reshape(*lead, nq)


def coordinates(loops: Loops, q: np.ndarray) -> np.ndarray:
    """The independent freedoms as `assemble` takes them, for staying at q (nq,)."""
    places = [loops.places[k] for k in loops.independent]
    return np.array([0.0 if place is None else float(q[place]) for place in places])


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
    """The coordinates that a position was asked for with, in words."""
    pairs = zip(loops.independent, y, strict=True)
    given = [f"{loops.freedoms[k]} = {value:.12g}" for k, value in pairs]
    given += [f"t = {float(loops.time):.12g} s"] if loops.model.timed else []
    return f" with {', '.join(given)}" if given else ""


# Charts -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Chart:
    """A choice of independent coordinates, and `closing_step` compiled for it."""

    closure: Closure
    independent: np.ndarray
    compiled: Any

    def closing(
        self, t: float, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Newton's step, rates and health at a time, from q and the independent entries of v."""
        found: tuple[np.ndarray, np.ndarray, np.ndarray] = self.compiled.at(t)(q, v)
        return found


class Charts:
    """The charts of one mechanism, by the functions of its model."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._known: dict[tuple[tuple[int, ...], ...], Chart] = {}

    def at(self, loops: Loops, q: np.ndarray) -> Chart:
        """The chart in which a closed position (nq,) of some loops is far from singular.

        The same choice in two positions is one chart, compiled once. Raises `SingularPosition`.
        """
        independent = loops.suited(q)
        loops.check_regular(loops.matrix(q), independent)
        K = np.concatenate([loops.raw_matrix(q)[None], loops.reference_matrix])
        able = np.delete(np.arange(loops.model.nv), independent)
        closure = choose(K, loops.rows, loops.columns, len(able), able)
        known = self._known.get((closure.rows, closure.dependent))
        return known or self._made(closure, independent)

    def _made(self, closure: Closure, independent: np.ndarray) -> Chart:
        compiled = self._functions.closed(closure)("closing_step")
        chart = self._known[closure.rows, closure.dependent] = Chart(closure, independent, compiled)
        return chart

    def memory(self) -> tuple[list[Chart], dict[str, np.ndarray]]:
        """All charts in the order they were made, and arrays that `recall` makes them of again."""
        charts = list(self._known.values())
        closures = [{"independent": chart.independent, **vars(chart.closure)} for chart in charts]
        return charts, {
            f"chart_{name}": np.array([numbers[name] for numbers in closures])
            for name in ("independent", *(field.name for field in fields(Closure)))
        }

    def recall(self, memory: Mapping[str, np.ndarray]) -> list[Chart]:
        """The charts of a memory, each with the pivots that it was made with."""
        columns = [memory[f"chart_{field.name}"].tolist() for field in fields(Closure)]
        charts = []
        for independent, *row in zip(memory["chart_independent"], *columns, strict=True):
            closure = Closure(*map(tuple, row))
            known = self._known.get((closure.rows, closure.dependent))
            same = known is not None and known.closure == closure
            charts.append(known if known and same else self._made(closure, independent))
        return charts
