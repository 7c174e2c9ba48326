"""Expression nodes are unique, ordered only by structure, and identical in every process."""

import math
import os
import random
import struct
import subprocess
import sys

import numpy as np
import pytest
from support import raises

from chasles.expr import (
    OPS,
    RULES,
    Arena,
    Program,
    Scalar,
    Variable,
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
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force, Motion


@pytest.fixture(params=[RULES, {}], ids=["rules", "no rules"])
def arena(request):
    return Arena(request.param)


def _symbols(arena, n=4):
    return [arena.input("x", k) for k in range(n)]


def _mixture(arena):
    """Return an expression that contains every operation."""
    x, y, z, w = _symbols(arena)
    root = sqrt(absolute(x * y + 2.5) / (1.0 + z * z))
    angle = atan2(sin(root) - w, cos(x - y))
    chosen = select(less(x, y), minimum(angle, z), maximum(angle, -w))
    return chosen + less_equal(x, z) * w - equal(y, w) / 3.0


def test_mixture_has_every_operation():
    program = Program.from_outputs(
        "all", [Variable("x", (4,))], [(Variable("y", ()), [_mixture(Arena({}))])]
    )
    # `div` by a constant and `neg` stay only without rules
    assert {instruction.op for instruction in program.code} == set(OPS)


def test_equal_expressions_are_one_object(arena):
    assert _mixture(arena) is _mixture(arena)
    assert arena.input("x", 0) is arena.input("x", 0)
    assert arena.input("x", 0) is not arena.input("x", 1)
    assert arena.input("x", 0) is not arena.input("y", 0)
    assert arena.const(0.1) is arena.const(0.1)


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.arity == 2], ids=lambda op: op.name)
def test_commutative_arguments_have_one_order(arena, op):
    x, y, *_ = _symbols(arena)
    pairs = [(x, y), (x * y, sin(x)), (x, 2.5), (x + y, y)]
    for a, b in pairs:
        same = arena.build(op.name, a, b) is arena.build(op.name, b, a)
        assert same == op.commutative


def test_digest_depends_on_structure_alone():
    first, second = Arena(RULES), Arena(RULES)
    for k in reversed(range(50)):  # other nodes, order and addresses
        _ = sin(second.input("other", k)) * second.input("x", k % 4) + 3.0
    a, b = _mixture(first), _mixture(second)
    assert a is not b
    assert a.digest == b.digest
    assert a.digest.bit_length() <= 64


def test_digests_do_not_collide():
    rng, arena = random.Random(0), Arena({})
    nodes = [*_symbols(arena), arena.const(0.0), arena.const(1.0)]
    names = [op.name for op in OPS.values() if op.arity]
    while len(nodes) < 20_000:
        name = rng.choice(names)
        args = [rng.choice(nodes) for _ in range(OPS[name].arity)]
        nodes.append(arena.node(name, *args))
    distinct = set(nodes)
    assert len({node.digest for node in distinct}) == len(distinct)


def _order_of_tracing(seed):
    """Return a program whose parts are traced in random order."""
    rng, arena = random.Random(seed), Arena(RULES)
    x = _symbols(arena, 6)
    parts = [(i, j) for i in range(6) for j in range(i)]
    rng.shuffle(parts)
    terms = {}
    for i, j in parts:
        a, b = rng.sample([x[i], x[j]], 2)  # either order, for commutative operations
        terms[i, j] = sin(a * b) + cos(b + a)
    outputs = [terms[key] - 1.5 * terms[1, 0] for key in sorted(terms)]
    return Program.from_outputs(
        "shuffled", [Variable("x", (6,))], [(Variable("y", (len(outputs),)), outputs)]
    )


def test_order_of_tracing_does_not_matter():
    reference = _order_of_tracing(0)
    for seed in range(1, 8):
        other = _order_of_tracing(seed)
        assert other == reference
        assert other.hash == reference.hash
        assert str(other) == str(reference)


SCRIPT = """
from chasles.expr import *
arena = Arena(RULES)
x = [arena.input("x", k) for k in range(4)]
y = [sin(a * b) / (c - 1.25) + select(less(a, c), sqrt(b), -c) for a in x for b in x for c in x]
program = Program.from_outputs("f", [Variable("x", (4,))], [(Variable("y", (len(y),)), y)])
derived = jacobian(program, ["x"], mode="reverse")
digest = y[-1].arena.build("add", y[0], y[-1]).digest
print(program.hash, derived.hash, digest, len(program.code), program.count)
"""


