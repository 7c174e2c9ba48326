"""Simulation with PyTorch tensors, as a single operation that PyTorch can differentiate."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from chasles.errors import InputError

_SINGLE, _DOUBLE = torch.float32, torch.float64


def moved(
    ahead: Callable[..., Any], back: Callable[..., Any], given: Sequence[Any], _: Any
) -> tuple[Any, ...]:
    """Return the results of `ahead` as tensors, with gradients computed by `back`.

    `ahead` is a function of the arrays `given`. `back` is a function of these arrays, the results,
    and the gradient with respect to each result.
    """
    tensors = [a for a in given if isinstance(a, torch.Tensor)]
    for t in tensors:
        if t.device.type != "cpu":
            problem = f"a tensor is on {t.device}, but rollouts of tensors run on the CPU"
            raise InputError("E-MOTION-197", problem, "use tensor.cpu()", part="rollout")
    kind = _SINGLE if {t.dtype for t in tensors} == {_SINGLE} else _DOUBLE
    wide = [a if isinstance(a, torch.Tensor) else torch.as_tensor(np.asarray(a)) for a in given]
    wide = [a.to(kind) for a in wide]
    return tuple(_Move.apply(ahead, back, *wide))


class _Move(torch.autograd.Function):  # type: ignore[misc]
    """Simulation as a PyTorch autograd function, which provides only first derivatives."""

    @staticmethod
    def forward(ctx: Any, ahead: Any, back: Any, *tensors: Any) -> tuple[Any, ...]:
        made = ahead(*map(_numbers, tensors))
        found = tuple(torch.from_numpy(np.array(a)).to(tensors[0].dtype) for a in made)
        ctx.back = back
        ctx.save_for_backward(*tensors, *found)
        return found

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, *covectors: Any) -> tuple[Any, ...]:
        arrays = map(_numbers, (*ctx.saved_tensors, *covectors))
        kind = covectors[0].dtype
        bars = [torch.from_numpy(np.array(bar)).to(kind) for bar in ctx.back(*arrays)]
        return None, None, *bars


def _numbers(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().resolve_neg().numpy(), dtype=float)
