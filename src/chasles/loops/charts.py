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
    closing: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]


class Charts:
    """The charts of one robot; `closed` makes the robot with a closure chosen."""

    def __init__(
        self, loops: Loops, tree: Callable[[str], Any], closed: Callable[[Closure], Any]
    ) -> None:
        self.loops, self._tree, self._closed = loops, tree, closed
        self._known: dict[tuple[tuple[int, ...], ...], Chart] = {}

    def at(self, q: np.ndarray) -> Chart:
        """The chart in which a closed position (nq,) is far from singular.

        The same choice in two positions is one chart, compiled once. Raises `SingularPosition`.
        """
        loops, independent = self.loops, self.loops.suited(q)
        loops.check_regular(loops.matrix(q), (), independent)
        K = self._tree("loop_matrix")(np.concatenate([q[None], loops.references]))
        able = np.delete(np.arange(loops.model.nv), independent)
        closure = choose(K, loops.rows, loops.columns, len(able), able)
        key = (closure.rows, closure.dependent)
        if key not in self._known:
            closing = self._closed(closure).function("closing_step").fast
            self._known[key] = Chart(independent, closing)
        return self._known[key]
