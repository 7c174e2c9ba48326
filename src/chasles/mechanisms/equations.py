"""Dimensionless loop-closure equations, and independent coordinates.

Lengths are divided by the size of their loop, which is the sum of the fixed distances around it.
"""

import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np

from chasles.algorithms.homogeneous import coupling_matrix
from chasles.errors import ModelError
from chasles.functions import blocks, numeric
from chasles.functions.compiled import AtTime, Compiled
from chasles.mathematics.linear import Vector
from chasles.mechanisms.ranks import (
    CLOSED,
    RANK,
    Agreement,
    agreement,
    determine,
    independent_columns,
    rank_of,
    regular,
    spans,
)
from chasles.mechanisms.reports import LockedMechanism
from chasles.model import Coupling, Model
from chasles.model.description import freedom_names
from chasles.model.given import some_names, some_numbers
from chasles.model.spaces import freedom_units, loop_size
from chasles.names import one_of

SAMPLES = 16
"""Number of random configurations at which the derivatives of a coupling are evaluated.

The largest derivative determines the scale of each coupling equation.
"""


class Equations:
    """Equations of loops and couplings at one time.

    Redundant equations are dropped. The remaining (active) equations are selected at t = 0.
    """

    def __init__(self, model: Model, function: Callable[..., Compiled]) -> None:
        self.model = model
        self.time = np.zeros(())
        self._compile = function
        self._whole: Self | None = None

    @cached_property
    def positions(self) -> Self:
        """The holonomic equations, or this object itself if all equations are holonomic."""
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
        """Name of the robot, for error messages."""
        return f"robot {self.model.name!r}"

    @cached_property
    def owners(self) -> tuple[int, ...]:
        """Index of the body that each velocity coordinate's joint moves."""
        return tuple(i for i in self.model.movers for _ in range(self.model.bodies[i].joint.nv))

    @cached_property
    def neutral(self) -> np.ndarray:
        """Configuration (nq,) in which the two frames of every joint coincide."""
        joints = (self.model.bodies[i].joint for i in self.model.movers)
        return np.array([float(x) + 0.0 for joint in joints for x in joint.neutral()])

    @cached_property
    def scales(self) -> np.ndarray:
        """Scale factors (rows,) that make all loop equations dimensionless."""
        return row_scales(self.model.at(0.0))

    @cached_property
    def columns(self) -> np.ndarray:
        """Scale factors (nv,) that make the velocity coordinates dimensionless."""
        return column_scales(self.model)

    @cached_property
    def tolerance(self) -> float:
        """Residual (rad or relative) above which a redundant equation contradicts the others."""
        sizes = [loop_size(self.model, loop) for loop in self.model.loops]
        return max(map(self.model.source.precision.closure, sizes or [1.0]))

    @cached_property
    def agreed(self) -> Agreement:
        """Active loop equations, and reference configurations in which the loops are closed.

        Equations that restrict only velocities are always active.
        """
        if self.positions is self:
            return agreement(self)
        found = self.positions.agreed
        return found._replace(references=regular(self, found.references, found.rows))

    @property
    def rows(self) -> np.ndarray:
        """Scales (rows,) that make the loop equations dimensionless; 0 for dropped equations."""
        return self.agreed.rows

    @property
    def references(self) -> np.ndarray:
        """Configurations near the neutral one in which the loops are closed.

        The loop equations are nonsingular in these configurations.
        """
        return self.agreed.references

    def weights(self, tolerance: float) -> np.ndarray:
        """Return scale factors for loop residuals; scaled residuals must not exceed `tolerance`.

        If `tolerance` is smaller than `self.tolerance`, the limit for dropped (redundant) equations
        is `self.tolerance`.
        """
        share = min(1.0, tolerance / self.tolerance)
        return np.where(self.rows == 0.0, share * self.scales, self.rows)

    @cached_property
    def looped(self) -> np.ndarray:
        """Indices of the velocity coordinates of joints in loops or couplings."""
        bodies = [i for each in self.model.constraints for i in each.bodies]
        movers = self.model.owners(bodies)
        return np.array([k for k, i in enumerate(self.owners) if i in movers], dtype=int)

    @cached_property
    def blocks(self) -> tuple[blocks.Blocks, ...]:
        """Equations and coordinates of each cluster of loops; empty for fewer than two clusters."""
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
        """Return the dimensionless constraint Jacobian A of the loops: (..., rows, nv)."""
        return self.scaled(self.raw_matrix(q))

    def scaled(self, A: np.ndarray) -> np.ndarray:
        """Scale the rows and columns of a constraint Jacobian A to make it dimensionless."""
        return self.rows[:, None] * A * self.columns

    def raw_matrix(self, q: np.ndarray) -> np.ndarray:
        """Return the constraint Jacobian A of the loops: (..., rows, nv)."""
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
        """Find closed configurations by Newton's method, starting at q.

        `columns` contains a scale factor for each velocity coordinate; a coordinate with the factor
        0 does not move. Velocity-level equations are ignored.
        """
        scales = self.rows if rows is None else rows
        residual, matrix = self.function("loop_residual"), self.function("loop_matrix")
        integrate = self.function("integrate")
        limits: dict[str, Any] = {"columns": columns, "tolerance": tolerance, "rank": rank}
        limits["rows"] = scales * np.array(self.model.holonomic_rows)
        if not self.blocks:
            return numeric.solve(residual, matrix, integrate, q, **limits)
        return blocks.solve(residual, matrix, integrate, q, self.blocks, **limits)


