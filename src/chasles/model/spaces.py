"""Conversion between flat arrays and the arguments and results of algorithms.

A space is a type annotation that defines the shape of an array for a given model. The space splits
an input array into the argument of an algorithm, and joins a result into the entries of an output
array (in C order). Array entries are in file order. Arguments and results of algorithms are
mappings by body index, which include the bodies of mimic joints.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, NamedTuple

from chasles.expr import Number
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.products import Product
from chasles.mathematics.spatial import Force, Forces, Motion, Motions, Transform
from chasles.model.loads import Load
from chasles.model.model import WORLD, Loop, Model, slices


class Space:
    """Base class for conversions between flat arrays and values for each joint or body.

    By default, arrays have one entry per velocity coordinate.
    """

    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.nv,)

    def shape_of(self, model: Model, value: Any) -> tuple[int, ...]:
        """Return the shape of the result `value`, for spaces whose shape depends on the value."""
        return self.shape(model)

    def split(self, model: Model, flat: Sequence[Number]) -> Any:
        return {i: Vector(tuple(flat[s])) for i, s in model.velocity_slices.items()}

    def join(self, model: Model, value: Any) -> list[Number]:
        return [x for i in model.movers for x in value[i]]

    def quaternions(self, model: Model) -> dict[int, str]:
        """Return the joint of each quaternion: {index of the first component: joint name}."""
        return {}

    def packed(self, model: Model) -> list[tuple[int, int]]:
        """Return (row, column) of each entry of the packed form, or [] if there is none."""
        return []


class PositionSpace(Space):
    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.nq,)

    def split(self, model: Model, flat: Sequence[Number]) -> dict[int, Vector]:
        return model.positions(flat)

    def quaternions(self, model: Model) -> dict[int, str]:
        return {
            s.start: model.bodies[i].data.name
            for i, s in model.position_slices.items()
            if "1" in model.bodies[i].joint.units
        }


@dataclass(frozen=True)
class VelocitySpace(Space):
    """Vectors of size nv. `order` is 1 for velocities, 2 for accelerations, 0 for displacements."""

    order: int = 0

    def split(self, model: Model, flat: Sequence[Number]) -> dict[int, Vector]:
        return model.velocities(flat, self.order)


class EffortSpace(Space):
    """Generalized forces, grouped by the body that each joint moves.

    The generalized force of a mimic joint is added to that of its leader.
    """

    def join(self, model: Model, value: Mapping[int, Vector]) -> list[Number]:
        return super().join(model, model.efforts(value))


@dataclass(frozen=True)
class Listed(Space):
    """An array whose shape is computed by `size`, and whose entries are computed by `entries`."""

    size: Callable[[Model], tuple[int, ...]]
    entries: Callable[[Model, Any], Iterable[Number]]

    def shape(self, model: Model) -> tuple[int, ...]:
        return self.size(model)

    def split(self, model: Model, flat: Sequence[Number]) -> Vector:
        return Vector(tuple(flat))

    def join(self, model: Model, value: Any) -> list[Number]:
        return list(self.entries(model, value))


class SymmetricSpace(Listed):
    """A symmetric matrix (nv, nv), whose packed form is the lower triangle by rows."""

    def packed(self, model: Model) -> list[tuple[int, int]]:
        return [(row, column) for row in range(model.nv) for column in range(row + 1)]


class SpatialMatrixSpace(Space):
    """A 6x6 matrix that maps wrenches to accelerations.

    For several frames, the matrix has a 6x6 block for each pair of frames.
    """

    def shape(self, model: Model) -> tuple[int, ...]:
        return (6, 6)

    def shape_of(self, model: Model, value: Matrix) -> tuple[int, ...]:
        return value.shape

    def join(self, model: Model, value: Matrix) -> list[Number]:
        return _flat(value.rows)


class Freedom(NamedTuple):
    """Degree of freedom k of joint i."""

    i: int
    k: int


@dataclass(frozen=True)
class FreedomsSpace(Space):
    """Entries indexed by tuples of `rank` degrees of freedom. Absent entries are zero."""

    rank: int

    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.nv,) * self.rank

    def join(self, model: Model, value: Mapping[tuple[Freedom, ...], Number]) -> list[Number]:
        dense: list[Number] = [0.0] * model.nv**self.rank
        for freedoms, entry in value.items():
            for shares in product(*(model.shares(i) for i, _ in freedoms)):
                place, factor = 0, 1.0
                for (owner, first, ratio), (_, k) in zip(shares, freedoms, strict=True):
                    place = place * model.nv + model.velocity_slices[owner].start + first + k
                    factor *= ratio
                dense[place] = dense[place] + entry * factor
        return dense


@dataclass(frozen=True)
class TwistsSpace(Space):
    """Twist and its time derivatives: velocity, acceleration, jerk, and so on, up to `order`."""

    order: int = 1

    def shape(self, model: Model) -> tuple[int, ...]:
        return (self.order, 6)

    def join(self, model: Model, value: Sequence[Motion]) -> list[Number]:
        return _flat(value)


@dataclass(frozen=True)
class TreeSpace(Space):
    """A matrix in tree order (parents first), which `join` converts to file order.

    `rows` and `columns` are the numbers of rows and columns divided by nv: 1 for velocities, 2 for
    displacements dq followed by velocities.
    """

    rows: int
    columns: int

    def shape(self, model: Model) -> tuple[int, ...]:
        return (self.rows * model.nv, self.columns * model.nv)

    def join(self, model: Model, value: Matrix | Product) -> list[Number]:
        rows, columns = self._places(model)
        return [value[r, c] for r in rows for c in columns]

    def factors(self, model: Model, value: Product) -> tuple[Matrix, ...]:
        """Return matrices whose product is the matrix that `join` returns."""
        rows, columns = self._places(model)
        first, *middle, last = value.chain
        return (
            Matrix(tuple(first.rows[r] for r in rows)),
            *middle,
            Matrix(tuple(tuple(row[c] for c in columns) for row in last.rows)),
        )

    def _places(self, model: Model) -> tuple[list[int], list[int]]:
        steps = tree_places(model)
        places = steps + [model.nv + k for k in steps]
        rows, columns = (places[:size] for size in self.shape(model))
        return rows, columns


class FactorSpace(TreeSpace):
    """A triangular factor of the mass matrix.

    The packed form contains the entries for pairs of joints on the same branch. If there are mimic
    joints or rotors, which may couple branches, the packed form contains the whole triangle.
    """

    def packed(self, model: Model) -> list[tuple[int, int]]:
        found, before = [], model.in_tree_order
        for place, i in enumerate(before):
            coupled = model.mimics or model.rotors
            inward = before[: place + 1] if coupled else model.support(i)
            where = [model.velocity_slices[j] for j in inward if model.bodies[j].owns]
            columns = sorted(c for s in where for c in range(s.start, s.stop))
            own = model.velocity_slices[i]
            for row in range(own.start, own.stop):
                found += [(row, c) for c in columns if c <= row or not own.start <= c < own.stop]
        return sorted(found)


class ReadingsSpace(Space):
    """Concatenated values of the requested sensors."""

    def shape_of(self, model: Model, value: Sequence[Number]) -> tuple[int, ...]:
        return (len(value),)

    def join(self, model: Model, value: Sequence[Number]) -> list[Number]:
        return list(value)


class WrenchesSpace(Space):
    """External force on each body, computed from the user's wrenches while a program is traced."""


