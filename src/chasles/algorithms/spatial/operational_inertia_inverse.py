"""The accelerations of frames for each unit wrench on them, through the mass matrix."""

from collections.abc import Sequence

from chasles.algorithms.spatial.jacobian import jacobian
from chasles.algorithms.spatial.mass_matrix import mass_matrix
from chasles.algorithms.spatial.viewpoint import At, Axes
from chasles.mathematics.linear import Matrix, Vector, factor_ltdl, solve_ltdl
from chasles.model.model import Frame, Handles, Model, each_of
from chasles.model.spaces import Position, SpatialMatrix, assemble, stack


def operational_inertia_inverse(
    model: Model, q: Position, *, frame: Handles, axes: Axes = "world", at: At = "frame"
) -> SpatialMatrix:
    """Phi = J M^-1 J', by the sparse factors of M (Featherstone 2008, Eq 7.5 to 7.14).

    Of several frames J has the rows of all.
    """
    order = model.in_tree_order
    rows = [row for one in each_of(frame) for row in _rows(model, q, one, axes, at)]
    tau = [stack(model.efforts(row), order) for row in rows]
    L, D = factor_ltdl(assemble(model, mass_matrix(model, q), order))
    qdd = [solve_ltdl(L, D, forces) for forces in tau]
    return symmetric_products(tau, qdd)


def _rows(model: Model, q: Position, frame: Frame, axes: Axes, at: At) -> list[dict[int, Vector]]:
    """The rows of a frame's Jacobian, by body."""
    J = jacobian(model, q, frame=frame, axes=axes, at=at)
    return [
        {i: Vector(tuple(tuple(m)[k] for m in S.columns)) for i, S in J.items()} for k in range(6)
    ]


def symmetric_products(u: Sequence[Vector], y: Sequence[Vector]) -> Matrix:
    """The products u_r . y_c where they equal y_r . u_c: each computed once."""
    n = range(len(u))
    upper = {(r, c): u[r].dot(y[c]) for r in n for c in n if r <= c}
    return Matrix(tuple(tuple(upper[min(r, c), max(r, c)] for c in n) for r in n))
