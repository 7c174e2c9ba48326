"""Dimensionless equations of closed loops, and the choice of the active ones.

Lengths are divided by the size of their loop, which is the sum of the fixed distances around it.

Loops in files are often closed only to the digits of the file. For example, a planar four-bar whose
axes are parallel to six digits has five equations for its three joints. Two of them determine the
motion; the others repeat these two up to six digits. If all five are solved to machine precision,
they have no solution, or they lock the mechanism. Therefore equations that are implied by others up
to a tolerance are dropped, once for all states.
"""

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from chasles.algorithms.homogeneous import coupling_matrix
from chasles.functions import blocks, numeric
from chasles.functions.compiled import AtTime, Compiled
from chasles.mathematics.linear import Vector
from chasles.mechanisms.ranks import RANK, independent_columns, null_space, rank_of, smallest
from chasles.mechanisms.reports import ImpossiblePosition, how_open
from chasles.model import Coupling, Model
from chasles.model.spaces import freedom_units, loop_size

SAMPLES = 16
"""Number of points at which the slope of a coupling is evaluated."""

CLOSED = 1e-13
"""Residual to which loops are solved, in rad and relative to the size of the loop."""

STARTS = 16
"""Number of configurations from which closed ones are searched."""

STRIDE, STRIDES = 0.1, 30
"""Step size along each motion on which dropped equations are tested, and steps to each side.

The step size is in rad, and relative to the size of the largest loop.
"""

BRANCHING = 0.2
"""Fraction of the smallest initial singular value along a motion that indicates a branch point.

Below this fraction, motions meet that the dropped equations distinguish.
"""


class Agreement(NamedTuple):
    """Active equations, and closed configurations.

    rows: scales of the equations, 0 for dropped ones. references: closed configurations of full
    rank (states, nq). misfit: largest dimensionless residual of each dropped equation in the
    references and along the motions from them; 0 for active equations.
    """

    rows: np.ndarray
    references: np.ndarray
    misfit: np.ndarray


