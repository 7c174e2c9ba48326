"""Gradients of motions: covectors of the states brought back to the start, step by step."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import InputError, ModelError
from chasles.expr import RULES, Arena, Number, Program, Variable, reverse
from chasles.functions.doors import numbers, refuse
from chasles.functions.programs import program, pulled_back
from chasles.model import Model


class RolloutGradient(NamedTuple):
    """The gradient of a number that depends on a motion, for each member of a batch.

    q and qd (..., nv): by the start, q along `integrate`. tau (..., nv), or (..., steps, nv) where
    given so, None under a controller; parameters (..., m) of the controller, None without them;
    contact_states (..., states) at the start, None without them.
    """

    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray | None
    parameters: np.ndarray | None
    contact_states: np.ndarray | None


def adjoint_program(model: Model, step: Program, along: Sequence[str]) -> Program:
    """A step backward: covectors before a step from covectors after it.

    Its inputs are what it gives, as it was after the step: for each name of `along` a covector of
    this step alone, for each state (with q along steps) its covector, for each other input but t
    and h the sum of its covectors so far. Then come the inputs of the step, and weights to add to
    the covectors of the states after it.
    """
    states = [v.name for v in step.outputs]
    sums = [v.name for v in step.inputs if v.name not in (*states, *along, "t", "h")]
    names = [*along, *states, *sums]
    back = pulled_back(model, step, names, frozenset({"q"}))
    size = {name: v.size for name, v in zip(names, back.outputs, strict=True)}
    bars = [Variable(f"bar_{name}", (size[name],)) for name in names]
    weights = [Variable(f"weight_{name}", (size[name],)) for name in states]
    inputs = [*bars, *step.inputs, *weights]
    arena = Arena(RULES)
    given = {v.name: [arena.input(v.name, k) for k in range(v.size)] for v in inputs}
    values: dict[str, Sequence[Number]] = {v.name: given[v.name] for v in step.inputs}
    after = step.applied(values, arena)
    for name, there in zip(states, after, strict=True):
        bar = _sum(given[f"bar_{name}"], given[f"weight_{name}"])
        values[f"bar_{name}"] = _by_numbers(model, there, bar, arena) if name == "q" else bar
    results = back.applied(values, arena)
    for k, name in enumerate(names):
        if name in sums:
            results[k] = _sum(given[f"bar_{name}"], results[k])
    return Program.from_outputs(f"{step.name}_back", inputs, list(zip(bars, results, strict=True)))


def _sum(a: Sequence[Number], b: Sequence[Number]) -> list[Number]:
    return [x + y for x, y in zip(a, b, strict=True)]


def _by_numbers(
    model: Model, q: Sequence[Number], covector: Sequence[Number], arena: Arena
) -> list[Number]:
    """A covector by the numbers of q that is the given one along steps: d = difference(q, q1)."""
    pulled = reverse(program(model, "difference"), ["q1"])
    return pulled.applied({"q0": q, "q1": q, "bar_result": covector}, arena)[0]


def check_holonomic(model: Model) -> None:
    """Refuse a model whose velocities do not span every small change of q."""
    for body in model.bodies:
        if not body.joint.holonomic:
            problem = (
                f"joint {body.data.name!r} is nonholonomic, so velocities cannot write every "
                "small change of q"
            )
            part = f"rollout_pullback: robot {model.name!r}"
            raise ModelError("E-MOTION-001", problem, "take differences of rollouts", part=part)


def gone_back(
    adjoint: Callable[[tuple[str, ...]], Any],
    names: Sequence[str],
    states: Sequence[np.ndarray],
    controls: Sequence[np.ndarray],
    weights: Sequence[np.ndarray],
    steps: int,
    every: int,
    threads: int | None,
) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Covectors of the start (count, size), and of the first controls (count, steps or 1, size).

    adjoint: the loop from the end to the start, by the controls that differ from step to step.
    names: of these controls. states, controls and weights (count or 1, records, size) as the loop
    takes them.
    """
    count, others = len(states[0]), dict(zip(names, controls, strict=False))
    along = tuple(name for name, c in others.items() if c.shape[1] > 1)
    sums = {name: np.zeros((count, c.shape[2])) for name, c in others.items()}
    rows = {name: np.empty((count, steps, others[name].shape[2])) for name in along}
    start = [np.zeros((count, w.shape[2])) for w in weights]
    covectors = [*(sums.pop(name) for name in along), *start, *sums.values()]
    if count:
        found, length = list(rows.values()), (steps, every, threads)
        adjoint(along)(states, controls, weights, covectors, found, *length)
    for covector, w in zip(start, weights, strict=True):
        covector += w[:, 0]
    return start, rows | {name: total[:, None] for name, total in sums.items()}


def checked_weights(
    covectors: Any, lead: tuple[int, ...], records: int, nv: int
) -> list[np.ndarray]:
    """The covectors of the q and the qd that a motion keeps, as (count or 1, records, nv)."""
    if not isinstance(covectors, Sequence) or len(covectors) != 2:
        problem = "covectors must be 2 arrays, of q and of qd"
        raise InputError("E-MOTION-002", problem, part="rollout_pullback")
    refuse("rollout_pullback", *covectors)
    found = []
    for name, given in zip(("q", "qd"), covectors, strict=True):
        if given is None:
            found.append(np.zeros((1, records, nv)))
            continue
        what = f"rollout_pullback: the covector of {name}"
        array = numbers(what, given, nv).astype(float)
        if array.shape[-2:] != (records, nv):
            raise InputError(
                "E-MOTION-003",
                f"{what} must have shape (..., {records}, {nv}), a row for each state that the "
                f"rollout keeps, not {array.shape}",
            )
        if not np.isfinite(array).all():
            raise InputError("E-MOTION-004", f"{what} must be finite numbers")
        try:
            whole = np.broadcast_to(array, (*lead, records, nv))
        except ValueError:
            raise InputError(
                "E-MOTION-005",
                f"{what} has leading shape {array.shape[:-2]}, which does not broadcast to that "
                f"of the states, {lead}",
            ) from None
        shared = array.ndim == 2
        found.append(array[None] if shared else whole.reshape(-1, records, nv))
    return found
