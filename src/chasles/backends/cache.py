"""Cache of compiled programs on disk, so that the next process need not trace or compile them.

Cache entries contain machine code that will be executed, so they are protected. Only the user can
access the folder (mode 0700). Entries are opened without following links, and the owner and mode of
the open file are checked. An entry is used only if its SHA-256 matches. An entry that is damaged,
unreadable or owned by another user is ignored and rebuilt; an unusable folder is not an error.
Writes are atomic, and the next writer removes temporary files left by killed processes. When the
total size exceeds `LIMIT`, the least recently used entries are evicted.

Windows has no POSIX file owners and modes, but protects a user's home folder from other users. On
Windows, a cache folder outside the home folder is therefore not used.

Operations on open entries must not be interrupted by a signal (`backends.undisturbed`).
"""

import contextlib
import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from chasles.backends import uninterrupted
from chasles.backends.arrays import checked_count
from chasles.errors import FileError
from chasles.expr import Interface, Variable
from chasles.writing import begun, collect

LIMIT = 512 * 2**20
"""Maximum total size (bytes) of all entries, checked after every `LIMIT` / 64 bytes written."""

_MAGIC = b"chasles 1\n"
_SUFFIX = ".code"
_KEY = re.compile(r"[0-9a-f]{64}\.code")


@dataclass(frozen=True)
class Artifact:
    """A compiled program: its interface, dtype and machine code.

    - workspace: size (bytes) of the workspace that a thread needs for a batch.
    - work: approximate number of operations per state.
    - tiled: True if the code has only the function `tiled`, which computes one tile, a block with
      one state per SIMD lane (`llvm.source`).
    """

    interface: Interface
    dtype: str
    workspace: int
    work: int
    object_code: bytes
    tiled: bool = False

    def to_bytes(self) -> bytes:
        """Return the entry's content: magic, SHA-256, header length, header, machine code."""
        facts = {name: value for name, value in asdict(self).items() if name != "object_code"}
        header = json.dumps(facts).encode()
        body = len(header).to_bytes(8, "little") + header + self.object_code
        return _MAGIC + hashlib.sha256(body).digest() + body

    @staticmethod
    def from_bytes(content: bytes) -> "Artifact | None":
        """Read an artifact from the bytes of a cache file; return None if they are damaged."""
        start = len(_MAGIC) + 32
        digest, body = content[len(_MAGIC) : start], content[start:]
        if not content.startswith(_MAGIC) or hashlib.sha256(body).digest() != digest:
            return None
        size = int.from_bytes(body[:8], "little")
        header = json.loads(body[8 : 8 + size])
        name, inputs, outputs, nonzero = header.pop("interface").values()
        interface = Interface(name, _variables(inputs), _variables(outputs), _counts(nonzero))
        for fact in ("workspace", "work"):
            checked_count(fact, header[fact], least=0)
        header["tiled"] = header["tiled"] is True
        return Artifact(interface, **header, object_code=body[8 + size :])


def _counts(rows: list[Any]) -> tuple[Any, ...]:
    """Convert lists of integers to tuples; raise an error if an entry is not a valid count."""
    return tuple(tuple(checked_count("a number", n, least=0) for n in row) for row in rows)


def _variables(rows: list[Any]) -> tuple[Variable, ...]:
    names, shapes = [name for name, _ in rows], _counts([shape for _, shape in rows])
    return tuple(map(Variable, names, shapes))


def folder() -> Path:
    """Return the cache folder: `CHASLES_CACHE` if set, else the platform's cache folder."""
    chosen = os.environ.get("CHASLES_CACHE")
    if chosen:
        return Path(chosen)
    import platformdirs

    # Without a home folder, platformdirs raises an error; older versions keep "~" in the path.
    with contextlib.suppress(RuntimeError):
        place = Path(platformdirs.user_cache_dir("chasles", appauthor=False))
        if place.is_absolute():
            return place
    return Path(tempfile.gettempdir(), f"chasles-{os.getuid()}")


_DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Exceptions that can occur when a cache entry with a damaged header is read."""


@uninterrupted
def load(name: str) -> Artifact | None:
    """Return the artifact stored under a name if it exists and can be trusted, else None."""
    with contextlib.suppress(OSError, *_DAMAGED), _opened(folder()) as place:
        path = place.name(name + _SUFFIX)
        entry = os.open(path, os.O_RDONLY | _NO_LINKS | _NO_WAIT, dir_fd=place.handle)
        try:
            if _trusted(os.fstat(entry), stat.S_ISREG, place.path):
                with open(entry, "rb", closefd=False) as file:
                    artifact = Artifact.from_bytes(file.read())
                with contextlib.suppress(OSError):
                    os.utime(entry if os.utime in os.supports_fd else path)
                return artifact
        finally:
            os.close(entry)
    return None


@uninterrupted
def save(name: str, artifact: Artifact) -> bool:
    """Write an artifact to the cache; return True if it was written."""
    where = folder()
    with contextlib.suppress(OSError):
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _opened(where) as place:
            target, at = place.name(name + _SUFFIX), place.handle
            temporary, descriptor = begun(where, at, 0o600)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    written = file.write(artifact.to_bytes())
                    file.flush()
                    if os.name == "posix":  # rename while the file is still locked
                        os.replace(temporary, target, src_dir_fd=at, dst_dir_fd=at)
                if os.name != "posix":
                    os.replace(temporary, target)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=at)
                raise
            _UNSEEN[where] = _UNSEEN.get(where, LIMIT) + written
            if _UNSEEN[where] > LIMIT // 64:
                _evict(place)
                _UNSEEN[where] = 0
            return True
    return False


@uninterrupted
def entries() -> list[tuple[str, int, float]]:
    """Return the name, size (bytes) and time of last use of every entry, most recent first."""
    with contextlib.suppress(OSError), _opened(folder()) as place:
        return _listed(place)
    return []


class Cleared(NamedTuple):
    """Number of removed cache entries, and a message "NAME: reason" for each other entry."""

    removed: int = 0
    left: tuple[str, ...] = ()


@uninterrupted
def clear() -> Cleared:
    """Remove all entries that can be removed, and temporary files left by killed processes."""
    removed, left = 0, []
    with contextlib.suppress(OSError), _opened(folder()) as place:
        for name in place.names():
            if not _is_entry(place, name):
                continue
            try:
                os.unlink(place.name(name), dir_fd=place.handle)
                removed += 1
            except FileNotFoundError:  # another process removed the entry first
                pass
            except OSError as error:
                left.append(f"{name}: {error.strerror or error}")
        collect(place.path, place.handle)
    return Cleared(removed, tuple(left))


_UNSEEN: dict[Path, int] = {}
"""Bytes written to each folder since the total size of its entries was last checked."""

_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
"""Flag for `os.open`, which would otherwise block if a cache entry was replaced by a named pipe."""


class _Place(NamedTuple):
    """An open cache folder; entries are accessed through the folder's handle.

    The handle ensures that the folder cannot be replaced during use. On systems without folder
    handles, paths are used.
    """

    path: Path
    handle: int | None

    def name(self, name: str) -> str:
        """Return the path of an entry, relative to the folder if the folder has an open handle."""
        return name if self.handle is not None else str(self.path / name)

    def names(self) -> list[str]:
        """Return the names of all entries in the cache folder."""
        return os.listdir(self.path if self.handle is None else self.handle)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[_Place]:
    """Open a folder; raise OSError if the folder is a link or accessible to other users."""
    handle = None
    if os.open in os.supports_dir_fd:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINKS)
    try:
        status = os.lstat(path) if handle is None else os.fstat(handle)
        if not _trusted(status, stat.S_ISDIR, path):
            raise FileError(
                "E-CACHE-001",
                f"cache folder {path} must be accessible only to this user (mode 0700)",
            )
        yield _Place(path, handle)
    finally:
        if handle is not None:
            os.close(handle)


def is_private(path: Path) -> bool:
    """Return True if a folder belongs to this user and other users have no access."""
    return _trusted(os.lstat(path), stat.S_ISDIR, path)


def _trusted(status: os.stat_result, right_kind: Any, folder: Path) -> bool:
    """Return True if a file has the right type, belongs to this user and is private."""
    if not hasattr(os, "geteuid"):
        own = folder.resolve().is_relative_to(Path.home().resolve())
    else:
        own = status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077
    return bool(right_kind(status.st_mode) and own)


def _is_entry(place: _Place, name: str) -> bool:
    """Return True if a file is a cache entry, judged by its name or its first bytes."""
    if _KEY.fullmatch(name):
        return True
    if name.endswith(_SUFFIX):
        with contextlib.suppress(OSError):
            flags = os.O_RDONLY | _NO_LINKS | _NO_WAIT
            file = os.open(place.name(name), flags, dir_fd=place.handle)
            try:
                return os.read(file, len(_MAGIC)) == _MAGIC
            finally:
                os.close(file)
    return False


def _listed(place: _Place) -> list[tuple[str, int, float]]:
    found = []
    for name in place.names():
        if _is_entry(place, name):
            with contextlib.suppress(OSError):
                path = place.name(name)
                status = os.stat(path, dir_fd=place.handle, follow_symlinks=False)
                found.append((name.removesuffix(_SUFFIX), status.st_size, status.st_mtime))
    return sorted(found, key=lambda entry: -entry[2])


def _evict(place: _Place) -> None:
    collect(place.path, place.handle)
    total = 0
    for name, size, _ in _listed(place):
        total += size
        if total > LIMIT:
            with contextlib.suppress(OSError):
                os.unlink(place.name(name + _SUFFIX), dir_fd=place.handle)
