"""Create the programs of public functions: check options and select methods."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np

from chasles.algorithms import DERIVATIVES, FUNCTIONS, KINEMATICS, METHODS, Method
from chasles.algorithms.method import massive_joints, plain_loads, steady_gears
from chasles.backends.arrays import checked_count
from chasles.errors import ArgumentError, InputError, ModelError
from chasles.expr import Arena, Program, Staged
from chasles.functions.derivatives import all_derivatives, first_derivatives, pullback
from chasles.functions.sensors import checked_sensors
from chasles.functions.tracing import Signature, WrenchKey, signature, straight, trace
from chasles.model import WORLD, Model
from chasles.model.given import a_name, check_hash, some_numbers
from chasles.model.passes import applied
from chasles.model.spaces import PositionSpace, TreeSpace
from chasles.model.tool import tool
from chasles.names import keyword, one_of, suggested

ARM, FEW = 12, 60
"""Maximum numbers of bodies at which additional candidate programs are traced.

The candidate with changed body frames and regrouped inertias usually has the fewest operations.
With at most `FEW` bodies, the candidate with unchanged frames and regrouped inertias is also
traced. With at most `ARM` bodies, the unchanged robot is traced as well.
"""

DEEP = 16.0
"""Maximum mean depth of the bodies at which methods for short branches are tried.

The depth of a body is the number of bodies on its path to the base. In deeper trees, these methods
need more than twice as many operations as other methods.
"""

_OPEN_TREES = {
    "constrained_dynamics": "forward_dynamics",
    "constrained_hybrid_dynamics": "hybrid_dynamics",
}
"""Functions that solve the same problem without loops and couplings."""


@dataclass(frozen=True)
class Derivative:
    """Options of a derivative: first or second derivatives, or a vector-Jacobian product."""

    kind: Literal["jacobian", "pullback"]
    wrt: tuple[str, ...]
    order: int = 1


@dataclass(frozen=True)
class Candidate:
    """One way to compute a function: model transformations (passes), followed by a method."""

    method: Method
    passes: tuple[str, ...]

    def trace(self, model: Model, **options: Any) -> Program:
        """Trace the straight-line program. For the options, see `tracing.trace`."""
        return straight(self.staged(model, **options))

    def staged(self, model: Model, **options: Any) -> Program | Staged:
        """Trace the program. With `staged`, results may be kept as products of matrices."""
        prepare = partial(applied, passes=self.passes)
        return trace(model, self.method.algorithm, prepare=prepare, **options)


MOST_KEPT = 256
"""Maximum number of entries in each of a robot's caches of compiled functions (`Recent`)."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def program(model: Model, function: str, **options: Any) -> Program:
    """Return the straight-line program of a public function. For the options, see `runnable`."""
    return straight(runnable(model, function, **options))


def may_be_staged(function: str, derivative: Derivative | None) -> bool:
    """Return True if the results of a function may be kept as products of matrices (`Staged`)."""
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
    similar: bool = False,
    **options: Any,
) -> Program | Staged:
    """Return the program of a public function.

    A method selected by name runs on the unchanged robot. "fastest" selects the program with the
    fewest operations, after regrouping inertias and trying other body frames. If the function does
    not depend on named parameters, frames, loops or external forces, "fastest" also changes the
    units, and uses non-rotating frames for axisymmetric leaf bodies.

    `record` creates the arena in which the selected program is recorded. If `smooth` is True, the
    method must support derivatives. If multiplying out the matrix products in the result would need
    more than `staged` multiplications, the products are not expanded (`Staged`). For `similar`, see
    `tracing.trace`; derivatives ignore it.
    """
    given = {"wrenches": tuple(wrenches), "parameters": parameters, "order": order, **options}
    found = candidates(model, function, method=method, dissipation=dissipation, **given)
    if (smooth or derivative is not None) and not all(way.method.smooth for way in found):
        remedy = f"use {_names(m for m in METHODS[function] if m.smooth)}"
        problem = f"method {method!r} does not support derivatives"
        raise InputError("E-CALL-064", problem, remedy, part=function)
    if derivative is None:
        chosen = {"staged": staged, "similar": similar, **given}
        ways = [partial(way.staged, model, **chosen) for way in found]
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
        first = first_derivatives(known, derivative.wrt)
        if derivative.order == 1:
            return first
        traced, left = straight(first), derivative.order - 1
    else:
        ways = [partial(way.staged, model, **given) for way in found]
        traced, left = straight(_fewest_operations(ways, record)), derivative.order
    if derivative.kind == "pullback":
        return pullback(model, traced, derivative.wrt, positions)
    for _ in range(left):
        traced = all_derivatives(model, traced, derivative.wrt, positions)
    return traced


