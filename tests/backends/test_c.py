"""Compare C code with the interpreter: all operations, random programs, sines, and batches."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from c_compiler import FAST, STRICT, Native, compiler, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import close, state, tree
from test_elementary import LONG, SPECIAL, angles, needs_long_double, program, ulps
from test_random_programs import EXACT, programs, rows

import chasles
from chasles.backends import lowering
from chasles.backends.c import function as c_function
from chasles.backends.c.body import DOUBLE, FLOAT, NUMBERS, SPELLING, Number
from chasles.backends.c.function import LIMIT
from chasles.expr import OPS, Program, Variable, interpret

CONTRACTED = {"contracted": FAST, "not contracted": ("-O2", "-ffp-contract=off")}


def truth(program: Program, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Evaluate every row with the interpreter."""
    names = [v.name for v in program.inputs]
    count = len(inputs[0])
    found = [
        interpret(program, dict(zip(names, (x[k] for x in inputs), strict=True)))
        for k in range(count)
    ]
    return [
        np.array([row[v.name] for row in found]).reshape(count, v.size) for v in program.outputs
    ]


# Operations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [op for op in OPS if op not in ("input", "const")])
def test_every_operation_on_special_values(op: str, tmp_path: Path) -> None:
    columns = np.array(list(itertools.product(SPECIAL, repeat=OPS[op].arity)))
    native = Native(program(op), tmp_path, "-O2")
    expected = np.array([OPS[op].value(*map(float, row)) for row in columns])[:, None]
    for found in (native.one(columns)[0], native.batch(columns)[0]):
        np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-323)


def test_spelling_has_every_operation() -> None:
    assert set(SPELLING) - {"fma", "fms", "fnma"} == set(OPS) - {"input", "const"}


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_literals_are_exact(number: Number, tmp_path: Path) -> None:
    """Constants of all magnitudes are printed as literals without rounding errors."""
    values = np.concatenate(
        [np.random.default_rng(0).normal(size=20), [0.1, 1e-30, -1e30, 1e-42, 3.0]]
    )
    kind = np.dtype(number.dtype).type
    values = values.astype(kind).astype(float)
    written = Program.from_outputs(
        "constants", [Variable("x", (1,))], [(Variable("y", (25,)), list(values))]
    )
    native = Native(written, tmp_path, number=number)
    assert np.array_equal(native.one(np.zeros((1, 1)))[0][0].astype(float), values)
    assert np.array_equal(native.batch(np.zeros((19, 1)))[0][18].astype(float), values)


