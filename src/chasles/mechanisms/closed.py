"""A mechanism with closed loops or couplings: its functions keep them closed, or say why not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from chasles.algorithms import CLOSED_LOOPS, OPEN
from chasles.errors import ArgumentError, InputError
from chasles.functions.compiled import Compiled
from chasles.functions.doors import checked_frame, checked_joints, wrench_arguments
from chasles.functions.numeric.linear_systems import checked_step
from chasles.functions.numeric.results import delivered, filled
from chasles.functions.tracing import WrenchKey
from chasles.mechanisms import assembly
from chasles.mechanisms.closing import Loops
from chasles.mechanisms.contract import Accelerations, Caller, check_coordinates
from chasles.mechanisms.dynamics import TOLERANCE, ClosedLoops
from chasles.mechanisms.tree import Tree
from chasles.model import Model, ModelError, build


class Load(NamedTuple):
    """External wrenches: what a program is compiled for, and their values."""

    keys: tuple[WrenchKey, ...]
    forces: list[Any]


@dataclass(frozen=True)
class Closing:
    """A function of closed loops, ready to be called with arrays.

    plain: it has a way with less overhead for calls by arrays alone, as compiled functions have.
    """

    mechanism: "Closed"
    run: Callable[..., Any]
    load: Load
    options: Mapping[str, Any]

    def __call__(self, *arrays: Any, out: Any = None, threads: int | None = None) -> Any:
        return self.run(*arrays, load=self.load, out=out, threads=threads, **self.options)

    @property
    def plain(self) -> bool:
        return False

    @property
    def fast(self) -> Caller:
        return partial(self.run, load=self.load, out=None, threads=None, **self.options)


class Accelerating(Closing):
    """`forward_dynamics`, which has a way with less overhead where no option is given."""

    @property
    def plain(self) -> bool:
        asked = self.options.get("method") != "fastest" or self.options.get("dissipation")
        return not (asked or self.load.keys) and self.mechanism.t is None

    def entry(self, *, holder: Any, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """What takes the fallback's place."""
        return self.mechanism.solver.plain(fallback)