class LoadsSpace(WrenchesSpace):
    """External forces with frames, for algorithms that differentiate them with respect to q."""


# Entries of results ------------------------------------------------------------------------------


def _flat(rows: Iterable[Iterable[Number]]) -> list[Number]:
    return [x for row in rows for x in row]


def _owned(
    model: Model, parts: Mapping[int, Any], place: Mapping[int, slice]
) -> Iterator[tuple[int, float, Any]]:
    """Yield (index, ratio, block) for each velocity coordinate that moves the body of a block."""
    for i, part in parts.items():
        for owner, k, ratio in model.shares(i):
            if owner in place:
                yield place[owner].start + k, ratio, part


def _add(dense: list[list[Number]], row: int, column: int, block: Matrix, factor: float) -> None:
    """Add factor * block to a matrix, starting at (row, column)."""
    for r, entries in enumerate(block.rows, start=row):
        for c, entry in enumerate(entries, start=column):
            dense[r][c] = dense[r][c] + entry * factor


def _zeros(rows: int, columns: int) -> list[list[Number]]:
    return [[0.0] * columns for _ in range(rows)]


def _along_columns(model: Model, value: Mapping[int, Motions | Forces]) -> list[Number]:
    """Assemble a flattened (6, nv) matrix from the columns of each joint.

    Columns of joints that do not move the frame are zero.
    """
    dense = _zeros(6, model.nv)
    for column, ratio, block in _owned(model, value, model.velocity_slices):
        _add(dense, 0, column, Matrix(tuple(zip(*block.columns, strict=True))), ratio)
    return _flat(dense)


