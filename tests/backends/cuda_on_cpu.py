"""Compile the text of a CUDA kernel as C++ and run it on the CPU, with one thread per warp."""

import ctypes
import itertools
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from chasles.backends.cuda.crew import Size
from chasles.backends.cuda.forms import Form
from chasles.backends.cuda.source import Source, source
from chasles.backends.cuda.tiles import ROOM
from chasles.expr import Program

SHIM = """
#include <cmath>
#include <cstring>
#include <cstddef>
#include <thread>
#include <vector>
#include <mutex>
#include <condition_variable>
#define LANES 1
#define __device__
#define __global__
#define __constant__ static const
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __shared__
#define __align__(n)
static void __syncwarp() {}
/* A warp of one thread. */
static bool __any_sync(unsigned, bool own) { return own; }
static bool __all_sync(unsigned, bool own) { return own; }
static unsigned __ballot_sync(unsigned, bool own) { return own; }
template <class T> static T __shfl_sync(unsigned, T own, int) { return own; }
template <class T> static T __shfl_xor_sync(unsigned, T own, int) { return own; }
template <class T, class More> static T atomicAdd(T* at, More more) {
  const T before = *at;
  *at += more;
  return before;
}
alignas(128) unsigned char memory[1 << 20];
struct Index { int x; };
static Index blockIdx = {0}, blockDim = {1}, gridDim = {1};
static thread_local Index threadIdx = {0};
struct Barrier {  /* for all threads that have not returned */
  std::mutex mutex;
  std::condition_variable open;
  int alive, waiting = 0;
  long times = 0;
  void pass() { waiting = 0; times++; open.notify_all(); }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    const long before = times;
    if (++waiting == alive) pass();
    else open.wait(lock, [&] { return times != before; });
  }
  void leave() {
    std::unique_lock<std::mutex> lock(mutex);
    if (--alive == waiting) pass();
  }
};
static Barrier* barrier;
#define together() barrier->wait()
#define counted(own) (int)(own) /* a block of one thread */
template <class Kernel> static void block(int warps, Kernel kernel) {
  Barrier mine;
  barrier = &mine;
  mine.alive = blockDim.x = warps;
  std::vector<std::thread> threads;
  for (int warp = 0; warp < warps; warp++)
    threads.emplace_back([=] { threadIdx.x = warp; kernel(); barrier->leave(); });
  for (auto& thread : threads) thread.join();
}
template <class To, class From> static To bits(From from) {
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
static int __float_as_int(float x) { return bits<int>(x); }
static float __int_as_float(int x) { return bits<float>(x); }
static int __double2loint(double x) { return (int)bits<unsigned long long>(x); }
static int __double2hiint(double x) { return (int)(bits<unsigned long long>(x) >> 32); }
static double __hiloint2double(int high, int low) {
  return bits<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low);
}
"""

RUN = """
extern "C" void run(long long count, real** arrays, long long* strides) {{
  gridDim.x = count < {blocks} ? (int)count : {blocks};
  for (long long i = 0; i < gridDim.x; i++) {{
    blockIdx.x = (int)i;
    block({warps}, [=] {{ kernel(count, -1, {arguments}); }});
  }}
}}
"""


_NUMBER = itertools.count()
COMPILER = ("g++", "-std=c++17", "-O0", "-ffp-contract=off", "-fPIC", "-pthread", "-w")


def shared_library(text: str, folder: Path) -> ctypes.CDLL:
    """Compile a kernel's text and its runner with the host's C++ compiler, and load the library.

    The shim is compiled once per test process, in the parent of the tests' folders, because this
    takes longer than compiling most kernels.
    """
    shim = folder.parent / "shim.h"
    if not shim.exists():
        shim.write_text(SHIM)
        subprocess.run([*COMPILER, "-x", "c++-header", shim, "-o", f"{shim}.gch"], check=True)
    path = folder / f"kernel{next(_NUMBER)}.cpp"
    path.write_text(text)
    library = path.with_suffix(".so")
    subprocess.run([*COMPILER, "-include", shim, "-shared", path, "-o", library], check=True)
    return ctypes.CDLL(str(library))


class OnCPU:
    """Kernel compiled by the host's C++ compiler, as a function of arrays in rows or columns."""

    def __init__(
        self,
        program: Program,
        dtype: str,
        form: Form,
        folder: Path,
        most: int = ROOM,
        crew: Size | None = None,
        blocks: int = 2**31 - 1,
    ) -> None:
        self.program, self.dtype, self.form = program, np.dtype(dtype), form
        self.source: Source = source(program, dtype, form, block=32, most=most, crew=crew)
        arrays = len(program.inputs) + len(program.outputs)
        arguments = ", ".join(
            f"arrays[{k}], strides[{2 * k}], strides[{2 * k + 1}]" for k in range(arrays)
        )
        warps = crew.warps if crew else 1
        text = self.source.text + RUN.format(arguments=arguments, warps=warps, blocks=blocks)
        self._run = shared_library(text, folder).run

    def __call__(self, inputs: list[np.ndarray], *, columns: bool = False) -> list[np.ndarray]:
        """Return the outputs for rows of inputs. `columns`: arrays are stored by columns."""
        count = len(inputs[0])
        outputs = [np.full((count, v.size), np.nan) for v in self.program.outputs]
        arrays = [
            np.array(a, self.dtype, order="F" if columns or k in self._apart else "C")
            for k, a in enumerate([*inputs, *outputs])
        ]
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        numbers: list[Any] = [s // a.itemsize for a in arrays for s in a.strides]
        strides = (ctypes.c_longlong * len(numbers))(*numbers)
        self._run(ctypes.c_longlong(count), pointers, strides)
        return arrays[len(inputs) :]

    def launched(self, parameters: Sequence[int]) -> None:
        """Run the kernel with the parameters of a launch."""
        count, never, *places = parameters
        assert never == -1
        pointers = (ctypes.c_void_p * (len(places) // 3))(*places[::3])
        numbers = [n for k, n in enumerate(places) if k % 3]
        strides = (ctypes.c_int64 * len(numbers))(*numbers)
        self._run(ctypes.c_longlong(count), pointers, strides)

    @property
    def _apart(self) -> list[int]:
        return [len(self.program.inputs) + k for k in self.source.columns]
