"""The inverse of the joint-space inertia matrix, from its factors."""

from chasles.algorithms.tensor.operator_factors import operator_factors
from chasles.algorithms.tensor.operators import congruence
from chasles.mathematics.linear import invert_symmetric
from chasles.model.model import Model
from chasles.model.spaces import JointMatrix, Position


def mass_matrix_inverse_spatial_operator(model: Model, q: Position) -> JointMatrix:
    """(1 - H Phi L)' D^-1 (1 - H Phi L) (Balafoutis and Patel 1991, Eq 6.2.19)."""
    _, B, D = operator_factors(model, q)
    transposed = {(i, j): block.T for (j, i), block in B.items()}
    inverse = {key: invert_symmetric(block) for key, block in D.items()}  # (6.2.19)
    return congruence(transposed, inverse)
