"""Manifest `run.json` of a simulation folder, with digests of the inputs and of all files.

The SHA-256 digest of each file is added to the manifest before the file is written. A resumed run
can therefore recognize the simulation's files, even if the earlier run was killed. Other files are
never replaced or removed.
"""

import hashlib
import json
import os
import re
import stat
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path

from chasles.errors import ExistingFileError, ModelError
from chasles.formats.motion import MOTION_FILE
from chasles.writing import collect, held, store, whole

MANIFEST, SCENARIO, MOTION = "run.json", "scenario.toml", MOTION_FILE
MOTION_PLOT, ENERGY_PLOT, CONTACT_PLOT = "motion.png", "energy.png", "contact.png"
PRODUCTS = (SCENARIO, MOTION, MOTION_PLOT, ENERGY_PLOT, CONTACT_PLOT)
"""Names of the files in a simulation folder. The names of part files follow the pattern `PART`."""

PART = re.compile(r"part-(\d{6,})-([0-9a-f]{16})\.npz")
FORMAT = "chasles-run-2"
MOST_BYTES = 2**24
"""Maximum size (bytes) of a manifest, sufficient for about a hundred thousand part files."""


class Manifest:
    """Manifest of a simulation folder.

    `files` maps file names to digests, and `facts` contains the other entries. While the folder is
    locked, no other simulation writes to it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts: dict[str, str] = {}
        self.files: dict[str, list[str]] = {}
        self._release: Callable[[], object] = lambda: None

    def load(self) -> bool:
        """Read the manifest; return False if the folder has none."""
        path = self.folder / MANIFEST
        try:
            with path.open("rb") as stream:
                there = json.loads(stream.read(MOST_BYTES))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError, RecursionError) as error:
            problem = getattr(error, "strerror", None) or "the file is damaged or not a manifest"
            remedy = "move the file elsewhere, or choose another --output"
            raise ModelError("E-CLI-033", problem, remedy, file=path) from None
        files = there.pop("files", None) if isinstance(there, dict) else None
        facts = there if isinstance(there, dict) else {}
        if not (
            facts.get("format") == FORMAT
            and all(isinstance(fact, str) for fact in facts.values())
            and isinstance(files, dict)
            and all(name in PRODUCTS or PART.fullmatch(name) for name in files)
            and all(isinstance(digests, list) for digests in files.values())
        ):
            problem = "the manifest is damaged or was written by a different version of chasles"
            remedy = "move the file elsewhere, or choose another --output"
            raise ModelError("E-CLI-060", problem, remedy, file=path)
        self.facts, self.files = facts, files
        return True

    def lock(self) -> None:
        """Lock the folder against other processes until `unlock` is called or this process ends."""
        try:
            descriptor = held(self.folder)
        except BlockingIOError:
            problem = "another process is writing a simulation to this folder"
            remedy = "wait until that process ends, or choose another --output"
            raise ModelError("E-CLI-061", problem, remedy, file=self.folder) from None
        if descriptor is not None:
            self._release = weakref.finalize(self, os.close, descriptor)
        collect(self.folder)

    def unlock(self) -> None:
        """Unlock the folder."""
        self._release()

    # Files -----------------------------------------------------------------------------------

    def is_own(self, name: str) -> bool:
        """Return True if the simulation wrote this file and it is unchanged.

        The contents of part files are not compared, because their names contain digests.
        """
        path = self.folder / name
        try:
            if name not in self.files or not stat.S_ISREG(path.lstat().st_mode):
                return False
            if PART.fullmatch(name):
                return True
            with path.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest() in self.files[name]
        except OSError:
            return False

    def check_own(self, names: Iterable[str]) -> None:
        """Raise an error if one of the named files exists, unless the simulation wrote it."""
        for name in names:
            path = self.folder / name
            if os.path.lexists(path) and not self.is_own(name):
                problem = (
                    "this file is not part of the simulation in this folder, or it was changed"
                )
                remedy = "move the file elsewhere, or choose another --output"
                raise ExistingFileError("E-CLI-062", problem, remedy, file=path)

    def write(self, name: str, data: bytes) -> None:
        """Add a file to the manifest, then write the file atomically."""
        self.check_own([name])
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self.files.setdefault(name, []):
            self.files[name].append(digest)
            self.save()
        with whole(self.folder / name) as part:
            part.write_bytes(data)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files from the manifest, and delete them from the folder if they are unchanged."""
        removed = list(names)
        for name in removed:
            if self.is_own(name):
                (self.folder / name).unlink()
        for name in removed:
            self.files.pop(name, None)

    def save(self) -> None:
        """Write the manifest to disk."""
        store(
            self.folder / MANIFEST, json.dumps(self.facts | {"files": self.files}, indent=1) + "\n"
        )
