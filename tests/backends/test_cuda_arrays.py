"""Passing arrays to GPU kernels, on an imitated GPU: layouts, copies, errors and launches."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpu_on_cpu import OnNumPy, imitated
from support import close, raises

import chasles
from chasles.backends.cuda import kernel as cuda
from chasles.backends.cuda import tiles as cuda_tiles
from chasles.robots import planar

ROBOT = planar(2)
INVERSE = chasles.compile(ROBOT, "inverse_dynamics")


@pytest.fixture(params=["float64", "float32"])
def dtype(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def states(*lead: int, dtype: str = "float64", count: int = 3) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-1.0, 1.0, (*lead, 2)).astype(dtype) for _ in range(count)]


def right(*arrays: np.ndarray) -> np.ndarray:
    result: np.ndarray = INVERSE(*(a.astype(float) for a in arrays))
    return result


def test_layouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """Rows, columns, gaps and shared arrays are used in place. Only other strides are copied."""
    kernel, _ = imitated(INVERSE.program, dtype, tmp_path, monkeypatch)
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    q, qd, qdd = states(5, 4, dtype=dtype)
    wide = np.zeros((20, 5), dtype)
    wide[:, 1:3] = qd.reshape(20, 2)
    gaps = wide[:, 1:3].reshape(5, 4, 2)
    turned = np.ascontiguousarray(qd.transpose(1, 0, 2)).transpose(1, 0, 2)
    cases = [
        ([q, qd, qdd], 0),
        ([np.moveaxis(np.moveaxis(a, -1, 0).copy(), 0, -1) for a in (q, qd, qdd)], 0),
        ([q, gaps, qdd], 0),
        ([q, qd[0, 0], qdd], 0),
        ([q, qd[:, :1], qdd], 1),
        ([q, turned, qdd], 1),
        ([q[0, 0], qd[0, 0], qdd[0, 0]], 0),
        ([a[:0] for a in (q, qd, qdd)], 0),
    ]
    for arrays, copies in cases:
        library = OnNumPy(dtype)
        (result,) = kernel.run("inverse_dynamics", library, arrays)
        assert library.copied == copies
        assert result.dtype == dtype
        close(result, right(*arrays), tolerance)


def test_results_in_columns_where_the_arrays_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, _ = imitated(INVERSE.program, "float64", tmp_path, monkeypatch)
    arrays = [np.asfortranarray(a) for a in states(6)]
    (result,) = kernel.run("inverse_dynamics", OnNumPy("float64"), arrays)
    assert result.T.flags.c_contiguous


def test_few_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of up to FEW states use the kernel that accepts any strides."""
    kernel, for_rows = imitated(INVERSE.program, "float64", tmp_path, monkeypatch)
    monkeypatch.setattr(cuda, "FEW", 5)
    for count, launches in ((5, 0), (6, 1)):
        arrays = states(count)
        (result,) = kernel.run("inverse_dynamics", OnNumPy("float64"), arrays)
        close(result, right(*arrays), 1e-12)
        assert len(for_rows.launches) == launches


@pytest.mark.parametrize("room", [cuda_tiles.ROOM, 0])
def test_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """`out` may have any strides, even if the kernel has no space for rows and writes columns."""
    monkeypatch.setattr(cuda_tiles, "ROOM", room)
    compiled = chasles.compile(ROBOT, "mass_matrix")
    kernel, _ = imitated(compiled.program, "float64", tmp_path, monkeypatch)
    (q,) = states(6, count=1)
    expected = compiled(q)
    outs = [
        np.empty((6, 2, 2)),
        np.empty((2, 2, 6)).transpose(2, 0, 1),
        np.empty((6, 3, 2))[:, :2],
        np.empty((6, 2, 4))[:, :, ::2],
        np.empty((6, 2, 2))[::-1],
        np.empty((6, 2, 2)).transpose(0, 2, 1),
    ]
    for out in outs:
        out[...] = np.nan
        (result,) = kernel.run("mass_matrix", OnNumPy("float64"), [q], [out])
        assert result is out
        close(out, expected, 1e-12)


def test_results_over_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, _ = imitated(INVERSE.program, "float64", tmp_path, monkeypatch)
    memory = np.concatenate([a.ravel() for a in states(6)])
    q, qd, qdd = states(6)
    for start in (0, 5, 12):
        held = memory.copy()
        arrays = [held[12 * k : 12 * k + 12].reshape(6, 2) for k in range(3)]
        out = held[start : start + 12].reshape(6, 2)
        kernel.run("inverse_dynamics", OnNumPy("float64"), arrays, [out])
        close(out, right(q, qd, qdd), 1e-12)


def test_launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block has one warp until there are many states. The blocks cover all states."""
    kernel, function = imitated(INVERSE.program, "float64", tmp_path, monkeypatch, "direct")
    function.run = lambda _: None
    for count in (1, 33, 128 * 1024 - 1, 128 * 1024 + 1):
        kernel.run("inverse_dynamics", OnNumPy("float64"), [np.zeros((count, 2))] * 3)
    grids = [(1, 1), (2, 1), (4096, 1), (1025, 1)]
    blocks = [(32, 1)] * 3 + [(128, 1)]
    assert [launch[:2] for launch in function.launches] == list(zip(grids, blocks, strict=True))


def test_wrong_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, _ = imitated(INVERSE.program, "float64", tmp_path, monkeypatch)
    q, qd, qdd = states(3)
    cases: list[tuple[list[Any], list[Any] | None, type[Exception], str]] = [
        ([q[:, :1], qd, qdd], None, ValueError, "E-CALL-009 (..., 2)"),
        ([q[:2], qd, qdd], None, ValueError, "E-CALL-005"),
        ([q, qd, qdd], [], ValueError, "E-GPU-004"),
        ([q, qd, qdd], [np.zeros((3, 3))], ValueError, "E-GPU-006 (3, 2)"),
        ([q, qd, qdd], [np.zeros((3, 2), "float32")], TypeError, "E-GPU-005"),
    ]
    for arrays, out, error, match in cases:
        with raises(match, kind=error):
            kernel.run("inverse_dynamics", OnNumPy("float64"), arrays, out)
