"""The inverse of the joint-space inertia matrix."""

from chasles.algorithms.spatial.mass_matrix import mass_matrix
from chasles.mathematics.linear import factor_ltdl, invert_ltdl
from chasles.model.model import Model
from chasles.model.spaces import Position, TreeMatrix, assemble


def mass_matrix_inverse(model: Model, q: Position) -> TreeMatrix:
    """By the sparse factors: M^-1 = L^-1 D^-1 L^-T (Featherstone 2008, section 6.5)."""
    L, D = factor_ltdl(assemble(model, mass_matrix(model, q), model.in_tree_order))
    return invert_ltdl(L, D)
