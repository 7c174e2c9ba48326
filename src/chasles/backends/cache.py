"""Compiled programs on disk, so that the next start needs neither a trace nor a compiler.

Cached machine code is executable code. The folder belongs to the user alone (mode 0700), entries
are opened without following links, and owner and mode are checked on what was opened; an entry is
used only if its SHA-256 matches. Whatever is damaged, foreign or unreadable is ignored and made
again; a folder that cannot be used is no error. Writes are atomic; the entries unused for longest
go when all together exceed `LIMIT`.
"""

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from chasles.expr import Interface, Variable

LIMIT = 512 * 2**20
"""Bytes that all entries together may take."""

_MAGIC = b"chasles 1\n"
_SUFFIX = ".code"


@dataclass(frozen=True)
class Artifact:
    """A compiled program: what it takes and gives, of which type, and its machine code.

    workspace: bytes that a thread needs for a batch. work: about how many operations a state takes.
    """

    interface: Interface
    dtype: str
    workspace: int
    work: int
    object_code: bytes

    def to_bytes(self) -> bytes:
        """The entry's content: magic, SHA-256, length of the header, header, machine code."""
        header = json.dumps(
            {
                "interface": asdict(self.interface),
                "dtype": self.dtype,
                "workspace": self.workspace,
                "work": self.work,
            }
        ).encode()
        body = len(header).to_bytes(8, "little") + header + self.object_code
        return _MAGIC + hashlib.sha256(body).digest() + body

    @staticmethod
    def from_bytes(content: bytes) -> "Artifact | None":
        """The artifact, or None if anything about the content is not as it was written."""
        start = len(_MAGIC) + 32
        digest, body = content[len(_MAGIC) : start], content[start:]
        if not content.startswith(_MAGIC) or hashlib.sha256(body).digest() != digest:
            return None
        size = int.from_bytes(body[:8], "little")
        header = json.loads(body[8 : 8 + size])
        return Artifact(
            _interface(header["interface"]),
            str(header["dtype"]),
            int(header["workspace"]),
            int(header["work"]),
            body[8 + size :],
        )


def _interface(data: dict[str, Any]) -> Interface:
    def variables(items: list[Any]) -> tuple[Variable, ...]:
        return tuple(Variable(name, tuple(shape)) for name, shape in items)

    nonzero = tuple((int(k), int(first)) for k, first in data["nonzero"])
    return Interface(data["name"], variables(data["inputs"]), variables(data["outputs"]), nonzero)


def folder() -> Path:
    """Where entries are: `CHASLES_CACHE` if set, else the platform's cache folder."""
    chosen = os.environ.get("CHASLES_CACHE")
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("chasles", appauthor=False))


_OTHERS = ("cli", "formats", "robots", "homogeneous", "libraries", "loops")
"""Folders that have no part in making code from a recipe, which holds the robot's own numbers."""


@cache
def sources() -> str:
    """SHA-256 of chasles' own sources: code made by another version is not used."""
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] in _OTHERS:
            continue
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def key(*parts: object) -> str:
    """The name of an entry: everything that decides the code, chasles itself included."""
    return hashlib.sha256("\0".join([sources(), *map(repr, parts)]).encode()).hexdigest()


def load(name: str) -> Artifact | None:
    """The entry of that name, if there is one that can be trusted."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError), _opened(folder()) as place:
        entry = os.open(name + _SUFFIX, os.O_RDONLY | _NO_LINKS | _NO_WAIT, dir_fd=place)
        try:
            if _trusted(os.fstat(entry), stat.S_ISREG):
                with open(entry, "rb", closefd=False) as file:
                    artifact = Artifact.from_bytes(file.read())
                with contextlib.suppress(OSError):
                    os.utime(entry)
                return artifact
        finally:
            os.close(entry)
    return None


def save(name: str, artifact: Artifact) -> bool:
    """Write an entry; whether it could be written."""
    target = folder()
    with contextlib.suppress(OSError):
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _opened(target) as place:
            temporary = f"{name}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS
            try:
                with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=place), "wb") as file:
                    file.write(artifact.to_bytes())
                os.rename(temporary, name + _SUFFIX, src_dir_fd=place, dst_dir_fd=place)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=place)
                raise
            _evict(place)
            return True
    return False


def entries() -> list[tuple[str, int, float]]:
    """Name, size in bytes and time of last use of every entry, most recent first."""
    with contextlib.suppress(OSError), _opened(folder()) as place:
        return _listed(place)
    return []


def clear() -> int:
    """Remove all entries; how many there were."""
    removed = 0
    with contextlib.suppress(OSError), _opened(folder()) as place:
        for name in os.listdir(place):
            if name.endswith((_SUFFIX, ".tmp")):
                os.unlink(name, dir_fd=place)
                removed += name.endswith(_SUFFIX)
    return removed


_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
"""A pipe in the place of an entry must not be waited for."""


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """The folder, open; an OSError if it is a link, or another user could write in it."""
    place = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINKS)
    try:
        if not _trusted(os.fstat(place), stat.S_ISDIR):
            raise PermissionError(f"{path} does not belong to this user alone")
        yield place
    finally:
        os.close(place)


def _trusted(status: os.stat_result, right_kind: Any) -> bool:
    """Whether something is of the right kind, this user's own, and closed to everybody else."""
    return bool(
        right_kind(status.st_mode)
        and status.st_uid == os.geteuid()
        and not stat.S_IMODE(status.st_mode) & 0o077
    )


def _listed(place: int) -> list[tuple[str, int, float]]:
    found = []
    for name in os.listdir(place):
        if name.endswith(_SUFFIX):
            with contextlib.suppress(OSError):
                status = os.stat(name, dir_fd=place, follow_symlinks=False)
                found.append((name.removesuffix(_SUFFIX), status.st_size, status.st_mtime))
    return sorted(found, key=lambda entry: -entry[2])


def _evict(place: int) -> None:
    total = 0
    for name, size, _ in _listed(place):
        total += size
        if total > LIMIT:
            with contextlib.suppress(OSError):
                os.unlink(name + _SUFFIX, dir_fd=place)
