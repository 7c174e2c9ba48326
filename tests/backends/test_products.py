"""Staged programs, which end with matrix products, agree with straight-line programs."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support import pairwise

import chasles
from chasles.backends.llvm import kernel as llvm
from chasles.backends.llvm import source
from chasles.backends.llvm.packing import packed
from chasles.expr import RULES, Arena, Program, Staged, Variable, interpret
from chasles.functions.programs import Derivative, program, runnable

SLOPES = Derivative("jacobian", ("q", "qd", "tau"))
SPREAD = {"columns": 0, "states": 10**9}
"""Limits on the number of products below which a lane of a batch computes one state.

A lane computes a column of a matrix above the limit.
"""

CASES = [("mass_matrix_inverse", None), ("forward_dynamics", SLOPES), ("linearize", None)]


def rows(kernel, inputs, outputs):
    found = [np.full((len(inputs[0]), v.size), np.nan, kernel.dtype) for v in outputs]
    kernel([np.ascontiguousarray(a, kernel.dtype) for a in inputs], found)
    return found


@pytest.mark.parametrize(
    ("case", "dtype", "states"),
    pairwise(CASES, ["float64", "float32"], [(1, "columns"), (9, "columns"), (24, "states")]),
)
def test_staged_programs_give_what_straight_ones_give(branched, case, dtype, states, monkeypatch):
    (function, derivative), (count, lanes) = case, states
    monkeypatch.setattr(source, "SPREAD", SPREAD[lanes])
    staged, expected = both(function, derivative)
    inputs = [branched[1][v.name][:count] for v in staged.inputs]
    got = rows(llvm.compile(staged, dtype=dtype), inputs, staged.outputs)
    allowed = 1e-11 if dtype == "float64" else 2e-3
    for row in range(count):
        for found, v in zip(got, staged.outputs, strict=True):
            right = expected[row][v.name]
            assert np.abs(found[row] - right).max() <= allowed * np.abs(right).max()


@cache
def both(function, derivative):
    """Return a staged program, and the results of the straight-line program for the same states."""
    robot, states = walking()
    staged = runnable(robot.model, function, derivative=derivative, staged=0)
    assert isinstance(staged, Staged)
    plain = program(robot.model, function, derivative=derivative)
    assert staged.outputs == plain.outputs
    given = [{v.name: states[v.name][row] for v in plain.inputs} for row in range(24)]
    return staged, [interpret(plain, one) for one in given]


@pytest.fixture(scope="module")
def branched():
    return walking()


@cache
def walking():
    """Return a robot with a floating base and branches, and its states.

    Its 18 degrees of freedom are not a multiple of 4 or 8 lanes.
    """
    robot = chasles.robots.quadruped()
    rng = np.random.default_rng(7)
    q = robot.random(rng, size=24)
    qd, tau = rng.normal(size=(2, 24, robot.nv))
    return robot, {"q": q, "qd": qd, "tau": tau}


@pytest.mark.parametrize("lanes", ["columns", "states"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_state_and_a_batch_have_the_same_bits(branched, dtype, lanes, monkeypatch):
    monkeypatch.setattr(source, "SPREAD", SPREAD[lanes])
    states = branched[1]
    staged, _ = both("forward_dynamics", SLOPES)
    kernel = llvm.compile(staged, dtype=dtype)
    inputs = [states[v.name] for v in staged.inputs]
    whole = rows(kernel, inputs, staged.outputs)
    for k in range(24):
        alone = rows(kernel, [a[k : k + 1] for a in inputs], staged.outputs)
        assert all(np.array_equal(a[0], b[k]) for a, b in zip(alone, whole, strict=True))


def test_without_fused_products_too(branched):
    robot, states = branched
    staged, _ = both("mass_matrix_inverse", None)
    kernel = llvm.compile(staged, llvm.Machine.host().without_fma())
    (found,) = rows(kernel, [states["q"]], staged.outputs)
    M = robot.mass_matrix(states["q"])
    n = robot.nv
    assert np.allclose(found.reshape(-1, n, n) @ M, np.eye(n), atol=1e-8)


@pytest.mark.parametrize("lanes", ["columns", "states"])
@pytest.mark.parametrize("width", [2, 4, 8])
def test_every_number_of_lanes(branched, width, lanes, monkeypatch):
    monkeypatch.setattr(source, "SPREAD", SPREAD[lanes])
    robot, states = branched
    staged, _ = both("mass_matrix_inverse", None)
    kernel = llvm.compile(staged, replace(llvm.Machine.host(), width=width))
    (found,) = rows(kernel, [states["q"]], staged.outputs)
    expected = robot.mass_matrix_inverse(states["q"]).reshape(24, -1)
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_constants_zeros_and_narrow_matrices():
    """Products are correct for constant entries, rows of zeros, and few columns."""
    arena = Arena(RULES)
    x, y = (arena.input("x", k) for k in range(2))
    left = [2.0, x, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, y]
    right = [x, 0.0, 0.0, y, -3.0, x * y]
    head = Program.from_outputs(
        "small",
        [Variable("x", (2,))],
        [(Variable("A", (3, 3)), left), (Variable("B", (3, 2)), right)],
    )
    staged = Staged("small", head.inputs, (Variable("result", (3, 2)),), (), head, ((0, 1),))
    a, b = 0.7, -1.3
    expected = np.reshape([2, a, 0, 1, 0, 0, 0, 0, b], (3, 3)) @ np.reshape(
        [a, 0, 0, b, -3, a * b], (3, 2)
    )
    for count in (1, 10):
        given = np.tile([a, b], (count, 1))
        (found,) = rows(llvm.compile(staged), [given], staged.outputs)
        assert np.allclose(found, expected.ravel(), rtol=1e-15, atol=1e-15)
    assert staged.products == 5


def test_large_robots_are_staged_and_small_ones_are_not(branched):
    robot = chasles.robots.planar(16)
    compiled = chasles.compile(robot, "forward_dynamics", wrt=("q", "qd", "tau"))
    assert isinstance(compiled.compiled, Staged)
    assert isinstance(compiled.program, Program)
    small = chasles.compile(chasles.robots.planar(3), "forward_dynamics", wrt=("q", "qd", "tau"))
    assert small.compiled is small.program


def test_limbs_are_packed_into_vectors():
    """The columns of each limb share a vector, although limbs are not aligned with vectors.

    The columns of a trunk are nonzero in all rows. Four limbs have three columns each.
    """
    trunk, limbs = [0b11111111111111] * 2, [0b11 | 0b111 << 2 + 3 * k for k in range(4)]
    patterns = [*trunk, *(limbs[k] for k in range(4) for _ in range(3))]
    packs = packed(patterns, 4)
    assert sorted(c for columns in packs for c in columns) == list(range(14))
    assert all(len(columns) <= 4 for columns in packs)
    for k in range(4):
        assert any({2 + 3 * k, 3 + 3 * k, 4 + 3 * k} <= set(columns) for columns in packs)


@pytest.mark.parametrize("width", [2, 4, 8, 16])
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 38])
def test_full_columns_stay_in_order(columns, width):
    expected = [tuple(range(columns))[k : k + width] for k in range(0, columns, width)]
    assert packed([0b111] * columns, width) == expected