# Programs --------------------------------------------------------------------------------------


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(programs(EXACT), st.integers(3, 80), st.integers(1, 40))
def test_exact_operations(tmp_path: Path, program: Program, longest: int, count: int) -> None:
    """Without fused multiply-add, C code split at any length equals the interpreter exactly."""
    inputs = rows(program, count, longest)

    def plainly(given: Program, *, fuse: bool, longest: int) -> lowering.Lowered:
        return lowering.lower(given, fuse=False, longest=longest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(c_function, "LONGEST", longest)
        patch.setattr(c_function, "lower", plainly)
        native = Native(program, tmp_path, "-O1", "-ffp-contract=off")
    for found in (native.one(*inputs), native.batch(*inputs)):
        for a, b in zip(found, truth(program, inputs), strict=True):
            assert np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize(
    ("number", "own_sine", "longest"),
    [(DOUBLE, False, 2000), (DOUBLE, True, 150), (FLOAT, True, 150)],
)
def test_dynamics_of_a_tree(
    number: Number, own_sine: bool, longest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inverse dynamics is correct in one function and in parts, for batches of any remainder."""
    robot = tree(5, 3)
    traced = chasles.compile(robot, "inverse_dynamics", backend="interpret").program
    q, qd, qdd = state(robot, 1, 33)
    exact = robot.inverse_dynamics(q, qd, qdd)
    tolerance = 1e-12 if number is DOUBLE else 1e-4
    monkeypatch.setattr(c_function, "LONGEST", longest)
    native = Native(traced, tmp_path, "-O1", number=number, own_sine=own_sine)
    close(native.one(q, qd, qdd)[0], exact, tolerance)
    for count in (0, 1, 15, 16, 17, 33):
        found = native.batch(q[:count], qd[:count], qdd[:count])[0]
        close(found, exact[:count], tolerance, np.max(np.abs(exact)))


def test_large_results_are_computed_one_by_one(tmp_path: Path) -> None:
    """A batch whose columns exceed the stack limit calls the function for single states."""
    robot = chasles.robots.planar(3)
    traced = chasles.compile(robot, "mass_matrix", backend="interpret").program
    q = robot.random(0, size=21)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(c_function, "MOST_STACK", 64)
        native = Native(traced, tmp_path)
    assert np.array_equal(native.batch(q)[0], native.one(q)[0])
    close(native.one(q)[0], robot.mass_matrix(q).reshape(21, -1), 1e-14)


# Sine and cosine -------------------------------------------------------------------------------


@needs_long_double
@pytest.mark.parametrize("way", CONTRACTED)
def test_sine_and_cosine(way: str, tmp_path: Path) -> None:
    """Sine and cosine are accurate to 2 ulp for angles of all magnitudes, even near their zeros."""
    native = Native(program("sin", pair=True), tmp_path, *CONTRACTED[way], own_sine=True)
    for x in angles().values():
        with np.errstate(all="ignore"):
            exact = [f(x.astype(LONG)) for f in (np.sin, np.cos)]
        found = native.batch(x[:, None])[0]
        for column, values in enumerate(exact):
            assert ulps(found[:, column], values) <= 2.0
        for k in range(0, len(x), len(x) // 200):
            alone = native.one(x[k : k + 1, None])[0][0]
            assert all(ulps(alone[[c]], exact[c][[k]]) <= 2.0 for c in (0, 1))


@pytest.mark.parametrize("way", CONTRACTED)
def test_sine_and_cosine_in_single_precision(way: str, tmp_path: Path) -> None:
    """Sine and cosine are accurate to 2 ulp of float32 below and above the limit.

    The reference is double precision.
    """
    native = Native(
        program("sin", pair=True), tmp_path, *CONTRACTED[way], number=FLOAT, own_sine=True
    )
    rng = np.random.default_rng(6)
    near = np.rint(rng.uniform(-1.0, 1.0, 200_000) * LIMIT["float32"]) * (np.pi / 2.0)
    for x in (rng.uniform(-2200.0, 2200.0, 200_000), near, rng.uniform(-4.0, 4.0, 200_000)):
        x = x.astype(np.float32)
        x += rng.integers(-3, 4, x.shape).astype(np.float32) * np.spacing(x)
        found = native.batch(x[:, None])[0]
        for column, function in enumerate((np.sin, np.cos)):
            assert ulps(found[:, column], function(x.astype(float))) <= 2.0


def test_one_large_angle_changes_no_other_state(tmp_path: Path) -> None:
    """A large or nonfinite angle changes no other state. Large angles give accurate values."""
    native = Native(program("sin", pair=True), tmp_path, *FAST, own_sine=True)
    x = np.random.default_rng(2).uniform(-3.0, 3.0, 20)
    plain = native.batch(x[:, None])[0]
    for value in (1e12, np.nan, np.inf):
        mixed = x.copy()
        mixed[5] = value
        found = native.batch(mixed[:, None])[0]
        with np.errstate(invalid="ignore"):
            expected = [np.sin(value), np.cos(value)]
        np.testing.assert_allclose(found[5], expected, rtol=1e-15)
        others = np.arange(20) != 5
        np.testing.assert_allclose(found[others], plain[others], rtol=5e-16)


# Compiler output -------------------------------------------------------------------------------


def test_batches_are_vectorised(tmp_path: Path) -> None:
    """The loop over lanes of a whole arm, including sines, is vectorized by the compiler."""
    robot = chasles.robots.puma560()
    Native(chasles.compile(robot, "inverse_dynamics", backend="interpret").program, tmp_path)
    done = run(
        compiler(), *STRICT, *FAST, "-fopt-info-vec-optimized", "-c", tmp_path / "tried.c",
        "-o", tmp_path / "tried.o",
    )  # fmt: skip
    lines = (tmp_path / "tried.c").read_text().splitlines()
    loops = [n for n, line in enumerate(lines, 1) if "i < LANES; ++i" in line]
    inner = [n for n in loops if lines[n - 2].strip() == "int beyond = 0;"]
    assert len(inner) == 1
    assert re.search(rf"tried\.c:{inner[0]}:\d+: optimized: loop vectorized", done.stderr)
