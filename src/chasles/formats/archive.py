"""Read arrays and tables from .npz files; sizes are checked before memory is allocated."""

import io
import math
import os
import struct
import tokenize
import zlib
from collections.abc import Iterable, Mapping, Sequence
from zipfile import BadZipFile, ZipFile, ZipInfo, is_zipfile

import numpy as np
from numpy.lib import format as npy

from chasles.errors import InputError, ModelError, said
from chasles.formats.files import short, size

MOTION_FORMAT = "chasles-motion-1"
"""Value of `format` in a motion file (.npz) written by `chasles simulate`."""

MOST_TIMES = 100
"""Maximum ratio of uncompressed array size to file size."""

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}

_FAULTS = (
    *(KeyError, EOFError, OSError, MemoryError, NotImplementedError, RuntimeError, BadZipFile),
    *(zlib.error, struct.error, SyntaxError, tokenize.TokenError, Warning),
)
"""Exceptions other than ValueError that zipfile and NumPy raise for corrupt files."""


def arrays(
    source: str | os.PathLike[str] | io.BytesIO,
    names: Sequence[str] = (),
    *,
    optional: Iterable[str] = (),
) -> dict[str, np.ndarray]:
    """Read arrays from a .npz file; pickled objects are not supported.

    `names` lists the arrays to read, and `optional` the arrays to read if the file contains them;
    if both are empty, all arrays are read. A corrupt file raises ValueError. Before memory is
    allocated, the total array size is checked; the limit is 1 MiB plus `MOST_TIMES` times the file
    size.
    """
    others = {f"{name}.npy" for name in optional}
    try:
        with ZipFile(source) as archive:
            whole = archive.start_dir  # offset of the central directory; all members precede it
            there = archive.namelist()
            wanted = [f"{name}.npy" for name in names]
            wanted += [name for name in there if name in others or not (names or others)]
            members = [archive.getinfo(name) for name in wanted]
            if sum(member.file_size for member in members) > MOST_TIMES * whole + 2**20:
                problem = f"the arrays are too large: more than {MOST_TIMES} times the file size"
                raise InputError("E-FILE-071", problem, "save the arrays without compression")
            return {member.filename[:-4]: _array(archive, member) for member in members}
    except _FAULTS as error:
        raise _corrupt(error) from error


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


def _corrupt(error: BaseException) -> InputError:
    return InputError("E-FILE-072", str(error) or type(error).__name__)


def members(file: str) -> list[str]:
    """Return the names of the arrays in a .npz file; a corrupt file raises ValueError."""
    try:
        with ZipFile(file) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except _FAULTS as error:
        raise _corrupt(error) from error


def table(file: str, groups: Mapping[str, Sequence[str]]) -> dict[str, np.ndarray]:
    """Read columns of doubles (n,) from a .npz file.

    `groups` contains the names of the columns by quantity. The file has one array (n,) for each
    column, or one array (n, k) for the k columns of a quantity, as `chasles simulate` writes.
    Columns that the file does not contain are omitted, and other arrays are not read.
    """
    size(file)
    columns = dict.fromkeys(name for names in groups.values() for name in names)
    try:
        found = arrays(file, optional={*columns, *groups, "format"})
        named = str(found.pop("format", MOTION_FORMAT))
        numbers = {name: _numbers(name, array) for name, array in found.items()}
    except (ValueError, TypeError) as error:
        fault = f"the arrays cannot be read ({said(error)})"
        remedy = "save an array of numbers for each column with numpy.savez"
        if not is_zipfile(file):
            fault = "the file is not a .npz file"
        raise ModelError("E-FILE-027", fault, remedy, file=file) from None
    if named.startswith("chasles-") and named != MOTION_FORMAT:
        problem = f"unknown motion format {short(named)}"
        raise ModelError("E-FILE-028", problem, f"use {MOTION_FORMAT!r}", file=file)
    result = {name: numbers[name] for name in columns if name in numbers}
    for quantity, names in groups.items():
        if quantity in numbers and not set(names) <= result.keys():
            result |= zip(names, _split(file, quantity, numbers[quantity], names).T, strict=True)
    for name, array in result.items():
        rows = next(iter(result.values())).shape
        if array.ndim != 1 or array.shape != rows:
            expected = f"{rows}, like the first column" if len(rows) == 1 else "(n,)"
            problem = f"column {name!r} must have shape {expected}, not {array.shape}"
            remedy = "give each column the same number of entries"
            raise ModelError("E-FILE-421", problem, remedy, file=file)
    return result


def _numbers(name: str, array: np.ndarray) -> np.ndarray:
    """Return an array of doubles."""
    if array.dtype.kind not in "fiub":
        problem = f"array {name!r} must contain numbers, not {array.dtype}"
        raise InputError("E-FILE-420", problem)
    return array.astype(float)


def _split(file: str, quantity: str, array: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Return the array (n, k) of a quantity with k columns."""
    if array.ndim == 1 and len(names) == 1:
        return array[:, None]
    if array.ndim == 2 and array.shape[1] == len(names):
        return array
    problem = f"array {quantity!r} has shape {array.shape}, but {len(names)} columns are expected"
    remedy = "give a file for this robot"
    if array.ndim == 2 and abs(array.shape[1] - len(names)) == (7 if quantity == "q" else 6):
        base = "with" if array.shape[1] > len(names) else "without"  # coordinates of a free joint
        remedy = f"load the robot {base} floating=True"
    raise ModelError("E-FILE-029", problem, remedy, file=file)
