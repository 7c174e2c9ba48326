"""Freedoms of closed loops: their equations made dimensionless, and which are independent.

Lengths are divided by the size of their loop, which is the sum of the fixed distances around it.
"""

import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np

from chasles.errors import ModelError
from chasles.functions import numeric
from chasles.functions.compiled import AtTime, Compiled
from chasles.mathematics.linear import Vector
from chasles.mechanisms.reports import ImpossiblePosition, LockedMechanism, how_open
from chasles.model import Coupling, Model
from chasles.model.description import Closure, freedom_names
from chasles.model.model import loop_size
from chasles.model.spaces import freedom_units

RANK = 1e-8
"""A singular value of the loops' matrix below this part of the largest is zero."""

SINGULAR = 1e-6
"""Below this part of the largest singular value the dependent freedoms are not determined: a
residual of 1e-13 then leaves a position uncertain by more than 1e-7."""

SHARE = 0.1
"""A freedom may be made dependent if it adds this part of what the best one would. A pivot is fair
that is at least this part of the largest left in its column, where that is at least the square of
it beside the largest that the column had (or where no column has such)."""

NOTHING = 1e-12
"""An entry below this part of the largest is rounding."""

SAMPLES = 16
"""Places at which the slope of a coupling is looked at."""

CLOSED = 1e-13
"""Loops are solved to this residual, in rad and in sizes of the loop."""

STARTS = 16
"""Positions from which closed ones are looked for."""


