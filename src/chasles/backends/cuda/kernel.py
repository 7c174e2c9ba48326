"""Kernels on an NVIDIA GPU: one thread per state, on arrays in GPU memory.

Arrays are CuPy arrays or objects with `__cuda_array_interface__`. All arrays are used in place, in
rows (coordinates last, contiguous) or in columns (the transpose of a contiguous array), with any
leading shapes that broadcast. A call is launched on CuPy's current stream and returns at once;
nothing is synchronized, so calls can be captured in CUDA graphs (pass `out=`). A zero quaternion
gives NaN instead of an error, because a check would have to wait for the GPU. Front ends for other
array libraries pass their arrays to `run`.
"""

import bisect
import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chasles.backends import cache, code_key
from chasles.backends.arrays import LoopSizes, Rows, check_numbers
from chasles.backends.cache import Artifact
from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda.build import Built, Layout, build
from chasles.backends.cuda.driver import Function, architecture
from chasles.backends.cuda.layout import Arrays, Look, Steps, overlap, strides, walk_in, walk_out
from chasles.backends.cuda.resident import BLOCKS, Plan
from chasles.backends.cuda.source import spreading
from chasles.backends.cuda.tiles import WARP
from chasles.errors import ArgumentError, InputError, MissingPackageError, StateError, said
from chasles.expr import Interface, Program, Variable

MANY = 128 * 1024
"""Minimum number of states for which blocks of several warps leave no multiprocessor idle."""

FEW = 4096
"""Maximum number of states for kernels with the layout "few".

Each multiprocessor then runs about one warp, and memory bandwidth does not limit its speed.
"""

