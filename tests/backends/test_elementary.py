"""Accuracy of sine, cosine and arctangent, and all operations on all special values.

The reference is NumPy's long double where it has more than 64 bits (80 bits or more). An ulp is the
distance between doubles at the reference value.
"""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from support import TARGETS

from chasles.backends import arrays, compile
from chasles.backends.llvm import kernel as llvm
from chasles.backends.llvm.code import Machine
from chasles.expr import OPS, Arena, Program, Variable
from chasles.expr.scalar import apply

LONG = np.longdouble
MACHINES = {"as it is": Machine.host(), "without FMA": Machine.host().without_fma()}

needs_long_double = pytest.mark.skipif(
    np.finfo(LONG).eps >= np.finfo(float).eps / 1024, reason="long double is no longer than double"
)


def program(op: str, *, pair: bool = False) -> Program:
    """Return a program that applies one operation to its input. `pair`: both sine and cosine."""
    arena = Arena({})
    arity = OPS[op].arity
    x = [arena.input("x", k) for k in range(arity)]
    results = [apply("sin", *x), apply("cos", *x)] if pair else [apply(op, *x)]
    outputs = [(Variable("result", (len(results),)), results)]
    return Program.from_outputs(op, [Variable("x", (arity,))], outputs)


def run(target: Callable[..., None], *columns: np.ndarray) -> np.ndarray:
    """Return the results for columns of arguments, computed in one batch."""
    return arrays.call(target, "operation", [np.stack(columns, axis=-1)])


def ulps(found: np.ndarray, exact: np.ndarray) -> float:
    """Return the largest error in units of the last place of the exact value."""
    unit = np.spacing(np.abs(exact.astype(found.dtype))).astype(LONG)
    return float(np.max(np.abs(found.astype(LONG) - exact) / unit))


# Sine and cosine -------------------------------------------------------------------------------


def angles() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    near = np.rint(rng.uniform(-636619, 636619, 100_000)) * (np.pi / 2.0)
    steps = rng.integers(-4, 5, near.shape) * np.spacing(np.abs(near))
    signs = rng.choice([-1.0, 1.0], 50_000)
    return {
        "everywhere below the limit": rng.uniform(-1e6, 1e6, 300_000),
        "small": rng.uniform(-4.0, 4.0, 300_000),
        "tiny": signs * 10.0 ** rng.uniform(-320, 0, 50_000),
        "near multiples of a right angle": near + steps,
        "around the limit": signs * rng.uniform(0.999e6, 1.001e6, 50_000),
        "large": signs * 10.0 ** rng.uniform(7, 300, 50_000),
    }


@needs_long_double
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", angles())
def test_sine_and_cosine(kind: str, machine: str) -> None:
    """Sine and cosine are accurate to 2 ulp, even near their zeros."""
    x = angles()[kind]
    found = run(llvm.compile(program("sin", pair=True), MACHINES[machine]), x)
    with np.errstate(all="ignore"):
        for column, function in enumerate((np.sin, np.cos)):
            assert ulps(found[:, column], function(x.astype(LONG))) <= 2.0


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", angles())
def test_sine_and_cosine_in_single_precision(kind: str, machine: str) -> None:
    """Sine and cosine are accurate to 2 ulp of float32. The reference is double precision."""
    with np.errstate(over="ignore"):
        x = angles()[kind].astype(np.float32)
    x = x[np.isfinite(x) & (np.abs(x) > 1e-30)]
    kernel = llvm.compile(program("sin", pair=True), MACHINES[machine], "float32")
    found = run(kernel, x)
    assert found.dtype == np.float32
    for column, function in enumerate((np.sin, np.cos)):
        assert ulps(found[:, column], function(x.astype(float))) <= 2.0


@pytest.mark.parametrize("machine", MACHINES)
def test_arctangent_in_single_precision(machine: str) -> None:
    """The arctangent is accurate to 3 ulp of float32."""
    y, x = np.random.default_rng(4).normal(size=(2, 100_000)).astype(np.float32)
    x *= (10.0 ** np.random.default_rng(5).uniform(-12, 12, x.shape)).astype(np.float32)
    found = run(llvm.compile(program("atan2"), MACHINES[machine], "float32"), y, x)[:, 0]
    assert ulps(found, np.arctan2(y.astype(float), x.astype(float))) <= 3.0