def _regressor(model: Model, value: Mapping[tuple[int, int], Matrix]) -> list[Number]:
    """Assemble the regressor, and return its entries in one list.

    The regressor has a row for each degree of freedom, and ten columns for each moving body, in
    file order.
    """
    dense = _zeros(model.nv, 10 * len(model.bodies))
    place = {i: 10 * k for k, i in enumerate(model.in_file_order)}
    for (j, i), block in value.items():
        for row, ratio, part in _owned(model, {j: block}, model.velocity_slices):
            _add(dense, row, place[i], part, ratio)
    return _flat(dense)


def _multipliers(model: Model, value: Vector) -> list[Number]:
    """Return one Lagrange multiplier for each equation of the loops and couplings.

    The multipliers of equations that `Model.closure` does not use are zero.
    """
    found: dict[int, Number] = dict(zip(model.closure.rows, value, strict=True))
    return [found.get(r, 0.0) for r in range(model.loop_rows)]


def tree_places(model: Model) -> list[int]:
    """Return the index in tree order of every velocity coordinate, listed in file order."""
    places, _ = _places(model, model.in_tree_order)
    return [k for i in model.movers for k in range(places[i].start, places[i].stop)]


def assemble(
    model: Model, blocks: Mapping[tuple[int, int], Matrix], order: Sequence[int]
) -> list[list[Number]]:
    """Assemble a dense matrix for the coordinates of the bodies in `order`.

    Entries of mimic joints are added to the entries of their leaders.
    """
    place, n = _places(model, order)
    dense = _zeros(n, n)
    for (i, j), block in blocks.items():
        for row, left, _ in _owned(model, {i: block}, place):
            for column, right, _ in _owned(model, {j: block}, place):
                _add(dense, row, column, block, left * right)
    return dense


def loop_rows(
    model: Model, parts: Sequence[Mapping[int, Matrix]], order: Sequence[int]
) -> list[list[Number]]:
    """Return the matrix of all loop and coupling equations; columns are for bodies in `order`."""
    return _stacked(model, parts, [constraint.rows for constraint in model.constraints], order)


def _stacked(
    model: Model,
    parts: Sequence[Mapping[int, Matrix]],
    sizes: Sequence[int],
    order: Sequence[int],
) -> list[list[Number]]:
    """Stack matrices vertically; each matrix is a mapping from bodies to blocks of columns."""
    place, n = _places(model, order)
    dense: list[list[Number]] = []
    for size, blocks in zip(sizes, parts, strict=True):
        rows = _zeros(size, n)
        for column, ratio, block in _owned(model, blocks, place):
            _add(rows, 0, column, block, ratio)
        dense += rows
    return dense


def loop_entries(parts: Sequence[Vector]) -> list[Number]:
    """Concatenate the vectors of all loops and couplings into one list."""
    return _flat(parts)


def _places(model: Model, order: Sequence[int]) -> tuple[dict[int, slice], int]:
    """Return the slice of each joint's velocity coordinates, and their total number."""
    found = slices((i, model.bodies[i].joint.nv) for i in order)
    return found, found[order[-1]].stop if order else 0


def stack(parts: Mapping[int, Vector], order: Sequence[int]) -> Vector:
    """Concatenate the vectors of the bodies in `order`."""
    return Vector(tuple(x for i in order for x in parts[i]))