class Equations:
    """Equations of loops and couplings at one time; the active ones are chosen at t = 0."""

    def __init__(self, model: Model, function: Callable[..., Compiled]) -> None:
        self.model = model
        self.time = np.zeros(())
        self._compile = function
        self._whole: Self | None = None

    @cached_property
    def positions(self) -> Self:
        """Same loops with only their position-level equations."""
        if self._whole is not None or all(self.model.holonomic_rows):
            return self
        found = type(self)(self.model, self._compile)
        found._whole, found.time = self, self.time
        return found

    def function(self, name: str, **options: Any) -> Compiled | AtTime:
        """Return a compiled function of the robot at this time."""
        return self._compile(name, **options).at(self.time)

    @property
    def part(self) -> str:
        """Name of the robot in messages."""
        return f"robot {self.model.name!r}"

    @cached_property
    def owners(self) -> tuple[int, ...]:
        """Body whose joint each velocity coordinate moves."""
        return tuple(i for i in self.model.movers for _ in range(self.model.bodies[i].joint.nv))

    @cached_property
    def neutral(self) -> np.ndarray:
        """Configuration in which the two frames of every joint coincide: (nq,)."""
        joints = (self.model.bodies[i].joint for i in self.model.movers)
        return np.array([float(x) + 0.0 for joint in joints for x in joint.neutral()])

    @cached_property
    def scales(self) -> np.ndarray:
        """Scales of all equations."""
        return row_scales(self.model.at(0.0))

    @cached_property
    def columns(self) -> np.ndarray:
        """Scales of the coordinates."""
        return column_scales(self.model)

    @cached_property
    def tolerance(self) -> float:
        """Allowed contradiction between equations, in rad and relative to the size of the loop."""
        sizes = [loop_size(self.model, loop) for loop in self.model.loops]
        return max(map(self.model.source.precision.closure, sizes or [1.0]))

    @cached_property
    def agreed(self) -> Agreement:
        """Closed configurations and active equations; all velocity-level equations are active."""
        if self.positions is self:
            return _agreement(self)
        found = self.positions.agreed
        return found._replace(references=_regular(self, found.references, found.rows))

    @property
    def rows(self) -> np.ndarray:
        """Scales of the equations, 0 for dropped ones."""
        return self.agreed.rows

    @property
    def references(self) -> np.ndarray:
        """Closed configurations of full rank, searched from the neutral one and near it."""
        return self.agreed.references

    def weights(self, tolerance: float) -> np.ndarray:
        """Return scales of residuals for a tolerance; dropped equations use `self.tolerance`."""
        share = min(1.0, tolerance / self.tolerance)
        return np.where(self.rows == 0.0, share * self.scales, self.rows)

    @cached_property
    def looped(self) -> np.ndarray:
        """Velocity coordinates that are part of loops or couplings."""
        bodies = [i for each in self.model.constraints for i in each.bodies]
        movers = self.model.owners(bodies)
        return np.array([k for k, i in enumerate(self.owners) if i in movers], dtype=int)

    @cached_property
    def blocks(self) -> tuple[blocks.Blocks, ...]:
        """Rows and coordinates of each cluster of loops; empty if there is a single cluster."""
        model, apart = self.model, clustered(self.model)
        if len(apart) < 2:
            return ()
        ends, v, q = [0], model.velocity_slices, model.position_slices
        for constraint in model.constraints:
            ends.append(ends[-1] + constraint.rows)
        alike: dict[tuple[int, ...], list[tuple[list[int], ...]]] = {}
        for numbers, movers in apart:
            found = (
                [r for k in numbers for r in range(ends[k], ends[k + 1])],
                [k for i in model.movers if i in movers for k in range(v[i].start, v[i].stop)],
                [k for i in model.movers if i in movers for k in range(q[i].start, q[i].stop)],
            )
            alike.setdefault(tuple(map(len, found)), []).append(found)
        return tuple(
            blocks.Blocks(*(np.array(part, dtype=int) for part in zip(*found, strict=True)))
            for found in alike.values()
        )

    def matrix(self, q: np.ndarray) -> np.ndarray:
        """Return the dimensionless matrix A of the loops: (..., rows, nv)."""
        return self.scaled(self.raw_matrix(q))

    def scaled(self, A: np.ndarray) -> np.ndarray:
        """Return a matrix of the loops in dimensionless form."""
        return self.rows[:, None] * A * self.columns

    def raw_matrix(self, q: np.ndarray) -> np.ndarray:
        """Return the matrix A of the loops: (..., rows, nv)."""
        A = np.asarray(self.function("loop_matrix")(q))
        return A if self._whole is None else A * np.array(self.model.holonomic_rows)[:, None]

    def solve(
        self,
        q: np.ndarray,
        columns: np.ndarray,
        rows: np.ndarray | None = None,
        *,
        tolerance: float = CLOSED,
        rank: float = RANK,
    ) -> numeric.Found:
        """Find closed configurations by Newton's method from q, along columns with nonzero scale.

        Velocity-level equations are ignored.
        """
        scales = self.rows if rows is None else rows
        residual, matrix = self.function("loop_residual"), self.function("loop_matrix")
        integrate = self.function("integrate")
        limits: dict[str, Any] = {"columns": columns, "tolerance": tolerance, "rank": rank}
        limits["rows"] = scales * np.array(self.model.holonomic_rows)
        if not self.blocks:
            return numeric.solve(residual, matrix, integrate, q, **limits)
        return blocks.solve(residual, matrix, integrate, q, self.blocks, **limits)


def clustered(model: Model) -> list[tuple[list[int], set[int]]]:
    """Return the smallest sets of loops and couplings that share no joint (Featherstone 8.9).

    Each set consists of the indices of constraints, and the bodies whose coordinates they involve.
    K has no entries between different sets.
    """
    found: list[tuple[list[int], set[int]]] = []
    for k, constraint in enumerate(model.constraints):
        numbers, movers, apart = [k], model.owners(constraint.bodies), []
        for cluster in found:
            if cluster[1] & movers:
                numbers, movers = [*cluster[0], *numbers], movers | cluster[1]
            else:
                apart.append(cluster)
        found = [*apart, (sorted(numbers), movers)]
    return sorted(found, key=lambda cluster: cluster[0])


