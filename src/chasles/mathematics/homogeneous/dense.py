"""What all of Legnani's matrices share: they print and convert as the 4x4 arrays they stand for."""

from typing import Any

from chasles.expr import Number, Scalar
from chasles.mathematics.linear import Matrix


class Dense:
    """A 4x4 matrix that is held by its independent numbers; `np.asarray(X)` is the array."""

    __slots__ = ()

    __array_ufunc__ = None  # a NumPy number on the left asks this class, and makes no array

    def matrix(self) -> Matrix:
        """All sixteen numbers."""
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np  # the algebra runs without it: only a user at the prompt asks for arrays

        if copy is False:
            raise ValueError(f"{type(self).__name__} holds no array: one has to be made")
        rows = [[x + 0.0 for x in row] for row in self.matrix().rows]  # zeros without a sign
        return np.array(rows, dtype=dtype)

    def __repr__(self) -> str:
        cells = [[_cell(x) for x in row] for row in self.matrix().rows]
        width = max(len(cell) for row in cells for cell in row)
        lines = [" ".join(cell.rjust(width) for cell in row) for row in cells]
        return "\n".join([type(self).__name__, *(f"[ {line} ]" for line in lines)])


def _cell(x: Number) -> str:
    """A number in six digits (without the sign of zero), or an expression."""
    return repr(x) if type(x) is Scalar else f"{float(x) + 0.0:.6g}"
