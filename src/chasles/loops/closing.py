"""Closed loops of one robot: mobility, independent freedoms, assembly and dependent rates.

Everything is decided on dimensionless equations (`scales`).
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from chasles.backends.drivers import newton
from chasles.loops.openness import at_index, check_position, check_rates, how_open
from chasles.loops.reports import (
    ImpossiblePosition,
    LockedMechanism,
    SingularPosition,
)
from chasles.loops.scales import column_scales, row_scales
from chasles.model import Coupling, Loop, Model, ModelError
from chasles.names import leading_shape

CLOSED = 1e-13
"""Loops are solved to this residual, in rad and in sizes of the loop."""

RANK = 1e-8
"""A singular value of the loops' matrix below this part of the largest is zero."""

SINGULAR = 1e-6
"""Below this part of the largest singular value the dependent freedoms are not determined: a
residual of 1e-13 then leaves a position uncertain by more than 1e-7."""

_STARTS = 16
_SHARE = 0.1


class Loops:
    """The loops of a model and the compiled functions that they need."""

    def __init__(self, model: Model, function: Callable[[str], Callable[..., Any]]) -> None:
        self.model = model
        self.function = function

    # What is there ----------------------------------------------------------------------------

    @cached_property
    def owners(self) -> tuple[int, ...]:
        """For each velocity coordinate the body whose joint it moves."""
        return tuple(i for i in self.model.movers for _ in range(self.model.bodies[i].joint.nv))

    def movers(self, constraint: Loop | Coupling) -> set[int]:
        """The bodies whose coordinates the equations of a loop or a coupling are of."""
        return {self.model.owner(i)[0] for i in constraint.bodies}

    @cached_property
    def freedoms(self) -> tuple[str, ...]:
        """A name for each velocity coordinate: the joint's, with [k] where it has several."""
        names = []
        for i in self.model.movers:
            name, nv = self.model.bodies[i].data.name, self.model.bodies[i].joint.nv
            names += [name] if nv == 1 else [f"{name}[{k}]" for k in range(nv)]
        return tuple(names)

    @cached_property
    def places(self) -> tuple[int | None, ...]:
        """For each velocity coordinate the coordinate of q that it is the rate of, if there is."""
        found: list[int | None] = []
        for i, where in self.model.position_slices.items():
            joint = self.model.bodies[i].joint
            found += range(where.start, where.stop) if joint.additive else [None] * joint.nv
        return tuple(found)

    @cached_property
    def rows(self) -> np.ndarray:
        """Scales of the equations."""
        return row_scales(self.model)

    @cached_property
    def columns(self) -> np.ndarray:
        """Scales of the freedoms."""
        return column_scales(self.model)

    def matrix(self, q: np.ndarray) -> np.ndarray:
        """A of the loops, dimensionless: (..., rows, nv)."""
        return self.rows[:, None] * self.function("loop_matrix")(q) * self.columns

    # Which freedoms are independent -----------------------------------------------------------

    @cached_property
    def references(self) -> np.ndarray:
        """Closed positions of full rank, found from neutral and from positions around it."""
        joints = [self.model.bodies[i].joint for i in self.model.movers]
        neutral = np.array([float(x) for joint in joints for x in joint.neutral()])
        looped = set().union(*map(self.movers, self.model.constraints))
        inside = np.array([float(i in looped) for i in self.owners])
        spread = np.linspace(0.0, 3.0, _STARTS)[:, None] * self.columns * inside
        away = spread * np.random.default_rng(0).uniform(-1.0, 1.0, (_STARTS, self.model.nv))
        starts = self.function("integrate")(np.tile(neutral, (_STARTS, 1)), away)
        found = self._solve(starts, self.columns)
        closed = found.q[found.size <= CLOSED]
        if not len(closed):
            best = how_open(self.model, found.residual[int(np.argmin(found.size))])
            raise ImpossiblePosition(
                f"robot {self.model.name!r}: no position was found that closes its loops; "
                f"{best} at best; check lengths, frames and couplings"
            )
        ranks = [rank_of(A)[0] for A in self.matrix(closed)]
        return closed[np.array(ranks) == max(ranks)]

    @cached_property
    def independent(self) -> np.ndarray:
        """The velocity coordinates taken as independent, in increasing order."""
        names = self.model.source.independent
        return self.select(names) if names else self.automatic

    @cached_property
    def automatic(self) -> np.ndarray:
        """The library's choice of independent coordinates."""
        A = self.matrix(self.references)
        return self._chosen(A, rank_of(A[0])[0])

    def select(self, names: Sequence[str]) -> np.ndarray:
        """The coordinates of a user's choice, which must determine the others."""
        if not len(names):
            raise ModelError(
                f"robot {self.model.name!r}: name its independent freedoms, for example "
                f"{self.names(self.automatic) or 'none: it is locked'}"
            )
        given = self.indices(names, "to be independent")
        self._check_moves(given, self.automatic)
        self._check_each_moves(given)
        if len(given) != len(self.automatic) or not self._determine(given):
            raise ModelError(
                f"robot {self.model.name!r}: {self.names(given)} cannot be its independent "
                f"freedoms; it has {len(self.automatic)}, for example "
                f"{self.names(self.automatic)}"
            )
        return given

    def indices(self, names: Sequence[str], purpose: str) -> np.ndarray:
        """The velocity coordinates with these names, in increasing order."""
        names = [names] if isinstance(names, str) else names
        for name in names:
            if name not in self.freedoms:
                raise ModelError(
                    f"robot {self.model.name!r}: no freedom {name!r} {purpose}; it has "
                    f"{', '.join(map(repr, self.freedoms))}"
                )
        return np.array(sorted({self.freedoms.index(name) for name in names}), dtype=int)

    def among(self, given: np.ndarray) -> np.ndarray | None:
        """Independent coordinates among some, or None where these do not determine all others."""
        if not self._determine(given):
            return None
        rest = np.delete(np.arange(self.model.nv), given)
        A = self.matrix(self.references)
        U, s, _ = np.linalg.svd(A[..., rest], full_matrices=False)
        kept = U * (s > RANK * np.max(s, axis=-1, initial=0.0, keepdims=True))[..., None, :]
        left = A - kept @ (np.swapaxes(kept, -1, -2) @ A)
        left[..., rest] = 0.0
        free = self._chosen(left, len(self.dependent) - len(rest))
        return np.array([k for k in free if k in given], dtype=int)

    def _determine(self, given: np.ndarray) -> bool:
        """Whether some coordinates determine all others, at a position in which nothing is special.

        More than is needed may be given.
        """
        rest = np.delete(self.matrix(self.references), given, axis=-1)
        return bool(np.max(_margin(rest)) > SINGULAR)

    def suited(self, q: np.ndarray) -> np.ndarray:
        """The independent coordinates from which a closed position (nq,) moves best."""
        return self._chosen(self.matrix(q)[None], len(self.dependent), share=0.5)

    def _chosen(self, A: np.ndarray, rank: int, share: float = _SHARE) -> np.ndarray:
        """Independent columns of A (states, rows, nv): early joints, whose q has rates if possible.

        The others are taken one after the other from the last joint to the first, each unless what
        it adds to those taken is less than a share of what another would (threshold pivoting).
        """
        order = sorted(range(A.shape[-1]), key=lambda k: (self.places[k] is not None, -k))
        left, dependent = A.copy(), np.zeros(A.shape[-1], dtype=bool)
        for _ in range(rank):
            size = np.where(dependent, 0.0, np.median(np.linalg.norm(left, axis=-2), axis=0))
            k = next(k for k in order if size[k] >= share * np.max(size) and not dependent[k])
            u = left[..., k] / np.maximum(np.linalg.norm(left[..., k], axis=-1), RANK)[..., None]
            left = left - u[..., None] * np.einsum("...m,...mv->...v", u, left)[..., None, :]
            dependent[k] = True
        return np.flatnonzero(~dependent)

    @cached_property
    def dependent(self) -> np.ndarray:
        """The velocity coordinates that the loops determine."""
        return np.delete(np.arange(self.model.nv), self.independent)

    @cached_property
    def immobile(self) -> np.ndarray:
        """The velocity coordinates that are zero in all closed motions."""
        rank = self.model.nv - len(self.automatic)
        lengths = [spans(A, rank) for A in self.matrix(self.references)]
        return np.flatnonzero(np.max(lengths, axis=0) <= RANK)

    # Positions and rates ----------------------------------------------------------------------

    def assemble(self, y: Any, guess: Any) -> np.ndarray:
        """Positions that close the loops."""
        self._check_moves(y, self.independent)
        y = self.array("assemble", "y", y, len(self.independent))
        if guess is None:
            starts = list(self.references)
        else:
            starts = [self.array("assemble", "guess", guess, self.model.nq)]
        nq, n = self.model.nq, y.shape[-1]
        lead = leading_shape("assemble", y=y, guess=starts[0])
        flat = np.broadcast_to(y, (*lead, n)).reshape(math.prod(lead), n)
        moved = self.columns.copy()
        moved[self.independent] = 0.0
        q, residual = np.empty((len(flat), nq)), np.zeros((len(flat), len(self.rows)))
        left = np.arange(len(flat))
        for start in starts:
            begin = np.broadcast_to(start, (*lead, nq)).reshape(len(flat), nq)[left]
            found = self._solve(self._placed(flat[left], begin), moved)
            q[left], residual[left] = found.q, found.residual
            left = left[~(found.size <= CLOSED)]
            if not len(left):
                break
        if len(left):
            more = "" if len(left) == 1 else f" (and at {len(left) - 1} others)"
            raise ImpossiblePosition(
                f"robot {self.model.name!r}: impossible position{at_index(left[0], lead)}{more}: "
                f"{how_open(self.model, residual[left[0]])} with {self._given(flat[left[0]])}; the "
                "position is out of reach, or the guess too far from it"
            )
        self.check_regular(self.matrix(q), lead)
        return q.reshape(*lead, nq)

    def complete(self, q: Any, yd: Any, ydd: Any, tolerance: float) -> Any:
        """All rates from those of the independent freedoms; all accelerations too, if given."""
        n = len(self.independent)
        self._check_moves(yd, self.independent)
        q, yd = (
            self.array("complete", name, value, size)
            for name, value, size in (("q", q, self.model.nq), ("yd", yd, n))
        )
        leading_shape("complete", q=q, yd=yd)
        self.check_closed("complete", q, tolerance)
        A = self.matrix(q)
        self.check_regular(A, q.shape[:-1])
        qd = self._spread(A, yd, np.zeros(len(self.rows)))
        if ydd is None:
            return qd
        ydd = self.array("complete", "ydd", ydd, n)
        leading_shape("complete", q=q, yd=yd, ydd=ydd)
        return qd, self._spread(A, ydd, self.rows * self.function("loop_bias")(q, qd))

    def _spread(self, A: np.ndarray, y: np.ndarray, b: np.ndarray) -> np.ndarray:
        """x with A x = b and the independent entries y, least squares where rows are redundant."""
        given, free = self.columns[self.independent], self.dependent
        right = b - np.einsum("...mk,...k->...m", A[..., self.independent], y / given)
        rest = np.einsum("...vm,...m->...v", np.linalg.pinv(A[..., free]), right)
        x = np.empty((*rest.shape[:-1], self.model.nv))
        x[..., free], x[..., self.independent] = self.columns[free] * rest, y
        return x

    def carried(self, q: np.ndarray, independent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """G (..., nv, n) and R (..., nv, rows): x = G y + R b has A x = b, and y at `independent`.

        At closed positions, for any choice of the independent; A, b as in `loop_matrix`. Where rows
        are redundant, b must agree with them.
        """
        A = self.matrix(q)
        self.check_regular(A, q.shape[:-1], independent)
        free = np.delete(np.arange(self.model.nv), independent)
        R = np.zeros((*q.shape[:-1], self.model.nv, len(self.rows)))
        R[..., free, :] = self.columns[free, None] * np.linalg.pinv(A[..., free]) * self.rows
        G = -R @ self.function("loop_matrix")(q)[..., independent]
        G[..., independent, np.arange(len(independent))] = 1.0
        return G, R

    def _placed(self, y: np.ndarray, guess: np.ndarray) -> np.ndarray:
        """The guess with the independent freedoms at y, or moved by y where q has no such entry."""
        q, step = guess.copy(), np.zeros((len(y), self.model.nv))
        for entry, k in zip(y.T, self.independent, strict=True):
            place = self.places[k]
            if place is None:
                step[:, k] = entry
            else:
                q[:, place] = entry
        return self.function("integrate")(q, step)

    def _solve(self, q: np.ndarray, columns: np.ndarray) -> newton.Found:
        return newton.solve(
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

    def array(self, function: str, name: str, value: Any, size: int) -> np.ndarray:
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{function}: {name} is not an array of numbers: {error}") from None
        if array.ndim == 0 or array.shape[-1] != size:
            what = f" ({self.names(self.independent)})" if name.startswith("y") else ""
            raise ValueError(
                f"{function}: {name} must have shape (..., {size}){what}, not {array.shape}"
            )
        if not np.all(np.isfinite(array)):
            raise ValueError(f"{function}: {name} must be finite numbers")
        return array

    def _check_moves(self, asked: Any, independent: np.ndarray) -> None:
        """Where something is asked of independent freedoms, there are some."""
        if np.size(asked) and not len(independent) and self.model.nv:
            every = np.arange(self.model.nv)
            raise LockedMechanism(
                f"robot {self.model.name!r}: locked: {self.around(every)} leaves "
                f"{self.names(every)} no freedom, so none is independent; take a loop joint that "
                "forbids less, leave out a coupling, or add a joint"
            )

    def _check_each_moves(self, asked: np.ndarray) -> None:
        """Where some freedoms are to be driven, each of them moves."""
        still = np.array([k for k in asked if k in self.immobile], dtype=int)
        if len(still):
            able = np.delete(np.arange(self.model.nv), self.immobile)
            raise LockedMechanism(
                f"robot {self.model.name!r}: {self.names(still)} cannot move, held by "
                f"{self.around(still)}; drive others, of {self.names(able)}, or take a loop joint "
                "that forbids less"
            )

    def check_closed(self, function: str, q: np.ndarray, tolerance: float) -> None:
        check_tolerance(function, tolerance)
        residual = self.rows * self.function("loop_residual")(q)
        check_position(function, self.model, q, residual, tolerance)

    def check_rates(self, function: str, q: Any, *rates: Any, tolerance: float) -> None:
        """qd, and qdd if given, keep the loops closed, to `tolerance` of their size (or of 1)."""
        at, *given = (np.asarray(x, dtype=float) for x in (q, *rates))
        A, bias, size = self.function("loop_matrix")(at), np.zeros(len(self.rows)), 0.0
        for name, x in zip(("qd", "qdd"), given, strict=False):
            error = self.rows * (np.einsum("...mv,...v->...m", A, x) - bias)
            size = np.sum(x * x, axis=-1) + size * size
            check_rates(function, name, self.model, error, np.sqrt(1.0 + size), tolerance)
            bias = self.function("loop_bias")(at, x)

    def check_regular(
        self, A: np.ndarray, lead: tuple[int, ...], independent: np.ndarray | None = None
    ) -> None:
        """The dependent freedoms are determined by the equations of every state."""
        given = self.independent if independent is None else independent
        rest = np.delete(np.arange(self.model.nv), given)
        A = A.reshape(math.prod(lead), len(self.rows), self.model.nv)
        bad = np.flatnonzero(_margin(A[..., rest]) <= SINGULAR)
        if not len(bad):
            return
        here = A[bad[0]]
        rank, _ = rank_of(here)
        other = self._chosen(here[None], rank)
        if rank < len(rest):
            remedy = f"the loops leave {len(other)} freedoms here instead of "
            remedy += f"{len(given)}, so no choice of independent ones will do"
        else:
            remedy = f"take others as independent: robot.with_independent({self.names(other)})"
        raise SingularPosition(
            f"robot {self.model.name!r}: singular position{at_index(bad[0], lead)}: "
            f"{self.undetermined(here, given)}; {remedy}"
        )

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

    def _given(self, y: np.ndarray) -> str:
        pairs = zip(self.independent, y, strict=True)
        return ", ".join(f"{self.freedoms[k]} = {value:.12g}" for k, value in pairs)

    def around(self, freedoms: np.ndarray) -> str:
        """The loops and couplings that any of these freedoms are in."""
        owners = {self.owners[k] for k in freedoms}
        found = []
        for what, among in (("loop", self.model.loops), ("coupling", self.model.couplings)):
            names = [repr(x.name) for x in among if owners & self.movers(x)]
            found += [f"{what} {', '.join(names)}"] if names else []
        return " and ".join(found)


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


def _margin(A: np.ndarray) -> np.ndarray:
    """The smallest singular value of each matrix beside the largest (0 if it has too few rows)."""
    if A.shape[-1] == 0:
        return np.ones(len(A))
    if A.shape[-2] < A.shape[-1]:
        return np.zeros(len(A))
    values = np.linalg.svd(A, compute_uv=False)
    return values[:, -1] / np.maximum(values[:, 0], 1e-300)


def check_tolerance(function: str, tolerance: Any) -> None:
    if not isinstance(tolerance, int | float) or not tolerance > 0.0:
        raise ValueError(f"{function}: tolerance must be a positive number, not {tolerance!r}")
