"""Local rules that simplify expressions as they are built.

Each rule takes an arena and the arguments of one operation. Arguments are expressions or, for
constants, floats; at least one is an expression. The rule returns a simpler equivalent expression,
or None to keep the operation. Signs are factored out so that `a - b` and `b - a`, or `2*x` and
`-2*x`, share one node. Rules assume finite values (`0*x`, `x - x` and `0/x` become 0) and ignore
the sign of zero.
"""

import math

from chasles.expr.scalar import Arena, Number, Rule, Scalar


def _is(x: Number, op: str) -> bool:
    return type(x) is Scalar and x.op == op


def _is_square(x: Scalar) -> bool:
    return x.op == "mul" and x.args[0] is x.args[1]


def _constant_in(op: str, x: Number) -> tuple[float, Number] | None:
    """Return (c, y) if x = op(c, y) with a constant c and a commutative `op`, else None."""
    if type(x) is Scalar and x.op == op:
        a, b = x.args
        if a.op == "const":
            return a.data, b
        if b.op == "const":
            return b.data, a
    return None


def _scaled(x: Number) -> tuple[float, Number]:
    """Return a constant factor c and the remaining factor y of x = c*y."""
    return _constant_in("mul", x) or (1.0, x)


def _reciprocal_of(x: Number) -> Scalar | None:
    """Return y if x = 1/y, else None."""
    return x.args[1] if _is(x, "div") and x.args[0].data == 1.0 else None


def _squares_of_one_angle(a: Scalar, b: Scalar) -> bool:
    """Return True if a and b are the squared sine and cosine of the same angle."""
    if not (_is_square(a) and _is_square(b)):
        return False
    x, y = a.args[0], b.args[0]
    return {x.op, y.op} == {"sin", "cos"} and x.args[0] is y.args[0]


def _add(arena: Arena, a: Number, b: Number) -> Number | None:
    if type(a) is float:
        a, b = b, a
    if type(b) is float:
        if b == 0.0:
            return a
        if a.op == "neg":
            return arena.build("sub", b, a.args[0])
        if a.op == "sub" and a.args[0].op == "const":
            return arena.build("sub", a.args[0].data + b, a.args[1])
        inner = _constant_in("add", a)
        return None if inner is None else arena.build("add", inner[1], inner[0] + b)
    if a.op == "neg" and b.op == "neg":
        return -(a.args[0] + b.args[0])
    if a.op == "neg":
        return b - a.args[0]
    if b.op == "neg":
        return a - b.args[0]
    for x, y in ((a, b), (b, a)):
        if x.op == "sub" and x.args[1] is y and x.args[0].op != "const":
            return x.args[0]
    if a is b:
        return 2.0 * a
    if a.op != "mul" and b.op != "mul":
        return None
    (c, x), (d, y) = _scaled(a), _scaled(b)
    if x is y:
        return (c + d) * x
    return 1.0 if _squares_of_one_angle(a, b) else None


def _sub(arena: Arena, a: Number, b: Number) -> Number | None:
    if type(b) is float:
        return arena.build("add", a, -b)
    if type(a) is float:
        if a == 0.0:
            return -b
        if b.op == "neg":
            return arena.build("add", b.args[0], a)
        if b.op == "sub" and b.args[0].op == "const":
            return arena.build("add", b.args[1], a - b.args[0].data)
        inner = _constant_in("add", b)
        return None if inner is None else arena.build("sub", a - inner[0], inner[1])
    if a is b:
        return 0.0
    if b.op == "neg":
        return a + b.args[0]
    if a.op == "neg":
        return -(a.args[0] + b)
    if a.op == "add" and b in a.args:
        return a.args[1] if a.args[0] is b else a.args[0]
    if b.op == "add" and a in b.args:
        return -(b.args[1] if b.args[0] is a else b.args[0])
    if b.op == "sub" and b.args[0] is a:
        return b.args[1]
    if a.op == "sub" and a.args[0] is b:
        return -a.args[1]
    if a.op == b.op == "add":
        for x, rest in (a.args, a.args[::-1]):
            if x in b.args:
                return rest - (b.args[1] if b.args[0] is x else b.args[0])
    if a.op == "mul" or b.op == "mul":
        (c, x), (d, y) = _scaled(a), _scaled(b)
        if x is y:
            return (c - d) * x
    return -arena.node("sub", b, a) if b.digest < a.digest else None


