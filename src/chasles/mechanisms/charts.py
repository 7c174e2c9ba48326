"""Independent coordinates that suit a position: chosen there, compiled once for each choice."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from chasles.functions.compiled import Functions
from chasles.mechanisms.choice import choose
from chasles.mechanisms.closing import Loops
from chasles.model.closure import Closure


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
        found: tuple[np.ndarray, np.ndarray, np.ndarray] = self.compiled.at(t).fast(q, v)
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
