"""Small vectors and matrices with floats or symbols as entries."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

from chasles.errors import ArgumentError, InputError
from chasles.expr import Number, is_number, sqrt

Mapped = TypeVar("Mapped", "Vector", "Matrix")


def absent(x: Number) -> bool:
    """Return True if x is a constant zero, and False for all symbols."""
    return type(x) is float and x == 0.0


def _dot(a: Iterable[Number], b: Iterable[Number]) -> Number:
    total: Number = 0.0
    for x, y in zip(a, b, strict=True):
        if (type(x) is float and x == 0.0) or (type(y) is float and y == 0.0):
            continue  # faster than forming the product
        product = x * y
        total = product if type(total) is float and total == 0.0 else total + product
    return total


@dataclass(frozen=True, slots=True)
class Vector:
    """Column vector, for example a 3D vector or the coordinates of a joint."""

    entries: tuple[Number, ...]

    __array_ufunc__ = None  # for products with a NumPy scalar on the left

    @staticmethod
    def of(*entries: Number) -> "Vector":
        """Create a vector from its entries.

        Parameters
        ----------
        *entries : Number
            Floats or expressions.

        Returns
        -------
        v : Vector
            The vector.

        Examples
        --------
        >>> from chasles.mathematics.linear import Vector
        >>> Vector.of(1.0, 2.0, 3.0)
        Vector(entries=(1.0, 2.0, 3.0))
        """
        return Vector(entries)

    @staticmethod
    def zero(n: int = 3) -> "Vector":
        """Return a vector of zeros.

        Parameters
        ----------
        n : int, optional
            Number of entries.

        Returns
        -------
        v : Vector
            The vector.

        Examples
        --------
        >>> from chasles.mathematics.linear import Vector
        >>> Vector.zero(2)
        Vector(entries=(0.0, 0.0))
        """
        return Vector((0.0,) * n)

    def __iter__(self) -> Iterator[Number]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, k: int) -> Number:
        return self.entries[k]

    def __add__(self, other: "Vector") -> "Vector":
        if type(other) is not Vector:
            return NotImplemented
        return Vector(tuple([a + b for a, b in zip(self.entries, other.entries, strict=True)]))

    def __sub__(self, other: "Vector") -> "Vector":
        if type(other) is not Vector:
            return NotImplemented
        return Vector(tuple([a - b for a, b in zip(self.entries, other.entries, strict=True)]))

    def __neg__(self) -> "Vector":
        return Vector(tuple([-a for a in self.entries]))

    def __mul__(self, factor: Number) -> "Vector":
        if not is_number(factor):
            return NotImplemented
        return Vector(tuple([a * factor for a in self.entries]))

    __rmul__ = __mul__

    def dot(self, other: "Vector") -> Number:
        """Return the scalar product of two vectors.

        Parameters
        ----------
        other : Vector
            Vector of the same length.

        Returns
        -------
        product : Number
            Sum of the products of corresponding entries.

        Examples
        --------
        >>> from chasles.mathematics.linear import Vector
        >>> Vector.of(1.0, 2.0).dot(Vector.of(3.0, 4.0))
        11.0
        """
        return _dot(self.entries, other.entries)

    def cross(self, other: "Vector") -> "Vector":
        """Return the cross product of two 3D vectors.

        Parameters
        ----------
        other : Vector
            Vector of three entries.

        Returns
        -------
        product : Vector
            Vector of three entries.

        Examples
        --------
        >>> from chasles.mathematics.linear import Vector
        >>> Vector.of(1.0, 0.0, 0.0).cross(Vector.of(0.0, 1.0, 0.0))
        Vector(entries=(0.0, 0.0, 1.0))
        """
        a, b, c = self.entries
        x, y, z = other.entries
        return Vector((b * z - c * y, c * x - a * z, a * y - b * x))


@dataclass(frozen=True, slots=True)
class Matrix:
    """Small dense matrix, stored by rows."""

    rows: tuple[tuple[Number, ...], ...]

    @staticmethod
    def identity(n: int = 3) -> "Matrix":
        """Return the identity matrix.

        Parameters
        ----------
        n : int, optional
            Number of rows.

        Returns
        -------
        A : Matrix
            The matrix (n, n).

        Examples
        --------
        >>> from chasles.mathematics.linear import Matrix
        >>> Matrix.identity(2)
        Matrix(rows=((1.0, 0.0), (0.0, 1.0)))
        """
        return Matrix(tuple(tuple(float(i == j) for j in range(n)) for i in range(n)))

    @staticmethod
    def zero(m: int = 3, n: int = 3) -> "Matrix":
        """Return a matrix of zeros.

        Parameters
        ----------
        m, n : int, optional
            Numbers of rows and columns.

        Returns
        -------
        A : Matrix
            The matrix (m, n).

        Examples
        --------
        >>> from chasles.mathematics.linear import Matrix
        >>> Matrix.zero(1, 2)
        Matrix(rows=((0.0, 0.0),))
        """
        return Matrix(((0.0,) * n,) * m)

    @staticmethod
    def skew(v: Vector) -> "Matrix":
        """Return the skew-symmetric matrix of a vector, with skew(v) @ u = v.cross(u).

        Parameters
        ----------
        v : Vector
            Vector of three entries.

        Returns
        -------
        A : Matrix
            Skew-symmetric matrix (3, 3).

        Examples
        --------
        >>> from chasles.mathematics.linear import Matrix, Vector
        >>> Matrix.skew(Vector.of(1.0, 2.0, 3.0)).rows[0]
        (0.0, -3.0, 2.0)
        """
        x, y, z = v
        return Matrix(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))

    __array_ufunc__ = None  # for products with a NumPy scalar on the left

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Convert the matrix to a NumPy array, or raise an error if an entry is a symbol."""
        import numpy as np  # imported only if needed

        if copy is False:
            problem = "a Matrix cannot be converted to an array without a copy"
            raise InputError("E-MATH-024", problem, "omit copy=False")
        return np.array(self.rows, dtype=float if dtype is None else dtype)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), len(self.rows[0]) if self.rows else 0

    @property
    def T(self) -> "Matrix":
        return Matrix(tuple(zip(*self.rows, strict=True)))

    def __getitem__(self, index: tuple[int, int]) -> Number:
        return self.rows[index[0]][index[1]]

    def __add__(self, other: "Matrix") -> "Matrix":
        if type(other) is not Matrix:
            return NotImplemented
        both = zip(self.rows, other.rows, strict=True)
        return Matrix(tuple(tuple([a + b for a, b in zip(r, s, strict=True)]) for r, s in both))

    def __sub__(self, other: "Matrix") -> "Matrix":
        if type(other) is not Matrix:
            return NotImplemented
        return self + -other

    def __neg__(self) -> "Matrix":
        return Matrix(tuple(tuple([-a for a in r]) for r in self.rows))

    def __mul__(self, factor: Number) -> "Matrix":
        if not is_number(factor):
            return NotImplemented
        return Matrix(tuple(tuple([a * factor for a in r]) for r in self.rows))

    __rmul__ = __mul__

    def __matmul__(self, other: Mapped) -> Mapped:
        if isinstance(other, Vector):
            return Vector(tuple([_dot(r, other.entries) for r in self.rows]))
        if isinstance(other, Matrix):
            columns = tuple(zip(*other.rows, strict=True))
            return Matrix(tuple(tuple([_dot(r, c) for c in columns]) for r in self.rows))
        return NotImplemented