def test_same_program_in_every_process():
    source = os.path.dirname(os.path.dirname(os.path.dirname(sys.modules["chasles.expr"].__file__)))
    texts = set()
    for seed in ("0", "1", "4242"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": source}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        texts.add(done.stdout)
    assert len(texts) == 1
    assert len(texts.pop().split()[0]) == 64


def test_constants_are_keyed_by_their_bits(arena):
    assert arena.const(0.0) is not arena.const(-0.0)
    assert arena.const(math.nan) is arena.const(math.nan)
    near = math.nextafter(0.1, 1.0)
    assert arena.const(near) is not arena.const(0.1)
    quiet = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
    assert arena.const(quiet) is not arena.const(math.nan)


@pytest.mark.parametrize("three", [3, np.float64(3.0), np.float32(3.0), np.int64(3), True + 2])
def test_constants_are_plain_floats_whatever_came_first(three):
    arena = Arena(RULES)
    assert type(arena.const(three).data) is float
    assert arena.const(three) is arena.const(3.0)
    x = arena.input("x", 0)
    assert three * x is 3.0 * x
    assert x * three is 3.0 * x
    assert three + x is 3.0 + x
    assert type(three + x) is Scalar
    assert repr(arena.node("add", x, three)).count("3.0") == 1


def test_constant_nodes_fold_like_floats():
    arena = Arena(RULES)
    x, two = arena.input("x", 0), arena.const(2.0)
    assert type(two * 3.0) is float
    assert two * two == 4.0
    assert two * x is 2.0 * x
    assert arena.const(0.0) * x == 0.0
    assert arena.const(1.0) * x is x
    for remainder in ((x + 3.0) - x, (3.0 * x) / x, x * (3.0 / x)):
        assert type(remainder) is float
        assert remainder == 3.0


FUNCTIONS = [sqrt, sin, cos, absolute, atan2, minimum, maximum, less, less_equal, equal, select]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_floats_give_floats(function):
    arity = function.__code__.co_argcount
    result = function(*(0.25, 0.5, 0.75)[:arity])
    assert type(result) is float
    assert not isinstance(result, Scalar)


def test_build_of_floats_is_a_float(arena):
    assert arena.build("add", 1, 2) == 3.0
    assert type(arena.build("add", 1, 2)) is float
    assert math.isnan(arena.build("div", 0.0, 0.0))
    assert math.isnan(arena.build("sqrt", -1.0))


def test_traces_do_not_mix(arena):
    other = Arena(RULES)
    for combine in (
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a * b,
        lambda a, b: a / b,
        atan2,
        lambda a, b: select(a, b, 1.0),
        lambda a, b: select(1.0, a, b),
    ):
        with raises("E-EXPR-005"):
            combine(arena.input("x", 0), other.input("x", 0))


def test_symbols_have_no_truth_and_no_value(arena):
    x = arena.input("x", 0)
    with raises("E-EXPR-003"):
        bool(x)
    with raises("E-EXPR-003"):
        bool(less(x, 0.0))
    with raises("E-EXPR-004"):
        float(x)
    with pytest.raises(TypeError):
        math.sin(x)
    with pytest.raises(TypeError):
        x < 1.0  # noqa: B015
    with pytest.raises(TypeError):
        x + None
    assert +x is x


def test_a_symbol_scales_what_a_float_scales(arena):
    """Algorithms accept floats and symbols, which may be left or right factors."""
    x = arena.input("x", 0)
    for thing in (Vector.of(1.0, 2.0, 3.0), Motion.of(*range(6)), Force.of(*range(6))):
        assert type(2.0 * thing) is type(thing)
        assert x * thing == thing * x
        assert np.float64(2.0) * thing == 2.0 * thing
    for nonsense in ("a", None, [1.0]):
        with pytest.raises(TypeError):
            x * nonsense
    assert is_number(x)
    assert is_number(np.float32(1.0))
    assert not is_number(Vector.zero())


def test_text_of_a_large_expression_is_short(arena):
    x = arena.input("x", 0)
    for _ in range(500):
        x = x * x + x
    assert len(repr(x)) < 2000
    y = arena.input("y", 3)
    assert repr(sin(y)) == "sin(y[3])"
    assert repr(select(less(y, 0.5), 1.0, sin(y))) == "select(less(y[3], 0.5), 1.0, sin(y[3]))"
