"""Support for PyTorch tensors without copies, including autograd, vmap and `torch.compile`.

Outside `torch.compile`, plain tensors are passed directly to the compiled code. Tensors that are
differentiated or mapped by vmap are passed through a `torch.autograd.Function`, whose derivatives
of any order are compiled functions as well. Inside `torch.compile`, a call becomes the operation
`chasles::evaluate`.
"""

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from chasles.backends.arrays import check_shape, leads
from chasles.backends.cuda.layout import Look
from chasles.backends.cuda.resident import Library, exchange
from chasles.errors import ArgumentError, InputError, StateError
from chasles.functions import compiled
from chasles.functions.compiled import recall
from chasles.functions.graphs import Graph
from chasles.functions.libraries import in_front, learn, refuse_threads

_SINGLE, _DOUBLE = torch.float32, torch.float64
_WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


def call(function: Any, arguments: Sequence[Any], out: Any, threads: int | None) -> Any:
    """Call a function on the device of its tensors.

    `out` cannot be combined with differentiation, vmap or `torch.compile`.
    """
    tensors = _tensors(function, arguments)
    if tensors[0].is_cuda:
        refuse_threads(function.recipe.function, threads)
    if out is not None:
        results = _fill(function, tensors, out, threads)
    elif torch.compiler.is_compiling():
        results = torch.ops.chasles.evaluate(*_address(function), tensors, threads)
        return results[0] if len(results) == 1 else tuple(results)
    elif not _bare(tensors):
        results = _Evaluate.apply(function, threads, *tensors)
        return results[0] if len(results) == 1 else results
    else:
        results = _run(function, tensors, threads)
    if tensors[0].is_cuda:
        _learn(function, tensors, results[0])
    return out if out is not None else results[0] if len(results) == 1 else tuple(results)


def _learn(function: Any, tensors: Sequence[Any], result: Any) -> None:
    """Prepare fast calls for the GPU of the given tensors (requires PyTorch 2.10 or newer)."""
    if _LIBRARY is not None:
        chosen = function.single if tensors[0].dtype == _SINGLE else function
        rows = all(t.is_contiguous() for t in tensors)
        variable = function.interface.outputs[0]
        count = math.prod(result.shape[: result.ndim - len(variable.shape)])
        kernel, device = chosen.cuda.kernel, tensors[0].get_device()
        learn(function, _LIBRARY, kernel, device, count, rows=rows)


def _library() -> Library | None:
    """Return PyTorch's types and C functions for fast GPU calls, or None before PyTorch 2.10."""
    read = exchange(torch.Tensor)
    if read is None or not hasattr(forward_ad, "_current_level"):
        return None
    types, new = (torch.Tensor, torch.nn.Parameter), torch.Tensor.new_empty
    return Library("torch", types, new, new, forward_ad, *read)  # results are row-major


_LIBRARY = _library()
compiled.is_traced = torch.compiler.is_compiling

namespace = torch
"""The library's array functions, named as in NumPy."""


def like(tensor: Any, array: np.ndarray) -> Any:
    """Return a NumPy array as a tensor with the dtype and device of a given tensor."""
    return torch.as_tensor(array).to(tensor)


def captured(
    function: Callable[..., Any], values: Mapping[str, np.ndarray], device: int | None
) -> Graph:
    """Capture a function of tensors in a CUDA graph, without gradients."""
    if not torch.cuda.is_available():
        remedy = "install a GPU driver and a PyTorch build with CUDA support"
        raise StateError("E-GPU-031", "PyTorch did not find a GPU", remedy, part="graph")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(device), torch.no_grad():
        inputs = {name: torch.from_numpy(a).cuda() for name, a in values.items()}
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(2):  # compile before the graph is captured
                function(*inputs.values())
        torch.cuda.synchronize()
        with warnings.catch_warnings(), torch.cuda.graph(graph):
            try:
                outputs = function(*inputs.values())
            except BaseException:  # suppress the warning about an empty graph
                warnings.simplefilter("ignore")
                raise
    return Graph(inputs, outputs, graph.replay, _copy)


def _copy(target: Any, given: Any) -> None:
    target.copy_(torch.as_tensor(given))


# Argument checks ---------------------------------------------------------------------------------


def _tensors(function: Any, arguments: Sequence[Any]) -> list[Any]:
    """Return all arguments as tensors on one device: float32 if all tensors are, else float64."""
    given = [a for a in arguments if isinstance(a, torch.Tensor)]
    device, dtype = given[0].device, given[0].dtype
    alike = [a.dtype == dtype and a.device == device for a in given]
    if not all(alike) or dtype not in (_SINGLE, _DOUBLE) or device.type not in ("cpu", "cuda"):
        dtype = _checked(function, arguments)
        alike = []
    if function.recipe.dtype == "float32":
        dtype = _SINGLE
    if len(alike) == len(arguments) and given[0].dtype == dtype:
        return given
    return [torch.as_tensor(a, dtype=dtype, device=device) for a in arguments]


