"""Table of all operations, with their arity, value, derivatives and cost."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Build = Callable[..., Any]
"""Function that builds an expression from the name and the arguments of an operation."""


@dataclass(frozen=True)
class Op:
    """Definition of an operation.

    `value` follows IEEE 754 and never raises an exception. `partials(build, args, result)` returns
    the derivative of the result with respect to each argument, as expressions made with `build`.
    `counts_as` is the field of `Count` that counts the operation.

    Operations that return one of their arguments, such as "min", define `chooses(build, args)`.
    This function returns a condition and two argument indices, for a true and for a false
    condition. The derivative uses the same selection, because zero times an infinite slope would
    be NaN.
    """

    name: str
    arity: int
    value: Callable[..., float]
    partials: Callable[[Build, tuple[Any, ...], Any], tuple[Any, ...]]
    counts_as: str
    commutative: bool = False
    chooses: Callable[[Build, tuple[Any, ...]], tuple[Any, int, int]] | None = None


def _divide(a: float, b: float) -> float:
    if b == 0.0:
        if a == 0.0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def _atan2_slopes(build: Build, args: tuple[Any, ...], angle: Any) -> tuple[Any, ...]:
    y, x = args
    square = build("add", build("mul", x, x), build("mul", y, y))
    return build("div", x, square), build("neg", build("div", y, square))


def _quotient_slopes(build: Build, args: tuple[Any, ...], quotient: Any) -> tuple[Any, ...]:
    return build("div", 1.0, args[1]), build("neg", build("div", quotient, args[1]))


def _absolute_slope(build: Build, args: tuple[Any, ...], result: Any) -> tuple[Any, ...]:
    negative, positive = build("less", args[0], 0.0), build("less", 0.0, args[0])
    return (build("select", negative, -1.0, build("select", positive, 1.0, 0.0)),)


def _flat(build: Build, args: tuple[Any, ...], result: Any) -> tuple[Any, ...]:
    return (0.0,) * len(args)


TABLE: tuple[Op, ...] = (
    #  name         arity  value                         partial derivatives                      counts as
    Op("input",         0, lambda: math.nan,             lambda b, a, r: (),                      "free"),
    Op("const",         0, lambda: math.nan,             lambda b, a, r: (),                      "free"),
    Op("add",           2, lambda a, b: a + b,           lambda b, a, r: (1.0, 1.0),              "additions", True),
    Op("sub",           2, lambda a, b: a - b,           lambda b, a, r: (1.0, -1.0),             "additions"),
    Op("mul",           2, lambda a, b: a * b,           lambda b, a, r: (a[1], a[0]),            "multiplications", True),
    Op("div",           2, _divide,                      _quotient_slopes,                        "divisions"),
    Op("neg",           1, lambda a: -a,                 lambda b, a, r: (-1.0,),                 "negations"),
    Op("sqrt",          1, lambda a: math.nan if a < 0.0 else math.sqrt(a), lambda b, a, r: (b("div", 0.5, r),), "square_roots"),
    Op("sin",           1, lambda a: math.sin(a) if math.isfinite(a) else math.nan, lambda b, a, r: (b("cos", a[0]),),       "sines_and_cosines"),
    Op("cos",           1, lambda a: math.cos(a) if math.isfinite(a) else math.nan, lambda b, a, r: (b("neg", b("sin", a[0])),), "sines_and_cosines"),
    Op("atan2",         2, math.atan2,                   _atan2_slopes,                           "arctangents"),
    Op("min",           2, lambda a, b: min(a, b) if a == a and b == b else math.nan, _flat,                                   "selections", True, lambda b, a: (b("less", a[1], a[0]), 1, 0)),
    Op("max",           2, lambda a, b: max(a, b) if a == a and b == b else math.nan, _flat,                                   "selections", True, lambda b, a: (b("less", a[0], a[1]), 1, 0)),
    Op("abs",           1, abs,                          _absolute_slope,                         "selections"),
    Op("less",          2, lambda a, b: float(a < b),    _flat,                                   "selections"),
    Op("less_equal",    2, lambda a, b: float(a <= b),   _flat,                                   "selections"),
    Op("equal",         2, lambda a, b: float(a == b),   _flat,                                   "selections", True),
    Op("select",        3, lambda c, a, b: a if c != 0.0 else b, _flat,                           "selections", False, lambda b, a: (a[0], 1, 2)),
)  # fmt: skip
"""All operations. `select(c, a, b)` returns a if c is nonzero, and b otherwise."""

OPS: dict[str, Op] = {op.name: op for op in TABLE}
