"""Derivatives of programs: forward and reverse mode, differences and complex steps agree."""

import cmath
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import raises

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
    forward,
    interpret,
    jacobian,
    less,
    less_equal,
    maximum,
    minimum,
    reverse,
    select,
    sin,
    sqrt,
)
from chasles.expr.scalar import apply

SMOOTH = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "sqrt": cmath.sqrt,
    "sin": cmath.sin,
    "cos": cmath.cos,
}


def _program(function, sizes, rules=RULES):
    """Return a program with inputs x, y, ... of the given sizes. `function` returns the outputs."""
    arena = Arena(rules)
    variables = [Variable(name, (n,)) for name, n in sizes.items()]
    symbols = {v.name: [arena.input(v.name, k) for k in range(v.size)] for v in variables}
    results = function(**symbols)
    return Program.from_outputs("f", variables, [(Variable("out", (len(results),)), results)])


def _complex_steps(program, inputs, name):
    """Return the Jacobian by complex steps, which are exact to rounding for smooth operations."""
    columns = []
    for k in range(len(inputs[name])):
        values = []
        for op, args, data in program.code:
            if op == "input":
                variable = program.inputs[data[0]].name
                step = 1e-30j if (variable, data[1]) == (name, k) else 0.0
                values.append(inputs[variable][data[1]] + step)
            else:
                values.append(data if op == "const" else SMOOTH[op](*(values[a] for a in args)))
        columns.append([complex(values[r]).imag / 1e-30 for r in program.results[0]])
    return np.array(columns).T


def _differences(program, inputs, name, h=1e-3):
    columns = []
    for k in range(len(inputs[name])):

        def at(step, k=k):
            moved = list(inputs[name])
            moved[k] += step
            return np.array(interpret(program, inputs | {name: moved})["out"])

        columns.append((8.0 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12.0 * h))
    return np.array(columns).T


def _jacobian(program, inputs, name, mode):
    derived = jacobian(program, [name], mode=mode)
    shape = derived.outputs[0].shape
    return np.array(interpret(derived, inputs)[f"d_out_d_{name}"]).reshape(shape)


def _robot_like(x, y):
    """Return sums, quotients and roots with common subexpressions, as in dynamics."""
    a, b, c = x
    s, k = sin(a + b), cos(a + b)
    length = sqrt(1.0 + s * s * c * c + y[0] * y[0])
    inverse = 1.0 / (2.0 + k * y[1])
    return [s * inverse, length * k - c / length, inverse * inverse * length, y[1] * y[1] - a * c]


def _with_kinks(x, y):
    a, b, c = x
    return [
        atan2(a * y[0], b - y[1]),
        maximum(a * b, c) + minimum(y[0], absolute(c)),
        select(less(a, b), a * c, sin(b) * y[1]),
        absolute(a - c) * y[0] + less_equal(a, b) * c + equal(a, y[1]),
    ]


INPUTS = {"x": [0.31, -0.72, 1.4], "y": [0.9, -0.4]}
SIZES = {"x": 3, "y": 2}


