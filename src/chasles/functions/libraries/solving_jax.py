"""Inverse kinematics for JAX arrays, through a differentiable callback from XLA."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


class Arrays:
    """JAX arrays that define inverse-kinematics targets.

    Results are float32 if all of these arrays are float32.
    """

    names = jnp

    def __init__(self, given: Sequence[Any]) -> None:
        single = all(a.dtype == np.float32 for a in given)
        self._dtype = np.dtype(np.float32) if single else jnp.result_type(float)

    def array(self, value: Any) -> Any:
        """Convert a value to a JAX array."""
        return jnp.asarray(value, dtype=self._dtype)

    def values(self, array: Any) -> np.ndarray | None:
        """Return an array's values, or None if JAX is tracing the array."""
        return None if isinstance(array, jax.core.Tracer) else np.asarray(array)

    def recorded(self, array: Any) -> bool:
        """Return True if JAX is tracing the array."""
        return self.values(array) is None

    def result(self, array: np.ndarray) -> Any:
        """Return a NumPy array as a JAX array."""
        return jnp.asarray(array, self._dtype if array.dtype.kind == "f" else None)

    def solved(
        self, solve: Callable[..., Any], goals: Any, given: Sequence[Any], shapes: Sequence[Any]
    ) -> Any:
        """Return the results of `solve` as JAX arrays; JAX can differentiate the first result.

        The second result of `solve`, the derivatives of the first, is not returned.
        `shapes` contains the shape of each result of `solve` for one problem.
        """
        arrays = [goals, *map(self.array, given)]
        lead = jnp.broadcast_shapes(*(a.shape[:-1] for a in arrays))
        wide = [jnp.broadcast_to(a, (*lead, a.shape[-1])) for a in arrays]
        whole = jax.dtypes.canonicalize_dtype(np.int64)
        dtypes = (self._dtype, self._dtype, np.bool_, self._dtype, whole, np.int8, np.bool_)

        def found(*numbers: Any) -> tuple[Any, ...]:
            pairs = zip(solve(*map(np.asarray, numbers)), dtypes, strict=True)
            return tuple(np.asarray(a, dtype) for a, dtype in pairs)

        @jax.custom_jvp  # type: ignore[untyped-decorator]
        def run(*numbers: Any) -> Any:
            ahead = numbers[0].shape[:-1]
            pairs = zip(shapes, dtypes, strict=True)
            kinds = tuple(jax.ShapeDtypeStruct((*ahead, *s), dtype) for s, dtype in pairs)
            return jax.pure_callback(found, kinds, *numbers, vmap_method="broadcast_all")

        @run.defjvp  # type: ignore[untyped-decorator]
        def _pushed(numbers: Any, directions: Any) -> Any:
            results, direction = run(*numbers), directions[0]
            rates = results[1]
            between = [1] * (rates.ndim - direction.ndim)
            along = direction.reshape(*direction.shape[:-1], *between, direction.shape[-1])
            moved = jnp.sum(rates * along, axis=-1)
            unknown = jnp.nan * jnp.sum(moved) + jnp.zeros_like(rates)
            zeros = [np.zeros(a.shape, jax.dtypes.float0) for a in results]
            return results, (moved, unknown, zeros[2], jnp.zeros_like(results[3]), *zeros[4:])

        q, _, *others = run(*wide)
        return q, *others
