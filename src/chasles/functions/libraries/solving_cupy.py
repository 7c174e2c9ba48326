"""Inverse kinematics for GPU arrays of CuPy, PyTorch and JAX.

PyTorch and JAX arrays are passed to CuPy through DLPack.
"""

import contextlib
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import cupy
import numpy as np

from chasles.errors import InputError


def resident(arrays: Sequence[Any]) -> bool:
    """Return True if all arrays are on a GPU and are not being differentiated."""
    return all(isinstance(a, cupy.ndarray) or _is_plain(a) for a in arrays)


def _is_plain(array: Any) -> bool:
    torch, jax = (sys.modules.get(name) for name in ("torch", "jax"))
    if torch is not None and isinstance(array, torch.Tensor):
        wrapped = torch._C._functorch.is_functorch_wrapped_tensor(array)
        recorded = array.requires_grad and torch.is_grad_enabled()
        return bool(array.is_cuda) and not recorded and not wrapped
    if jax is not None and isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer):
        return all(device.platform == "gpu" for device in array.devices())
    return False


class Arrays:
    """GPU arrays that define inverse-kinematics targets.

    Results are float32 if all of these arrays are float32.
    """

    names = cupy

    def __init__(self, given: Sequence[Any]) -> None:
        self._kind, self._dtype = type(given[0]), np.dtype(str(given[0].dtype).split(".")[-1])
        if any(np.dtype(str(a.dtype).split(".")[-1]) != np.float32 for a in given):
            self._dtype = np.dtype(np.float64)
        seen = {cupy.from_dlpack(a).device.id for a in given}
        if len(seen) > 1:
            problem = f"targets are on different GPUs: {sorted(seen)}"
            raise InputError(
                "E-GPU-032", problem, "copy the targets to one GPU", part="inverse_kinematics"
            )
        (self._device,) = seen

    @contextlib.contextmanager
    def working(self) -> Any:
        """Make CuPy use the device of the arrays and, for PyTorch tensors, PyTorch's stream."""
        torch = sys.modules.get("torch")
        with contextlib.ExitStack() as stack:
            stack.enter_context(cupy.cuda.Device(self._device))
            if torch is not None and issubclass(self._kind, torch.Tensor):
                pointer = torch.cuda.current_stream(self._device).cuda_stream
                # ExternalStream is deprecated, but the new stream class does not accept a pointer.
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)
                    stream = cupy.cuda.ExternalStream(pointer, self._device)
                stack.enter_context(stream)
            yield

    def array(self, value: Any) -> Any:
        """Return a value as a float64 array on the GPU."""
        if isinstance(value, cupy.ndarray) or not hasattr(value, "__dlpack__"):
            return cupy.asarray(value, cupy.float64)
        if isinstance(value, np.ndarray):
            return cupy.asarray(value, cupy.float64)
        return cupy.from_dlpack(value).astype(cupy.float64)

    def values(self, _: Any) -> None:
        """Return None: GPU arrays are not read, because reading them would block the caller."""

    def results(self) -> Callable[[Any], Any]:
        """Return a function that converts results to the array type and dtype of the targets."""
        torch, jax = (sys.modules.get(name) for name in ("torch", "jax"))

        def made(array: Any) -> Any:
            a = array.astype(self._dtype) if array.dtype.kind == "f" else array
            if issubclass(self._kind, cupy.ndarray):
                return a
            flags, plain = a.dtype == bool, cupy.ascontiguousarray(a)
            plain = plain.view(cupy.uint8) if flags else plain
            if torch is not None and issubclass(self._kind, torch.Tensor):
                found = torch.from_dlpack(plain)
            else:
                assert jax is not None, "the arrays are JAX's"
                if plain.dtype.itemsize == 8 and not jax.config.jax_enable_x64:
                    plain = plain.astype({"f": cupy.float32, "i": cupy.int32}[plain.dtype.kind])
                found = jax.dlpack.from_dlpack(plain)
            return found != 0 if flags else found

        return made
