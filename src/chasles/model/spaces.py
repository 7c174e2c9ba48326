"""What an algorithm's annotations mean: how flat arrays become its arguments and results.

A space gives the shape of an array for a model, splits an input array into the value an algorithm
works on, and joins an algorithm's result into the entries of an output array (in C order). Arrays
have coordinates in file order; algorithms have them by body number, followers included.

Long because it is a list: one small class for each kind of array.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from chasles.expr import Number
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import Force, Forces, Motion, Motions, Transform
from chasles.model.loads import Load
from chasles.model.model import Model


class Space:
    """The meaning of one array."""

    def shape(self, model: Model) -> tuple[int, ...]:
        raise NotImplementedError

    def shape_of(self, model: Model, value: Any) -> tuple[int, ...]:
        """The shape of a result, where it depends on how much was asked for."""
        return self.shape(model)

    def split(self, model: Model, flat: Sequence[Number]) -> Any:
        raise NotImplementedError

    def join(self, model: Model, value: Any) -> list[Number]:
        raise NotImplementedError

    def quaternions(self, model: Model) -> dict[int, str]:
        """Where quaternions start in the array, and the joints they belong to."""
        return {}


class PositionSpace(Space):
    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.nq,)

    def split(self, model: Model, flat: Sequence[Number]) -> dict[int, Vector]:
        return model.positions(flat)

    def join(self, model: Model, value: Mapping[int, Vector]) -> list[Number]:
        return [x for i in model.movers for x in value[i]]

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

    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.nv,)

    def split(self, model: Model, flat: Sequence[Number]) -> dict[int, Vector]:
        return model.velocities(flat, self.order)

    def join(self, model: Model, value: Mapping[int, Vector]) -> list[Number]:
        return [x for i in model.movers for x in value[i]]


class EffortSpace(Space):
    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.nv,)

    def split(self, model: Model, flat: Sequence[Number]) -> dict[int, Vector]:
        return {i: Vector(tuple(flat[s])) for i, s in model.velocity_slices.items()}

    def join(self, model: Model, value: Mapping[int, Vector]) -> list[Number]:
        total = model.efforts(value)
        return [x for i in model.movers for x in total[i]]


class DrivenEffortSpace(Space):
    """A force for each freedom of the joints that are driven in time, in file order."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (sum(model.bodies[i].joint.nv for i in model.driven),)

    def join(self, model: Model, value: Mapping[int, Vector]) -> list[Number]:
        return [x for i in model.driven for x in value[i]]


class MixedSpace(EffortSpace):
    """A force or an acceleration for each freedom, by the bodies that own coordinates."""

    def join(self, model: Model, value: Mapping[int, Vector]) -> list[Number]:
        return [x for i in model.movers for x in value[i]]


class JointMatrixSpace(Space):
    """Blocks (i, j) of a matrix over all joints; absent blocks are zero."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.nv, model.nv)

    def join(self, model: Model, value: Mapping[tuple[int, int], Matrix]) -> list[Number]:
        dense = assemble(model, value, model.movers)
        return [x for row in dense for x in row]


class TreeMatrixSpace(Space):
    """A dense matrix over the coordinates in tree order, brought into file order."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.nv, model.nv)

    def join(self, model: Model, value: Matrix) -> list[Number]:
        order = tree_places(model)
        return [value[r, c] for r in order for c in order]


class TreeVectorSpace(Space):
    """A vector over the coordinates in tree order, brought into file order."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.nv,)

    def join(self, model: Model, value: Vector) -> list[Number]:
        return [value[k] for k in tree_places(model)]


class StateMatrixSpace(Space):
    """A dense matrix over steps and velocities, both in tree order, brought into file order."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (2 * model.nv, 2 * model.nv)

    def join(self, model: Model, value: Matrix) -> list[Number]:
        order = tree_places(model)
        both = order + [model.nv + k for k in order]
        return [value[r, c] for r in both for c in both]