class Closed(Tree):
    """A tree whose coordinates loops and couplings relate to each other."""

    traits = ("it has loops",)

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.loops = Loops(model, self.function)
        self._solver = ClosedLoops(self.loops, self.functions)

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
        return self.solver.reduced(name, q, threads=None)

    def closed(self, q: Any, qd: Any, *, anywhere: bool) -> tuple[np.ndarray, np.ndarray]:
        return assembly.closed(self.closing, q, qd, anywhere=anywhere)

    def near(self, q: np.ndarray) -> np.ndarray:
        return assembly.near(self.closing, q)

    def towards(self, q: np.ndarray, target: np.ndarray, k: int) -> np.ndarray:
        return assembly.towards(self.closing, q, target, k)

    def accelerations(
        self, f_ext: Mapping[str, Any] | None, frames: Sequence[str], **options: Any
    ) -> Accelerations:
        def accelerate(t: float, *arrays: Any) -> np.ndarray:
            loads = {**(f_ext or {}), **dict(zip(frames, arrays[3:], strict=True))}
            here = self if self.t is None else self.moved(np.asarray(t))
            qdd: np.ndarray = here.caller(name, loads, **given)(*arrays[:3])[0]
            return qdd

        name, given = "constrained_dynamics", {"method": "fastest", "stabilization": None}
        given |= {"tolerance": TOLERANCE} | options
        return accelerate

    def multipliers(self, q: Any, qd: Any, tau: Any) -> np.ndarray:
        found = self.solver.constrained_dynamics(
            "constrained_dynamics", (q, qd, tau), (), tolerance=TOLERANCE, threads=None
        )
        return found[1]

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
        load = Load(*wrench_arguments(self.model, f_ext))
        return kind(self, partial(OWN[name], self), load, options)

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

    # Functions that loops change ----------------------------------------------------------------

    def _refuse_method(self, what: str, method: str) -> None:
        if method != "fastest":
            problem = (
                f"method {method!r} is of trees, and robot {self.model.name!r} has loops or "
                "couplings"
            )
            raise InputError("E-LOOP-035", problem, "leave it out", part=what)

    def _constrained_dynamics(
        self,
        *arrays: Any,
        load: Load,
        out: Any,
        threads: int | None,
        stabilization: Any,
        tolerance: float,
        **options: Any,
    ) -> Any:
        results = self.solver.constrained_dynamics(
            "constrained_dynamics",
            arrays,
            load.forces,
            tolerance=tolerance,
            threads=threads,
            stabilization=0.0
            if stabilization is None
            else checked_step(stabilization, "constrained_dynamics: stabilization"),
            wrenches=load.keys,
            **options,
        )
        return delivered("constrained_dynamics", results, out)

    def _forward_dynamics(
        self, *arrays: Any, load: Load, out: Any, threads: int | None, **options: Any
    ) -> Any:
        qdd, _ = self.solver.constrained_dynamics(
            "forward_dynamics",
            arrays,
            load.forces,
            tolerance=TOLERANCE,
            threads=threads,
            wrenches=load.keys,
            **options,
        )
        return filled("forward_dynamics", qdd, out)

    def _hybrid_dynamics(
        self,
        *arrays: Any,
        load: Load,
        out: Any,
        threads: int | None,
        known: Any,
        **options: Any,
    ) -> Any:
        found = self.solver.hybrid_dynamics(
            arrays,
            load.forces,
            checked_joints(self.model, "hybrid_dynamics", known),
            tolerance=TOLERANCE,
            threads=threads,
            wrenches=load.keys,
            **options,
        )
        return filled("hybrid_dynamics", found, out)

    def _inverse_dynamics(
        self,
        *arrays: Any,
        load: Load,
        out: Any,
        threads: int | None,
        actuated: Any,
        weights: Any,
        method: str,
        **options: Any,
    ) -> Any:
        self._refuse_method("inverse_dynamics(actuated=)", method)
        found = self.solver.actuator_forces(
            arrays,
            load.forces,
            self.loops.freedoms if actuated is None else actuated,
            weights,
            tolerance=TOLERANCE,
            threads=threads,
            wrenches=load.keys,
            **options,
        )
        return filled("inverse_dynamics", found, out)

    def _mass_matrix(
        self,
        *arrays: Any,
        load: Load,
        out: Any,
        threads: int | None,
        coordinates: str,
        method: str,
    ) -> Any:
        self._refuse_method('mass_matrix(coordinates="independent")', method)
        M = self.solver.mass_matrix(*arrays, tolerance=TOLERANCE, threads=threads)
        return filled("mass_matrix", M, out)

    def _mass_matrix_inverse(
        self,
        *arrays: Any,
        load: Load,
        out: Any,
        threads: int | None,
        coordinates: str | None,
        method: str,
    ) -> Any:
        if coordinates is None:
            problem = (
                f"robot {self.model.name!r} has loops or couplings, and does not accelerate by the "
                "inverse of its tree"
            )
            remedy = 'say coordinates="independent", or "tree"'
            raise ModelError("E-ROBOT-017", problem, remedy, part="mass_matrix_inverse")
        self._refuse_method('mass_matrix_inverse(coordinates="independent")', method)
        M = self.solver.mass_matrix(*arrays, tolerance=TOLERANCE, threads=threads)
        return filled("mass_matrix_inverse", np.linalg.inv(M), out)

    def _operational_inertia_inverse(
        self,
        *arrays: Any,
        load: Load,
        out: Any,
        threads: int | None,
        frame: Any,
        method: str,
        **view: Any,
    ) -> Any:
        name, (q,) = "operational_inertia_inverse", arrays
        self._refuse_method(name, method)
        G, M = self.solver.reduced(name, q, threads=threads)
        names = checked_frame(self.model, name, frame, True)
        rows = [
            self.caller("jacobian", frame=each, **view)(q, threads=threads)
            for each in ([names] if isinstance(names, str) else names)
        ]
        J = np.concatenate(rows, axis=-2) @ G
        answer = J @ np.linalg.solve(M, np.swapaxes(J, -1, -2))
        return filled(name, answer.astype(M.dtype), out)

    def _joint_reactions(self, *arrays: Any, load: Load, out: Any, threads: int | None) -> Any:
        compiled = self.bound(self.function("closed_joint_reactions", wrenches=load.keys))
        return compiled(*arrays, *load.forces, out=out, threads=threads)

    def _linearize(
        self,
        *arrays: Any,
        load: Load,
        out: Any,
        threads: int | None,
        coordinates: str,
        dissipation: bool,
    ) -> Any:
        pair = self.solver.linearize(
            arrays,
            load.forces,
            tolerance=TOLERANCE,
            threads=threads,
            dissipation=dissipation,
            wrenches=load.keys,
        )
        return delivered("linearize", pair, out)


OWN: dict[str, Callable[..., Any]] = {
    "constrained_dynamics": Closed._constrained_dynamics,
    "forward_dynamics": Closed._forward_dynamics,
    "hybrid_dynamics": Closed._hybrid_dynamics,
    "inverse_dynamics": Closed._inverse_dynamics,
    "mass_matrix": Closed._mass_matrix,
    "mass_matrix_inverse": Closed._mass_matrix_inverse,
    "operational_inertia_inverse": Closed._operational_inertia_inverse,
    "joint_reactions": Closed._joint_reactions,
    "linearize": Closed._linearize,
}
"""Functions that are not those of the tree."""

TREES: dict[str, Callable[..., bool]] = {
    "inverse_dynamics": lambda actuated=None, weights=None, **_: actuated is weights is None,
    "mass_matrix": lambda coordinates="tree", **_: coordinates == "tree",
}
"""Options with which some of these are the tree's all the same."""
