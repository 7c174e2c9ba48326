"""A mechanism that depends on time: joints are driven, or couplings change."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from chasles.functions.compiled import AtTime, Compiled
from chasles.functions.doors import checked_time
from chasles.mechanisms.charts import Charts
from chasles.mechanisms.closing import Loops
from chasles.mechanisms.contract import Accelerations, Caller
from chasles.mechanisms.tree import Tree
from chasles.model import Model, ModelError

TIMELESS = ("integrate", "difference")
"""Functions of configurations alone, which need no time."""


class Timed:
    """A tree or closed loops, asked at a time; what is chosen once is chosen at t = 0."""

    def __init__(self, start: Tree, t: np.ndarray | None = None) -> None:
        self.start, self.t = start, t
        self.model: Model = start.model
        self.kept = start.kept
        self.traits = (*start.traits, "it depends on time")

    @property
    def loops(self) -> Loops:
        return self.start.loops

    @property
    def charts(self) -> Charts:
        return self.start.charts

    @property
    def rows(self) -> int:
        return self.start.rows

    def at(self, t: Any) -> "Timed":
        return Timed(self.start, checked_time(t))

    @cached_property
    def now(self) -> Tree:
        """The mechanism at its time, which must have been given."""
        if self.t is None:
            problem = f"robot {self.model.name!r} depends on time"
            raise ModelError("E-ROBOT-013", problem, "say when: robot.at_time(t)")
        return self.start.moved(self.t)

    @property
    def closing(self) -> Loops:
        return self.now.closing

    def reduced(self, name: str, q: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.now.reduced(name, q)

    def closed(self, q: Any, qd: Any, *, anywhere: bool) -> tuple[np.ndarray, np.ndarray]:
        return self.now.closed(q, qd, anywhere=anywhere)

    def near(self, q: np.ndarray) -> np.ndarray:
        return self.now.near(q)

    def towards(self, q: np.ndarray, target: np.ndarray, k: int) -> np.ndarray:
        return self.now.towards(q, target, k)

    def function(self, name: str, **options: Any) -> Compiled:
        return self.start.function(name, **options)

    def chosen(self, name: str) -> Model:
        return self.start.chosen(name)

    def bound(self, compiled: Compiled) -> Compiled | AtTime:
        return compiled.at(self.t)

    def caller(self, name: str, f_ext: Mapping[str, Any] | None = None, **options: Any) -> Caller:
        if name in TIMELESS:
            return self.start.caller(name, f_ext, **options)
        if self.t is None:
            problem = f"robot {self.model.name!r} depends on time"
            remedy = f"say when: robot.at_time(t).{name}(...)"
            raise ModelError("E-LOOP-039", problem, remedy, part=name)
        return self.now.caller(name, f_ext, **options)

    def accelerations(
        self, f_ext: Mapping[str, Any] | None, frames: Sequence[str], **options: Any
    ) -> Accelerations:
        return self.start.moved(np.zeros(())).accelerations(f_ext, frames, **options)

    def multipliers(self, q: Any, qd: Any, tau: Any) -> np.ndarray:
        return self.now.multipliers(q, qd, tau)

    def loads(self, name: str, multipliers: Any) -> tuple[Any, ...]:
        return self.start.loads(name, multipliers)

    def require_loops(self, what: str, remedy: str = "use forward_dynamics") -> None:
        self.start.require_loops(what, remedy)

    def refuse_loops(self, what: str, remedy: str) -> None:
        self.start.refuse_loops(what, remedy)

    def refuse_time(self, what: str, remedy: str) -> None:
        problem = f"robot {self.model.name!r} depends on time"
        raise ModelError("E-LOOP-040", problem, remedy, part=what)

    def opens(self, function: str) -> bool:
        return self.start.opens(function)

    def refuse_open(self, what: str, function: str) -> None:
        self.start.refuse_open(what, function)