def unstack(model: Model, whole: Vector, order: Sequence[int]) -> dict[int, Vector]:
    """Split a vector into one vector for each body in `order` (the inverse of `stack`)."""
    return {i: Vector(whole.entries[place]) for i, place in _places(model, order)[0].items()}


def size(model: Model) -> float:
    """Return the longest distance between consecutive joints (m), or 1 if it is zero."""
    offsets = [b.joint.placement.r for b in model.bodies if b.parent != WORLD]
    return max((math.sqrt(r.dot(r)) for r in offsets), default=0.0) or 1.0


def loop_size(model: Model, loop: Loop) -> float:
    """Return the sum of the fixed distances around a loop (m), or 1 if it is zero."""
    steps = [model.bodies[i].joint.placement.r for i in loop.bodies]
    steps += [loop.predecessor.placement.r, loop.successor.placement.r]
    return sum(math.sqrt(r.dot(r)) for r in steps) or 1.0


def rate_places(model: Model) -> list[tuple[int, int]]:
    """Return index pairs (k, j) such that qd[k] is the time derivative of q[j]."""
    return [
        pair
        for i in model.movers
        if model.bodies[i].joint.additive
        for pair in zip(
            range(model.nv)[model.velocity_slices[i]],
            range(model.nq)[model.position_slices[i]],
            strict=True,
        )
    ]


def freedom_units(model: Model, length: float) -> list[float]:
    """Return the scale of each velocity coordinate: 1 for rotations, `length` for translations."""
    joints = [model.bodies[i].joint for i in model.movers]
    columns = [s for joint in joints for s in joint.subspace(joint.neutral()).columns]
    return [1.0 if any(s.angular) else length for s in columns]


class _Absent(dict[int, Force]):
    """External forces that are zero on every body."""

    def __missing__(self, i: int) -> Force:
        return Force.zero()


ABSENT = _Absent()

Blocks = dict[tuple[int, int], Matrix]
"""Blocks of a joint-space matrix, keyed by pairs of bodies (i, j)."""

Position = Annotated[Mapping[int, Vector], PositionSpace()]
Velocity = Annotated[Mapping[int, Vector], VelocitySpace()]
Effort = Annotated[Mapping[int, Vector], EffortSpace()]
Known = frozenset[int]
Mixed = Annotated[Mapping[int, Vector], Space()]
"""Acceleration or generalized force of each joint.

An argument of this type contains the accelerations of the joints in `known` and the generalized
forces of all others. A result contains the generalized forces of the joints in `known` and the
accelerations of all others.
"""

Wrenches = Annotated[Mapping[int, Force], WrenchesSpace()]
Loads = Annotated[Sequence[Load], LoadsSpace()]
FreedomMatrix = Annotated[Mapping[tuple[Freedom, Freedom], Number], FreedomsSpace(2)]
Symbols = Annotated[Mapping[tuple[Freedom, Freedom, Freedom], Number], FreedomsSpace(3)]
SpatialMatrix = Annotated[Matrix, SpatialMatrixSpace()]
Twists = Annotated[Sequence[Motion], TwistsSpace()]

DrivenEffort = Annotated[
    Mapping[int, Vector],
    Listed(
        lambda m: (sum(m.bodies[i].joint.nv for i in m.driven),),
        lambda m, value: [x for i in m.driven for x in value[i]],
    ),
]
"""Generalized forces of joints with prescribed motions, in file order."""

JointMatrix = Annotated[
    Mapping[tuple[int, int], Matrix],
    Listed(lambda m: (m.nv, m.nv), lambda m, value: _flat(assemble(m, value, m.movers))),
]
"""Blocks of a joint-space matrix, keyed by pairs of bodies (i, j). Absent blocks are zero."""

InertiaMatrix = Annotated[
    Mapping[tuple[int, int], Matrix],
    SymmetricSpace(lambda m: (m.nv, m.nv), lambda m, value: _flat(assemble(m, value, m.movers))),
]
"""Blocks of a symmetric joint-space matrix, keyed by pairs of bodies (i, j)."""

