"""Run the text of a kernel that repeats a step on the CPU, one thread after the other."""

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cuda_on_cpu import shared_library

from chasles.backends.cuda.crew import Size
from chasles.backends.cuda.source import source
from chasles.expr import Program

RUN = """
extern "C" void run(long long count, long long steps, long long every, real** arrays,
                    long long* strides) {{
  for (long long i = 0; i * {crews} < count; i++) {{
    blockIdx.x = (int)i;
    block({warps} * {crews}, [=] {{ kernel(count, -1, steps, every, {arguments}); }});
  }}
}}
"""


class LoopOnCPU:
    """Kernel of the form "loop", compiled by the host's C++ compiler."""

    def __init__(
        self,
        program: Program,
        dtype: str,
        folder: Path,
        *,
        cuts: bool = False,
        crew: Size | None = None,
        crews: int = 1,
    ) -> None:
        text = source(program, dtype, "loop", block=32, cuts=cuts, crew=crew).text
        arrays = len(program.inputs) + len(program.outputs)
        arguments = ", ".join(
            f"arrays[{k}], " + ", ".join(f"strides[{3 * k + i}]" for i in range(3))
            for k in range(arrays)
        )
        warps = crew.warps if crew else 1
        text += RUN.format(arguments=arguments, warps=warps, crews=crews)
        self._run = shared_library(text, folder).run

    def launched(self, parameters: Sequence[int]) -> None:
        """Run the kernel with the parameters of a launch."""
        _launched(self._run, parameters)

    def __call__(self, arrays: Sequence[np.ndarray], count: int, steps: int, every: int) -> None:
        """Run on arrays (count or 1, steps or 1 or records, size): states, controls, records."""
        launched(self._run, arrays, count, steps, every)


def launched(
    run: Callable[..., Any], arrays: Sequence[np.ndarray], count: int, steps: int, every: int
) -> None:
    """Run a kernel on arrays (count or 1, steps or 1 or records, size)."""
    parameters = [count, -1, steps, every]
    for a in arrays:
        strides = [
            0 if n == 1 and k < 2 else s // a.itemsize
            for k, (n, s) in enumerate(zip(a.shape, a.strides, strict=True))
        ]
        parameters += (a.ctypes.data, *strides)
    _launched(run, parameters)


def _launched(run: Callable[..., Any], parameters: Sequence[int]) -> None:
    count, never, steps, every, *places = parameters
    assert never == -1
    pointers = (ctypes.c_void_p * (len(places) // 4))(*places[::4])
    numbers = [n for k, n in enumerate(places) if k % 4]
    strides = (ctypes.c_int64 * len(numbers))(*numbers)
    run(*(ctypes.c_longlong(n) for n in (count, steps, every)), pointers, strides)