# Active equations ---------------------------------------------------------------------------------


def _agreement(loops: Equations) -> Agreement:
    """Return all equations, if they have solutions and their rank does not depend on rounding.

    Otherwise, equations that others imply up to the tolerance are dropped.
    """
    starts, scales = _starts(loops), loops.scales
    found = _mixed(loops, loops.solve(starts, loops.columns, scales))
    closed, near = (found.q[found.size <= most] for most in (CLOSED, loops.tolerance))
    sure = len(closed) and len(closed) == len(near)
    if not (sure and _rank(loops, closed, RANK) == _rank(loops, closed, loops.tolerance)):
        fewer = _fewer(loops, starts)
        if fewer is not None:
            return fewer
    if not len(closed):
        best = how_open(loops.model, found.residual[int(np.argmin(found.size))])
        when = " at t = 0, where independent coordinates are chosen" if loops.model.timed else ""
        problem = f"no configuration was found that closes the loops{when}"
        remedy = f"check lengths, frames and couplings; smallest residual: {best}"
        raise ImpossiblePosition("E-LOOP-002", problem, remedy, part=loops.part)
    return Agreement(scales, _regular(loops, closed, scales), np.zeros(len(scales)))


def _starts(loops: Equations) -> np.ndarray:
    """Return the neutral configuration, and configurations around it: (STARTS, nq)."""
    nv = loops.model.nv
    inside = np.isin(np.arange(nv), loops.looped)
    spread = np.linspace(0.0, 3.0, STARTS)[:, None] * loops.columns * inside
    away = spread * np.random.default_rng(0).uniform(-1.0, 1.0, (STARTS, nv))
    return np.asarray(loops.function("integrate")(np.tile(loops.neutral, (STARTS, 1)), away))


def _mixed(loops: Equations, found: numeric.Found) -> numeric.Found:
    """Replace clusters that did not close in a state by configurations in which they closed.

    With many clusters, it is rare that all of them close from one start.
    """
    q, r = found.q.copy(), found.residual.copy()
    for each in loops.blocks:
        closed = each.sizes(r) <= CLOSED
        for k, (rows, places) in enumerate(zip(each.rows, each.q, strict=True)):
            good, bad = np.flatnonzero(closed[:, k]), np.flatnonzero(~closed[:, k])
            if len(good):
                taken = np.resize(good, len(bad))
                q[np.ix_(bad, places)], r[np.ix_(bad, rows)] = (
                    q[taken][:, places],
                    r[taken][:, rows],
                )
    return numeric.Found(q, r, np.linalg.norm(r, axis=-1)) if loops.blocks else found


def _fewer(loops: Equations, starts: np.ndarray) -> Agreement | None:
    """Return the fewest equations that imply the others up to the tolerance; None if all.

    The tolerance is the largest singular value that rounding in the file may cause. A small
    singular value may also be a property of the mechanism; its motion then violates the dropped
    equations.
    """
    scales, most = loops.scales, loops.tolerance
    found = loops.solve(starts, loops.columns, scales, tolerance=most, rank=most)
    near = found.q[found.size <= most]
    if not len(near):
        return None
    A = scales[:, None] * loops.raw_matrix(near) * loops.columns
    least = min(rank_of(a, share=most)[0] for a in A)
    exact, across = max(rank_of(a)[0] for a in A), np.swapaxes(A, -1, -2)
    for rank in range(least, max(exact, least + 1)):
        spare = independent_columns(across, rank, range(len(scales)))
        dropped = np.intersect1d(spare, np.flatnonzero(loops.model.holonomic_rows))
        rows = scales.copy()
        rows[dropped] = 0.0
        solved = loops.solve(near, loops.columns, rows)
        closed = solved.q[solved.size <= CLOSED]
        agree = closed[_size(loops, closed, dropped) <= most]
        tried = _walked(loops, agree, rows, rank)
        if len(agree) and np.all(_size(loops, tried, dropped) <= most):
            misfit = np.zeros(len(scales))
            misfit[dropped] = np.max(np.abs(_residual(loops, tried)[:, dropped]), axis=0)
            contradict = rank < exact or np.max(misfit, initial=0.0) > CLOSED
            return Agreement(rows, _regular(loops, agree, rows), misfit) if contradict else None
    return None


