"""Inverse kinematics for PyTorch tensors, as one differentiable operation."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

_SINGLE, _DOUBLE = torch.float32, torch.float64


class Arrays:
    """Tensors that define inverse-kinematics targets.

    Results are float32 if all of these tensors are float32.
    """

    names = torch

    def __init__(self, given: Sequence[Any]) -> None:
        kinds = {t.dtype for t in given}
        self._kind = {
            "dtype": _SINGLE if kinds == {_SINGLE} else _DOUBLE,
            "device": given[0].device,
        }

    def array(self, value: Any) -> Any:
        """Convert a value to a tensor, keeping it differentiable."""
        if isinstance(value, torch.Tensor):
            return value.to(**self._kind)
        return torch.as_tensor(np.asarray(value, float), **self._kind)

    def values(self, tensor: Any) -> np.ndarray | None:
        """Return the values of a tensor, or None inside a transformation such as vmap."""
        try:
            return np.asarray(tensor.detach().cpu().resolve_neg().numpy())
        except RuntimeError:
            return None

    def recorded(self, tensor: Any) -> bool:
        """Return True if the tensor requires a gradient or is part of a PyTorch transformation."""
        return bool(tensor.requires_grad and torch.is_grad_enabled()) or self.values(tensor) is None

    def result(self, array: np.ndarray) -> Any:
        """Return a NumPy array as a tensor, without derivatives."""
        tensor = torch.from_numpy(np.array(array)).to(self._kind["device"])
        return tensor.to(self._kind["dtype"]) if tensor.is_floating_point() else tensor

    def solved(self, solve: Callable[..., Any], goals: Any, given: Sequence[Any], _: Any) -> Any:
        """Return the results of `solve` as tensors; PyTorch can differentiate the first result.

        The second result of `solve`, the derivatives of the first, is not returned.
        """
        tensors = [goals, *(self.array(a) for a in given)]
        lead = torch.broadcast_shapes(*(t.shape[:-1] for t in tensors))
        wide = [torch.broadcast_to(t, (*lead, t.shape[-1])) for t in tensors]
        q, _, *others = _Solve.apply(solve, *wide)
        return q, *others


class _Solve(torch.autograd.Function):  # type: ignore[misc]
    """Autograd function for inverse kinematics, which also returns derivatives of the solution.

    Second derivatives are not supported and are set to NaN.
    """

    @staticmethod
    def forward(solve: Any, *tensors: Any) -> tuple[Any, ...]:
        found = solve(*(t.detach().cpu().resolve_neg().numpy() for t in tensors))
        like = tensors[0]
        made = [torch.from_numpy(np.array(a)).to(like.device) for a in found]
        return tuple(t.to(like.dtype) if t.is_floating_point() else t for t in made)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.mark_non_differentiable(*output[2:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(inputs[1], output[1])
        ctx.save_for_forward(inputs[1], output[1])

    @staticmethod
    def backward(ctx: Any, covector: Any, again: Any, *_: Any) -> tuple[Any, ...]:
        goals, rates = ctx.saved_tensors
        bar = torch.full_like(goals, math.nan if again is not None else 0.0)
        if covector is not None:
            own = (rates * covector[..., None]).sum(-2)
            bar = bar + (own if own.ndim == goals.ndim else own.sum(-2))
        return None, bar, *[None] * (len(ctx.needs_input_grad) - 2)

    @staticmethod
    def jvp(ctx: Any, _: None, direction: Any, *__: Any) -> tuple[Any, ...]:
        goals, rates = ctx.saved_tensors
        moved = _Push.apply(rates, direction if direction is not None else torch.zeros_like(goals))
        return moved, torch.full_like(rates, math.nan), *[None] * 5

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], solve: Any, *tensors: Any) -> tuple[Any, Any]:
        moved = [
            t.expand(info.batch_size, *t.shape) if place is None else t.movedim(place, 0)
            for t, place in zip(tensors, in_dims[1:], strict=True)
        ]
        results = _Solve.apply(solve, *moved)
        return results, (0,) * len(results)


class _Push(torch.autograd.Function):  # type: ignore[misc]
    """Autograd function for directional derivatives of inverse-kinematics solutions.

    Second derivatives are NaN.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(rates: Any, direction: Any) -> Any:
        between = [1] * (rates.ndim - direction.ndim - 1)
        wide = direction.reshape(*direction.shape[:-1], *between, 1, direction.shape[-1])
        return (rates * wide).sum(-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, covector: Any) -> tuple[Any, ...]:
        rates, direction = ctx.saved_tensors
        bar = (rates * covector[..., None]).sum(-2)
        bar = bar if bar.ndim == direction.ndim else bar.sum(-2)
        return torch.full_like(rates, math.nan), bar

    @staticmethod
    def jvp(ctx: Any, change: Any, again: Any) -> Any:
        rates, _ = ctx.saved_tensors
        if change is not None:
            return torch.full_like(rates[..., 0], math.nan)
        return _Push.apply(rates, again)