def _mul(arena: Arena, a: Number, b: Number) -> Number | None:
    if type(b) is float:
        a, b = b, a
    if type(a) is float:
        if a == 0.0:
            return 0.0
        if a == 1.0:
            return b
        if a < 0.0:
            return -arena.build("mul", -a, b)
        if b.op == "neg":
            return -arena.build("mul", a, b.args[0])
        c, x = _scaled(b)
        return None if c == 1.0 else arena.build("mul", a * c, x)
    if a.op == "neg" and b.op == "neg":
        return a.args[0] * b.args[0]
    if a.op == "neg":
        return -(a.args[0] * b)
    if b.op == "neg":
        return -(a * b.args[0])
    for x, y in ((a, b), (b, a)):
        if y.op == "div":
            base = _reciprocal_of(y)
            if base is x:
                return 1.0
            if base is not None and x.op == "mul" and base in x.args:
                return x.args[1] if x.args[0] is base else x.args[0]
        elif y.op == "mul":
            for reciprocal, rest in (y.args, y.args[::-1]):
                if _reciprocal_of(reciprocal) is x:
                    return rest
    return None


def _div(arena: Arena, a: Number, b: Number) -> Number | None:
    """Replace a / b with a * (1 / b), so that quotients with the same divisor share 1 / b."""
    if type(a) is float and a == 0.0:
        return 0.0
    if type(b) is float:
        if b == 0.0 or math.isinf(1.0 / b):  # the reciprocal of a denormal number may overflow
            return None
        return arena.build("mul", a, 1.0 / b)
    if a is b:
        return 1.0
    if b.op == "neg":
        return -(a / b.args[0])
    base = _reciprocal_of(b)
    if base is not None:
        return a * base
    if type(a) is float and a == 1.0:
        return None
    return a * arena.node("div", 1.0, b)


def _neg(arena: Arena, a: Scalar) -> Number | None:
    if a.op == "neg":
        return a.args[0]
    if a.op == "sub" and a.args[0].op == "const":
        return arena.build("add", a.args[1], -a.args[0].data)
    inner = _constant_in("add", a)
    return None if inner is None else arena.build("sub", -inner[0], inner[1])


def _abs(arena: Arena, a: Scalar) -> Number | None:
    if a.op == "neg":
        return arena.build("abs", a.args[0])
    return a if a.op in ("abs", "sqrt") else None


def _select(arena: Arena, condition: Number, a: Number, b: Number) -> Number | None:
    if type(condition) is float:
        return a if condition != 0.0 else b
    if a is b or (type(a) is float and a == b):
        return a
    return None


def _plain_add(arena: Arena, a: Number, b: Number) -> Number | None:
    if a == 0.0:
        return b
    return a if b == 0.0 else None


def _plain_sub(arena: Arena, a: Number, b: Number) -> Number | None:
    if a is b:
        return 0.0
    if a == 0.0:
        return -b
    return a if b == 0.0 else None


def _plain_mul(arena: Arena, a: Number, b: Number) -> Number | None:
    for factor, x in ((a, b), (b, a)):
        if factor == 0.0:
            return 0.0
        if factor == 1.0:
            return x
        if factor == -1.0:
            return -x
        if factor == 2.0:
            return arena.build("add", x, x)
        if _is(factor, "neg"):
            return -arena.build("mul", factor.args[0], x)
        if type(factor) is float and factor < 0.0:
            return -arena.build("mul", -factor, x)
    return None


def _plain_div(arena: Arena, a: Number, b: Number) -> Number | None:
    if a == 0.0:
        return 0.0
    return a if b == 1.0 else None


BOOK: dict[str, Rule] = {
    "add": _plain_add,
    "sub": _plain_sub,
    "mul": _plain_mul,
    "div": _plain_div,
    "neg": lambda arena, a: a.args[0] if a.op == "neg" else None,
    "select": _select,
}
"""Rules for counting operations in the same way as textbooks.

Trivial operations with 0 and 1, sign changes, and x - x are not counted. Multiplication by
2 counts as an addition.
"""

RULES: dict[str, Rule] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "sin": lambda arena, a: -arena.build("sin", a.args[0]) if a.op == "neg" else None,
    "cos": lambda arena, a: arena.build("cos", a.args[0]) if a.op == "neg" else None,
    "sqrt": lambda arena, a: arena.build("abs", a.args[0]) if _is_square(a) else None,
    "abs": _abs,
    "min": lambda arena, a, b: a if a is b else None,
    "max": lambda arena, a, b: a if a is b else None,
    "less": lambda arena, a, b: 0.0 if a is b else None,
    "less_equal": lambda arena, a, b: 1.0 if a is b else None,
    "equal": lambda arena, a, b: 1.0 if a is b else None,
    "select": _select,
}


def _mul_of_any_sign(arena: Arena, a: Number, b: Number) -> Number | None:
    if type(b) is float:
        a, b = b, a
    if type(a) is not float or a in (0.0, 1.0, -1.0):
        return _mul(arena, a, b)
    if b.op == "neg":
        return arena.build("mul", -a, b.args[0])
    c, x = _scaled(b)
    return None if c == 1.0 else arena.build("mul", a * c, x)


UNIFORM: dict[str, Rule] = RULES | {"mul": _mul_of_any_sign}
"""Variant of `RULES` that treats positive and negative constants alike.

Bodies whose parameters differ only in sign, such as the left and right thighs, then compile to the
same instructions.
"""
