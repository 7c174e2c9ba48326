"""Programs of public functions: selection of a method, and derivatives with respect to arguments.

Derivatives with respect to a configuration q are in the tangent space: the derivative of
f(integrate(q, d)) with respect to d at d = 0. They have nv columns.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from chasles.algorithms import DERIVATIVES, KINEMATICS, METHODS, Method
from chasles.algorithms.method import massive_joints, plain_loads, steady_gears
from chasles.algorithms.spatial.kinematics import integrate
from chasles.errors import InputError, ModelError
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
from chasles.functions.tracing import Signature, WrenchKey, signature, straight, trace
from chasles.model import WORLD, Model
from chasles.model.passes import applied
from chasles.model.spaces import PositionSpace, TreeSpace

ARM, FEW = 12, 60
"""Largest numbers of bodies for which additional candidates are tried: the unchanged robot (`ARM`),
and the robot with regrouped inertias but unchanged frames (`FEW`). For more bodies, only the
candidate that is usually best is tried.
"""

DEEP = 16.0
"""Largest mean depth of the bodies for which methods for short branches are tried.

The depth of a body is the number of bodies on its path to the base. In deeper trees, these methods
need more than twice as many operations as other methods.
"""


@dataclass(frozen=True)
class Derivative:
    """Derivative of a function: first or second derivatives, or the pullback of a covector."""

    kind: Literal["jacobian", "pullback"]
    wrt: tuple[str, ...]
    order: int = 1


@dataclass(frozen=True)
class Differential:
    """Derivative applied to tangent vectors of inputs, or to covectors of results (pullback).

    Tangent vectors and covectors have the shapes of the arrays (nq entries for q), because array
    libraries do not support tangent spaces.
    """

    kind: Literal["pushforward", "pullback"]
    wrt: tuple[str, ...]


@dataclass(frozen=True)
class Candidate:
    """Candidate program: a method, and the model passes that precede it."""

    method: Method
    passes: tuple[str, ...]

    def trace(self, model: Model, **options: Any) -> Program:
        """Trace the program, with the options of `trace`."""
        return straight(self.staged(model, **options))

    def staged(self, model: Model, **options: Any) -> Program | Staged:
        """Trace the program. With `staged`, results may be products of matrices."""
        prepare = partial(applied, passes=self.passes)
        return trace(model, self.method.algorithm, prepare=prepare, **options)


def program(model: Model, function: str, **options: Any) -> Program:
    """Return the straight-line program of a public function, with the options of `runnable`."""
    return straight(runnable(model, function, **options))


def may_be_staged(function: str, derivative: Derivative | None) -> bool:
    """Return True if the results of a function may be products of matrices (`Staged`)."""
    way = METHODS[function][0] if derivative is None else DERIVATIVES.get(function)
    outputs = signature(way.algorithm).outputs if way else ()
    return bool(outputs) and all(isinstance(space, TreeSpace) for space in outputs)


def runnable(
    model: Model,
    function: str,
    *,
    method: str = "fastest",
    dissipation: bool = False,
    wrenches: Iterable[WrenchKey] = (),
    derivative: Derivative | None = None,
    parameters: Sequence[str] = (),
    smooth: bool = False,
    record: Callable[[], Arena] | None = None,
    order: int = 1,
    staged: int | None = None,
    **options: Any,
) -> Program | Staged:
    """Return the program of a public function.

    A method selected by name runs on the unchanged robot. "fastest" selects the program with the
    fewest operations. It regroups inertias and tries other body frames. If the function does not
    depend on named parameters, frames, loops or external forces, it also changes the units, and
    describes rotationally symmetric end bodies in axes that do not rotate.

    `record` creates the arena in which the selected program is recorded. `smooth` is True if the
    program will be differentiated, which its method must support. Results that need more
    multiplications than `staged` are kept as products of matrices (`Staged`).
    """
    given = {"wrenches": tuple(wrenches), "parameters": parameters, "order": order, **options}
    found = candidates(model, function, method=method, dissipation=dissipation, **given)
    if (smooth or derivative is not None) and not all(way.method.smooth for way in found):
        remedy = f"use {_names(m for m in METHODS[function] if m.smooth)}"
        problem = f"method {method!r} does not support derivatives"
        raise InputError("E-CALL-064", problem, remedy, part=function)
    if derivative is None:
        ways = [partial(way.staged, model, staged=staged, **given) for way in found]
        return _fewest_operations(ways, record)
    inputs = spaces(function).inputs.items()
    positions = frozenset(name for name, space in inputs if isinstance(space, PositionSpace))
    unfit = steady_gears(model, given) or plain_loads(model, given)
    if has_recursion(function, method, derivative) and not unfit:
        way = DERIVATIVES[function]
        _, grouped = _passes(way, dissipation=dissipation, alone=_is_alone(model, given))
        known = Candidate(way, ("frames", *grouped)).staged(
            model,
            wrenches=given["wrenches"],
            parameters=parameters,
            staged=staged if derivative.order == 1 else None,
        )
        first = first_derivatives(known, derivative)
        if derivative.order == 1:
            return first
        traced, left = straight(first), derivative.order - 1
    else:
        ways = [partial(way.staged, model, **given) for way in found]
        traced, left = straight(_fewest_operations(ways, record)), derivative.order
    if derivative.kind == "pullback":
        return pullback(model, traced, derivative, positions)
    for _ in range(left):
        traced = all_derivatives(model, traced, derivative, positions)
    return traced


def candidates(
    model: Model, function: str, *, method: str = "fastest", dissipation: bool = False, **given: Any
) -> tuple[Candidate, ...]:
    """Return the candidate programs. The candidate with the fewest operations will run."""
    alone = _is_alone(model, given)

    def preparations(way: Method) -> tuple[tuple[str, ...], ...]:
        plain, grouped = _passes(way, dissipation=dissipation, alone=alone)
        if not way.inertias or method != "fastest":
            return (plain,)
        if given.get("parameters"):
            return plain, grouped
        ways = (("frames", *grouped), grouped, plain)
        return ways[: 1 + (len(model.bodies) <= FEW) + (len(model.bodies) <= ARM)]

    methods = _methods(model, function, method, given)
    return tuple(Candidate(way, passes) for way in methods for passes in preparations(way))


def _is_alone(model: Model, given: Mapping[str, Any]) -> bool:
    """Return True if the function does not depend on wrenches, parameters, frames or loops.

    Its units and body frames can then be changed.
    """
    named = given.get("wrenches") or given.get("parameters") or "frame" in given
    return not (named or model.constraints)


def _passes(
    way: Method, *, dissipation: bool, alone: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the model passes for a method, without and with regrouped inertias."""
    plain = (*way.passes, *(() if dissipation else ("frictionless",)))
    return plain, (*plain, way.inertias, *(("rotors", "units") if alone else ()))


