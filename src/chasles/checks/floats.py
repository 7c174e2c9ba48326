"""Evaluate algorithms on Python floats, without tracing, simplification or compilation."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chasles.algorithms import METHODS
from chasles.functions.tracing import WrenchKey, external_loads, resolve, signature, split
from chasles.model import Model
from chasles.model.loads import by_body
from chasles.model.passes import applied
from chasles.model.spaces import LoadsSpace

ORACLES = {
    "inverse_dynamics": "newton-euler-vector",
    "bias_forces": "newton-euler-vector",
}
"""Method used as the reference for each function. Default: the function's first method."""


def evaluate(
    model: Model,
    function: str,
    arrays: Sequence[Any],
    *,
    method: str = "",
    f_ext: Mapping[WrenchKey, Any] | None = None,
    **options: Any,
) -> tuple[np.ndarray, ...]:
    """Evaluate a function at one state on Python floats.

    `method` defaults to the method in `ORACLES`, or else to the function's first method. `arrays`
    contains the function's inputs. If the function supports derivatives of any order, the number of
    inputs determines the order. Damping and friction are included. For a time-dependent model, set
    the time first (`Model.at`).
    """
    wanted = method or ORACLES.get(function, "")
    way = next(m for m in METHODS[function] if wanted in ("", m.name))
    return run(applied(model, way.passes), way.algorithm, arrays, f_ext=f_ext, **options)


def run(
    model: Model,
    algorithm: Callable[..., Any],
    arrays: Sequence[Any],
    *,
    f_ext: Mapping[WrenchKey, Any] | None = None,
    **options: Any,
) -> tuple[np.ndarray, ...]:
    """Evaluate an algorithm at one state on Python floats, and return its results as arrays.

    The arguments are the same as for `evaluate`.
    """
    sign = signature(algorithm, max(len(arrays) - 1, 1))
    given = zip(sign.inputs, arrays, strict=False)
    flat = {name: np.asarray(array, dtype=float).tolist() for name, array in given}
    values, model = split(sign, model, flat, model)
    if f_ext:
        wrenches = [np.asarray(f, dtype=float).tolist() for f in f_ext.values()]
        loads = external_loads(model, values["q"], tuple(f_ext), wrenches)
        single = isinstance(sign.inputs["f_ext"], LoadsSpace)
        values["f_ext"] = loads if single else by_body(model, loads)
    result = algorithm(model, *values.values(), **resolve(model, options))
    results = (result,) if len(sign.outputs) == 1 else result
    return tuple(
        np.array(space.join(model, value), dtype=float).reshape(space.shape_of(model, value))
        for space, value in zip(sign.outputs, results, strict=True)
    )
