"""What an algorithm's annotations mean: how flat arrays become its arguments and results.

A space gives the shape of an array for a model, splits an input array into the value an algorithm
works on, and joins an algorithm's result into the entries of an output array (in C order). Arrays
have coordinates in file order; algorithms have them by body number, followers included.

Long because it is a list: one small class for each kind of array.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from chasles.expr import Number
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import Force, Forces, Motion, Motions, Transform
from chasles.model.loads import Load
from chasles.model.model import Model


class Space:
    """The meaning of one array: by default, numbers for each freedom that has a coordinate."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.nv,)

    def shape_of(self, model: Model, value: Any) -> tuple[int, ...]:
        """The shape of a result, where it depends on how much was asked for."""
        return self.shape(model)

    def split(self, model: Model, flat: Sequence[Number]) -> Any:
        return {i: Vector(tuple(flat[s])) for i, s in model.velocity_slices.items()}

    def join(self, model: Model, value: Any) -> list[Number]:
        return [x for i in model.movers for x in value[i]]

    def quaternions(self, model: Model) -> dict[int, str]:
        """Where quaternions start in the array, and the joints they belong to."""
        return {}


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
    """Rates of an order: velocities 1, accelerations 2; steps and differences 0."""

    order: int = 0

    def split(self, model: Model, flat: Sequence[Number]) -> dict[int, Vector]:
        return model.velocities(flat, self.order)


class EffortSpace(Space):
    """Forces by body, of which those of followers act through their leaders."""

    def join(self, model: Model, value: Mapping[int, Vector]) -> list[Number]:
        return super().join(model, model.efforts(value))


@dataclass(frozen=True)
class Listed(Space):
    """An array whose shape and entries are given by two functions; as an input, one vector."""

    size: Callable[[Model], tuple[int, ...]]
    entries: Callable[[Model, Any], Iterable[Number]]

    def shape(self, model: Model) -> tuple[int, ...]:
        return self.size(model)

    def split(self, model: Model, flat: Sequence[Number]) -> Vector:
        return Vector(tuple(flat))

    def join(self, model: Model, value: Any) -> list[Number]:
        return list(self.entries(model, value))


