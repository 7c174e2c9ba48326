"""Interfaces to NVIDIA's run-time compiler (NVRTC) and to the driver, which launches kernels.

The compiler needs no GPU; it comes with CuPy's dependencies, with the package `nvidia-cuda-nvrtc`,
or with the CUDA toolkit. The driver is installed on machines with an NVIDIA GPU. Code is loaded
without a context (`cuLibraryLoadData`, CUDA 12), so one kernel can be used on every device of its
architecture. A launch uses the context of its stream, or the current context.
"""

import ctypes
import functools
import importlib.util
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chasles.backends.arrays import checked_count, words
from chasles.errors import StateError

DRIVERS = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")
COMPILERS = (
    "libnvrtc.so.13",
    "libnvrtc.so.12",
    "libnvrtc.so",
    "nvrtc64_130_0.dll",
    "nvrtc64_120_0.dll",
)


def _first(names: Iterable[str]) -> ctypes.CDLL | None:
    """Return the first of the named libraries that can be loaded, or None."""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


# Run-time compiler (NVRTC) ---------------------------------------------------------------------

OPTIONS = ("--std=c++17", "--fmad=false", "--prec-div=false", "--device-as-default-execution-space")
"""Compiler options. The compiler must not fuse multiply-adds on its own. Float32 divisions are
accurate to two units in the last place and contain no branch, so that long programs fit in the
instruction cache."""

CACHES = (13, 0)
"""First compiler version that caches compiled code by default. `compile` disables the cache,
because the compiler does not report registers and spilled bytes for cached code."""


@dataclass(frozen=True)
class Compiled:
    """Machine code, and the compiler's report: registers and spilled bytes per thread."""

    code: bytes
    registers: int
    spilled: int


