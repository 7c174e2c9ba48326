"""Find limbs (unbranched chains of bodies) of a model that have the same structure.

Such limbs have the same sequence of joints and differ only in parameter values. If these values are
replaced with symbols, tracing an algorithm gives the same code for each limb (`expr.lanes`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

from chasles.expr import Number, Seat
from chasles.model.model import Model

Different = Callable[[Sequence[float]], Sequence[Number]]
"""Function that replaces the values of a parameter (one per limb), for example with symbols."""


@dataclass(frozen=True)
class Alike:
    """Groups of limbs with the same structure, whose parameters may differ.

    `kinds` contains the groups. A limb is a tuple of body indices.
    """

    model: Model
    kinds: tuple[tuple[tuple[int, ...], ...], ...]

    @staticmethod
    def of(model: Model) -> "Alike":
        """Return the groups of two or more limbs with the same structure."""
        kinds: dict[Any, list[tuple[int, ...]]] = {}
        for limb in model.limbs:
            bodies = [model.bodies[i] for i in limb]
            if all(body.owns for body in bodies):
                form = tuple((_form(body.joint), _form(body.inertia)) for body in bodies)
                kinds.setdefault(form, []).append(tuple(limb))
        return Alike(model, tuple(tuple(k) for k in kinds.values() if len(k) > 1))

    def seats(self) -> dict[tuple[int, ...], dict[int, Seat]]:
        """Return the group and limb (`Seat`) of each entry of q and qd that belongs to a group.

        The outer key is the shape of the vector, (nq,) or (nv,). The inner key is the index of the
        entry.
        """
        model, found = self.model, dict[tuple[int, ...], dict[int, Seat]]()
        for size, slices in (
            (model.nv, model.velocity_slices),
            (model.nq, model.position_slices),
        ):
            seats = found.setdefault((size,), {})
            for kind, members in enumerate(self.kinds):
                for lane, limb in enumerate(members):
                    entries = [k for i in limb for k in range(slices[i].start, slices[i].stop)]
                    seats |= {
                        k: Seat(kind, lane, len(members), place) for place, k in enumerate(entries)
                    }
        return found

    def differences(self) -> list[tuple[Seat, float]]:
        """Return the parameters that differ between similar limbs, each with its `Seat`."""
        found: list[tuple[Seat, float]] = []

        def take(kind: int, values: Sequence[float]) -> Sequence[Number]:
            count, place = len(values), len(found)
            seats = (Seat(kind, lane, count, place) for lane in range(count))
            found.extend(zip(seats, values, strict=True))
            return values

        self._changed(take)
        return found

    def with_symbols(self, symbols: Sequence[Number]) -> Model:
        """Return the model with symbols as values of the parameters that differ between limbs."""
        left = iter(symbols)
        return self._changed(lambda _, values: [next(left) for _ in values])

    def _changed(self, change: Callable[[int, Sequence[float]], Sequence[Number]]) -> Model:
        bodies = list(self.model.bodies)
        for kind, members in enumerate(self.kinds):
            for row in zip(*members, strict=True):
                parts = [(bodies[i].joint, bodies[i].inertia) for i in row]
                new = _together(parts, partial(change, kind))
                for i, (joint, inertia) in zip(row, new, strict=True):
                    bodies[i] = replace(bodies[i], joint=joint, inertia=inertia)
        return replace(self.model, bodies=tuple(bodies))


def _form(x: Any) -> Any:
    """Return the structure of a value, with every number replaced by the type `float`."""
    if type(x) is float:
        return float
    if is_dataclass(x):
        return (type(x), *(_form(getattr(x, f.name)) for f in _given(x)))
    return (type(x), *map(_form, x)) if isinstance(x, tuple) else x


def _together(values: Sequence[Any], different: Different) -> Sequence[Any]:
    """Return `values` with every number that differs between limbs replaced.

    All values, one for each limb (chain of bodies), have the same structure. If a number differs
    between limbs, `different` is called with its values in all limbs and returns the replacements.
    """
    first = values[0]
    if type(first) is float:
        return values if all(x == first for x in values) else different(values)
    if is_dataclass(first):
        names = [f.name for f in _given(first)]
        columns = [_together([getattr(x, name) for x in values], different) for name in names]
        rows = zip(*columns, strict=True)
        changes = (dict(zip(names, row, strict=True)) for row in rows)
        return [replace(x, **change) for x, change in zip(values, changes, strict=True)]
    if isinstance(first, tuple) and first:
        columns = [_together(column, different) for column in zip(*values, strict=True)]
        make = type(first)._make if hasattr(first, "_make") else tuple
        return [make(row) for row in zip(*columns, strict=True)]
    return values


def _given(x: Any) -> list[Any]:
    """Return the fields that a dataclass's constructor accepts."""
    return [f for f in fields(x) if f.init]
