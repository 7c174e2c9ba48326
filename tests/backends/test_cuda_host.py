"""Arrays in host memory sent to a GPU and back, with an imitated CuPy and imitated launches."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import chasles
from chasles.backends.arrays import call
from chasles.backends.cuda import kernel as cuda
from chasles.robots import planar, quadruped


class Array(np.ndarray):
    """The part of CuPy's arrays that is used here, with the same restrictions."""

    def set(self, given: np.ndarray) -> None:
        assert type(given) is np.ndarray
        assert (given.shape, given.dtype) == (self.shape, self.dtype)
        self[...] = given

    def get(self, out: np.ndarray | None = None) -> np.ndarray:
        found = np.array(self)
        if out is None:
            return found
        assert out.flags.c_contiguous
        assert (out.shape, out.dtype) == (self.shape, self.dtype)
        out[...] = found
        return out


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Return a list that collects the shapes of all arrays that are sent."""
    shapes: list[tuple[int, ...]] = []

    def empty(shape: tuple[int, ...], dtype: Any) -> Array:
        shapes.append(shape)
        return np.empty(shape, dtype).view(Array)

    monkeypatch.setattr(cuda, "_cupy", lambda: SimpleNamespace(empty=empty))
    return shapes


def kernel(function: Any) -> cuda.Kernel:
    """Return a GPU kernel whose launches run on the CPU."""
    made = cuda.Kernel(function.interface, function.recipe.dtype, lambda *_: None)  # type: ignore[arg-type,return-value]

    def launch(name: str, arrays: Any, out: Any = None) -> Any:
        found = function(*(a.view(np.ndarray) for a in arrays))
        if isinstance(found, tuple):
            return tuple(a.view(Array) for a in found)
        return found.view(Array)

    made.call = launch  # type: ignore[method-assign]
    return made


def test_one_state_for_all_travels_once(sent: list[tuple[int, ...]]) -> None:
    function = chasles.compile(quadruped(), "inverse_dynamics")
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(5, 4, 19)), rng.normal(size=18), rng.normal(size=(5, 1, 18))
    found = call(kernel(function), "inverse_dynamics", (q, qd, qdd))
    assert np.array_equal(found, function(q, qd, qdd))
    assert sent == [(20, 19), (1, 18), (20, 18)]


def test_results_with_gaps_and_of_several_arrays(sent: list[tuple[int, ...]]) -> None:
    function = chasles.compile(planar(2), "mass_matrix")
    q = np.random.default_rng(1).normal(size=(7, 4))[:, ::2]
    wide = np.zeros((7, 3, 2, 2))
    call(kernel(function), "mass_matrix", (q,), wide[:, 1])
    assert np.array_equal(wide[:, 1], function(q))
    assert not wide[:, ::2].any()
    linear = chasles.compile(planar(2), "linearize")
    state = np.random.default_rng(2).normal(size=(3, 6, 2))
    for a, b in zip(call(kernel(linear), "linearize", state), linear(*state), strict=True):
        assert np.array_equal(a, b)


def test_single_states_and_none(sent: list[tuple[int, ...]]) -> None:
    function = chasles.compile(planar(2), "kinetic_energy")
    state = np.ones((2, 2))
    assert call(kernel(function), "kinetic_energy", state) == function(*state)
    assert call(kernel(function), "kinetic_energy", np.ones((2, 0, 2))).shape == (0,)
    assert sent == [(1, 2), (1, 2)]
