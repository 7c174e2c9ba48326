"""Write files atomically, and replace existing files only on request.

The contents are written to a temporary file in the same folder, which is flushed to disk and
renamed. During this time, the process holds an advisory lock on the temporary file. If the process
is killed, its temporary file remains without a lock, and the next process that writes to the folder
removes it. On systems without advisory locks (Windows), the temporary file of a killed
process is not removed.
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
"""Pattern for the names of temporary files, which contain the process ID and random digits."""

AnyPath = str | os.PathLike[str]

_FLAGS = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)


# Temporary files -------------------------------------------------------------------------------


def begun(folder: AnyPath, handle: int | None = None, mode: int = 0o666) -> tuple[str, int]:
    """Create and lock a temporary file, and return its path and open descriptor.

    `handle` is an optional descriptor of the open folder, used as `dir_fd`. If it is given, the
    path is relative to the folder.
    """
    while True:
        name = f".chasles-{os.getpid()}-{os.urandom(8).hex()}.part"
        path = name if handle is not None else os.path.join(folder, name)
        flags = _FLAGS | _BINARY | os.O_CREAT | os.O_EXCL
        descriptor = os.open(path, flags, mode, dir_fd=handle)
        if fcntl is not None:
            with suppress(OSError):  # some file systems do not support locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        if fcntl is None or os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)  # another process removed the file before it was locked; try again


def collect(folder: AnyPath, handle: int | None = None) -> None:
    """Remove temporary files left by killed processes.

    `handle` is an optional descriptor of the open folder.
    """
    if fcntl is None:
        return
    with suppress(OSError):
        for name in os.listdir(folder if handle is None else handle):
            if TEMPORARY.fullmatch(name):
                _collect(name if handle is not None else os.path.join(folder, name), handle)


def _collect(path: str, handle: int | None) -> None:
    """Remove a temporary file if it belongs to this user and is not locked."""
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
    """Lock a folder, and return its open descriptor, or None if locks are not supported.

    Raises BlockingIOError if another process has locked the folder.
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
    """Yield a temporary file in the same folder and with the same mode as the target.

    The file is removed on exit if it was not renamed.
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


# Output files ----------------------------------------------------------------------------------


def check_target(path: AnyPath, *, overwrite: bool, inputs: Iterable[AnyPath] = ()) -> None:
    """Raise an error if writing to a file is not allowed.

    An existing file may be replaced only if `overwrite` is True. An input file is never replaced.
    """
    if os.path.exists(path):
        for file in inputs:
            if os.path.exists(file) and os.path.samefile(path, file):
                problem, remedy = (
                    "the output file is also an input file",
                    "choose another output file",
                )
                raise ExistingFileError("E-FILE-060", problem, remedy, file=path)
    if not overwrite and os.path.lexists(path):
        problem = "the path is a directory" if os.path.isdir(path) else "the file already exists"
        remedy = "choose another name, or replace the file with overwrite=True"
        raise ExistingFileError("E-FILE-061", problem, remedy, file=path)


@contextmanager
def whole(path: AnyPath, *, overwrite: bool = True) -> Iterator[Path]:
    """Context manager that yields a temporary file and, on success, renames it to `path`."""
    check_target(path, overwrite=overwrite)
    with _told(path):
        target = _resolved(path)
        with _temporary(target) as part:
            yield part
            _settle(part)
            _put(part, target, overwrite)
            _settle(target.parent)


def store(path: AnyPath, text: str, *, overwrite: bool = True) -> None:
    """Write a string to a file atomically."""
    with whole(path, overwrite=overwrite) as part:
        part.write_text(text, "utf-8", newline="\n")


def store_all(files: Mapping[Path, str], *, overwrite: bool) -> None:
    """Write several text files, given as a mapping from path to content.

    The temporary files are renamed to their targets only after all of them have been written.
    """
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
    """Resolve symbolic links in a path, and raise an error if it is a device or pipe."""
    try:
        target = Path(os.path.realpath(path))
        special = target.exists() and not (target.is_file() or target.is_dir())
    except ValueError as error:  # the path contains a null byte
        remedy = "use a file name without null characters"
        raise FileError("E-FILE-062", said(error), remedy, file=repr(path)) from None
    if special:
        problem = "the path is a device or a pipe, not a file"
        raise FileError("E-FILE-010", problem, "choose another path", file=path)
    return target


def _put(part: Path, target: Path, overwrite: bool) -> None:
    """Rename a file to its target. Without `overwrite`, raise an error if the target exists."""
    if not overwrite:
        try:
            os.link(part, target)
            return
        except OSError:  # the target exists, or hard links are not supported
            if os.path.lexists(target):
                problem, remedy = (
                    "another program created the file at the same time",
                    "choose another name",
                )
                raise ExistingFileError("E-FILE-063", problem, remedy, file=target) from None
    os.replace(part, target)


@contextmanager
def _told(path: AnyPath) -> Iterator[None]:
    """Context manager that converts an `OSError` about a file to a `FileError`."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        why = error.strerror or said(error)
        long = error.errno == errno.ENAMETOOLONG
        remedy = f"choose {'a shorter name' if long else 'another path'}; nothing was written"
        raise FileError("E-FILE-011", why, remedy, file=path) from error


def _settle(path: Path) -> None:
    """Flush a file or folder to disk, if the system supports it."""
    if os.name == "posix" or path.is_file():
        descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
