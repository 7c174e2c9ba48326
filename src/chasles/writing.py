"""Atomic writing of files, which replaces existing files only on request.

A file is written under a temporary name in its folder, flushed to disk and renamed. Meanwhile its
writer holds an advisory lock on it. A temporary file without a lock belongs to a writer that was
killed, and the next writer in the folder removes it. On systems without such locks (Windows),
nothing is removed.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from chasles.errors import ExistingFileError, FileError, said

try:
    import fcntl
except ImportError:  # Windows has no fcntl
    fcntl: Any = None  # type: ignore[no-redef]

TEMPORARY = re.compile(r"\.chasles-[0-9]+-[0-9a-f]{16}\.part")
"""Names of temporary files. They contain the writer's process id and random digits."""

AnyPath = str | os.PathLike[str]

_FLAGS = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)


# Temporary files -------------------------------------------------------------------------------


def begun(folder: AnyPath, handle: int | None = None, mode: int = 0o666) -> tuple[str, int]:
    """Create a temporary file; return its path and its open descriptor, which holds the lock.

    `handle` is the descriptor of the open folder, as for `dir_fd`. If it is given, the path is a
    name relative to that folder.
    """
    while True:
        name = f".chasles-{os.getpid()}-{os.urandom(8).hex()}.part"
        path = name if handle is not None else os.path.join(folder, name)
        flags = _FLAGS | _BINARY | os.O_CREAT | os.O_EXCL
        descriptor = os.open(path, flags, mode, dir_fd=handle)
        if fcntl is not None:
            with suppress(OSError):  # without locks, `collect` does not remove the file
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        if fcntl is None or os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)  # the file was removed before it was locked


def collect(folder: AnyPath, handle: int | None = None) -> None:
    """Remove the temporary files of killed writers from a folder. `handle`: see `begun`."""
    if fcntl is None:
        return
    with suppress(OSError):
        for name in os.listdir(folder if handle is None else handle):
            if TEMPORARY.fullmatch(name):
                _collect(name if handle is not None else os.path.join(folder, name), handle)


def _collect(path: str, handle: int | None) -> None:
    """Remove a temporary file if it belongs to this user and no running writer holds it."""
    with suppress(OSError):
        descriptor = os.open(path, _FLAGS | _NO_WAIT, dir_fd=handle)
        try:
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path, dir_fd=handle)
        finally:
            os.close(descriptor)


def held(folder: AnyPath) -> int | None:
    """Lock a folder; return the open descriptor that holds the lock, or None if not supported.

    Raises BlockingIOError if another process holds the lock.
    """
    if fcntl is None:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:  # some file systems do not support locks
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise
        return None
    return descriptor


@contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    """Yield a temporary file next to a target, with the target's mode.

    The file is removed unless it was renamed.
    """
    collect(target.parent)
    path, descriptor = begun(target.parent)
    try:
        if target.is_file() and hasattr(os, "fchmod"):
            os.fchmod(descriptor, stat.S_IMODE(target.stat().st_mode))
        if fcntl is None:  # Windows cannot rename an open file
            os.close(descriptor)
            descriptor = -1
        yield Path(path)
    finally:
        with suppress(OSError):
            os.unlink(path)
        if descriptor >= 0:
            os.close(descriptor)


# Files -----------------------------------------------------------------------------------------


def check_target(path: AnyPath, *, overwrite: bool, inputs: Iterable[AnyPath] = ()) -> None:
    """Raise an error if a path exists, or if it refers to one of the input files.

    With `overwrite`, an existing file may be replaced unless it is one of `inputs`.
    """
    if os.path.exists(path):
        for file in inputs:
            if os.path.exists(file) and os.path.samefile(path, file):
                problem, remedy = (
                    "the file is an input and is never overwritten",
                    "name another file",
                )
                raise ExistingFileError("E-FILE-060", problem, remedy, file=path)
    if not overwrite and os.path.lexists(path):
        problem = "the file already exists"
        if os.path.isdir(path):
            problem = "the path is a directory"
        remedy = "choose another name, or replace it (--overwrite, overwrite=True)"
        raise ExistingFileError("E-FILE-061", problem, remedy, file=path)


@contextmanager
def whole(path: AnyPath, *, overwrite: bool = True) -> Iterator[Path]:
    """Yield a temporary file that becomes the target only when it is complete."""
    check_target(path, overwrite=overwrite)
    with _told(path):
        target = _resolved(path)
        with _temporary(target) as part:
            yield part
            _settle(part)
            _put(part, target, overwrite)
            _settle(target.parent)


def store(path: AnyPath, text: str, *, overwrite: bool = True) -> None:
    """Write a text to a file, completely or not at all."""
    with whole(path, overwrite=overwrite) as part:
        part.write_text(text, "utf-8", newline="\n")


def store_all(files: Mapping[Path, str], *, overwrite: bool) -> None:
    """Write all files or none. Temporary files are renamed once all of them are on disk."""
    for path in files:
        check_target(path, overwrite=overwrite)
    with ExitStack() as parts:
        made = []
        for path, text in files.items():
            with _told(path):
                target = _resolved(path)
                part = parts.enter_context(_temporary(target))
                part.write_text(text, "utf-8", newline="\n")
                _settle(part)
                made.append((path, part, target))
        for path, part, target in made:
            with _told(path):
                _put(part, target, overwrite)
        for folder in {target.parent for _, _, target in made}:
            with _told(folder):
                _settle(folder)


def _resolved(path: AnyPath) -> Path:
    """Return the file that a path denotes, with all links resolved."""
    try:
        target = Path(os.path.realpath(path))
        special = target.exists() and not (target.is_file() or target.is_dir())
    except ValueError as error:  # the path contains a zero byte
        raise FileError("E-FILE-062", said(error), "use another name", file=repr(path)) from None
    if special:
        problem = "the path is a device or a pipe, not a file"
        raise FileError("E-FILE-010", problem, "choose another place", file=path)
    return target


def _put(part: Path, target: Path, overwrite: bool) -> None:
    """Rename a file to its target. Without `overwrite`, never replace an existing file."""
    if not overwrite:
        try:
            os.link(part, target)
            return
        except OSError:  # the target exists, or hard links are not supported
            if os.path.lexists(target):
                problem, remedy = (
                    "another program created this file in the meantime",
                    "choose another name",
                )
                raise ExistingFileError("E-FILE-063", problem, remedy, file=target) from None
    os.replace(part, target)


@contextmanager
def _told(path: AnyPath) -> Iterator[None]:
    """Convert system errors about a file to `FileError`."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        why = error.strerror or said(error)
        long = error.errno == errno.ENAMETOOLONG
        remedy = f"choose {'a shorter name' if long else 'another place'}; nothing was written"
        raise FileError("E-FILE-011", why, remedy, file=path) from error


def _settle(path: Path) -> None:
    """Flush a file or folder to disk, if the system supports it."""
    if os.name == "posix" or path.is_file():
        descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
