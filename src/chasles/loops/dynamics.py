"""Dynamics of a robot with closed loops: compiled for one choice of equations, checked by state."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import wraps
from typing import Any

import numpy as np

from chasles.libraries import refuse
from chasles.loops.choice import choose
from chasles.loops.closing import RANK, Loops, at_index, check_tolerance
from chasles.loops.linear_system import linear_system
from chasles.loops.reports import OverDetermined, SingularPosition, UnderActuated
from chasles.model import Model
from chasles.model.closure import Closure
from chasles.numeric.results import delivered

WEAK = 1e-8
"""Where a margin is below this, the compiled equations have lost more than half of their digits,
and the state is solved again by singular values."""

TOLERANCE = 1e-6
"""Beyond this distance from closed (rad, and parts of a loop's size) dynamics are refused."""

AGREE = 1e-7
"""Known accelerations may contradict each other by this part of the largest of them (or of 1)."""

Compile = Callable[..., Any]
"""Compiles a function of a robot: called with its name and options."""


class ClosedLoops:
    """Functions of closed loops; `closed` makes the robot with a closure chosen."""

    def __init__(self, loops: Loops, tree: Compile, closed: Callable[[Closure], Any]) -> None:
        self.loops, self._tree, self._closed = loops, tree, closed
        self._chosen: dict[tuple[int, ...], Any] = {}
        self._ready: dict[tuple[Any, ...], Any] = {}

    def at(self, time: np.ndarray) -> "ClosedLoops":
        """The same, with all that is compiled, at another time (...), in s."""
        moved = copy(self)
        moved.loops = self.loops.at(time)
        return moved

    def _of_tree(self, name: str, **options: Any) -> Any:
        """A function of the tree at this time."""
        return self._tree(name, **options).at(self.loops.time)

    @property
    def model(self) -> Model:
        """The robot's mechanism with the closure that takes fewest operations."""
        return self._robot(None).model

    def _function(self, given: np.ndarray | None = None) -> Compile:
        """Functions that take these freedoms as given, or whichever take fewest operations.

        Given ones may be more than are independent: then fewer equations are left to solve.
        """
        function = self._robot(given).function
        return lambda name, **options: function(name, **options).at(self.loops.time)

    def _robot(self, given: np.ndarray | None) -> Any:
        key = () if given is None else tuple(map(int, given))
        if key not in self._chosen:
            loops = self.loops
            able = np.delete(np.arange(loops.model.nv), list(key))
            closure = choose(
                loops.reference_matrix, loops.rows, loops.columns, loops.rank(able), able
            )
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
        refuse(name, *arrays, *forces)
        key = (stabilization, *options.values())
        compiled = self._ready.get(key)
        if compiled is None:
            compiled = self._ready[key] = self._robot(None).function(
                "constrained_dynamics", stabilization=stabilization, **options
            )
        here = compiled.at(self.loops.time)
        if threads is None:
            qdd, lam, health = here.fast(*arrays, *forces)
        else:
            qdd, lam, health = here(*arrays, *forces, threads=threads)
        if self._weak(name, arrays[0], health, tolerance):
            return self._by_singular_values(arrays, forces, stabilization, **options)
        return qdd, lam

    def plain(self, full: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        """`forward_dynamics` with less overhead where no option is given and the state is good."""
        fast = self._function()("constrained_dynamics", stabilization=0.0).fast

        @wraps(full)
        def forward_dynamics(
            q: Any, qd: Any, tau: Any, *, out: Any = None, **options: Any
        ) -> np.ndarray:
            if not options and type(q) is np.ndarray:
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
        self, arrays: Sequence[Any], forces: Sequence[Any], stabilization: float, **options: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same by an orthonormal basis of the forces of the loops, whatever rows are good."""
        q, qd, tau = (np.asarray(a, dtype=float) for a in arrays)
        loops = self.loops
        options.pop("method", None)
        f = tau - self._of_tree("bias_forces", **options)(q, qd, *forces)
        H, K, k = (
            self._of_tree("mass_matrix")(q),
            loops.matrix(q),
            self._of_tree("loop_bias")(q, qd),
        )
        if stabilization:
            a = 1.0 / stabilization
            slip = np.einsum("...mv,...v->...m", loops.raw_matrix(q), qd) - self._of_tree(
                "loop_rate"
            )(q)
            k = k - 2.0 * a * slip - a * a * self._of_tree("loop_residual")(q)
        return self._solved(q, H, f, K, loops.rows * k, np.arange(loops.model.nv))

    def _solved(
        self,
        q: np.ndarray,
        H: np.ndarray,
        f: np.ndarray,
        K: np.ndarray,
        k: np.ndarray,
        free: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """qdd of the freedoms `free`, to which H and f belong, and multipliers.

        K, k: dimensionless, K over all freedoms.
        """
        loops, rank = self.loops, self.loops.rank(free)
        U, s, Vt = np.linalg.svd(K[..., free], full_matrices=False)
        if rank:
            self._check_rank(q, s, rank)
        basis = Vt[..., :rank, :] / loops.columns[free]
        right = np.einsum("...mr,...m->...r", U[..., :rank], k) / s[..., :rank]
        turned = np.linalg.solve(H, np.swapaxes(basis, -1, -2))
        fall = np.linalg.solve(H, f[..., None])[..., 0]
        A = basis @ turned
        mu = np.linalg.solve(A, (right - np.einsum("...rv,...v->...r", basis, fall))[..., None])
        qdd = fall + (turned @ mu)[..., 0]
        lam = loops.rows * np.einsum("...mr,...r->...m", U[..., :rank], mu[..., 0] / s[..., :rank])
        return qdd, lam

    def _check_rank(self, q: np.ndarray, s: np.ndarray, rank: int) -> None:
        loops = self.loops
        low = s[..., rank - 1] <= RANK * s[..., 0]
        if np.any(low):
            lead = s.shape[:-1]
            bad = int(np.flatnonzero(np.ravel(low))[0])
            loops.check_regular(loops.matrix(q))
            raise SingularPosition(
                f"robot {loops.model.name!r}: singular position{at_index(bad, lead)}: the loops "
                f"leave more freedoms here than elsewhere; move away from it"
            )

    # Some accelerations known, some forces ------------------------------------------------------

    def hybrid_dynamics(
        self,
        arrays: Sequence[Any],
        forces: Sequence[Any],
        known: tuple[str, ...],
        *,
        tolerance: float,
        threads: int | None,
        **options: Any,
    ) -> np.ndarray:
        """Forces of the known joints, accelerations of the others."""
        loops = self.loops
        given = np.array(
            [k for k, i in enumerate(loops.owners) if loops.model.bodies[i].data.name in known],
            dtype=int,
        )
        compiled = self._function(given)("constrained_hybrid_dynamics", known=known, **options)
        found, left, health = compiled(*arrays, *forces, threads=threads)
        if self._weak("hybrid_dynamics", arrays[0], health, tolerance):
            found, left = self._hybrid_by_singular_values(arrays, forces, given, **options)
        self._check_agree(given, np.asarray(arrays[2], dtype=float), loops.rows * left)
        return np.asarray(found)

    def _hybrid_by_singular_values(
        self, arrays: Sequence[Any], forces: Sequence[Any], given: np.ndarray, **options: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same, and what is left of the equations of the loops, whatever rows are good."""
        options.pop("method", None)
        q, qd, x = (np.asarray(a, dtype=float) for a in arrays)
        loops, free = self.loops, np.delete(np.arange(self.loops.model.nv), given)
        H, A = self._of_tree("mass_matrix")(q), self._of_tree("loop_matrix")(q)
        h, k = (
            self._of_tree("bias_forces", **options)(q, qd, *forces),
            self._of_tree("loop_bias")(q, qd),
        )
        lead = np.broadcast_shapes(h.shape[:-1], x.shape[:-1])
        qdd, tau = np.zeros((*lead, x.shape[-1])), np.zeros((*lead, x.shape[-1]))
        qdd[..., given], tau[..., free] = x[..., given], x[..., free]
        f = tau - h - np.einsum("...ij,...j->...i", H, qdd)
        right = loops.rows * (k - np.einsum("...mv,...v->...m", A, qdd))
        part = H[..., free[:, None], free]
        qdd[..., free], lam = self._solved(
            np.broadcast_to(q, (*lead, q.shape[-1])),
            part,
            f[..., free],
            loops.matrix(q),
            right,
            free,
        )
        needed = np.einsum("...ij,...j->...i", H, qdd) + h - np.einsum("...mv,...m->...v", A, lam)
        found = qdd.copy()
        found[..., given] = needed[..., given]
        return found, np.einsum("...mv,...v->...m", A, qdd) - k

    def _check_agree(self, given: np.ndarray, x: np.ndarray, left: np.ndarray) -> None:
        """Known accelerations may be more than are free, if the loops allow them together."""
        loops = self.loops
        largest = np.max(np.abs(x[..., given] / loops.columns[given]), axis=-1, initial=1.0)
        size = np.linalg.norm(left, axis=-1)
        bad = ~(size <= AGREE * largest) & np.isfinite(size)
        if not np.any(bad):
            return
        worst = np.unravel_index(int(np.argmax(np.where(bad, size, 0.0))), bad.shape)
        at = f" at index {tuple(map(int, worst))}" if worst else ""
        raise OverDetermined(
            f"robot {loops.model.name!r}: accelerations of {loops.names(loops.confined(given))} "
            f"are known{at}, which are more than its loops leave free, and they contradict "
            f"{loops.farthest(left[worst])} (rad/s2, and parts of its size); take accelerations "
            "that complete(q, yd, ydd) gives, or leave some of these joints out of known"
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
        refuse("inverse_dynamics", *arrays, *forces)
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
        if not self._weak("inverse_dynamics", arrays[0], health, tolerance):
            return np.asarray(u)
        q = np.asarray(arrays[0], dtype=float)
        G, _ = self.loops.carried(q, chosen)
        tau = self._of_tree("inverse_dynamics", **options)(*arrays, *forces)
        gains = 1.0 / np.array(heavy)
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
        refuse("mass_matrix of independent coordinates", q)
        M, health = self._function(self.loops.independent)("independent_mass_matrix")(
            q, threads=threads
        )
        if not self._weak("mass_matrix", q, health, tolerance):
            return np.asarray(M)
        at = np.asarray(q, dtype=float)
        G, _ = self.loops.carried(at, self.loops.independent)
        return np.asarray(np.swapaxes(G, -1, -2) @ self._of_tree("mass_matrix")(at) @ G)

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
        A, B = linear_system(self.loops, self._of_tree, motion, forces, threads=threads, **options)
        return A.astype(qdd.dtype), B.astype(qdd.dtype)


def _worst(health: np.ndarray) -> tuple[float, float]:
    """The largest distance from closed, squared, and the least margin, of all states."""
    if health.ndim == 1:
        gap, margin = health.tolist()
        return gap, margin
    gaps, margins = health[..., 0], health[..., 1]
    return float(np.max(gaps, initial=0.0)), float(np.min(margins, initial=1.0))
