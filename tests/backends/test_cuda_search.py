"""Inverse kinematics of CuPy arrays on an imitated GPU, with kernels compiled as C++."""

import ctypes
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cupy_on_cpu
import numpy as np
import pytest
from cuda_on_cpu import shared_library
from gpu_on_cpu import STREAM
from support import raises

import chasles
from chasles.backends.cuda import build as cuda_build
from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda import kernel as cuda
from chasles.backends.cuda import search as cuda_search
from chasles.backends.cuda import searching
from chasles.backends.cuda.build import Built
from chasles.backends.cuda.source import source
from chasles.functions.reaching import Task
from chasles.functions.targets import Axis, Pose, Position
from chasles.robots import five_bar, planar, puma560

RNG = np.random.default_rng(7)

RUN = """
extern "C" void run(long long* p) {{
  {loop} {name}({arguments});
}}
"""


_LIMITS = ["long long", "long long", "double*", "double*"]
_RANKED = ["long long", "double*", "float*", "long long", "float*", "unsigned char*"]
AROUND = {
    "rank": [*_RANKED, *["float*"] * 2, *["long long", "double*"] * 2],
    "narrow": [*_LIMITS, "float*", "double*"],
    "look": [*_LIMITS, "double*", "long long", "double*", "signed char*", "bool*"],
}
"""Kernels that run before and after the searches, and their parameter types."""


class Loaded:
    """Kernel compiled for the CPU that replaces one loaded by the driver."""

    def __init__(self, text: str, name: str, kinds: Sequence[str], folder: Path, loop: str = ""):
        arguments = ", ".join(f"({kind})p[{k}]" for k, kind in enumerate(kinds))
        text += RUN.format(loop=loop, name=name, arguments=arguments)
        self._run = shared_library(text, folder).run

    def launch(self, grid: Any, block: Any, shared: int, parameters: Any, *where: Any) -> None:
        assert where == (STREAM, 0)
        self._run((ctypes.c_longlong * len(parameters))(*parameters))


@pytest.fixture(autouse=True)
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replace the driver and CuPy: kernels are compiled for the CPU on request."""
    kernels: dict[bytes, Loaded] = {}

    def build(program: Any, dtype: str, target: str, layout: Any) -> Built:
        code = f"{program.hash} {dtype} {layout}".encode()
        text = source(program, dtype, layout, block=32)
        kinds = ["long long"] * 6 + ["unsigned char*", "real*", "int*", "unsigned long long*"]
        kinds += ["unsigned long long*"]
        kinds += ["real*", "long long"] * (len(program.inputs) + len(program.outputs))
        kernels[code] = Loaded(text.text, "kernel", kinds, tmp_path)
        return Built(layout, 128, text.shared, (), 0, 0, code)

    def around(_: str, size: int, rotations: tuple[int, ...], name: str) -> Loaded:
        loop = "for (blockIdx.x = 0; blockIdx.x < p[0]; blockIdx.x++)"
        text = searching.around(size, rotations)
        return Loaded(text, name, AROUND[name], tmp_path, loop)

    monkeypatch.setenv("CHASLES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "cupy", cupy_on_cpu.module())
    monkeypatch.setattr(cuda, "build", build)
    monkeypatch.setattr(cuda, "Function", lambda code, *_: kernels[code])
    for module in (cuda, cuda_search):
        monkeypatch.setattr(module, "architecture", lambda _: "sm_90")
    monkeypatch.setattr(cuda_search, "_around", around)
    monkeypatch.setattr(cuda_driver, "version", lambda: (13, 0))
    yield
    sys.modules.pop("chasles.functions.libraries.solving_cupy", None)


def poses(robot: chasles.Robot, frame: str, *lead: int) -> np.ndarray:
    return np.asarray(robot.forward_kinematics(robot.random(RNG, size=lead), frame=frame))


def there(a: Any, dtype: str = "float64") -> Any:
    return cupy_on_cpu.asarray(a, dtype)


def test_poses_are_reached_within_the_limits() -> None:
    robot = puma560()
    T = poses(robot, "tool", 20, 5)
    found = robot.inverse_kinematics({"tool": there(T)})
    assert isinstance(found.q, cupy_on_cpu.Array)
    assert found.q.shape == (20, 5, 6)
    assert found.solved.all()
    q = cupy_on_cpu.asnumpy(found.q)
    assert robot.within(q).all()
    assert np.abs(robot.forward_kinematics(q, frame="tool") - T).max() < 2e-6
    assert found.residual.max() <= 1e-6
    assert 2 <= found.iterations.mean() <= 40


def test_a_problem_has_the_same_bits_anywhere() -> None:
    robot = puma560()
    T = poses(robot, "tool", 30)
    whole = robot.inverse_kinematics({"tool": there(T)})
    turned = robot.inverse_kinematics({"tool": there(T[::-1])})
    alone = robot.inverse_kinematics({"tool": there(T[7])})
    assert np.array_equal(whole.q, turned.q[::-1])
    assert np.array_equal(whole.q[7], alone.q)
    assert alone.solved.shape == ()


def test_targets_out_of_reach_and_malformed() -> None:
    """Unreachable targets have nearly the CPU's residual. Malformed targets give NaN."""
    robot = planar(3)
    T = poses(robot, robot.frames[-1], 4)
    T[1, 0, 3] += 100.0
    T[2, 0, 0] = np.nan
    T[3, :3, :3] *= 1.1
    given = {robot.frames[-1]: there(T)}
    found = robot.inverse_kinematics(given)
    right = robot.inverse_kinematics({robot.frames[-1]: T[:2]})
    assert found.solved.tolist() == [True, False, False, False]
    assert np.isnan(found.q[2:]).all()
    assert np.allclose(found.residual[1], right.residual[1], rtol=1e-3)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_guess_fixed_and_other_targets(dtype: str) -> None:
    robot = puma560()
    q = robot.random(RNG, size=10)
    at = robot.forward_kinematics(q, frame="tool")
    targets = {"tool": [Position(there(at[:, :3, 3], dtype)), Axis(there(at[:, :3, 2], dtype))]}
    guess = robot.clip(q[0])
    found = robot.inverse_kinematics(targets, guess=guess)
    assert found.q.dtype == dtype
    assert found.solved.all()
    only = {"tool": Position(there(at[0, :3, 3]))}
    held = robot.inverse_kinematics(only, guess=guess, fixed=[robot.joints[0]])
    assert held.solved
    assert held.q[0] == guess[0]


