"""Dependent coordinates of closed loops from independent ones."""

from typing import NamedTuple

from chasles.algorithms.closed_loops.equations import constraints
from chasles.expr import Number
from chasles.mathematics.linear import Matrix, Vector, reduce_rows
from chasles.model.model import Model
from chasles.model.spaces import Position, tree_places


class Elimination(NamedTuple):
    """x = G y + g solves K x = k, over coordinates in tree order; y are the independent ones.

    ratios: the pivots beside those where the closure was chosen.
    """

    G: Matrix
    g: Vector
    ratios: list[Number]

    @property
    def margins(self) -> list[Number]:
        """Their squares: 1 where the closure was chosen, 0 in a position singular for it."""
        return [ratio * ratio for ratio in self.ratios]


def eliminated(model: Model, K: Matrix, k: Vector) -> Elimination:
    """Every row of the closure gives its dependent coordinate (Featherstone 2008, Eq 8.48-8.51)."""
    place, closure = tree_places(model), model.closure
    dependent = [place[c] for c in closure.dependent]
    independent = [place[c] for c in model.independent]
    both = [(*row, e) for row, e in zip(K.rows, k, strict=True)]
    rows, pivots = reduce_rows(both, dependent)
    G = {c: tuple(float(c == i) for i in independent) for c in independent}
    g: dict[int, Number] = dict.fromkeys(independent, 0.0)
    for c, row in zip(dependent, rows, strict=True):
        G[c], g[c] = tuple(-row[i] for i in independent), row[-1]
    order = range(model.nv)
    return Elimination(
        Matrix(tuple(G[c] for c in order)),
        Vector(tuple(g[c] for c in order)),
        [p / start for p, start in zip(pivots, closure.pivots, strict=True)],
    )


def kinematic(model: Model, q: Position) -> Elimination:
    """G of a position alone, with qd = G yd."""
    K = constraints(model, q)
    return eliminated(model, K, Vector.zero(len(K.rows)))


def projected(H: Matrix, G: Matrix) -> Matrix:
    """G' H G: the mass matrix of the independent coordinates (Eq 3.20), each entry once."""
    columns = [Vector(column) for column in G.T.rows]
    moved = [H @ column for column in columns]
    size = range(len(columns))
    upper = {(i, j): columns[i].dot(moved[j]) for i in size for j in size if i <= j}
    return Matrix(tuple(tuple(upper[min(i, j), max(i, j)] for j in size) for i in size))
