"""Operations of the instruction set: values compared with NumPy, derivatives with differences."""

import itertools
import math
from dataclasses import fields

import numpy as np
import pytest

from chasles.expr import OPS, RULES, Arena, Count, Program, Variable, interpret, jacobian
from chasles.expr.ops import TABLE

OPERATIONS = [op for op in TABLE if op.arity]
NAMES = [op.name for op in OPERATIONS]

NUMPY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "atan2": np.arctan2,
    "min": np.minimum,
    "max": np.maximum,
    "abs": np.abs,
    "less": np.less,
    "less_equal": np.less_equal,
    "equal": np.equal,
    "select": lambda c, a, b: np.where(c != 0.0, a, b),
}

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan)

# Points away from kinks and poles. Each new operation needs some.
POINTS: dict[str, list[tuple[float, ...]]] = {
    "add": [(0.3, -1.2), (5.0, 2.0)],
    "sub": [(0.3, -1.2), (5.0, 2.0)],
    "mul": [(0.3, -1.2), (0.0, 2.0)],
    "div": [(0.3, -1.2), (-4.0, 0.7), (0.0, 3.0)],
    "neg": [(0.3,), (-2.0,)],
    "sqrt": [(0.3,), (12.0,)],
    "sin": [(0.0,), (0.7,), (-4.0,)],
    "cos": [(0.0,), (0.7,), (-4.0,)],
    "atan2": [(0.3, 1.2), (0.3, -1.2), (-0.3, -1.2), (2.0, 0.0), (0.0, 2.0)],
    "min": [(0.3, -1.2), (-1.2, 0.3)],
    "max": [(0.3, -1.2), (-1.2, 0.3)],
    "abs": [(0.3,), (-0.3,)],
    "less": [(0.3, -1.2), (-1.2, 0.3)],
    "less_equal": [(0.3, -1.2), (-1.2, 0.3)],
    "equal": [(0.3, -1.2)],
    "select": [(1.0, 0.3, -1.2), (0.0, 0.3, -1.2), (-2.0, 0.3, -1.2)],
}


def _slope(value, point, k):
    """Return the derivative by a fourth-order central difference."""
    h = 1e-3 * max(1.0, abs(point[k]))

    def at(step):
        moved = list(point)
        moved[k] += step
        return value(*moved)

    return (8.0 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12.0 * h)


def test_every_operation_has_a_reference_and_points():
    assert list(OPS) == [op.name for op in TABLE], "a name stands twice in the table"
    assert set(NUMPY) == set(NAMES)
    assert set(POINTS) == set(NAMES)
    assert all(len(point) == OPS[name].arity for name in NAMES for point in POINTS[name])


@pytest.mark.parametrize("op", TABLE, ids=lambda op: op.name)
def test_is_counted_in_a_column_that_exists(op):
    assert op.counts_as in {f.name for f in fields(Count)} | {"free"}
    assert (op.counts_as == "free") == (op.arity == 0)


@pytest.mark.parametrize("op", OPERATIONS, ids=NAMES)
def test_value_follows_ieee_and_never_raises(op):
    for args in itertools.product(SPECIAL, repeat=op.arity):
        value = op.value(*args)
        assert type(value) is float, args
        with np.errstate(all="ignore"):
            expected = float(NUMPY[op.name](*map(np.float64, args)))
        if math.isnan(expected):
            assert math.isnan(value), args
        elif op.name in ("sin", "cos", "atan2"):  # NumPy may use polynomials that differ by 2 ulp
            assert value == pytest.approx(expected, rel=5e-16, abs=0.0), args
        else:
            assert value == expected, args
            if value == 0.0 and op.name not in ("min", "max"):  # either zero may be returned
                assert math.copysign(1.0, value) == math.copysign(1.0, expected), args


@pytest.mark.parametrize("op", OPERATIONS, ids=NAMES)
def test_commutes_exactly_if_it_says_so(op):
    if op.arity != 2:
        assert not op.commutative
        return
    same = [
        np.array_equal(op.value(a, b), op.value(b, a), equal_nan=True)
        for a, b in itertools.product(SPECIAL, repeat=2)
    ]
    assert all(same) == op.commutative


@pytest.mark.parametrize(
    ("name", "point"),
    # Operations that return one of their arguments have no partials. The next test covers them.
    [(name, point) for name in NAMES if OPS[name].chooses is None for point in POINTS[name]],
)
def test_partial_derivatives(name, point):
    op = OPS[name]
    slopes = op.partials(lambda other, *args: OPS[other].value(*args), point, op.value(*point))
    assert len(slopes) == op.arity
    for k, slope in enumerate(slopes):
        assert slope == pytest.approx(_slope(op.value, point, k), rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize(
    ("name", "point"), [(name, point) for name in NAMES for point in POINTS[name]]
)
def test_derivative_of_a_program_of_one_operation(name, point, mode):
    arena, n = Arena(RULES), len(point)
    result = arena.build(name, *(arena.input("x", k) for k in range(n)))
    x, y = Variable("x", (n,)), Variable("y", ())
    program = Program.from_outputs("one", [x], [(y, [result])])
    slopes = interpret(jacobian(program, ["x"], mode=mode), {"x": point})["d_y_d_x"]
    # The derivative by the condition of a select is zero wherever it exists.
    expected = [_slope(OPS[name].value, point, k) for k in range(n)]
    if name == "select":
        expected[0] = 0.0
    assert slopes == pytest.approx(expected, rel=1e-9, abs=1e-10)


def test_extrema_are_not_a_number_if_either_argument_is():
    for name in ("min", "max"):
        for other in SPECIAL:
            assert math.isnan(OPS[name].value(math.nan, other))
            assert math.isnan(OPS[name].value(other, math.nan))


def test_slopes_at_kinks_stay_between_the_one_sided_ones():
    def build(name, *args):
        return OPS[name].value(*args)

    assert OPS["abs"].partials(build, (0.0,), 0.0) == (0.0,)
    for name in ("min", "max"):
        arena = Arena(RULES)
        result = arena.build(name, arena.input("x", 0), arena.input("x", 1))
        program = Program.from_outputs(
            "kink", [Variable("x", (2,))], [(Variable("y", ()), [result])]
        )
        slopes = interpret(jacobian(program, ["x"]), {"x": (2.0, 2.0)})["d_y_d_x"]
        assert sorted(slopes) == [0.0, 1.0]
