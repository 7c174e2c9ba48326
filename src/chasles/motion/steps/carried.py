"""Values that one compiled program passes to other programs in an array."""

from typing import Any

import numpy as np

from chasles.expr import Number, Scalar


class Carried:
    """Expressions of the program `begin` whose values other programs read from an array `data`.

    `entries` are the expressions, in the order of `data`."""

    def __init__(self) -> None:
        self.entries: list[Number] = []
        self._known: dict[int, int] = {}

    def put(self, value: Any) -> None:
        """Store all expressions in an array in `entries`; constants are not stored."""
        for x in np.ravel(np.asarray(value, dtype=object)):
            known, _ = _unsigned(x)
            if isinstance(known, Scalar) and id(known) not in self._known:
                self._known[id(known)] = len(self.entries)
                self.entries.append(known)

    def seen(self, data: np.ndarray, value: Any) -> np.ndarray:
        """Return `value`, an array stored by `put`, as expressions in the symbols `data`."""
        array = np.asarray(value, dtype=object)
        flat = []
        for x in array.ravel():
            known, negative = _unsigned(x)
            there = data[self._known[id(known)]] if isinstance(known, Scalar) else known
            flat.append(-there if negative else there)
        return np.array(flat, dtype=object).reshape(array.shape)


def _unsigned(x: Any) -> tuple[Any, bool]:
    """Return the argument of a negation and True, or the expression itself and False."""
    if isinstance(x, Scalar) and x.op == "neg":
        return x.args[0], True
    return x, False
