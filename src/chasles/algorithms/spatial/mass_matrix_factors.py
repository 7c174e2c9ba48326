"""Sparse factors of the mass matrix."""

from chasles.algorithms.spatial.mass_matrix import mass_matrix
from chasles.mathematics.linear import Matrix, Vector, factor_ltdl, factor_ltl
from chasles.model.model import Model
from chasles.model.spaces import Position, TreeMatrix, TreeVector, assemble


def ltdl_factors(model: Model, q: Position) -> tuple[TreeMatrix, TreeVector]:
    """L and D with M = L' D L, without fill-in (Featherstone 2008, table 6.3)."""
    L, D = factor_ltdl(assemble(model, mass_matrix(model, q), model.in_tree_order))
    return Matrix(tuple(map(tuple, L))), Vector(tuple(D))


def ltl_factor(model: Model, q: Position) -> TreeMatrix:
    """L with M = L' L, without fill-in (Featherstone 2008, table 6.3)."""
    L = factor_ltl(assemble(model, mass_matrix(model, q), model.in_tree_order))
    return Matrix(tuple(map(tuple, L)))