def test_closed_loops() -> None:
    robot = five_bar()
    frame = robot.bodies[-1]
    q = robot.assemble(0.2 * RNG.normal(size=(5, len(robot.independent))), robot.neutral())
    point = robot.forward_kinematics(q, frame=frame)[:, :3, 3]
    found = robot.inverse_kinematics({frame: Position(there(point))})
    assert found.solved.all()
    assert np.abs(robot.loop_residual(cupy_on_cpu.asnumpy(found.q))).max() < 1e-10


def test_refusals() -> None:
    robot = puma560()
    T = there(poses(robot, "tool", 2))
    many, joint = np.zeros((2, 6)), robot.joints[0]
    cases: list[tuple[str, Any, dict[str, Any]]] = [
        ("E-GPU-033", T, {"solutions": "all"}),
        ("E-GPU-034", T, {"guess": np.zeros(3)}),
        ("E-GPU-035", T, {"guess": np.zeros((3, 6))}),
        ("E-GPU-036", T, {"guess": many, "fixed": joint}),
        ("E-CALL-360", there(np.zeros((2, 3))), {}),
    ]
    for code, target, options in cases:
        with raises(code):
            robot.inverse_kinematics({"tool": target}, **options)


@pytest.mark.skipif(sys.platform != "linux", reason="NVIDIA's compiler is there on Linux only")
def test_an_arm_stays_in_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    robot = puma560()
    limits = robot.limits.lower, robot.limits.upper
    task = Task(robot.model, (("tool", Pose(np.eye(4))),), *limits)
    cases: list[tuple[str, str, Any]] = [
        ("float32", "sm_90", "search"),
        ("float64", "sm_90", "search"),
        ("float64", "sm_90", "tries"),
        ("float32", "sm_75", "search"),
    ]
    for dtype, architecture, layout in cases:
        program = task.step_program(rough=dtype == "float32")
        built = cuda_build.build(program, dtype, architecture, layout)
        assert 0 < built.registers <= cuda_build.MOST
        assert built.spilled == 0
    assert cuda_driver.compile(searching.around(12, (0,)), "sm_90").spilled == 0