def _fewest_operations(
    choices: Sequence[Callable[..., Program | Staged]], record: Callable[[], Arena] | None
) -> Program | Staged:
    if record is None:
        return min((choice() for choice in choices), key=lambda p: p.count.weight)
    alone = len(choices) == 1
    return min(choices, key=lambda choice: alone or choice().count.weight)(record=record)


def _methods(
    model: Model, function: str, method: str, given: Mapping[str, Any]
) -> tuple[Method, ...]:
    known, order, loaded = METHODS[function], given.get("order", 1), bool(given.get("wrenches"))
    offered = tuple(m for m in known if method != "fastest" or not m.by_name)
    if model.source.massless and function not in KINEMATICS:
        problem = f"robot {model.name!r} has no masses, but this function requires them"
        raise ModelError(
            "E-CALL-065",
            problem,
            "add mass, center and inertia to the rows of the Denavit-Hartenberg table",
            part=function,
        )
    if function == "linearize":
        _check_closed_by_steps(model)
    binding = {"driven joints": model.driven, "mimic joints": model.mimics}
    binding |= {"rotors driven by several joints": model.rotors}
    bound = next((what for what, found in binding.items() if found), "")
    able = tuple(m for m in offered if order == 1 or signature(m.algorithm).any_order)
    if loaded:
        able = tuple(m for m in able if "f_ext" in signature(m.algorithm).inputs)
        if not able:
            problem = "external forces are not supported"
            raise InputError("E-CALL-066", problem, "omit f_ext", part=function)
    fit = {m.name: m.needs(model, given) if m.needs else "" for m in able}
    allowed = tuple(m for m in able if (m.followers or not bound) and not fit[m.name])
    if method == "fastest":
        if not allowed:
            reason = next(filter(None, fit.values()), "")
            remedy = "load the robot with mimic=False" if model.mimics and not reason else ""
            if reason and reason == massive_joints(model, given):
                remedy = (
                    "attach a mass to the link that the joint moves (`attach`), give the "
                    "joint an armature, or lock it (`lock`)"
                )
            problem = f"robot {model.name!r}: {reason or f'this function does not support {bound}'}"
            raise ModelError("E-CALL-067", problem, remedy, part=function)
        deep = _depth(model) > DEEP
        return tuple(m for m in allowed if not (deep and m.shallow)) or allowed
    named = tuple(m for m in known if m.name == method)
    if not named:
        problem = f"unknown method {method!r}"
        raise InputError("E-CALL-068", problem, f"use 'fastest', {_names(known)}", part=function)
    if named[0] not in able:
        lacks = "external forces" if loaded and order == 1 else f"order {order}"
        problem = f"method {method!r} does not support {lacks}"
        raise InputError("E-CALL-069", problem, f"use {_names(able)}", part=function)
    remedy = f"use {_names(allowed)}"
    if fit[method]:
        problem = f"method {method!r} does not support robot {model.name!r}: {fit[method]}"
        raise ModelError("E-CALL-070", problem, remedy, part=function)
    if named[0] not in allowed:
        remedy += ", or load the robot with mimic=False" if model.mimics else ""
        problem = f"method {method!r} does not support {bound}"
        raise ModelError("E-CALL-071", problem, remedy, part=function)
    return named