def compile(text: str, architecture: str) -> Compiled:
    """Compile a kernel for an architecture such as "sm_90"."""
    library, program = _compiler(), ctypes.c_void_p()
    source = text.encode(), b"kernel.cu", 0, None, None
    _compiled(library.nvrtcCreateProgram(ctypes.byref(program), *source))
    try:
        uncached = ("--no-cache",) if version() >= CACHES else ()
        flags = (*OPTIONS, *uncached, f"--gpu-architecture={architecture}", "--ptxas-options=-v")
        given = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        status = library.nvrtcCompileProgram(program, len(flags), given)
        log = _bytes(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        if status:
            problem = f"the CUDA compiler failed to compile a kernel: {log.strip()[:2000]}"
            raise StateError("E-GPU-016", problem)
        # The log contains the numbers of registers and of spilled bytes for each function.
        reported = (r"Used (\d+) registers", r"(\d+) bytes spill stores")
        most = [max(map(int, re.findall(words, log)), default=0) for words in reported]
        return Compiled(_bytes(program, "CUBIN"), *most)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def version() -> tuple[int, int]:
    """Return the major and minor version of the compiler (NVRTC)."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _compiled(_compiler().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return major.value, minor.value


def _bytes(program: ctypes.c_void_p, what: str) -> bytes:
    """Return, as bytes, the machine code or the log of a compiler run."""
    library, size = _compiler(), ctypes.c_size_t()
    _compiled(getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    content = ctypes.create_string_buffer(size.value)
    _compiled(getattr(library, f"nvrtcGet{what}")(program, content))
    return content.raw


def _compiled(status: int) -> None:
    if status:
        name = _compiler().nvrtcGetErrorString
        name.restype = ctypes.c_char_p
        raise StateError("E-GPU-017", f"the CUDA compiler failed: {name(status).decode()}")


@functools.cache
def _compiler() -> ctypes.CDLL:
    found = _first(_candidates())
    if found is None:
        remedy = (
            "install NVRTC with pip install 'chasles[cuda]', or set CUDA_PATH to the folder of a "
            "CUDA toolkit"
        )
        raise StateError("E-GPU-018", "NVIDIA's run-time compiler (NVRTC) was not found", remedy)
    return found


def _candidates() -> Iterator[str]:
    """Yield possible paths of the compiler library.

    The paths are in the CUDA toolkit, in `nvidia` packages and in system folders.
    """
    folders = []
    if "CUDA_PATH" in os.environ:
        folders += [Path(os.environ["CUDA_PATH"]) / sub for sub in ("lib64", "bin", "lib")]
    found = importlib.util.find_spec("nvidia")
    for root in found.submodule_search_locations or () if found else ():
        folders += sorted(Path(root).glob("*/lib")) + sorted(Path(root).glob("*/bin"))
    for name in COMPILERS:
        yield from (str(folder / name) for folder in folders if (folder / name).exists())
    yield from COMPILERS
    usual = Path("/usr/local/cuda/lib64")
    yield from (str(usual / name) for name in COMPILERS if (usual / name).exists())


# CUDA driver -----------------------------------------------------------------------------------

MAJOR, MINOR, MULTIPROCESSORS = 75, 76, 16
"""Driver codes for device attributes: compute capability and number of multiprocessors."""

SHARED_LIMIT, FREE = 8, 48 * 1024
"""Driver code of the kernel attribute that limits shared memory (SHARED_LIMIT). The attribute must
be set for kernels that need more than FREE bytes of shared memory per block."""

NO_CONTEXT = 201
"""Status that the driver returns if the calling thread has no CUDA context yet."""

POINTER, SIZE, END = 1, 2, 0
"""Tags in the argument `extra` of `cuLaunchKernel`: address of the kernel parameters, their size in
bytes, and end of the list."""


MOST = 2**31 - 1
"""Maximum number of blocks in one kernel launch."""


class Function:
    """A kernel that stays loaded for the life of the process, because CUDA graphs may use it."""

    def __init__(self, code: bytes, name: str, target: str, shared: int = 0) -> None:
        library, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        options = (None, None, 0, None, None, 0)
        _check(driver().cuLibraryLoadData(ctypes.byref(library), code, *options))
        _check(driver().cuLibraryGetKernel(ctypes.byref(kernel), library, name.encode()))
        if shared > FREE:
            for device in range(devices()):
                if architecture(device) == target:
                    _check(driver().cuKernelSetAttribute(SHARED_LIMIT, shared, kernel, device))
        self.pointer = kernel.value or 0
        self._launch = driver().cuLaunchKernel

    def launch(
        self,
        grid: tuple[int, int],
        block: tuple[int, int],
        shared: int,
        parameters: Sequence[int],
        stream: int,
        device: int,
    ) -> None:
        """Launch the kernel on a device's stream, with parameters of 8 bytes each."""
        # words 0 to 4: last argument of cuLaunchKernel; word 5: size of the parameters (bytes);
        # then the parameters
        given = words([POINTER, 0, SIZE, 0, END, 8 * len(parameters), *parameters])
        start, _ = given.buffer_info()
        given[1], given[3] = start + 48, start + 40
        if grid[0] > MOST:
            checked_count("blocks of a launch", grid[0], most=MOST)
        arguments = (self.pointer, *grid, 1, *block, 1, shared, stream, None, start)
        status = self._launch(*arguments)
        if status == NO_CONTEXT:  # use the primary context, shared by all libraries
            context = ctypes.c_void_p()
            _check(driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
            _check(driver().cuCtxSetCurrent(context))
            status = self._launch(*arguments)
        _check(status)


def devices() -> int:
    """Return the number of GPUs."""
    count = ctypes.c_int()
    _check(driver().cuDeviceGetCount(ctypes.byref(count)))
    return count.value


@functools.cache
def architecture(device: int) -> str:
    """Return the architecture of a device as compilers name it, such as "sm_90"."""
    return f"sm_{_attribute(MAJOR, device)}{_attribute(MINOR, device)}"


@functools.cache
def multiprocessors(device: int) -> int:
    """Return the number of multiprocessors of a device."""
    return _attribute(MULTIPROCESSORS, device)


def _attribute(number: int, device: int) -> int:
    value = ctypes.c_int()
    _check(driver().cuDeviceGetAttribute(ctypes.byref(value), number, device))
    return value.value


def address(name: str) -> int:
    """Return the address of a driver function."""
    return ctypes.cast(getattr(driver(), name), ctypes.c_void_p).value or 0


def _check(status: int) -> None:
    if status:
        text = ctypes.c_char_p()
        driver().cuGetErrorString(status, ctypes.byref(text))
        reason = (text.value or b"unknown error").decode()
        raise StateError("E-GPU-012", f"the CUDA driver reported an error: {reason} ({status})")


@functools.cache
def driver() -> ctypes.CDLL:
    """Load and initialize the CUDA driver library."""
    library = _first(DRIVERS)
    if library is None:
        remedy = "use the backend 'llvm' on this machine"
        raise StateError("E-GPU-015", "no NVIDIA driver was found", remedy)
    if not hasattr(library, "cuLibraryLoadData"):
        problem = "the installed NVIDIA driver does not support CUDA 12"
        raise StateError("E-GPU-013", problem, "install a newer NVIDIA driver")
    unsigned, pointer = ctypes.c_uint, ctypes.c_void_p
    library.cuLaunchKernel.argtypes = [pointer, *[unsigned] * 7, *[pointer] * 3]
    status = library.cuInit(0)
    if status:
        problem = f"no GPU is available (CUDA driver status {status})"
        raise StateError("E-GPU-014", problem, "check that nvidia-smi lists a GPU")
    return library
