"""The choices of `chasles.expr` for contact: on floats, on NumPy arrays and on symbols."""

from collections.abc import Callable
from typing import Any

import numpy as np

from chasles import expr
from chasles.mathematics.linear import Vector

Value = Any
"""A float, an array of them, or a symbol: laws and shapes take and give any of the three."""


def _on_any(on_arrays: Callable[..., Value], on_numbers: Callable[..., Value]) -> Any:
    """An operation by its spelling for arrays, where an argument is one, else for numbers."""

    def operation(*arguments: Value) -> Value:
        arrays = any(isinstance(a, np.ndarray | np.generic) for a in arguments)
        return (on_arrays if arrays else on_numbers)(*arguments)

    return operation


def _where(condition: Value, a: Value, b: Value) -> Value:
    """NumPy's choice; of single numbers a number, which vectors can be scaled by."""
    return np.asarray(np.where(condition, a, b))[()]


maximum = _on_any(np.maximum, expr.maximum)
minimum = _on_any(np.minimum, expr.minimum)
absolute = _on_any(np.abs, expr.absolute)
sqrt = _on_any(np.sqrt, expr.sqrt)
less = _on_any(lambda a, b: _where(np.less(a, b), 1.0, 0.0), expr.less)
less_equal = _on_any(lambda a, b: _where(np.less_equal(a, b), 1.0, 0.0), expr.less_equal)
select = _on_any(lambda c, a, b: _where(np.not_equal(c, 0.0), a, b), expr.select)


def scaled(v: Vector, factor: Value) -> Vector:
    """v times a factor, which may be an array as the entries of v may."""
    return Vector(tuple([x * factor for x in v]))


def chosen(condition: Value, a: Vector, b: Vector) -> Vector:
    """a where the condition is non-zero, b elsewhere."""
    return Vector(tuple([select(condition, x, y) for x, y in zip(a, b, strict=True)]))
