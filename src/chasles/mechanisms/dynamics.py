"""Forward dynamics of closed loops, compiled separately for each choice of loop equations."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from chasles.algorithms import CLOSED_LOOPS, OPEN
from chasles.backends.arrays import check_tolerance
from chasles.errors import ArgumentError, ChaslesError
from chasles.functions.callers import Caller, Guarded
from chasles.functions.compiled import Compiled, Functions
from chasles.functions.doors import Load, refuse, wrench_arguments
from chasles.functions.numeric import delivered, filled
from chasles.functions.tracing import WrenchKey
from chasles.mechanisms import singular_values
from chasles.mechanisms.closing import REGULAR, Loops, assemble, coordinates
from chasles.mechanisms.mechanism import Accelerations, Mechanism, Timed, check_coordinates
from chasles.mechanisms.ranks import choose
from chasles.mechanisms.reports import LoopError, SingularPosition
from chasles.model import Model, ModelError, build
from chasles.model.given import a_name, checked_step

WEAK = 1e-4
"""Accuracy threshold below which an SVD replaces the compiled equations.

The compiled program returns a measure of accuracy: the square of the ratio of a pivot to its
initial value or to the neighboring pivots. At 1e-4, the pivot is one hundredth of that value.
"""

TOLERANCE = 1e-6
"""Closure error (rad, or relative to loop size) above which dynamics functions raise an error."""

STEP = 0.1
"""Maximum step of an independent coordinate (rad or m) for which loop closure converges."""

NO_LOAD = Load()

Run = Callable[..., Any]
"""Function whose arguments are the arrays of a closed-loop function and the option `threads`."""


@dataclass(frozen=True)
class Solver:
    """Compiled closed-loop program whose last result measures the accuracy in each state.

    In states with low accuracy, the function `again` computes the other results by an SVD. `forces`
    contains wrenches, which are passed after the other arrays. The first `rates` arrays after q are
    velocities or accelerations, which must keep the loops closed within the tolerance.
    """

    mechanism: Mechanism
    name: str
    compiled: Compiled
    again: Callable[[Loops, Sequence[np.ndarray]], Sequence[np.ndarray]]
    forces: Sequence[Any] = ()
    rates: int = 1
    tolerance: float = TOLERANCE

    def __call__(self, *arrays: Any, threads: int | None = None) -> tuple[np.ndarray, ...]:
        return self.at(self.mechanism, (*arrays, *self.forces), threads)

    def first(self, *arrays: Any, threads: int | None = None) -> np.ndarray:
        """Return only the first result of the program."""
        return self.at(self.mechanism, (*arrays, *self.forces), threads)[0]

    def at(
        self, mechanism: Mechanism, arrays: Sequence[Any], threads: int | None = None
    ) -> tuple[np.ndarray, ...]:
        """Run the program with the inputs `arrays`, at the current time of `mechanism`."""
        refuse(self.name, *arrays)
        here = self.compiled.at(mechanism.t)
        try:
            if threads is None:
                *results, health = here(*arrays)
            else:
                *results, health = here(*arrays, threads=threads)
        except ChaslesError as error:
            raise _renamed(error, self.name, self.compiled.recipe.function) from None
        gap, margin = _worst(health)
        if not gap <= self.tolerance * self.tolerance:
            loops, q = mechanism.closing, np.asarray(arrays[0], dtype=float)
            loops.check_closed(self.name, q, self.tolerance)
            loops.check_rates(self.name, q, *arrays[1 : 1 + self.rates], tolerance=self.tolerance)
        if not margin > WEAK:
            self._mend(mechanism.closing, results, health, arrays)
        return tuple(results)

    def _mend(
        self, loops: Loops, results: Sequence[np.ndarray], health: np.ndarray, arrays: Sequence[Any]
    ) -> None:
        """Recompute results by an SVD for states in which the compiled equations lose accuracy."""
        weak = ~(health[..., 1] > WEAK)
        given = [np.asarray(a, dtype=float) for a in arrays]
        states = [np.broadcast_to(a, (*weak.shape, a.shape[-1])) for a in given]
        times = np.broadcast_to(loops.time, weak.shape)
        try:
            found = self.again(loops.at(times[weak]), [a[weak] for a in states])
        except SingularPosition:
            # Solve for all states, so that the error reports the index of the state in the batch.
            every = self.again(loops.at(times), states)
            found = [part[weak] for part in every]
        for result, part in zip(results, found, strict=True):
            result[weak] = part


@dataclass(frozen=True)
class Closing:
    """Closed-loop function with preset options, called with arrays."""

    name: str
    run: Run

    def __call__(self, *arrays: Any, out: Any = None, threads: int | None = None) -> Any:
        found = self.run(*arrays, threads=threads)
        if out is None:
            return found
        put = delivered if isinstance(found, tuple) else filled
        return put(self.name, found, out)

    @property
    def guarded(self) -> Guarded | None:
        """Compiled program, and the limits on its closure errors and margins (see `Guarded`).

        The value is None for functions that do more than run a single compiled program.
        """
        solver = getattr(self.run, "__self__", self.run)
        if not isinstance(solver, Solver) or self.run not in (solver, solver.first):
            return None
        here = solver.compiled.at(solver.mechanism.t)
        shown = 1 if self.run is not solver else len(solver.compiled.interface.outputs) - 1
        limits = solver.tolerance * solver.tolerance, WEAK
        return Guarded(here, solver.compiled.recipe.wrenches, shown, *limits)


_DIVIDING = ("constrained_dynamics", "constrained_hybrid_dynamics")
"""Names of constrained programs that solve for unknown accelerations."""

MASSLESS = 1e-13
"""Relative inertia below which a closed-loop motion counts as massless."""


def _check_inertia(loops: Loops) -> None:
    """Raise an error if a robot with loops can move without moving any mass or inertia."""
    A, H = loops.reference_equations, loops.function("mass_matrix")(loops.references)
    free = np.swapaxes(np.linalg.svd(A)[2][:, len(loops.dependent) :], -1, -2)
    scaled = loops.columns[:, None] * H * loops.columns
    if not free.shape[-1]:
        return
    values, vectors = np.linalg.eigh(np.swapaxes(free, -1, -2) @ scaled @ free)
    share = values[:, 0] / np.max(np.abs(scaled), axis=(-1, -2))
    best = int(np.argmax(share))
    if not share[best] > MASSLESS:
        motion = np.abs(free[best] @ vectors[best, :, 0])
        moving = np.flatnonzero(motion > 0.1 * np.max(motion))
        around, names = loops.around(moving), loops.names(moving)
        place = f" in {around}" if around else ""
        problem = (
            f"the mass matrix is singular, because {names}{place} can move "
            "without moving any mass or inertia"
        )
        remedy = "add mass and inertia to one of the moving links, or armature to one of the joints"
        raise ModelError("E-LOOP-017", problem, remedy, part=loops.part)


class Constrained(Mechanism):
    """Mechanism with loops or couplings: coordinates and forward dynamics."""

    traits = ("it has closed loops",)

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._chosen: dict[tuple[int, ...], Functions] = {}

    # Coordinates --------------------------------------------------------------------------------

    @cached_property
    def loops(self) -> Loops:
        return Loops(self.model, self.function)

    def closed(self, q: Any, qd: Any, *, anywhere: bool) -> tuple[np.ndarray, np.ndarray]:
        loops, positions = self.closing, self.closing.positions
        found = assemble(positions, coordinates(positions, q), None if anywhere else q)
        return found, loops.complete(found, qd[loops.independent], None, REGULAR)

    def near(self, q: np.ndarray) -> np.ndarray:
        here = self.closing.positions
        for shift in (0.0, 0.5, -0.5, 1.0):
            try:
                return assemble(here, coordinates(here, q) + shift, None)
            except LoopError as error:
                last = error
        raise last

    def check_inertia(self, name: str) -> None:
        if self.model.idle and self.model.source.closure is None:
            _check_inertia(self.loops)

    def towards(self, q: np.ndarray, target: np.ndarray, k: int) -> np.ndarray:
        """Move a coordinate to a target in small steps; the dependent coordinates follow."""
        n = list(self.loops.positions.independent).index(k)
        count = max(1, math.ceil(abs(self.difference(q, target)[k]) / STEP))
        for part in range(count):
            y = coordinates(self.loops.positions, q)
            y[n] += self.difference(q, target)[k] / (count - part)
            q = assemble(self.closing.positions, y, q)
        return q

    # Functions ----------------------------------------------------------------------------------

    def function(self, name: str, **options: Any) -> Compiled:
        self.refuse_open("function", name)
        functions = self.closed_by() if name in CLOSED_LOOPS else self.functions
        return functions(name, **options)

    def chosen(self, name: str) -> Model:
        return self.closed_by().model if a_name("a function", name) in CLOSED_LOOPS else self.model

    def closed_by(self, given: Sequence[int] | np.ndarray = ()) -> Functions:
        """Return compiled functions whose independent coordinates include those in `given`."""
        key = tuple(map(int, given))
        if key not in self._chosen:
            loops = self.loops
            able = np.delete(np.arange(loops.model.nv), list(key))
            K, rank = loops.reference_matrix, loops.rank(able)
            scales = loops.rows, loops.columns
            closure = choose(K, *scales, rank, able, self.model.holonomic_rows)
            checked = tuple(map(float, loops.weights(TOLERANCE)))
            self._chosen[key] = self.functions.closed(replace(closure, scales=checked))
        return self._chosen[key]

    def _solver(
        self,
        name: str,
        runs: str,
        again: Callable[..., Sequence[np.ndarray]],
        given: Sequence[int] | np.ndarray = (),
        load: Load = NO_LOAD,
        *,
        rates: int = 1,
        tolerance: float = TOLERANCE,
        dissipation: bool = False,
        **options: Any,
    ) -> Solver:
        """Return a solver that calls the compiled function `runs`.

        `given` contains velocity coordinates that must be among the independent ones. Error
        messages refer to the solver by `name`.
        """
        shared: dict[str, Any] = {"wrenches": load.keys, "dissipation": dissipation}
        again = partial(again, **shared)
        if runs in _DIVIDING:
            self.check_inertia(name)
        try:
            compiled = self.closed_by(given)(runs, **shared, **options)
        except ChaslesError as error:
            raise _renamed(error, name, runs) from None
        return Solver(self, name, compiled, again, load.forces, rates, tolerance)

    def _constrained(
        self,
        load: Load = NO_LOAD,
        *,
        name: str = "constrained_dynamics",
        stabilization: float | None = None,
        tolerance: float = TOLERANCE,
        **options: Any,
    ) -> Solver:
        """Return the solver for qdd and the multipliers; error messages refer to it by `name`."""
        check_tolerance(name, tolerance)
        step = stabilization
        step = 0.0 if step is None else checked_step(step, f"{name}: stabilization")
        again = partial(singular_values.constrained_dynamics, stabilization=step)
        options |= {"stabilization": step, "rates": int(not step), "tolerance": tolerance}
        return self._solver(name, "constrained_dynamics", again, (), load, **options)

    def _accelerated(self, load: Load, **options: Any) -> Run:
        """Return a function that solves for qdd, without the Lagrange multipliers."""
        return self._constrained(load, name="forward_dynamics", **options).first

    _own: ClassVar[dict[str, Callable[..., Run]]] = {
        "constrained_dynamics": _constrained,
        "forward_dynamics": _accelerated,
    }
    """Factories that return a `Run`, for functions with a separate implementation for loops."""

    _trees: ClassVar[dict[str, Callable[..., bool]]] = {}
    """Functions that return True if, with the given options, loops do not change the result."""

    def caller(self, name: str, f_ext: Mapping[str, Any] | None = None, **options: Any) -> Caller:
        if "coordinates" in options:
            check_coordinates(name, options["coordinates"])
        if options.get("coordinates") == "tree" and name in OPEN:
            opened = self._opened.at(self.t).caller(name, f_ext, **options)
            # `partial` hides the attribute `fast`, the fast entry point. That entry point would
            # also be used by calls without options, which must keep the loops closed.
            return partial(opened)
        if name not in self._own or (name in self._trees and self._trees[name](**options)):
            return super().caller(name, f_ext, **options)
        return Closing(name, self._own[name](self, wrench_arguments(self.model, f_ext), **options))

    @cached_property
    def _opened(self) -> Mechanism:
        """The mechanism without its loops and couplings."""
        source = replace(self.model.source, loops=(), couplings=(), independent=(), closure=None)
        model = build(source, mimic=self.model.mimics)
        return Timed(model) if model.timed else Mechanism(model)

    def accelerations(
        self, f_ext: Mapping[str, Any] | None, frames: Sequence[str], **options: Any
    ) -> Accelerations:
        keys, constant = wrench_arguments(self.model, f_ext)
        solve = self._constrained(Load((*keys, *map(WrenchKey, frames))), **options)

        def accelerate(t: float, *arrays: Any) -> np.ndarray:
            return solve.at(self.at(t), (*arrays[:3], *constant, *arrays[3:]))[0]

        return accelerate

    def multipliers(self, q: Any, qd: Any, tau: Any) -> np.ndarray:
        found: np.ndarray = self.constrained_dynamics(q, qd, tau)[1]
        return found

    def loads(self, name: str, multipliers: Any) -> tuple[Any, ...]:
        if multipliers is None:
            problem = f"robot {self.model.name!r} has loops or couplings, but `multipliers` is None"
            remedy = "pass `multipliers`, the second result of constrained_dynamics"
            raise ArgumentError("E-ROBOT-019", problem, remedy, part=name)
        return (multipliers,)

    # Checks -------------------------------------------------------------------------------------

    def require_loops(self, what: str, remedy: str = "use forward_dynamics") -> None:
        pass

    def refuse_loops(self, what: str, remedy: str) -> None:
        problem = f"robot {self.model.name!r} has loops or couplings"
        raise ModelError("E-LOOP-033", problem, remedy, part=what)

    def opens(self, function: str) -> bool:
        return a_name("a function", function) in OPEN

    def refuse_open(self, what: str, function: str) -> None:
        if self.opens(function):
            problem = (
                f"robot {self.model.name!r} has loops or couplings, which a compiled "
                f"{function} would violate"
            )
            raise ModelError("E-ROBOT-015", problem, OPEN[function], part=what)


def _renamed(error: ChaslesError, name: str, runs: str) -> ChaslesError:
    """Return an error that names the requested function instead of the compiled program."""
    return error.at(part=name) if error.part == runs else error


def _worst(health: np.ndarray) -> tuple[float, float]:
    """Return the largest squared closure error and the smallest singularity margin in a batch."""
    if health.ndim == 1:
        gap, margin = health.tolist()
        return gap, margin
    gaps, margins = health[..., 0], health[..., 1]
    return float(np.max(gaps, initial=0.0)), float(np.min(margins, initial=1.0))
