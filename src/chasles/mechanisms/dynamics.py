"""Dynamics of a robot with closed loops: compiled for one choice of equations, checked by state."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial, wraps
from typing import Any

import numpy as np

from chasles.backends.arrays import check_tolerance
from chasles.errors import ArgumentError, ChaslesError, InputError
from chasles.functions.compiled import Compiled, Functions
from chasles.functions.doors import Load, checked_frame, checked_joints, refuse
from chasles.functions.numeric import checked_step, filled
from chasles.mechanisms import singular_values
from chasles.mechanisms.choice import choose
from chasles.mechanisms.closing import Loops
from chasles.mechanisms.linear_system import linear_system
from chasles.mechanisms.openness import at_index, farthest, named
from chasles.mechanisms.reports import OverDetermined, SingularPosition, UnderActuated
from chasles.model import ModelError

WEAK = 1e-4
"""Where a margin is below this (a pivot at a hundredth of its start, or of what stands beside it),
the compiled equations lose digits, and the state is solved again by singular values."""

TOLERANCE = 1e-6
"""Beyond this distance from closed (rad, and parts of a loop's size) dynamics are refused."""

AGREE = 1e-7
"""Known accelerations may contradict each other by this part of the largest of them (or of 1)."""


NO_LOAD = Load()

Compile = Callable[..., Any]
"""Compiles a function of a robot: called with its name and options."""


class ClosedLoops:
    """Functions of closed loops, compiled for choices of their equations."""

    def __init__(self, loops: Loops, functions: Functions) -> None:
        self.loops, self._functions = loops, functions
        self._chosen: dict[tuple[int, ...], Functions] = {}
        self._ready: dict[tuple[Any, ...], Compiled] = {}

    def at(self, time: np.ndarray) -> "ClosedLoops":
        """The same, with all that is compiled, at another time (...), in s."""
        moved = copy(self)
        moved.loops = self.loops.at(time)
        return moved

    @property
    def cheapest(self) -> Functions:
        """Functions of the model with the closure that takes fewest operations."""
        return self._closed_by(None)

    def _function(self, given: np.ndarray | None = None) -> Compile:
        """Functions that take these freedoms as given, or whichever take fewest operations.

        Given ones may be more than are independent: then fewer equations are left to solve.
        """
        functions = self._closed_by(given)
        return lambda name, **options: functions(name, **options).at(self.loops.time)

    def _closed_by(self, given: np.ndarray | None) -> Functions:
        key = () if given is None else tuple(map(int, given))
        if key not in self._chosen:
            loops = self.loops
            able = np.delete(np.arange(loops.model.nv), list(key))
            closure = choose(
                loops.reference_matrix, loops.rows, loops.columns, loops.rank(able), able
            )
            self._chosen[key] = self._functions.closed(closure)
        return self._chosen[key]

    # Accelerations ----------------------------------------------------------------------------

    def constrained_dynamics(
        self,
        *arrays: Any,
        load: Load = NO_LOAD,
        threads: int | None = None,
        stabilization: float | None = None,
        tolerance: float = TOLERANCE,
        name: str = "constrained_dynamics",
        **options: Any,
    ) -> tuple[np.ndarray, np.ndarray]:
        """qdd and multipliers; name: what was asked for, in messages."""
        check_tolerance(name, tolerance)
        forces, options["wrenches"] = load.forces, load.keys
        refuse(name, *arrays, *forces)
        what = f"{name}: stabilization"
        stabilization = 0.0 if stabilization is None else checked_step(stabilization, what)
        key = (stabilization, *options.values())
        with _asked_for(name, "constrained_dynamics"):
            compiled = self._ready.get(key)
            if compiled is None:
                compiled = self._ready[key] = self.cheapest(
                    "constrained_dynamics", stabilization=stabilization, **options
                )
            here = compiled.at(self.loops.time)
            if threads is None:
                qdd, lam, health = here.fast(*arrays, *forces)
            else:
                qdd, lam, health = here(*arrays, *forces, threads=threads)
        rates = () if stabilization else arrays[1:2]
        if self._weak(name, arrays[0], health, tolerance, rates):
            options.pop("method", None)
            again = partial(
                singular_values.constrained_dynamics, stabilization=stabilization, **options
            )
            self._mend((qdd, lam), health, again, (*arrays, *forces))
        return qdd, lam

    def forward_dynamics(self, *arrays: Any, **given: Any) -> np.ndarray:
        """qdd."""
        return self.constrained_dynamics(*arrays, name="forward_dynamics", **given)[0]

    def plain(self, full: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        """`forward_dynamics` with less overhead where no option is given and the state is good."""
        fast = self._function()("constrained_dynamics", stabilization=0.0).fast

        @wraps(full)
        def forward_dynamics(
            q: Any, qd: Any, tau: Any, *, out: Any = None, **options: Any
        ) -> np.ndarray:
            if not options and type(q) is np.ndarray:
                try:
                    qdd, _, health = fast(q, qd, tau)
                except (TypeError, ValueError):
                    return full(q, qd, tau, out=out)  # says it of the function asked for
                gap, margin = _worst(health)
                if gap <= TOLERANCE * TOLERANCE and margin > WEAK:
                    return filled("forward_dynamics", qdd, out)
            return full(q, qd, tau, out=out, **options)

        return forward_dynamics

    def _weak(
        self,
        name: str,
        q: Any,
        health: np.ndarray,
        tolerance: float,
        rates: Sequence[Any] = (),
    ) -> bool:
        """Whether some state is near a singular position; open loops are refused.

        rates: qd, or qd and qdd, where these must keep the loops closed.
        """
        gap, margin = _worst(health)
        if not gap <= tolerance * tolerance:
            self.loops.check_closed(name, np.asarray(q, dtype=float), tolerance)
            self.loops.check_rates(name, q, *rates, tolerance=tolerance)
        return not margin > WEAK

    def _mend(
        self,
        results: Sequence[np.ndarray],
        health: np.ndarray,
        again: Callable[[Loops, Sequence[np.ndarray]], Sequence[np.ndarray]],
        arrays: Sequence[Any],
    ) -> None:
        """Results of weak states in place of those that were compiled; others keep theirs."""
        weak = ~(health[..., 1] > WEAK)
        given = [np.asarray(a, dtype=float) for a in arrays]
        states = [np.broadcast_to(a, (*weak.shape, a.shape[-1])) for a in given]
        times = np.broadcast_to(self.loops.time, weak.shape)
        try:
            found = again(self.loops.at(times[weak]), [a[weak] for a in states])
        except SingularPosition:
            every = again(self.loops.at(times), states)  # says which of all states it is
            found = [part[weak] for part in every]
        for result, part in zip(results, found, strict=True):
            result[weak] = part

    # Some accelerations known, some forces ------------------------------------------------------

    def hybrid_dynamics(
        self, *arrays: Any, load: Load, threads: int | None, known: Any, **options: Any
    ) -> np.ndarray:
        """Forces of the known joints, accelerations of the others."""
        forces, options["wrenches"] = load.forces, load.keys
        refuse("hybrid_dynamics", *arrays, *forces)
        loops = self.loops
        known = checked_joints(loops.model, "hybrid_dynamics", known)
        given = np.array(
            [k for k, i in enumerate(loops.owners) if loops.model.bodies[i].data.name in known],
            dtype=int,
        )
        with _asked_for("hybrid_dynamics", "constrained_hybrid_dynamics"):
            compiled = self._function(given)("constrained_hybrid_dynamics", known=known, **options)
            found, left, health = compiled(*arrays, *forces, threads=threads)
        if self._weak("hybrid_dynamics", arrays[0], health, TOLERANCE, arrays[1:2]):
            options.pop("method", None)
            again = partial(singular_values.hybrid_dynamics, given=given, **options)
            self._mend((found, left), health, again, (*arrays, *forces))
        self._check_agree(given, np.asarray(arrays[2], dtype=float), loops.rows * left)
        return np.asarray(found)

    def _check_agree(self, given: np.ndarray, x: np.ndarray, left: np.ndarray) -> None:
        """Known accelerations may be more than are free, if the loops allow them together."""
        loops = self.loops
        largest = np.max(np.abs(x[..., given] / loops.columns[given]), axis=-1, initial=1.0)
        size = np.linalg.norm(left, axis=-1)
        bad = ~(size <= AGREE * largest) & np.isfinite(size)
        if not np.any(bad):
            return
        worst = int(np.argmax(np.where(bad, size, 0.0)))
        constraint, far = farthest(loops.model, left.reshape(-1, left.shape[-1])[worst])
        raise OverDetermined(
            "E-LOOP-012",
            f"accelerations of {loops.names(loops.confined(given))} are "
            f"known{at_index(worst, bad.shape)}, which are more than its loops leave free, and "
            f"they contradict {named(constraint)} by {far:.3g} (rad/s2, and parts of its size)",
            "take accelerations that complete(q, yd, ydd) gives, or leave some of these joints "
            "out of known",
            part=f"robot {loops.model.name!r}",
        )

    # Actuator forces --------------------------------------------------------------------------

    def actuator_forces(
        self,
        *arrays: Any,
        load: Load,
        threads: int | None,
        actuated: Sequence[str] | None,
        weights: Mapping[str, float] | None,
        method: str,
        **options: Any,
    ) -> np.ndarray:
        """Forces at the actuated freedoms, zero elsewhere."""
        self._refuse_method("inverse_dynamics(actuated=)", method)
        forces, options["wrenches"] = load.forces, load.keys
        refuse("inverse_dynamics", *arrays, *forces)
        chosen = self.loops.freedoms if actuated is None else actuated
        given = self.loops.indices(chosen, "to actuate")
        free = self.loops.among(given)
        if free is None:
            named = (
                f"actuators at {self.loops.names(given)}"
                if len(given)
                else "no actuators, as given,"
            )
            problem = f"{named} cannot move all of its {len(self.loops.independent)} freedoms"
            remedy = f"actuate for example {self.loops.names(self.loops.independent)}"
            part = f"robot {self.loops.model.name!r}"
            raise UnderActuated("E-LOOP-013", problem, remedy, part=part)
        heavy = self._weights(given, weights)
        with _asked_for("inverse_dynamics", "actuator_forces"):
            compiled = self._function(free)(
                "actuator_forces", actuated=tuple(map(int, given)), weights=heavy, **options
            )
            u, health = compiled(*arrays, *forces, threads=threads)
        if self._weak("inverse_dynamics", arrays[0], health, TOLERANCE, arrays[1:]):

            def again(loops: Loops, states: Sequence[np.ndarray]) -> list[np.ndarray]:
                return [
                    singular_values.actuator_forces(loops, states, free, given, heavy, **options)
                ]

            self._mend((u,), health, again, (*arrays, *forces))
        return np.asarray(u)

    def _weights(self, given: np.ndarray, weights: Mapping[str, float] | None) -> tuple[float, ...]:
        if not isinstance(weights or {}, Mapping):
            problem = f"weights must be {{freedom: weight}}, not {type(weights).__name__}"
            raise ArgumentError("E-LOOP-014", problem, part="inverse_dynamics")
        names = [self.loops.freedoms[k] for k in given]
        chosen = dict.fromkeys(names, 1.0)
        for name, value in (weights or {}).items():
            if name not in chosen:
                problem = (
                    f"weights name {name!r}, which is not among the actuated "
                    f"{', '.join(map(repr, names))}"
                )
                raise InputError("E-LOOP-015", problem, part="inverse_dynamics")
            if not (isinstance(value, int | float) and np.isfinite(value) and value > 0.0):
                problem = f"the weight of {name!r} must be positive, not {value!r}"
                raise InputError("E-LOOP-016", problem, part="inverse_dynamics")
            chosen[name] = float(value)
        return tuple(chosen.values())

    # The mass matrix --------------------------------------------------------------------------

    def reduced(
        self, name: str, q: Any, *, threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """G with qd = G yd at closed positions, and the mass matrix of the independent yd."""
        M = self.mass_matrix(q, threads=threads, name=name)
        return self.loops.carried(np.asarray(q, dtype=float), self.loops.independent)[0], M

    def mass_matrix(
        self,
        q: Any,
        *,
        threads: int | None,
        method: str = "fastest",
        name: str = "mass_matrix",
        **_: Any,
    ) -> np.ndarray:
        """Of the independent coordinates; name: what was asked for, in messages."""
        self._refuse_method(f'{name}(coordinates="independent")', method)
        refuse(f"{name} of independent coordinates", q)
        with _asked_for(name, "independent_mass_matrix"):
            M, health = self._function(self.loops.independent)("independent_mass_matrix")(
                q, threads=threads
            )
        if self._weak(name, q, health, TOLERANCE):

            def again(loops: Loops, states: Sequence[np.ndarray]) -> list[np.ndarray]:
                return [singular_values.mass_matrix(loops, *states)]

            self._mend((M,), health, again, (q,))
        return np.asarray(M)

    def mass_matrix_inverse(self, q: Any, *, coordinates: str | None, **given: Any) -> np.ndarray:
        """Of the independent coordinates, which must be asked for."""
        if coordinates is None:
            problem = (
                f"robot {self.loops.model.name!r} has loops or couplings, and does not accelerate "
                "by the inverse of its tree"
            )
            remedy = 'say coordinates="independent", or "tree"'
            raise ModelError("E-ROBOT-017", problem, remedy, part="mass_matrix_inverse")
        return np.linalg.inv(self.mass_matrix(q, name="mass_matrix_inverse", **given))

    def operational_inertia_inverse(
        self, q: Any, *, load: Load, threads: int | None, frame: Any, method: str, **view: Any
    ) -> np.ndarray:
        """J G (G' M G)^-1 G' J' of one frame or several."""
        name, model = "operational_inertia_inverse", self.loops.model
        self._refuse_method(name, method)
        G, M = self.reduced(name, q, threads=threads)
        names = checked_frame(model, name, frame, True)
        rows = [
            self.loops.function("jacobian", frame=each, **view)(q, threads=threads)
            for each in ([names] if isinstance(names, str) else names)
        ]
        J = np.concatenate(rows, axis=-2) @ G
        return np.asarray(J @ np.linalg.solve(M, np.swapaxes(J, -1, -2))).astype(M.dtype)

    # Reactions and the linear system ------------------------------------------------------------

    def joint_reactions(self, *arrays: Any, load: Load, threads: int | None) -> Any:
        """Of the tree under the forces of the loops."""
        compiled = self.cheapest("closed_joint_reactions", wrenches=load.keys)
        return compiled.at(self.loops.time)(*arrays, *load.forces, threads=threads)

    def linearize(
        self, *arrays: Any, load: Load, threads: int | None, coordinates: str, dissipation: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """A and B of the independent coordinates."""
        options: dict[str, Any] = {"threads": threads, "dissipation": dissipation}
        qdd, lam = self.constrained_dynamics(
            *arrays, load=load, name="linearize", method="fastest", **options
        )
        q, qd, _ = (np.asarray(a, dtype=float) for a in arrays)
        lead = qdd.shape[:-1]
        motion = [np.broadcast_to(a, (*lead, a.shape[-1])) for a in (q, qd, qdd, lam)]
        A, B = linear_system(self.loops, motion, load.forces, wrenches=load.keys, **options)
        return A.astype(qdd.dtype), B.astype(qdd.dtype)

    def _refuse_method(self, what: str, method: str) -> None:
        if method != "fastest":
            problem = (
                f"method {method!r} is of trees, and robot {self.loops.model.name!r} has loops or "
                "couplings"
            )
            raise InputError("E-LOOP-035", problem, "leave it out", part=what)


@contextmanager
def _asked_for(name: str, runs: str) -> Iterator[None]:
    """What a function says of wrong arrays and methods, under the name of the one asked for."""
    try:
        yield
    except ChaslesError as error:
        raise error.at(part=name) if error.part == runs else error from None


def _worst(health: np.ndarray) -> tuple[float, float]:
    """The largest distance from closed, squared, and the least margin, of all states."""
    if health.ndim == 1:
        gap, margin = health.tolist()
        return gap, margin
    gaps, margins = health[..., 0], health[..., 1]
    return float(np.max(gaps, initial=0.0)), float(np.min(margins, initial=1.0))
