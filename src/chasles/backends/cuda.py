"""Kernels on an NVIDIA GPU: one thread a state, on arrays that are there already.

Arrays are CuPy's, or anything with `__cuda_array_interface__`. They are used in place, in rows
(coordinates last, contiguous) or in columns (the transpose of a contiguous array), with any leading
shapes that broadcast. A call is launched on CuPy's current stream and returns at once; nothing is
synchronised, so calls can be captured in CUDA graphs (give `out=`). A quaternion that is zero gives
NaN: checking would have to wait.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chasles.backends import cache, cuda_nvrtc
from chasles.backends.arrays import batch_shape, check_numbers
from chasles.backends.cache import Artifact
from chasles.backends.cuda_build import Built, Layout, build
from chasles.backends.cuda_source import WARP, spreading
from chasles.expr import Interface, Program, Variable

MANY = 128 * 1024
"""States from which on blocks of several warps leave no multiprocessor idle."""

FEW = 4096
"""States up to which each multiprocessor has about one warp, and memory is not what takes time."""

_SHARED_LIMIT = 8
"""The driver's number for the attribute: the most shared memory a launch may ask for."""


class Kernel:
    """A program on the GPU. Machine code for a layout of arrays is made, or found, when needed."""

    def __init__(
        self, interface: Interface, dtype: str, made: Callable[[str, Layout], Built]
    ) -> None:
        self.interface, self.dtype = interface, np.dtype(dtype)
        self._made = made
        self._loaded: dict[tuple[int, Layout], tuple[Built, Any]] = {}

    def __call__(
        self,
        inputs: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray],
        threads: int | None = None,
    ) -> None:
        """Run on rows in this machine's memory: copied to the current GPU, and results back."""
        cupy = _cupy()
        arrays = [
            _sent(cupy, v, rows) for v, rows in zip(self.interface.inputs, inputs, strict=True)
        ]
        found = self.call(self.interface.name, arrays)
        results = found if isinstance(found, tuple) else (found,)
        for rows, result in zip(outputs, results, strict=True):
            _fetch(result.reshape(len(result), -1), rows)

    def call(self, name: str, arguments: Sequence[Any], out: Any = None) -> Any:
        """Run on arrays of one device; the result is one array, or a tuple of several."""
        cupy = _cupy()
        arrays = [
            _array(cupy, name, v, a, self.dtype)
            for v, a in zip(self.interface.inputs, arguments, strict=True)
        ]
        device = _device(cupy, name, self.interface, arrays)
        if device == cupy.cuda.runtime.getDevice():
            return self._run(cupy, device, name, arrays, out)
        with cupy.cuda.Device(device):
            return self._run(cupy, device, name, arrays, out)

    def _run(self, cupy: Any, device: int, name: str, arrays: list[Any], out: Any) -> Any:
        inputs, outputs = self.interface.inputs, self.interface.outputs
        leads = [a.shape[: a.ndim - len(v.shape)] for v, a in zip(inputs, arrays, strict=True)]
        batch = batch_shape(name, self.interface, leads)
        if out is not None:
            results = _checked(cupy, name, self.interface, batch, out, self.dtype)
            arrays = [_apart(a, results) for a in arrays]
        given = [_input(cupy, a, batch, v) for v, a in zip(inputs, arrays, strict=True)]
        rows = all(view.is_rows for view in given)
        if out is None:
            results = [_new(cupy, batch, v, self.dtype, rows=rows) for v in outputs]
        taken = [_view(r, batch, v) for v, r in zip(outputs, results, strict=True)]
        rows = rows and all(view is not None and view.is_rows for view in taken)
        count = math.prod(batch)
        if count and outputs:
            layout: Layout = "rows" if rows and count > FEW else "strided"
            built, function = self._kernel(cupy, device, layout)
            used = [
                _columns(cupy, v, count, self.dtype) if view is None or k in built.columns else view
                for k, (v, view) in enumerate(zip(outputs, taken, strict=True))
            ]
            _launch(built, function, count, [*given, *used])
            for view, result in zip(used, results, strict=True):
                if view.apart:
                    _spread(cupy, view, result, count)
        if out is not None:
            return out
        return results[0] if len(results) == 1 else tuple(results)

    def _kernel(self, cupy: Any, device: int, layout: Layout) -> tuple[Built, Any]:
        if (device, layout) not in self._loaded:
            built = self._made(_architecture(device), layout)
            module = cupy.cuda.function.Module()
            module.load(built.code)
            function = module.get_function("kernel")
            if built.shared:
                driver = cupy.cuda.driver
                driver.funcSetAttribute(function.ptr, _SHARED_LIMIT, built.shared)
            self._loaded[device, layout] = built, function
        return self._loaded[device, layout]


