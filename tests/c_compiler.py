"""Compile programs with a C compiler for tests, and call the shared libraries on arrays."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from chasles.backends.c.body import DOUBLE, Number
from chasles.backends.c.function import Function
from chasles.backends.c.library import Library, header, source
from chasles.expr import Program

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
FAST = ("-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno")


def compiler(name: str = "gcc") -> str:
    """Return the path of a compiler; skip the test if the compiler is not installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: exported C is not compiled by it here")
    return found


def run(*command: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command that must succeed; if it fails, the assertion shows its output."""
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


class Native:
    """A program compiled by a C compiler; `one` evaluates state by state, `batch` all at once."""

    def __init__(
        self,
        program: Program,
        folder: Path,
        *flags: str,
        number: Number = DOUBLE,
        own_sine: bool = False,
        by: str = "gcc",
    ) -> None:
        self.program, self.dtype = program, np.dtype(number.dtype)
        function = Function("tried", "A program of a test.", program, number, own_sine)
        library = Library("tried", "A test.", (), number, (function,), ())
        (folder / "tried.h").write_text(header(library))
        (folder / "tried.c").write_text(source(library))
        path = folder / f"tried{len(list(folder.glob('*.so')))}.so"
        options = [*STRICT, *(flags or ("-O1",)), "-shared", "-fPIC"]
        run(compiler(by), *options, folder / "tried.c", "-o", path, "-lm")
        self._library = ctypes.CDLL(str(path))

    def one(self, *inputs: np.ndarray) -> list[np.ndarray]:
        """Evaluate each row by a separate call; inputs and outputs are arrays of rows."""
        given, outputs = self._arrays(inputs)
        for k in range(len(given[0])):
            self._library.tried(*(_pointer(a[k]) for a in (*given, *outputs)))
        return outputs

    def batch(self, *inputs: np.ndarray) -> list[np.ndarray]:
        """Evaluate all rows by one call."""
        given, outputs = self._arrays(inputs)
        count = ctypes.c_size_t(len(given[0]))
        self._library.tried_batch(count, *map(_pointer, (*given, *outputs)))
        return outputs

    def _arrays(self, inputs: tuple[np.ndarray, ...]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        given = [np.ascontiguousarray(x, dtype=self.dtype) for x in inputs]
        count = len(given[0])
        return given, [np.full((count, v.size), np.nan, self.dtype) for v in self.program.outputs]


def _pointer(a: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(a.__array_interface__["data"][0])