@pytest.mark.parametrize("rules", [RULES, {}], ids=["rules", "no rules"])
@pytest.mark.parametrize("name", ["x", "y"])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_smooth_jacobian(rules, name, mode):
    program = _program(_robot_like, SIZES, rules)
    exact = _complex_steps(program, INPUTS, name)
    got = _jacobian(program, INPUTS, name, mode)
    np.testing.assert_allclose(got, exact, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(got, _differences(program, INPUTS, name), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["x", "y"])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobian_away_from_kinks(name, mode):
    program = _program(_with_kinks, SIZES)
    got = _jacobian(program, INPUTS, name, mode)
    np.testing.assert_allclose(got, _differences(program, INPUTS, name), rtol=1e-8, atol=1e-9)


steps = st.lists(
    st.tuples(st.sampled_from(sorted(SMOOTH)), *[st.integers(0, 10**6)] * 2),
    min_size=1,
    max_size=20,
)


def _random(recipe):
    def function(x):
        built = [*x, 0.5, -2.0, 1.0]
        for name, i, j in recipe:
            chosen = [built[c % len(built)] for c in (i, j)][: OPS[name].arity]
            if name == "div":
                chosen[1] = 1.5 + chosen[1] * chosen[1]
            if name == "sqrt":
                chosen[0] = 0.5 + chosen[0] * chosen[0]
            if name == "mul":  # small values keep rounding far below the tolerance
                chosen[0] = sin(chosen[0])
            built.append(apply(name, *chosen) if name != "div" else chosen[0] / chosen[1])
        return built[-4:]

    return _program(function, {"x": 3})


@settings(max_examples=120, deadline=None, derandomize=True)
@given(recipe=steps, x=st.tuples(*[st.floats(-2.0, 2.0)] * 3))
def test_random_smooth_jacobians(recipe, x):
    program, inputs = _random(recipe), {"x": list(x)}
    exact = _complex_steps(program, inputs, "x")
    ahead = _jacobian(program, inputs, "x", "forward")
    back = _jacobian(program, inputs, "x", "reverse")
    scale = 1.0 + np.abs(exact).max()
    assert np.abs(ahead - exact).max() <= 1e-11 * scale
    assert np.abs(back - exact).max() <= 1e-11 * scale


def test_directional_derivative_is_jacobian_times_direction():
    program = _program(_robot_like, SIZES)
    derived = forward(program, ["y", "x"])
    assert [v.name for v in derived.inputs] == ["x", "y", "d_y", "d_x"]
    dx, dy = [0.2, -1.0, 0.7], [1.5, -0.3]
    got = interpret(derived, INPUTS | {"d_x": dx, "d_y": dy})["d_out"]
    Jx, Jy = (_jacobian(program, INPUTS, name, "reverse") for name in ("x", "y"))
    np.testing.assert_allclose(got, Jx @ dx + Jy @ dy, rtol=1e-13)


def test_pullback_is_transposed_jacobian_times_covector():
    program = _program(_robot_like, SIZES)
    derived = reverse(program, ["x", "y"])
    assert [v.name for v in derived.inputs] == ["x", "y", "bar_out"]
    bar = [0.3, -1.1, 0.8, 2.0]
    got = interpret(derived, INPUTS | {"bar_out": bar})
    for name in ("x", "y"):
        J = _jacobian(program, INPUTS, name, "forward")
        np.testing.assert_allclose(got[f"bar_{name}"], J.T @ bar, rtol=1e-13)


def test_an_output_given_twice_has_its_derivative_twice():
    program = _program(lambda x: [sin(x[0]), sin(x[0]), x[0], 3.0], {"x": 2})
    expected = [[math.cos(0.4), 0.0], [math.cos(0.4), 0.0], [1.0, 0.0], [0.0, 0.0]]
    for mode in ("forward", "reverse"):
        got = _jacobian(program, {"x": [0.4, 0.1]}, "x", mode)
        np.testing.assert_allclose(got, expected, rtol=1e-15)
    pulled = interpret(reverse(program, ["x"]), {"x": [0.4, 0.1], "bar_out": [1.0, 2.0, 5.0, 7.0]})
    np.testing.assert_allclose(pulled["bar_x"], [3.0 * math.cos(0.4) + 5.0, 0.0], rtol=1e-15)


def test_shapes_and_names_of_outputs():
    arena = Arena(RULES)
    q = [arena.input("q", k) for k in range(2)]
    t = arena.input("t", 0)
    program = Program.from_outputs(
        "g",
        [Variable("q", (2,)), Variable("t", ())],
        [(Variable("A", (2, 2)), [q[0], t, q[1] * t, 1.0]), (Variable("e", ()), [q[0] * q[1]])],
    )
    for mode in ("forward", "reverse"):
        derived = jacobian(program, ["t", "q"], mode=mode)
        assert derived.name == "g_jacobian"
        assert derived.inputs == program.inputs
        assert [(v.name, v.shape) for v in derived.outputs] == [
            ("d_A_d_t", (2, 2)),
            ("d_A_d_q", (2, 2, 2)),
            ("d_e_d_t", ()),
            ("d_e_d_q", (2,)),
        ]
        got = interpret(derived, {"q": [2.0, 3.0], "t": [5.0]})
        assert got["d_A_d_t"] == [0.0, 1.0, 3.0, 0.0]
        assert got["d_A_d_q"] == [1.0, 0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0]
        assert got["d_e_d_t"] == [0.0]
        assert got["d_e_d_q"] == [3.0, 2.0]


@pytest.mark.parametrize("first", ["forward", "reverse"])
@pytest.mark.parametrize("second", ["forward", "reverse"])
def test_hessian_is_symmetric_and_right(first, second):
    program = _program(lambda x: [_robot_like(x, x[:2])[2]], {"x": 3})
    gradient = jacobian(program, ["x"], mode=first)
    hessian = jacobian(gradient, ["x"], mode=second)
    x = INPUTS["x"]
    H = np.array(interpret(hessian, {"x": x})["d_d_out_d_x_d_x"]).reshape(3, 3)
    np.testing.assert_allclose(H, H.T, rtol=1e-12, atol=1e-14)
    expected = _complex_steps(gradient, {"x": x}, "x")
    np.testing.assert_allclose(H, expected, rtol=1e-12, atol=1e-13)


def test_third_derivative():
    program = _program(lambda x: [sin(x[0]) * x[0] * x[0]], {"x": 1})
    for _ in range(3):
        outputs = program.outputs[0].name
        program = jacobian(program, ["x"])
    t = 0.7
    expected = 6.0 * math.cos(t) - 6.0 * t * math.sin(t) - t * t * math.cos(t)
    (value,) = interpret(program, {"x": [t]}).values()
    assert value == pytest.approx([expected], rel=1e-13)
    assert outputs.count("d_x") == 2


def test_product_of_hessian_and_vector():
    program = _program(lambda x: [_robot_like(x, x[:2])[2]], {"x": 3})
    x, d = INPUTS["x"], [0.3, -0.5, 1.2]
    H = np.array(
        interpret(jacobian(jacobian(program, ["x"]), ["x"]), {"x": x})["d_d_out_d_x_d_x"]
    ).reshape(3, 3)
    forward_of_reverse = forward(reverse(program, ["x"]), ["x"])
    got = interpret(forward_of_reverse, {"x": x, "bar_out": [1.0], "d_x": d})["d_bar_x"]
    np.testing.assert_allclose(got, H @ d, rtol=1e-12)
    reverse_of_forward = reverse(forward(program, ["x"]), ["x"])
    got = interpret(reverse_of_forward, {"x": x, "bar_d_out": [1.0], "d_x": d})["bar_x"]
    np.testing.assert_allclose(got, H @ d, rtol=1e-12)


def _norm(x):
    """Return a guarded square root, whose argument is replaced by a safe one at zero."""
    t = sum((a * a for a in x), 0.0)
    none = equal(t, 0.0)
    return [select(none, 0.0, sqrt(select(none, 1.0, t)))]


def _sinc(x):
    t = x[0]
    near = less(absolute(t), 1e-3)
    safe = select(near, 1.0, t)
    return [select(near, 1.0 - t * t * (1.0 / 6.0), sin(safe) / safe)]


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize(
    ("function", "n"), [(_norm, 3), (_sinc, 1)], ids=["root at zero", "quotient at zero"]
)
def test_guarded_functions_have_finite_derivatives_at_the_singularity(function, n, mode):
    program = _program(function, {"x": n})
    inputs = {"x": [0.0] * n}
    assert _jacobian(program, inputs, "x", mode).tolist() == [[0.0] * n]
    second = jacobian(jacobian(program, ["x"], mode=mode), ["x"], mode=mode)
    (values,) = interpret(second, inputs).values()
    assert all(map(math.isfinite, values))
    away = {"x": [0.3, -0.4, 1.2][:n]}
    expected = _differences(program, away, "x")
    np.testing.assert_allclose(_jacobian(program, away, "x", mode), expected, rtol=1e-9)


def test_select_never_multiplies_by_a_mask():
    """Forward mode drops the branch that is not taken, even if its slope is infinite."""
    program = _program(lambda x: [select(less(0.0, x[0]), sqrt(x[0]), x[0] * 3.0)], {"x": 1})
    assert _jacobian(program, {"x": [0.0]}, "x", "forward").tolist() == [[3.0]]
    assert _jacobian(program, {"x": [4.0]}, "x", "forward").tolist() == [[0.25]]


def test_derivatives_of_constants_and_switches_are_zero():
    program = _program(
        lambda x: [2.5, less(x[0], x[1]), equal(x[0], x[1]), less_equal(x[1], 1.0)], {"x": 2}
    )
    for mode in ("forward", "reverse"):
        derived = jacobian(program, ["x"], mode=mode)
        assert derived.count.flops == 0
        assert interpret(derived, {"x": [1.0, 1.0]})["d_out_d_x"] == [0.0] * 8


def test_errors_name_the_input():
    program = _program(_robot_like, SIZES)
    for derive in (jacobian, forward, reverse):
        with raises("E-EXPR-001", "'z'"):
            derive(program, ["z"])


def test_an_input_name_cannot_appear_twice():
    """A direction must not have the name of an existing input."""
    program = _program(_robot_like, SIZES)
    with raises("E-EXPR-002", "'d_x'"):
        forward(forward(program, ["x"]), ["x"])
    with raises("E-EXPR-002", "'d_x'"):
        forward(program, ["x", "x"])
    clash = _program(lambda bar_out: [bar_out[0]], {"bar_out": 1})
    with raises("E-EXPR-002", "'bar_out'"):
        reverse(clash, ["bar_out"])


def test_an_input_named_twice_counts_once():
    program = _program(_robot_like, SIZES)
    for mode in ("forward", "reverse"):
        twice = jacobian(program, ["x", "x"], mode=mode)
        assert twice == jacobian(program, ["x"], mode=mode)


def test_no_inputs_and_no_outputs():
    empty = _program(lambda x: [], {"x": 2})
    for mode in ("forward", "reverse"):
        assert interpret(jacobian(empty, ["x"], mode=mode), {"x": [1.0, 2.0]}) == {"d_out_d_x": []}
    none = _program(lambda x, y: [y[0]], {"x": 0, "y": 1})
    for mode in ("forward", "reverse"):
        assert jacobian(none, ["x"], mode=mode).outputs[0].shape == (1, 0)


def test_long_chains_need_no_recursion():
    def function(x):
        y = x[0]
        for _ in range(5_000):
            y = sin(y) + x[0]
        return [y]

    program = _program(function, {"x": 1})
    ahead = _jacobian(program, {"x": [0.1]}, "x", "forward")
    back = _jacobian(program, {"x": [0.1]}, "x", "reverse")
    np.testing.assert_allclose(ahead, back, rtol=1e-10)


def test_reverse_mode_is_cheap_for_one_output():
    """The gradient costs a small multiple of the function, for any number of inputs."""

    def energy(x):
        total = 0.0
        for a, b in itertools.pairwise(x):
            total = total + sin(a * b) * cos(a - b)
        return [total]

    costs = []
    for n in (10, 40):
        program = _program(energy, {"x": n})
        gradient = jacobian(program, ["x"], mode="reverse")
        costs.append(gradient.count.flops / program.count.flops)
    assert max(costs) < 5.0
    assert costs[1] < 1.2 * costs[0]


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("op", ["min", "max"])
def test_the_slope_of_the_loser_does_not_count(op: str, mode: str) -> None:
    """The infinite slope of sqrt at 0 is not multiplied by a mask, which would give 0 * inf."""
    arena = Arena(RULES)
    x = arena.input("x", 0)
    root = arena.build("sqrt", x)
    other = {"max": 1.0, "min": -1.0}[op]
    y = arena.build(op, root, other + x * 3.0)
    program = Program.from_outputs("f", [Variable("x", (1,))], [(Variable("y", (1,)), [y])])
    slope = jacobian(program, ["x"], mode=mode)
    assert interpret(slope, {"x": [0.0]})["d_y_d_x"] == [3.0]
    for at in (0.01, 4.0, 30.0):
        h = 1e-6 * at
        low, high = (interpret(program, {"x": [at + d]})["y"][0] for d in (-h, h))
        assert interpret(slope, {"x": [at]})["d_y_d_x"][0] == pytest.approx((high - low) / (2 * h))
