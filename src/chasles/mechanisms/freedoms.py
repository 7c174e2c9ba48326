"""Coordinates of closed loops, and the choice of independent ones."""

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np

from chasles.errors import ModelError
from chasles.mechanisms.equations import Equations
from chasles.mechanisms.ranks import RANK, determine, independent_columns, rank_of, spans
from chasles.mechanisms.reports import LockedMechanism
from chasles.model.description import freedom_names
from chasles.model.given import some_names, some_numbers


class Freedoms(Equations):
    """Velocity coordinates, and the independent ones, which are chosen at t = 0 for all times."""

    def at(self, time: np.ndarray) -> Self:
        """Return the same loops, with the same choices, at another time (...) in s."""
        _ = self.agreed, self.columns, self.independent, self.reference_matrix  # chosen once
        moved = copy(self)
        moved.__dict__.pop("positions", None)
        if self.positions is not self:
            moved.positions = self.positions.at(time)
        moved.time = time
        return moved

    @cached_property
    def freedoms(self) -> tuple[str, ...]:
        """Names of the velocity coordinates: the joint's name, with [k] if it has several."""
        bodies = [self.model.bodies[i] for i in self.model.movers]
        return tuple(n for b in bodies for n in freedom_names(b.data.name, b.joint.nv))

    @cached_property
    def places(self) -> tuple[int | None, ...]:
        """Index in q of the coordinate whose rate is each velocity coordinate, or None."""
        found: list[int | None] = []
        for i, where in self.model.position_slices.items():
            joint = self.model.bodies[i].joint
            found += range(where.start, where.stop) if joint.additive else [None] * joint.nv
        return tuple(found)

    # Independent coordinates -------------------------------------------------------------------

    @cached_property
    def reference_matrix(self) -> np.ndarray:
        """Matrices A of the loops in the references: (states, rows, nv)."""
        return self.raw_matrix(self.references)

    @cached_property
    def reference_equations(self) -> np.ndarray:
        """Matrices A of the loops in the references, in dimensionless form."""
        return self.scaled(self.reference_matrix)

    @cached_property
    def independent(self) -> np.ndarray:
        """Independent velocity coordinates, in increasing order.

        If some equations constrain only velocities, the independent coordinates of the
        position-level equations include these.
        """
        if self._whole is not None:
            A = self.reference_equations.copy()
            A[..., self._whole.independent] = 0.0
            rank = rank_of(self.reference_equations[0])[0]
            return independent_columns(A, rank, self._last_first)
        names = self.model.source.independent
        return self.select(names) if names else self.automatic

    @cached_property
    def automatic(self) -> np.ndarray:
        """Automatic choice of independent coordinates."""
        A = self.reference_equations
        return independent_columns(A, rank_of(A[0])[0], self._last_first)

    def select(self, names: Sequence[str]) -> np.ndarray:
        """Return the coordinates that the user chose; they must determine the others."""
        if not len(names):
            problem = (
                "name its independent coordinates, for example "
                f"{self.names(self.automatic) or 'none: it is locked'}"
            )
            raise ModelError("E-LOOP-003", problem, part=self.part)
        given = self.indices(names, "to be independent")
        self.check_moves(given, self.automatic)
        still = np.intersect1d(given, self.immobile)
        if len(still):
            able = np.delete(np.arange(self.model.nv), self.immobile)
            problem = f"{self.names(still)} cannot move: {self.around(still)} lock it"
            remedy = f"choose among {self.names(able)}, or use a loop joint with fewer constraints"
            raise LockedMechanism("E-LOOP-010", problem, remedy, part=self.part)
        if len(given) != len(self.automatic) or not determine(self.reference_equations, given):
            problem = f"{self.names(given)} cannot be the independent coordinates"
            remedy = (
                f"it has {len(self.automatic)} degrees of freedom, for example "
                f"{self.names(self.automatic)}"
            )
            raise ModelError("E-LOOP-004", problem, remedy, part=self.part)
        return given

    def indices(self, names: Sequence[str], purpose: str) -> np.ndarray:
        """Return the velocity coordinates with the given names, in increasing order."""
        names = some_names("freedoms", names)
        for name in names:
            if name not in self.freedoms:
                problem = f"there is no degree of freedom {name!r} {purpose}"
                remedy = f"use one of {', '.join(map(repr, self.freedoms))}"
                raise ModelError("E-LOOP-005", problem, remedy, part=self.part)
        return np.array(sorted({self.freedoms.index(name) for name in names}), dtype=int)

    def rank(self, freedoms: np.ndarray) -> int:
        """Return the number of equations between some coordinates, with the others given."""
        return max(rank_of(A)[0] for A in self.reference_equations[..., freedoms])

    @cached_property
    def _last_first(self) -> list[int]:
        """Order in which coordinates become dependent: those not in q first, then last joints."""
        return sorted(range(self.model.nv), key=lambda k: (self.places[k] is not None, -k))

    @cached_property
    def dependent(self) -> np.ndarray:
        """Velocity coordinates that the loops determine."""
        return np.delete(np.arange(self.model.nv), self.independent)

    @cached_property
    def immobile(self) -> np.ndarray:
        """Velocity coordinates that are zero in all closed motions."""
        rank = self.model.nv - len(self.automatic)
        lengths = [spans(A, rank) for A in self.reference_equations]
        return np.flatnonzero(np.max(lengths, axis=0) <= RANK)

    def check_moves(self, asked: Any, independent: np.ndarray) -> None:
        """Raise an error if values are given, but there are no independent coordinates."""
        if not len(independent) and self.model.nv and some_numbers("y", asked).size:
            every = np.arange(self.model.nv)
            loose = f"{self.around(every)} leaves no degree of freedom to {self.names(every)}"
            remedy = "use a loop joint with fewer constraints, remove a coupling, or add a joint"
            problem, part = (
                f"{loose}, so there are no independent coordinates",
                f"{self.part}: locked",
            )
            raise LockedMechanism("E-LOOP-009", problem, remedy, part=part)

    def names(self, freedoms: Sequence[int] | np.ndarray) -> str:
        return ", ".join(repr(self.freedoms[k]) for k in freedoms)

    def around(self, freedoms: np.ndarray) -> str:
        """Describe the loops and couplings that involve any of the given coordinates."""
        owners = {self.owners[k] for k in freedoms}
        found = []
        for what, among in (("loop", self.model.loops), ("coupling", self.model.couplings)):
            names = [repr(x.name) for x in among if owners & self.model.owners(x.bodies)]
            found += [f"{what} {', '.join(names)}"] if names else []
        return " and ".join(found)
