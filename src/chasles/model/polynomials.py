"""Couplings that are polynomials, as tables of terms: what files can hold."""

from collections.abc import Mapping, Sequence
from math import prod

from chasles.expr import Number
from chasles.model.couplings import coupling
from chasles.model.description import CouplingData

Powers = tuple[int, ...]
"""Of each of some freedoms, in order."""

Terms = dict[Powers, float]
"""A polynomial: the factor of each product of powers."""


def terms(data: CouplingData) -> Terms | None:
    """The residual as a polynomial in its freedoms; None where it is none, or depends on time."""
    if data.timed:
        return None
    count = len(data.freedoms)
    constant = (0,) * count
    values: list[Terms] = []
    for op, args, number in data.residual.code:
        given = [values[a] for a in args]
        if op == "input":
            values.append({tuple(int(k == number[1]) for k in range(count)): 1.0})
        elif op == "const":
            values.append({constant: number})
        elif op in ("add", "sub"):
            values.append(_sum(given[0], given[1], 1.0 if op == "add" else -1.0))
        elif op == "neg":
            values.append(_sum({}, given[0], -1.0))
        elif op == "mul":
            values.append(_product(*given))
        elif op == "div" and set(given[1]) == {constant}:
            values.append({powers: x / given[1][constant] for powers, x in given[0].items()})
        else:
            return None
    (result,) = data.residual.results[0]
    return {powers: factor for powers, factor in values[result].items() if factor}


def _sum(a: Terms, b: Terms, sign: float) -> Terms:
    return a | {powers: a.get(powers, 0.0) + sign * factor for powers, factor in b.items()}


def _product(a: Terms, b: Terms) -> Terms:
    found: Terms = {}
    for p, x in a.items():
        for q, y in b.items():
            powers = tuple(i + j for i, j in zip(p, q, strict=True))
            found[powers] = found.get(powers, 0.0) + x * y
    return found


def polynomial(
    name: str, rows: Sequence[tuple[float, Mapping[str, int]]], *, where: str = ""
) -> CouplingData:
    """The equation: the sum of factor times powers of coordinates is zero.

    rows: each a factor and the power of each freedom in it, in rad and m. Freedoms are in the order
    in which rows name them.
    """
    freedoms = list(dict.fromkeys(freedom for _, powers in rows for freedom in powers))

    def residual(*q: Number) -> Number:
        at = dict(zip(freedoms, q, strict=True))
        total: Number = 0.0
        for factor, powers in rows:
            bases = [at[freedom] for freedom, power in powers.items() for _ in range(power)]
            total = total + factor * prod(bases)
        return total

    return coupling(name, freedoms, residual, where=where)
