"""Derivatives of programs, by the arguments of a function.

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
    """A derivative of a function: all first or second ones, or the pullback of a covector."""

    kind: Literal["jacobian", "pullback"]
    wrt: tuple[str, ...]
    order: int = 1


@dataclass(frozen=True)
class Differential:
    """A derivative applied: to directions of some inputs, or (pulled back) to covectors of results.

    It refers to the entries of the inputs, nq for q, because array libraries have no notion of
    steps along the configuration space.
    """

    kind: Literal["pushforward", "pullback"]
    wrt: tuple[str, ...]


def differentiated(program: Program, chain: Iterable[Differential]) -> Program:
    """Return the program of a derivative applied, of the derivative of that, and so on.

    Each has new inputs after the others: a direction for each of `wrt`, or a covector for each
    result. Its results are directions of the results, or covectors of `wrt`.
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
    """Return True if a recursion for the derivatives of a function is valid here."""
    return (
        function in DERIVATIVES
        and method == "fastest"
        and derivative.kind == "jacobian"
        and set(derivative.wrt) <= set(signature(DERIVATIVES[function].algorithm).inputs)
    )


def first_derivatives(known: Program | Staged, derivative: Derivative) -> Program | Staged:
    """Return a recursion's outputs for the inputs `wrt`, named as by `jacobian`."""
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
    """Return all derivatives of a program, by the cheaper direction of differentiation."""
    moved, names = _along_steps(model, program, derivative.wrt, positions)
    ways = [_at_rest(jacobian(moved, names, mode=mode), program) for mode in ("forward", "reverse")]
    best = min(ways, key=lambda p: p.count.weight)
    outputs = tuple(Variable(v.name.replace("_step", ""), v.shape) for v in best.outputs)
    return replace(best, outputs=outputs)


def pullback(
    model: Model, program: Program, derivative: Derivative, positions: frozenset[str]
) -> Program:
    """Return the program of covectors of the inputs from a covector of the result."""
    pulled = pulled_back(model, program, derivative.wrt, positions)
    covector = Variable("covector", program.outputs[0].shape)
    return replace(pulled, inputs=(*program.inputs, covector))


def pulled_back(
    model: Model, program: Program, wrt: Sequence[str], positions: frozenset[str]
) -> Program:
    """Return the program of covectors of the inputs `wrt` from covectors `bar_<result>`.

    Covectors of positions are along steps; covectors of results refer to their entries.
    """
    moved, names = _along_steps(model, program, wrt, positions)
    pulled = reverse(moved, names)
    covectors = pulled.inputs[len(moved.inputs) :]
    return _at_rest(pulled, replace(program, inputs=(*program.inputs, *covectors)))


def _along_steps(
    model: Model, program: Program, wrt: Sequence[str], positions: frozenset[str]
) -> tuple[Program, list[str]]:
    """Return the program with every q replaced by integrate(q, q_step), and its new inputs."""
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
    """Return a derived program with all steps zero, as a program of the original inputs."""
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
