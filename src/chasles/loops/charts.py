"""Independent coordinates that suit a position: chosen there, compiled once for each choice."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from chasles.loops.choice import choose
from chasles.loops.closing import Loops
from chasles.model.closure import Closure


@dataclass(frozen=True, eq=False)
class Chart:
    """A choice of independent coordinates, and `closing_step` compiled for it."""

    independent: np.ndarray
    compiled: Any

    def closing(
        self, t: float, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Newton's step, rates and health at a time, from q and the independent entries of v."""
        found: tuple[np.ndarray, np.ndarray, np.ndarray] = self.compiled.at(t).fast(q, v)
        return found


class Charts:
    """The charts of one robot; `closed` makes the robot with a closure chosen."""

    def __init__(self, closed: Callable[[Closure], Any]) -> None:
        self._closed = closed
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
        key = (closure.rows, closure.dependent)
        if key not in self._known:
            compiled = self._closed(closure).function("closing_step")
            self._known[key] = Chart(independent, compiled)
        return self._known[key]
