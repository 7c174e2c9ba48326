"""The bytes and lines of a file, what is said of one that cannot be read, and whole new files."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from chasles.errors import FileError, ModelError, said

MAX_BYTES = 64 * 2**20
"""Larger robot files are refused unread; the largest of example-robot-data has 0.2 MB."""

MAX_LINE = 2**20
"""Longer lines, in bytes, are no lines of text."""

_COMMENT = re.compile(r"(^|\s)#.*")


class Line(NamedTuple):
    """A line with something on it. number: counted from 1. end: the bytes of the file up to it."""

    number: int
    text: str
    end: int


def size(file: str) -> int:
    """The bytes of a regular file."""
    if not os.path.isfile(file):
        fault = "this is a device, a pipe or a broken link" if os.path.lexists(file) else ""
        fault = "this is a directory" if os.path.isdir(file) else fault or "there is no such file"
        raise ModelError("E-FILE-004", fault, "check the path", file=file)
    return os.path.getsize(file)


def load(file: str) -> bytes:
    """The bytes of a robot file of bearable size."""
    try:
        check_bearable(file)
        with open(file, "rb") as stream:
            data = stream.read(MAX_BYTES)
    except OSError as error:
        remedy = "check the file"
        raise ModelError("E-FILE-005", error.strerror or str(error), remedy, file=file) from error
    if not data.strip():
        raise ModelError("E-FILE-006", "the file is empty", "export the robot again", file=file)
    return data


def check_bearable(file: str) -> None:
    """A robot file that is far too large is some other file."""
    if size(file) > MAX_BYTES:
        problem = (
            f"{size(file) / 2**20:.0f} MB is more than the {MAX_BYTES // 2**20} MB that a robot "
            "file may have"
        )
        raise ModelError("E-FILE-007", problem, "check that this is the right file", file=file)


def lines(file: str) -> Iterator[Line]:
    """The lines of a text file, one at a time, without comments (from # on) and blank lines.

    Bytes that are no text become words that are no numbers, for the reader of the line to report.
    """
    size(file)
    try:
        with open(file, "rb") as stream:
            number = end = 0
            while raw := stream.readline(MAX_LINE + 1):
                number, end = number + 1, end + len(raw)
                if len(raw) > MAX_LINE:
                    problem = f"the line has more than {MAX_LINE} bytes"
                    remedy = "check that this is a text file"
                    raise ModelError("E-FILE-008", problem, remedy, file=file, line=number)
                text = _COMMENT.sub("", raw.decode("utf-8", "replace").lstrip("\ufeff")).strip()
                if text:
                    yield Line(number, text, end)
    except OSError as error:
        remedy = "check the file"
        raise ModelError("E-FILE-009", error.strerror or str(error), remedy, file=file) from error


def short(text: str) -> str:
    """A text in quotes, cut where it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


# Writing ---------------------------------------------------------------------------------------


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A place to write what becomes the file only when all is written; else nothing is left."""
    target = Path(os.path.realpath(path))
    if target.exists() and not (target.is_file() or target.is_dir()):
        problem = "this is a device or a pipe, and no file"
        raise FileError("E-FILE-010", problem, "choose another place", file=path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
        _settle(part)
        os.replace(part, target)
        _settle(target.parent)
    except OSError as error:
        why = error.strerror or said(error)
        remedy = "nothing was written, choose another place"
        raise FileError("E-FILE-011", why, remedy, file=path) from error
    finally:
        with suppress(OSError):
            part.unlink()


def _settle(path: Path) -> None:
    """Have a file or a folder on the disk itself, where the system can do that."""
    if os.name == "posix" or path.is_file():
        descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def store(path: str | os.PathLike[str], text: str) -> None:
    """Write a text as a file, all of it or nothing: what was there before is lost only then."""
    with whole(path) as part, part.open("x", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