class InputMatrixSpace(Space):
    """Rows over steps and velocities, columns over forces; in tree order, then in file order."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (2 * model.nv, model.nv)

    def join(self, model: Model, value: Matrix) -> list[Number]:
        order = tree_places(model)
        both = order + [model.nv + k for k in order]
        return [value[r, c] for r in both for c in order]


def tree_places(model: Model) -> list[int]:
    """For each coordinate in file order, its place in tree order."""
    first, _ = _starts(model, model.in_tree_order)
    return [first[i] + k for i in model.movers for k in range(model.bodies[i].joint.nv)]


class IndependentMatrixSpace(Space):
    """A dense matrix over the independent coordinates of the closure, in file order."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (len(model.independent), len(model.independent))

    def join(self, model: Model, value: Matrix) -> list[Number]:
        return [x for row in value.rows for x in row]


class IndependentSpace(Space):
    """A vector over the independent coordinates of the closure, in file order."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (len(model.independent),)

    def split(self, model: Model, flat: Sequence[Number]) -> Vector:
        return Vector(tuple(flat))

    def join(self, model: Model, value: Vector) -> list[Number]:
        return list(value)


class JacobianSpace(Space):
    """Columns by joint; joints that do not move the frame have none."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (6, model.nv)

    def join(self, model: Model, value: Mapping[int, Motions | Forces]) -> list[Number]:
        columns = {
            i: [Vector.zero(6) for _ in range(model.bodies[i].joint.nv)] for i in model.movers
        }
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


class SpatialMatrixSpace(Space):
    """A 6x6 matrix between twists and wrenches: a block for each two frames, if there are more."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (6, 6)

    def shape_of(self, model: Model, value: Matrix) -> tuple[int, ...]:
        return value.shape

    def join(self, model: Model, value: Matrix) -> list[Number]:
        return [x for row in value.rows for x in row]


class LoopVectorSpace(Space):
    """A number for each motion that a loop joint forbids, loop after loop, and each coupling."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.loop_rows,)

    def join(self, model: Model, value: Sequence[Vector]) -> list[Number]:
        return loop_entries(value)


class MultiplierSpace(Space):
    """A number for each equation of the loops; zero for those that the closure leaves out."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.loop_rows,)

    def join(self, model: Model, value: Vector) -> list[Number]:
        found: dict[int, Number] = dict(zip(model.closure.rows, value, strict=True))
        return [found.get(r, 0.0) for r in range(model.loop_rows)]


class LoopNumberSpace(Space):
    """A number for each equation of the loops, as one vector."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.loop_rows,)

    def split(self, model: Model, flat: Sequence[Number]) -> Vector:
        return Vector(tuple(flat))

    def join(self, model: Model, value: Vector) -> list[Number]:
        return list(value)


class LoopForceSpace(Space):
    """One wrench a loop."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (len(model.loops), 6)

    def join(self, model: Model, value: Sequence[Force]) -> list[Number]:
        return [x for wrench in value for x in wrench]


class LoopMatrixSpace(Space):
    """A row for each entry of `LoopVectorSpace`; for each loop and coupling, blocks by body."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.loop_rows, model.nv)

    def join(self, model: Model, value: Sequence[Mapping[int, Matrix]]) -> list[Number]:
        return [x for row in loop_rows(model, value, model.movers) for x in row]


class LoopJointMatrixSpace(Space):
    """A row for each freedom of the joints that close loops; for each loop, blocks by body."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (sum(loop.joint.nv for loop in model.loops), model.nv)

    def join(self, model: Model, value: Sequence[Mapping[int, Matrix]]) -> list[Number]:
        sizes = [loop.joint.nv for loop in model.loops]
        return [x for row in _stacked(model, value, sizes, model.movers) for x in row]


class PoseSpace(Space):
    """A 4x4 homogeneous matrix: the frame's orientation and origin in the world."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (4, 4)

    def join(self, model: Model, value: Transform) -> list[Number]:
        rows = [[*row, p] for row, p in zip(value.R.rows, value.r, strict=True)]
        return [x for row in (*rows, [0.0, 0.0, 0.0, 1.0]) for x in row]