def diagonal(entries: Vector) -> Matrix:
    """Return the diagonal matrix with the given entries."""
    n = len(entries)
    return Matrix(tuple(tuple(entries[i] if i == j else 0.0 for j in range(n)) for i in range(n)))


def mismatch(operation: str, a: object, b: object) -> ArgumentError:
    """Return an error for operands of incompatible types."""
    problem = f"cannot {operation} {type(a).__name__} and {type(b).__name__} objects"
    return ArgumentError("E-MATH-025", problem)


class Additive:
    """Base class for dataclasses that are added and scaled field by field.

    Both operands of an addition must have the same type.
    """

    __slots__ = ()

    __array_ufunc__ = None  # for products with a NumPy scalar on the left

    if TYPE_CHECKING:
        __match_args__: tuple[str, ...]

        def __init__(self, *fields: Any) -> None: ...

    _mismatch = staticmethod(mismatch)

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            raise self._mismatch("add", self, other)
        return type(self)(*[getattr(self, x) + getattr(other, x) for x in self.__match_args__])

    def __sub__(self, other: Self) -> Self:
        if type(other) is not type(self):
            raise self._mismatch("subtract", self, other)
        return type(self)(*[getattr(self, x) - getattr(other, x) for x in self.__match_args__])

    def __neg__(self) -> Self:
        return type(self)(*[-getattr(self, x) for x in self.__match_args__])

    def __mul__(self, factor: Number) -> Self:
        if not is_number(factor):
            return NotImplemented
        return type(self)(*[getattr(self, x) * factor for x in self.__match_args__])

    __rmul__ = __mul__


