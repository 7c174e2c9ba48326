"""The process in which cases run: `python -m fuzz.child TARGET FIRST SECONDS FOLDER`.

Before each case its seed goes to a file in memory, so that whoever started this knows it whatever
happens then. Findings are lines of JSON on standard output.
"""

import contextlib
import json
import mmap
import os
import random
import shutil
import struct
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import IO, Any

from fuzz.target import Target, place
from fuzz.targets import TARGETS

STATE = struct.Struct("qq")
"""The seed of the case that runs, and how many have ended; the seed is -1 before the first."""

MOST_FILES = 200_000
"""Bytes of a case's files that are kept with a finding."""


def generator(target: str, seed: int) -> random.Random:
    """The random numbers of a case."""
    return random.Random(f"{target}:{seed}")


def kept(folder: Path) -> dict[str, str]:
    """The files of a case, as text that holds any bytes."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size < MOST_FILES:
            with contextlib.suppress(OSError):
                found[str(path.relative_to(folder))] = path.read_bytes().decode("latin-1")
    return found


def attempt(name: str, run: Any, seed: int) -> dict[str, Any] | None:
    """Run a case in a new folder; what was found, if anything."""
    own = TARGETS[name].folder
    folder = Path(tempfile.mkdtemp(prefix="case-") if own else tempfile.gettempdir())
    before = os.getcwd()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(generator(name, seed), folder)
    except Exception as error:
        said = traceback.format_exc(limit=-12)
        return {
            "seed": seed,
            "kind": place(error),
            "message": f"{error!s:.500}",
            "trace": said[-4000:],
            "files": kept(folder) if own else {},
        }
    finally:
        os.chdir(before)
        if own:
            shutil.rmtree(folder, ignore_errors=True)
    return None


def loop(name: str, first: int, seconds: float, state: Any, out: IO[str]) -> None:
    """Cases from a seed on, for some seconds."""
    target: Target = TARGETS[name]
    run, done = target.make(), 0
    end = time.monotonic() + seconds
    seed = first
    while True:
        STATE.pack_into(state, 0, seed, done)
        found = attempt(name, run, seed)
        if found is not None:
            print(json.dumps(found), file=out, flush=True)
        done, seed = done + 1, seed + 1
        if time.monotonic() > end:
            break
    STATE.pack_into(state, 0, -2, done)


def main() -> None:
    name, first, seconds, folder = sys.argv[1:]
    tempfile.tempdir = folder
    with open(Path(folder, "state"), "r+b") as file:
        state = mmap.mmap(file.fileno(), STATE.size)
    out = os.fdopen(os.dup(1), "w")
    with open(os.devnull, "w") as nothing:  # what cases print
        os.dup2(nothing.fileno(), 1)
    loop(name, int(first), float(seconds), state, out)


if __name__ == "__main__":
    main()
