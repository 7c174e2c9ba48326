"""Support for JAX arrays through a primitive that XLA calls directly, with compiled derivatives.

Each call binds the primitive `chasles` with the compiled function as its parameter. The JVP rule
binds the primitive with the pushforward of the function, and the transpose rule with the pullback.
Therefore `jit`, `vmap`, `jvp`, `grad` and their combinations work to any order.
"""

import math
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from chasles.backends import xla
from chasles.backends.arrays import check_shape, leads
from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda.kernel import best_layout
from chasles.backends.llvm import kernel as llvm
from chasles.errors import ArgumentError, InputError, StateError, UnsupportedError
from chasles.functions.libraries import in_front


def call(function: Any, arguments: Sequence[Any], out: Any, threads: int | None) -> Any:
    """Call a function with JAX arrays. `out` and `threads` are not supported."""
    title = function.recipe.function
    for name, given in (("out", out), ("threads", threads)):
        if given is not None:
            raise ArgumentError(
                "E-CALL-043",
                f"{name}= is not supported for JAX arrays",
                f"omit `{name}`",
                part=title,
            )
    if type(arguments[0]) is _CONCRETE and _CONCRETE not in function.quick:
        function.quick[_CONCRETE] = _direct(function)
        return function.quick[_CONCRETE](*arguments)
    arrays = _arrays(function, arguments)
    chosen = function.single if arrays[0].dtype == np.float32 else function
    results = _EVALUATE.bind(*_aligned(chosen, arrays), function=chosen)
    return results[0] if len(results) == 1 else tuple(results)


def _direct(function: Any) -> Callable[..., Any]:
    """Return a callable that, for concrete arrays, runs as a single function compiled by XLA."""
    whole = jax.jit(function.call)

    def direct(*arguments: Any, **named: Any) -> Any:
        if named or not all(type(a) is _CONCRETE for a in arguments):
            return function.call(*arguments, **named)
        return whole(*arguments)

    return direct


def concrete() -> type:
    """Return the class of concrete JAX arrays (not tracers), even inside a transformation."""
    with jax.ensure_compile_time_eval():
        return type(jnp.zeros(()))


_CONCRETE = concrete()


def _arrays(function: Any, arguments: Sequence[Any]) -> list[Any]:
    """Check all arguments, and return them as JAX arrays with a common dtype."""
    title, inputs = function.recipe.function, function.interface.inputs
    arrays = []
    for v, argument in zip(inputs, arguments, strict=True):
        a = argument if isinstance(argument, jax.Array) else jnp.asarray(argument)
        if a.dtype not in (np.float32, np.float64) and not jnp.issubdtype(a.dtype, jnp.integer):
            problem = f"{v.name} must have dtype float64 or float32, not {a.dtype}"
            raise ArgumentError("E-CALL-044", problem, part=title)
        check_shape(title, v, a.shape)
        arrays.append(a)
    typed = [a for a, argument in zip(arrays, arguments, strict=True) if hasattr(argument, "dtype")]
    single = function.recipe.dtype == "float32" or all(a.dtype == np.float32 for a in typed)
    dtype = np.float32 if single else jnp.result_type(float)
    return [a if a.dtype == dtype else a.astype(dtype) for a in arrays]


namespace = jnp
"""The library's array functions, named as in NumPy."""


def like(array: Any, given: np.ndarray) -> np.ndarray:
    """Return a NumPy array with the dtype of a JAX array. JAX accepts NumPy arrays."""
    return given.astype(array.dtype)


# JAX primitive -----------------------------------------------------------------------------------


def _aligned(function: Any, arrays: Sequence[Any]) -> list[Any]:
    """Broadcast arrays to the full batch shape.

    Arrays without leading axes are returned unchanged.
    """
    inputs, title = function.interface.inputs, function.recipe.function
    ahead = leads(inputs, arrays)
    try:
        batch = jnp.broadcast_shapes(*ahead)
    except ValueError:
        shapes = ", ".join(f"{v.name} {lead}" for v, lead in zip(inputs, ahead, strict=True))
        problem = f"leading shapes do not broadcast: {shapes}"
        raise InputError("E-CALL-045", problem, part=title) from None
    return [
        a if lead in ((), batch) else jnp.broadcast_to(a, batch + v.shape)
        for v, a, lead in zip(inputs, arrays, ahead, strict=True)
    ]


def _shapes(*arrays: Any, function: Any) -> list[Any]:
    batch = max(leads(function.interface.inputs, arrays), key=len)
    outputs = function.interface.outputs
    return [jax.core.ShapedArray(batch + v.shape, arrays[0].dtype) for v in outputs]


Target = tuple[str, tuple[int, ...]]
"""XLA's name for a function's machine code, and the indices of the column-major results."""