class Freedoms:
    """Velocity coordinates, and which are independent: decided at t = 0 for all times."""

    def __init__(self, model: Model, function: Callable[..., Compiled]) -> None:
        self.model = model
        self.time = np.zeros(())
        self._compile = function

    def at(self, time: np.ndarray) -> Self:
        """The same loops, with the choices that are made for them, at another time (...), in s."""
        _ = self.rows, self.columns, self.independent, self.reference_matrix  # decided once
        moved = copy(self)
        moved.time = time
        return moved

    def function(self, name: str, **options: Any) -> Compiled | AtTime:
        """A compiled function of the robot at this time."""
        return self._compile(name, **options).at(self.time)

    @property
    def part(self) -> str:
        """The robot, in messages."""
        return f"robot {self.model.name!r}"

    @cached_property
    def owners(self) -> tuple[int, ...]:
        """For each velocity coordinate the body whose joint it moves."""
        return tuple(i for i in self.model.movers for _ in range(self.model.bodies[i].joint.nv))

    @cached_property
    def freedoms(self) -> tuple[str, ...]:
        """A name for each velocity coordinate: the joint's, with [k] where it has several."""
        bodies = [self.model.bodies[i] for i in self.model.movers]
        return tuple(n for b in bodies for n in freedom_names(b.data.name, b.joint.nv))

    @cached_property
    def places(self) -> tuple[int | None, ...]:
        """For each velocity coordinate the coordinate of q that it is the rate of, if there is."""
        found: list[int | None] = []
        for i, where in self.model.position_slices.items():
            joint = self.model.bodies[i].joint
            found += range(where.start, where.stop) if joint.additive else [None] * joint.nv
        return tuple(found)

    @cached_property
    def neutral(self) -> np.ndarray:
        """The configuration in which every joint's two frames coincide: (nq,)."""
        joints = (self.model.bodies[i].joint for i in self.model.movers)
        return np.array([float(x) for joint in joints for x in joint.neutral()])

    @cached_property
    def rows(self) -> np.ndarray:
        """Scales of the equations."""
        return row_scales(self.model.at(0.0))

    @cached_property
    def columns(self) -> np.ndarray:
        """Scales of the freedoms."""
        return column_scales(self.model)

    def matrix(self, q: np.ndarray) -> np.ndarray:
        """A of the loops, dimensionless: (..., rows, nv)."""
        return self.scaled(self.raw_matrix(q))

    def scaled(self, A: np.ndarray) -> np.ndarray:
        """A matrix of the loops, made dimensionless."""
        return self.rows[:, None] * A * self.columns

    def raw_matrix(self, q: np.ndarray) -> np.ndarray:
        """A of the loops: (..., rows, nv)."""
        return np.asarray(self.function("loop_matrix")(q))

    # Which freedoms are independent -----------------------------------------------------------

    @cached_property
    def references(self) -> np.ndarray:
        """Closed positions of full rank, found from neutral and from positions around it."""
        looped = self.model.owners([i for each in self.model.constraints for i in each.bodies])
        inside = np.array([float(i in looped) for i in self.owners])
        spread = np.linspace(0.0, 3.0, STARTS)[:, None] * self.columns * inside
        away = spread * np.random.default_rng(0).uniform(-1.0, 1.0, (STARTS, self.model.nv))
        starts = self.function("integrate")(np.tile(self.neutral, (STARTS, 1)), away)
        found = self.solve(starts, self.columns)
        closed = found.q[found.size <= CLOSED]
        if not len(closed):
            best = how_open(self.model, found.residual[int(np.argmin(found.size))])
            when = " at t = 0, where choices are made" if self.model.timed else ""
            problem = f"no position was found that closes its loops{when}"
            remedy = f"at best {best}; check lengths, frames and couplings"
            raise ImpossiblePosition("E-LOOP-002", problem, remedy, part=self.part)
        ranks = [rank_of(A)[0] for A in self.matrix(closed)]
        return closed[np.array(ranks) == max(ranks)]

    @cached_property
    def reference_matrix(self) -> np.ndarray:
        """A of the loops in the references: (states, rows, nv)."""
        return self.raw_matrix(self.references)

    @cached_property
    def reference_equations(self) -> np.ndarray:
        """The same, dimensionless."""
        return self.scaled(self.reference_matrix)

    @cached_property
    def independent(self) -> np.ndarray:
        """The velocity coordinates taken as independent, in increasing order."""
        names = self.model.source.independent
        return self.select(names) if names else self.automatic

    @cached_property
    def automatic(self) -> np.ndarray:
        """The library's choice of independent coordinates."""
        A = self.reference_equations
        return independent_columns(A, rank_of(A[0])[0], self._last_first)

    def select(self, names: Sequence[str]) -> np.ndarray:
        """The coordinates of a user's choice, which must determine the others."""
        if not len(names):
            problem = (
                "name its independent freedoms, for example "
                f"{self.names(self.automatic) or 'none: it is locked'}"
            )
            raise ModelError("E-LOOP-003", problem, part=self.part)
        given = self.indices(names, "to be independent")
        self.check_moves(given, self.automatic)
        still = np.intersect1d(given, self.immobile)
        if len(still):
            able = np.delete(np.arange(self.model.nv), self.immobile)
            problem = f"{self.names(still)} cannot move, held by {self.around(still)}"
            remedy = f"drive others, of {self.names(able)}, or take a loop joint that forbids less"
            raise LockedMechanism("E-LOOP-010", problem, remedy, part=self.part)
        if len(given) != len(self.automatic) or not determine(self.reference_equations, given):
            problem = f"{self.names(given)} cannot be its independent freedoms"
            remedy = f"it has {len(self.automatic)}, for example {self.names(self.automatic)}"
            raise ModelError("E-LOOP-004", problem, remedy, part=self.part)
        return given

    def indices(self, names: Sequence[str], purpose: str) -> np.ndarray:
        """The velocity coordinates with these names, in increasing order."""
        names = [names] if isinstance(names, str) else names
        for name in names:
            if name not in self.freedoms:
                problem = f"no freedom {name!r} {purpose}"
                remedy = f"it has {', '.join(map(repr, self.freedoms))}"
                raise ModelError("E-LOOP-005", problem, remedy, part=self.part)
        return np.array(sorted({self.freedoms.index(name) for name in names}), dtype=int)

    def rank(self, freedoms: np.ndarray) -> int:
        """The number of equations between some freedoms, the others being given."""
        return max(rank_of(A)[0] for A in self.reference_equations[..., freedoms])

    @cached_property
    def _last_first(self) -> list[int]:
        """The order in which freedoms become dependent: those not in q, then last joints first."""
        return sorted(range(self.model.nv), key=lambda k: (self.places[k] is not None, -k))

    @cached_property
    def dependent(self) -> np.ndarray:
        """The velocity coordinates that the loops determine."""
        return np.delete(np.arange(self.model.nv), self.independent)

    @cached_property
    def immobile(self) -> np.ndarray:
        """The velocity coordinates that are zero in all closed motions."""
        rank = self.model.nv - len(self.automatic)
        lengths = [spans(A, rank) for A in self.reference_equations]
        return np.flatnonzero(np.max(lengths, axis=0) <= RANK)

    def solve(self, q: np.ndarray, columns: np.ndarray) -> numeric.Found:
        """Closed positions by Newton's method from q, moved where a column's scale is not 0."""
        names = ("loop_residual", "loop_matrix", "integrate")
        residual, matrix, integrate = (self.function(name) for name in names)
        limits = {"tolerance": CLOSED, "rank": RANK}
        return numeric.solve(
            residual, matrix, integrate, q, rows=self.rows, columns=columns, **limits
        )

    def check_moves(self, asked: Any, independent: np.ndarray) -> None:
        """Raise if something is asked of independent freedoms and there are none."""
        if np.size(asked) and not len(independent) and self.model.nv:
            every = np.arange(self.model.nv)
            loose = f"{self.around(every)} leaves {self.names(every)} no freedom"
            remedy = "take a loop joint that forbids less, leave out a coupling, or add a joint"
            problem, part = f"{loose}, so none is independent", f"{self.part}: locked"
            raise LockedMechanism("E-LOOP-009", problem, remedy, part=part)

    def names(self, freedoms: Sequence[int] | np.ndarray) -> str:
        return ", ".join(repr(self.freedoms[k]) for k in freedoms)

    def around(self, freedoms: np.ndarray) -> str:
        """The loops and couplings that any of these freedoms are in."""
        owners = {self.owners[k] for k in freedoms}
        found = []
        for what, among in (("loop", self.model.loops), ("coupling", self.model.couplings)):
            names = [repr(x.name) for x in among if owners & self.model.owners(x.bodies)]
            found += [f"{what} {', '.join(names)}"] if names else []
        return " and ".join(found)


