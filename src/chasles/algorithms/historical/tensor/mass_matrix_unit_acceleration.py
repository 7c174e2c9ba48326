"""The joint-space inertia matrix, column by column."""

from dataclasses import replace

from chasles.algorithms.tensor.augmented_tensor import augmented_tensor
from chasles.mathematics.linear import Matrix, Vector
from chasles.model.model import Model
from chasles.model.spaces import JointMatrix, Position


def mass_matrix_unit_acceleration(model: Model, q: Position) -> JointMatrix:
    """The forces of unit acceleration of one freedom, all else at rest and without gravity.

    Walker and Orin's first methods (1982; Balafoutis and Patel 1991, Eq 6.2.4), by algorithm 5.7.
    """
    still, rest = replace(model, gravity_vector=Vector.zero()), model.at_rest()
    M: dict[tuple[int, int], Matrix] = {}
    for i, _, joint, _ in model.outward():
        units = map(Vector, Matrix.identity(joint.nv).rows)
        columns = [augmented_tensor(still, q, rest, rest | {i: unit}) for unit in units]
        for j in model.support(i):
            M[i, j] = Matrix(tuple(tau[j].entries for tau in columns))
            M[j, i] = M[i, j].T
    return M
