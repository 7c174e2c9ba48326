"""CUDA kernels compiled for an H200 by NVIDIA's compiler, which needs no GPU, and its reports."""

import sys
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles.algorithms import FUNCTIONS
from chasles.backends.cuda import build as cuda_build
from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda.source import spreading
from chasles.expr import Program
from chasles.functions.programs import spaces
from chasles.robots import humanoid, puma560, quadruped

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="NVIDIA's compiler is a test dependency on Linux only"
)

ARM, QUADRUPED, HUMANOID = puma560(), quadruped(), humanoid()


def program_of(robot: chasles.Robot, function: str, **options: Any) -> Program:
    if "frame" in spaces(function).options:
        options["frame"] = robot.frames[-1]
    return chasles.compile(robot, function, backend="interpret", **options).program


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_of_an_arm(function: str) -> None:
    """Every function of an arm compiles within the shared memory and spills no registers."""
    program = program_of(ARM, function)
    built = cuda_build.build(program, "float32", "sm_90", "rows")
    assert 0 < built.registers <= cuda_build.MOST
    assert built.spilled == 0
    assert built.shared <= 1024 * cuda_build.SHARED["sm_90"]


@pytest.mark.parametrize(
    ("robot", "function", "dtype", "most", "layout"),
    [
        (ARM, "inverse_dynamics", "float64", 0, "rows"),
        (ARM, "inverse_dynamics", "float64", 0, "strided"),
        (ARM, "forward_dynamics", "float64", 0, "strided"),
        (QUADRUPED, "inverse_dynamics", "float32", 0, "rows"),
        (QUADRUPED, "inverse_dynamics", "float64", 0, "strided"),
        (QUADRUPED, "mass_matrix", "float64", 0, "rows"),
        (HUMANOID, "inverse_dynamics", "float32", 0, "strided"),
        (HUMANOID, "inverse_dynamics", "float64", 512, "rows"),
    ],
)
def test_spilled_bytes(
    robot: chasles.Robot, function: str, dtype: str, most: int, layout: Any
) -> None:
    """Long programs spill only a few bytes per thread."""
    built = cuda_build.build(program_of(robot, function), dtype, "sm_90", layout)
    assert built.spilled <= most


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_120"])
def test_other_architectures(architecture: str) -> None:
    """Kernels compile for older GPUs without bulk asynchronous copies, and for newer GPUs."""
    program = program_of(QUADRUPED, "inverse_dynamics")
    for layout in ("rows", "strided"):
        built = cuda_build.build(program, "float32", architecture, layout)
        assert built.shared <= 1024 * cuda_build.SHARED.get(architecture, 99)


def test_spreading() -> None:
    for dtype in ("float32", "float64"):
        assert cuda_driver.compile(spreading(dtype), "sm_90").spilled == 0


def test_the_report_comes_again() -> None:
    """Compiling a text again runs the compiler again, because a cached result has no report."""
    made = [cuda_driver.compile(spreading("float32"), "sm_90") for _ in range(2)]
    assert made[0].registers == made[1].registers > 0


@pytest.mark.parametrize(("share", "times"), [(0.0, 1), (0.009, 1), (0.02, 2)])
def test_cuts_are_for_many_spilled_values(
    monkeypatch: pytest.MonkeyPatch, share: float, times: int
) -> None:
    """A program is compiled a second time, with cuts, only if many values are spilled.

    The compiler can take minutes for a text with cuts, and would save few values.
    """
    program, texts = program_of(QUADRUPED, "mass_matrix"), []

    def compiled(text: str, _: str) -> cuda_driver.Compiled:
        texts.append(text)
        return cuda_driver.Compiled(b"", 255, int(share * len(program.code)) * 8)

    monkeypatch.setattr(cuda_driver, "compile", compiled)
    cuda_build._machine_code.cache_clear()
    for _ in range(2):
        cuda_build.build(program, "float64", "sm_90", "rows")
    cuda_build._machine_code.cache_clear()
    assert len(texts) == times


def test_refusal() -> None:
    with raises("E-GPU-016"):
        cuda_driver.compile("__global__ void kernel() { nonsense(); }", "sm_90")


def test_kept_and_read() -> None:
    built = cuda_build.build(program_of(ARM, "mass_matrix"), "float32", "sm_90", "rows")
    assert cuda_build.Built.from_bytes(built.to_bytes()) == built
    assert np.frombuffer(built.code[:4], np.uint8).tolist() == [0x7F, *b"ELF"]