# Scales -------------------------------------------------------------------------------------------


def row_scales(model: Model) -> np.ndarray:
    """Scales of equations: 1 for rotations, 1/size for translations, 1/slope for couplings."""
    scales = []
    for loop in model.loops:
        T = loop.joint.constraint(loop.joint.neutral())
        scales += [1.0 / loop_size(model, loop) if any(f.force) else 1.0 for f in T.columns]
    scales += [1.0 / _slope(model, coupling) for coupling in model.couplings]
    return np.array(scales)


def column_scales(model: Model) -> np.ndarray:
    """Scales of freedoms: 1 for rotations, the largest loop's size for translations."""
    largest = max((loop_size(model, loop) for loop in model.loops), default=1.0)
    return np.array(freedom_units(model, largest))


def _slope(model: Model, coupling: Coupling) -> float:
    """The steepest slope of a coupling near neutral, for one rad or m; 1 where it has none."""
    rng = np.random.default_rng(0)
    found = [0.0]
    for _ in range(SAMPLES):
        near = {i: rng.uniform(-1.0, 1.0, model.bodies[i].joint.nv) for i in coupling.bodies}
        blocks = coupling.matrix({i: Vector(tuple(x.tolist())) for i, x in near.items()})
        found += [abs(entry) for block in blocks.values() for entry in block.rows[0]]
    return max(filter(math.isfinite, found)) or 1.0


# Ranks --------------------------------------------------------------------------------------------


