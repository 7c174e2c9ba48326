"""The rule of Leibniz: higher derivatives of products."""

from collections.abc import Callable, Sequence
from math import comb
from typing import Any, TypeVar

B = TypeVar("B")


def leibniz(product: Callable[[Any, B], Any], a: Sequence[Any], b: Sequence[B], k: int) -> Any:
    """The k-th derivative of product(a, b), bilinear; a[j] and b[j] are the j-th derivatives."""
    total = product(a[0], b[k])
    for j in range(1, k + 1):
        total = total + product(a[j] * float(comb(k, j)), b[k - j])
    return total
