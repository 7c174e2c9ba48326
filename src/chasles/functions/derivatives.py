"""Derivatives of programs with respect to their arguments.

Derivatives with respect to a configuration q are in the tangent space: the derivative of
f(integrate(q, d)) with respect to d at d = 0. These derivatives have nv columns.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from chasles.algorithms.spatial.kinematics import integrate
from chasles.expr import (
    RULES,
    Arena,
    Number,
    Program,
    Staged,
    Variable,
    forward,
    jacobian,
    reverse,
)
from chasles.functions.tracing import straight, trace
from chasles.model import Model


@dataclass(frozen=True)
class Differential:
    """Forward-mode (pushforward) or reverse-mode (pullback) derivative with respect to `wrt`.

    A tangent vector or covector has the shape of the array to which it belongs. Tangent vectors and
    covectors of q have nq entries instead of nv, because array libraries do not support tangent
    spaces.
    """

    kind: Literal["pushforward", "pullback"]
    wrt: tuple[str, ...]


def differentiated(program: Program, chain: Iterable[Differential]) -> Program:
    """Apply a sequence of derivatives to a program.

    Each derivative appends inputs: a tangent vector for each input in `wrt` (pushforward), or a
    covector for each result (pullback). The new program returns tangent vectors of the results
    (pushforward) or covectors of the inputs in `wrt` (pullback).
    """
    for level, each in enumerate(chain, 1):
        apply = forward if each.kind == "pushforward" else reverse
        made = apply(program, each.wrt)
        added = made.inputs[len(program.inputs) :]
        named = (Variable(f"{v.name}_{level}", v.shape) for v in added)
        inputs = (*program.inputs, *named)
        program = replace(made, inputs=inputs, nonzero=program.nonzero)
    return program


def first_derivatives(known: Program | Staged, wrt: Sequence[str]) -> Program | Staged:
    """Select the outputs of a derivative program that belong to the inputs in `wrt`.

    Outputs are named as in `jacobian`.
    """
    place = {given.name: k for k, given in enumerate(known.inputs)}
    chosen = [place[name] for name in wrt]
    outputs = tuple(
        Variable(f"d_result_d_{name}", known.outputs[k].shape)
        for name, k in zip(wrt, chosen, strict=True)
    )
    if isinstance(known, Staged):
        return known.chosen(outputs, chosen)
    return replace(known, outputs=outputs, results=tuple(known.results[k] for k in chosen))


def all_derivatives(
    model: Model, program: Program, wrt: Sequence[str], positions: frozenset[str]
) -> Program:
    """Return a program for all derivatives, in forward or reverse mode, whichever is cheaper."""
    moved, names = _along_steps(model, program, wrt, positions)
    ways = [_at_rest(jacobian(moved, names, mode=mode), program) for mode in ("forward", "reverse")]
    best = min(ways, key=lambda p: p.count.weight)
    outputs = tuple(Variable(v.name.replace("_step", ""), v.shape) for v in best.outputs)
    return replace(best, outputs=outputs)


def pullback(
    model: Model, program: Program, wrt: Sequence[str], positions: frozenset[str]
) -> Program:
    """Return the program for the vector-Jacobian product (transposed Jacobian times a covector)."""
    pulled = pulled_back(model, program, wrt, positions)
    covector = Variable("covector", program.outputs[0].shape)
    return replace(pulled, inputs=(*program.inputs, covector))


def pulled_back(
    model: Model, program: Program, wrt: Sequence[str], positions: frozenset[str]
) -> Program:
    """Return the program for reverse-mode derivatives with respect to the inputs in `wrt`.

    Additional inputs `bar_<result>`, with the shapes of the results, are the gradients of a scalar
    with respect to the results. The program returns the gradients with respect to the inputs.
    Gradients with respect to positions are in the tangent space (nv entries).
    """
    moved, names = _along_steps(model, program, wrt, positions)
    pulled = reverse(moved, names)
    covectors = pulled.inputs[len(moved.inputs) :]
    return _at_rest(pulled, replace(program, inputs=(*program.inputs, *covectors)))


def _along_steps(
    model: Model, program: Program, wrt: Sequence[str], positions: frozenset[str]
) -> tuple[Program, list[str]]:
    """Replace positions q in `wrt` by integrate(q, q_step).

    Return the new program, and the names of its inputs that replace `wrt`.
    """
    with Arena(RULES) as arena:
        values: dict[str, Sequence[Number]] = dict(program.variables(arena))
        inputs, names = list(program.inputs), []
        step = straight(trace(model, integrate))
        for name in wrt:
            if name not in positions:
                names.append(name)
                continue
            names.append(f"{name}_step")
            inputs.append(Variable(names[-1], (model.nv,)))
            d = [arena.input(names[-1], k) for k in range(model.nv)]
            values[name] = _results(step, {"q": values[name], "v": d}, arena)[0]
        results = _results(program, values, arena)
        outputs = list(zip(program.outputs, results, strict=True))
        return Program.from_outputs(program.name, inputs, outputs), names


def _at_rest(derived: Program, original: Program) -> Program:
    """Return a derivative program at zero displacement: its inputs `<name>_step` are set to 0."""
    with Arena(RULES) as arena:
        values: dict[str, Sequence[Number]] = dict(derived.variables(arena))
        kept = {v.name for v in original.inputs}
        for variable in derived.inputs:
            if variable.name not in kept:
                values[variable.name] = [0.0] * variable.size
        outputs = list(zip(derived.outputs, _results(derived, values, arena), strict=True))
        result = Program.from_outputs(derived.name, original.inputs, outputs)
        return replace(result, nonzero=original.nonzero)


def _results(
    program: Program, inputs: Mapping[str, Sequence[Number]], arena: Arena
) -> list[list[Number]]:
    values = program.replay(inputs, arena)
    return [[values[r] for r in refs] for refs in program.results]
