"""Imitate the part of CuPy that rollouts and searches use, with NumPy arrays of a separate type."""

import ctypes
from collections.abc import Sequence
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from gpu_on_cpu import STREAM


class Device(nullcontext):  # type: ignore[type-arg]
    """The only device."""

    id = 0
    attributes: ClassVar[dict[str, int]] = {"MultiProcessorCount": 2}


DEVICE = Device()


class Array(np.ndarray):
    """NumPy array that reports its location like a CuPy array."""

    device = DEVICE

    @property
    def _c_contiguous(self) -> bool:
        return self.flags.c_contiguous

    @property
    def data(self) -> Any:
        def memset_async(value: int, size: int) -> None:
            ctypes.memset(self.ctypes.data, value, size)

        return SimpleNamespace(ptr=self.ctypes.data, device_id=0, memset_async=memset_async)


def asarray(a: Any, dtype: Any = None, order: Any = None) -> Array:
    return np.array(a, dtype, order=order).view(Array)


def empty(shape: Any, dtype: Any = "float64") -> Array:
    unknown = np.nan if np.dtype(dtype).kind == "f" else 99
    return np.full(shape, unknown, dtype).view(Array)


def broadcast_to(a: Array, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(a, shape, subok=True)


def concatenate(parts: Sequence[Array], axis: int) -> Array:
    return np.concatenate(parts, axis).view(Array)


def asnumpy(a: Array) -> np.ndarray:
    return np.array(a, subok=False)


def made(function: Any) -> Any:
    """Wrap a NumPy function so that its result is an `Array`."""
    return lambda *given, **options: np.asarray(function(*given, **options)).view(Array)


MAKING = ("zeros", "full", "clip", "ascontiguousarray", "stack")
NAMES = ("uint8", "int8", "int32", "int64", "uint64", "float64", "nan", "inf")


def module() -> ModuleType:
    """Return a module that replaces CuPy in `sys.modules`."""
    package = ModuleType("cupy")
    cuda = SimpleNamespace(
        get_current_stream=lambda: SimpleNamespace(ptr=STREAM),
        runtime=SimpleNamespace(getDevice=lambda: 0),
        Device=lambda *_: DEVICE,
        is_available=lambda: True,
    )
    vars(package).update(
        {name: getattr(np, name) for name in NAMES},
        **{name: made(getattr(np, name)) for name in MAKING},
        from_dlpack=lambda a: a,
        ndarray=Array,
        asarray=asarray,
        empty=empty,
        broadcast_to=broadcast_to,
        array=asarray,
        asnumpy=asnumpy,
        concatenate=concatenate,
        moveaxis=np.moveaxis,
        float32=np.float32,
        float16=np.float16,
        cuda=cuda,
    )
    return package