class SpatialMatrixSpace(Space):
    """A 6x6 matrix between twists and wrenches: a block for each two frames, if there are more."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (6, 6)

    def shape_of(self, model: Model, value: Matrix) -> tuple[int, ...]:
        return value.shape

    def join(self, model: Model, value: Matrix) -> list[Number]:
        return _flat(value.rows)


class Freedom(NamedTuple):
    """One freedom of one joint: column k of the subspace of joint i."""

    i: int
    k: int


@dataclass(frozen=True)
class FreedomsSpace(Space):
    """Entries by freedoms, as many for each as `rank` says; absent entries are zero."""

    rank: int

    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.nv,) * self.rank

    def join(self, model: Model, value: Mapping[tuple[Freedom, ...], Number]) -> list[Number]:
        dense: list[Number] = [0.0] * model.nv**self.rank
        for freedoms, entry in value.items():
            place, factor = 0, 1.0
            for i, k in freedoms:
                owner = model.owner(i)
                assert owner is not None, "closed forms are of coordinates alone"
                leader, ratio = owner
                place = place * model.nv + model.velocity_slices[leader].start + k
                factor *= ratio
            dense[place] = dense[place] + entry * factor
        return dense


@dataclass(frozen=True)
class TwistsSpace(Space):
    """One twist for each order: velocity, acceleration, jerk, and so on."""

    order: int = 1

    def shape(self, model: Model) -> tuple[int, ...]:
        return (self.order, 6)

    def join(self, model: Model, value: Sequence[Motion]) -> list[Number]:
        return _flat(value)


class WrenchesSpace(Space):
    """External forces by body; the tracer makes them from the wrenches a caller names."""


class LoadsSpace(WrenchesSpace):
    """The same one by one, for an algorithm that asks how they change with the configuration."""


# Entries of results ------------------------------------------------------------------------------


def _flat(rows: Iterable[Iterable[Number]]) -> list[Number]:
    return [x for row in rows for x in row]


def _along_columns(model: Model, value: Mapping[int, Motions | Forces]) -> list[Number]:
    """Columns by joint; joints that do not move the frame have none."""
    columns = {i: [Vector.zero(6) for _ in range(model.bodies[i].joint.nv)] for i in model.movers}
    for i, block in value.items():
        owner = model.owner(i)
        if owner is None:
            continue
        leader, ratio = owner
        vectors: Sequence[Motion | Force] = block.columns
        for k, column in enumerate(vectors):
            columns[leader][k] = columns[leader][k] + Vector(tuple(column)) * ratio
    flat = [column for i in model.movers for column in columns[i]]
    return [column[row] for row in range(6) for column in flat]


def _regressor(model: Model, value: Mapping[tuple[int, int], Matrix]) -> list[Number]:
    """Ten columns for each moving joint, followers included, in file order; rows over forces."""
    dense: list[list[Number]] = [[0.0] * 10 * len(model.bodies) for _ in range(model.nv)]
    place = {i: 10 * k for k, i in enumerate(model.in_file_order)}
    for (j, i), block in value.items():
        owner = model.owner(j)
        if owner is None:
            continue
        leader, ratio = owner
        first = model.velocity_slices[leader].start
        for k, row in enumerate(block.rows):
            for m, entry in enumerate(row, start=place[i]):
                dense[first + k][m] = dense[first + k][m] + entry * ratio
    return _flat(dense)


def _multipliers(model: Model, value: Vector) -> list[Number]:
    """Zero for the equations that the closure leaves out."""
    found: dict[int, Number] = dict(zip(model.closure.rows, value, strict=True))
    return [found.get(r, 0.0) for r in range(model.loop_rows)]


def _pose(model: Model, value: Transform) -> list[Number]:
    rows = [[*row, p] for row, p in zip(value.R.rows, value.r, strict=True)]
    return _flat((*rows, [0.0, 0.0, 0.0, 1.0]))


def tree_places(model: Model) -> list[int]:
    """For each coordinate in file order, its place in tree order."""
    first, _ = _starts(model, model.in_tree_order)
    return [first[i] + k for i in model.movers for k in range(model.bodies[i].joint.nv)]


def _placed(value: Matrix, rows: Sequence[int], columns: Sequence[int]) -> list[Number]:
    return [value[r, c] for r in rows for c in columns]


def _state_places(model: Model) -> list[int]:
    """The same of steps, then of velocities."""
    order = tree_places(model)
    return order + [model.nv + k for k in order]


def assemble(
    model: Model, blocks: Mapping[tuple[int, int], Matrix], order: Sequence[int]
) -> list[list[Number]]:
    """The dense matrix over the coordinates of `order`; followers act through their leaders."""
    first, n = _starts(model, order)
    dense: list[list[Number]] = [[0.0] * n for _ in range(n)]
    for (i, j), block in blocks.items():
        row_owner, column_owner = model.owner(i), model.owner(j)
        if row_owner is None or column_owner is None:
            continue
        (a, left), (b, right) = row_owner, column_owner
        for k, row in enumerate(block.rows):
            for m, entry in enumerate(row):
                r, c = first[a] + k, first[b] + m
                dense[r][c] = dense[r][c] + entry * (left * right)
    return dense


def loop_rows(
    model: Model, parts: Sequence[Mapping[int, Matrix]], order: Sequence[int]
) -> list[list[Number]]:
    """The rows of all loops and couplings, from blocks by body, over coordinates of `order`."""
    return _stacked(model, parts, [constraint.rows for constraint in model.constraints], order)


def _stacked(
    model: Model,
    parts: Sequence[Mapping[int, Matrix]],
    sizes: Sequence[int],
    order: Sequence[int],
) -> list[list[Number]]:
    """Parts of so many rows each, from blocks by body, over coordinates of `order`."""
    first, n = _starts(model, order)
    dense: list[list[Number]] = []
    for size, blocks in zip(sizes, parts, strict=True):
        rows: list[list[Number]] = [[0.0] * n for _ in range(size)]
        for i, block in blocks.items():
            owner = model.owner(i)
            if owner is None:
                continue
            leader, ratio = owner
            for k, row in enumerate(block.rows):
                for c, entry in enumerate(row, start=first[leader]):
                    rows[k][c] = rows[k][c] + entry * ratio
        dense += rows
    return dense


def loop_entries(parts: Sequence[Vector]) -> list[Number]:
    """The entries of all loops, one after the other."""
    return [x for part in parts for x in part]


def _starts(model: Model, order: Sequence[int]) -> tuple[dict[int, int], int]:
    """Where the coordinates of each joint begin, and how many there are."""
    first, n = {}, 0
    for i in order:
        first[i] = n
        n += model.bodies[i].joint.nv
    return first, n


def stack(parts: Mapping[int, Vector], order: Sequence[int]) -> Vector:
    """One vector over the coordinates of `order`."""
    return Vector(tuple(x for i in order for x in parts[i]))


def unstack(model: Model, whole: Vector, order: Sequence[int]) -> dict[int, Vector]:
    """The inverse of `stack`."""
    parts, start = {}, 0
    for i in order:
        size = model.bodies[i].joint.nv
        parts[i] = Vector(whole.entries[start : start + size])
        start += size
    return parts


class _Absent(Mapping[int, Force]):
    """No external forces: zero on every body."""

    def __getitem__(self, i: int) -> Force:
        return Force.zero()

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


ABSENT = _Absent()

Blocks = dict[tuple[int, int], Matrix]
"""Blocks (i, j) of a matrix over all joints, as an algorithm fills them in."""

Position = Annotated[Mapping[int, Vector], PositionSpace()]
Velocity = Annotated[Mapping[int, Vector], VelocitySpace()]
Effort = Annotated[Mapping[int, Vector], EffortSpace()]
Known = frozenset[int]
Mixed = Annotated[Mapping[int, Vector], Space()]
"""A force or an acceleration (of `Known` bodies) for each freedom, by body."""

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
"""A force for each freedom of the joints that are driven in time, in file order."""

JointMatrix = Annotated[
    Mapping[tuple[int, int], Matrix],
    Listed(lambda m: (m.nv, m.nv), lambda m, value: _flat(assemble(m, value, m.movers))),
]
"""Blocks (i, j) of a matrix over all joints; absent blocks are zero."""

TreeMatrix = Annotated[
    Matrix,
    Listed(
        lambda m: (m.nv, m.nv),
        lambda m, value: _placed(value, tree_places(m), tree_places(m)),
    ),
]
TreeVector = Annotated[
    Vector, Listed(lambda m: (m.nv,), lambda m, value: [value[k] for k in tree_places(m)])
]
"""Over the coordinates in tree order, brought into file order."""

StateMatrix = Annotated[
    Matrix,
    Listed(
        lambda m: (2 * m.nv, 2 * m.nv),
        lambda m, value: _placed(value, _state_places(m), _state_places(m)),
    ),
]
InputMatrix = Annotated[
    Matrix,
    Listed(
        lambda m: (2 * m.nv, m.nv),
        lambda m, value: _placed(value, _state_places(m), tree_places(m)),
    ),
]
"""Rows over steps and velocities, both in tree order, brought into file order."""

Jacobian = Annotated[Mapping[int, Motions], Listed(lambda m: (6, m.nv), _along_columns)]
MomentumMatrix = Annotated[Mapping[int, Forces], Listed(lambda m: (6, m.nv), _along_columns)]
Independent = Annotated[
    Vector, Listed(lambda m: (len(m.independent),), lambda m, value: value.entries)
]
IndependentMatrix = Annotated[
    Matrix, Listed(lambda m: (len(m.independent),) * 2, lambda m, value: _flat(value.rows))
]
"""Over the independent coordinates of the closure, in file order."""

LoopVector = Annotated[
    Sequence[Vector], Listed(lambda m: (m.loop_rows,), lambda m, value: _flat(value))
]
LoopNumbers = Annotated[Vector, Listed(lambda m: (m.loop_rows,), lambda m, value: value.entries)]
"""A number for each motion that a loop joint forbids, loop after loop, and each coupling: by loop,
or as one vector."""

Multipliers = Annotated[Vector, Listed(lambda m: (m.loop_rows,), _multipliers)]
LoopForces = Annotated[
    Sequence[Force], Listed(lambda m: (len(m.loops), 6), lambda m, value: _flat(value))
]
LoopMatrix = Annotated[
    Sequence[Mapping[int, Matrix]],
    Listed(lambda m: (m.loop_rows, m.nv), lambda m, value: _flat(loop_rows(m, value, m.movers))),
]
"""A row for each entry of `LoopVector`; for each loop and coupling, blocks by body."""

LoopJointMatrix = Annotated[
    Sequence[Mapping[int, Matrix]],
    Listed(
        lambda m: (sum(loop.joint.nv for loop in m.loops), m.nv),
        lambda m, value: _flat(_stacked(m, value, [k.joint.nv for k in m.loops], m.movers)),
    ),
]
"""A row for each freedom of the joints that close loops; for each loop, blocks by body."""

Pose = Annotated[Transform, Listed(lambda m: (4, 4), _pose)]
RegressorMatrix = Annotated[
    Mapping[tuple[int, int], Matrix], Listed(lambda m: (m.nv, 10 * len(m.bodies)), _regressor)
]
Reactions = Annotated[
    Mapping[int, Force],
    Listed(lambda m: (len(m.bodies), 6), lambda m, value: _flat(value[i] for i in m.in_file_order)),
]
"""One wrench a moving joint, followers included, in file order."""

Health = Annotated[Vector, Listed(lambda m: (2,), lambda m, value: value)]
Twist = Annotated[Motion, Listed(lambda m: (6,), lambda m, value: value)]
Wrench6 = Annotated[Force, Listed(lambda m: (6,), lambda m, value: value)]
Point = Annotated[Vector, Listed(lambda m: (3,), lambda m, value: value)]
Energy = Annotated[Number, Listed(lambda m: (), lambda m, value: [value])]
