"""Accelerations from the equation of motion M qdd + h = tau."""

from collections.abc import Mapping

from chasles.mathematics.linear import Matrix, Vector, factor_ltdl, solve_ltdl
from chasles.model.model import Model
from chasles.model.spaces import assemble, stack, unstack


def accelerations(
    model: Model,
    M: Mapping[tuple[int, int], Matrix],
    h: Mapping[int, Vector],
    tau: Mapping[int, Vector],
) -> dict[int, Vector]:
    """qdd by the sparse factors of M (Featherstone 2008, chapter 6); blocks and forces by body."""
    order = model.in_tree_order
    L, D = factor_ltdl(assemble(model, M, order))  # (6.2.16)
    return unstack(model, solve_ltdl(L, D, net_forces(model, h, tau)), order)  # (6.2.16)


def net_forces(model: Model, h: Mapping[int, Vector], tau: Mapping[int, Vector]) -> Vector:
    """tau - h over the coordinates in tree order: what accelerates them."""
    order = model.in_tree_order
    return stack(tau, order) - stack(model.efforts(h), order)  # (6.2.16)