def _checked(function: Any, arguments: Sequence[Any]) -> Any:
    """Check the devices and dtypes of tensors, and return the dtype of the computation."""
    title, dtype, first = function.recipe.function, _SINGLE, None
    for variable, a in zip(function.interface.inputs, arguments, strict=True):
        if not isinstance(a, torch.Tensor):
            continue
        first = first or (variable.name, a.device)
        if a.device != first[1]:
            problem = f"{first[0]} is on {first[1]}, but {variable.name} is on {a.device}"
            raise InputError("E-CALL-049", problem, "move the tensors to one device", part=title)
        if a.device.type not in ("cpu", "cuda"):
            problem = f"device {a.device} is not supported"
            raise InputError("E-CALL-050", problem, "move the tensors to cpu or cuda", part=title)
        if a.dtype == _DOUBLE or a.dtype in _WHOLE:
            dtype = _DOUBLE
        elif a.dtype != _SINGLE:
            problem = f"{variable.name} must have dtype float64 or float32, not {a.dtype}"
            raise ArgumentError("E-CALL-051", problem, part=title)
    return dtype


def _bare(tensors: Sequence[Any]) -> bool:
    """Return True if all tensors are plain: stored, not differentiated, and not mapped by vmap."""
    recording = torch.is_grad_enabled()
    try:
        for t in tensors:
            if recording and t.requires_grad:
                return False
            t.data_ptr()  # raises an error for a tensor without storage
            if forward_ad.unpack_dual(t).tangent is not None:
                return False
    except RuntimeError:
        return False
    return True


def _fill(function: Any, tensors: Sequence[Any], out: Any, threads: int | None) -> Sequence[Any]:
    """Write the results to the tensors in `out`."""
    title = function.recipe.function
    if torch.compiler.is_compiling() or not _bare(tensors):
        problem = "out= cannot be combined with differentiation, vmap or compilation"
        raise ArgumentError("E-CALL-052", problem, "do not pass `out`", part=title)
    outs = out if isinstance(out, tuple) else (out,)
    for target in outs:
        if target.requires_grad:
            problem = "tensors in out= must not require a gradient"
            raise ArgumentError("E-CALL-053", problem, "pass out=out.detach()", part=title)
        if target.device != tensors[0].device:
            first = function.interface.inputs[0].name
            problem = f"`out` is on {target.device}, but {first} is on {tensors[0].device}"
            raise InputError("E-CALL-054", problem, "move the tensors to one device", part=title)
    return _run(function, tensors, threads, out=outs)


# Evaluation -------------------------------------------------------------------------------------


def _run(
    function: Any, tensors: Sequence[Any], threads: int | None, out: tuple[Any, ...] | None = None
) -> Sequence[Any]:
    """Evaluate a function on plain tensors; store the results in `out`, or in new tensors."""
    chosen = function.single if tensors[0].dtype == _SINGLE else function
    if tensors[0].device.type == "cuda":
        return _run_on_gpu(chosen, tensors, out)
    views = [t.detach().resolve_neg().numpy() for t in tensors]
    if out is not None:
        targets = tuple(t.numpy() for t in out)
        named = {} if threads is None else {"threads": threads}
        chosen.fast(*views, out=targets if len(targets) > 1 else targets[0], **named)
        return list(out)
    made = chosen.fast(*views) if threads is None else chosen(*views, threads=threads)
    many = made if isinstance(made, tuple) else (made,)
    return [torch.from_numpy(np.asarray(result)) for result in many]


def _run_on_gpu(
    function: Any, tensors: Sequence[Any], out: tuple[Any, ...] | None
) -> Sequence[Any]:
    """Run the CUDA kernel on PyTorch's current stream, with memory from PyTorch."""
    device, kernel = tensors[0].device.index, function.cuda.kernel
    if device != torch.cuda.current_device():
        with torch.cuda.device(device):
            return _run_on_gpu(function, tensors, out)
    if any(t.is_neg() for t in tensors):
        tensors = [t.resolve_neg() for t in tensors]
    return kernel.run(function.recipe.function, _OnGPU(tensors[0]), tensors, out)


class _OnGPU:
    """Operations on tensors with one dtype on one GPU (see `Arrays`), with row-major results."""

    def __init__(self, tensor: Any) -> None:
        self.dtype, self.device = tensor.dtype, tensor.device.index
        # torch.cuda.current_stream is slow, so call the function that code generated by PyTorch's
        # compiler uses.
        self.stream: int = torch._C._cuda_getCurrentRawStream(self.device)
        self.new_empty = tensor.new_empty

    def look(self, tensor: Any) -> Look:
        strides = None if tensor.is_contiguous() else tensor.stride()
        return tensor.data_ptr(), (tuple(tensor.shape), strides)

    def new(self, batch: tuple[int, ...], shape: tuple[int, ...], *, rows: bool) -> Any:
        return self.new_empty(batch + shape)

    def rows(self, tensor: Any, shape: tuple[int, ...]) -> Any:
        return tensor.expand(shape).clone(memory_format=torch.contiguous_format)


