"""Choose independent coordinates, and compute configurations and rates that close the loops."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from chasles.backends.arrays import check_tolerance
from chasles.functions import numeric
from chasles.functions.compiled import Functions
from chasles.functions.doors import leading_shape
from chasles.mechanisms import reports
from chasles.mechanisms.equations import Freedoms
from chasles.mechanisms.ranks import (
    CLOSED,
    RANK,
    SINGULAR,
    choose,
    determine,
    independent_columns,
    margin,
    rank_of,
    times,
)
from chasles.model.description import Closure

REGULAR = 1e-9
"""Largest closure error at which independent velocities are mapped to all joint velocities."""


class Loops(Freedoms):
    """Loops of a model at a given time, with methods to close configurations and check states."""

    @property
    def misfits(self) -> tuple[tuple[str, float], ...]:
        """Names and residuals of loops and couplings whose redundant equations do not hold exactly.

        Residuals of angles are in rad. Residuals of lengths are relative to the size of the loop.
        """
        found, first = [], 0
        for constraint in self.model.constraints:
            part = self.agreed.misfit[first : first + constraint.rows]
            first += constraint.rows
            if np.max(part, initial=0.0) > CLOSED:
                found.append((constraint.name, float(np.linalg.norm(part))))
        return tuple(found)

    @property
    def counted(self) -> np.ndarray:
        """Weights of the loop equations in closure errors.

        The weight is 1, except for dropped (redundant) equations that do not hold exactly, whose
        weight is nearly zero: 0.1 `CLOSED` / `tolerance`.
        """
        every = np.ones(self.model.loop_rows)
        with suppress(reports.ImpossiblePosition):
            dropped = 0.1 * CLOSED / self.tolerance
            return np.where(self.agreed.misfit > CLOSED, dropped, every) if len(every) else every
        return every

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on redundant loop equations that were dropped but do not hold exactly."""
        with suppress(reports.ImpossiblePosition):  # raised when a configuration is first used
            return tuple(reports.misfit_note(self.model, *found) for found in self.misfits)
        return ()

    def among(self, given: np.ndarray) -> np.ndarray | None:
        """Select independent coordinates from `given`, or return None if these are too few."""
        A = self.reference_equations
        if not determine(A, given):
            return None
        spare = len(self.dependent) - (self.model.nv - len(given))
        free = independent_columns(beyond(A, given), spare, self._last_first)
        return np.array([k for k in free if k in given], dtype=int)

    def confined(self, given: np.ndarray) -> np.ndarray:
        """Return the given coordinates that cannot be chosen freely, because of the loops."""
        left = beyond(self.reference_equations[0], given)
        return np.flatnonzero(np.max(np.abs(left), axis=0) > RANK)

    def suited(self, q: np.ndarray) -> np.ndarray:
        """Return the best independent coordinates for a closed configuration q (nq,)."""
        A = self.matrix(q)[None]
        return independent_columns(A, len(self.dependent), self._last_first, share=0.5)

    def close(self, q: np.ndarray, columns: np.ndarray) -> numeric.Found:
        """Find a closed configuration near q.

        `columns` contains scales of the coordinates; a coordinate with scale 0 does not move.
        Newton's method first solves all equations to within the tolerance, which selects the
        branch, and then solves only the active equations. The configuration counts as closed only
        if dropped equations hold to within twice their tolerance. Residuals of all equations are
        returned.
        """
        if np.all(self.rows):
            return self.solve(q, columns)
        limits = {"tolerance": self.tolerance, "rank": self.tolerance}
        found = self.solve(self.solve(q, columns, self.scales, **limits).q, columns)
        left = self.function("loop_residual")(found.q)
        open_by = 0.5 * np.linalg.norm(self.weights(CLOSED) * left, axis=-1)
        return numeric.Found(found.q, self.scales * left, np.maximum(found.size, open_by))

    def complete(self, q: Any, yd: Any, ydd: Any, tolerance: float) -> Any:
        """Compute all velocities from the independent ones, and accelerations if `ydd` is given."""
        n, what = len(self.independent), f" ({self.names(self.independent)})"
        self.check_moves(yd, self.independent)
        q = reports.finite("complete", "q", q, self.model.nq)
        yd = reports.finite("complete", "yd", yd, n, what)
        leading_shape("complete", q=q, yd=yd)
        self.check_closed("complete", q, tolerance)
        G, R = self.carried(q, self.independent)
        qd = times(G, yd) + times(R, self.function("loop_rate")(q))
        if ydd is None:
            return qd
        ydd = reports.finite("complete", "ydd", ydd, n, what)
        leading_shape("complete", q=q, yd=yd, ydd=ydd)
        return qd, times(G, ydd) + times(R, self.function("loop_bias")(q, qd))

    def carried(self, q: np.ndarray, independent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return G (..., nv, n) and R (..., nv, rows) such that x = G y + R b satisfies A x = b.

        y contains the entries of x at `independent`. A is the constraint Jacobian
        (`loop_matrix`) at q, and b is the right-hand side (`loop_rate` or `loop_bias`). q must
        close the loops.
        """
        K = self.raw_matrix(q)
        A = self.scaled(K)
        self.check_regular(A, independent)
        free = np.delete(np.arange(self.model.nv), independent)
        R = np.zeros((*A.shape[:-2], self.model.nv, len(self.rows)))
        R[..., free, :] = self.columns[free, None] * np.linalg.pinv(A[..., free]) * self.rows
        G = -R @ K[..., independent]
        G[..., independent, np.arange(len(independent))] = 1.0
        return G, R

    def directions(self, q: Any) -> np.ndarray:
        """Return the matrix G (..., nv, n) that maps independent velocities to all velocities.

        The loops must be closed at q (..., nq). If they depend on time, G times the independent
        velocities is only a part of qd.
        """
        q = reports.finite("complete", "q", q, self.model.nq)
        self.check_closed("complete", q, REGULAR)
        return self.carried(q, self.independent)[0]

    def accelerated(self, q: Any, qd: np.ndarray, ydd: np.ndarray, tolerance: float) -> np.ndarray:
        """Return accelerations that keep the loops closed, given the independent ones (`ydd`)."""
        found: np.ndarray = self.complete(q, qd[..., self.independent], ydd, tolerance)[1]
        return found

    def check_closed(self, function: str, q: np.ndarray, tolerance: float) -> None:
        check_tolerance(function, tolerance)
        left = self.function("loop_residual")(q)
        far = np.linalg.norm(self.weights(tolerance) * left, axis=-1)
        reports.check_position(function, self.model, q, self.scales * left, far, tolerance)

    def check_rates(self, function: str, q: Any, *rates: Any, tolerance: float) -> None:
        """Raise an error if qd or qdd violates the loop constraints by more than the tolerance.

        The tolerance is relative to the magnitude of the rates (absolute for small rates).
        """
        at, *given = (np.asarray(x, dtype=float) for x in (q, *rates))
        A, right, size = self.raw_matrix(at), self.function("loop_rate")(at), 0.0
        for name, x in zip(("qd", "qdd"), given, strict=False):
            error = self.rows * (times(A, x) - right)
            size = np.sum(x * x, axis=-1) + size * size
            reports.check_rates(function, name, self.model, error, np.sqrt(1.0 + size), tolerance)
            right = self.function("loop_bias")(at, x)

    def check_regular(self, A: np.ndarray, independent: np.ndarray | None = None) -> None:
        """Raise an error unless A determines the dependent coordinates in every state."""
        given, lead = self.independent if independent is None else independent, A.shape[:-2]
        rest = np.delete(np.arange(self.model.nv), given)
        A = A.reshape(math.prod(lead), len(self.rows), self.model.nv)
        bad = np.flatnonzero(margin(A[..., rest]) <= SINGULAR)
        if not len(bad):
            return
        here = A[bad[0]]
        rank, _ = rank_of(here)
        other = independent_columns(here[None], rank, self._last_first)
        if rank < len(rest):
            remedy = f"choose another configuration: the loops leave {len(other)} degrees of "
            remedy += f"freedom here instead of {len(given)}"
        else:
            remedy = (
                f"choose other independent coordinates: robot.with_independent({self.names(other)})"
            )
        where, loose = reports.at_index(bad[0], lead), self.undetermined(here, given)
        problem = f"singular position{where}: {loose}"
        raise reports.SingularPosition("E-LOOP-011", problem, remedy, part=self.part)

    def undetermined(self, A: np.ndarray, given: np.ndarray) -> str:
        """Describe the coordinates that remain undetermined when the coordinates `given` are known.

        A is the dimensionless constraint Jacobian.
        """
        rest = np.delete(np.arange(self.model.nv), given)
        loose = np.abs(np.linalg.svd(A[:, rest])[2][-1])
        joints = rest[loose > 0.1 * np.max(loose)]
        return (
            f"{self.names(given)} does not determine {self.names(joints)} through "
            f"{self.around(joints)}"
        )


def beyond(A: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Eliminate all coordinates except the given ones from the linear equations A x = 0."""
    rest = np.delete(np.arange(A.shape[-1]), given)
    U, s, _ = np.linalg.svd(A[..., rest], full_matrices=False)
    kept = U * (s > RANK * np.max(s, axis=-1, initial=0.0, keepdims=True))[..., None, :]
    left = A - kept @ (np.swapaxes(kept, -1, -2) @ A)
    left[..., rest] = 0.0
    return left


# Positions ----------------------------------------------------------------------------------------


def assemble(loops: Loops, y: Any, guess: Any) -> np.ndarray:
    """Return closed configurations with the given independent coordinates y."""
    if loops.time.ndim:
        return _at_each_time(loops, y, guess)
    loops.check_moves(y, loops.independent)
    what = f" ({loops.names(loops.independent)})"
    y = reports.finite("assemble", "y", y, len(loops.independent), what)
    starts = loops.references
    if guess is not None:
        starts = reports.finite("assemble", "guess", guess, loops.model.nq)[None]
    nq, n = loops.model.nq, y.shape[-1]
    lead = leading_shape("assemble", y=y, guess=starts[0])
    flat = np.broadcast_to(y, (*lead, n)).reshape(math.prod(lead), n)
    moved = loops.columns.copy()
    moved[loops.independent] = 0.0
    q, residual = np.empty((len(flat), nq)), np.zeros((len(flat), len(loops.rows)))
    left = np.arange(len(flat))
    for start in starts:
        begin = np.broadcast_to(start, (*lead, nq)).reshape(len(flat), nq)[left]
        found = loops.close(_placed(loops, flat[left], begin), moved)
        q[left], residual[left] = found.q, found.residual
        left = left[~(found.size <= CLOSED)]
        if not len(left):
            break
    if len(left):
        more = "" if len(left) == 1 else f" (and {len(left) - 1} others)"
        problem = (
            f"impossible position{reports.at_index(left[0], lead)}{more}: "
            f"{reports.how_open(loops.model, residual[left[0]])}{_given(loops, flat[left[0]])}"
        )
        remedy = "choose a position within reach, or a guess closer to it"
        raise reports.ImpossiblePosition("E-LOOP-001", problem, remedy, part=loops.part)
    loops.check_regular(loops.matrix(q.reshape(*lead, nq)))
    return q.reshape(*lead, nq)


def coordinates(loops: Loops, q: np.ndarray) -> np.ndarray:
    """Return the independent coordinates of q (nq,), in the form that `assemble` accepts."""
    places = [loops.places[k] for k in loops.independent]
    return np.array([0.0 if place is None else float(q[place]) for place in places])


def _at_each_time(loops: Loops, y: Any, guess: Any) -> np.ndarray:
    """Assemble the states one by one, because each state has its own time."""
    given = {"y": np.asarray(y, dtype=float)}
    given |= {} if guess is None else {"guess": np.asarray(guess, dtype=float)}
    lead = leading_shape("assemble", t=loops.time[..., None], **given)
    times = np.broadcast_to(loops.time, lead)
    states = [np.broadcast_to(a, (*lead, a.shape[-1])) for a in given.values()]
    found = [
        assemble(loops.at(times[k]), *(a[k] for a in states), *[None] * (guess is None))
        for k in np.ndindex(lead)
    ]
    return np.array(found).reshape(*lead, loops.model.nq)


def _placed(loops: Loops, y: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """Return the guess with its independent coordinates set to y.

    If an independent coordinate has no entry in q (such as a rotation of a spherical joint), its
    value in y is a displacement from the guess.
    """
    q, step = guess.copy(), np.zeros((len(y), loops.model.nv))
    for entry, k in zip(y.T, loops.independent, strict=True):
        place = loops.places[k]
        if place is None:
            step[:, k] = entry
        else:
            q[:, place] = entry
    return loops.function("integrate")(q, step)


def _given(loops: Loops, y: np.ndarray) -> str:
    """Describe the requested values of the independent coordinates, for an error message."""
    pairs = zip(loops.independent, y, strict=True)
    given = [f"{loops.freedoms[k]} = {value:.12g}" for k, value in pairs]
    given += [f"t = {float(loops.time):.12g} s"] if loops.model.timed else []
    return f" with {', '.join(given)}" if given else ""


# Charts -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Chart:
    """A choice of independent coordinates (chart), with the compiled function `closing_step`."""

    closure: Closure
    independent: np.ndarray
    compiled: Any

    def closing(
        self, t: float, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the results of `closing_step` at q; only the independent entries of v are used."""
        found: tuple[np.ndarray, np.ndarray, np.ndarray] = self.compiled.at(t)(q, v)
        return found


class Charts:
    """Charts (choices of independent coordinates) of a mechanism, each compiled on first use."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._known: dict[tuple[tuple[int, ...], ...], Chart] = {}

    def at(self, loops: Loops, q: np.ndarray) -> Chart:
        """Return a chart that is far from singular at a closed configuration q (nq,)."""
        independent = loops.suited(q)
        loops.check_regular(loops.matrix(q), independent)
        K = np.concatenate([loops.raw_matrix(q)[None], loops.reference_matrix])
        able = np.delete(np.arange(loops.model.nv), independent)
        among = loops.rows, loops.columns, len(able), able, loops.model.holonomic_rows
        closure = choose(K, *among, share=0.5)
        known = self._known.get((closure.rows, closure.dependent))
        return known or self._made(closure, independent)

    def _made(self, closure: Closure, independent: np.ndarray) -> Chart:
        compiled = self._functions.closed(closure)("closing_step")
        chart = self._known[closure.rows, closure.dependent] = Chart(closure, independent, compiled)
        return chart

    def memory(self) -> tuple[list[Chart], dict[str, np.ndarray]]:
        """Return all charts in order of creation, and the arrays that `recall` needs."""
        charts = list(self._known.values())
        closures = [{"independent": chart.independent, **vars(chart.closure)} for chart in charts]
        return charts, {
            f"chart_{name}": np.array([numbers[name] for numbers in closures])
            for name in ("independent", *(field.name for field in fields(Closure)))
        }

    def recall(self, memory: Mapping[str, np.ndarray]) -> list[Chart]:
        """Restore choices of independent coordinates (charts) from stored arrays."""
        columns = [memory[f"chart_{field.name}"].tolist() for field in fields(Closure)]
        charts = []
        for independent, *row in zip(memory["chart_independent"], *columns, strict=True):
            closure = Closure(*map(tuple, row))
            known = self._known.get((closure.rows, closure.dependent))
            same = known is not None and known.closure == closure
            charts.append(known if known and same else self._made(closure, independent))
        return charts
