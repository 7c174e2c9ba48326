"""Imitated GPU: arrays are NumPy arrays, and kernels are compiled for the CPU (`cuda_on_cpu`)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_on_cpu import OnCPU

from chasles.backends.cuda import kernel as cuda
from chasles.backends.cuda import tiles as cuda_tiles
from chasles.backends.cuda.build import Built, Layout
from chasles.backends.cuda.forms import Form
from chasles.backends.cuda.layout import Look
from chasles.expr import Program

STREAM, DEVICE = 7, None
"""Stream and device of all launches. The device has no index, as for PyTorch's CPU."""


class OnNumPy:
    """Library of NumPy arrays that are treated as arrays on a GPU."""

    device, stream = DEVICE, STREAM

    def __init__(self, dtype: str) -> None:
        self.dtype = np.dtype(dtype)
        self.copied = 0

    def look(self, a: np.ndarray) -> Look:
        strides = tuple(s // a.itemsize for s in a.strides)
        return a.ctypes.data, (a.shape, None if a.flags.c_contiguous else strides)

    def new(self, batch: tuple[int, ...], shape: tuple[int, ...], *, rows: bool) -> np.ndarray:
        if rows:
            return np.full(batch + shape, np.nan, self.dtype)
        ahead = np.full(shape + batch, np.nan, self.dtype)
        return np.moveaxis(ahead, range(len(shape)), range(-len(shape), 0))

    def rows(self, a: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        self.copied += 1
        return np.array(np.broadcast_to(a, shape), order="C")


_LOADED: dict[bytes, "Imitation"] = {}
"""Loaded kernels, by code."""


class Imitation:
    """Loaded kernel that records its launches and runs them on the CPU."""

    pointer = 0x1234

    def __init__(self, run: Callable[[Sequence[int]], None]) -> None:
        self.run, self.launches = run, list[tuple[Any, ...]]()

    def launch(self, grid: Any, block: Any, shared: int, parameters: Any, *where: Any) -> None:
        self.launches.append((grid, block, shared))
        assert where == (STREAM, DEVICE)
        self.run(parameters)


def imitated(
    program: Program, dtype: str, folder: Path, monkeypatch: pytest.MonkeyPatch, form: Form = "rows"
) -> tuple[cuda.Kernel, Imitation]:
    """Return a kernel that runs on the CPU, and the imitation that receives its launches for rows.

    Rows are processed in the given form, and other layouts in the form "columns".
    """
    made = [OnCPU(program, dtype, each, folder, cuda_tiles.ROOM) for each in ("columns", form)]
    monkeypatch.setattr(cuda, "FEW", 0)  # use the kernels for many states in small batches, too

    def built(_: str, layout: Layout) -> Built:
        rows = layout == "rows"
        used = made[rows]
        facts = used.form, 128, used.source.shared, used.source.columns, 0, 0
        return Built(*facts, code=code[rows])

    def spread(parameters: Sequence[int]) -> None:
        count, size, row, source, target = parameters
        number = np.ctypeslib.as_ctypes_type(np.dtype(dtype))
        columns = np.ctypeslib.as_array((number * (size * count)).from_address(source))
        rows = np.ctypeslib.as_array((number * ((count - 1) * row + size)).from_address(target))
        for k in range(count):
            rows[k * row : k * row + size] = columns[k::count]

    code = [f"{program.hash} {dtype} {each}".encode() for each in ("columns", form)]
    functions = [Imitation(each.launched) for each in made]
    _LOADED.update(zip(code, functions, strict=True))
    monkeypatch.setattr(cuda, "Function", lambda code, *_: _LOADED[code])
    monkeypatch.setattr(cuda, "architecture", lambda _: "sm_90")
    monkeypatch.setattr(cuda, "_spreading", lambda *_: Imitation(spread))
    return cuda.Kernel(program.interface, dtype, built), functions[1]