@dataclass(frozen=True, slots=True)
class Symmetric(Additive):
    """Symmetric 3x3 matrix that stores six entries."""

    xx: Number
    yy: Number
    zz: Number
    xy: Number
    xz: Number
    yz: Number

    @staticmethod
    def zero() -> "Symmetric":
        """Return a matrix of zeros.

        Returns
        -------
        A : Symmetric
            The matrix (3, 3).

        Examples
        --------
        >>> from chasles.mathematics.linear import Symmetric
        >>> Symmetric.zero().xx
        0.0
        """
        return Symmetric(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    @staticmethod
    def of(A: Matrix) -> "Symmetric":
        """Create a symmetric matrix from the upper triangle of A.

        Parameters
        ----------
        A : Matrix
            Matrix (3, 3).

        Returns
        -------
        A : Symmetric
            The matrix.

        Examples
        --------
        >>> from chasles.mathematics.linear import Matrix, Symmetric
        >>> Symmetric.of(Matrix.identity()).yy
        1.0
        """
        return Symmetric(A[0, 0], A[1, 1], A[2, 2], A[0, 1], A[0, 2], A[1, 2])

    def __iter__(self) -> Iterator[Number]:
        return iter((self.xx, self.yy, self.zz, self.xy, self.xz, self.yz))

    def matrix(self) -> Matrix:
        """Return the full matrix with nine entries.

        Returns
        -------
        A : Matrix
            The matrix (3, 3).

        Examples
        --------
        >>> from chasles.mathematics.linear import Symmetric
        >>> Symmetric(1.0, 2.0, 3.0, 0.0, 0.0, 0.5).matrix().rows[1]
        (0.0, 2.0, 0.5)
        """
        xx, yy, zz, xy, xz, yz = self
        return Matrix(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))

    def __matmul__(self, v: Vector) -> Vector:
        return self.matrix() @ v


def factor_ltdl(A: Sequence[Sequence[Number]]) -> tuple[list[list[Number]], list[Number]]:
    """Factorize A = L' D L with a unit lower triangular L (Featherstone 2008, table 6.3).

    Elimination runs from the last row to the first. For a mass matrix in tree order, elimination
    causes no fill-in: branch-induced zeros (Featherstone 2008, section 6.4) remain zero and cost no
    operations.
    """
    n = len(A)
    L = [[A[i][j] if j <= i else 0.0 for j in range(n)] for i in range(n)]
    D: list[Number] = [0.0] * n
    for k in range(n - 1, -1, -1):
        D[k] = L[k][k]
        reciprocal = 1.0 / D[k]
        for i in (i for i in range(k - 1, -1, -1) if not absent(L[k][i])):
            a = L[k][i] * reciprocal
            for j in range(i + 1):
                L[i][j] = L[i][j] - a * L[k][j]
            L[k][i] = a
        L[k][k] = 1.0
    return L, D


def factor_ltl(A: Sequence[Sequence[Number]]) -> list[list[Number]]:
    """Factorize A = L' L with lower triangular L and no fill-in (Featherstone 2008, table 6.3)."""
    n = len(A)
    L = [[A[i][j] if j <= i else 0.0 for j in range(n)] for i in range(n)]
    for k in range(n - 1, -1, -1):
        L[k][k] = sqrt(L[k][k])
        reciprocal = 1.0 / L[k][k]
        for i in range(k):
            L[k][i] = L[k][i] * reciprocal
        for i in range(k):
            for j in range(i + 1):
                L[i][j] = L[i][j] - L[k][i] * L[k][j]
    return L


# Products and solutions with triangular factors (Featherstone 2008, table 6.5). Branch-induced
# zeros and a unit diagonal cost no operations, so the same functions apply to L' L and L' D L.


def multiply_lower(L: Sequence[Sequence[Number]], x: Vector) -> Vector:
    """Return L x, using only the lower triangle of L."""
    return Vector(tuple(_dot(L[i][: i + 1], x.entries[: i + 1]) for i in range(len(L))))


def multiply_lower_transposed(L: Sequence[Sequence[Number]], x: Vector) -> Vector:
    """Return L' x, using only the lower triangle of L."""
    n = len(L)
    return Vector(tuple(_dot([L[i][j] for i in range(j, n)], x.entries[j:]) for j in range(n)))


def multiply_symmetric(H: Sequence[Sequence[Number]], x: Vector) -> Vector:
    """Return H x for a symmetric H, using only its lower triangle."""
    n = len(H)
    return Vector(tuple(_dot([H[max(i, j)][min(i, j)] for j in range(n)], x) for i in range(n)))