def prepare(recipe: object, trace: Callable[[], Program], dtype: str = "float64") -> Kernel:
    """The kernel of a recipe: machine code comes from the cache, or is compiled and kept there."""
    name = cache.key(recipe, dtype, "cuda", cuda_nvrtc.version())
    known = cache.load(name)
    if known is None:
        known = Artifact(trace().interface, dtype, 0, 0, b"")
        cache.save(name, known)
    interface = known.interface

    def made(architecture: str, layout: Layout) -> Built:
        entry = cache.key(recipe, dtype, "cuda", cuda_nvrtc.version(), architecture, layout)
        artifact = cache.load(entry)
        if artifact is None:
            built = build(trace(), dtype, architecture, layout)
            cache.save(entry, Artifact(interface, dtype, 0, 0, built.to_bytes()))
            return built
        return Built.from_bytes(artifact.object_code)

    return Kernel(interface, dtype, made)


def compile(program: Program, dtype: str = "float64") -> Kernel:
    """The kernel of a program."""
    return Kernel(
        program.interface,
        dtype,
        lambda architecture, layout: build(program, dtype, architecture, layout),
    )


@dataclass(frozen=True)
class _View:
    """An array as a kernel sees it: numbers of state s at `row * s`, `column` apart (in numbers).

    apart: it is not the caller's, who is to have a copy of it in rows.
    """

    array: Any
    row: int
    column: int
    size: int
    apart: bool = False

    @property
    def is_rows(self) -> bool:
        """Whether the numbers of a state lie side by side."""
        return self.column == 1 or self.size <= 1


