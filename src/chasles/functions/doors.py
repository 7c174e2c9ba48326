"""What callers give a function, checked at the door: frames, points, orders, wrenches, names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from chasles.algorithms import FUNCTIONS, METHODS
from chasles.algorithms.spatial.kinematics import At, Axes
from chasles.errors import ArgumentError, InputError
from chasles.functions.programs import spaces
from chasles.functions.tracing import WrenchKey, rate_name
from chasles.model import Model
from chasles.model.spaces import WrenchesSpace


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
        time = np.asarray(t, dtype=None if is_single(t) else float)
    except (TypeError, ValueError):
        problem = f"give a time in s, or an array of times, not {t!r}"
        raise ArgumentError("E-CALL-021", problem, part="at_time") from None
    if not np.all(np.isfinite(time)):
        raise InputError("E-CALL-022", f"a time must be finite numbers, not {t!r}", part="at_time")
    return time


def order_of(function: str, rates: Sequence[Any]) -> int:
    """How many rates are given to a function that takes any number but none."""
    if not rates:
        problem = f"{function} needs rates after q: qd, or qd and qdd, and so on"
        raise ArgumentError("E-CALL-023", problem)
    return len(rates)


def rates_by_name(function: str, rates: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """Rates given by name, in order, after those that are not: qd, qdd, ..., none left out."""
    names = [rate_name(len(rates) + k) for k in range(1, len(named) + 1)]
    for name in named:
        if name not in names:
            raise ArgumentError(
                "E-CALL-024",
                f"{function} has no argument {name!r} here: rates by name go on with "
                f"{', '.join(names)} after those given without",
            )
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
            problem = f"{function} has no option {name!r}"
            raise ArgumentError("E-CALL-026", problem, f"it takes {takes}")
    for name, what in NEEDED.items():
        if name in known and name not in options:
            raise ArgumentError("E-CALL-027", f"{function} needs {name}=, {what}")
    checked = dict(options)
    if "frame" in known:
        handles = spaces(function).handles
        checked["frame"] = checked_frame(model, function, options["frame"], handles)
        checked["at"] = checked_point(options["at"]) if "at" in options else "frame"
    elif "at" in options and options["at"] not in ("world", "com"):
        problem = f"at must be 'com' or 'world', not {options['at']!r}"
        raise InputError("E-CALL-084", problem, part=function)
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
    model: Model | None = None,
) -> tuple[str, ...]:
    """The arguments to differentiate by, each known to the function (with so many rates).

    model: where it depends on time, one may differentiate by "t" too, if one says so.
    """
    if function not in METHODS:
        problem = f"unknown function {function!r}"
        raise InputError("E-CALL-031", problem, f"known are {', '.join(FUNCTIONS)}")
    sign = spaces(function, order)
    if len(sign.outputs) > 1:
        remedy = "differentiate what it is made of, e.g. mass_matrix or forward_dynamics"
        raise InputError("E-CALL-032", f"{function} has several results", remedy)
    known = [name for name, s in sign.inputs.items() if not isinstance(s, WrenchesSpace)]
    known += parameters
    names = known if wrt is None else [wrt] if isinstance(wrt, str) else list(wrt)
    if not names:
        problem = f"name an argument to differentiate by: {', '.join(known)}"
        raise InputError("E-CALL-033", problem, part=function)
    timed = model is not None and model.timed and function not in ("integrate", "difference")
    known += ["t"] if timed else []
    for name in names:
        if name not in known:
            problem = f"{function} has no argument {name!r}"
            raise InputError("E-CALL-034", problem, f"it has {', '.join(known)}")
    return tuple(dict.fromkeys(names))


class Load(NamedTuple):
    """External wrenches: what a program is compiled for, and their values."""

    keys: tuple[WrenchKey, ...] = ()
    forces: Sequence[Any] = ()


def wrench_arguments(model: Model, f_ext: Mapping[str, Any] | None) -> Load:
    """External forces as the tracer's keys and their arrays, in a stable order."""
    if f_ext is None:
        return Load()
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
    return Load(tuple(keys), values)


def is_single(argument: Any) -> bool:
    return getattr(argument, "dtype", None) == np.float32
