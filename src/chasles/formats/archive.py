"""Read arrays from .npz files; sizes are checked before memory is allocated."""

import io
import math
import os
import struct
import tokenize
import zlib
from collections.abc import Sequence
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy

from chasles.errors import InputError

MOST_TIMES = 100
"""Maximum ratio of uncompressed array size to file size."""

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}

_FAULTS = (
    *(KeyError, EOFError, OSError, MemoryError, NotImplementedError, RuntimeError, BadZipFile),
    *(zlib.error, struct.error, SyntaxError, tokenize.TokenError, Warning),
)
"""Exceptions other than ValueError that zipfile and NumPy raise for corrupt files."""


def arrays(
    source: str | os.PathLike[str] | io.BytesIO, names: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Read arrays from a .npz file; pickled objects are not supported.

    `names` lists the arrays to read; if it is empty, all arrays are read. A corrupt file raises
    ValueError. Before memory is allocated, the total array size is checked; the limit is 1 MiB plus
    `MOST_TIMES` times the file size.
    """
    try:
        with ZipFile(source) as archive:
            whole = archive.start_dir  # offset of the central directory; all members precede it
            wanted = [f"{name}.npy" for name in names] or archive.namelist()
            members = [archive.getinfo(name) for name in wanted]
            if sum(member.file_size for member in members) > MOST_TIMES * whole + 2**20:
                problem = f"the arrays are too large: more than {MOST_TIMES} times the file size"
                raise InputError("E-FILE-071", problem)
            return {member.filename[:-4]: _array(archive, member) for member in members}
    except _FAULTS as error:
        raise InputError("E-FILE-072", str(error) or type(error).__name__) from error


def _array(archive: ZipFile, member: ZipInfo) -> np.ndarray:
    with archive.open(member) as stream:
        version = npy.read_magic(stream)
        if version not in _HEADERS:
            problem = f"array {member.filename!r} has unsupported .npy version {version}"
            raise InputError("E-FILE-073", problem)
        shape, _, dtype = _HEADERS[version](stream)
        if dtype.hasobject or math.prod(shape) * dtype.itemsize > member.file_size:
            problem = f"array {member.filename!r} contains Python objects or is truncated"
            raise InputError("E-FILE-074", problem)
    with archive.open(member) as stream:
        array: np.ndarray = npy.read_array(stream, allow_pickle=False)
        return array
