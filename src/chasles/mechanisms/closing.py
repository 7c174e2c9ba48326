"""Closed loops of one robot: their equations, independent freedoms and dependent rates.

Everything is decided on dimensionless equations (`equations.py`).
"""

import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from chasles.backends.arrays import check_tolerance
from chasles.errors import ModelError
from chasles.functions import numeric
from chasles.functions.compiled import AtTime, Compiled
from chasles.functions.doors import leading_shape
from chasles.mechanisms.equations import (
    RANK,
    SINGULAR,
    beyond,
    column_scales,
    determine,
    independent_columns,
    margin,
    rank_of,
    row_scales,
    spans,
    times,
)
from chasles.mechanisms.reports import (
    ImpossiblePosition,
    LockedMechanism,
    SingularPosition,
    at_index,
    check_position,
    check_rates,
    finite,
    how_open,
)
from chasles.model import Model
from chasles.model.description import freedom_names

CLOSED = 1e-13
"""Loops are solved to this residual, in rad and in sizes of the loop."""

REGULAR = 1e-9
"""Beyond this residual rates are refused."""

STARTS = 16
"""Positions from which closed ones are looked for."""


class Loops:
    """The loops of a model and the compiled functions that they need, at a time.

    What is decided once is decided at t = 0, and stays for all times.
    """

    def __init__(self, model: Model, function: Callable[..., Compiled]) -> None:
        self.model = model
        self.time = np.zeros(())
        self._compile = function

    def at(self, time: np.ndarray) -> "Loops":
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

    # What is there ----------------------------------------------------------------------------

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
        looped = self.model.owners(i for each in self.model.constraints for i in each.bodies)
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

    def among(self, given: np.ndarray) -> np.ndarray | None:
        """Independent coordinates among some, or None where these do not determine all others."""
        A = self.reference_equations
        if not determine(A, given):
            return None
        spare = len(self.dependent) - (self.model.nv - len(given))
        free = independent_columns(beyond(A, given), spare, self._last_first)
        return np.array([k for k in free if k in given], dtype=int)

    def rank(self, freedoms: np.ndarray) -> int:
        """The number of equations between some freedoms, the others being given."""
        return max(rank_of(A)[0] for A in self.reference_equations[..., freedoms])

    def confined(self, given: np.ndarray) -> np.ndarray:
        """Those of some freedoms that loops relate to each other."""
        left = beyond(self.reference_equations[0], given)
        return np.flatnonzero(np.max(np.abs(left), axis=0) > RANK)

    def suited(self, q: np.ndarray) -> np.ndarray:
        """The independent coordinates from which a closed position (nq,) moves best."""
        A = self.matrix(q)[None]
        return independent_columns(A, len(self.dependent), self._last_first, share=0.5)

    @cached_property
    def _last_first(self) -> list[int]:
        """The order in which freedoms become dependent: last joints first, and those not in q.

        So early joints are independent, and if possible ones whose coordinates are in q.
        """
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

    # Positions and rates ----------------------------------------------------------------------

    def complete(self, q: Any, yd: Any, ydd: Any, tolerance: float) -> Any:
        """All rates from those of the independent freedoms; all accelerations too, if given."""
        n, what = len(self.independent), f" ({self.names(self.independent)})"
        self.check_moves(yd, self.independent)
        q = finite("complete", "q", q, self.model.nq)
        yd = finite("complete", "yd", yd, n, what)
        leading_shape("complete", q=q, yd=yd)
        self.check_closed("complete", q, tolerance)
        G, R = self.carried(q, self.independent)
        qd = times(G, yd) + times(R, self.function("loop_rate")(q))
        if ydd is None:
            return qd
        ydd = finite("complete", "ydd", ydd, n, what)
        leading_shape("complete", q=q, yd=yd, ydd=ydd)
        return qd, times(G, ydd) + times(R, self.function("loop_bias")(q, qd))

    def carried(self, q: np.ndarray, independent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """G (..., nv, n) and R (..., nv, rows): x = G y + R b has A x = b, and y at `independent`.

        At closed positions, for any choice of the independent; A, b as in `loop_matrix`. Where rows
        are redundant, b must agree with them.
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
        """G (..., nv, n) of qd = G yd + (what time adds), at closed positions q (..., nq)."""
        q = finite("complete", "q", q, self.model.nq)
        self.check_closed("complete", q, REGULAR)
        return self.carried(q, self.independent)[0]

    def accelerated(self, q: Any, qd: np.ndarray, ydd: np.ndarray, tolerance: float) -> np.ndarray:
        """qdd = G ydd + g, at closed positions."""
        found: np.ndarray = self.complete(q, qd[..., self.independent], ydd, tolerance)[1]
        return found

    def drift(self, q: Any, qd: np.ndarray, tolerance: float = REGULAR) -> np.ndarray:
        """g of qdd = G ydd + g."""
        return self.accelerated(q, qd, np.zeros(len(self.independent)), tolerance)

    def solve(self, q: np.ndarray, columns: np.ndarray) -> numeric.Found:
        """Closed positions by Newton's method from q, moved where a column's scale is not 0."""
        return numeric.solve(
            self.function("loop_residual"),
            self.function("loop_matrix"),
            self.function("integrate"),
            q,
            rows=self.rows,
            columns=columns,
            tolerance=CLOSED,
            rank=RANK,
        )

    # Doors and messages -----------------------------------------------------------------------

    def check_moves(self, asked: Any, independent: np.ndarray) -> None:
        """Raise if something is asked of independent freedoms and there are none."""
        if np.size(asked) and not len(independent) and self.model.nv:
            every = np.arange(self.model.nv)
            raise LockedMechanism(
                "E-LOOP-009",
                f"{self.around(every)} leaves {self.names(every)} no freedom, so none is "
                "independent",
                "take a loop joint that forbids less, leave out a coupling, or add a joint",
                part=f"robot {self.model.name!r}: locked",
            )

    def check_closed(self, function: str, q: np.ndarray, tolerance: float) -> None:
        check_tolerance(function, tolerance)
        residual = self.rows * self.function("loop_residual")(q)
        check_position(function, self.model, q, residual, tolerance)

    def check_rates(self, function: str, q: Any, *rates: Any, tolerance: float) -> None:
        """qd, and qdd if given, keep the loops closed, to `tolerance` of their size (or of 1)."""
        at, *given = (np.asarray(x, dtype=float) for x in (q, *rates))
        A, right, size = self.raw_matrix(at), self.function("loop_rate")(at), 0.0
        for name, x in zip(("qd", "qdd"), given, strict=False):
            error = self.rows * (times(A, x) - right)
            size = np.sum(x * x, axis=-1) + size * size
            check_rates(function, name, self.model, error, np.sqrt(1.0 + size), tolerance)
            right = self.function("loop_bias")(at, x)

    def check_regular(self, A: np.ndarray, independent: np.ndarray | None = None) -> None:
        """The dependent freedoms are determined by the equations A of every state."""
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
            remedy = f"the loops leave {len(other)} freedoms here instead of "
            remedy += f"{len(given)}, so no choice of independent ones will do"
        else:
            remedy = f"take others as independent: robot.with_independent({self.names(other)})"
        problem = f"singular position{at_index(bad[0], lead)}: {self.undetermined(here, given)}"
        raise SingularPosition("E-LOOP-011", problem, remedy, part=self.part)

    def undetermined(self, A: np.ndarray, given: np.ndarray) -> str:
        """Which freedoms some do not determine in a position, with A of `matrix`."""
        rest = np.delete(np.arange(self.model.nv), given)
        loose = np.abs(np.linalg.svd(A[:, rest])[2][-1])
        joints = rest[loose > 0.1 * np.max(loose)]
        return (
            f"{self.names(given)} does not determine {self.names(joints)} through "
            f"{self.around(joints)}"
        )

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