def times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A x for each state."""
    return np.asarray(np.einsum("...ij,...j->...i", A, x))


def rank_of(A: np.ndarray, largest: float | None = None) -> tuple[int, np.ndarray]:
    """The rank of a matrix, and its singular values (one zero, if it has none)."""
    values = np.linalg.svd(A, compute_uv=False) if A.size else np.zeros(1)
    top = values[0] if largest is None else largest
    return int(np.count_nonzero(values > RANK * top)), values


def spans(A: np.ndarray, rank: int) -> np.ndarray:
    """For each column of A how far it goes in motions x of unit length with A x = 0, at most."""
    if not A.size:
        return np.ones(A.shape[-1])
    return np.asarray(np.linalg.norm(np.linalg.svd(A)[2][rank:], axis=0))


def margin(A: np.ndarray) -> np.ndarray:
    """The smallest singular value of each matrix beside the largest (0 if it has too few rows)."""
    if A.shape[-1] == 0:
        return np.ones(len(A))
    if A.shape[-2] < A.shape[-1]:
        return np.zeros(len(A))
    values = np.linalg.svd(A, compute_uv=False)
    return values[:, -1] / np.maximum(values[:, 0], 1e-300)


def independent_columns(
    A: np.ndarray, rank: int, order: Sequence[int], share: float = SHARE
) -> np.ndarray:
    """Independent columns of A (states, rows, nv), by threshold pivoting.

    The others are taken in an order, unless they add less than a share of what another would.
    """
    left, dependent = A.copy(), np.zeros(A.shape[-1], dtype=bool)
    for _ in range(rank):
        size = np.where(dependent, 0.0, np.median(np.linalg.norm(left, axis=-2), axis=0))
        k = next(k for k in order if size[k] >= share * np.max(size) and not dependent[k])
        u = left[..., k] / np.maximum(np.linalg.norm(left[..., k], axis=-1), RANK)[..., None]
        left = left - u[..., None] * np.einsum("...m,...mv->...v", u, left)[..., None, :]
        dependent[k] = True
    return np.flatnonzero(~dependent)


def determine(A: np.ndarray, given: np.ndarray) -> bool:
    """Return True if given coordinates, or more than are needed, determine all others somewhere."""
    return bool(np.max(margin(np.delete(A, given, axis=-1))) > SINGULAR)


# Pivots (Featherstone 2008, section 8.8) ----------------------------------------------------------


def choose(
    K: np.ndarray, rows: np.ndarray, columns: np.ndarray, rank: int, dependent: np.ndarray
) -> Closure:
    """`rank` rows to solve for as many of the columns that may be dependent.

    K (states, rows, nv): the first state decides how large pivots are, all together where zeros
    are. Each step takes a fair pivot in a column with fewest entries at the start (so that loops
    stay apart), of these one that fills fewest zeros (Markowitz's rule), and the largest of those.
    """
    left = (rows[:, None] * K * columns)[..., dependent]
    floor = NOTHING * np.max(np.abs(left), initial=0.0)
    start = np.max(np.abs(left[0]), axis=0)
    many = left.size * np.sum(np.max(np.abs(left), axis=0) > floor, axis=0)
    taken: list[tuple[int, int]] = []
    while len(taken) < rank:
        entries = np.abs(left)
        for row, column in taken:
            entries[:, row], entries[:, :, column] = 0.0, 0.0
        size, full = entries[0], np.max(entries, axis=0) > floor
        largest = np.max(size, axis=0)
        fair = full & (size >= SHARE * largest)
        strong = fair & (largest >= SHARE**2 * start)
        fair = strong if strong.any() else fair
        fill = np.outer(full.sum(axis=1) - 1, full.sum(axis=0) - 1) + many
        least = np.min(fill[fair])
        best = np.where(fair & (fill == least), size, -1.0)
        r, c = map(int, np.unravel_index(int(np.argmax(best)), best.shape))
        taken.append((r, c))
        left = _eliminated(left, r, c)
    kept, solved = [r for r, _ in taken], [int(dependent[c]) for _, c in taken]
    return Closure(
        tuple(kept), tuple(solved), _pivots(K[:, kept][..., solved]), tuple(map(float, rows))
    )


def _eliminated(left: np.ndarray, r: int, c: int) -> np.ndarray:
    """Every other row without column c."""
    pivot = left[:, r, c]
    safe = np.where(np.abs(pivot) > NOTHING, pivot, np.inf)
    less = left - left[:, :, c, None] * (left[:, r] / safe[:, None])[:, None, :]
    less[:, r] = left[:, r]
    return less


def _pivots(K: np.ndarray) -> tuple[float, ...]:
    """The divisors of elimination in the given order, in the first state."""
    found = []
    for s in range(K.shape[-1]):
        found.append(float(K[0, s, s]))
        K = _eliminated(K, s, s)
    return tuple(found)