SPREAD = (WARP, WARP // 4)
"""Dimensions (x, y) of a thread block for transposing columns to rows."""

ALIKE = 256
"""Maximum number of array layouts (shapes and strides) that a kernel caches."""


class Kernel:
    """A program on the GPU; the code for an array layout is compiled or loaded on first use."""

    recipe: object = None  # None if the machine code is not cached
    trace: Callable[[], Program]

    def __init__(
        self, interface: Interface, dtype: str, made: Callable[[str, Layout], Built]
    ) -> None:
        self.interface, self.dtype = interface, np.dtype(dtype)
        self._made = made
        self._loaded: dict[tuple[str, Layout], tuple[Built, Function]] = {}
        # These results are cached, because most calls use arrays with the same shapes and strides.
        self._given = functools.lru_cache(ALIKE)(functools.partial(walk_in, interface))
        self._taken = functools.lru_cache(ALIKE)(functools.partial(walk_out, interface))

    def __call__(self, inputs: Rows, outputs: Rows, threads: int | None = None) -> None:
        """Run the kernel on rows in host memory, which are copied to the current GPU and back."""
        cupy = _cupy()
        arrays = [
            _sent(cupy, v, rows) for v, rows in zip(self.interface.inputs, inputs, strict=True)
        ]
        found = self.call(self.interface.name, arrays)
        results = found if isinstance(found, tuple) else (found,)
        for rows, result in zip(outputs, results, strict=True):
            flat = result.reshape(len(result), -1)
            if rows.flags.c_contiguous and rows.shape == flat.shape:
                flat.get(out=rows)
            else:
                rows[...] = flat.get()

    def call(self, name: str, arguments: Sequence[Any], out: Any = None) -> Any:
        """Run the kernel on CuPy arrays on one device; return one array, or a tuple of several."""
        cupy = _cupy()
        arrays = [
            a if type(a) is cupy.ndarray and a.dtype == self.dtype else self._array(name, v, a)
            for v, a in zip(self.interface.inputs, arguments, strict=True)
        ]
        device = _device(cupy, name, self.interface, arrays)
        outs = None if out is None else list(out) if isinstance(out, tuple) else [out]
        for array in outs or ():
            if not isinstance(array, cupy.ndarray):
                problem = f"`out` must be a CuPy array, not {type(array).__name__}"
                raise ArgumentError("E-GPU-001", problem, part=name)
            there = array.data.device_id
            if there != device:
                problem = f"`out` is on GPU {there}, but the inputs are on GPU {device}"
                raise InputError("E-GPU-002", problem, part=name)
        here = device == cupy.cuda.runtime.getDevice()
        with contextlib.nullcontext() if here else cupy.cuda.Device(device):
            results = self.run(name, _CuPy(cupy, self.dtype, device), arrays, outs)
        return out if out is not None else results[0] if len(results) == 1 else tuple(results)

    def _array(self, name: str, variable: Variable, argument: Any) -> Any:
        """Return an argument as a CuPy array with the kernel's dtype."""
        if not hasattr(argument, "__cuda_array_interface__"):
            kind = type(argument).__name__
            problem = f"{variable.name} must be an array in GPU memory, not {kind}"
            raise ArgumentError("E-GPU-003", problem, "copy it with cupy.asarray", part=name)
        array = _cupy().asarray(argument)
        check_numbers(name, variable, array)
        return array if array.dtype == self.dtype else array.astype(self.dtype)

    def run(
        self, name: str, library: Arrays, arrays: Sequence[Any], out: Sequence[Any] | None = None
    ) -> Sequence[Any]:
        """Run the kernel on arrays of an array library, on the current device.

        The arrays must have the dtype of the kernel. Return new arrays, or `out` filled with the
        results.
        """
        inputs, outputs = self.interface.inputs, self.interface.outputs
        looks = [library.look(a) for a in arrays]
        if out is not None:
            targets = [library.look(a) for a in out]
            arrays = list(arrays)
            for k, look in enumerate(looks):  # copy inputs that overlap `out`
                if any(overlap(look, target, self.dtype.itemsize) for target in targets):
                    arrays[k] = library.rows(arrays[k], look[1][0])
                    looks[k] = library.look(arrays[k])
        given = self._given(name, tuple([extent for _, extent in looks]))
        batch = given.batch
        if out is None:
            out = [library.new(batch, v.shape, rows=given.rows) for v in outputs]
            targets = [library.look(a) for a in out]
        else:
            self._check_out(name, library, batch, out, targets)
        taken = self._taken(batch, tuple([extent for _, extent in targets]))
        copies = {k: library.rows(arrays[k], batch + inputs[k].shape) for k in given.strange}
        made = {k: library.new(batch, outputs[k].shape, rows=True) for k in taken.strange}
        looks += targets
        for k, array in (*copies.items(), *((len(inputs) + k, a) for k, a in made.items())):
            looks[k] = library.look(array)
        count = math.prod(batch)
        if count and outputs:
            steps = given.steps + taken.steps
            places = [(address, s) for (address, _), s in zip(looks, steps, strict=True)]
            self._launch(library, count, places, rows=given.rows and taken.rows)
        for k, array in made.items():
            out[k][...] = array
        return out

    def _check_out(
        self,
        name: str,
        library: Arrays,
        batch: tuple[int, ...],
        out: Sequence[Any],
        looks: Sequence[Look],
    ) -> None:
        outputs = self.interface.outputs
        if len(out) != len(outputs):
            problem = f"`out` must be a tuple of {len(outputs)} arrays"
            raise InputError("E-GPU-004", problem, part=name)
        for k, (variable, array) in enumerate(zip(outputs, out, strict=True)):
            shape, (found, _) = batch + variable.shape, looks[k][1]
            if array.dtype != library.dtype:
                problem = f"`out` must have dtype {library.dtype}, not {array.dtype}"
                raise ArgumentError("E-GPU-005", problem, part=name)
            if found != shape:
                problem = f"`out` must have shape {shape}, not {found}"
                raise InputError("E-GPU-006", problem, part=name)
            if any(overlap(looks[k], other, self.dtype.itemsize) for other in looks[:k]):
                problem = "the arrays in `out` overlap"
                raise InputError(
                    "E-GPU-007", problem, "use a separate array for each result", part=name
                )

    def _launch(
        self, library: Arrays, count: int, places: list[tuple[int, Steps]], *, rows: bool
    ) -> None:
        target, where = architecture(library.device), (library.stream, library.device)
        built, function = self.loaded(target, best_layout(count, rows=rows))
        wanted, columns, first = {}, {}, len(self.interface.inputs)
        for k in built.columns:
            size, wanted[k] = self.interface.outputs[k].size, places[first + k]
            columns[k] = library.new((), (size, count), rows=True)
            places[first + k] = library.look(columns[k])[0], (1, count)
        parameters = [count, -1]
        for address, (row, column) in places:
            parameters += (address, row, column)
        _launch(built, function, count, parameters, *where)
        for k, (address, (row, _)) in wanted.items():
            size, source = self.interface.outputs[k].size, places[first + k][0]
            grid = (-(-count // WARP), -(-size // WARP))
            parameters = [count, size, row, source, address]
            _spreading(target, self.dtype.name).launch(grid, SPREAD, 0, parameters, *where)

    def loaded(self, target: str, layout: Layout) -> tuple[Built, Function]:
        """Return the compiled and loaded kernel for an architecture and an array layout."""
        if (target, layout) not in self._loaded:
            built = self._made(target, layout)
            function = Function(built.code, "kernel", target, block(built, MANY)[2])
            self._loaded[target, layout] = built, function
        return self._loaded[target, layout]

    def plan(self, device: int, count: int, *, rows: bool) -> Plan | None:
        """Return a prepared launch for about `count` states, or None if one launch is not enough.

        rows: True if the entries of each state are contiguous in all arrays.
        """
        built, function = self.loaded(architecture(device), best_layout(count, rows=rows))
        if built.columns:
            return None
        edges = (1, FEW + 1, MANY, 1 << 62)
        after = bisect.bisect_right(edges, count)
        bounds = edges[after - 1], edges[after] - 1
        launch = function.pointer, *block(built, count)
        most = most_blocks(built, launch[2], device)
        return Plan(8 * self.dtype.itemsize, device, *bounds, rows, *launch, blocks=most)


def _launch(
    built: Built,
    function: Function,
    count: int,
    parameters: Sequence[int],
    stream: int,
    device: int,
) -> None:
    states, threads, shared = block(built, count)
    grid = min(-(-count // states), most_blocks(built, threads, device)), 1
    function.launch(grid, (threads, 1), shared, parameters, stream, device)


def most_blocks(built: Built, threads: int, device: int) -> int:
    """Return the largest useful number of blocks, for a given number of threads per block."""
    fit = built.block // threads
    return fit * cuda_driver.multiprocessors(device) if built.stays else BLOCKS


def block(built: Built, count: int) -> tuple[int, int, int]:
    """Return the states, the threads and the shared memory (bytes) per block.

    If there are too few states to use all multiprocessors, a block has a single warp, or a single
    crew (a group of warps that process the same states).
    """
    threads = built.block if count >= MANY else WARP * built.crew
    if built.stays and built.form == "loop":
        threads = min(built.block, WARP * -(-count // FEW))
    states = threads // built.crew
    return states, threads, built.shared * states // WARP


def best_layout(count: int, *, rows: bool) -> Layout:
    """Return the best layout for a number of states.

    rows: True if the entries of each state are contiguous in all arrays.
    """
    return "few" if count <= FEW else "rows" if rows else "strided"


def _entry(recipe: object, dtype: str, *kernel: str) -> str:
    return code_key(recipe, dtype, "cuda", cuda_driver.version(), *kernel)


def known(recipe: object, trace: Callable[[], Program], dtype: str) -> Kernel | None:
    """Return the kernel for a recipe (see `backends.compile`), or None if it is not cached."""
    found = cache.load(_entry(recipe, dtype))
    return None if found is None else _cached(recipe, found.interface, trace, dtype)


def keep(recipe: object, program: Program, dtype: str) -> Kernel:
    """Return the kernel for a program, and cache its interface; the recipe is the cache key."""
    cache.save(_entry(recipe, dtype), Artifact(program.interface, dtype, 0, 0, b""))
    return _cached(recipe, program.interface, lambda: program, dtype)


def _cached(
    recipe: object, interface: Interface, trace: Callable[[], Program], dtype: str
) -> Kernel:
    kernel = kept(recipe, interface, dtype, lambda *where: build(trace(), dtype, *where))
    kernel.recipe, kernel.trace = recipe, trace
    return kernel


def kept(
    recipe: object, interface: Interface, dtype: str, make: Callable[[str, Layout], Built]
) -> Kernel:
    """Return a kernel that loads its machine code from the cache, or compiles and caches it.

    If `recipe`, the cache key, is None, nothing is cached.
    """

    def made(target: str, layout: Layout) -> Built:
        entry = _entry(recipe, dtype, target, layout)
        artifact = cache.load(entry)
        if artifact is None:
            built = make(target, layout)
            cache.save(entry, Artifact(interface, dtype, 0, 0, built.to_bytes()))
            return built
        return Built.from_bytes(artifact.object_code)

    return Kernel(interface, dtype, make if recipe is None else made)


def compile(program: Program, dtype: str = "float64") -> Kernel:
    """Return the kernel for a program, without storing it in the cache."""
    return _cached(None, program.interface, lambda: program, dtype)


class _CuPy:
    """Functions for CuPy arrays, which run on the current CUDA stream."""

    def __init__(self, cupy: Any, dtype: np.dtype[Any], device: int) -> None:
        self.cupy, self.dtype, self.device = cupy, dtype, device
        self.stream: int = cupy.cuda.get_current_stream().ptr

    def look(self, array: Any) -> Look:
        if array.flags.c_contiguous:
            return array.data.ptr, (array.shape, None)
        strides = tuple(s // array.itemsize for s in array.strides)
        return array.data.ptr, (array.shape, strides)

    def new(self, batch: tuple[int, ...], shape: tuple[int, ...], *, rows: bool) -> Any:
        if rows:
            return self.cupy.ndarray(batch + shape, self.dtype)
        ahead = self.cupy.ndarray(shape + batch, self.dtype)
        return self.cupy.moveaxis(ahead, range(len(shape)), range(-len(shape), 0))

    def rows(self, array: Any, shape: tuple[int, ...]) -> Any:
        return self.cupy.array(self.cupy.broadcast_to(array, shape), order="C")


def _sent(cupy: Any, variable: Variable, rows: np.ndarray) -> Any:
    """Copy rows from host memory to the current GPU; a repeated row is copied once.

    Unlike `cupy.asarray`, this function does not stage rows in page-locked memory, because staging
    was never faster (docs/gpu.md). Rows that are already in page-locked memory are copied fastest.
    """
    once = rows if rows.strides[0] else rows[:1]
    array = cupy.empty((len(once), *variable.shape), rows.dtype)
    array.set(once.reshape(array.shape))
    return array


def _device(cupy: Any, name: str, interface: Interface, arrays: Sequence[Any]) -> int:
    """Return the common device of all arrays."""
    numbers = {a.data.device_id for a in arrays}
    if len(numbers) > 1:
        devices = {v.name: a.device.id for v, a in zip(interface.inputs, arrays, strict=True)}
        where = ", ".join(f"{variable} on GPU {number}" for variable, number in devices.items())
        problem = f"arrays are on different GPUs ({where})"
        raise InputError("E-GPU-008", problem, "copy all arrays to the same GPU", part=name)
    return numbers.pop() if numbers else cupy.cuda.Device().id


@functools.cache
def _spreading(target: str, dtype: str) -> Function:
    """Return the kernel that transposes results from columns to rows."""
    return Function(cuda_driver.compile(spreading(dtype), target).code, "spread", target)


@functools.cache
def _cupy() -> Any:
    """Return CuPy after checking that a GPU is available."""
    try:
        import cupy
    except ImportError as error:
        problem = f"backend='cuda' needs CuPy ({said(error)})"
        remedy = "install CuPy with pip install 'chasles[cuda]'"
        raise MissingPackageError("E-GPU-009", problem, remedy) from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        remedy = (
            "check that nvidia-smi lists a GPU and that the driver supports the CUDA "
            "version that CuPy uses"
        )
        raise StateError("E-GPU-010", f"no GPU is available ({error})", remedy) from None
    if not count:
        raise StateError("E-GPU-011", "no GPU was found", "use the backend 'llvm' on this machine")
    return cupy


def described() -> str:
    """Return the current GPU's name and the CUDA version; raise an error if there is no GPU."""
    cupy = _cupy()
    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    version = cupy.cuda.runtime.runtimeGetVersion()
    return f"{properties['name'].decode()}, CUDA {version // 1000}.{version % 1000 // 10}"


class Loop:
    """A kernel that is repeated, with its outputs as the first inputs of the next repetition."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.sizes = kernel, LoopSizes(kernel)

    def __call__(
        self,
        states: Sequence[Any],
        controls: Sequence[Any],
        records: Sequence[Any],
        steps: int,
        every: int,
        threads: int | None = None,
    ) -> None:
        """Advance states by a number of steps, without waiting for the result.

        - states: CuPy arrays (count, size) on the current device; the arrays are not changed.
        - controls: the other inputs (count or 1, steps or 1, size). An axis of length 1 is shared
          by all states or steps.
        - records: an array (count, number of records, size) for each of `states`, written after
          every `every` steps and after the last step.

        Any strides are allowed.
        """
        assert threads is None
        self.sizes.check(states, controls, records, steps, every)
        library = _CuPy(_cupy(), self.kernel.dtype, states[0].data.device_id)
        count = len(states[0])
        parameters = [count, -1, steps, every]
        for array in (*(state[:, None] for state in states), *controls, *records):
            address, extent = library.look(array)
            parameters += (address, *strides(extent))
        loaded = self.kernel.loaded(architecture(library.device), "loop")
        _launch(*loaded, count, parameters, library.stream, library.device)