def _view(a: Any, batch: tuple[int, ...], variable: Variable) -> _View | None:
    """An array without a copy, or None where its strides do not allow that."""
    lead = a.ndim - len(variable.shape)
    if a.shape[:lead] == batch and a.flags.c_contiguous:
        return _View(a, variable.size, 1, variable.size)
    strides = [s // a.itemsize for s in a.strides]
    missing = len(batch) - lead
    repeated = [0] * missing + [
        0 if n == 1 else s for n, s in zip(a.shape[:lead], strides[:lead], strict=True)
    ]
    row, column = _stride(batch, repeated), _stride(variable.shape, strides[lead:])
    if row is None or column is None:
        return None
    return _View(a, row, column, variable.size)


def _stride(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """The one stride in which numbers of a shape follow each other in C order, if there is one."""
    left = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    for (_, outer), (n, inner) in itertools.pairwise(left):
        if outer != n * inner:
            return None
    return left[-1][1] if left else 1


def _input(cupy: Any, a: Any, batch: tuple[int, ...], variable: Variable) -> _View:
    """An input in place if its strides allow that, else copied into rows."""
    view = _view(a, batch, variable)
    if view is None:
        copied = cupy.ascontiguousarray(cupy.broadcast_to(a, batch + variable.shape))
        return _View(copied, variable.size, 1, variable.size)
    return view


def _sent(cupy: Any, variable: Variable, rows: np.ndarray) -> Any:
    """Rows of the host's memory on the current GPU; a row that is repeated travels once.

    They are not staged in page-locked memory on the way, as `cupy.asarray` does, which was never
    faster (docs/gpu.md). Rows that are in such memory already travel fastest.
    """
    once = rows if rows.strides[0] else rows[:1]
    array = cupy.empty((len(once), *variable.shape), rows.dtype)
    array.set(once.reshape(array.shape))
    return array


def _fetch(result: Any, rows: np.ndarray) -> None:
    """A result (count, size) into rows of the host's memory, when it is there."""
    if rows.flags.c_contiguous and rows.shape == result.shape:
        result.get(out=rows)
    else:
        rows[...] = result.get()


def _array(cupy: Any, name: str, variable: Variable, argument: Any, dtype: np.dtype[Any]) -> Any:
    if not hasattr(argument, "__cuda_array_interface__"):
        raise TypeError(
            f"{name}: {variable.name} is a {type(argument).__name__}, which is not on a GPU; this "
            "function was compiled with backend='cuda' and takes arrays that are (cupy.asarray "
            "copies one there)"
        )
    array = argument if type(argument) is cupy.ndarray else cupy.asarray(argument)
    check_numbers(name, variable, array)
    return array if array.dtype == dtype else array.astype(dtype)


def _device(cupy: Any, name: str, interface: Interface, arrays: Sequence[Any]) -> int:
    """The one device that all arrays are on."""
    numbers = {a.data.device_id for a in arrays}
    if len(numbers) > 1:
        devices = {v.name: a.device.id for v, a in zip(interface.inputs, arrays, strict=True)}
        where = ", ".join(f"{variable} on GPU {number}" for variable, number in devices.items())
        raise ValueError(f"{name}: arrays are on different GPUs ({where}); copy them to one")
    return numbers.pop() if numbers else cupy.cuda.Device().id


def _checked(
    cupy: Any,
    name: str,
    interface: Interface,
    batch: tuple[int, ...],
    out: Any,
    dtype: np.dtype[Any],
) -> list[Any]:
    """The caller's arrays for the results."""
    outs = list(out) if isinstance(out, tuple) else [out]
    if len(outs) != len(interface.outputs):
        raise ValueError(f"{name}: out must be a tuple of {len(interface.outputs)} arrays")
    for variable, array in zip(interface.outputs, outs, strict=True):
        shape = batch + variable.shape
        if not isinstance(array, cupy.ndarray):
            raise TypeError(f"{name}: out must be a CuPy array, not {type(array).__name__}")
        if array.dtype != dtype or array.shape != shape:
            raise ValueError(
                f"{name}: out must have dtype {dtype} and shape {shape}, "
                f"not {array.dtype} and {array.shape}"
            )
    for k, array in enumerate(outs):
        if _apart(array, outs[:k]) is not array:
            raise ValueError(f"{name}: arrays of out overlap; give each result its own")
    return outs


def _new(
    cupy: Any, batch: tuple[int, ...], variable: Variable, dtype: np.dtype[Any], *, rows: bool
) -> Any:
    if rows:
        return cupy.empty(batch + variable.shape, dtype)
    ahead = cupy.empty(variable.shape + batch, dtype)
    return cupy.moveaxis(ahead, range(len(variable.shape)), range(-len(variable.shape), 0))


def _apart(array: Any, results: Sequence[Any]) -> Any:
    """An input itself, or a copy where a result would overwrite it."""
    first, last = _bounds(array)
    for result in results:
        start, end = _bounds(result)
        if first < end and start < last:
            return array.copy()
    return array


def _bounds(array: Any) -> tuple[int, int]:
    """The addresses between which an array's numbers lie."""
    reach = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    first = array.data.ptr + sum(r for r in reach if r < 0)
    last = array.data.ptr + sum(r for r in reach if r > 0) + array.itemsize
    return first, last if array.size else first


def _columns(cupy: Any, variable: Variable, count: int, dtype: np.dtype[Any]) -> _View:
    """Room for a result in columns, to be brought into the caller's array."""
    return _View(cupy.empty((variable.size, count), dtype), 1, count, variable.size, apart=True)


def _launch(built: Built, function: Any, count: int, views: Sequence[_View]) -> None:
    """Blocks of one warp where there are too few states to keep all multiprocessors busy."""
    block = built.block if count >= MANY else WARP
    arguments: list[Any] = [np.int64(count), np.int32(-1)]
    for view in views:
        arguments += [view.array, np.int64(view.row), np.int64(view.column)]
    shared = built.shared * block // WARP
    function((-(-count // block),), (block,), tuple(arguments), shared_mem=shared)


def _spread(cupy: Any, view: _View, result: Any, count: int) -> None:
    """Columns into the caller's array: rows by way of shared memory, others as CuPy does it."""
    if result.flags.c_contiguous:
        function = _spreading(cupy.cuda.Device().id, str(result.dtype))
        grid = (-(-count // WARP), -(-view.size // WARP))
        arguments = (np.int64(count), np.int32(view.size), view.array, result)
        function(grid, (WARP, WARP // 4), arguments)
    else:
        result[...] = view.array.T.reshape(result.shape)


@functools.cache
def _spreading(device: int, dtype: str) -> Any:
    code = cuda_nvrtc.compile(spreading(dtype), _architecture(device)).code
    module = _cupy().cuda.function.Module()
    module.load(code)
    return module.get_function("spread")


@functools.cache
def _cupy() -> Any:
    """CuPy, with a GPU that it can use."""
    try:
        import cupy
    except ImportError as error:
        raise ModuleNotFoundError(
            f"backend='cuda' needs CuPy ({error}); install it with pip install 'chasles[cuda]'"
        ) from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(
            f"no GPU can be used ({error}); check that nvidia-smi lists one and that its driver is "
            "as new as the CUDA version of the installed CuPy"
        ) from None
    if not count:
        raise RuntimeError("no GPU was found; use the backend 'llvm' on this machine")
    return cupy


def described() -> str:
    """The current GPU and the version of CUDA, by name; an error that says why where none is."""
    cupy = _cupy()
    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    version = cupy.cuda.runtime.runtimeGetVersion()
    return f"{properties['name'].decode()}, CUDA {version // 1000}.{version % 1000 // 10}"


@functools.cache
def _architecture(device: int) -> str:
    return f"sm_{_cupy().cuda.Device(device).compute_capability}"
