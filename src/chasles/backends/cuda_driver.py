"""NVIDIA's driver, which comes with a GPU: loads machine code and launches it on any stream.

Code is loaded without a context (`cuLibraryLoadData`, CUDA 12), so one kernel serves every device
of its architecture: a launch happens in the context of its stream, or in the current one.
"""

import ctypes
import functools
from collections.abc import Sequence

from chasles.errors import StateError

NAMES = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")

MAJOR, MINOR = 75, 76
"""The driver's numbers for attributes of a device: its compute capability."""

SHARED_LIMIT, FREE = 8, 48 * 1024
"""The same of a kernel: the most shared memory of a launch, to be asked for above so many bytes."""

NO_CONTEXT = 201
"""The driver's answer in a thread that has not used a device yet."""

POINTER, SIZE, END = 1, 2, 0
"""What the entries of a launch's last argument are: parameters side by side, and their bytes."""


class Function:
    """A kernel that is loaded, and stays so for the life of the process: graphs may hold it."""

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
        """Launch on a stream of a device; each parameter takes 8 bytes."""
        # The last argument of a launch, the size it points to, and the parameters, in one array.
        words = _words(6 + len(parameters))()
        start = ctypes.addressof(words)
        words[:] = [POINTER, start + 48, SIZE, start + 40, END, 8 * len(parameters), *parameters]
        arguments = (self.pointer, *grid, 1, *block, 1, shared, stream, None, start)
        status = self._launch(*arguments)
        if status == NO_CONTEXT:
            _enter(device)
            status = self._launch(*arguments)
        _check(status)


@functools.cache
def _words(count: int) -> type[ctypes.Array[ctypes.c_int64]]:
    return ctypes.c_int64 * count


def devices() -> int:
    """How many GPUs there are."""
    count = ctypes.c_int()
    _check(driver().cuDeviceGetCount(ctypes.byref(count)))
    return count.value


@functools.cache
def architecture(device: int) -> str:
    """What a device runs, as compilers name it, such as "sm_90"."""
    value, capability = ctypes.c_int(), ""
    for attribute in (MAJOR, MINOR):
        _check(driver().cuDeviceGetAttribute(ctypes.byref(value), attribute, device))
        capability += str(value.value)
    return f"sm_{capability}"


def address(name: str) -> int:
    """Where a function of the driver is."""
    return ctypes.cast(getattr(driver(), name), ctypes.c_void_p).value or 0


def _enter(device: int) -> None:
    """Make the device's context, which all libraries share, the thread's."""
    context = ctypes.c_void_p()
    _check(driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    _check(driver().cuCtxSetCurrent(context))


def _check(status: int) -> None:
    if status:
        text = ctypes.c_char_p()
        driver().cuGetErrorString(status, ctypes.byref(text))
        reason = (text.value or b"unknown error").decode()
        raise StateError("E-GPU-012", f"the CUDA driver refused: {reason} ({status})")


@functools.cache
def driver() -> ctypes.CDLL:
    """The driver's library, initialised."""
    for name in NAMES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        if not hasattr(library, "cuLibraryLoadData"):
            problem = "the NVIDIA driver is older than CUDA 12"
            raise StateError("E-GPU-013", problem, "install a newer one")
        unsigned, pointer = ctypes.c_uint, ctypes.c_void_p
        library.cuLaunchKernel.argtypes = [pointer, *[unsigned] * 7, *[pointer] * 3]
        status = library.cuInit(0)
        if status:
            problem = f"no GPU can be used (the CUDA driver says {status})"
            raise StateError("E-GPU-014", problem, "check that nvidia-smi lists one")
        return library
    problem = "no NVIDIA driver was found"
    raise StateError("E-GPU-015", problem, "use the backend 'llvm' on this machine")
