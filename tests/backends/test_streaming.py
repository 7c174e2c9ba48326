"""Large results written with stores that bypass the cache, for all alignments of the rows."""

import numpy as np
import pytest
from support import tree

from chasles.backends.llvm import kernel as llvm
from chasles.backends.llvm import source as llvm_source
from chasles.functions import programs
from chasles.robots import general_chain


def _aligned(count: int, size: int, dtype: type, shift: int) -> np.ndarray:
    """Return rows in C order that start `shift` entries after a multiple of 64 bytes."""
    memory = np.full(count * size + 64, np.nan, dtype)
    start = (-memory.ctypes.data // memory.itemsize) % (64 // memory.itemsize) + shift
    return memory[start : start + count * size].reshape(count, size)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("joints", [16, 12, 11, 2])
def test_rows_are_the_same_past_the_cache(
    joints: int, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of all alignments and lengths are written correctly, even with partial half vectors."""
    robot = general_chain(joints)
    program = programs.program(robot.model, "mass_matrix")
    usual = llvm.compile(program, dtype=np.dtype(dtype).name)
    monkeypatch.setattr(llvm_source, "PAST", 0)
    streaming = llvm.compile(program, dtype=np.dtype(dtype).name)
    q = robot.random(np.random.default_rng(0), size=37).astype(dtype)
    n = joints**2
    expected = np.empty((37, n), dtype)
    usual([q], [expected], 1)
    for shift in range(9):
        for threads in (1, 2):
            out = _aligned(37, n, dtype, shift)
            streaming([q], [out], threads)
            assert np.array_equal(out, expected)
    wide = _aligned(37, n + 8, dtype, 0)
    streaming([q], [wide[:, :n]], 1)
    assert np.array_equal(wide[:, :n], expected)
    assert np.all(np.isnan(wide[:, n:])), "what stands between the rows is left alone"


def test_several_results_past_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = general_chain(7)
    program = programs.program(robot.model, "closed_form")
    q = robot.random(np.random.default_rng(0), size=21)
    found = []
    for past in (1 << 40, 0):
        monkeypatch.setattr(llvm_source, "PAST", past)
        found.append([np.full((21, v.size), np.nan) for v in program.outputs])
        llvm.compile(program)([q], found[-1], 1)
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


def test_constants_and_zeros_past_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = tree(24, 3, floating=True)
    program = programs.program(robot.model, "mass_matrix")
    expected = np.empty((21, robot.nv**2))
    q = robot.random(np.random.default_rng(0), size=21)
    llvm.compile(program)([q], [expected], 1)
    monkeypatch.setattr(llvm_source, "PAST", 0)
    out = _aligned(21, robot.nv**2, np.float64, 0)
    llvm.compile(program)([q], [out], 1)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("joints", [12, 17])
def test_products_past_the_cache(monkeypatch: pytest.MonkeyPatch, joints: int, dtype: type) -> None:
    """Matrices of all alignments and of even and odd sizes are correct, with and without gaps."""
    robot, name = general_chain(joints), np.dtype(dtype).name
    slopes = programs.Derivative("jacobian", ("q", "tau"))
    staged = programs.runnable(robot.model, "forward_dynamics", derivative=slopes, staged=0)
    monkeypatch.setattr(llvm_source, "SPREAD", 0)
    usual = llvm.compile(staged, dtype=name)
    monkeypatch.setattr(llvm_source, "PAST", 0)
    streaming = llvm.compile(staged, dtype=name)
    rng, n = np.random.default_rng(0), joints**2
    inputs = [rng.normal(size=(11, joints)).astype(dtype) for _ in range(3)]
    expected = [np.empty((11, n), dtype) for _ in range(2)]
    usual(inputs, expected, 1)
    for shift in range(9):
        for gap in (0, 8):
            wide = [_aligned(11, n + gap, dtype, shift + k) for k in range(2)]
            streaming(inputs, [out[:, :n] for out in wide], 1)
            for out, right in zip(wide, expected, strict=True):
                assert np.array_equal(out[:, :n], right)
                assert np.all(np.isnan(out[:, n:])), "what stands between the rows is left alone"
