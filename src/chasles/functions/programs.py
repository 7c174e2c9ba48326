"""Choice of a method for each public function, and the resulting program."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from chasles.algorithms import DERIVATIVES, KINEMATICS, METHODS, Method
from chasles.algorithms.method import massive_joints, plain_loads, steady_gears
from chasles.errors import InputError, ModelError
from chasles.expr import (
    Arena,
    Program,
    Staged,
)
from chasles.functions.derivatives import Derivative as Derivative
from chasles.functions.derivatives import (
    all_derivatives,
    first_derivatives,
    has_recursion,
    pullback,
)
from chasles.functions.tracing import Signature, WrenchKey, signature, straight, trace
from chasles.model import WORLD, Model
from chasles.model.passes import applied
from chasles.model.spaces import PositionSpace, TreeSpace

ARM, FEW = 12, 60
"""Largest numbers of bodies for which the unchanged robot, and the robot with regrouped inertias in
its own frames, are also tried. For more bodies, only the likely best candidate is tried.
"""

DEEP = 16.0
"""Mean depth of a body (number of bodies up to the base) for which methods for short branches are
tried. In deeper trees they take more than twice the operations of other methods."""


@dataclass(frozen=True)
class Candidate:
    """One program that could run: a method, and the passes that change the model before it."""

    method: Method
    passes: tuple[str, ...]

    def trace(self, model: Model, **options: Any) -> Program:
        """Return the candidate's program; options as in `trace`."""
        return straight(self.staged(model, **options))

    def staged(self, model: Model, **options: Any) -> Program | Staged:
        """Return the program; if `staged` is set, it may end with the factors of its results."""
        prepare = partial(applied, passes=self.passes)
        return trace(model, self.method.algorithm, prepare=prepare, **options)


def program(model: Model, function: str, **options: Any) -> Program:
    """Return the straight-line program of a public function; options as in `runnable`."""
    return straight(runnable(model, function, **options))


def may_be_staged(function: str, derivative: Derivative | None) -> bool:
    """Return True if results of a function may be products of matrices (`Staged`)."""
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
    """Return the program of a public function by a method, or by the one with fewest operations.

    A named method runs on the unchanged robot; "fastest" regroups inertias, and also tries other
    body frames. Units are changed, and rotationally symmetric last bodies are described in axes
    that do not rotate, only if the mechanism is purely numeric and no frame, loop or external force
    refers to them. record: function that makes the arena in which the chosen program is recorded;
    it does not affect the choice. smooth: the program will be differentiated, so its method must
    allow it. staged: results that take more products of matrix entries than this stay products of
    matrices (`Staged`).
    """
    given = {"wrenches": tuple(wrenches), "parameters": parameters, "order": order, **options}
    found = candidates(model, function, method=method, dissipation=dissipation, **given)
    if (smooth or derivative is not None) and not all(way.method.smooth for way in found):
        remedy = f"use {_names(m for m in METHODS[function] if m.smooth)}"
        problem = f"method {method!r} has no derivatives"
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
    """Return the candidate programs; the one with the fewest operations will run."""
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
    """Return True if only the joints depend on the units and frames of a model."""
    named = given.get("wrenches") or given.get("parameters") or "frame" in given
    return not (named or model.constraints)


def _passes(
    way: Method, *, dissipation: bool, alone: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the passes before a method on the robot as given, and with regrouped inertias."""
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
        problem = f"robot {model.name!r} has no masses, which this function needs"
        raise ModelError(
            "E-CALL-065",
            problem,
            "give mass, center and inertia in the rows of the table",
            part=function,
        )
    if function == "linearize":
        _check_closed_by_steps(model)
    binding = {"driven joints": model.driven, "mimic joints": model.mimics}
    binding |= {"rotors that several joints drive": model.rotors}
    bound = next((what for what, found in binding.items() if found), "")
    able = tuple(m for m in offered if order == 1 or signature(m.algorithm).any_order)
    if loaded:
        able = tuple(m for m in able if "f_ext" in signature(m.algorithm).inputs)
        if not able:
            problem = "it does not accept external forces"
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
            problem = f"robot {model.name!r}: {reason or f'it cannot have {bound}'}"
            raise ModelError("E-CALL-067", problem, remedy, part=function)
        deep = _depth(model) > DEEP
        return tuple(m for m in allowed if not (deep and m.shallow)) or allowed
    named = tuple(m for m in known if m.name == method)
    if not named:
        problem = f"it has no method {method!r}"
        raise InputError("E-CALL-068", problem, f"use 'fastest', {_names(known)}", part=function)
    if named[0] not in able:
        lacks = "external forces" if loaded and order == 1 else f"order {order}"
        problem = f"method {method!r} does not support {lacks}"
        raise InputError("E-CALL-069", problem, f"use {_names(able)}", part=function)
    remedy = f"use {_names(allowed)}"
    if fit[method]:
        problem = f"method {method!r}, robot {model.name!r}: {fit[method]}"
        raise ModelError("E-CALL-070", problem, remedy, part=function)
    if named[0] not in allowed:
        remedy += ", or load the robot with mimic=False" if model.mimics else ""
        problem = f"method {method!r} does not support {bound}"
        raise ModelError("E-CALL-071", problem, remedy, part=function)
    return named


def _depth(model: Model) -> float:
    """Return the mean number of bodies on the path from a body (included) to the base."""
    depths = {WORLD: 0}
    for i, body in enumerate(model.bodies):
        depths[i] = depths[body.parent] + 1
    return sum(depths.values()) / max(len(model.bodies), 1)


def _names(methods: Iterable[Method]) -> str:
    return ", ".join(repr(m.name) for m in methods)


def _check_closed_by_steps(model: Model) -> None:
    """Check that velocity steps reach all positions, or that the other positions do not matter.

    A rolling sphere has more positions than steps can reach. These positions do not matter on a
    plane fixed in the world, but they do on a moving plane.
    """
    for body in model.bodies:
        if not body.joint.holonomic and body.parent != WORLD:
            name = body.data.name
            problem = (
                f"joint {name!r} is nonholonomic and sits on a moving body, so it has no "
                "linearization"
            )
            remedy = "compute derivatives along steps instead"
            raise ModelError("E-CALL-072", problem, remedy, part=f"robot {model.name!r}")


def spaces(function: str, order: int = 1) -> Signature:
    """Return the inputs, outputs and options of a function with a number of rates."""
    return signature(METHODS[function][0].algorithm, order)
