"""Rollouts of CuPy arrays on an imitated GPU: kernels are compiled as C++, and CuPy is NumPy.

The reference is a rollout on the CPU, in machine code that shares nothing with the CUDA text.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cupy_on_cpu
import numpy as np
import pytest
from cuda_on_cpu import OnCPU
from gpu_on_cpu import STREAM
from loop_on_cpu import LoopOnCPU
from support import close, raises, tree

import chasles
from chasles import contact
from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda import kernel as cuda
from chasles.backends.cuda.build import Built
from chasles.expr import sin
from chasles.motion.drivers.compiled import prepared
from chasles.robots import planar
from chasles.rollouts import Trajectory

RNG = np.random.default_rng(11)
ARM = planar(2)
LAUNCHES: list[tuple[Any, Any, int]] = []


class Loaded:
    """Kernel that replaces one loaded by the driver."""

    def __init__(self, kernel: LoopOnCPU | OnCPU) -> None:
        self.kernel = kernel

    def launch(self, grid: Any, block: Any, shared: int, parameters: Any, *where: Any) -> None:
        assert where == (STREAM, 0)
        LAUNCHES.append((grid, block, shared))
        self.kernel.launched(parameters)


@pytest.fixture(autouse=True)
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replace the driver and CuPy: kernels are compiled for the CPU on request."""
    kernels: dict[bytes, LoopOnCPU | OnCPU] = {}

    def build(program: Any, dtype: str, target: str, layout: str) -> Built:
        code = f"{program.hash} {dtype} {layout}".encode()
        if layout == "loop":
            kernels[code] = LoopOnCPU(program, dtype, tmp_path)
        else:
            kernels[code] = OnCPU(program, dtype, "direct", tmp_path)
        return Built("loop" if layout == "loop" else "direct", 128, 0, (), 0, 0, code)

    monkeypatch.setenv("CHASLES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "cupy", cupy_on_cpu.module())
    monkeypatch.delitem(sys.modules, "chasles.functions.libraries.cupy", raising=False)
    monkeypatch.setattr(cuda, "build", build)
    monkeypatch.setattr(cuda, "_cupy", lambda: sys.modules["cupy"])
    monkeypatch.setattr(cuda, "Function", lambda code, *_: Loaded(kernels[code]))
    monkeypatch.setattr(cuda, "architecture", lambda _: "sm_90")
    monkeypatch.setattr(cuda_driver, "version", lambda: (13, 0))
    LAUNCHES.clear()
    yield
    sys.modules.pop("chasles.functions.libraries.cupy", None)


def start(robot: chasles.Robot, *lead: int) -> tuple[np.ndarray, np.ndarray]:
    return robot.random(RNG, size=lead), RNG.uniform(-1.0, 1.0, (*lead, robot.nv))


def there(*arrays: Any, dtype: str = "float64", order: str = "C") -> list[Any]:
    return [cupy_on_cpu.asarray(a, dtype, order) for a in arrays]


def same(got: Trajectory, right: Trajectory, tolerance: float, dtype: str = "float64") -> None:
    assert np.array_equal(got.t, right.t)
    for a, b in ((got.q, right.q), (got.qd, right.qd)):
        assert isinstance(a, cupy_on_cpu.Array)
        assert a.dtype == dtype
        close(a, b, tolerance)


FORCES: dict[str, Any] = {
    "none": None,
    "constant": RNG.normal(size=2),
    "each step": RNG.normal(size=(100, 2)),
    "each robot": RNG.normal(size=(3, 1, 1, 2)),
    "each robot and step": RNG.normal(size=(3, 4, 100, 2)),
    "controller": lambda t, q, qd: [
        sin(20.0 * t) - x - 0.1 * v for x, v in zip(q, qd, strict=True)
    ],
}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("forces", FORCES)
def test_as_on_the_cpu(forces: str, order: str) -> None:
    """A hundred steps from arrays in rows or columns take one launch and agree with the CPU."""
    q, qd = start(ARM, 3, 4)
    tau = FORCES[forces]
    options: dict[str, Any] = {"dt": 1e-3, "steps": 100, "every": 30, "start": 0.7}
    right = ARM.rollout(q, qd, tau, **options)
    given = there(q, qd, order=order)
    on_gpu = tau if callable(tau) or tau is None else there(tau, order=order)[0]
    same(ARM.rollout(*given, on_gpu, **options), right, 1e-12)
    assert LAUNCHES == [((1, 1), (32, 1), 0)]
    for array, before in zip(given, (q, qd), strict=True):
        assert np.array_equal(array, before)


@pytest.mark.parametrize("method", ["semi-implicit", "euler", "rk4"])
def test_a_floating_base_by_every_method(method: str) -> None:
    robot = tree(3, 1, floating=True)
    q, qd = start(robot, 2)
    options: dict[str, Any] = {"dt": 1e-3, "steps": 20, "every": 7, "integrator": method}
    right = robot.rollout(q, qd, **options)
    same(robot.rollout(*there(q, qd), **options), right, 1e-12)


def test_contacts() -> None:
    """A rod swings onto soft ground. The contact states are integrated with q and qd."""
    law = contact.SoftContact(contact.SoftSurface(2e3, 20.0), contact.SoftFriction(0.5, 2e3, 20.0))
    pair = contact.Pair(contact.Point(ARM.frames[-1]), contact.Plane(point=(0.0, 0.0, -0.2)), law)
    q, qd = np.array([[-0.3, -0.1], [0.4, 0.2]]), np.zeros(2)
    options: dict[str, Any] = {"dt": 1e-3, "steps": 100, "every": 20, "contacts": [pair]}
    right = ARM.rollout(q, qd, **options)
    got = ARM.rollout(*there(q, qd), **options)
    same(got, right, 1e-12)
    assert got.touching is not None
    assert right.touching is not None
    assert right.touching.forces.any()
    for a, b in zip(got.touching, right.touching, strict=True):
        assert isinstance(a, cupy_on_cpu.Array)
        close(a, b, 1e-11)
    assert len(prepared(ARM, "semi-implicit", None, False, (pair,), 1e-3)._touchers) == 2


def test_single_precision() -> None:
    """Each step in float32 rounds the state to 6e-8, and the motion amplifies these errors."""
    q, qd = (a.astype("float32").astype(float) for a in start(ARM, 5))
    right = ARM.rollout(q, qd, dt=1e-3, steps=100)
    same(ARM.rollout(*there(q, qd, dtype="float32"), dt=1e-3, steps=100), right, 1e-5, "float32")


def test_time_is_accurate_after_many_steps() -> None:
    """A joint follows the time in float32. Summing t + h + h ... would give an error of 2e-3."""
    robot = planar(1).with_gravity((0.0, 0.0, 0.0))
    options: dict[str, Any] = {"dt": 1e-3, "steps": 200_000, "every": 200_000}

    def follow(t: Any, q: Any, qd: Any) -> list[Any]:
        return [100.0 * (t - q[0]) + 10.0 * (1.0 - qd[0])]

    got = robot.rollout(*there([0.0], [1.0], dtype="float32"), follow, **options)
    close(got.q[-1], [200.0], 1e-6)


def test_layout_of_records() -> None:
    """Records are in columns if states are, and leading axes are restored without a copy."""
    q, qd = start(ARM, 6)
    rows = ARM.rollout(*there(q, qd), dt=1e-3, steps=4)
    assert rows.q.flags.c_contiguous
    columns = ARM.rollout(*there(q, qd, order="F"), dt=1e-3, steps=4)
    assert columns.q.transpose(1, 2, 0).flags.c_contiguous
    close(columns.q, rows.q, 1e-15)


def test_shapes() -> None:
    """Rollouts accept one state, shared states, no states, and many states in larger blocks."""
    q, qd = start(ARM, 5)
    right = ARM.rollout(q, qd[0], dt=1e-3, steps=3)
    same(ARM.rollout(*there(q, qd[0]), dt=1e-3, steps=3), right, 1e-14)
    same(
        ARM.rollout(*there(q[1], qd[0]), dt=1e-3, steps=3),
        ARM.rollout(q[1], qd[0], dt=1e-3, steps=3),
        1e-14,
    )
    launched = len(LAUNCHES)
    assert ARM.rollout(*there(q[:0], qd[:0]), dt=1e-3, steps=3).q.shape == (0, 4, 2)
    assert len(LAUNCHES) == launched
    many = np.zeros((128 * 1024 + 1, 2))
    ARM.rollout(*there(many, many), dt=1e-3, steps=1)
    assert LAUNCHES[-1] == ((1025, 1), (128, 1), 0)


def test_bad_arguments() -> None:
    q, qd = there(*start(ARM, 3))
    cases: list[tuple[tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
        ((q, np.zeros(2)), {}, TypeError, "E-CALL-039"),
        ((q, qd, np.zeros(2)), {}, TypeError, "E-CALL-039"),
        ((q[:, :1], qd), {}, ValueError, "E-CALL-009 (..., 2)"),
        ((q, qd, q), {}, ValueError, "E-MOTION-023 (2,)"),
        ((q, qd[:2]), {}, ValueError, "E-CALL-057"),
        ((q, qd), {"threads": 2}, TypeError, "E-MOTION-019"),
        ((q.astype(complex), qd), {}, TypeError, "E-GPU-022"),
    ]
    for arguments, options, error, match in cases:
        with raises(match, kind=error):
            ARM.rollout(*arguments, dt=1e-3, steps=5, **options)
    with raises("E-MOTION-024"):
        ARM.rollout(q, qd, there(np.zeros((2, 5, 2)))[0], dt=1e-3, steps=5)


def test_simulate_on_the_device() -> None:
    """device="cuda" copies the batch to the GPU and the motion back. CuPy arrays stay there."""
    q, qd = start(ARM, 5)
    right = ARM.simulate(q, qd, duration=0.02, every=3)
    got = ARM.simulate(q, qd, duration=0.02, every=3, device="cuda")
    assert LAUNCHES
    assert type(got.q) is np.ndarray
    close(got.q, right.q, 1e-12)
    stays = ARM.simulate(*there(q, qd), duration=0.02, every=3)
    assert isinstance(stays.q, cupy_on_cpu.Array)
    same(stays, right, 1e-12)
    first = ARM.simulate(*there(q, qd), duration=0.02, every=3, steps=7)
    rest = ARM.simulate(*there(q, qd), duration=0.02, every=3, resume=first.end)
    assert np.array_equal(np.concatenate([first.q, rest.q], axis=1), stays.q)
    with pytest.raises(chasles.ModelError, match="cannot be compiled"):
        ARM.simulate(q, qd, duration=0.02, integrator="dopri5", device="cuda")
    with pytest.raises(ValueError, match="`device` must be 'cpu' or 'cuda'"):
        ARM.simulate(q, qd, duration=0.02, device="tpu")
