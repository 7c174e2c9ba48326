"""Kernels on a GPU compared with machine code on the CPU. The tests are skipped without a GPU."""

from typing import Any

import numpy as np
import pytest
from support import close

import chasles
from chasles.algorithms import FUNCTIONS
from chasles.backends.cuda import driver as cuda_driver
from chasles.functions.programs import spaces
from chasles.robots import humanoid, puma560, quadruped, random_tree

cupy = pytest.importorskip("cupy", reason="no CuPy: kernels on a GPU are not tested here")


def _count() -> int:
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


pytestmark = pytest.mark.skipif(not _count(), reason="no GPU: kernels on it are not tested here")

ROBOTS = {
    "puma560": puma560,
    "quadruped": quadruped,
    "humanoid": humanoid,
    "tree": lambda: random_tree(9, seed=1),
}
TOLERANCE = {"float64": 1e-9, "float32": 5e-3}


def inputs(compiled: Any, *lead: int, dtype: str = "float64") -> list[np.ndarray]:
    rng = np.random.default_rng(2)
    shapes = [lead + v.shape for v in compiled.interface.inputs]
    return [rng.uniform(-1.5, 1.5, shape).astype(dtype) for shape in shapes]


def both(robot: str, function: str, **options: Any) -> tuple[Any, Any]:
    built = ROBOTS[robot]()
    if "frame" in spaces(function).options:
        options["frame"] = built.frames[-1]
    gpu = chasles.compile(built, function, backend="cuda", **options)
    return gpu, chasles.compile(built, function, **options)


def compare(got: Any, right: Any, dtype: str) -> None:
    pairs = zip(got, right, strict=True) if isinstance(right, tuple) else [(got, right)]
    for a, b in pairs:
        assert isinstance(a, cupy.ndarray)
        assert a.dtype == dtype
        close(cupy.asnumpy(a), b, TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function(function: str, dtype: str) -> None:
    gpu, cpu = both("puma560", function)
    arrays = inputs(cpu, 67, dtype=dtype)
    right = cpu(*(a.astype(float) for a in arrays))
    compare(gpu(*map(cupy.asarray, arrays)), right, dtype)
    compare(gpu(*(cupy.asarray(a, order="F") for a in arrays)), right, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("function", ["inverse_dynamics", "mass_matrix", "forward_dynamics"])
def test_layouts_and_counts(robot: str, function: str, dtype: str) -> None:
    """Any number of states in rows, columns or with gaps is accepted, also with shared inputs."""
    gpu, cpu = both(robot, function)
    for count in (1, 100, 9001):
        arrays = inputs(cpu, count, dtype=dtype)
        right = cpu(*(a.astype(float) for a in arrays))
        compare(gpu(*map(cupy.asarray, arrays)), right, dtype)
        in_columns = gpu(*(cupy.asarray(a, order="F") for a in arrays))
        compare(in_columns, right, dtype)
        if count > 1 and in_columns.ndim == 2:
            assert in_columns.T.flags.c_contiguous
        wide = [cupy.zeros((count, 2 * a.shape[-1] + 1), dtype) for a in arrays]
        for a, b in zip(wide, arrays, strict=True):
            a[:, 1::2] = cupy.asarray(b)
        compare(gpu(*(a[:, 1::2] for a in wide)), right, dtype)
        for a, b in zip(wide, arrays, strict=True):
            a[:, 3 : 3 + b.shape[-1]] = cupy.asarray(b)
        compare(
            gpu(*(a[:, 3 : 3 + b.shape[-1]] for a, b in zip(wide, arrays, strict=True))),
            right,
            dtype,
        )
        one = [arrays[0], *(a[0] for a in arrays[1:])]
        compare(gpu(*map(cupy.asarray, one)), cpu(*(a.astype(float) for a in one)), dtype)


def test_leading_shapes_and_out() -> None:
    gpu, cpu = both("quadruped", "inverse_dynamics")
    q, qd, qdd = inputs(cpu, 5, 4)
    right = cpu(q, qd[:, :1], qdd)
    arrays = [cupy.asarray(a) for a in (q, qd[:, :1], qdd)]
    compare(gpu(*arrays), right, "float64")
    out = cupy.empty(right.shape)
    assert gpu(*arrays, out=out) is out
    compare(out, right, "float64")
    strange = cupy.empty((4, right.shape[-1], 5)).transpose(2, 0, 1)
    gpu(*arrays, out=strange)
    compare(strange, right, "float64")
    same = arrays[2].copy()
    gpu(arrays[0], arrays[1], same, out=same)
    compare(same, right, "float64")
    assert gpu(*(a[:0] for a in arrays)).shape == (0, 4, right.shape[-1])


def test_far_angles() -> None:
    gpu, cpu = both("puma560", "inverse_dynamics")
    arrays = inputs(cpu, 50)
    arrays[0][7] = 1e9 + np.arange(6)
    compare(gpu(*map(cupy.asarray, arrays)), cpu(*arrays), "float64")


def test_streams_and_graphs() -> None:
    """A call runs on the current stream without waiting, and can be captured and replayed."""
    gpu, cpu = both("puma560", "inverse_dynamics")
    arrays = [cupy.asarray(a) for a in inputs(cpu, 256)]
    out = gpu(*arrays)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        gpu(*arrays, out=out)
        graph = stream.end_capture()
        arrays[2] *= 2.0
        graph.launch(stream)
    stream.synchronize()
    compare(out, cpu(*(cupy.asnumpy(a) for a in arrays)), "float64")


def test_wrong_arrays() -> None:
    gpu, cpu = both("puma560", "inverse_dynamics")
    q, qd, qdd = inputs(cpu, 3)
    with pytest.raises(TypeError, match="q is a CuPy array, but qd is a NumPy array"):
        gpu(cupy.asarray(q), qd, cupy.asarray(qdd))
    with pytest.raises(ValueError, match=r"q must have shape \(\.\.\., 6\), not \(3, 5\)"):
        gpu(cupy.asarray(q[:, :5]), cupy.asarray(qd), cupy.asarray(qdd))
    with pytest.raises(ValueError, match="do not broadcast"):
        gpu(cupy.asarray(q[:2]), cupy.asarray(qd), cupy.asarray(qdd))
    with pytest.raises(ValueError, match="`out` must have shape"):
        gpu(*map(cupy.asarray, (q, qd, qdd)), out=cupy.empty((2, 6)))


def test_from_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """An equal robot uses the cached kernel, without tracing or compiling."""
    gpu, cpu = both("puma560", "gravity_forces")
    (q,) = inputs(cpu, 10)
    gpu(cupy.asarray(q))
    monkeypatch.setattr(cuda_driver, "compile", None)
    again = chasles.compile(puma560(), "gravity_forces", backend="cuda")
    compare(again(cupy.asarray(q)), cpu(q), "float64")
    assert again is not gpu
    assert "program" not in vars(again)
