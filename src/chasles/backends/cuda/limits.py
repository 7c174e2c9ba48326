"""Measurement of a GPU's limits: arithmetic operations and memory traffic (bytes) per second."""

from collections.abc import Callable
from typing import Any

import numpy as np

from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda import kernel as cuda
from chasles.backends.limits import Limits

CHAINS, UNROLLED, THREADS, BLOCKS, TURNS = 8, 16, 256, 16, 200
"""Benchmark size: independent multiply-adds per thread, repetitions of each multiply-add per
iteration, threads per block, blocks per multiprocessor, and iterations."""

BYTES = 2**30
"""Size (bytes) of the array that the memory benchmark copies or fills."""

TEXT = """
extern "C" __global__ void peak(long long turns, {real} *out) {{
  {real} x[{chains}];
  #pragma unroll
  for (int k = 0; k < {chains}; k++) x[k] = ({real})(threadIdx.x + k);
  for (long long t = 0; t < turns; t++) {{
    #pragma unroll
    for (int r = 0; r < {unrolled}; r++) {{
      #pragma unroll
      for (int k = 0; k < {chains}; k++) x[k] = fma(x[k], ({real})0.999, ({real})1e-9);
    }}
  }}
  {real} sum = 0;
  #pragma unroll
  for (int k = 0; k < {chains}; k++) sum += x[k];
  if (sum < 0) out[0] = sum;
}}
"""


def measured() -> Limits:
    """Measure the limits of the current GPU; raise an error if there is no GPU."""
    name = cuda.described()
    import cupy

    device = cupy.cuda.Device()
    grid = BLOCKS * device.attributes["MultiProcessorCount"]
    operations = {}
    for dtype, real in (("float64", "double"), ("float32", "float")):
        target, out = cuda_driver.architecture(device.id), cupy.zeros(1, dtype)
        text = TEXT.format(real=real, chains=CHAINS, unrolled=UNROLLED)
        function = cuda_driver.Function(cuda_driver.compile(text, target).code, "peak", target)

        def run(function: Any = function, out: Any = out) -> None:
            where = cupy.cuda.get_current_stream().ptr, device.id
            function.launch((grid, 1), (THREADS, 1), 0, [TURNS, out.data.ptr], *where)

        operations[dtype] = grid * THREADS * TURNS * UNROLLED * CHAINS / seconds(run)
    a, b = cupy.zeros(BYTES, np.uint8), cupy.empty(BYTES, np.uint8)
    copied = 2 * BYTES / seconds(lambda: cupy.copyto(b, a))
    filled = BYTES / seconds(lambda: b.fill(0))
    return Limits(name, operations, ((BYTES, copied),), ((BYTES, filled),))


def seconds(run: Callable[[], object], repeats: int = 7) -> float:
    """Return the shortest GPU time (s) of several launches."""
    import cupy

    run()
    found = []
    for _ in range(repeats):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        run()
        end.record()
        end.synchronize()
        found.append(1e-3 * float(cupy.cuda.get_elapsed_time(start, end)))
    return min(found)