def _depth(model: Model) -> float:
    """Return the mean depth of the bodies, i.e. the number of bodies on the path to the base."""
    depths = {WORLD: 0}
    for i, body in enumerate(model.bodies):
        depths[i] = depths[body.parent] + 1
    return sum(depths.values()) / max(len(model.bodies), 1)


def _names(methods: Iterable[Method]) -> str:
    return ", ".join(repr(m.name) for m in methods)


def _check_closed_by_steps(model: Model) -> None:
    """Raise an error if the motion depends on positions that velocity steps cannot reach.

    A rolling sphere has positions that velocity steps cannot reach. The motion does not depend on
    them on a fixed plane, but it does on a moving plane.
    """
    for body in model.bodies:
        if not body.joint.holonomic and body.parent != WORLD:
            name = body.data.name
            problem = (
                f"joint {name!r} cannot be linearized, because it is nonholonomic and attached "
                "to a moving body"
            )
            remedy = "use robot.derivatives('forward_dynamics', ...) instead"
            raise ModelError("E-CALL-072", problem, remedy, part=f"robot {model.name!r}")


def spaces(function: str, order: int = 1) -> Signature:
    """Return the inputs, outputs and options of a function, for `order` time derivatives of q."""
    return signature(METHODS[function][0].algorithm, order)


# Derivatives --------------------------------------------------------------------------------------


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


def has_recursion(function: str, method: str, derivative: Derivative) -> bool:
    """Return True if a recursion computes the requested derivatives of a function."""
    return (
        function in DERIVATIVES
        and method == "fastest"
        and derivative.kind == "jacobian"
        and set(derivative.wrt) <= set(signature(DERIVATIVES[function].algorithm).inputs)
    )


def first_derivatives(known: Program | Staged, derivative: Derivative) -> Program | Staged:
    """Return the outputs of a recursion for the inputs in `wrt`, named as in `jacobian`."""
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
    """Return all derivatives of a program, in forward or reverse mode, whichever is cheaper."""
    moved, names = _along_steps(model, program, derivative.wrt, positions)
    ways = [_at_rest(jacobian(moved, names, mode=mode), program) for mode in ("forward", "reverse")]
    best = min(ways, key=lambda p: p.count.weight)
    outputs = tuple(Variable(v.name.replace("_step", ""), v.shape) for v in best.outputs)
    return replace(best, outputs=outputs)


def pullback(
    model: Model, program: Program, derivative: Derivative, positions: frozenset[str]
) -> Program:
    """Return the program that maps a covector of the result to covectors of the inputs."""
    pulled = pulled_back(model, program, derivative.wrt, positions)
    covector = Variable("covector", program.outputs[0].shape)
    return replace(pulled, inputs=(*program.inputs, covector))


def pulled_back(
    model: Model, program: Program, wrt: Sequence[str], positions: frozenset[str]
) -> Program:
    """Return the program that maps covectors of the results to covectors of the inputs in `wrt`.

    The covectors of the results are the inputs `bar_<result>`, with the shapes of the results.
    Covectors of positions are in the tangent space (nv entries).
    """
    moved, names = _along_steps(model, program, wrt, positions)
    pulled = reverse(moved, names)
    covectors = pulled.inputs[len(moved.inputs) :]
    return _at_rest(pulled, replace(program, inputs=(*program.inputs, *covectors)))


def _along_steps(
    model: Model, program: Program, wrt: Sequence[str], positions: frozenset[str]
) -> tuple[Program, list[str]]:
    """Replace positions q in `wrt` by integrate(q, q_step).

    Return the new program and the names of the inputs for differentiation.
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
    """Set all steps of a differentiated program to zero, and restore the original inputs."""
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
