"""Dynamics of a robot with closed loops: compiled for one choice of equations, checked by state."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np

from chasles.loops.choice import choose
from chasles.loops.closing import RANK, Loops, at_index, check_tolerance
from chasles.loops.linear_system import linear_system
from chasles.loops.reports import SingularPosition, UnderActuated
from chasles.model import Model
from chasles.model.closure import Closure
from chasles.numeric.results import delivered

WEAK = 1e-4
"""Where a margin is below this (a pivot at a hundredth of its start, or of what stands beside it),
the compiled equations lose digits, and the state is solved again by singular values."""

TOLERANCE = 1e-6
"""Beyond this distance from closed (rad, and parts of a loop's size) dynamics are refused."""

Compile = Callable[..., Any]
"""Compiles a function of a robot: called with its name and options."""


class ClosedLoops:
    """Functions of closed loops; `closed` makes the robot with a closure chosen."""

    def __init__(self, loops: Loops, tree: Compile, closed: Callable[[Closure], Any]) -> None:
        self.loops, self._tree, self._closed = loops, tree, closed
        self._chosen: dict[tuple[int, ...], Any] = {}
        self._ready: dict[tuple[Any, ...], Any] = {}

    @property
    def model(self) -> Model:
        """The robot's mechanism with the closure that takes fewest operations."""
        return self._robot(None).model

    def _function(self, independent: np.ndarray | None = None) -> Compile:
        """Functions with these freedoms independent, or whichever take fewest operations."""
        return self._robot(independent).function

    def _robot(self, independent: np.ndarray | None) -> Any:
        key = () if independent is None else tuple(map(int, independent))
        if key not in self._chosen:
            loops = self.loops
            able = np.delete(np.arange(loops.model.nv), list(key))
            K = self._tree("loop_matrix")(loops.references)
            closure = choose(K, loops.rows, loops.columns, len(loops.dependent), able)
            self._chosen[key] = self._closed(closure)
        return self._chosen[key]

    # Accelerations ----------------------------------------------------------------------------

    def constrained_dynamics(
        self,
        name: str,
        arrays: Sequence[Any],
        forces: Sequence[Any],
        *,
        tolerance: float,
        threads: int | None,
        stabilization: float = 0.0,
        **options: Any,
    ) -> tuple[np.ndarray, np.ndarray]:
        """qdd and multipliers; name: what was asked for, in messages."""
        check_tolerance(name, tolerance)
        key = (stabilization, *options.values())
        compiled = self._ready.get(key)
        if compiled is None:
            compiled = self._ready[key] = self._function()(
                "constrained_dynamics", stabilization=stabilization, **options
            )
        if threads is None:
            qdd, lam, health = compiled.fast(*arrays, *forces)
        else:
            qdd, lam, health = compiled(*arrays, *forces, threads=threads)
        if self._weak(name, arrays[0], health, tolerance):

            def again(*states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                return self._by_singular_values(states, stabilization, **options)

            _mend((qdd, lam), health, again, (*arrays, *forces))
        return qdd, lam

    def plain(self, full: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        """`forward_dynamics` with less overhead where no option is given and the state is good."""
        fast = self._function()("constrained_dynamics", stabilization=0.0).fast

        @wraps(full)
        def forward_dynamics(
            q: Any, qd: Any, tau: Any, *, out: Any = None, **options: Any
        ) -> np.ndarray:
            if not options:
                qdd, _, health = fast(q, qd, tau)
                gap, margin = _worst(health)
                if gap <= TOLERANCE * TOLERANCE and margin > WEAK:
                    return qdd if out is None else delivered(full.__name__, (qdd,), (out,))[0]
            return full(q, qd, tau, out=out, **options)

        return forward_dynamics

    def _weak(self, name: str, q: Any, health: np.ndarray, tolerance: float) -> bool:
        """Whether some state is near a singular position; open loops are refused."""
        gap, margin = _worst(health)
        if not gap <= tolerance * tolerance:
            self.loops.check_closed(name, np.asarray(q, dtype=float), tolerance)
        return not margin > WEAK

    def _by_singular_values(
        self, arrays: Sequence[np.ndarray], stabilization: float, **options: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same by an orthonormal basis of the motions that the loops allow.

        Whatever rows are good; and H is not divided by, so that light links may be as they are.
        """
        q, qd, tau, *forces = arrays
        loops, rank = self.loops, len(self.loops.dependent)
        options.pop("method", None)
        f = tau - self._tree("bias_forces", **options)(q, qd, *forces)
        H, K, k = self._tree("mass_matrix")(q), loops.matrix(q), self._tree("loop_bias")(q, qd)
        if stabilization:
            a = 1.0 / stabilization
            rate = _times(self._tree("loop_matrix")(q), qd)
            k = k - 2.0 * a * rate - a * a * self._tree("loop_residual")(q)
        U, s, Vt = np.linalg.svd(K)
        self._check_rank(q, s)
        U, s, V = U[..., :rank], s[..., :rank], loops.columns[:, None] * np.swapaxes(Vt, -1, -2)
        across, along = V[..., :rank], V[..., rank:]
        needed = _times(across, _times(np.swapaxes(U, -1, -2), loops.rows * k) / s)
        ways = np.swapaxes(along, -1, -2)
        free = _times(ways, f - _times(H, needed))
        qdd = needed + (along @ np.linalg.solve(ways @ H @ along, free[..., None]))[..., 0]
        left = _times(np.swapaxes(across, -1, -2), _times(H, qdd) - f)
        return qdd, loops.rows * _times(U, left / s)

    def _check_rank(self, q: np.ndarray, s: np.ndarray) -> None:
        rank, loops = len(self.loops.dependent), self.loops
        low = s[..., rank - 1] <= RANK * s[..., 0]
        if np.any(low):
            lead = q.shape[:-1]
            bad = int(np.flatnonzero(np.ravel(low))[0])
            loops.check_regular(loops.matrix(q), lead)
            raise SingularPosition(
                f"robot {loops.model.name!r}: singular position{at_index(bad, lead)}: the loops "
                f"leave more freedoms here than elsewhere; move away from it"
            )

    # Actuator forces --------------------------------------------------------------------------

    def actuator_forces(
        self,
        arrays: Sequence[Any],
        forces: Sequence[Any],
        actuated: Sequence[str],
        weights: Mapping[str, float] | None,
        *,
        tolerance: float,
        threads: int | None,
        **options: Any,
    ) -> np.ndarray:
        """Forces at the actuated freedoms, zero elsewhere."""
        given = self.loops.indices(actuated, "to actuate")
        chosen = self.loops.among(given)
        if chosen is None:
            raise UnderActuated(
                f"robot {self.loops.model.name!r}: actuators at {self.loops.names(given)} cannot "
                f"move all of its {len(self.loops.independent)} freedoms; actuate for example "
                f"{self.loops.names(self.loops.independent)}"
            )
        heavy = self._weights(given, weights)
        compiled = self._function(chosen)(
            "actuator_forces", actuated=tuple(map(int, given)), weights=heavy, **options
        )
        u, health = compiled(*arrays, *forces, threads=threads)
        if self._weak("inverse_dynamics", arrays[0], health, tolerance):

            def again(*states: np.ndarray) -> tuple[np.ndarray]:
                return (self._shared(chosen, given, heavy, states, **options),)

            _mend((u,), health, again, (*arrays, *forces))
        return np.asarray(u)

    def _shared(
        self,
        chosen: np.ndarray,
        given: np.ndarray,
        weights: Sequence[float],
        arrays: Sequence[np.ndarray],
        **options: Any,
    ) -> np.ndarray:
        """The same with the dependent rates by singular values."""
        G, _ = self.loops.carried(arrays[0], chosen)
        tau = self._tree("inverse_dynamics", **options)(*arrays)
        gains = 1.0 / np.array(weights)
        used = G[..., given, :]
        right = np.einsum("...vm,...v->...m", G, tau)
        N = np.swapaxes(used, -1, -2) @ (gains[:, None] * used)
        u = np.zeros_like(tau)
        x = np.linalg.solve(N, right[..., None])
        u[..., given] = gains * (used @ x)[..., 0]
        return u

    def _weights(self, given: np.ndarray, weights: Mapping[str, float] | None) -> tuple[float, ...]:
        names = [self.loops.freedoms[k] for k in given]
        chosen = dict.fromkeys(names, 1.0)
        for name, value in (weights or {}).items():
            if name not in chosen:
                raise ValueError(
                    f"inverse_dynamics: weights name {name!r}, which is not among the actuated "
                    f"{', '.join(map(repr, names))}"
                )
            if not (np.isfinite(value) and value > 0.0):
                raise ValueError(
                    f"inverse_dynamics: the weight of {name!r} must be positive, not {value!r}"
                )
            chosen[name] = float(value)
        return tuple(chosen.values())

    # The mass matrix --------------------------------------------------------------------------

    def mass_matrix(self, q: Any, *, tolerance: float, threads: int | None) -> np.ndarray:
        """Of the independent coordinates."""
        M, health = self._function(self.loops.independent)("independent_mass_matrix")(
            q, threads=threads
        )
        if self._weak("mass_matrix", q, health, tolerance):

            def again(at: np.ndarray) -> tuple[np.ndarray]:
                G, _ = self.loops.carried(at, self.loops.independent)
                return (np.swapaxes(G, -1, -2) @ self._tree("mass_matrix")(at) @ G,)

            _mend((M,), health, again, (q,))
        return np.asarray(M)

    # The linear system ------------------------------------------------------------------------

    def linearize(
        self,
        arrays: Sequence[Any],
        forces: Sequence[Any],
        *,
        tolerance: float,
        threads: int | None,
        **options: Any,
    ) -> tuple[np.ndarray, np.ndarray]:
        """A and B of the independent coordinates."""
        qdd, lam = self.constrained_dynamics(
            "linearize",
            arrays,
            forces,
            tolerance=tolerance,
            threads=threads,
            method="fastest",
            **options,
        )
        q, qd, _ = (np.asarray(a, dtype=float) for a in arrays)
        lead = qdd.shape[:-1]
        motion = [np.broadcast_to(a, (*lead, a.shape[-1])) for a in (q, qd, qdd, lam)]
        A, B = linear_system(self.loops, self._tree, motion, forces, threads=threads, **options)
        return A.astype(qdd.dtype), B.astype(qdd.dtype)


def _mend(
    results: Sequence[np.ndarray],
    health: np.ndarray,
    again: Callable[..., Sequence[np.ndarray]],
    arrays: Sequence[Any],
) -> None:
    """Results of weak states in place of those that were compiled; the other states keep theirs."""
    weak = ~(health[..., 1] > WEAK)
    given = [np.asarray(a, dtype=float) for a in arrays]
    states = [np.broadcast_to(a, (*weak.shape, a.shape[-1])) for a in given]
    try:
        found = again(*(a[weak] for a in states))
    except SingularPosition:
        found = [part[weak] for part in again(*states)]  # says which of all states it is
    for result, part in zip(results, found, strict=True):
        result[weak] = part


def _times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A x for each state."""
    return np.einsum("...ij,...j->...i", A, x)


def _worst(health: np.ndarray) -> tuple[float, float]:
    """The largest distance from closed, squared, and the least margin, of all states."""
    if health.ndim == 1:
        gap, margin = health.tolist()
        return gap, margin
    gaps, margins = health[..., 0], health[..., 1]
    return float(np.max(gaps, initial=0.0)), float(np.min(margins, initial=1.0))