TreeMatrix = Annotated[Matrix | Product, TreeSpace(1, 1)]
TreeFactor = Annotated[Matrix, FactorSpace(1, 1)]
TreeVector = Annotated[
    Vector, Listed(lambda m: (m.nv,), lambda m, value: [value[k] for k in tree_places(m)])
]
"""A vector in tree order (parents first), which is converted to file order."""

StateMatrix = Annotated[Matrix | Product, TreeSpace(2, 2)]
InputMatrix = Annotated[Matrix | Product, TreeSpace(2, 1)]
"""Input matrix B in xdot = A x + B u, in tree order (parents first).

The first rows of B are for displacements dq, and the other rows for velocities.
"""

Jacobian = Annotated[Mapping[int, Motions], Listed(lambda m: (6, m.nv), _along_columns)]
MomentumMatrix = Annotated[Mapping[int, Forces], Listed(lambda m: (6, m.nv), _along_columns)]
Independent = Annotated[
    Vector, Listed(lambda m: (len(m.independent),), lambda m, value: value.entries)
]
IndependentMatrix = Annotated[
    Matrix, Listed(lambda m: (len(m.independent),) * 2, lambda m, value: _flat(value.rows))
]
"""A square matrix with rows and columns for the independent velocities, in file order."""

LoopVector = Annotated[
    Sequence[Vector], Listed(lambda m: (m.loop_rows,), lambda m, value: _flat(value))
]
LoopNumbers = Annotated[Vector, Listed(lambda m: (m.loop_rows,), lambda m, value: value.entries)]
"""One entry for each equation: first those of the loop joints, then those of the couplings."""

Multipliers = Annotated[Vector, Listed(lambda m: (m.loop_rows,), _multipliers)]
LoopForces = Annotated[
    Sequence[Force], Listed(lambda m: (len(m.loops), 6), lambda m, value: _flat(value))
]
LoopMatrix = Annotated[
    Sequence[Mapping[int, Matrix]],
    Listed(lambda m: (m.loop_rows, m.nv), lambda m, value: _flat(loop_rows(m, value, m.movers))),
]
"""A matrix with one row per entry of `LoopVector`.

The matrix is stored as a sequence of mappings, one for each loop and one for each coupling. Each
mapping contains the blocks of columns, keyed by body.
"""

LoopJointMatrix = Annotated[
    Sequence[Mapping[int, Matrix]],
    Listed(
        lambda m: (sum(loop.joint.nv for loop in m.loops), m.nv),
        lambda m, value: _flat(_stacked(m, value, [k.joint.nv for k in m.loops], m.movers)),
    ),
]
"""A matrix with one row per degree of freedom of each loop joint, and one column per velocity.

The value is a list with one dictionary per loop. The dictionary maps the index of a moving body to
the columns of that body's joint.
"""

Pose = Annotated[Transform, Listed(lambda m: (4, 4), lambda m, X: _flat(X.homogeneous.rows))]
RegressorMatrix = Annotated[
    Mapping[tuple[int, int], Matrix], Listed(lambda m: (m.nv, 10 * len(m.bodies)), _regressor)
]
Reactions = Annotated[
    Mapping[int, Force],
    Listed(lambda m: (len(m.bodies), 6), lambda m, value: _flat(value[i] for i in m.in_file_order)),
]
"""Reaction wrench of each moving joint, including mimic joints, in file order."""

SensorNumbers = Annotated[Sequence[Number], ReadingsSpace()]
"""Values of the requested sensors, concatenated."""
Controls = Annotated[
    Vector, Listed(lambda m: (len(m.source.actuators),), lambda m, value: value.entries)
]
"""A value for each actuator, in file order."""

Activations = Annotated[
    Vector,
    Listed(lambda m: (sum(x.active for x in m.source.actuators),), lambda m, value: value.entries),
]
"""Activation of each actuator that has an activation state, in file order."""

Health = Annotated[Vector, Listed(lambda m: (2,), lambda m, value: value)]
Twist = Annotated[Motion, Listed(lambda m: (6,), lambda m, value: value)]
Wrench6 = Annotated[Force, Listed(lambda m: (6,), lambda m, value: value)]
Point = Annotated[Vector, Listed(lambda m: (3,), lambda m, value: value)]
Energy = Annotated[Number, Listed(lambda m: (), lambda m, value: [value])]
