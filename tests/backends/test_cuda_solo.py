"""CUDA kernels in which each warp computes states of a large robot alone, run on the CPU."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_on_cpu import OnCPU
from support import close
from test_cuda_twins import expected, traced

import chasles
from chasles.backends.cuda import build as cuda_build
from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda import kernel as cuda_kernel
from chasles.backends.cuda.crew import Size, limbwise
from chasles.backends.cuda.parking import Slots
from chasles.backends.cuda.solo import Solo
from chasles.expr import RULES, Arena, Program, Variable, cos, sin
from chasles.functions.programs import program

CASES = [
    ("humanoid", "float64", "rows", Size(1, 60, columns=300)),
    ("uneven humanoid", "float64", "rows", Size(1, 100, columns=120)),  # uses local memory
    ("uneven humanoid", "float32", "columns", Size(1, 80, columns=160)),
    ("uneven quadruped", "float64", "rows", Size(1, 40, columns=110)),
]


def results(name: str, dtype: str, form: Any, crew: Size, tmp_path: Path) -> tuple[Any, Any]:
    """Return results of a kernel whose warps compute several states in turn, and a reference."""
    plain, rng = traced(name, similar=False), np.random.default_rng(6)
    inputs = [rng.uniform(-2.0, 2.0, (5, v.size)) for v in plain.inputs]
    inputs[0][2, -1] = 3e6
    inputs = [a.astype(dtype).astype(float) for a in inputs]
    blocks = 2 if form == "rows" else 5
    kernel = OnCPU(plain, dtype, form, tmp_path, crew=crew, blocks=blocks)
    return kernel(inputs, columns=form == "columns"), expected(plain, inputs)


@pytest.mark.parametrize(("name", "dtype", "form", "crew"), CASES)
def test_results(name: str, dtype: str, form: Any, crew: Size, tmp_path: Path) -> None:
    for got, right in zip(*results(name, dtype, form, crew, tmp_path), strict=True):
        close(got, right, 1e-10 if dtype == "float64" else 2e-3)


FAULTS = {
    "a result overwrites a parked value": ("_end", lambda _self, _slot: sys.maxsize),
    "two values share a slot": ("give", lambda self, slot, _now: self._free.extend((slot, slot))),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors in the allocation of shared-memory slots give wrong results."""
    name, careless = FAULTS[fault]
    monkeypatch.setattr(Slots, name, careless)
    (got,), (right,) = results(*CASES[0], tmp_path)
    assert not np.allclose(got, right, rtol=1e-6)


def test_few_values_are_live() -> None:
    """Computing limb by limb keeps fewer values alive at the same time."""
    for name in ("humanoid", "uneven quadruped"):
        plain = traced(name, similar=False)
        own, other = limbwise(plain), cuda_build.planned(plain)
        assert sorted(own.order) == sorted(set(own.order))
        assert own.words(4) < other.words(4)


def test_where_warps_compute_alone() -> None:
    """Warps compute alone for the forward dynamics of humanoids in float32, but not in float64.

    Fewer float64 values fit.
    """
    robot = chasles.load("talos_reduced", floating=True)
    talos = program(robot.model, "forward_dynamics", similar=True)
    for made in (traced("humanoid"), talos):
        for dtype, alone in (("float32", True), ("float64", False)):
            chosen = cuda_build._crew(made, dtype, "sm_90", "rows")
            assert chosen is not None
            assert isinstance(chosen.crew, Solo) == alone
            if alone:
                assert chosen.crew.shared * cuda_build.ALL <= cuda_build.shared_memory("sm_90")
    assert not isinstance(cuda_build._few(talos, "float32", "sm_90"), Solo)


def test_blocks_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch has as many blocks as fit on the GPU. Small batches use blocks of one warp."""
    monkeypatch.setattr(cuda_driver, "multiprocessors", lambda _: 10)
    built = cuda_build.Built("rows", 256, 29056, (), 255, 0, b"", stays=True)
    launches = []
    for count in (5000, 1_000_000):
        states, threads, shared = cuda_kernel.block(built, count)
        launches.append((states, threads, shared, cuda_kernel.most_blocks(built, threads, 0)))
    assert launches == [(32, 32, 29056, 80), (256, 256, 8 * 29056, 10)]


def test_angles_in_a_region_of_results(tmp_path: Path) -> None:
    """An input that is used both as an angle and as a value may be overwritten by a result."""
    arena = Arena(RULES)
    x, u = (arena.input("x", k) for k in range(2)), arena.input("u", 0)
    a, b = x
    total = a * b * cos(a + 0.5) + sin(b + 0.25) * u
    y = [total + a, total - b]
    inputs = [Variable("x", (2,)), Variable("u", (1,))]
    made = Program.from_outputs("f", inputs, [(Variable("y", (2,)), y)])
    size = Size(1, 9, columns=30)
    solo = Solo(made, "float64", "rows", size)
    assert solo.results[0] == solo.regions[0]
    given = [np.random.default_rng(1).normal(size=(7, v.size)) for v in inputs]
    kernel = OnCPU(made, "float64", "rows", tmp_path, crew=size, blocks=3)
    (got,), (right,) = kernel(given), expected(made, given)
    close(got, right, 1e-14)