def has_recursion(function: str, method: str, derivative: Derivative) -> bool:
    """Return True if a recursive algorithm computes the requested derivatives of a function."""
    return (
        function in DERIVATIVES
        and method == "fastest"
        and derivative.kind == "jacobian"
        and set(derivative.wrt) <= set(signature(DERIVATIVES[function].algorithm).inputs)
    )


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

    In this case, the units and body frames of the model can be changed.
    """
    named = given.get("wrenches") or given.get("parameters") or "frame" in given
    return not (named or model.constraints)


def _passes(
    way: Method, *, dissipation: bool, alone: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the model transformations (passes) of a method.

    The passes in the first tuple do not regroup inertias; those in the second tuple do.
    """
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
        problem = f"the masses of robot {model.name!r} are unknown, but this function requires them"
        raise ModelError(
            "E-CALL-065",
            problem,
            "add mass, center and inertia to the rows of the Denavit-Hartenberg table",
            part=function,
        )
    if function == "linearize":
        _check_closed_by_steps(model)
    bound = _bound(model)
    able = tuple(m for m in offered if order == 1 or signature(m.algorithm).any_order)
    if loaded:
        able = tuple(m for m in able if "f_ext" in signature(m.algorithm).inputs)
        if not able:
            problem = "no method of this function supports external forces"
            raise InputError("E-CALL-066", problem, "omit `f_ext`", part=function)
    fit = {m.name: m.needs(model, given) if m.needs else "" for m in able}
    allowed = tuple(m for m in able if (m.followers or not bound) and not fit[m.name])
    if method == "fastest":
        if not allowed:
            reason = next(filter(None, fit.values()), "")
            massless = bool(reason) and reason == massive_joints(model, given)
            raise _lacking(model, function, reason, massless=massless)
        deep = _depth(model) > DEEP
        return tuple(m for m in allowed if not (deep and m.shallow)) or allowed
    named = tuple(m for m in known if m.name == method)
    if not named:
        opened = _OPEN_TREES.get(function)
        if opened and any(m.name == method for m in FUNCTIONS[opened]):
            problem = f"method {method!r} does not support loops or couplings"
            remedy = f"use one of 'fastest', {_names(known)}"
            raise ModelError("E-CALL-073", problem, remedy, part=function)
        remedy = one_of(method, ("fastest", *(m.name for m in known)))
        raise InputError("E-CALL-068", f"unknown method {method!r}", remedy, part=function)
    if named[0] not in able:
        lacks = "external forces" if loaded and order == 1 else f"order {order}"
        problem = f"method {method!r} does not support {lacks}"
        raise InputError("E-CALL-069", problem, f"use {_names(able)}", part=function)
    remedy = f"use {_names(allowed)}" if allowed else MOVABLE
    if fit[method]:
        problem = f"method {method!r} does not support robot {model.name!r}: {fit[method]}"
        raise ModelError("E-CALL-070", problem, remedy, part=function)
    if named[0] not in allowed:
        remedy += ", or load the robot with mimic=False" if model.mimics else ""
        problem = f"method {method!r} does not support {bound}"
        raise ModelError("E-CALL-071", problem, remedy, part=function)
    return named


def check_inertia(model: Model, function: str) -> None:
    """Raise an error if the mass matrix of a tree is singular at nearly every configuration."""
    reason = massive_joints(model, {})
    if reason:
        raise _lacking(model, function, reason, massless=True)


MOVABLE = (
    "attach mass and inertia to the link that the joint moves (`attach`), give the joint an "
    "armature, or lock it (`lock`)"
)
"""Remedy for a joint that moves no inertia."""


def _lacking(model: Model, function: str, reason: str, *, massless: bool = False) -> ModelError:
    """Return the error for a function that no method computes for this robot.

    `reason` is empty if the methods do not support the bindings of the robot's joints.
    """
    remedy = "load the robot with mimic=False" if model.mimics and not reason else ""
    if massless:
        remedy = MOVABLE
    problem = f"robot {model.name!r}: {reason or f'this function does not support {_bound(model)}'}"
    return ModelError("E-CALL-067", problem, remedy, part=function)


def _bound(model: Model) -> str:
    """Return the kind of joints whose motions are bound together, or an empty string."""
    binding = {"driven joints": model.driven, "mimic joints": model.mimics}
    binding |= {"rotors driven by several joints": model.rotors}
    return next((what for what, found in binding.items() if found), "")


def _depth(model: Model) -> float:
    """Return the mean depth of bodies in the tree; a body attached to the world has depth 1."""
    depths = {WORLD: 0}
    for i, body in enumerate(model.bodies):
        depths[i] = depths[body.parent] + 1
    return sum(depths.values()) / max(len(model.bodies), 1)


def _names(methods: Iterable[Method]) -> str:
    return ", ".join(repr(m.name) for m in methods)


