"""Batches in host memory on a real GPU, and the choice between the GPU and the CPU."""

from typing import Any

import numpy as np
import pytest
from support import close, gpus

import chasles
from chasles.robots import puma560, quadruped

cupy = pytest.importorskip("cupy", reason="no CuPy: arrays of the host are not sent to a GPU here")

pytestmark = pytest.mark.skipif(not gpus(), reason="no GPU: nothing is sent to it here")
TOLERANCE = {"float64": 1e-9, "float32": 5e-3}


def arrays(function: Any, *lead: int, dtype: str = "float64") -> list[np.ndarray]:
    rng = np.random.default_rng(2)
    shapes = [lead + v.shape for v in function.interface.inputs]
    return [rng.uniform(-1.5, 1.5, shape).astype(dtype) for shape in shapes]


def compare(found: Any, right: Any, dtype: str) -> None:
    pairs = zip(found, right, strict=True) if isinstance(right, tuple) else [(found, right)]
    for a, b in pairs:
        assert isinstance(a, np.ndarray)
        assert a.dtype == dtype
        close(a, b, TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("function", ["inverse_dynamics", "mass_matrix", "linearize"])
def test_there_and_back(function: str, dtype: str) -> None:
    """Results agree with the CPU for batches of one and of several pieces."""
    made = chasles.compile(puma560(), function, dtype=dtype)
    for count in (1, 33, 50_001):
        given = arrays(made, count, dtype=dtype)
        right = chasles.compile(puma560(), function)(*(a.astype(float) for a in given))
        compare(made.from_host(*given), right, dtype)


def test_leading_shapes_out_and_one_state_for_all() -> None:
    made = chasles.compile(quadruped(), "inverse_dynamics")
    q, qd, qdd = arrays(made, 5, 4)
    right = made(q, qd[0, 0], qdd[:, :1])
    compare(made.from_host(q, qd[0, 0], qdd[:, :1]), right, "float64")
    out = np.empty_like(right)
    assert made.from_host(q, qd[0, 0], qdd[:, :1], out=out) is out
    compare(out, right, "float64")
    gaps = np.zeros((20, 2 * right.shape[-1]))[:, : right.shape[-1]]
    flat = [a.reshape(20, -1) for a in (q, qd, qdd)]
    made.from_host(*flat, out=gaps)
    compare(gaps, made(*flat), "float64")
    assert made.from_host(q[:0], qd[:0], qdd[:0]).shape == (0, 4, right.shape[-1])
    with pytest.raises(ValueError, match="the quaternion of joint"):
        made.from_host(np.zeros_like(q), qd, qdd)


def test_the_choice_is_the_faster_one() -> None:
    """The faster device is used at all timed sizes, and times are cached.

    Arrays on the GPU stay there.
    """
    made = chasles.compile(puma560(), "forward_dynamics", device="auto", wrt=("q", "qd", "tau"))
    report = made.report()
    assert report.gpu is not None
    assert "not measured" not in repr(made)
    assert made.choice(1) == "cpu", str(report)
    for states, cpu, gpu in report.timings:
        assert made.choice(states) == ("cuda" if gpu < cpu else "cpu"), str(report)
    given = arrays(made.function, 20_000)
    compare(made(*given), made.function(*given), "float64")
    resident = made(*map(cupy.asarray, given))
    assert all(isinstance(a, cupy.ndarray) for a in resident)
    again = chasles.compile(puma560(), "forward_dynamics", device="auto", wrt=("q", "qd", "tau"))
    assert again.report() == report
