"""CuPy arrays without a GPU: arrays passed to the CUDA backend, and invalid arguments.

CuPy and the backend are imitated. The imitated GPU function records its arguments.
"""

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles.functions import doors, libraries
from chasles.functions.compiled import Compiled
from chasles.robots import planar


class Device(contextlib.nullcontext):  # type: ignore[type-arg]
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.number == self.number

    def __str__(self) -> str:
        return f"<CUDA Device {self.number}>"


class Array:
    """The part of CuPy's arrays that is used here: dtype, shape and device."""

    def __init__(self, values: Any, dtype: Any = float, device: int = 0) -> None:
        self.values = np.asarray(values, dtype=dtype)
        self.dtype, self.shape, self.device = self.values.dtype, self.values.shape, Device(device)
        self.ndim, self.data = self.values.ndim, SimpleNamespace(device_id=device)
        self.flags = self.values.flags


def asarray(a: Any, dtype: Any) -> Array:
    return a if isinstance(a, Array) and a.dtype == dtype else Array(getattr(a, "values", a), dtype)


@pytest.fixture(autouse=True)
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    module = ModuleType("cupy")
    vars(module).update(ndarray=Array, asarray=asarray, float32=np.float32, float16=np.float16)
    module.cuda = SimpleNamespace(get_current_stream=None)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.delitem(sys.modules, "chasles.functions.libraries.cupy", raising=False)
    monkeypatch.delitem(doors._TAKERS, "cupy", raising=False)
    yield
    doors._TAKERS.pop("cupy", None)
    sys.modules.pop("chasles.functions.libraries.cupy", None)


CALLS: list[tuple[Any, ...]] = []
"""Arguments of kernel calls: dtype, arrays and out."""


@pytest.fixture
def inverse(monkeypatch: pytest.MonkeyPatch) -> Compiled:
    def cuda(self: Compiled) -> Any:
        dtype = np.dtype(self.recipe.dtype)

        def call(_: str, arrays: Any, out: Any) -> Array:
            CALLS.append((dtype, arrays, out))
            return arrays[0] if out is None else out

        kernel = SimpleNamespace(dtype=dtype, call=call, interface=self.interface)
        kernel.plan = lambda device, count: None  # no call is prepared
        return SimpleNamespace(kernel=kernel)

    monkeypatch.setattr(Compiled, "cuda", property(cuda))
    monkeypatch.setattr(libraries, "resident", lambda *_: None)
    return chasles.compile(planar(2), "inverse_dynamics")


def test_arrays_reach_the_gpu_as_they_are(inverse: Compiled) -> None:
    given = [Array(np.zeros((3, 2))) for _ in range(3)]
    out = Array(np.zeros((3, 2)))
    assert inverse(*given, out=out) is out
    assert CALLS[-1] == (np.float64, tuple(given), out)


def test_numbers_follow_the_arrays(inverse: Compiled) -> None:
    single = Array([0.0, 0.0], np.float32)
    inverse(single, [1, 2], single)
    dtype, arrays, _ = CALLS[-1]
    assert dtype == "float32"
    assert [a.dtype for a in arrays] == [np.float32] * 3
    inverse(single, Array([0.0, 0.0]), Array([1, 2], int))
    dtype, arrays, _ = CALLS[-1]
    assert dtype == "float64"
    assert [a.dtype for a in arrays] == [np.float64] * 3


def test_a_function_of_the_gpu_takes_them_itself(inverse: Compiled) -> None:
    """A GPU function passes arrays directly to its kernel, which avoids an endless lookup."""
    arrays = [Array(np.zeros(2))] * 3
    assert doors.taker(inverse, arrays, None) is not None
    there = SimpleNamespace(
        recipe=replace(inverse.recipe, backend="cuda"), interface=inverse.interface
    )
    assert doors.taker(there, arrays, None) is None


def test_bad_arguments(inverse: Compiled) -> None:
    good = Array(np.zeros(2))
    cases: list[tuple[list[Any], dict[str, Any], type[Exception], str]] = [
        ([good, np.zeros(2), good], {}, TypeError, "E-CALL-039"),
        (
            [good, good, Array([0, 0], np.float16)],
            {},
            TypeError,
            "E-GPU-022",
        ),
        ([good, good, Array([0, 0], complex)], {}, TypeError, "E-GPU-022"),
        (
            [good, Array([0, 0], int, device=1), good],
            {},
            ValueError,
            "E-GPU-023",
        ),
        ([good] * 3, {"threads": 2}, TypeError, "E-GPU-021"),
        ([good] * 3, {"out": np.zeros(2)}, TypeError, "E-CALL-040"),
    ]
    for arguments, options, error, match in cases:
        with raises(match, kind=error):
            inverse(*arguments, **options)
    compiled = chasles.compile(planar(2), "inverse_dynamics", device="cuda")
    compiled.__dict__["single"] = compiled
    with raises("E-GPU-021"):
        compiled(*[good] * 3, threads=2)
