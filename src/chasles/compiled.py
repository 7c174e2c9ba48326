"""A function compiled for one robot: what `chasles.compile` returns and `Robot` calls."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from chasles import backends, libraries
from chasles.algorithms import FUNCTIONS, METHODS
from chasles.algorithms.spatial.viewpoint import At, Axes
from chasles.backends import cache
from chasles.backends.arrays import Kernel, call
from chasles.backends.call import fast_entry
from chasles.backends.pool import COMPILING
from chasles.errors import ArgumentError, InputError, ModelError
from chasles.expr import Interface, Program
from chasles.model import Description, Model, build
from chasles.model.spaces import PositionSpace, WrenchesSpace
from chasles.programs import Derivative, Differential, differentiated, program, spaces
from chasles.tracing import WrenchKey, rate_name


@dataclass(frozen=True)
class Wrench:
    """An external wrench exerted on the robot at a frame: (moment, force), in N m and N.

    value: array (..., 6). axes: "world" or "frame", the axes its components are along. at: the
    point the moment is about: "frame" (the frame's origin), "world" (the world's origin), or
    (x, y, z) in the frame.
    """

    value: Any
    axes: Axes = "world"
    at: At = "frame"

    def __post_init__(self) -> None:
        check_axes(self.axes)
        object.__setattr__(self, "at", checked_point(self.at))


def check_axes(axes: str) -> None:
    if axes not in ("world", "frame"):
        raise InputError("E-CALL-017", f"axes must be 'world' or 'frame', not {axes!r}")


def checked_point(at: Any) -> Any:
    """`at` as an algorithm wants it: a word, or three finite floats."""
    if isinstance(at, str):
        if at not in ("frame", "world"):
            problem = f"at must be 'frame', 'world' or (x, y, z) in the frame, not {at!r}"
            raise InputError("E-CALL-018", problem)
        return at
    point = np.asarray(at, dtype=float)
    if point.shape != (3,) or not np.all(np.isfinite(point)):
        problem = f"at must be 'frame', 'world' or three finite numbers, not {at!r}"
        raise InputError("E-CALL-019", problem)
    return tuple(float(x) for x in point)


def checked_order(function: str, order: Any) -> int:
    """`order` as a positive number: how many time derivatives of q a function takes."""
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 1:
        problem = (
            f"order must be a positive integer (the number of rates: qd, qdd, ...), not {order!r}"
        )
        raise InputError("E-CALL-020", problem, part=function)
    return int(order)


def checked_time(t: Any) -> np.ndarray:
    """A time, or an array of times: finite numbers, in s."""
    try:
        time = np.asarray(t, dtype=None if _is_single(t) else float)
    except (TypeError, ValueError):
        problem = f"give a time in s, or an array of times, not {t!r}"
        raise ArgumentError("E-CALL-021", problem, part="at_time") from None
    if not np.all(np.isfinite(time)):
        raise InputError("E-CALL-022", f"a time must be finite numbers, not {t!r}", part="at_time")
    return time


def order_of(function: str, rates: Sequence[Any]) -> int:
    """How many rates are given to a function that takes any number but none."""
    if not rates:
        problem = "it needs rates after q: qd, or qd and qdd, and so on"
        raise ArgumentError("E-CALL-023", problem, part=function)
    return len(rates)


def rates_by_name(function: str, rates: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """Rates given by name, in order, after those that are not: qd, qdd, ..., none left out."""
    names = [rate_name(len(rates) + k) for k in range(1, len(named) + 1)]
    for name in named:
        if name not in names:
            problem = (
                f"it has no argument {name!r} here: rates by name go on with {', '.join(names)} "
                "after those given without"
            )
            raise ArgumentError("E-CALL-024", problem, part=function)
    return tuple(named[name] for name in names)


def order_option(function: str, arguments: Sequence[Any]) -> dict[str, int]:
    """The option that a number of arguments means, for a function that takes any rates."""
    if function not in FUNCTIONS or not spaces(function).any_order:
        return {}
    return {"order": order_of(function, arguments[1:])}


NEEDED = {
    "frame": "the name of a link or frame",
    "actuated": "the places in qd of the freedoms with a motor",
    "weights": "a positive number for each of these",
}
"""Options without which a function cannot do, and what each is."""


def checked_options(
    model: Model, function: str, options: Mapping[str, Any]
) -> tuple[tuple[str, Any], ...]:
    """A function's options, each known and of a right value, in a stable order."""
    if function not in METHODS:
        problem = f"unknown function {function!r}"
        raise InputError("E-CALL-025", problem, f"known are {', '.join(METHODS)}")
    known = spaces(function).options
    for name in options:
        if name not in known:
            takes = ", ".join(known) or "no options"
            problem = f"it has no option {name!r}"
            raise ArgumentError("E-CALL-026", problem, f"it takes {takes}", part=function)
    for name, what in NEEDED.items():
        if name in known and name not in options:
            raise ArgumentError("E-CALL-027", f"it needs {name}=, {what}", part=function)
    checked = dict(options)
    if "frame" in known:
        handles = spaces(function).handles
        checked["frame"] = checked_frame(model, function, options["frame"], handles)
        checked["at"] = checked_point(options["at"]) if "at" in options else "frame"
    if "known" in known:
        checked["known"] = checked_joints(model, function, options.get("known", ()))
    if "order" in known:
        checked["order"] = checked_order(function, options.get("order", 1))
    if "axes" in options:
        check_axes(options["axes"])
    if options.get("kind", "classical") not in ("classical", "spatial", "proper"):
        problem = f"kind must be 'classical', 'spatial' or 'proper', not {options['kind']!r}"
        raise InputError("E-CALL-028", problem)
    return tuple(sorted((k, v) for k, v in checked.items() if k in known))


