"""The joint-space inertia matrix, from its factors."""

from chasles.algorithms.tensor.operator_factors import operator_factors
from chasles.algorithms.tensor.operators import congruence
from chasles.model.model import Model
from chasles.model.spaces import JointMatrix, Position


def mass_matrix_spatial_operator(model: Model, q: Position) -> JointMatrix:
    """(1 + H Psi L) D (1 + H Psi L)' (Balafoutis and Patel 1991, Eq 6.2.18)."""
    A, _, D = operator_factors(model, q)
    return congruence(A, D)