def _check_closed_by_steps(model: Model) -> None:
    """Raise an error for nonholonomic joints on moving bodies: such joints cannot be linearized.

    Velocity steps cannot reach all positions of a nonholonomic joint, such as a rolling sphere. The
    motion of a sphere on a fixed plane does not depend on these positions, but the motion of a
    sphere on a moving plane does.
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


# Options ------------------------------------------------------------------------------------------


def spaces(function: str, order: int = 1) -> Signature:
    """Return the inputs, outputs and options of a function.

    `order` is the number of time derivatives of q that the function takes.
    """
    return signature(METHODS[function][0].algorithm, order)


NEEDED = {
    "actuated": "the indices in qd of the actuated degrees of freedom",
    "weights": "a positive number for each actuated degree of freedom",
}
"""Required options of functions, with their descriptions."""


def checked_options(
    model: Model, function: str, options: Mapping[str, Any]
) -> tuple[tuple[str, Any], ...]:
    """Check the options of a function, and return their names and values, sorted by name."""
    if a_name("a function", function) not in METHODS:
        problem = f"unknown function {function!r}"
        raise InputError("E-CALL-025", problem, suggested(function, METHODS))
    known = spaces(function).options
    for name in options:
        if name not in known:
            problem = f"{function} has no option {name!r}"
            raise ArgumentError("E-CALL-026", problem, keyword(name, known))
    for name, what in NEEDED.items():
        if name in known and name not in options:
            raise ArgumentError("E-CALL-027", f"{function} needs {name}=, {what}")
    checked = dict(options)
    if "frame" in known:
        handles = spaces(function).handles
        checked["frame"] = checked_frame(model, function, options.get("frame"), handles)
        checked["at"] = checked_point(options["at"]) if "at" in options else "frame"
    elif "at" in options and options["at"] not in ("world", "com"):
        problem = f"`at` must be 'com' or 'world', not {options['at']!r}"
        raise InputError("E-CALL-084", problem, part=function)
    if "sensors" in known:
        checked["sensors"] = checked_sensors(model, function, options.get("sensors"))
    if "known" in known:
        checked["known"] = checked_joints(model, function, options.get("known", ()))
    if "order" in known:
        checked["order"] = checked_order(function, options.get("order", 1))
    if "axes" in options:
        check_axes(options["axes"])
    if options.get("kind", "classical") not in ("classical", "spatial", "proper"):
        problem = f"`kind` must be 'classical', 'spatial' or 'proper', not {options['kind']!r}"
        raise InputError("E-CALL-028", problem)
    if type(checked.get("packed", False)) is not bool:
        problem = f"`packed` must be True or False, not {options['packed']!r}"
        raise ArgumentError("E-CALL-095", problem, part=function)
    if not checked.get("packed"):
        checked.pop("packed", None)
    for name, value in checked.items():
        check_hash(function, name, value)
    return tuple(sorted((k, v) for k, v in checked.items() if k in known))


def checked_frame(model: Model, function: str, frame: Any, several: bool) -> Any:
    """Return the checked name of a frame (default: tool frame).

    If `several` is True, a sequence of names is also accepted, and returned as a tuple.
    """
    if frame is None:
        return tool(model)
    if several and isinstance(frame, Sequence) and not isinstance(frame, str):
        if not frame:
            remedy = "name at least one frame"
            raise InputError("E-CALL-029", "`frame` is an empty sequence", remedy, part=function)
        return tuple(model.frame(name).name for name in frame)
    return model.frame(frame).name


def checked_joints(model: Model, function: str, names: Any) -> tuple[str, ...]:
    """Return joint names without duplicates, in the order of their coordinates."""
    given = [names] if isinstance(names, str) else names
    try:
        chosen = {model.mover(name) for name in given}
    except TypeError:
        problem = f"`known` must be a sequence of joint names, not {names!r}"
        raise ArgumentError("E-CALL-030", problem, part=function) from None
    return tuple(model.bodies[i].data.name for i in model.movers if i in chosen)


MOST_ORDER = 32
"""Maximum number of time derivatives of q. The operations grow with about the third power."""


def checked_order(function: str, order: Any) -> int:
    """Return `order` (number of time derivatives of q) if valid; otherwise, raise an error."""
    return checked_count(f"{function}: order (the number of rates)", order, most=MOST_ORDER)


def check_axes(axes: str) -> None:
    if not isinstance(axes, str) or axes not in ("world", "frame"):
        raise InputError("E-CALL-017", f"`axes` must be 'world' or 'frame', not {axes!r}")


def checked_point(at: Any) -> Any:
    """Check the reference point `at`, and return the string or a tuple of three floats."""
    if isinstance(at, str):
        if at not in ("frame", "world"):
            problem = f"`at` must be 'frame', 'world' or (x, y, z) in the frame, not {at!r}"
            raise InputError("E-CALL-018", problem)
        return at
    point = some_numbers("at", at)
    if point.shape != (3,) or not np.all(np.isfinite(point)):
        problem = f"`at` must be 'frame', 'world' or three finite numbers, not {at!r}"
        raise InputError("E-CALL-019", problem)
    return tuple(float(x) for x in point)


class Recent(dict[_Key, _Value]):
    """A cache of the latest `MOST_KEPT` entries, which limits the memory for a robot's code.

    For example, new code is compiled for each point `at` of a Jacobian and for each controller of a
    rollout. The oldest entry is removed first, and is compiled again if it is needed later.
    """

    def __setitem__(self, key: _Key, value: _Value) -> None:
        super().__setitem__(key, value)
        while len(self) > MOST_KEPT:
            with suppress(RuntimeError):  # another thread changed the dictionary
                self.pop(next(iter(self), key), None)

    def setdefault(self, key: _Key, value: _Value) -> _Value:
        """Return the value of a key, which is added if there is none."""
        found = self.get(key)
        if found is None:
            self[key] = found = value
        return found
