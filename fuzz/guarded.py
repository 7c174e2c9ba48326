"""Arrays next to guard pages: an access beyond an end of the array terminates the process.

The tested code does not have to be instrumented, so NumPy and the fast entry are tested, too.
"""

import ctypes
import mmap

import numpy as np

PAGE = mmap.PAGESIZE
_protect = ctypes.CDLL(None).mprotect if hasattr(mmap, "PROT_READ") else None
if _protect is not None:
    _protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def guarded(a: np.ndarray, *, end: bool) -> np.ndarray:
    """Return a copy of an array that ends directly before a guard page, or begins after one.

    The result is an ordinary copy if the array is empty or the system has no guard pages.
    """
    if _protect is None or not a.nbytes:
        return a.copy()
    inner = -(-a.nbytes // PAGE) * PAGE
    memory = mmap.mmap(-1, inner + 2 * PAGE)
    offset = PAGE + (inner - a.nbytes if end else 0)
    new = np.frombuffer(memory, a.dtype, a.size, offset).reshape(a.shape)
    new[...] = a
    start = new.__array_interface__["data"][0] - offset
    for place in (start, start + PAGE + inner):
        if _protect(place, PAGE, 0) != 0:
            return a.copy()
    return new
