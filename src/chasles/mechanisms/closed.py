"""A mechanism with closed loops or couplings: its functions keep them closed, or say why not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from chasles.algorithms import CLOSED_LOOPS, OPEN
from chasles.errors import ArgumentError
from chasles.functions.compiled import Compiled
from chasles.functions.doors import Load, wrench_arguments
from chasles.functions.numeric import delivered, filled
from chasles.functions.tracing import WrenchKey
from chasles.mechanisms import assembly
from chasles.mechanisms.closing import Loops
from chasles.mechanisms.contract import Accelerations, Caller, check_coordinates
from chasles.mechanisms.dynamics import ClosedLoops
from chasles.mechanisms.tree import Tree
from chasles.model import Model, ModelError, build


@dataclass(frozen=True)
class Closing:
    """A function of closed loops, ready to be called with arrays.

    plain: it has a way with less overhead for calls by arrays alone, as compiled functions have.
    """

    name: str
    solver: ClosedLoops
    load: Load
    options: Mapping[str, Any]

    def __call__(self, *arrays: Any, out: Any = None, threads: int | None = None) -> Any:
        run = OWN[self.name]
        found = run(self.solver, *arrays, load=self.load, threads=threads, **self.options)
        put = delivered if isinstance(found, tuple) else filled
        return put(self.name, found, out)

    @property
    def plain(self) -> bool:
        return False

    @property
    def fast(self) -> Caller:
        run = OWN[self.name]
        return partial(run, self.solver, load=self.load, threads=None, **self.options)


class Accelerating(Closing):
    """`forward_dynamics`, which has a way with less overhead where no option is given."""

    @property
    def plain(self) -> bool:
        asked = self.options.get("method") != "fastest" or self.options.get("dissipation")
        return not (asked or self.load.keys or self.solver.loops.model.timed)

    def entry(self, *, holder: Any, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """What takes the fallback's place."""
        return self.solver.plain(fallback)


class Closed(Tree):
    """A tree whose coordinates loops and couplings relate to each other."""

    traits = ("it has loops",)

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._solver = ClosedLoops(self.loops, self.functions)

    @cached_property
    def loops(self) -> Loops:
        return Loops(self.model, self.function)

    @property
    def solver(self) -> ClosedLoops:
        """Dynamics at its time."""
        return self._solver if self.t is None else self._solver.at(self.t)

    @cached_property
    def _opened(self) -> Tree:
        """The tree alone."""
        source = replace(self.model.source, loops=(), couplings=(), independent=(), closure=None)
        return Tree(build(source, mimic=self.model.mimics))

    def reduced(self, name: str, q: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.solver.reduced(name, q)

    def closed(self, q: Any, qd: Any, *, anywhere: bool) -> tuple[np.ndarray, np.ndarray]:
        return assembly.closed(self.closing, q, qd, anywhere=anywhere)

    def near(self, q: np.ndarray) -> np.ndarray:
        return assembly.near(self.closing, q)

    def towards(self, q: np.ndarray, target: np.ndarray, k: int) -> np.ndarray:
        return assembly.towards(self.closing, q, target, k)

    def accelerations(
        self, f_ext: Mapping[str, Any] | None, frames: Sequence[str], **options: Any
    ) -> Accelerations:
        load = wrench_arguments(self.model, f_ext)
        keys = (*load.keys, *map(WrenchKey, frames))
        order = sorted(range(len(keys)), key=lambda k: keys[k].frame)
        sorted_keys = tuple(keys[k] for k in order)

        def accelerate(t: float, *arrays: Any) -> np.ndarray:
            here = self if self.t is None else self.moved(np.asarray(t))
            forces = (*load.forces, *arrays[3:])
            loads = Load(sorted_keys, [forces[k] for k in order])
            return here.solver.constrained_dynamics(*arrays[:3], load=loads, **options)[0]

        return accelerate

    def multipliers(self, q: Any, qd: Any, tau: Any) -> np.ndarray:
        return self.solver.constrained_dynamics(q, qd, tau)[1]

    def function(self, name: str, **options: Any) -> Compiled:
        self.refuse_open("function", name)
        functions = self._solver.cheapest if name in CLOSED_LOOPS else self.functions
        return functions(name, **options)

    def chosen(self, name: str) -> Model:
        return self._solver.cheapest.model if name in CLOSED_LOOPS else self.model

    def caller(self, name: str, f_ext: Mapping[str, Any] | None = None, **options: Any) -> Caller:
        if "coordinates" in options:
            check_coordinates(name, options["coordinates"])
        if options.get("coordinates") == "tree" and name in OPEN:
            opened = self._opened.moved(self.t).caller(name, f_ext, **options)
            return partial(opened)  # which a plain call does not mean
        if name not in OWN or (name in TREES and TREES[name](**options)):
            return super().caller(name, f_ext, **options)
        kind = Accelerating if name == "forward_dynamics" else Closing
        return kind(name, self.solver, wrench_arguments(self.model, f_ext), options)

    def loads(self, name: str, multipliers: Any) -> tuple[Any, ...]:
        if multipliers is None:
            problem = f"robot {self.model.name!r} has loops or couplings, which exert forces too"
            remedy = "give multipliers, the second result of constrained_dynamics"
            raise ArgumentError("E-ROBOT-019", problem, remedy, part=name)
        return (multipliers,)

    def require_loops(self, what: str, remedy: str = "use forward_dynamics") -> None:
        pass

    def refuse_loops(self, what: str, remedy: str) -> None:
        problem = f"robot {self.model.name!r} has loops or couplings"
        raise ModelError("E-LOOP-033", problem, remedy, part=what)

    def opens(self, function: str) -> bool:
        return function in OPEN

    def refuse_open(self, what: str, function: str) -> None:
        if self.opens(function):
            problem = (
                f"robot {self.model.name!r} has loops or couplings, and a program of {function} "
                "would leave them open"
            )
            raise ModelError("E-ROBOT-015", problem, OPEN[function], part=what)


OWN: dict[str, Callable[..., Any]] = {
    "constrained_dynamics": ClosedLoops.constrained_dynamics,
    "forward_dynamics": ClosedLoops.forward_dynamics,
    "hybrid_dynamics": ClosedLoops.hybrid_dynamics,
    "inverse_dynamics": ClosedLoops.actuator_forces,
    "mass_matrix": ClosedLoops.mass_matrix,
    "mass_matrix_inverse": ClosedLoops.mass_matrix_inverse,
    "operational_inertia_inverse": ClosedLoops.operational_inertia_inverse,
    "joint_reactions": ClosedLoops.joint_reactions,
    "linearize": ClosedLoops.linearize,
}
"""Functions that are not those of the tree."""

TREES: dict[str, Callable[..., bool]] = {
    "inverse_dynamics": lambda actuated=None, weights=None, **_: actuated is weights is None,
    "mass_matrix": lambda coordinates="tree", **_: coordinates == "tree",
}
"""Options with which some of these are the tree's all the same."""
