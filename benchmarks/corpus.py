"""Read robot files of packages and folders with chasles and with the reference readers."""

import importlib.metadata
import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

SUFFIXES = {".urdf": "URDF", ".xacro": "xacro", ".xml": "MJCF", ".mjcf": "MJCF", ".sdf": "SDF"}

SECONDS = 120.0
"""Maximum time (s) per stage for a file."""

START = 65_536
"""Number of bytes at the start of an .xml file that are searched for its first tag."""


class Case(NamedTuple):
    """Robot file, and the package or folder that contains it."""

    package: str
    format: str
    path: Path


def in_packages(places: Iterable[str]) -> Iterator[Case]:
    """Yield the robot files of all packages that are installed in the given folders."""
    for package in importlib.metadata.distributions(path=list(places)):
        paths = (Path(str(package.locate_file(file))) for file in package.files or ())
        yield from _cases(package.name, paths)


def in_folder(folder: Path) -> Iterator[Case]:
    """Return the robot files in a folder and its subfolders."""
    return _cases(folder.name, folder.rglob("*"))


def _cases(package: str, paths: Iterable[Path]) -> Iterator[Case]:
    for path in sorted(paths):
        format = SUFFIXES.get(path.suffix.lower())
        if format and path.is_file() and (format != "MJCF" or _is_mjcf(path)):
            yield Case(package, format, path)


def _is_mjcf(path: Path) -> bool:
    with path.open("rb") as stream:
        start = stream.read(START)
    return b"<mujoco" in start and b"<mujocoinclude" not in start


# Outcomes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """Result of `corpus_child.tried` for a file, or the stage in which the process ended."""

    case: Case
    found: dict[str, Any]

    @property
    def ended(self) -> str:
        """Reason and stage, such as "crash (reference)", if the process failed, else ""."""
        return next((f"{x} ({self.found[x]})" for x in ("crash", "hang") if x in self.found), "")

    @property
    def known(self) -> bool:
        """Return True if the reference reads the file."""
        return not self.found.keys() & {"unread"} and self.ended not in (
            "crash (reference)",
            "hang (reference)",
        )

    @property
    def read(self) -> bool:
        """Return True if chasles reads the file."""
        return "notes" in self.found

    @property
    def agrees(self) -> bool:
        return self.known and self.read and not self.found["first"]

    @property
    def explanation(self) -> str:
        """Note of chasles about the first part that differs, or "" if there is none."""
        if self.agrees or not self.read:
            return ""
        first, cause = self.found["first"], self.found["cause"]
        if cause.startswith("unsupported"):
            return str(cause)
        parts = re.findall(r"(?:link|joint) '[^']*'", f"{first} {cause}")
        notes = [note for note in self.found["notes"] if any(part in note for part in parts)]
        notes.sort(key=lambda note: note not in cause)  # notes quoted by the comparison come first
        return next(iter(notes), "").replace(str(self.case.path), self.case.path.name)

    @property
    def kinematics(self) -> float:
        """Largest error of link poses and Jacobians."""
        errors = self.found.get("errors", {})
        return max(errors.get("placements", 0.0), errors.get("Jacobians", 0.0))


@dataclass
class Reader:
    """Process that reads files. It is restarted after a file that makes it crash or hang."""

    seconds: float = SECONDS
    process: "subprocess.Popen[bytes] | None" = None
    _received: bytes = field(default=b"", repr=False)

    def tried(self, case: Case) -> Outcome:
        """Read a file in the process, and return the outcome."""
        child = self.process or self._start()
        assert child.stdin is not None, "stdin and stdout are pipes"
        asked = {"path": str(case.path), "format": case.format}
        child.stdin.write(json.dumps(asked).encode() + b"\n")
        child.stdin.flush()
        answer: Any = "start"
        while isinstance(answer, str):
            line = self._line(child)
            if line:
                answer = json.loads(line)
                continue
            end = "hang" if child.poll() is None else "crash"
            self.close()
            return Outcome(case, {end: answer})
        return Outcome(case, answer)

    def _line(self, child: "subprocess.Popen[bytes]") -> bytes:
        """Return the next line, or b"" after a timeout or the end of the process."""
        assert child.stdout is not None, "stdin and stdout are pipes"
        while b"\n" not in self._received:
            ready, _, _ = select.select([child.stdout], [], [], self.seconds)
            more = os.read(child.stdout.fileno(), 65_536) if ready else b""
            if ready and not more:
                child.wait()
            if not more:
                return b""
            self._received += more
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _start(self) -> "subprocess.Popen[bytes]":
        self._received = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.corpus_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return self.process

    def close(self) -> None:
        """Kill the process, if there is one."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
        self.process = None
