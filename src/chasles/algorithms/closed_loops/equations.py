"""The equations of motion of a tree whose loops are closed."""

from collections.abc import Sequence
from typing import NamedTuple

from chasles.algorithms.homogeneous.loop_bias import loop_bias
from chasles.algorithms.homogeneous.loop_matrix import loop_matrix
from chasles.algorithms.homogeneous.loop_rate import loop_rate
from chasles.algorithms.homogeneous.loop_residual import loop_residual
from chasles.algorithms.spatial.bias_forces import bias_forces
from chasles.algorithms.spatial.mass_matrix import mass_matrix
from chasles.expr import Number, minimum
from chasles.mathematics.linear import Matrix, Vector
from chasles.model.model import Model
from chasles.model.spaces import (
    Effort,
    Position,
    Velocity,
    Wrenches,
    assemble,
    loop_entries,
    loop_rows,
    stack,
)


class Equations(NamedTuple):
    """H qdd = f + K' lam and K qdd = k, over the coordinates in tree order (Eq 8.1-8.6).

    f: joint forces less bias forces. K, k: the rows of the loops that the closure keeps. stray: how
    far qd is from a motion that keeps the loops closed (0 where errors are to decay).
    """

    H: Matrix
    f: Vector
    K: Matrix
    k: Vector
    stray: Number


def equations(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches, stabilization: float
) -> Equations:
    """All four; with a time T_stab, k has Baumgarte's terms, else it is 0 (Eq 8.21-8.24)."""
    order = model.in_tree_order
    H = Matrix(tuple(map(tuple, assemble(model, mass_matrix(model, q), order))))
    h = stack(model.efforts(bias_forces(model, q, qd, f_ext)), order)
    K, k = constraints(model, q), kept(model, loop_entries(loop_bias(model, q, qd)))
    v = stack(qd, order)
    slip, stray = slipping(model, q, K, v), 0.0
    if stabilization:
        a = 1.0 / stabilization
        error = kept(model, loop_entries(loop_residual(model, q)))
        k = k - slip * (2.0 * a) - error * (a * a)
    else:
        stray = strayed(kept(model, model.closure.scales), slip, v.dot(v))
    return Equations(H, stack(tau, order) - h, K, k, stray)


def constraints(model: Model, q: Position) -> Matrix:
    """K: the rows of the loops' matrix that the closure keeps, over coordinates in tree order."""
    rows = loop_rows(model, loop_matrix(model, q), model.in_tree_order)
    return Matrix(tuple(tuple(rows[r]) for r in model.closure.rows))


def kept(model: Model, entries: Sequence[Number]) -> Vector:
    """Of a number for each equation of the loops, those that the closure keeps."""
    return Vector(tuple(entries[r] for r in model.closure.rows))


def slipping(model: Model, q: Position, K: Matrix, v: Vector) -> Vector:
    """K v - b of the rows that are kept: how fast rates open the loops (b: `loop_rate`)."""
    return K @ v - kept(model, loop_entries(loop_rate(model, q)))


def strayed(scales: Vector, error: Vector, size: Number) -> Number:
    """The squared error of rates (or accelerations), of an entry for each of some rows.

    Dimensionless by the scales of these, and beside the squared size of all rates where that is
    more than 1.
    """
    scaled = Vector(tuple(s * e for s, e in zip(scales, error, strict=True)))
    return scaled.dot(scaled) / (1.0 + size)


def health(model: Model, q: Position, margins: Sequence[Number], stray: Number = 0.0) -> Vector:
    """What says whether a state can be trusted.

    The squared distance from closed, dimensionless, and what rates add to it (`strayed`); and the
    least of some numbers that are 1 in a good position and 0 in a singular one.
    """
    residual = loop_entries(loop_residual(model, q))
    gap = Vector(tuple(s * r for s, r in zip(model.closure.scales, residual, strict=True)))
    least: Number = 1.0
    for margin in margins:
        least = minimum(least, margin)
    return Vector.of(gap.dot(gap) + stray, least)
