"""Gram matrices computed by machine code, compared with NumPy's products."""

import numpy as np
import pytest

from chasles.backends.llvm.gram import ABREAST, Grams, lanes


@pytest.mark.parametrize("groups", [(1,), (ABREAST,), (ABREAST + 1, 1, 2 * ABREAST + 1)])
def test_sums_are_those_of_numpy(groups: tuple[int, ...]) -> None:
    """Rows may be added in parts, including parts of one row or none."""
    widths = [lanes() * many for many in groups]
    rows = np.random.default_rng(0).normal(size=(300, sum(widths)))
    found = Grams(widths)
    for part in (rows[:200], rows[200:201], rows[:0], rows[201:]):
        found.add(part)
    first = 0
    for width, matrix in zip(widths, found.matrices, strict=True):
        W = rows[:, first : first + width]
        # Each of the 300 products may round once.
        np.testing.assert_allclose(matrix, W.T @ W, rtol=0.0, atol=300 * 2e-16 * 16.0)
        assert np.array_equal(matrix, matrix.T)
        first += width


def test_only_whole_vectors_of_doubles_side_by_side() -> None:
    with pytest.raises(AssertionError):
        Grams([lanes() + 1])
    found = Grams([lanes()])
    for bad in (
        np.zeros((5, lanes() + 1)),
        np.zeros((5, lanes()), "f4"),
        np.zeros((10, lanes()))[::2],
    ):
        with pytest.raises(AssertionError):
            found.add(bad)
