"""A mechanism without loops: its functions are compiled programs."""

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np

from chasles.algorithms import CLOSED_LOOPS
from chasles.functions.compiled import AtTime, Compiled, Functions
from chasles.functions.doors import wrench_arguments
from chasles.functions.programs import spaces
from chasles.functions.tracing import WrenchKey
from chasles.mechanisms.charts import Charts
from chasles.mechanisms.closing import Loops
from chasles.mechanisms.contract import Accelerations, Caller, check_coordinates
from chasles.mechanisms.loose import Loose
from chasles.model import Model, ModelError


class Tree:
    """A tree: every freedom is independent, and there is nothing to close."""

    traits: tuple[str, ...] = ()

    def __init__(self, model: Model) -> None:
        self.model, self.functions = model, Functions(model)
        self.t: np.ndarray | None = None
        self.kept: dict[Any, Any] = {}

    @cached_property
    def loops(self) -> Loops:
        return Loose(self.model, self.function)

    @cached_property
    def charts(self) -> Charts:
        return Charts(self.functions)

    @property
    def rows(self) -> int:
        return self.model.loop_rows

    def at(self, t: Any) -> Self:
        return self

    def moved(self, t: np.ndarray | None) -> Self:
        """The same mechanism, with everything that is compiled and chosen, at a time."""
        shared = self.loops, self.charts
        moved = copy(self)
        moved.t, (moved.loops, moved.charts) = t, shared
        return moved

    @property
    def closing(self) -> Loops:
        return self.loops if self.t is None else self.loops.at(self.t)

    def reduced(self, name: str, q: Any) -> tuple[np.ndarray, np.ndarray]:
        return np.eye(self.model.nv), self.caller("mass_matrix")(q)

    def closed(self, q: Any, qd: Any, *, anywhere: bool) -> tuple[np.ndarray, np.ndarray]:
        return q, qd

    def near(self, q: np.ndarray) -> np.ndarray:
        return q

    def towards(self, q: np.ndarray, target: np.ndarray, k: int) -> np.ndarray:
        return target

    def function(self, name: str, **options: Any) -> Compiled:
        if name in CLOSED_LOOPS:
            self.require_loops(name)
        return self.functions(name, **options)

    def chosen(self, name: str) -> Model:
        if name in CLOSED_LOOPS:
            self.require_loops(name)
        return self.model

    def bound(self, compiled: Compiled) -> Compiled | AtTime:
        return compiled.at(self.t)

    def caller(
        self,
        name: str,
        f_ext: Mapping[str, Any] | None = None,
        *,
        coordinates: Any = "tree",
        actuated: Any = None,
        weights: Any = None,
        **options: Any,
    ) -> Caller:
        check_coordinates(name, coordinates)
        if weights is not None or (actuated is not None and {*actuated} != {*self.loops.freedoms}):
            self.require_loops(f"{name}(actuated=)")
        keys, forces = wrench_arguments(self.model, f_ext)
        here = self.bound(self.function(name, wrenches=keys, **options))
        if not forces:
            return here
        return lambda *arrays, **where: here(*arrays, *forces, **where)

    def accelerations(
        self, f_ext: Mapping[str, Any] | None, frames: Sequence[str], **options: Any
    ) -> Accelerations:
        keys, constant = wrench_arguments(self.model, f_ext)
        keys = (*keys, *map(WrenchKey, frames))
        compiled = self.function("forward_dynamics", wrenches=keys, **options)
        return lambda t, *arrays: compiled.at(t).fast(*arrays[:3], *constant, *arrays[3:])

    def multipliers(self, q: Any, qd: Any, tau: Any) -> np.ndarray:
        return np.zeros(0)

    def loads(self, name: str, multipliers: Any) -> tuple[Any, ...]:
        if multipliers is not None and np.size(multipliers):
            self.require_loops(f"{name}(multipliers=)")
        return (np.zeros(0),) if "multipliers" in spaces(name).inputs else ()

    def require_loops(self, what: str, remedy: str = "use forward_dynamics") -> None:
        problem = f"robot {self.model.name!r} has no loops or couplings"
        raise ModelError("E-LOOP-041", problem, remedy, part=what)

    def refuse_loops(self, what: str, remedy: str) -> None:
        pass

    def refuse_time(self, what: str, remedy: str) -> None:
        pass

    def opens(self, function: str) -> bool:
        return False

    def refuse_open(self, what: str, function: str) -> None:
        pass