class ReactionSpace(Space):
    """One wrench a moving joint, followers included, in file order."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (len(model.bodies), 6)

    def join(self, model: Model, value: Mapping[int, Force]) -> list[Number]:
        return [x for i in model.in_file_order for x in value[i]]


class RegressorSpace(Space):
    """Ten columns for each moving joint, followers included, in file order; rows over forces."""

    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.nv, 10 * len(model.bodies))

    def join(self, model: Model, value: Mapping[tuple[int, int], Matrix]) -> list[Number]:
        dense: list[list[Number]] = [[0.0] * self.shape(model)[1] for _ in range(model.nv)]
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
        return [x for row in dense for x in row]


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
class EntriesSpace(Space):
    """A fixed number of entries: a point, a twist, a wrench, a number."""

    fixed: tuple[int, ...]

    def shape(self, model: Model) -> tuple[int, ...]:
        return self.fixed

    def join(self, model: Model, value: Any) -> list[Number]:
        return list(value) if self.fixed else [value]


@dataclass(frozen=True)
class TwistsSpace(Space):
    """One twist for each order: velocity, acceleration, jerk, and so on."""

    order: int = 1

    def shape(self, model: Model) -> tuple[int, ...]:
        return (self.order, 6)

    def join(self, model: Model, value: Sequence[Motion]) -> list[Number]:
        return [x for twist in value for x in twist]


class WrenchesSpace(Space):
    """External forces by body; the tracer makes them from the wrenches a caller names."""


class LoadsSpace(WrenchesSpace):
    """The same one by one, for an algorithm that asks how they change with the configuration."""


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

Position = Annotated[Mapping[int, Vector], PositionSpace()]
Velocity = Annotated[Mapping[int, Vector], VelocitySpace()]
Effort = Annotated[Mapping[int, Vector], EffortSpace()]
DrivenEffort = Annotated[Mapping[int, Vector], DrivenEffortSpace()]
Mixed = Annotated[Mapping[int, Vector], MixedSpace()]
Wrenches = Annotated[Mapping[int, Force], WrenchesSpace()]
Loads = Annotated[Sequence[Load], LoadsSpace()]
JointMatrix = Annotated[Mapping[tuple[int, int], Matrix], JointMatrixSpace()]
FreedomMatrix = Annotated[Mapping[tuple[Freedom, Freedom], Number], FreedomsSpace(2)]
Symbols = Annotated[Mapping[tuple[Freedom, Freedom, Freedom], Number], FreedomsSpace(3)]
TreeMatrix = Annotated[Matrix, TreeMatrixSpace()]
TreeVector = Annotated[Vector, TreeVectorSpace()]
StateMatrix = Annotated[Matrix, StateMatrixSpace()]
InputMatrix = Annotated[Matrix, InputMatrixSpace()]
Jacobian = Annotated[Mapping[int, Motions], JacobianSpace()]
MomentumMatrix = Annotated[Mapping[int, Forces], JacobianSpace()]
SpatialMatrix = Annotated[Matrix, SpatialMatrixSpace()]
LoopVector = Annotated[Sequence[Vector], LoopVectorSpace()]
LoopNumbers = Annotated[Vector, LoopNumberSpace()]
LoopForces = Annotated[Sequence[Force], LoopForceSpace()]
Multipliers = Annotated[Vector, MultiplierSpace()]
Independent = Annotated[Vector, IndependentSpace()]
IndependentMatrix = Annotated[Matrix, IndependentMatrixSpace()]
Health = Annotated[Vector, EntriesSpace((2,))]
LoopMatrix = Annotated[Sequence[Mapping[int, Matrix]], LoopMatrixSpace()]
LoopJointMatrix = Annotated[Sequence[Mapping[int, Matrix]], LoopJointMatrixSpace()]
Pose = Annotated[Transform, PoseSpace()]
RegressorMatrix = Annotated[Mapping[tuple[int, int], Matrix], RegressorSpace()]
Reactions = Annotated[Mapping[int, Force], ReactionSpace()]
Twist = Annotated[Motion, EntriesSpace((6,))]
Twists = Annotated[Sequence[Motion], TwistsSpace()]
Wrench6 = Annotated[Force, EntriesSpace((6,))]
Point = Annotated[Vector, EntriesSpace((3,))]
Energy = Annotated[Number, EntriesSpace(())]
