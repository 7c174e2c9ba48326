"""Matrix products that a backend may compute in a loop, and factors of the inverse mass matrix.

For a large robot, the inverse mass matrix and its products account for most operations in some
programs. These matrices are products of sparse factors, so a program can compute only the factors
and let the backend multiply them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from chasles.expr import Number
from chasles.mathematics.linear import Matrix, absent


@dataclass(frozen=True)
class Product:
    """Matrix product left @ right, which is computed on demand.

    If `symmetric` is True, the product is symmetric, and only half of its entries are computed.
    The rows in `above` are placed above the product.
    """

    left: Matrix
    right: "Matrix | Product"
    symmetric: bool = False
    above: tuple[tuple[Number, ...], ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.above) + len(self.left.rows), self.right.shape[1]

    def __getitem__(self, index: tuple[int, int]) -> Number:
        return self.rows[index[0]][index[1]]

    @cached_property
    def rows(self) -> tuple[tuple[Number, ...], ...]:
        """Rows of the matrix: the rows in `above`, then the rows of the product left @ right."""
        right, n = self.right.rows, self.right.shape[1]
        present = [[k for k, x in enumerate(row) if not absent(x)] for row in self.left.rows]
        found: list[tuple[Number, ...]] = []
        for r, (row, some) in enumerate(zip(self.left.rows, present, strict=True)):
            known = r if self.symmetric else 0
            rest = [_dot(row, right, some, c) for c in range(known, n)]
            found.append((*(found[c][r] for c in range(known)), *rest))
        return (*self.above, *found)

    @property
    def chain(self) -> tuple[Matrix, ...]:
        """Matrices whose product is this matrix."""
        inner = self.right.chain if isinstance(self.right, Product) else (self.right,)
        first, *middle, last = (self.left, *inner)
        extra = len(self.above)
        blocks = [_with_identity(extra, A) for A in (first, *middle)]
        return (*blocks, Matrix(self.above + last.rows))


def _dot(
    row: Sequence[Number], right: Sequence[Sequence[Number]], some: Sequence[int], c: int
) -> Number:
    total: Number = 0.0
    for k in some:
        if not absent(right[k][c]):
            total = total + row[k] * right[k][c]
    return total


def _with_identity(n: int, A: Matrix) -> Matrix:
    """Return the block diagonal matrix of an n x n identity and A."""
    top = tuple((*row, *(0.0,) * A.shape[1]) for row in Matrix.identity(n).rows)
    return Matrix(top + tuple((*(0.0,) * n, *row) for row in A.rows)) if n else A


def beside(A: Matrix, B: Matrix) -> Matrix:
    """Concatenate the columns of two matrices: [A B]."""
    return Matrix(tuple((*a, *b) for a, b in zip(A.rows, B.rows, strict=True)))


@dataclass(frozen=True)
class InverseFactors:
    """Factors W = L^-1 and U = D^-1 W' of the inverse of L' D L."""

    W: Matrix
    U: Matrix

    @staticmethod
    def of(L: Sequence[Sequence[Number]], D: Sequence[Number]) -> "InverseFactors":
        """Compute W and U from L and D (see `factor_ltdl`). Zeros of L cost no operations."""
        n = len(L)
        W: list[list[Number]] = [[float(i == j) for j in range(n)] for i in range(n)]
        for i in range(n):
            present = [k for k in range(i) if not absent(L[i][k])]
            for j in range(i):
                below = _dot(L[i], W, [k for k in present if k >= j], j)
                W[i][j] = 0.0 if absent(below) else -below
        U = tuple(
            tuple(0.0 if absent(w) else w / d for w in column)
            for column, d in zip(zip(*W, strict=True), D, strict=True)
        )
        return InverseFactors(Matrix(tuple(map(tuple, W))), Matrix(U))

    def __matmul__(self, B: Matrix) -> Product:
        return Product(self.W, Product(self.U, B))

    @property
    def inverse(self) -> Product:
        """Inverse (L' D L)^-1, as the product of W and U."""
        return Product(self.W, self.U, symmetric=True)