# Derivatives -------------------------------------------------------------------------------------


def _evaluated(function: Any, tensors: Sequence[Any], threads: int | None) -> Sequence[Any]:
    """Evaluate a function on tensors that may be differentiated or mapped by vmap."""
    if _bare(tensors):
        return _run(function, tensors, threads)
    return _Evaluate.apply(function, threads, *tensors)


class _Evaluate(torch.autograd.Function):  # type: ignore[misc]
    """Autograd function that evaluates a compiled function and supports `torch.func`."""

    @staticmethod
    def forward(function: Any, threads: int | None, *tensors: Any) -> tuple[Any, ...]:
        return tuple(_run(function, tensors, threads))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.function, ctx.threads, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *covectors: Any) -> tuple[Any, ...]:
        names, inputs = ctx.function.interface.inputs, ctx.saved_tensors
        wrt = tuple(v.name for v, n in zip(names, ctx.needs_input_grad[2:], strict=True) if n)
        bars = _evaluated(ctx.function.pullback(wrt), [*inputs, *covectors], ctx.threads)
        return None, None, *_reduced(ctx.function, inputs, wrt, bars)

    @staticmethod
    def jvp(ctx: Any, _function: None, _threads: None, *directions: Any) -> tuple[Any, ...]:
        pairs = zip(ctx.function.interface.inputs, directions, strict=True)
        moving = {v.name: d for v, d in pairs if d is not None}
        pushed = ctx.function.pushforward(tuple(moving))
        inputs = [*ctx.saved_tensors, *moving.values()]
        return tuple(_evaluated(pushed, inputs, ctx.threads))

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[Any, ...], function: Any, threads: int | None, *tensors: Any
    ) -> tuple[Any, Any]:
        moved = in_front(function, tensors, in_dims[2:], torch.movedim)
        results = tuple(_evaluated(function, moved, threads))
        return results, (0,) * len(results)


def _reduced(
    function: Any, tensors: Sequence[Any], wrt: tuple[str, ...], bars: Sequence[Any]
) -> list[Any]:
    """Sum gradients over the axes along which inputs were broadcast.

    Each result has the shape of its input, or is None for inputs that are not in `wrt`.
    """
    found = dict(zip(wrt, bars, strict=True))
    pairs = zip(function.interface.inputs, tensors, strict=True)
    return [found[v.name].sum_to_size(t.shape) if v.name in found else None for v, t in pairs]


# Operation in compiled graphs ---------------------------------------------------------------------


def _address(function: Any) -> tuple[str, str]:
    """Return two strings that identify a function in a graph: its cache key and its derivatives.

    The cache key belongs to the function before differentiation. The second string lists the
    derivatives, or is empty.
    """
    chain = [(each.kind, each.wrt) for each in function.recipe.chain]
    while function.parent is not None:
        function = function.parent
    return function.key, json.dumps(chain) if chain else ""


def _found(key: str, chain: str) -> Any:
    function = recall(key)
    for kind, wrt in json.loads(chain or "[]"):
        function = getattr(function, kind)(tuple(wrt))
    return function


def _operation(
    key: str, chain: str, inputs: list[torch.Tensor], threads: int | None
) -> list[torch.Tensor]:
    return list(_run(_found(key, chain), inputs, threads))


def _shapes(key: str, chain: str, inputs: Any, threads: int | None) -> list[Any]:
    """Return empty tensors with the shapes of the results, for PyTorch's compiler."""
    function = _found(key, chain)
    for v, t in zip(function.interface.inputs, inputs, strict=True):
        check_shape(function.recipe.function, v, tuple(t.shape))
    batch = torch.broadcast_shapes(*leads(function.interface.inputs, inputs))
    return [inputs[0].new_empty((*batch, *v.shape)) for v in function.interface.outputs]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.key, ctx.chain, tensors, ctx.threads = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, covectors: Sequence[Any]) -> tuple[Any, ...]:
    function, inputs = _found(ctx.key, ctx.chain), list(ctx.saved_tensors)
    pairs = zip(function.interface.inputs, ctx.needs_input_grad[2], strict=True)
    wrt = tuple(v.name for v, needed in pairs if needed)
    key, chain = _address(function.pullback(wrt))
    bars = torch.ops.chasles.evaluate(key, chain, [*inputs, *covectors], ctx.threads)
    return None, None, _reduced(function, inputs, wrt, bars), None


_evaluate = torch.library.custom_op("chasles::evaluate", _operation, mutates_args=())
_evaluate.register_fake(_shapes)
_evaluate.register_autograd(_backward, setup_context=_keep)