def checked_frame(model: Model, function: str, frame: Any, several: bool) -> Any:
    """The name of a frame, or names of some where a function takes several."""
    if several and isinstance(frame, Sequence) and not isinstance(frame, str):
        if not frame:
            remedy = "give the name of one, or of some"
            raise InputError("E-CALL-029", "frame names no frame", remedy, part=function)
        return tuple(model.frame(name).name for name in frame)
    return model.frame(frame).name


def checked_joints(model: Model, function: str, names: Any) -> tuple[str, ...]:
    """Joints that own coordinates, each once, in the order of their coordinates."""
    given = [names] if isinstance(names, str) else names
    try:
        chosen = {model.mover(name) for name in given}
    except TypeError:
        problem = f"known must be names of joints, not {names!r}"
        raise ArgumentError("E-CALL-030", problem, part=function) from None
    return tuple(model.bodies[i].data.name for i in model.movers if i in chosen)


def derivative_names(
    function: str,
    wrt: str | Sequence[str] | None,
    parameters: Sequence[str] = (),
    *,
    order: int = 1,
    timed: bool = False,
) -> tuple[str, ...]:
    """The arguments to differentiate by, each known to the function (with so many rates).

    timed: the robot depends on time, by which one may differentiate too if one says so.
    """
    if function not in METHODS:
        problem = f"unknown function {function!r}"
        raise InputError("E-CALL-031", problem, f"known are {', '.join(FUNCTIONS)}")
    sign = spaces(function, order)
    if len(sign.outputs) > 1:
        remedy = "differentiate what it is made of, e.g. mass_matrix or forward_dynamics"
        raise InputError("E-CALL-032", "it has several results", remedy, part=function)
    known = [name for name, s in sign.inputs.items() if not isinstance(s, WrenchesSpace)]
    known += parameters
    names = known if wrt is None else [wrt] if isinstance(wrt, str) else list(wrt)
    if not names:
        problem = f"name an argument to differentiate by: {', '.join(known)}"
        raise InputError("E-CALL-033", problem, part=function)
    known += ["t"] if timed and function not in ("integrate", "difference") else []
    for name in names:
        if name not in known:
            problem = f"it has no argument {name!r}"
            raise InputError("E-CALL-034", problem, f"it has {', '.join(known)}", part=function)
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a compiled function: the mechanism, the function, its options."""

    source: Description
    mimic: bool
    function: str
    method: str
    backend: str
    dissipation: bool
    wrenches: tuple[WrenchKey, ...]
    options: tuple[tuple[str, Any], ...]
    derivative: Derivative | None = None
    parameters: tuple[str, ...] = ()
    dtype: str = "float64"
    chain: tuple[Differential, ...] = ()


_TRACED: WeakValueDictionary[Recipe, Program] = WeakValueDictionary()
"""Programs by recipe, whatever the backend and the type of numbers, while some function has them.
"""


class Compiled:
    """A function of arrays, compiled for one robot.

    Call it with arrays whose leading shapes broadcast together, and optionally `out=`. Arrays that
    are all float32 are computed in single precision; all others in double. Arrays of PyTorch, JAX
    and CuPy give results of the same kind. It can be pickled (the recipe travels, the code is made
    again) and shared by threads.
    """

    def __init__(
        self, recipe: Recipe, model: Model | None = None, parent: "Compiled | None" = None
    ) -> None:
        self.recipe, self.parent = recipe, parent
        self.model = model or build(recipe.source, mimic=recipe.mimic)
        self._differentials: dict[Differential, Compiled] = {}
        self.key = cache.key(self._identity)
        """What names it in other processes too: everything that decides the code."""
        libraries.remember(self)
        with COMPILING:
            self._kernel: Any = backends.prepare(
                self._identity, lambda: self.program, recipe.backend, recipe.dtype
            )
        self.interface: Interface = self._kernel.interface

    @property
    def _identity(self) -> object:
        """What decides the code: the recipe, and the program too where a joint's type is a user's.

        Two classes of one name may compute different things, and a changed one does.
        """
        return (self.recipe, self.program.hash) if self._has_own_joints else self.recipe

    @property
    def _has_own_joints(self) -> bool:
        source = self.recipe.source
        return any(joint.custom is not None for joint in (*source.joints, *source.loops))

    @cached_property
    def program(self) -> Program:
        """The straight-line program, traced when asked for: once for all backends and types."""
        if self._has_own_joints:
            return self._trace()
        bare = replace(self.recipe, backend="", dtype="")
        found = _TRACED.get(bare)
        if found is None:
            found = _TRACED[bare] = self._trace()
        return found

    def _trace(self) -> Program:
        traced = program(
            self.model,
            self.recipe.function,
            method=self.recipe.method,
            dissipation=self.recipe.dissipation,
            wrenches=self.recipe.wrenches,
            derivative=self.recipe.derivative,
            parameters=self.recipe.parameters,
            smooth=bool(self.recipe.chain),
            **dict(self.recipe.options),
        )
        return differentiated(traced, self.recipe.chain)

    def __call__(self, *arguments: Any, out: Any = None, threads: int | None = None) -> Any:
        if len(arguments) != len(self.interface.inputs):
            names = ", ".join(v.name for v in self.interface.inputs)
            problem = (
                f"it takes {len(self.interface.inputs)} arrays ({names}), not {len(arguments)}"
            )
            raise ArgumentError("E-CALL-035", problem, part=self.recipe.function)
        take = libraries.taker(self, arguments, out)
        if take is not None:
            return take(self, arguments, out, threads)
        if self.recipe.dtype == "float64" and all(map(_is_single, arguments)) and arguments:
            return self.single(*arguments, out=out, threads=threads)
        if self.recipe.backend == "cuda":
            return self._kernel.call(self.recipe.function, arguments, out)
        return call(
            self._kernel, self.recipe.function, arguments, out, threads, self._check_quaternions
        )

    @property
    def kernel(self) -> Kernel:
        """What runs: the program as its backend compiled it."""
        return self._kernel

    @cached_property
    def timed(self) -> bool:
        """Whether one of its arrays is the time."""
        return any(variable.name == "t" for variable in self.interface.inputs)

    def at(self, t: Any) -> "Compiled | AtTime":
        """The function at a time (...), in s: without that argument, if it has it."""
        if not self.timed:
            return self
        if t is None:
            problem = f"robot {self.model.name!r} depends on time"
            remedy = f"say when: robot.at_time(t).{self.recipe.function}(...)"
            raise ModelError("E-CALL-036", problem, remedy, part=self.recipe.function)
        return AtTime(self, t)

    @cached_property
    def single(self) -> "Compiled":
        """The same function in single precision: what runs when all arrays are float32."""
        if self.recipe.dtype == "float32":
            return self
        if self.parent is not None:
            return self.parent.single.differential(self.recipe.chain[-1])
        return Compiled(replace(self.recipe, dtype="float32"), self.model)

    @cached_property
    def cuda(self) -> "Compiled":
        """The same function on a GPU: it takes CuPy's arrays."""
        if self.recipe.backend == "cuda":
            return self
        return Compiled(replace(self.recipe, backend="cuda"), self.model)

    def from_host(self, *arguments: Any, out: Any = None) -> Any:
        """On a GPU with arrays in this machine's memory, which are copied there and back."""
        name, kernel = self.recipe.function, self.cuda.kernel
        return call(kernel, name, arguments, out, None, self._check_quaternions)

    def pushforward(self, wrt: tuple[str, ...]) -> "Compiled":
        """Directions of the results from those of some inputs, which are extra inputs.

        By the numbers of the inputs as they are, nq of them for q; so too `pullback`.
        """
        return self.differential(Differential("pushforward", wrt))

    def pullback(self, wrt: tuple[str, ...]) -> "Compiled":
        """Covectors of some inputs from covectors of all results, which are extra inputs."""
        return self.differential(Differential("pullback", wrt))

    def differential(self, applied: Differential) -> "Compiled":
        """A derivative of this function applied, made once; `parent` leads back."""
        with COMPILING:
            if applied not in self._differentials:
                recipe = replace(self.recipe, chain=(*self.recipe.chain, applied))
                self._differentials[applied] = Compiled(recipe, self.model, self)
        return self._differentials[applied]

    @cached_property
    def fast(self) -> Callable[..., Any]:
        """The same function with tens of nanoseconds of overhead: a built-in around the code."""
        return self.entry(holder=_Found(self), fallback=self.__call__)

    def entry(self, *, holder: Any, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """A fast entry with a fallback's signature and documentation."""
        return fast_entry(
            self._kernel,
            name=self.recipe.function,
            signature=_plain_signature(fallback),
            doc=inspect.getdoc(fallback) or "",
            holder=holder,
            fallback=fallback,
        )

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any]]:
        if self.parent is not None:
            return self.parent.differential, (self.recipe.chain[-1],)
        return Compiled, (self.recipe,)

    def __repr__(self) -> str:
        inputs = ", ".join(variable.name for variable in self.interface.inputs)
        return f"<{self.recipe.function}({inputs}) of {self.model.name!r} by {self.recipe.backend}>"

    def _check_quaternions(self, arrays: Sequence[np.ndarray]) -> None:
        """A zero quaternion is no rotation: say so instead of computing NaN."""
        for number, first in self.interface.nonzero:
            q = arrays[number]
            w = q[..., first]
            if np.count_nonzero(w) < w.size:
                bad = ~np.any(q[..., first : first + 4], axis=-1)
                if np.any(bad):
                    joint = PositionSpace().quaternions(self.model)[first]
                    at = f" at index {tuple(map(int, np.argwhere(bad)[0]))}" if q.ndim > 1 else ""
                    problem = (
                        f"the quaternion of joint {joint!r} is zero{at} (q[{first}:{first + 4}])"
                    )
                    remedy = "the identity is (1, 0, 0, 0)"
                    raise InputError("E-CALL-037", problem, remedy, part=self.recipe.function)


