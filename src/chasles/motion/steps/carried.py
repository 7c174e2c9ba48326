"""Values that one compiled program passes to other programs in an array."""

from typing import Any

import numpy as np

from chasles.expr import Number, Scalar


class Carried:
    """Values that the program `begin` computes and passes to other programs in an array `data`.

    `entries` contains the expressions for these values, in the order of `data`."""

    def __init__(self) -> None:
        self.entries: list[Number] = []
        self._known: dict[int, int] = {}

    def put(self, value: Any) -> None:
        """Append the expressions in an array to `entries`, without constants and duplicates."""
        for x in np.ravel(np.asarray(value, dtype=object)):
            known, _ = _unsigned(x)
            if isinstance(known, Scalar) and id(known) not in self._known:
                self._known[id(known)] = len(self.entries)
                self.entries.append(known)

    def seen(self, data: np.ndarray, value: Any) -> np.ndarray:
        """Return the array `value`, with its stored expressions replaced by entries of `data`."""
        array = np.asarray(value, dtype=object)
        flat = []
        for x in array.ravel():
            known, negative = _unsigned(x)
            there = data[self._known[id(known)]] if isinstance(known, Scalar) else known
            flat.append(-there if negative else there)
        return np.array(flat, dtype=object).reshape(array.shape)


def _unsigned(x: Any) -> tuple[Any, bool]:
    """Split x into an expression and a flag: return (y, True) if x is -y, otherwise (x, False)."""
    if isinstance(x, Scalar) and x.op == "neg":
        return x.args[0], True
    return x, False