class Freedoms(Equations):
    """Loop equations and the independent velocity coordinates, which are chosen once, at t = 0."""

    def at(self, time: np.ndarray) -> Self:
        """Return the equations at another time (s), with the same independent coordinates."""
        # Compute these properties at t = 0, before the time changes.
        _ = self.agreed, self.columns, self.independent, self.reference_matrix
        moved = copy(self)
        moved.__dict__.pop("positions", None)
        if self.positions is not self:
            moved.positions = self.positions.at(time)
        moved.time = time
        return moved

    @cached_property
    def freedoms(self) -> tuple[str, ...]:
        """Names of velocity coordinates: "joint", or "joint[k]" if the joint has several."""
        bodies = [self.model.bodies[i] for i in self.model.movers]
        return tuple(n for b in bodies for n in freedom_names(b.data.name, b.joint.nv))

    @cached_property
    def places(self) -> tuple[int | None, ...]:
        """Index in q of each velocity coordinate's position coordinate, or None.

        The value is None for joints such as ball joints, whose velocities are not derivatives of q.
        """
        found: list[int | None] = []
        for i, where in self.model.position_slices.items():
            joint = self.model.bodies[i].joint
            found += range(where.start, where.stop) if joint.additive else [None] * joint.nv
        return tuple(found)

    # Independent coordinates -------------------------------------------------------------------

    @cached_property
    def reference_matrix(self) -> np.ndarray:
        """Constraint Jacobians at the reference configurations: (states, rows, nv)."""
        return self.raw_matrix(self.references)

    @cached_property
    def reference_equations(self) -> np.ndarray:
        """Dimensionless constraint Jacobians at the reference configurations."""
        return self.scaled(self.reference_matrix)

    @cached_property
    def independent(self) -> np.ndarray:
        """Independent velocity coordinates, in increasing order.

        If some equations constrain only velocities, additional positions are independent.
        `positions.independent` includes these positions.
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
        """Return indices of the named independent coordinates, which must determine all others."""
        if not len(names):
            problem = (
                "no independent coordinates were given; a valid choice is "
                f"{self.names(self.automatic) or 'none, because the loops lock all joints'}"
            )
            raise ModelError("E-LOOP-003", problem, part=self.part)
        given = self.indices(names, "to be independent")
        self.check_moves(given, self.automatic)
        still = np.intersect1d(given, self.immobile)
        if len(still):
            able = np.delete(np.arange(self.model.nv), self.immobile)
            problem = f"{self.names(still)} cannot move: locked by {self.around(still)}"
            remedy = (
                f"choose independent coordinates among {self.names(able)}, or use a loop joint "
                "with fewer constraints"
            )
            raise LockedMechanism("E-LOOP-010", problem, remedy, part=self.part)
        if len(given) != len(self.automatic) or not determine(self.reference_equations, given):
            problem = f"{self.names(given)} cannot be the independent coordinates"
            remedy = (
                f"choose independent coordinates ({len(self.automatic)} in total) that determine "
                f"all others, for example {self.names(self.automatic)}"
            )
            raise ModelError("E-LOOP-004", problem, remedy, part=self.part)
        return given

    def indices(self, names: Sequence[str], purpose: str) -> np.ndarray:
        """Return the velocity coordinates with the given names, in increasing order."""
        names = some_names("freedoms", names)
        for name in names:
            if name not in self.freedoms:
                problem = f"there is no degree of freedom {name!r} {purpose}"
                remedy = one_of(name, self.freedoms)
                raise ModelError("E-LOOP-005", problem, remedy, part=self.part)
        return np.array(sorted({self.freedoms.index(name) for name in names}), dtype=int)

    def rank(self, freedoms: np.ndarray) -> int:
        """Return the rank of the constraint Jacobian's columns for the given coordinates."""
        return max(rank_of(A)[0] for A in self.reference_equations[..., freedoms])

    @cached_property
    def _last_first(self) -> list[int]:
        """Coordinates in order of preference as dependent coordinates.

        Later joints are preferred. Coordinates without an entry in q come before all others.
        """
        return sorted(range(self.model.nv), key=lambda k: (self.places[k] is not None, -k))

    @cached_property
    def dependent(self) -> np.ndarray:
        """Indices in qd of the dependent coordinates, whose rates the loop equations determine."""
        return np.delete(np.arange(self.model.nv), self.independent)

    @cached_property
    def immobile(self) -> np.ndarray:
        """Indices in qd of the coordinates that the loop constraints keep at zero."""
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
        """Return the names of all loops and couplings that involve the coordinates, as a phrase."""
        owners = {self.owners[k] for k in freedoms}
        found = []
        for what, among in (("loop", self.model.loops), ("coupling", self.model.couplings)):
            names = [repr(x.name) for x in among if owners & self.model.owners(x.bodies)]
            found += [f"{what} {', '.join(names)}"] if names else []
        return " and ".join(found)


def clustered(model: Model) -> list[tuple[list[int], set[int]]]:
    """Partition loops and couplings into the smallest sets without common joints.

    See Featherstone 2008, section 8.9.

    Each set consists of the indices of constraints, and the bodies whose coordinates they involve.
    In the constraint Jacobian, the rows of one set are zero for the coordinates of all other sets.
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


# Scales -------------------------------------------------------------------------------------------


def row_scales(model: Model) -> np.ndarray:
    """Return scales of the loop equations (rows): 1 for rotations, 1/(loop size) for translations.

    For a coupling, the scale is the inverse of its largest derivative.
    """
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
    """Return the largest derivative of each coupling equation near the neutral configuration.

    Derivatives are with respect to coordinates in rad or m. A result of 0 is replaced by 1.
    """
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