@pytest.mark.parametrize("target", TARGETS)
def test_sine_and_cosine_of_what_is_no_angle(target: str) -> None:
    """Sine and cosine are NaN only for nonfinite arguments."""
    x = np.array([0.5, np.inf, -np.inf, np.nan, 1e300, 0.25, np.inf, 1e7, -0.5, np.nan])
    found = run(compile(program("sin", pair=True), target), x)
    assert np.array_equal(np.isnan(found), np.repeat(~np.isfinite(x)[:, None], 2, axis=1))
    expected = np.stack([np.sin(x[np.isfinite(x)]), np.cos(x[np.isfinite(x)])], axis=-1)
    np.testing.assert_allclose(found[np.isfinite(x)], expected, rtol=1e-15)


def test_one_large_angle_does_not_change_the_others() -> None:
    """The exact reduction of one lane leaves neighboring lanes bitwise unchanged."""
    kernel = llvm.compile(program("sin", pair=True))
    x = np.random.default_rng(2).uniform(-3.0, 3.0, 16)
    plain = run(kernel, x)
    for k in range(16):
        mixed = x.copy()
        mixed[k] = 1e12
        found = run(kernel, mixed)
        others = np.arange(16) != k
        assert np.array_equal(found[others], plain[others])
        np.testing.assert_allclose(found[k], [np.sin(1e12), np.cos(1e12)], rtol=1e-15)


# Arctangent ------------------------------------------------------------------------------------


@needs_long_double
@pytest.mark.parametrize("machine", MACHINES)
def test_arctangent(machine: str) -> None:
    """The arctangent is accurate to 3 ulp in all quadrants and for all ratios."""
    rng = np.random.default_rng(3)
    n = 200_000
    y, x = rng.normal(size=(2, n))
    scale = 10.0 ** rng.uniform(-140, 140, (2, n))
    kernel = llvm.compile(program("atan2"), MACHINES[machine])
    for a, b in ((y, x), (y * scale[0], x * scale[1]), (y, y * (1.0 + 1e-9 * x))):
        exact = np.arctan2(a.astype(LONG), b.astype(LONG))
        normal = np.abs(exact) > 1e-300
        found = run(kernel, a, b)[:, 0]
        assert ulps(found[normal], exact[normal]) <= 3.0
        np.testing.assert_allclose(found, exact.astype(float), rtol=1e-12, atol=1e-307)


@pytest.mark.parametrize("target", TARGETS)
def test_arctangent_of_zeros_and_infinities(target: str) -> None:
    """Results follow the recommendations of IEEE 754, including signs of zeros."""
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1.7e308]
    y, x = np.array(list(itertools.product(special, repeat=2))).T
    found, expected = run(compile(program("atan2"), target), y, x)[:, 0], np.arctan2(y, x)
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-322)
    known = ~np.isnan(expected)
    assert np.array_equal(np.signbit(found[known]), np.signbit(expected[known]))


# Every operation -------------------------------------------------------------------------------

SPECIAL = [0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan, 1e-310, 1e308, -1e308]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("op", [op for op in OPS if op not in ("input", "const")])
def test_every_operation_on_special_values(op: str, machine: str) -> None:
    """Machine code, NumPy and the interpreter agree, including NaN, alone and in a batch."""
    columns = np.array(list(itertools.product(SPECIAL, repeat=OPS[op].arity))).T
    written = program(op)
    kernels = {target: compile(written, target) for target in TARGETS if target != "llvm"}
    kernels["llvm"] = llvm.compile(written, MACHINES[machine])
    expected = [OPS[op].value(*map(float, row)) for row in columns.T]
    for kernel in kernels.values():
        found = run(kernel, *columns)[:, 0]
        np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-323)
        alone = [run(kernel, *(np.array([c]) for c in row))[0, 0] for row in columns.T]
        assert np.array_equal(alone, found, equal_nan=True)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("op", ["min", "max"])
def test_extrema_of_nan_are_nan(op: str, target: str) -> None:
    a, b = np.array([np.nan, 1.0, np.nan, 3.0, 1.0]), np.array([1.0, np.nan, np.nan, 2.0, 2.0])
    found = run(compile(program(op), target), a, b)[:, 0]
    assert np.array_equal(np.isnan(found), [True, True, True, False, False])
    assert np.array_equal(found[3:], getattr(np, f"{op}imum")(a, b)[3:])
