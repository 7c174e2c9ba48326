"""Derivatives of programs with respect to the arguments of a function.

Derivatives with respect to a configuration q are along the configuration space: the derivative of
f(integrate(q, d)) with respect to d at d = 0, so they have nv columns.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from chasles.algorithms import DERIVATIVES
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
from chasles.functions.tracing import signature, straight, trace
from chasles.model import Model


@dataclass(frozen=True)
class Derivative:
    """A derivative of a function: first or second derivatives, or the pullback of a covector."""

    kind: Literal["jacobian", "pullback"]
    wrt: tuple[str, ...]
    order: int = 1


@dataclass(frozen=True)
class Differential:
    """A derivative applied to directions of some inputs, or (pullback) to covectors of the results.

    Directions and covectors have the entries of the inputs (nq entries for q), because array
    libraries have no notion of steps along the configuration space.
    """

    kind: Literal["pushforward", "pullback"]
    wrt: tuple[str, ...]


def differentiated(program: Program, chain: Iterable[Differential]) -> Program:
    """Return the program after applying a chain of derivatives, each to the result of the last.

    Each derivative appends inputs: a direction for each input in `wrt`, or a covector for each
    result. Its results are directions of the results, or covectors of the inputs in `wrt`.
    """
    for level, each in enumerate(chain, 1):
        apply = forward if each.kind == "pushforward" else reverse
        made = apply(program, each.wrt)
        added = made.inputs[len(program.inputs) :]
        named = (Variable(f"{v.name}_{level}", v.shape) for v in added)
        inputs = (*program.inputs, *named)
        program = replace(made, inputs=inputs, nonzero=program.nonzero)
    return program


def has_recursion(function: str, method: str, derivative: Derivative) -> bool:
    """Return True if there is a recursion for the requested derivatives of a function."""
    return (
        function in DERIVATIVES
        and method == "fastest"
        and derivative.kind == "jacobian"
        and set(derivative.wrt) <= set(signature(DERIVATIVES[function].algorithm).inputs)
    )


def first_derivatives(known: Program | Staged, derivative: Derivative) -> Program | Staged:
    """Return a recursion's outputs for the inputs `wrt`, with the names that `jacobian` uses."""
    place = {given.name: k for k, given in enumerate(known.inputs)}
    chosen = [place[name] for name in derivative.wrt]
    outputs = tuple(
        Variable(f"d_result_d_{name}", known.outputs[k].shape)
        for name, k in zip(derivative.wrt, chosen, strict=True)
    )
    if isinstance(known, Staged):
        return known.chosen(outputs, chosen)
    return replace(known, outputs=outputs, results=tuple(known.results[k] for k in chosen))


def all_derivatives(
    model: Model, program: Program, derivative: Derivative, positions: frozenset[str]
) -> Program:
    """Return all derivatives of a program, by forward or reverse mode, whichever is cheaper."""
    moved, names = _along_steps(model, program, derivative.wrt, positions)
    ways = [_at_rest(jacobian(moved, names, mode=mode), program) for mode in ("forward", "reverse")]
    best = min(ways, key=lambda p: p.count.weight)
    outputs = tuple(Variable(v.name.replace("_step", ""), v.shape) for v in best.outputs)
    return replace(best, outputs=outputs)


def pullback(
    model: Model, program: Program, derivative: Derivative, positions: frozenset[str]
) -> Program:
    """Return the program that computes covectors of the inputs from a covector of the result."""
    pulled = pulled_back(model, program, derivative.wrt, positions)
    covector = Variable("covector", program.outputs[0].shape)
    return replace(pulled, inputs=(*program.inputs, covector))


def pulled_back(
    model: Model, program: Program, wrt: Sequence[str], positions: frozenset[str]
) -> Program:
    """Return the program that computes covectors of the inputs `wrt` from those of the results.

    The covectors of the results are the inputs `bar_<result>`, in the results' entries. Covectors
    of positions refer to steps along the configuration space (nv entries).
    """
    moved, names = _along_steps(model, program, wrt, positions)
    pulled = reverse(moved, names)
    covectors = pulled.inputs[len(moved.inputs) :]
    return _at_rest(pulled, replace(program, inputs=(*program.inputs, *covectors)))


def _along_steps(
    model: Model, program: Program, wrt: Sequence[str], positions: frozenset[str]
) -> tuple[Program, list[str]]:
    """Return the program with positions q in `wrt` replaced by integrate(q, q_step).

    Also return the names of the inputs by which to differentiate.
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
    """Return a derived program with all steps set to zero, as a program of the original inputs."""
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
