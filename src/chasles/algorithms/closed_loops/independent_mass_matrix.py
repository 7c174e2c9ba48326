"""The mass matrix of the independent coordinates of closed loops."""

from chasles.algorithms.closed_loops.elimination import kinematic, projected
from chasles.algorithms.closed_loops.equations import health
from chasles.algorithms.spatial.mass_matrix import mass_matrix
from chasles.mathematics.linear import Matrix
from chasles.model.model import Model
from chasles.model.spaces import Health, IndependentMatrix, Position, assemble


def independent_mass_matrix(model: Model, q: Position) -> tuple[IndependentMatrix, Health]:
    """G' H G, with the kinetic energy yd' G' H G yd / 2 (Featherstone 2008, Eq 8.44)."""
    H = assemble(model, mass_matrix(model, q), model.in_tree_order)
    solved = kinematic(model, q)
    return projected(Matrix(tuple(map(tuple, H))), solved.G), health(model, q, solved.margins)
