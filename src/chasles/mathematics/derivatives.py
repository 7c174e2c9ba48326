"""Derivatives of products (Leibniz rule) and of traced functions."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from chasles.expr import RULES, Arena, Number, Program, Scalar, Variable, jacobian
from chasles.mathematics.linear import Vector

B = TypeVar("B")


def leibniz(product: Callable[[Any, B], Any], a: Sequence[Any], b: Sequence[B], k: int) -> Any:
    """Return the k-th derivative of the bilinear `product(a, b)` from the derivatives of a and b.

    a[j] and b[j] are the j-th derivatives.
    """
    total = product(a[0], b[k])
    for j in range(1, k + 1):
        total = total + product(a[j] * float(math.comb(k, j)), b[k - j])
    return total


# Exact derivatives of traced functions ----------------------------------------------------------
#
# The function is traced on separate symbols, and the derivative is then evaluated at the arguments,
# which may be symbols of the current trace.

TRIES = 64
"""Maximum number of random inputs that `has_values` tries for a user-defined function."""


def by_step(
    value: Callable[..., Sequence[Number]], size: int, *arguments: Vector
) -> list[list[Number]]:
    """Return the derivatives of value(step, *arguments) at step = 0, one for each entry of step."""
    arena = Arena(RULES)
    inputs = [Variable("step", (size,))]
    inputs += [Variable(f"x{k}", (len(x),)) for k, x in enumerate(arguments)]
    symbols = [Vector(tuple(arena.input(v.name, k) for k in range(v.size))) for v in inputs]
    entries = value(*symbols)
    traced = Program.from_outputs("value", inputs, [(Variable("y", (len(entries),)), entries)])
    slopes = jacobian(traced, ["step"])
    given = dict(zip((v.name for v in inputs), (Vector.zero(size), *arguments), strict=True))
    flat = replayed(slopes, {name: x.entries for name, x in given.items()})
    return [flat[k::size] for k in range(size)]


def by_time(value: Callable[..., Sequence[Number]], *arguments: Vector) -> list[Number]:
    """Return the derivative of value(t, *arguments) with respect to t, at t = 0."""
    return by_step(lambda t, *rest: value(t[0], *rest), 1, *arguments)[0]


def replayed(program: Program, inputs: Mapping[str, Sequence[Number]]) -> list[Number]:
    """Evaluate a program with numbers or expressions as inputs, and return all output entries."""
    symbols = (x for entries in inputs.values() for x in entries if isinstance(x, Scalar))
    arena = next((x.arena for x in symbols), Arena(RULES))
    return [entry for entries in program.applied(inputs, arena) for entry in entries]


def has_values(program: Program) -> bool:
    """Return True if all outputs are finite for at least one of `TRIES` random inputs."""
    rng = random.Random(1)
    tried: list[dict[str, list[Number]]] = [
        {v.name: [rng.uniform(-3.0, 3.0) for _ in range(v.size)] for v in program.inputs}
        for _ in range(TRIES)
    ]
    return any(all(map(math.isfinite, replayed(program, x))) for x in tried)