def _walked(loops: Equations, q: np.ndarray, rows: np.ndarray, rank: int) -> np.ndarray:
    """Return configurations q, and others along every motion that the equations `rows` allow."""
    found, inside, integrate = [q], loops.looped, loops.function("integrate")

    def equations(at: np.ndarray) -> np.ndarray:
        return (rows[:, None] * loops.raw_matrix(at) * loops.columns)[..., inside]

    least = smallest(equations(q), rank)
    best = np.flatnonzero(least == np.max(least, initial=0.0))[:1]
    ways = np.swapaxes(null_space(equations(q[best]), rank), -1, -2).reshape(-1, len(inside))
    along = np.concatenate([ways, -ways])
    at = np.repeat(q[best], len(along), axis=0)
    for _ in range(STRIDES):
        N = null_space(equations(at), rank)
        along = np.einsum("sik,sjk,sj->si", N, N, along)
        along = along / np.maximum(np.linalg.norm(along, axis=-1, keepdims=True), RANK)
        step = np.zeros((len(at), loops.model.nv))
        step[:, inside] = STRIDE * along
        solved = loops.solve(integrate(at, loops.columns * step), loops.columns, rows)
        goes_on = solved.size <= CLOSED
        goes_on &= smallest(equations(solved.q), rank) > BRANCHING * np.max(least, initial=0.0)
        at, along = solved.q[goes_on], along[goes_on]
        found.append(at)
    return np.concatenate(found)


def _rank(loops: Equations, q: np.ndarray, share: float) -> int:
    """Return the largest rank of all equations at q; share: see `rank_of`."""
    A = loops.scales[:, None] * loops.raw_matrix(q) * loops.columns
    return max(rank_of(a, share=share)[0] for a in A)


def _regular(loops: Equations, q: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the configurations in which the equations have full rank."""
    ranks = [rank_of(A)[0] for A in rows[:, None] * loops.raw_matrix(q) * loops.columns]
    return np.asarray(q[np.array(ranks) == max(ranks)])


def _residual(loops: Equations, q: np.ndarray) -> np.ndarray:
    """Return the dimensionless residuals of all equations: (states, rows)."""
    return np.asarray(loops.scales * loops.function("loop_residual")(q))


def _size(loops: Equations, q: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Return the norm of the residuals of some equations: (states,)."""
    return np.asarray(np.linalg.norm(_residual(loops, q)[:, some], axis=-1))


# Scales -------------------------------------------------------------------------------------------


def row_scales(model: Model) -> np.ndarray:
    """Return scales: 1 for rotations, 1/size for translations, 1/slope for couplings."""
    scales = []
    for loop in model.loops:
        T = loop.joint.constraint(loop.joint.neutral())
        scales += [1.0 / loop_size(model, loop) if any(f.force) else 1.0 for f in T.columns]
    for coupling in model.couplings:
        scales += [1.0 / slope for slope in _slopes(model, coupling)]
    return np.array(scales)


def column_scales(model: Model) -> np.ndarray:
    """Return scales of coordinates: 1 for rotations, the largest loop size for translations."""
    largest = max((loop_size(model, loop) for loop in model.loops), default=1.0)
    return np.array(freedom_units(model, largest))


def _slopes(model: Model, coupling: Coupling) -> list[float]:
    """Return the steepest slope of each row near neutral, per rad or m; 1 if it is zero."""
    rng = np.random.default_rng(0)
    found = [[0.0] for _ in range(coupling.rows)]
    for _ in range(SAMPLES):
        near = {}
        for i in coupling.bodies:
            joint, drive = model.bodies[i].joint, model.bodies[i].drive
            step = Vector(tuple(rng.uniform(-1.0, 1.0, joint.nv).tolist()))
            still = step if joint.additive else joint.integrate(joint.neutral(), step)
            near[i] = still if drive is None else drive.position()
        for block in coupling_matrix(model, coupling, near).values():
            for entries, row in zip(found, block.rows, strict=True):
                entries += map(abs, row)
    return [max(filter(math.isfinite, entries)) or 1.0 for entries in found]
