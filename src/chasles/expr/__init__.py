"""Symbolic algebra: scalar expressions, straight-line programs and their derivatives."""

from chasles.expr.derivative import forward, jacobian, reverse
from chasles.expr.ops import OPS, Op
from chasles.expr.program import Count, Instruction, Interface, Program, Variable, interpret
from chasles.expr.scalar import (
    Arena,
    Number,
    Scalar,
    Seat,
    absolute,
    atan2,
    cos,
    equal,
    is_number,
    less,
    less_equal,
    maximum,
    minimum,
    select,
    sin,
    sqrt,
)
from chasles.expr.simplify import BOOK, RULES, UNIFORM
from chasles.expr.staged import Staged

__all__ = [
    "BOOK",
    "OPS",
    "RULES",
    "UNIFORM",
    "Arena",
    "Count",
    "Instruction",
    "Interface",
    "Number",
    "Op",
    "Program",
    "Scalar",
    "Seat",
    "Staged",
    "Variable",
    "absolute",
    "atan2",
    "cos",
    "equal",
    "forward",
    "interpret",
    "is_number",
    "jacobian",
    "less",
    "less_equal",
    "maximum",
    "minimum",
    "reverse",
    "select",
    "sin",
    "sqrt",
]
