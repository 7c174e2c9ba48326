"""The algebra of Cartesian tensors (Balafoutis and Patel 1991, chapter 3)."""

import math
from dataclasses import dataclass
from typing import NamedTuple, overload

from chasles.errors import ArgumentError, InputError
from chasles.expr import Number, Scalar, atan2, sqrt
from chasles.mathematics.linear import Matrix, Symmetric, Vector

_INDICES = range(3)

# Products --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fourth:
    """T (x) S, the tensor of fourth order with the components t_ij s_kl (3.2.19)."""

    T: Matrix
    S: Matrix

    def __getitem__(self, index: tuple[int, int, int, int]) -> Number:
        i, j, k, l = index
        return self.T[i, j] * self.S[k, l]

    def contract(self, first: int, second: int) -> Matrix:
        """The sum over two of the four indices, set equal; (1, 2) gives the dot product T S."""
        free = [n for n in range(4) if n not in (first, second)]
        if len(free) != 2 or not {first, second} <= set(range(4)):
            problem = f"give two different indices of 0 to 3, not {first, second}"
            raise InputError("E-MATH-026", problem, part="contract")

        def entry(row: int, column: int) -> Number:
            total: Number = 0.0
            for both in _INDICES:
                place = {free[0]: row, free[1]: column, first: both, second: both}
                total = total + self[place[0], place[1], place[2], place[3]]
            return total

        return Matrix(tuple(tuple(entry(i, j) for j in _INDICES) for i in _INDICES))


@overload
def tensor_product(u: Vector, v: Vector) -> Matrix: ...
@overload
def tensor_product(u: Matrix, v: Matrix) -> Fourth: ...
def tensor_product(u: Vector | Matrix, v: Vector | Matrix) -> Matrix | Fourth:
    """u (x) v, the dyad with (u (x) v) r = u (v . r) (3.2.3); of tensors, one of fourth order."""
    if type(u) is Vector and type(v) is Vector:
        return Matrix(tuple(tuple(a * b for b in v) for a in u))
    if type(u) is Matrix and type(v) is Matrix:
        return Fourth(u, v)
    raise ArgumentError(
        "E-MATH-027",
        f"tensor product: give two vectors or two tensors, not {type(u).__name__} and "
        f"{type(v).__name__}",
    )


def wedge(u: Vector, v: Vector) -> Matrix:
    """u ^ v = u (x) v - v (x) u, a skew tensor (3.3.9)."""
    return tensor_product(u, v) - tensor_product(v, u)


def trace(T: Matrix) -> Number:
    """t_ii: the contraction of a tensor."""
    return T[0, 0] + T[1, 1] + T[2, 2]


def double_dot(T: Matrix, S: Matrix) -> Number:
    """T : S = tr(T S), without a transpose (3.2.30)."""
    total: Number = 0.0
    for row, column in zip(T.rows, S.T.rows, strict=True):
        total = total + Vector(row).dot(Vector(column))
    return total


def norm(T: Matrix) -> Number:
    """sqrt(T : T') (3.2.31)."""
    return sqrt(double_dot(T, T.T))


def angle(T: Matrix, S: Matrix) -> Number:
    """The angle between two tensors, in rad, with cosine T : S' / (|T| |S|) (3.2.33).

    By the half angle, which keeps its digits where the tensors are nearly parallel.
    """
    t, s = T * (1.0 / norm(T)), S * (1.0 / norm(S))
    return 2.0 * atan2(norm(t - s), norm(t + s))


# Parts -----------------------------------------------------------------------------------------


def symmetric_part(T: Matrix) -> Symmetric:
    """T+ = (T + T') / 2 (3.3.7)."""
    return Symmetric.of((T + T.T) * 0.5)


def skew_part(T: Matrix) -> Matrix:
    """T- = (T - T') / 2 (3.3.8)."""
    return (T - T.T) * 0.5


def along(e: Vector) -> Matrix:
    """P_e = e (x) e, which keeps of a vector its part along the unit vector e (3.3.10)."""
    return tensor_product(e, e)


def across(e: Vector) -> Matrix:
    """P^e = 1 - e (x) e, which keeps the part normal to the unit vector e (3.3.11)."""
    return Matrix.identity() - along(e)


def vect(T: Matrix) -> Vector:
    """The vector of a tensor, half of eps_ijk t_kj; symmetric tensors have none (3.3.25)."""
    return Vector.of(T[2, 1] - T[1, 2], T[0, 2] - T[2, 0], T[1, 0] - T[0, 1]) * 0.5


@overload
def dual(x: Vector) -> Matrix: ...
@overload
def dual(x: Matrix) -> Vector: ...
def dual(x: Vector | Matrix) -> Matrix | Vector:
    """u~ with u~ v = u x v from u, or u from u~ (3.3.29-33); of a tensor, the skew one is read."""
    if type(x) is Vector:
        return Matrix.skew(x)
    if type(x) is Matrix:
        return Vector.of(x[2, 1], x[0, 2], x[1, 0])
    problem = f"give a vector or a skew tensor, not {type(x).__name__}"
    raise ArgumentError("E-MATH-028", problem, part="dual")


@overload
def left_dual(x: Vector) -> Matrix: ...
@overload
def left_dual(x: Matrix) -> Vector: ...
def left_dual(x: Vector | Matrix) -> Matrix | Vector:
    """The dual of the other hand, of opposite sign (3.3.34)."""
    return -dual(x)


# Bases and invariants --------------------------------------------------------------------------


@overload
def change_basis(A: Matrix, x: Vector) -> Vector: ...
@overload
def change_basis(A: Matrix, x: Matrix) -> Matrix: ...
def change_basis(A: Matrix, x: Vector | Matrix) -> Vector | Matrix:
    """A v or A T A': the components in another orthonormal basis (3.3.1)."""
    if type(x) is Matrix:
        return A @ x @ A.T
    return A @ x


class Invariants(NamedTuple):
    """What no change of basis alters (3.3.18-21)."""

    I1: Number
    I2: Number
    I3: Number
    I4: Number


def invariants(T: Matrix) -> Invariants:
    """Trace, sum of the principal minors, determinant, and T : T'."""
    (a, b, c), (d, e, f), (g, h, i) = T.rows
    minors = (e * i - f * h, a * i - c * g, a * e - b * d)
    det = a * minors[0] - b * (d * i - f * g) + c * (d * h - e * g)
    return Invariants(trace(T), minors[0] + minors[1] + minors[2], det, double_dot(T, T.T))


def spectral(T: Symmetric) -> tuple[tuple[float, Vector], ...]:
    """(value, direction) with T = sum of value along(direction), values rising (3.3.17).

    Of floats only: the directions are not smooth where values are equal.
    """
    import numpy as np  # the algebra runs without it, as in mathematics/homogeneous/dense.py

    if any(isinstance(x, Scalar) or not math.isfinite(x) for x in T):
        problem = "it needs a tensor of finite numbers, without symbols"
        raise InputError("E-MATH-029", problem, part="spectral")
    values, vectors = np.linalg.eigh(np.array(T.matrix().rows, dtype=float))
    columns = (Vector(tuple(column)) for column in vectors.T.tolist())
    return tuple(zip(values.tolist(), columns, strict=True))
