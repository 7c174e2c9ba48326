"""Simplification rules: each identity by name, and random expressions with and without rules."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chasles.expr import (
    OPS,
    RULES,
    Arena,
    Program,
    Variable,
    absolute,
    atan2,
    cos,
    equal,
    interpret,
    less,
    less_equal,
    maximum,
    minimum,
    select,
    sin,
    sqrt,
)
from chasles.expr.scalar import apply

ARENA = Arena(RULES)
X, Y, Z = (ARENA.input("x", k) for k in range(3))

SAME = {
    "add zero": (X + 0.0, X),
    "zero plus": (0.0 + X, X),
    "subtract zero": (X - 0.0, X),
    "zero minus": (0.0 - X, -X),
    "times one": (1.0 * X, X),
    "times minus one": (X * -1.0, -X),
    "over one": (X / 1.0, X),
    "double negation": (0.0 - (0.0 - X), X),
    "negation moves out of products": ((-X) * Y, -(X * Y)),
    "two negations cancel": ((-X) * (-Y), X * Y),
    "negation moves out of quotients": (X / (-Y), -(X / Y)),
    "minus a negation": (X - (-Y), X + Y),
    "negations add": ((-X) + (-Y), -(X + Y)),
    "add a negation": (X + (-Y), X - Y),
    "negation first": ((-X) + Y, Y - X),
    "negation minus": ((-X) - Y, -(X + Y)),
    "differences share a node": (X - Y, -(Y - X)),
    "scales share a node": (-2.0 * X, -(2.0 * X)),
    "constants merge in products": (2.0 * (3.0 * X), 6.0 * X),
    "constants merge in sums": (2.0 + (3.0 + X), 5.0 + X),
    "constants merge in differences": (2.0 - (3.0 + X), -1.0 - X),
    "constants merge twice": ((2.0 - X) + 3.0, 5.0 - X),
    "constant minus difference": (2.0 - (3.0 - X), X - 1.0),
    "negated sum": (-(2.0 + X), -2.0 - X),
    "negated difference": (-(2.0 - X), X - 2.0),
    "opposite constants": ((X + 2.0) - 2.0, X),
    "like terms add": (2.0 * X + 3.0 * X, 5.0 * X),
    "like terms subtract": (2.0 * X - 3.0 * X, -X),
    "sum of equals": (X + X, 2.0 * X),
    "over a constant": (X / 4.0, 0.25 * X),
    "a quotient is a product": (X / Z, X * (1.0 / Z)),
    "reciprocal of reciprocal": (1.0 / (1.0 / X), X),
    "over a reciprocal": (Y / (1.0 / X), Y * X),
    "cancelled factor": ((X * Y) / X, Y),
    "cancelled by multiplying": (X * (Y / X), Y),
    "sum minus its part": ((X + Y) - X, Y),
    "part minus its sum": (X - (X + Y), -Y),
    "minuend minus difference": (X - (X - Y), Y),
    "difference minus minuend": ((X - Y) - X, -Y),
    "difference plus subtrahend": ((X - Y) + Y, X),
    "odd sine": (sin(-X), -sin(X)),
    "even cosine": (cos(-X), cos(X)),
    "sine of a swapped difference": (sin(X - Y), -sin(Y - X)),
    "root of a square": (sqrt(X * X), absolute(X)),
    "absolute of a negation": (absolute(-X), absolute(X)),
    "absolute twice": (absolute(absolute(X)), absolute(X)),
    "absolute of a root": (absolute(sqrt(X)), sqrt(X)),
    "minimum of equals": (minimum(X, X), X),
    "maximum of equals": (maximum(X, X), X),
    "select of equals": (select(Z, X, X), X),
    "select always": (select(1.0, X, Y), X),
    "select never": (select(0.0, X, Y), Y),
}

CONSTANT = {
    "times zero": (X * 0.0, 0.0),
    "minus itself": (X - X, 0.0),
    "zero over": (0.0 / X, 0.0),
    "over itself": (X / X, 1.0),
    "times its reciprocal": (X * (1.0 / X), 1.0),
    "opposite terms": (2.0 * X - 2.0 * X, 0.0),
    "circle": (sin(X) * sin(X) + cos(X) * cos(X), 1.0),
    "circle, other order": (cos(Y) * cos(Y) + sin(Y) * sin(Y), 1.0),
    "less than itself": (less(X, X), 0.0),
    "no more than itself": (less_equal(X, X), 1.0),
    "equal to itself": (equal(X, X), 1.0),
    "difference of equal sums": ((X + Y) - (Y + X), 0.0),
    "select of equal constants": (select(Z, 2.0, 2.0), 2.0),
}


@pytest.mark.parametrize("name", SAME)
def test_identity(name):
    built, simpler = SAME[name]
    assert built is simpler


@pytest.mark.parametrize("name", CONSTANT)
def test_folds_to_a_constant(name):
    built, value = CONSTANT[name]
    assert type(built) is float
    assert built == value


def test_what_must_not_fold():
    assert (sin(X) * sin(X) + cos(Y) * cos(Y)).op == "add"  # two different angles
    assert (sin(X) * sin(X) + sin(X) * sin(X)).op == "mul"  # twice a square, not sin^2 + cos^2
    for one, two in ((sin, cos), (cos, sin)):  # a square, and a product of two angles
        for a, b in ((X, Y), (Y, X)):
            assert (one(a) * one(a) + two(a) * two(b)).op == "add"
    assert sqrt(X * Y).op == "sqrt"
    assert sin(2.0 - X).op == "sin"
    assert (X / 0.0).op == "div"
    assert select(Z, 1.0, -1.0).op == "select"
    assert atan2(-X, Y).op == "atan2"


def test_only_reciprocals_divide():
    """Each divisor is inverted once, and quotients become products."""
    quotients = [a / b for a in (X, Y, 3.0, X + 1.0) for b in (Y, Z, Z * 2.0) if a is not b]
    program = Program.from_outputs(
        "f", [Variable("x", (3,))], [(Variable("y", (len(quotients),)), quotients)]
    )
    divisions = [i for i in program.code if i.op == "div"]
    assert all(program.code[i.args[0]].data == 1.0 for i in divisions)
    assert len(divisions) == len({i.args[1] for i in divisions}) == 3


@pytest.mark.parametrize("value", [1e-310, -1e-310, 5e-324, 1e-300])
def test_over_a_tiny_constant(value):
    """A quotient by a denormal number is kept, because the reciprocal overflows."""
    arena = Arena(RULES)
    x = arena.input("x", 0)
    program = Program.from_outputs("f", [Variable("x", (1,))], [(Variable("y", ()), [x / value])])
    for x0 in (0.0, value, 3.0 * value):
        assert interpret(program, {"x": [x0]})["y"][0] == pytest.approx(x0 / value, rel=1e-15)
    cancelled = (value * x) * (arena.input("x", 1) / value)
    assert type(cancelled) is not float
    assert cancelled is not x


# Random programs --------------------------------------------------------------------------------

INPUTS = 4
CONSTANTS = (0.0, 1.0, -1.0, 2.0, 0.5, -3.0, 0.1)
OPERATIONS = [op.name for op in OPS.values() if op.arity]
# Operations that the rules simplify are drawn more often.
WEIGHTED = OPERATIONS + ["add", "sub", "mul", "neg"] * 3 + ["div", "sin", "cos"]

steps = st.lists(
    st.tuples(st.sampled_from(WEIGHTED), *[st.integers(0, 10**6)] * 3), min_size=1, max_size=30
)
values = st.lists(
    st.floats(-4.0, 4.0, allow_nan=False).map(lambda x: round(x, 3)),
    min_size=INPUTS,
    max_size=INPUTS,
)


def _trace(arena, recipe):
    """Return all values that a recipe builds from inputs and constants. Most values share parts."""
    built = [*(arena.input("x", k) for k in range(INPUTS)), *CONSTANTS]
    for name, *choices in recipe:
        # choose recent values more often, for deep expressions
        pool = built[-6:] if choices[0] % 3 else built
        args = [pool[c % len(pool)] for c in choices[: OPS[name].arity]]
        built.append(apply(name, *args))
    return built[INPUTS + len(CONSTANTS) :]


def _program(rules, recipe):
    outputs = _trace(Arena(rules), recipe)
    variables = [Variable("x", (INPUTS,))], [(Variable("y", (len(outputs),)), outputs)]
    return Program.from_outputs("random", *variables)


UNIT = 2.0**-52


def _running_error(program, x):
    """Return the values of a program without rules, and bounds for their rounding errors.

    An entry is None if the rules may change the value. This is the case if it is not finite, or if
    rounding decides it (a comparison of nearly equal values, a root near zero, a branch cut).
    """
    known = []
    for op, args, data in program.code:
        if op == "input":
            known.append((x[data[1]], 0.0))
        elif op == "const":
            known.append((data, 0.0) if math.isfinite(data) else None)
        elif op == "select":
            known.append(_chosen(*(known[a] for a in args)))
        elif any(known[a] is None for a in args):
            known.append(None)
        else:
            known.append(_rounded(op, *zip(*(known[a] for a in args), strict=True)))
    return known


def _chosen(condition, a, b):
    if condition is None or 0.0 < abs(condition[0]) <= 4.0 * condition[1]:
        return None
    if condition[0] == 0.0 and condition[1]:
        return None
    return a if condition[0] != 0.0 else b


def _rounded(op, v, e):
    r = OPS[op].value(*v)
    if not math.isfinite(r) or abs(r) > 1e100:
        return None
    doubtful, bound = False, 0.0
    match op:
        case "add" | "sub" | "neg" | "abs":
            bound = sum(e)
        case "mul":
            bound = abs(v[0]) * e[1] + abs(v[1]) * e[0] + e[0] * e[1]
        case "div":
            doubtful = abs(v[1]) < 1e-100 + 2.0 * e[1]
            bound = 0.0 if doubtful else (e[0] + abs(r) * e[1]) / (abs(v[1]) - e[1])
        case "sqrt":
            doubtful = v[0] <= 4.0 * e[0]
            bound = 0.0 if doubtful else e[0] / r
        case "sin" | "cos":
            bound = UNIT + e[0]
        case "atan2":
            length = math.hypot(*v)
            doubtful = length <= 4.0 * sum(e) or (v[1] < 0.0 and abs(v[0]) <= 4.0 * e[0])
            bound = 0.0 if doubtful else UNIT + 2.0 * sum(e) / length
        case "min" | "max":
            bound = max(e)
        case "less" | "less_equal" | "equal":
            doubtful = abs(v[0] - v[1]) <= 4.0 * sum(e) and sum(e) > 0.0
        case _:
            raise AssertionError(f"no error bound for {op}: add one")
    return None if doubtful else (r, bound + UNIT * abs(r))


@settings(max_examples=400, deadline=None, derandomize=True)
@given(recipe=steps, x=values)
def test_rules_do_not_change_values(recipe, x):
    plain, simple = _program({}, recipe), _program(RULES, recipe)
    known = _running_error(plain, x)
    got = interpret(simple, {"x": x})["y"]
    for k, r in enumerate(plain.results[0]):
        if known[r] is not None:
            value, error = known[r]
            allowed = 1e-9 * abs(value) + 16.0 * error + 1e-300
            assert abs(got[k] - value) <= allowed, f"{value} became {got[k]}\n{plain}{simple}"


@settings(max_examples=150, deadline=None, derandomize=True)
@given(recipe=steps)
def test_rules_add_no_work(recipe):
    """Rules do not increase the number of operations, except that a / b may become a * (1 / b)."""
    plain, simple = _program({}, recipe).count, _program(RULES, recipe).count
    written = plain.flops + 2 * plain.divisions + plain.negations + plain.selections
    assert simple.flops + simple.divisions + simple.selections <= written
    assert simple.divisions <= plain.divisions
    assert simple.square_roots <= plain.square_roots
    assert simple.sines_and_cosines <= plain.sines_and_cosines
    assert simple.arctangents <= plain.arctangents


@settings(max_examples=150, deadline=None, derandomize=True)
@given(recipe=steps)
def test_building_again_changes_nothing(recipe):
    """Replaying a simplified program gives the same program."""
    once = _program(RULES, recipe)
    arena = Arena(RULES)
    replayed = once.replay(once.variables(arena), arena)
    outputs = [replayed[r] for r in once.results[0]]
    twice = Program.from_outputs(once.name, once.inputs, [(once.outputs[0], outputs)])
    assert str(twice) == str(once)
