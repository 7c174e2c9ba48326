"""Machine code in memory: linked when it is needed, freed with its last reference.

LLVM's linker keeps some kilobytes for every piece of code that it has unloaded, until it goes
itself. So it is replaced after every `SHARED` pieces, and goes with the last of them.
"""

import collections
import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np

from chasles.backends import arrays
from chasles.backends.llvm_pieces import objects

SHARED = 64
"""Pieces of code that one linker loads."""

_LINKER: list[Any] = []
_SERIAL = itertools.count()
_GONE: collections.deque[Any] = collections.deque()
"""Code to be unloaded."""
_BUSY: list[None] = []
"""Entries while LLVM is at work for long."""


@functools.cache
def initialise() -> None:
    """Make LLVM ready for this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


class Piece:
    """What a piece of code needs for as long as it may run.

    loaded: the code. linker: must outlive what it has loaded. others: code that this code calls.
    kept: objects of Python that the code or its callers point to, by name.
    """

    def __init__(self, loaded: Any, linker: Any, others: tuple["Code", ...]) -> None:
        self.loaded, self.linker, self.others = loaded, linker, others
        self.kept: dict[str, Any] = {}

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("machine code in memory cannot be copied or pickled")

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ending():
            _GONE.append((self.loaded, self.linker))
            if not _BUSY:
                sweep()


class Code(NamedTuple):
    """A piece of machine code, freed when the last reference to this object goes.

    Whoever can call the code holds this, or another tuple that does. The garbage collector empties
    objects of a cycle one by one, and finalises them, while others of the cycle may still run; but
    it does not empty tuples, and does not look into arrays of NumPy, so that it never knows of the
    piece.
    """

    hidden: np.ndarray

    @property
    def piece(self) -> Piece:
        """The code itself, not to be kept."""
        found: Piece = self.hidden[()]
        return found

    def address(self, name: str) -> int:
        """Where a function is."""
        return int(self.piece.loaded[name])


def sweep() -> None:
    """Unload code that nobody holds any more. No lock of ours is taken, so none stays taken."""
    while _GONE:
        try:
            loaded, _linker = _GONE.popleft()
        except IndexError:  # another thread was faster
            return
        loaded.close()


class busy:
    """A context in which LLVM is at work for long: freed code waits for its end, not its owner."""

    def __enter__(self) -> None:
        _BUSY.append(None)

    def __exit__(self, *problem: object) -> None:
        _BUSY.pop()
        sweep()


def load(
    code: bytes, symbols: Mapping[str, int], names: Iterable[str], others: tuple[Code, ...] = ()
) -> Code:
    """Link machine code that calls functions at addresses, and look up some of its names.

    others: code that it calls.
    """
    with arrays.COMPILING:
        initialise()
        sweep()
        number = next(_SERIAL)
        if number % SHARED == 0 or not _LINKER:
            newer = sys.platform != "win32"  # the newer linker takes less memory, fewer mappings
            _LINKER[:] = [llvm.create_lljit_compiler(use_jit_link=newer)]
        builder = llvm.JITLibraryBuilder()
        for piece in objects(code):
            builder.add_object_img(piece)
        builder.add_current_process()
        for name, address in symbols.items():
            builder.import_symbol(name, address)
        for name in names:
            builder.export_symbol(name)
        loaded = builder.link(_LINKER[0], f"chasles{number}")
        hidden = np.empty((), dtype=object)
        hidden[()] = Piece(loaded, _LINKER[0], others)
        return Code(hidden)