@dataclass(frozen=True)
class AtTime:
    """A compiled function of a robot that depends on time, at a time t (...), in s."""

    compiled: Compiled
    t: Any

    def __call__(self, *arrays: Any, **options: Any) -> Any:
        return self.compiled(*self._with_time(arrays), **options)

    def fast(self, *arrays: Any) -> Any:
        """The same with less overhead."""
        return self.compiled.fast(*self._with_time(arrays))

    def _with_time(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        place = [variable.name for variable in self.compiled.interface.inputs].index("t")
        return (*arrays[:place], self.t, *arrays[place:])


@dataclass(frozen=True)
class _Found:
    """Where a pickled fast entry finds itself again: whatever it was called, it is `fast`."""

    compiled: Compiled

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.compiled.fast


def _is_single(argument: Any) -> bool:
    return getattr(argument, "dtype", None) == np.float32


def _plain_signature(function: Callable[..., Any]) -> str:
    """A function's parameters without annotations, as built-in functions show them."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=signature.empty))
    return text[1:-1]


def wrench_arguments(
    model: Model, f_ext: Mapping[str, Any] | None
) -> tuple[tuple[WrenchKey, ...], list[Any]]:
    """External forces as the tracer's keys and their arrays, in a stable order."""
    if f_ext is None:
        return (), []
    if not isinstance(f_ext, Mapping):
        problem = f"f_ext must be {{frame: Wrench(...) or array}}, not {f_ext!r}"
        raise ArgumentError("E-CALL-038", problem)
    keys, values = [], []
    for name in sorted(f_ext, key=str):
        model.frame(name)
        given = f_ext[name]
        wrench = given if isinstance(given, Wrench) else Wrench(given)
        keys.append(WrenchKey(name, wrench.axes, wrench.at))
        values.append(wrench.value)
    return tuple(keys), values
