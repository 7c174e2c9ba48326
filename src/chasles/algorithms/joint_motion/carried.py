"""Derivatives of a vector that is known by its components along turning axes."""

from collections.abc import Sequence

from chasles.mathematics.leibniz import leibniz
from chasles.mathematics.linear import Vector


def carried(x: Sequence[Vector], w: Sequence[Vector]) -> list[Vector]:
    """R' times the derivatives of R x, where Rdot = R w~.

    x[k] and w[k] are the k-th derivatives of the components; w is needed to one order less.
    """
    found = []
    while x:
        found.append(x[0])
        x = [x[k + 1] + leibniz(Vector.cross, w, x, k) for k in range(len(x) - 1)]
    return found
