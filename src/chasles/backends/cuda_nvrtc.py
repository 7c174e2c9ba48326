"""NVIDIA's run-time compiler: from the text of a kernel to machine code, and what it reports.

It needs no GPU. The library comes with CuPy's dependencies, with the package `nvidia-cuda-nvrtc`,
or with the CUDA toolkit.
"""

import ctypes
import functools
import importlib.util
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chasles.errors import StateError

NAMES = (
    "libnvrtc.so.13",
    "libnvrtc.so.12",
    "libnvrtc.so",
    "nvrtc64_130_0.dll",
    "nvrtc64_120_0.dll",
)

OPTIONS = ("--std=c++17", "--fmad=false", "--device-as-default-execution-space")
"""Products are fused where the program says so, nowhere else."""

CACHES = (13, 0)
"""The version that is told not to answer from the driver's cache, since it has no report then."""


@dataclass(frozen=True)
class Compiled:
    """Machine code, and the compiler's report: registers of a thread, bytes that did not fit."""

    code: bytes
    registers: int
    spilled: int


def compile(text: str, architecture: str) -> Compiled:
    """The machine code of a kernel for an architecture such as "sm_90"."""
    library = _library()
    program = ctypes.c_void_p()
    _check(
        library.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None
        )
    )
    try:
        uncached = ("--no-cache",) if version() >= CACHES else ()
        flags = (*OPTIONS, *uncached, f"--gpu-architecture={architecture}", "--ptxas-options=-v")
        given = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        status = library.nvrtcCompileProgram(program, len(flags), given)
        log = _text(library, program, "ProgramLog")
        if status:
            problem = f"the CUDA compiler refused a kernel: {log.strip()[:2000]}"
            raise StateError("E-GPU-016", problem)
        return Compiled(_bytes(library, program, "CUBIN"), *_report(log))
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def version() -> tuple[int, int]:
    """The compiler's version."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return major.value, minor.value


def _report(log: str) -> tuple[int, int]:
    """Registers and spilled bytes of the kernel: the most of all functions that it calls."""
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", log)]
    spilled = [int(n) for n in re.findall(r"(\d+) bytes spill stores", log)]
    return max(registers, default=0), max(spilled, default=0)


def _bytes(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    content = ctypes.create_string_buffer(size.value)
    _check(getattr(library, f"nvrtcGet{what}")(program, content))
    return content.raw


def _text(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> str:
    return _bytes(library, program, what).rstrip(b"\0").decode(errors="replace")


def _check(status: int) -> None:
    if status:
        name = _library().nvrtcGetErrorString
        name.restype = ctypes.c_char_p
        raise StateError("E-GPU-017", f"the CUDA compiler failed: {name(status).decode()}")


@functools.cache
def _library() -> ctypes.CDLL:
    for candidate in _candidates():
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    remedy = "install it with pip install 'chasles[cuda]' or set CUDA_PATH to a CUDA toolkit"
    raise StateError("E-GPU-018", "NVIDIA's run-time compiler (NVRTC) was not found", remedy)


def _candidates() -> Iterator[str]:
    """Where the library may be: a toolkit, packages of the name `nvidia`, the system's own."""
    folders = []
    if "CUDA_PATH" in os.environ:
        folders += [Path(os.environ["CUDA_PATH"]) / sub for sub in ("lib64", "bin", "lib")]
    found = importlib.util.find_spec("nvidia")
    for root in found.submodule_search_locations or () if found else ():
        folders += sorted(Path(root).glob("*/lib")) + sorted(Path(root).glob("*/bin"))
    for name in NAMES:
        yield from (str(folder / name) for folder in folders if (folder / name).exists())
    yield from NAMES
    for folder in (Path("/usr/local/cuda/lib64"),):
        yield from (str(folder / name) for name in NAMES if (folder / name).exists())
