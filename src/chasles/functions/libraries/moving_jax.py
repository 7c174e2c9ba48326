"""Simulation with JAX arrays, through a differentiable callback from XLA."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def moved(
    ahead: Callable[..., Any],
    back: Callable[..., Any],
    given: Sequence[Any],
    shapes: Sequence[tuple[int, ...]],
) -> tuple[Any, ...]:
    """Return the results of `ahead` as JAX arrays, with gradients computed by `back`.

    `ahead` is a function of the arrays `given`. `back` is a function of these arrays, the results,
    and the gradient with respect to each result. `shapes` contains the shapes of the results.
    """
    single = all(a.dtype == np.float32 for a in given if isinstance(a, jax.Array))
    dtype = np.dtype(np.float32) if single else jnp.result_type(float)
    arrays = [jnp.asarray(a, dtype=dtype) for a in given]

    def called(function: Callable[..., Any], kinds: Sequence[tuple[int, ...]], *taken: Any) -> Any:
        def host(*values: Any) -> tuple[np.ndarray, ...]:
            found = function(*(np.asarray(value, dtype=float) for value in values))
            return tuple(np.asarray(result, dtype) for result in found)

        results = tuple(jax.ShapeDtypeStruct(shape, dtype) for shape in kinds)
        return jax.pure_callback(host, results, *taken, vmap_method="sequential")

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def run(*taken: Any) -> Any:
        return called(ahead, shapes, *taken)

    def first(*taken: Any) -> Any:
        results = run(*taken)
        return results, (taken, results)

    def last(kept: Any, covectors: Any) -> Any:
        taken, results = kept
        return called(back, [a.shape for a in taken], *taken, *results, *covectors)

    run.defvjp(first, last)
    found: tuple[Any, ...] = run(*arrays)
    return found