def solve_lower(L: Sequence[Sequence[Number]], b: Vector) -> Vector:
    """Solve L x = b for x, using only the lower triangle of L."""
    x = list(b)
    for i in range(len(x)):
        for j in (j for j in range(i) if not absent(L[i][j])):
            x[i] = x[i] - L[i][j] * x[j]
        x[i] = x[i] / L[i][i]
    return Vector(tuple(x))


def solve_lower_transposed(L: Sequence[Sequence[Number]], b: Vector) -> Vector:
    """Solve L' x = b for x, using only the lower triangle of L."""
    x = list(b)
    for i in range(len(x) - 1, -1, -1):
        x[i] = x[i] / L[i][i]
        for j in (j for j in range(i) if not absent(L[i][j])):
            x[j] = x[j] - L[i][j] * x[i]
    return Vector(tuple(x))


def solve_ltl(L: Sequence[Sequence[Number]], b: Vector) -> Vector:
    """Solve L' L x = b for x."""
    return solve_lower(L, solve_lower_transposed(L, b))


def solve_ltdl(L: Sequence[Sequence[Number]], D: Sequence[Number], b: Vector) -> Vector:
    """Solve L' D L x = b for x."""
    y = solve_lower_transposed(L, b)
    return solve_lower(L, Vector(tuple(a / d for a, d in zip(y, D, strict=True))))


def reduce_rows(
    A: Sequence[Sequence[Number]], columns: Sequence[int]
) -> tuple[list[list[Number]], list[Number]]:
    """Reduce A by Gauss-Jordan elimination until the given columns are unit vectors.

    Return the reduced rows and the pivots, which must not be zero.
    """
    rows, pivots = [list(row) for row in A], []
    for s, c in enumerate(columns):
        pivots.append(rows[s][c])
        reciprocal = 1.0 / rows[s][c]
        rows[s] = [e * reciprocal for e in rows[s]]
        rows[s][c] = 1.0
        for t in range(len(rows)):
            if t != s:
                a = rows[t][c]
                rows[t] = [e - a * f for e, f in zip(rows[t], rows[s], strict=True)]
                rows[t][c] = 0.0
    return rows, pivots


def orthogonalize(
    columns: Sequence[Vector], weigh: Callable[[Vector], Vector]
) -> tuple[list[list[Number]], list[Number]]:
    """Factorize P' M P = L' D L, with a unit lower triangular L, by modified Gram-Schmidt.

    `columns` contains the columns of P, and `weigh(v)` returns M v. The columns are processed from
    last to first, which gives P = Q L with Q' M Q = D. Neither P' M P nor a square root of M is
    computed.
    """
    n, left = len(columns), list(columns)
    L: list[list[Number]] = [[float(i == j) for j in range(n)] for i in range(n)]
    D: list[Number] = [0.0] * n
    for k in range(n - 1, -1, -1):
        weighed = weigh(left[k])
        D[k] = left[k].dot(weighed)
        for i in range(k):
            L[k][i] = left[i].dot(weighed) / D[k]
            left[i] -= left[k] * L[k][i]
    return L, D


def symmetric_products(u: Sequence[Vector], y: Sequence[Vector]) -> Matrix:
    """Return the symmetric matrix of scalar products u_r . y_c, computing only one triangle."""
    n = range(len(u))
    upper = {(r, c): u[r].dot(y[c]) for r in n for c in n if r <= c}
    return Matrix(tuple(tuple(upper[min(r, c), max(r, c)] for c in n) for r in n))


def solve_symmetric(A: Matrix, b: Vector) -> Vector:
    """Solve A x = b for x, with a symmetric positive definite A."""
    return solve_ltdl(*factor_ltdl(A.rows), b)


def invert_symmetric(A: Matrix) -> Matrix:
    """Return the inverse of a symmetric positive definite matrix."""
    return invert_ltdl(*factor_ltdl(A.rows))


def invert_ltdl(L: Sequence[Sequence[Number]], D: Sequence[Number]) -> Matrix:
    """Return the inverse of L' D L, computed as W D^-1 W' with W = L^-1."""
    n = len(D)
    W: list[list[Number]] = [[float(i == j) for j in range(n)] for i in range(n)]
    for i in range(n):
        for j in range(i):
            W[i][j] = -_dot(L[i][j:i], [W[k][j] for k in range(j, i)])
    scaled = [[w / d for w, d in zip(row, D, strict=True)] for row in W]
    upper = [[_dot(W[i][: i + 1], scaled[j][: i + 1]) for j in range(i, n)] for i in range(n)]
    return Matrix(tuple(tuple(upper[min(i, j)][abs(j - i)] for j in range(n)) for i in range(n)))