def _rows(*arrays: Any, function: Any, target: Callable[[Any, int], Target]) -> list[Any]:
    """Lower the primitive for a device: call the machine code on arrays with one row per state."""
    interface = function.interface
    ahead = leads(interface.inputs, arrays)
    batch = max(ahead, key=len)
    count = math.prod(batch)
    rows = [
        a.reshape(count if lead else 1, v.size)
        for a, lead, v in zip(arrays, ahead, interface.inputs, strict=True)
    ]
    name, columns = target(function, count)
    shapes = [
        (v.size, count) if k in columns else (count, v.size)
        for k, v in enumerate(interface.outputs)
    ]
    kinds = [jax.ShapeDtypeStruct(shape, arrays[0].dtype) for shape in shapes]
    made = jax.ffi.ffi_call(name, kinds)(*rows)
    made = [r.T if k in columns else r for k, r in enumerate(made)]
    return [r.reshape(batch + v.shape) for r, v in zip(made, interface.outputs, strict=True)]


_REGISTERED: dict[str, Target] = {}


def _on_processor(function: Any, _: int) -> Target:
    name = f"chasles_{function.key}"
    if name not in _REGISTERED:
        if not isinstance(function.kernel, llvm.Kernel):
            given = function.recipe.backend
            problem = f"on a CPU, JAX arrays require backend='llvm', not {given!r}"
            raise ArgumentError("E-CALL-046", problem, part=function.recipe.function)
        address = xla.cpu_handler(function.kernel, _minor_version())
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(address), platform="cpu")
        _REGISTERED[name] = name, ()
    return _REGISTERED[name]


def _on_gpu(function: Any, count: int) -> Target:
    layout = best_layout(count, rows=True)
    name = f"chasles_{function.cuda.key}_{layout}"
    if name not in _REGISTERED:
        gpus = jax.local_devices(backend="cuda")
        kinds = {cuda_driver.architecture(gpu.local_hardware_id) for gpu in gpus}
        if len(kinds) > 1:
            problem = f"JAX uses GPUs of several architectures ({', '.join(sorted(kinds))})"
            remedy = "set CUDA_VISIBLE_DEVICES to GPUs of one architecture"
            raise UnsupportedError("E-CALL-047", problem, remedy, part=function.recipe.function)
        kernel = function.cuda.kernel
        address, columns = xla.gpu_handler(kernel, kinds.pop(), layout, _minor_version())
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(address), platform="CUDA")
        _REGISTERED[name] = name, columns
    return _REGISTERED[name]


@cache
def _minor_version() -> int:
    """Return the minor version of XLA's foreign function interface, from the JAX headers."""
    header = Path(jax.ffi.include_dir(), "xla/ffi/api/c_api.h").read_text("utf-8")
    found = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", header))
    if int(found["MAJOR"]) != xla.MAJOR:
        problem = (
            f"version {found['MAJOR']} of jaxlib's foreign function interface is not supported"
        )
        raise StateError("E-CALL-048", problem, f"use a jaxlib with interface version {xla.MAJOR}")
    return int(found["MINOR"])


def _moved(primals: Sequence[Any], tangents: Sequence[Any], *, function: Any) -> Any:
    """Return the results and their tangents (JVP rule of the primitive)."""
    pairs = zip(function.interface.inputs, tangents, strict=True)
    moving = {v.name: t for v, t in pairs if type(t) is not ad.Zero}
    pushed = function.pushforward(tuple(moving))
    results = _EVALUATE.bind(*primals, function=function)
    return results, _EVALUATE.bind(*primals, *moving.values(), function=pushed)


def _transposed(covectors: Sequence[Any], *arrays: Any, function: Any) -> list[Any]:
    """Implement JAX's transpose rule: return the cotangents of a pushforward's tangents."""
    origin, applied = function.parent, function.recipe.chain[-1]
    count = len(origin.interface.inputs)
    point, directions = arrays[:count], arrays[count:]
    assert applied.kind == "pushforward", (
        "a function is linear only in the tangents of a pushforward"
    )
    assert all(map(ad.is_undefined_primal, directions)), "all tangents must be transposed together"
    given = [ad.instantiate_zeros(covector) for covector in covectors]
    bars = _EVALUATE.bind(*point, *given, function=origin.pullback(applied.wrt))
    pairs = zip(bars, directions, strict=True)
    own = [bar.sum(axis=tuple(range(bar.ndim - d.aval.ndim))) for bar, d in pairs]
    return [None] * count + own


def _mapped(arrays: Sequence[Any], places: Sequence[Any], *, function: Any) -> Any:
    """Implement `jax.vmap`: move the mapped axes to the front and evaluate all entries at once."""
    moved = in_front(function, arrays, places, jnp.moveaxis)
    results = _EVALUATE.bind(*_aligned(function, moved), function=function)
    return results, [0] * len(results)


_EVALUATE = Primitive("chasles")
_EVALUATE.multiple_results = True
_EVALUATE.def_impl(jax.jit(_EVALUATE.bind, static_argnames=("function",)))
_EVALUATE.def_abstract_eval(_shapes)
ad.primitive_jvps[_EVALUATE] = _moved
ad.primitive_transposes[_EVALUATE] = _transposed
batching.primitive_batchers[_EVALUATE] = _mapped
for platform, target in (("cpu", _on_processor), ("cuda", _on_gpu)):
    rule = mlir.lower_fun(partial(_rows, target=target), multiple_results=True)
    mlir.register_lowering(_EVALUATE, rule, platform=platform)
